# SPDX-License-Identifier: Apache-2.0
"""No computed result is lost, and no folder mixes two results."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rebat.cli.main import main
from tests.support.messages import messages

ROOT = Path(__file__).parents[2]
TOY = str(ROOT / "workloads/toy.json")
REBAT = [sys.executable, "-m", "rebat"]
BROKEN = """
from rebat.contract import Policy, Start

class Broken(Policy):
    def plan(self, view, changes):
        yield Start("no such job")
"""


def status(*arguments: object) -> int:
    """Run a command and return its exit status."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def run(out: Path, *more: object) -> int:
    return status("run", TOY, "--out", out, *more)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# ---- standard output


def test_a_full_standard_output_is_told_and_the_results_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*REBAT, "run", TOY, "-p", "sfsj", "--out", str(out)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    told = messages(done.stderr)
    assert len(told) == 1
    assert f"the results are in {out}" in told[0]
    assert (out / "sfsj/jobs.csv").exists()


@pytest.mark.parametrize("arguments", [["policies"], ["--help"], ["run", "--help"]])
def test_other_commands_tell_a_full_standard_output(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*REBAT, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left" in done.stderr


@pytest.mark.slow
def test_a_reader_that_has_gone_ends_a_run_quietly_with_its_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(
        [*REBAT, "run", TOY, "-p", "sfsj", "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert process.returncode == 141
    assert messages(told) == []
    assert (out / "comparison.csv").exists()


def test_a_standard_error_that_is_gone_costs_no_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Path("/dev/full").open("w") as full:
        arguments = ["run", TOY, "-p", "sfsj", "--nodes", "4", "--out", str(out)]  # it warns
        done = subprocess.run(
            [*REBAT, *arguments], stderr=full, stdout=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 0
    assert "results in" in done.stdout


# ---- folders


def test_a_second_run_into_a_folder_is_refused(tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert run(out, "-p", "sfsj") == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run(out, "-p", "baseline") == 2
    assert "contains an earlier result" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_force_replaces_the_whole_folder(tmp_path: Path) -> None:
    """The earlier result has a chart; the second result, of a large machine, has none."""
    out = tmp_path / "out"
    assert run(out, "-p", "sfsj", "--figures") == 0
    assert {"gantt.png", "sfsj"} <= names(out)
    assert run(out, "-p", "baseline", "--nodes", "1000", "--force") == 0
    assert run(tmp_path / "new", "-p", "baseline", "--nodes", "1000") == 0
    assert names(out) == names(tmp_path / "new")
    assert {path.name for path in tmp_path.iterdir()} == {"new", "out"}


def test_the_list_of_files_is_one_that_sha256sum_checks(tmp_path: Path) -> None:
    run(tmp_path / "out", "-p", "sfsj")
    subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "out", check=True
    )


def added(out: Path) -> None:
    (out / "sfsj/notes.txt").write_text("mine")


def edited(out: Path) -> None:
    (out / "comparison.csv").write_text("mine")


def linked(out: Path) -> None:
    (out / "comparison.csv").rename(out.parent / "elsewhere.csv")
    (out / "comparison.csv").symlink_to(out.parent / "elsewhere.csv")


def a_folder(out: Path) -> None:
    (out / "empty").mkdir()


def unlisted(out: Path) -> None:
    (out / "SHA256SUMS").unlink()


@pytest.mark.parametrize("change", [added, edited, linked, a_folder, unlisted])
def test_force_never_deletes_what_others_put_there(tmp_path: Path, capsys, change) -> None:
    out = tmp_path / "out"
    run(out, "-p", "sfsj")
    change(out)
    before = names(out)
    assert run(out, "-p", "baseline", "--force") == 2
    assert str(out) in capsys.readouterr().err
    assert names(out) == before


def test_an_empty_folder_is_filled_also_the_current_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(Path(), "-p", "sfsj") == 0
    assert run(Path(), "-p", "sfsj", "--force") == 0
    assert {"comparison.csv", "SHA256SUMS", "sfsj", "sfsj/jobs.csv"} < names(tmp_path)


def test_a_taken_folder_is_refused_before_anything_is_simulated(tmp_path: Path, capsys) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert run(tmp_path, "-p", f"{broken(tmp_path)}:Broken") == 2
    assert "no earlier result" in capsys.readouterr().err


SLOW = """
import pathlib, time
from rebat.contract import Policy

class Slow(Policy):
    def plan(self, view, changes):
        pathlib.Path({began!r}).touch()
        while not pathlib.Path({go!r}).exists():
            time.sleep(0.01)
        raise SystemError("enough")
"""


@pytest.mark.slow
def test_two_runs_on_one_folder_keep_both_results_or_refuse(tmp_path: Path, capsys) -> None:
    """The second run is refused immediately while the first one runs."""
    out, began, go = tmp_path / "out", tmp_path / "began", tmp_path / "go"
    (tmp_path / "slow.py").write_text(SLOW.format(began=str(began), go=str(go)))
    first = [*REBAT, "run", TOY, "-p", "sfsj", "-p", f"{tmp_path}/slow.py:Slow", "--out", str(out)]
    with subprocess.Popen(first, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not began.exists() and process.poll() is None:
            time.sleep(0.02)
        assert run(out, "-p", "baseline") == 2
        go.touch()
    assert "another command is writing its result there" in capsys.readouterr().err
    assert (out / "sfsj/jobs.csv").exists()
    assert run(out, "-p", "baseline") == 2


# ---- policies that fail


def broken(folder: Path) -> Path:
    file = folder / "broken.py"
    file.write_text(BROKEN)
    return file


def test_a_policy_that_fails_costs_the_others_nothing(tmp_path: Path, capsys) -> None:
    out, spec = tmp_path / "out", f"{broken(tmp_path)}:Broken"
    assert run(out, "-p", "sfsj", "-p", spec, "-p", "baseline") == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("rebat: error: policy Broken: ")
    assert captured.out.startswith("baseline against sfsj: ")
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"sfsj", "baseline"}
    rows = csv.DictReader((out / "comparison.csv").open())
    assert {row["policy"] for row in rows} == {"sfsj", "baseline"}


def test_nothing_is_written_when_every_policy_fails(tmp_path: Path, capsys) -> None:
    out, spec = tmp_path / "out", f"{broken(tmp_path)}:Broken"
    assert run(out, "-p", spec) == 2
    assert "policy Broken" in capsys.readouterr().err
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))
