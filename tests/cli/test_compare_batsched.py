# SPDX-License-Identifier: Apache-2.0
"""``rebat compare --batsched``: recorded schedules, and a program instead of Batsched."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.campaign.batsched import VARIANTS
from rebat.cli.compare import compare as command
from rebat.core import files
from tests.support.choices import choices

ROOT = Path(__file__).parents[2]

# Accepts Batsched's options; schedules with the policy of --policy.
STAND_IN = """#!{python}
import os, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given.keys() == {{"-v", "-s", "--verbosity"}}, given
policy = {policies}[given["-v"]]
os.execv({python!r}, [{python!r}, "-m", "rebat", "serve", "-p", policy, "--endpoint", given["-s"]])
"""
SAME = {
    "conservative_bf": "batsched-conservative", "easy_bf": "batsched-easy", "fcfs": "batsched-fcfs",
}  # fmt: skip


@pytest.fixture
def batsched(tmp_path: Path, monkeypatch):
    """Put a program called batsched on the PATH."""

    def install(text: str) -> Path:
        program = tmp_path / "bin/batsched"
        program.parent.mkdir()
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        return program

    return install


def stand_in(policies: dict[str, str]) -> str:
    return STAND_IN.format(python=sys.executable, policies=policies)


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rebat", "compare", "--batsched", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.slow
def test_the_recorded_schedules_are_compared_by_name(tmp_path: Path) -> None:
    done = compare("synthetic-small", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout.count("equal, 100 jobs")) == (0, 3)
    assert "recorded Batsched" in done.stdout
    for policy in SAME.values():
        assert (tmp_path / f"out/{policy}-recorded/differences.csv").read_text().count("\n") == 1


def test_a_changed_recording_is_a_difference(tmp_path: Path, monkeypatch, capsys) -> None:
    from rebat.cli.main import main

    shutil.copytree(ROOT / "workloads", tmp_path / "workloads")
    file = tmp_path / "workloads/batsched/synthetic-small.easy_bf.csv.gz"
    header, first, *rest = gzip.decompress(file.read_bytes()).decode().splitlines()
    start = first.split(",")[2]
    moved = first.replace(f",{start},", f",{float(start) + 1:.6f},")
    file.write_bytes(gzip.compress("\n".join([header, moved, *rest]).encode()))
    monkeypatch.setattr(files, "_PACKAGE", tmp_path / "a/package")
    (tmp_path / "a").symlink_to(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(["compare", "--batsched", "synthetic-small"])
    told = capsys.readouterr().out
    assert told.count("equal, 100 jobs") == 2
    (line,) = (line for line in told.splitlines() if "DIFFERENT" in line)
    assert line.startswith("batsched-easy          against recorded Batsched: DIFFERENT: 100 jobs")
    assert "different times or states: 1" in line


@pytest.mark.slow
def test_an_installed_batsched_runs_over_the_wire(batsched) -> None:
    batsched(stand_in(SAME))
    done = compare(ROOT / "workloads/toy.json")
    assert (done.returncode, done.stdout.count("equal, 5 jobs")) == (0, 3)
    assert done.stdout.count("against running Batsched") == 3


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["toy", "synthetic-small"])
def test_a_batsched_need_not_finish_the_registration_of_jobs(batsched, workload: str) -> None:
    """Without an option of Batsim, no scheduler can register jobs, so the simulation ends."""
    script = Path(__file__).parents[1] / "support/fcfs_scheduler.py"
    batsched(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    done = compare(workload, "--policy", "batsched-fcfs")
    assert (done.returncode, done.stderr) == (0, "")
    assert "batsched-fcfs          against running Batsched: equal" in done.stdout


@pytest.mark.slow
def test_an_installed_batsched_that_decides_otherwise_is_told(batsched) -> None:
    batsched(stand_in(SAME | {"fcfs": "batsched-easy"}))
    done = compare("synthetic-small")
    assert done.returncode == 1
    assert "batsched-fcfs          against recorded Batsched: equal" in done.stdout
    assert "batsched-fcfs          against running Batsched: DIFFERENT" in done.stdout


@pytest.mark.slow
def test_a_batsched_that_does_not_start_is_an_error(batsched) -> None:
    program = batsched("#!/bin/sh\necho no such option >&2\nexit 3\n")
    done = compare(ROOT / "workloads/toy.json")
    assert done.returncode == 2
    assert f"{program}: ended with exit status 3: no such option (expected" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_policy_of_batsched_can_be_chosen() -> None:
    assert tuple(VARIANTS) == choices(command, "policies") == tuple(SAME.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([ROOT / "workloads/toy.json"], "mira-like-june-2017 or synthetic-small, or Batsched 1.4"),
        (["toy", "a.csv"], "replaces the runs A and B"),
        (["absent"], "absent"),
        (
            ["toy", "--endpoint", "tcp://127.0.0.1:1"],
            "--endpoint: needs exactly one policy",
        ),
    ],
)
def test_what_cannot_be_compared(arguments: list, told: str, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = compare(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
