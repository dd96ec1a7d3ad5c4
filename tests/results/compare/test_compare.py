# SPDX-License-Identifier: Apache-2.0
"""Comparison of the jobs of two tables: equal, moved and lost jobs, partial tables, output."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from rebat.campaign.batsched import recorded
from rebat.core.errors import InputError
from rebat.figures.compare import draw_comparison
from rebat.results.compare.schedules import COLUMNS, compare, differences_csv
from rebat.results.files.batsim_files import REQUIRED, read_jobs
from tests.support.recordings import folder_of
from tests.support.tables import edited, only, table, toy_csv, without


def compared(folder: Path, a: str, b: str, tolerance_s: float = 1e-3):
    return compare(table(folder, a, "a.csv"), table(folder, b, "b.csv"), tolerance_s)


def later(seconds: float) -> str:
    """Return the toy example with its last job submitted later."""
    return edited(
        toy_csv(), "4", starting_time=f"{11 + seconds}", finish_time=f"{21 + seconds}",
        waiting_time=f"{11 + seconds}", turnaround_time=f"{21 + seconds}",
    )  # fmt: skip


def test_a_table_is_like_itself(tmp_path: Path) -> None:
    result = compared(tmp_path, toy_csv(), toy_csv())
    assert result.same(allocations=True)
    assert result.first is None
    assert {name: spread.equal for name, spread in result.spreads.items()} == {
        "start": 7, "finish": 7, "waiting": 7, "flow": 7,
    }  # fmt: skip
    metrics = {line.metric: line.values for line in result.metrics}
    assert metrics["makespan"] == {"A": 21.0, "B": 21.0}
    assert metrics["max waiting time"] == {"A": 11.0, "B": 11.0}
    assert metrics["mean turnaround"]["A"] == pytest.approx((1 + 1 + 8 + 10 + 10 + 10 + 21) / 7)
    assert metrics["mean slowdown"]["A"] == pytest.approx((4 * 1 + 5 + 2 + 2.1) / 7)


def test_a_job_that_starts_later_is_found(tmp_path: Path) -> None:
    result = compared(tmp_path, toy_csv(), later(7))
    assert not result.same()
    for spread in result.spreads.values():
        assert (spread.equal, spread.differing, spread.max_s) == (6, 1, 7.0)
        assert spread.mean_s == pytest.approx(1.0)
    first = result.first
    assert (first.key, first.at_us) == ("4", 11_000_000)
    assert [record.job_id for record in first.running_a] == ["4"]
    assert first.running_b == []


def test_the_tolerance_decides(tmp_path: Path) -> None:
    assert compared(tmp_path, toy_csv(), later(0.001)).same()
    assert not compared(tmp_path, toy_csv(), later(0.0011)).same()
    assert not compared(tmp_path, toy_csv(), later(0.000001), tolerance_s=0).same()
    assert compared(tmp_path, toy_csv(), later(7), tolerance_s=7).same()


def test_jobs_of_one_table_only(tmp_path: Path) -> None:
    result = compared(tmp_path, without(toy_csv(), "4"), without(toy_csv(), "1"))
    assert [record.job_id for record in result.only_a] == ["1"]
    assert [record.job_id for record in result.only_b] == ["4"]
    assert not result.same()
    assert (result.first.key, result.first.b) == ("w0!1", None)


def test_other_nodes_count_only_when_asked(tmp_path: Path) -> None:
    result = compared(tmp_path, toy_csv(), edited(toy_csv(), "1", allocated_resources="5"))
    assert result.other_nodes == 1
    assert result.same()
    assert not result.same(allocations=True)


def test_another_final_state_is_a_difference(tmp_path: Path) -> None:
    result = compared(tmp_path, toy_csv(), edited(toy_csv(), "1", final_state="COMPLETED_FAILED"))
    assert result.other_states == 1
    assert not result.same()


def test_a_job_rejected_in_one(tmp_path: Path) -> None:
    rejected = edited(
        toy_csv(), "4", final_state="REJECTED", starting_time="", execution_time="",
        finish_time="", waiting_time="", turnaround_time="", allocated_resources="",
    )  # fmt: skip
    result = compared(tmp_path, toy_csv(), rejected)
    assert result.spreads["start"].equal == 6
    assert result.other_states == 1
    assert result.first.key == "4"


def test_an_extract_borrows_the_submissions(tmp_path: Path) -> None:
    extract = only(toy_csv(), *REQUIRED)
    both = compared(tmp_path, extract, toy_csv())
    assert both.same()
    assert both.spreads["waiting"].equal == 7
    alone = compared(tmp_path, extract, extract)
    assert set(alone.spreads) == {"start", "finish"}
    assert [line.metric for line in alone.metrics] == ["makespan"]


def test_ids_of_two_workloads_are_kept_apart() -> None:
    jobs = read_jobs(folder_of("dyn_submitter") / "dyn_submitter_jobs.csv")
    result = compare(jobs, jobs)
    assert len(result.keys) == 15
    assert result.same(allocations=True)


def test_the_recorded_variants_differ() -> None:
    files = recorded()["mira-like-june-2017"]
    easy, fcfs = (read_jobs(files[f"batsched-{name}"]) for name in ("easy", "fcfs"))
    result = compare(easy, fcfs)
    assert len(result.keys) == 3311
    assert result.spreads["start"].differing > 0
    at_us = result.first.at_us
    assert all(r.start_us <= at_us < r.end_us for r in result.first.running_a)
    starts_us = result.times_us["start"].max(axis=0)
    before = [at for at in result.differing if starts_us[at] < at_us]
    assert before == []


def test_what_is_written(tmp_path: Path) -> None:
    b = without(later(7), "1")
    result = compared(tmp_path, toy_csv(), b)
    draw_comparison(result, ("A", "B"), tmp_path / "out" / "differences.png")
    rows = list(csv.DictReader(io.StringIO(differences_csv(result))))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["job_id"], row["tables"]) for row in rows] == [("4", "both"), ("w0!1", "A")]
    assert rows[0]["start_difference"] == "7.000000"
    assert (tmp_path / "out/differences.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_without_waiting_times(tmp_path: Path) -> None:
    extract = only(toy_csv(), *REQUIRED)
    same = compared(tmp_path, extract, extract)
    draw_comparison(same, ("A", "B"), tmp_path / "out" / "differences.png")
    assert differences_csv(compared(tmp_path, extract, extract)) == ",".join(COLUMNS) + "\n"


def test_tables_that_cannot_be_compared_are_told(tmp_path: Path) -> None:
    twice = toy_csv() + toy_csv().splitlines()[-1] + "\n"
    with pytest.raises(InputError, match=r"several rows for job w0!4"):
        compared(tmp_path, toy_csv(), twice)
    with pytest.raises(InputError, match="no job in common"):
        compared(tmp_path, toy_csv(), another_job())


def another_job() -> str:
    return edited(without(toy_csv(), "1", "2", "3", "5", "2#1", "3#1"), "4", job_id="99")
