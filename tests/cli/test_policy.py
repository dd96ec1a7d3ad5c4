# SPDX-License-Identifier: Apache-2.0
"""``rebat policy new`` and ``rebat policy check``: their output and files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.models.failures.events import read_events
from rebat.workloads.batsim_json import read_workload
from tests.support.bugs import BUGS, HEAD


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def status(*words: str) -> int:
    """Run a command and return its exit status."""
    try:
        main(list(words))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a user does."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_new_policy_runs_and_passes_its_own_test(here: Path, capsys) -> None:
    assert status("policy", "new", "mine") == 0
    assert capsys.readouterr().out == "mine.py:Mine and test_mine.py are written\n"
    assert status("run", "toy", "-p", "mine.py:Mine", "--failures", "toy", "--out", "out") == 0
    assert pytest_in(here, "test_mine.py").returncode == 0
    code = (here / "mine.py").read_text()
    assert code.index("def reservation") < 1600 and len(code.splitlines()) < 45


def test_new_keeps_existing_files(here: Path, capsys) -> None:
    (here / "test_mine.py").write_text("kept")
    assert status("policy", "new", "mine") == 2
    assert "test_mine.py: exists" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["test_mine.py"]
    assert status("policy", "new", "mine", "--force") == 0
    assert (here / "test_mine.py").read_text() != "kept"


@pytest.mark.parametrize("name", ["a-b", "1", "../x", "_", "é"])
def test_new_rejects_names_that_python_has_not(name: str, here: Path, capsys) -> None:
    assert status("policy", "new", "--", name) == 2
    assert "invalid name" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.slow
def test_a_check_that_fails_says_what_and_writes_the_smallest_case(here: Path, capsys) -> None:
    (here / "mine.py").write_text(HEAD + BUGS["starts a job twice"].code)
    words = ["policy", "check", "mine.py:Mine", "--seeds", "3", "--skip", "wire", "--out", "out"]
    assert status(*words) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0].startswith("mine.py:Mine: ") and "of 8 checks passed; failed: safety" in lines[0]
    )
    assert lines[1].split()[:2] == ["failed", "safety"] and "out/safety.json" in lines[3]
    jobs = read_workload(here / "out/safety.json").jobs
    assert len(jobs) == 1
    assert not (here / "out/safety.events").exists()
    done = pytest_in(here, "out/test_safety.py")
    assert done.returncode == 1 and "AssertionError" in done.stdout
    (here / "mine.py").write_text(f"{HEAD}    pass\n")  # fixed
    assert pytest_in(here, "out/test_safety.py").returncode == 0


@pytest.mark.slow
def test_failures_that_matter_are_in_the_smallest_case(here: Path, capsys) -> None:
    (here / "mine.py").write_text(HEAD + BUGS["does not expect repairs"].code)
    words = ["policy", "check", "mine.py:Mine", "--seeds", "4", "--out", "out", "--json"]
    assert status(*words) == 1
    record = json.loads(capsys.readouterr().out)
    assert not record["passed"] and record["verdict"].startswith("mine.py:Mine: ")
    (safety,) = (row for row in record["checks"] if row["name"] == "safety")
    case = safety["case"]
    assert safety["state"] == "failed" and len(case["workload"]["jobs"]) == 1
    failed = [event for event in read_events(here / "out/safety.events") if not event.available]
    # the policy fails when it has counted as many failures as there are nodes
    assert sum(len(event.nodes) for event in failed) == case["workload"]["nb_res"]
    assert len(case["events"]) == 2 * len(failed) and case["operations"] == []


@pytest.mark.slow
def test_the_same_verdict_again(here: Path, capsys) -> None:
    (here / "mine.py").write_text(HEAD + BUGS["depends on the order of a set"].code)
    texts = []
    for _ in range(2):
        status("policy", "check", "mine.py:Mine", "--seeds", "2", "--json")
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["absent.py:Mine"], "absent.py: no such file"),
        (["nothing"], "unknown policy 'nothing'"),
        (["easy", "--skip", "all"], "unknown check 'all'"),
        (["easy", "--force"], "--force: has no effect"),
        (["easy", "--timeout", "0"], "--timeout"),
        (["easy", "--seeds", "0"], "--seeds"),
    ],
)
def test_invalid_input_is_an_error(words: list[str], problem: str, capsys) -> None:
    assert status("policy", "check", *words) == 2
    streams = capsys.readouterr()
    assert problem in streams.err and streams.out == ""
