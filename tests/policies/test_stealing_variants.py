# SPDX-License-Identifier: Apache-2.0
"""Each H_xyz on a small example that was computed by hand.

Six nodes; every job checkpoints with T = 10, C = 2, R = 1 (lengths include the checkpoints):

    job  size  submitted  length  walltime
    B    1     0          40      41          node 0
    F    3     1          30      31          nodes 1-3
    C    2     2          50      51          nodes 4-5

Node 1, which F uses, fails at t = 9 without repair, and no node is free. F has run for 8, less than
its first checkpoint (12), so that its resubmission runs for R + 30 = 31. Without a steal it waits
for B's end at 40: flows F 40 + 31 - 1 = 70, B 40, C 50.

V1 takes B (fewest nodes), V2 takes C (latest release). K1 agrees to both (1 < 3, 2 < 3). K2
refuses B (released before F) and agrees to C. K3 refuses both: without a steal F's walltime ends at
41 + 32 = 73, a flow of 72. With a steal, the flow until the end of the victim's walltime is longer:
for B with T1 41 + 42 = 83, with T2 43 + 33 = 76, with T3 44 + 30 = 74; for C (submitted at 2) with
T1 41 + 52 - 2 = 91, with T2 41 + 45 - 2 = 84, with T3 41 + 40 - 2 = 79.

    T1 from B: killed at 9, nothing kept: F 9-40, B (41 long) 40-81.      F 39, B 81, C 50
    T2 from B: checkpoint 9-11, 9 kept:   F 11-42, B (1 + 31) 42-74.      F 41, B 74, C 50
    T3 from B: checkpoint done at 12:     F 12-43, B (1 + 28) 43-72.      F 42, B 72, C 50
    T1 from C: killed at 9, nothing kept: F 9-40, C (51 long) 40-91.      F 39, B 40, C 89
    T2 from C: checkpoint 9-11, 7 kept:   F 11-42, C (1 + 43) 40-84.      F 41, B 40, C 82
    T3 from C: checkpoint done at 14:     F 14-45, C (1 + 38) 40-79.      F 44, B 40, C 77

(After a steal from C, one of its two nodes is free, so that C can start at 40, when B ends.)
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Cause
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.models.checkpoint import add_young_daly
from rebat.policies.presets import PRESETS
from tests.support.amount import few
from tests.support.scenarios import check_run, fails, failures, machine, run, workloads

pytestmark = pytest.mark.usefixtures("both_ways")


def jobs(*rows: tuple[str, int, float, float]) -> Workload:
    """Return jobs of (id, size, submission, length) with checkpoints; walltimes are a second
    longer."""
    profiles = {
        name: {
            "type": "delay", "delay": length, "checkpoint_period": 10, "checkpoint_cost": 2,
            "recovery_cost": 1, "Tfirst": 10, "Rfirst": 0,
        }
        for name, _, _, length in rows
    }  # fmt: skip
    made = [
        Job(name, size, to_us(submit), to_us(length + 1), name)
        for name, size, submit, length in rows
    ]
    return Workload("variants", 6, tuple(made), profiles)


EXAMPLE = jobs(("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50))
FAILURE = fails(1, 9, 1000)

NO_STEAL = {"F": 70, "B": 40, "C": 50}
FROM_B = {
    1: {"F": 39, "B": 81, "C": 50},
    2: {"F": 41, "B": 74, "C": 50},
    3: {"F": 42, "B": 72, "C": 50},
}
FROM_C = {
    1: {"F": 39, "B": 40, "C": 89},
    2: {"F": 41, "B": 40, "C": 82},
    3: {"F": 44, "B": 40, "C": 77},
}
EXPECTED = {
    f"h{x}{y}{z}": FROM[x] if agrees else NO_STEAL
    for x in (1, 2, 3)
    for y, FROM, criteria in ((1, FROM_B, (True, False, False)), (2, FROM_C, (True, True, False)))
    for z, agrees in enumerate(criteria, start=1)
}


def flows(result) -> dict[str, float]:
    return {row.job_id: row.flow for row in result.rows}


def stolen(result) -> int:
    """Return the number of attempts that were really interrupted for a steal."""
    return sum(record.cause == Cause.STOLEN for record in result.ledger.attempts)


@pytest.mark.parametrize("variant", EXPECTED)
def test_flows_are_those_worked_out_by_hand(variant: str) -> None:
    result = run("sfsj" if variant == "h111" else variant, EXAMPLE, FAILURE)
    assert flows(result) == EXPECTED[variant]
    check_run(result)


def test_baseline_waits() -> None:
    assert flows(run("baseline", EXAMPLE, FAILURE)) == NO_STEAL


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("h113", {"F": 39, "B": 73, "C": 50}),
        ("h213", {"F": 41, "B": 74, "C": 50}),
        ("h313", {"F": 50, "B": 72, "C": 50}),
    ],
)
def test_k3_agrees_when_the_victims_flow_stays_below_the_failed_ones(variant, expected) -> None:
    """B is submitted at 8 instead of 0.

    Without a steal F's walltime ends at 49 + 32 = 81, a flow of 80. With a steal, B's flow is less:
    with T1 41 + 42 - 8 = 75, with T2 43 + 41 - 8 = 76, with T3 52 + 30 - 8 = 74.
    T1: F 9-40, B (41 long) 40-81. T2: 1 kept at 11; F 11-42, B (1 + 39) 42-82.
    T3: B's checkpoint is done at 20; F 20-51, B (1 + 28) 51-80.
    """
    later = jobs(("F", 3, 1, 30), ("C", 2, 2, 50), ("B", 1, 8, 40))
    node = fails(0, 9, 1000)  # F came first and holds nodes 0-2
    assert flows(run(variant, later, node)) == expected


def test_held_nodes_are_not_backfilled() -> None:
    """D (one node, length 3) arrives at 10, while two nodes are held for F. It waits for F's
    end."""
    crowd = jobs(("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50), ("D", 1, 10, 3))
    assert flows(run("h211", crowd, FAILURE)) == {"F": 41, "B": 74, "C": 50, "D": 35}
    assert flows(run("baseline", crowd, FAILURE)) == {"F": 70, "B": 40, "C": 50, "D": 3}


class TestConsecutiveFailures:
    """Section 7.2.3 with T3 from B, where F waits from 9 until B's checkpoint at 12."""

    def test_on_the_victim_cancels_and_both_restart(self) -> None:
        """B fails at 11, before its checkpoint at 12, so it keeps nothing and its length is 41.
        Four nodes are up, and C holds two of them. F starts when C ends at 52, and ends at 83. B
        starts at 11."""
        result = run("h311", EXAMPLE, [*FAILURE, *fails(0, 11, 1000)])
        assert flows(result) == {"B": 11 + 41, "F": 52 + 31 - 1, "C": 50}
        assert stolen(result) == 0

    def test_on_a_held_node_cancels_if_the_victim_is_too_small(self) -> None:
        """F has lost two nodes, but B has only one, so B continues. F starts at 52 on B's node
        and C's two."""
        result = run("h311", EXAMPLE, [*FAILURE, *fails(2, 10, 1000)])
        assert flows(result) == {"B": 40, "F": 52 + 31 - 1, "C": 50}
        assert stolen(result) == 0

    def test_on_a_held_node_goes_on_if_the_victim_is_large_enough(self) -> None:
        """With V2 the victim is C (two nodes). F starts at 14 on its last node and C's two, and
        ends at 45. C (length 39) needs two of four nodes: one is free when B ends at 40, the
        other at F's end at 45."""
        result = run("h321", EXAMPLE, [*FAILURE, *fails(2, 10, 1000)])
        assert flows(result) == {"B": 40, "F": 44, "C": 45 + 39 - 2}
        assert stolen(result) == 1

    def test_a_victim_that_completes_first_lets_the_failed_job_go(self) -> None:
        """B has a length of 11, less than its first checkpoint. It ends at 11, and F starts
        then."""
        short = jobs(("B", 1, 0, 11), ("F", 3, 1, 30), ("C", 2, 2, 50))
        result = run("h311", short, FAILURE)
        assert flows(result) == {"B": 11, "F": 11 + 31 - 1, "C": 50}
        assert stolen(result) == 0

    def test_a_job_on_one_node_is_never_parked(self) -> None:
        """No node would be left to hold (section 7.2.1), so B is requeued as in Baseline."""
        for variant in ("h211", "h322"):
            node = fails(0, 9, 1000)
            assert flows(run(variant, EXAMPLE, node)) == flows(run("baseline", EXAMPLE, node))


STEALING = sorted(
    name for name, preset in PRESETS.items() if preset.point.values["react"] == "stealing"
)


@settings(max_examples=few(40))
@given(workload=workloads(max_jobs=10), events=failures(most=20), policy=st.sampled_from(STEALING))
def test_over_any_chain_of_failures_and_steals(workload, events, policy) -> None:
    """Saved and remaining work add up to the length of a job. With K1 a victim has fewer nodes
    than the failed job."""
    workload = add_young_daly(workload, n_nodes=10, mtbf_s=30, cost_s=1.0, recovery_s=1.0)
    lengths = {job.id: workload.profiles[job.profile]["delay"] for job in workload.jobs}
    result = run(f"{policy}:digits=all", workload, events)
    check_run(result)
    banked = dict.fromkeys(lengths, 0)
    for record in result.ledger.attempts:
        name = record.attempt.job_id[3:]
        assert record.useful_us >= 0
        banked[name] += record.useful_us
        if record.cause == Cause.COMPLETED:
            assert banked[name] == to_us(lengths[name])
        else:
            assert banked[name] <= to_us(lengths[name])
    if PRESETS[policy].point.values["criterion"] == "fewer-nodes":
        stolen = [r for r in result.ledger.attempts if r.cause == Cause.STOLEN]
        hit = [r for r in result.ledger.attempts if r.cause == Cause.NODE_FAILURE]
        for victim in stolen:
            assert any(victim.attempt.n_nodes < r.attempt.n_nodes for r in hit)


def test_the_programs_resubmissions_do_not_recover_when_nothing_was_kept() -> None:
    """In the table row of the failed job with t_run <= t_1, R_first stays 0: F's length is 30,
    not 31."""
    assert flows(run("sfsj:semantics=authors,passes=one", EXAMPLE, FAILURE))["F"] == 38


def test_release_of_a_resubmission_is_an_option() -> None:
    from rebat.core.attempts import Attempt
    from rebat.policies.reactions.victims import RELEASES

    again = Attempt("w0!1#1", "w0!1", 9, 1, 1, 4, 100, submit_us=5, queued_us=70)
    assert RELEASES["original"](again) == (5, 1)
    assert RELEASES["resubmission"](again) == (70, 9)


@pytest.mark.parametrize("variant", sorted(EXPECTED))
def test_two_jobs_that_fail_at_one_instant_never_share_a_victim(variant: str) -> None:
    """F and C each lose a node at 9. If both steal, their victims differ."""
    result = run(
        "sfsj" if variant == "h111" else variant,
        jobs(("B", 1, 0, 40), ("F", 2, 1, 30), ("C", 2, 2, 50), ("D", 1, 3, 60)),
        [*fails(1, 9, 1000), *fails(3, 9, 1000)],
    )
    check_run(result)
    stolen = [r.attempt.id for r in result.ledger.attempts if r.cause == Cause.STOLEN]
    assert len(stolen) == len(set(stolen))


@pytest.mark.parametrize(
    ("victim", "stolen"),
    [("fewest-nodes", "w0!1"), ("latest-release", "w0!3"), ("least-lost-work", "w0!3")],
)
def test_each_victim_rule_has_its_victim(victim: str, stolen: str) -> None:
    """When job 2 loses a node at 9, job 1 has run for 9 s on one node, and job 3 for 1 s on two
    nodes."""
    workload = machine(6, (1, 40), (3, 40), (2, 40, 8))
    result = run(f"sfsj:victim={victim}", workload, fails(1, 9, 1000))
    check_run(result)
    assert [r.attempt.id for r in result.ledger.attempts if r.cause == Cause.STOLEN] == [stolen]


def test_the_least_lost_work_counts_what_a_checkpoint_keeps() -> None:
    """Job 3 has more work since its start than job 1 has since its checkpoint."""
    workload = machine(6, (2, 40), (3, 40), (1, 40, 3))
    period = {"checkpoint_period": 7, "checkpoint_cost": 1, "recovery_cost": 1}
    first = workload.jobs[0]
    profiles = workload.profiles | {"kept": {"type": "delay", "delay": 40, **period}}
    jobs = (msgspec.structs.replace(first, profile="kept"), *workload.jobs[1:])
    workload = msgspec.structs.replace(workload, jobs=jobs, profiles=profiles)
    for victim, stolen in (("least-lost-work", "w0!1"), ("latest-release", "w0!3")):
        result = run(f"sfsj:victim={victim}", workload, fails(2, 9, 1000))
        assert [r.attempt.id for r in result.ledger.attempts if r.cause == Cause.STOLEN] == [stolen]
