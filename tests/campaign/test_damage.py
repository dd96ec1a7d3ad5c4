# SPDX-License-Identifier: Apache-2.0
"""Changed results, folders of other commands, and invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import MOST_NAMED, run_campaign
from rebat.campaign.store import RESULTS
from rebat.cli.campaign import campaign
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder
from tests.support.campaigns import campaign_file, contents, run_here


def test_a_report_leaves_changed_results_out_and_says_so(tmp_path: Path, unbroken, capsys) -> None:
    run_here(unbroken[0], tmp_path / "r")
    victim = tmp_path / "r/runs" / RESULTS
    victim.write_text(victim.read_text().replace('"makespan_s":', '"makespan_s":1', 1))
    arguments = ["report", str(unbroken[0]), "--results", str(tmp_path / "r")]
    campaign.main(arguments, standalone_mode=False)
    assert f"{victim}, line 1: does not match its checksum" in capsys.readouterr().err
    assert "partial: 9 of 10 runs done" in (tmp_path / "r/report/report.md").read_text()


def test_many_changed_results_are_counted(tmp_path: Path, capsys) -> None:
    file = campaign_file(tmp_path, jobs=5)
    opened = open_campaign(file)
    extra = open_campaign(campaign_file(tmp_path / "more", jobs=6))
    both = type(opened)(opened.owner, [*opened.units, *extra.units])
    (tmp_path / "r/runs").mkdir(parents=True)
    lines = [f'{{"key":"{unit.key}","status":"ok"}}\n' for unit in both.units]
    (tmp_path / "r/runs/a.jsonl").write_text("".join(lines))
    status = run_campaign(both, tmp_path / "r", executor="inline")
    told = capsys.readouterr().err
    assert told.count("does not match its checksum") == MOST_NAMED
    assert f"{20 - MOST_NAMED} more damaged lines in {tmp_path}" in told
    assert status.ok == 20


# ---- folders


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A folder with the result of ``rebat run --out``."""
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "comparison.csv").write_text("metric\n")
    return tmp_path / "out"


def test_a_campaign_writes_nothing_into_the_result_of_a_run(taken: Path, unbroken) -> None:
    before = {path.name for path in taken.iterdir()}
    with pytest.raises(InputError, match="out: contains the result of another command"):
        run_here(unbroken[0], taken)
    assert {path.name for path in taken.iterdir()} == before


def test_nor_does_its_report(taken: Path, unbroken, tmp_path: Path) -> None:
    run_here(unbroken[0], tmp_path / "r")
    with pytest.raises(InputError, match="out: contains the result of another command"):
        write_report(open_campaign(unbroken[0]), tmp_path / "r", taken)
    assert not (taken / "results.parquet").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_run_writes_nothing_into_a_campaigns_folder(tmp_path: Path, unbroken, force) -> None:
    run_here(unbroken[0], tmp_path / "r", limit=1)
    before = contents(tmp_path / "r")
    with (
        pytest.raises(InputError, match="contains no earlier result"),
        atomic_folder(tmp_path / "r", force),
    ):
        pass
    assert contents(tmp_path / "r") == before


# ---- files


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = '.'\n", r"name: is '\.' \(expected the name of a folder"),
        ("name = '..'\n", r"name: is '\.\.'"),
        ("name = ''\n", "name: is ''"),
        ("name = 'a/b'\n", "name: is 'a/b'"),
        ('name = "a\\u0000b"\n', "contains a NUL character"),
        ('"a\\u0000b" = 1\n', "contains a NUL character"),
        ('[workloads.one]\nfile = "a\\u0000.json"\n', "contains a NUL character"),
        ("name = 'a\0b'\n", "not TOML: Found invalid character"),
        ("a = " + "[" * 50_000, "nested too deeply"),
        ("a = " + "[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ("a." * 2_000 + "b = 1", "nested too deeply"),
    ],
)
def test_what_is_no_campaign_file_is_said_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=rf"c\.toml: .*{told}"):
        open_campaign(tmp_path / "c.toml")
