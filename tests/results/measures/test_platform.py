# SPDX-License-Identifier: Apache-2.0
"""Use of node time: each share names its total, and all shares add up to the total."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import read_events
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.results.catalogue import NODE_TIME
from rebat.results.comparison import comparison
from rebat.results.measures.platform import free_steps, platform_time
from rebat.results.measures.summary import Measures, RunSummary
from rebat.runs.single import simulate
from rebat.workloads.batsim_json import read_workload
from rebat.workloads.generate import synthetic
from tests.support.scenarios import check_run, fails, machine, run

ROOT = Path(__file__).parents[3]


def shares(*summaries: RunSummary) -> list[float]:
    """Return the sum of each policy's shares of node time in the printed table."""
    lines = comparison({str(place): summary for place, summary in enumerate(summaries)})
    names = {row.name for row in NODE_TIME}
    parts = [line for line in lines if line.name and line.name[0] in names]
    return [sum(line.values[str(p)] or 0.0 for line in parts) for p in range(len(summaries))]


def test_the_toys_shares_of_node_time_add_up() -> None:
    events = read_events(ROOT / "failure_events/toy.events")
    summaries = [
        simulate(
            read_workload(ROOT / "workloads/toy.json"), preset(name), machine_events=events
        ).summary
        for name in ("baseline", "sfsj")
    ]
    assert shares(*summaries) == pytest.approx([1, 1], abs=1e-12)


@pytest.mark.parametrize("window", [None, (10**9, 4 * 10**10)])
def test_so_do_those_of_a_machine_under_failures(window: tuple[int, int] | None) -> None:
    jobs = add_young_daly(synthetic(0, 300), n_nodes=128, mtbf_s=1800)
    events = generate_events(Authors(1800, 600), 128, horizon_s=1e6)
    result = simulate(jobs, preset("sfsj"), machine_events=events, measures=Measures(window=window))
    assert shares(result.summary) == pytest.approx([1], abs=1e-12)


def test_every_share_says_of_what() -> None:
    lines = comparison({"easy": run("easy", machine(4, (2, 10), (4, 10))).summary})
    of_node_time = {"useful_utilisation", *(row.name for row in NODE_TIME)}
    shares = [line for line in lines if line.unit == "share" and line.name]
    assert shares
    for line in shares:  # the caption of the table explains shares of node time
        assert ", share of " in line.metric or line.name[0] in of_node_time


def test_the_work_of_a_job_killed_at_its_walltime_is_no_use() -> None:
    """The job's 12 node-seconds are wasted; the other job's 10 node-seconds are useful."""
    result = run("easy", machine(4, (2, 10, 0, 6), (1, 10)))
    check_run(result)
    platform = result.summary.platform
    assert (platform.waste_walltime, platform.useful) == (12, 10)
    assert platform.idle == 4 * 10 - 22
    asked = platform_time(result.ledger, 4, (0, 10 * 10**6), "useful")
    assert (asked.waste_walltime, asked.useful, asked.idle) == (0, 22, platform.idle)


def test_so_is_what_its_earlier_attempts_kept() -> None:
    """A job writes a checkpoint of 1 s after every 3 s of work.

    Of the 5 s before the failure 4 s are kept. The walltime of 12 s then allows a recovery of 1 s
    and two more periods of 3 s of work and 1 s of checkpoint.
    """
    period = {"checkpoint_period": 3, "checkpoint_cost": 1, "recovery_cost": 1}
    workload = machine(1, (1, 20, 0, 12), profiles={})
    workload.profiles["20s"].update(period)
    result = run("baseline", workload, fails(0, 5, 6))
    check_run(result)
    platform = result.summary.platform
    assert platform.useful == 0
    assert platform.waste_failure == 1
    assert platform.recovery == 1
    assert (platform.waste_walltime, platform.checkpoint) == (9, 3)


@pytest.mark.parametrize(
    ("rounding", "accounting", "length", "useful", "checkpoint"),
    [
        ("ceil", "exact", 400, 400, 1200), ("ceil", "program", 400, 1600, 0),
        ("floor", "exact", 100, 400, 0), ("floor", "program", 100, 400, 0),
    ],
)  # fmt: skip
def test_a_closing_checkpoint_is_not_useful(rounding, accounting, length, useful, checkpoint):
    """A job of 100 s on 4 nodes; eq. 1 adds a last checkpoint of 300 s if it is rounded up."""
    jobs = add_young_daly(machine(4, (4, 100)), n_nodes=4, mtbf_s=86_400, rounding=rounding)
    platform = simulate(
        jobs, preset("baseline"), measures=Measures(accounting=accounting)
    ).summary.platform
    assert (platform.total, platform.useful, platform.checkpoint) == (
        4 * length, useful, checkpoint,
    )  # fmt: skip


def test_nodes_held_for_a_failed_job_are_not_idle() -> None:
    """Job 1 (3 nodes) fails at 5 s; job 2, its victim, writes a checkpoint until 15 s.

    Meanwhile the other two nodes of job 1 are held for 20 node-seconds, and no node is free.
    """
    workload = machine(4, (3, 100), (1, 100), profiles={})
    every = {"checkpoint_period": 50, "checkpoint_cost": 10, "recovery_cost": 0}
    workload.profiles["100s"].update(every)
    result = run("h211", workload, fails(0, 5, 1000))
    (hold,) = result.ledger.holds
    assert (hold.job_id, hold.nodes, hold.since_us, hold.until_us) == (
        "w0!1", NodeSet.parse("1-2"), 5 * 10**6, 15 * 10**6,
    )  # fmt: skip
    window = (0, 15 * 10**6)
    platform = platform_time(result.ledger, 4, window)
    assert (platform.held, platform.downtime, platform.idle) == (20, 10, 0)
    assert platform.idle_share == 0
    at, free = free_steps(result.ledger, 4)
    assert free[at < window[1]].tolist() == [0] * int((at < window[1]).sum())


@pytest.mark.parametrize("policy", ["h211", "authors-h211"])
def test_a_held_node_that_fails_is_down_and_not_held(policy: str) -> None:
    """Three nodes are held from 5 s on, one of them fails at 8 s: 3 x 3 s and 2 x 7 s are held."""
    workload = machine(6, (4, 100), (2, 100), profiles={})
    every = {"checkpoint_period": 50, "checkpoint_cost": 10, "recovery_cost": 0}
    workload.profiles["100s"].update(every)
    events = sorted(fails(0, 5, 1000) + fails(1, 8, 1000), key=lambda event: event.at_us)
    result = run(policy, workload, events)
    platform = platform_time(result.ledger, 6, (0, 15 * 10**6))
    assert (platform.held, platform.downtime, platform.idle) == (23, 17, 0)
    assert platform.idle_share == 0


def test_the_work_of_a_job_that_is_given_up_is_wasted_by_failures() -> None:
    """The job is interrupted at 20 s and at 50 s, and only two attempts are allowed."""
    jobs = add_young_daly(machine(2, (2, 60)), n_nodes=2, mtbf_s=10, cost_s=5, recovery_s=0)
    events = [*fails(0, 20, 21), *fails(0, 50, 51)]
    result = simulate(jobs, preset("baseline"), machine_events=events, max_attempts=2)
    assert result.ledger.given_up == ["w0!1"]
    assert result.summary.platform.useful == 0
    assert result.summary.platform.waste_failure > 0
    assert result.summary.given_up == 1
