# SPDX-License-Identifier: Apache-2.0
"""Signals and full disks end a command with one line and without incomplete files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.campaigns import GRID, campaign_file, stored
from tests.support.messages import messages

ROOT = Path(__file__).parents[2]
TOY = str(ROOT / "workloads/toy.json")
REBAT = [sys.executable, "-m", "rebat"]

POLICY = """
import os, signal, time, weakref
from rebat.contract import Policy

class Marker:
    pass

def send(_=None):
    os.kill(os.getpid(), signal.{signal})

class Mine(Policy):
    def plan(self, view, changes):
        {code}
        time.sleep(20)
        return []
"""
AT_ONCE = "send()"
IN_A_CALLBACK = "marker = Marker(); ref = weakref.ref(marker, send); del marker"
"""Code whose signal arrives in a callback, where Python ignores exceptions."""


@pytest.mark.slow
@pytest.mark.parametrize("code", [AT_ONCE, IN_A_CALLBACK])
@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("SIGINT", 130, "rebat: interrupted"),
        ("SIGTERM", 143, "rebat: terminated"),
        ("SIGHUP", 129, "rebat: hung up"),
    ],
)
def test_a_run_is_left_in_order(
    name: str, status: int, told: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(POLICY.format(signal=name, code=code))
    out = tmp_path / "results" / "out"
    done = subprocess.run(
        [*REBAT, "run", TOY, "-p", f"{tmp_path}/mine.py:Mine", "--out", str(out)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status
    assert messages(done.stderr) == [told]
    assert list(out.parent.iterdir()) == []


MANY = GRID.replace("seeds = [0, 1]", f"seeds = {list(range(200))}")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "threads", "dask", "inline"])
@pytest.mark.parametrize(
    ("name", "status", "says"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGHUP", 129, "hung up")],
)
def test_a_campaign_keeps_its_results_and_says_one_line(
    name: str, status: int, says: str, executor: str, tmp_path: Path
) -> None:
    """Like Ctrl-C in a terminal, the signal is sent to all processes of the command."""
    if executor == "dask":
        pytest.importorskip("distributed")
    file, results = campaign_file(tmp_path, MANY, jobs=200), tmp_path / "r"
    arguments = ["--results", str(results), "--workers", "2", "--executor", executor]
    with subprocess.Popen(
        [*REBAT, "campaign", "run", str(file), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        until = time.monotonic() + 90
        while not stored(results) and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(process.pid, getattr(signal, name))
        _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert messages(error) == [f"rebat: {says}"]
    assert stored(results)


def limited(*arguments: object, blocks: int) -> subprocess.CompletedProcess[str]:
    """Run a command with a limit of ``blocks`` kilobytes per file, which acts like a full disk."""
    command = " ".join(map(str, [*REBAT, *arguments]))
    return subprocess.run(
        ["bash", "-c", f"ulimit -f {blocks}; PYTHONDONTWRITEBYTECODE=1 exec {command}"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def told_once(done: subprocess.CompletedProcess[str]) -> bool:
    lines = [line for line in done.stderr.splitlines() if line.startswith("rebat: error: ")]
    return done.returncode == 2 and len(lines) == 1 and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_of_a_run(tmp_path: Path) -> None:
    done = limited("run", TOY, "-p", "sfsj", "--figures", "--out", tmp_path / "out", blocks=4)
    assert told_once(done)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "threads", "inline"])
def test_a_full_disk_ends_a_campaign(executor: str, tmp_path: Path) -> None:
    file, results = campaign_file(tmp_path / "in", jobs=20), tmp_path / "r"
    arguments = ("campaign", "run", file, "--results", results, "--executor", executor)
    assert told_once(limited(*arguments, blocks=1))
    assert not stored(results)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["/proc/none/out", f"{TOY}/out"])
def test_places_that_cannot_be_written_to(place: str, tmp_path: Path) -> None:
    file = campaign_file(tmp_path, jobs=5)
    for arguments in (
        ["run", TOY, "-p", "sfsj", "--out", place],
        ["campaign", "run", str(file), "--results", place, "--executor", "inline"],
    ):
        done = subprocess.run([*REBAT, *arguments], capture_output=True, text=True, check=False)
        assert told_once(done)
        assert place.removesuffix("/out") in done.stderr
