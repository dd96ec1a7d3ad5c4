# SPDX-License-Identifier: Apache-2.0
"""Section 3 of the node-stealing paper: Table 1 and Figure 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.models.failures.events import read_events
from rebat.workloads.batsim_json import read_workload
from tests.support.scenarios import flows, run

pytestmark = pytest.mark.usefixtures("both_ways")

ROOT = Path(__file__).parents[2]
TOY = read_workload(ROOT / "workloads" / "toy.json")
FAILURE = read_events(ROOT / "failure_events" / "toy.events")


def starts(result) -> dict[str, tuple[float, float]]:
    return {j.id[3:]: (j.start_us / 1e6, j.end_us / 1e6) for j in result.jobs}


def test_without_failures_the_gantt_is_figure_2a() -> None:
    result = run("baseline", TOY)
    assert starts(result) == {
        "1": (0, 8), "2": (0, 5), "3": (0, 10), "4": (10, 20), "5": (5, 7),
    }  # fmt: skip
    nodes = {job.id[3:]: str(job.nodes) for job in result.jobs}
    assert nodes == {"1": "0", "2": "1", "3": "2-7", "4": "0-5", "5": "1"}


def test_without_stealing_the_flows_are_table_1s() -> None:
    result = run("baseline", TOY, FAILURE)
    assert flows(result) == {"1": 8, "2": 5, "3": 15, "4": 25, "5": 3}
    assert result.summary.flows["all"].weighted_mean_s == pytest.approx(
        (1 * 8 + 1 * 5 + 6 * 15 + 6 * 25 + 1 * 3) / 15
    )


def test_with_stealing_the_flows_are_table_1s() -> None:
    result = run("sfsj", TOY, FAILURE)
    assert flows(result) == {"1": 8, "2": 11, "3": 11, "4": 21, "5": 10}
    assert result.summary.flows["all"].weighted_mean_s == pytest.approx(14.733, abs=5e-4)
    stolen = {row.job_id: row.stolen for row in result.rows}
    assert stolen == {"1": 0, "2": 1, "3": 0, "4": 0, "5": 0}


def test_stealing_starts_the_failed_job_at_the_instant_of_its_failure() -> None:
    assert starts(run("sfsj", TOY, FAILURE))["3#1"] == (1, 11)
