# SPDX-License-Identifier: Apache-2.0
"""Batsched's presets start each job at the time and on the nodes of the real Batsched."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.campaign.batsched import VARIANTS, embedded, recorded
from rebat.contract import Policy
from rebat.core.files import names
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import Dialect, SessionOptions
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent
from rebat.policies.composition import Scheduler
from rebat.policies.placement.choosers import lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.placement.plans import Placement
from rebat.policies.planning.list_scheduling import MAINTENANCE
from rebat.policies.presets import preset
from rebat.results.compare.schedules import compare
from rebat.results.files.batsim_files import JobsFile, read_jobs
from rebat.runs.single import RunResult
from rebat.workloads.batsim_json import read_workload
from tests.oracles.named import ConservativeBf, EasyBf
from tests.support.amount import few
from tests.support.asked import simulate
from tests.support.planning import by_list
from tests.support.recordings import beside
from tests.support.scenarios import check_run, failures, flows, machine, workloads

pytestmark = pytest.mark.usefixtures("both_ways")

WORKLOADS = ["kth-sp2-2000-int", "kth-sp2-2000", "sdsc-blue-3000", "mira-2018-11"]
relaxed = settings(max_examples=few(100), suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", ["mira-like-june-2017", "synthetic-small"])
@pytest.mark.parametrize("policy", VARIANTS)
def test_equals_what_was_recorded_on_workloads_of_our_own(policy: str, name: str) -> None:
    check_equal(read_jobs(recorded()[name][policy]), names("workloads", ".json")[name], policy)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("policy", VARIANTS)
def test_equals_what_was_recorded_on_traces(policy: str, name: str) -> None:
    folder = beside("golden/batsched")
    theirs = read_jobs(folder / f"{name}.{VARIANTS[policy]}.csv.gz")
    check_equal(theirs, folder / f"{name}.json.gz", policy)


def check_equal(theirs: JobsFile, workload: Path, policy: str) -> None:
    """Check that every job has the same state, times and nodes."""
    result = compare(theirs, embedded(read_workload(workload), policy))
    assert len(result.keys) == len(theirs.records)
    apart = [result.keys[at] for at in result.differing]
    assert result.same(allocations=True), (
        f"{policy} on {workload.name}: of {len(result.keys)} jobs {result.other_nodes} have other "
        f"nodes and {len(apart)} another time or state: {apart[:3]}"
    )


class ChosenAgain(ChosenPlan):
    """A plan whose compression chooses the nodes of every reservation again, as Batsched does."""

    def _stays(self, before, place) -> bool:
        return False

    @classmethod
    def on(cls, machine, inside) -> ChosenAgain:
        return cls(machine, lowest, inside)


class Unnamed(msgspec.Struct):
    """A policy that is in no table, for one run with a strict session."""

    policy: Policy
    session: SessionOptions = SessionOptions()
    name: str = "unnamed"

    def make(self) -> Policy:
        return self.policy


def schedule(result: RunResult) -> dict[str, tuple[int, int, str]]:
    """Return the start, end and nodes of every attempt."""
    return {job.id: (job.start_us, job.end_us, str(job.nodes)) for job in result.jobs}


@pytest.mark.parametrize(
    ("policy", "rules"), [("batsched-conservative", ConservativeBf), ("batsched-easy", EasyBf)]
)
@relaxed
@given(workload=workloads(max_jobs=25))
def test_follows_batscheds_rules_to_the_letter(policy, rules, workload) -> None:
    expected = simulate(workload, Unnamed(rules(margin=5_000_000)))
    assert schedule(simulate(workload, preset(policy))) == schedule(expected)


@pytest.mark.parametrize(
    ("depth", "maintenance"),
    [(0, "rebuild"), (1, "rebuild"), (3, "rebuild"), *(("all", name) for name in MAINTENANCE)],
)
@relaxed
@given(
    workload=workloads(max_jobs=20),
    events=failures(),
    margin=st.sampled_from([0.0, 5.0]),
    twice=st.booleans(),
)
def test_named_planning_is_safe_under_failures_and_equals_the_oracle(
    depth, maintenance, workload, events, margin, twice
) -> None:
    results = []
    for placement in "named", Placement(lowest, ChosenAgain.on):
        planning = by_list(placement, depth=depth, maintenance=maintenance, margin=margin)
        options = SessionOptions(dialect=Dialect(passes="two" if twice else "one"))
        one = Unnamed(Scheduler(planning), options)
        results.append(simulate(workload, one, machine_events=events))
    check_run(results[0])
    assert len(results[0].rows) == len(workload.jobs)
    assert schedule(results[0]) == schedule(results[1])


@pytest.mark.parametrize("policy", VARIANTS)
@relaxed
@given(workload=workloads(), events=failures())
def test_every_job_ends_once_under_failures(policy, workload, events) -> None:
    result = simulate(workload, preset(policy), machine_events=events)
    check_run(result)
    assert len(result.rows) == len(workload.jobs)


@pytest.mark.parametrize(
    ("policy", "rejected"),
    [
        ("batsched-conservative", {"1", "3"}),
        ("batsched-easy", {"1", "3"}),
        ("batsched-fcfs", {"3"}),
    ],
)
def test_rejects_what_batsched_rejects(policy, rejected) -> None:
    workload = machine(4, (2, 10), (2, 10), (5, 10))
    endless, *others = workload.jobs
    endless = type(endless)(endless.id, endless.n_nodes, 0, None, endless.profile)
    workload = Workload("test", 4, (endless, *others), workload.profiles)
    result = simulate(workload, preset(policy))
    assert {row.job_id for row in result.rows if row.final_state == "REJECTED"} == rejected


def test_fcfs_lets_nobody_pass_the_head() -> None:
    result = simulate(machine(4, (2, 10), (4, 10), (1, 5)), preset("batsched-fcfs"))
    assert {job.id: job.start_us // 10**6 for job in result.jobs} == {
        "w0!1": 0, "w0!2": 10, "w0!3": 20,
    }  # fmt: skip


def test_a_failure_of_every_second_node_needs_many_blocks_at_a_time() -> None:
    """Job 1 runs on a node that stays up. Job 2 waits until the nodes are repaired."""
    odd = NodeSet.of(range(1, 200, 2))
    events = [MachineEvent(to_us(1), False, odd), MachineEvent(to_us(5), True, odd)]
    workload, policy = machine(200, (1, 10), (150, 50)), preset("batsched-conservative")
    result = simulate(workload, policy, machine_events=events, how="asked")
    check_run(result)
    assert flows(result) == {"1": 10, "2": 55}
