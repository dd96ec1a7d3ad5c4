# SPDX-License-Identifier: Apache-2.0
"""Moldable and malleable jobs: SA, PRA, PWA and DBES (Prabhakaran, Neumann and Wolf 2018)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Cause
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.policies.malleable.managers import LENDERS, MANAGERS
from rebat.policies.malleable.members import Member
from rebat.policies.malleable.rules import dbes
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.run_csv import rows_csv
from rebat.runs.single import write_run
from tests.support.amount import few
from tests.support.flexible import (
    check_sizes_allowed,
    check_work,
    flexible,
    flexible_workloads,
    group_failures,
    malleable,
    moldable,
)
from tests.support.scenarios import check_run, fails, run

POLICIES = [
    "sa", "pra", "pwa", "dbes", "pwa:manager=egs", "pra:manager=egs",
    "sa:moldable=asked", "dbes:react=replacement", "pwa:react=replacement,solver=milp",
    "pra:react=replacement,spares=1", "sa:react=replacement,steps=idle+restart",
    "dbes:react=replacement+stealing,steps=local+remote+wait", "baseline:react=replacement",
    "baseline:react=replacement,wait=hold", "sa:react=replacement,wait=hold,expected=jobs",
    "pra:react=replacement,wait=hold,spares=1", "dbes:react=replacement,wait=hold",
    "dbes:react=replacement,wait=hold,steps=idle+wait",
    "sa:react=replacement,restarts=checkpoint,expected=jobs",
    "pwa:react=replacement,restarts=checkpoint,wait=hold",
]  # fmt: skip


def story(result) -> dict[str, tuple[int, float, float]]:
    """Return size, start and end (seconds) of every attempt that ran, by its id."""
    return {
        r.attempt.id.partition("!")[2]: (r.attempt.n_nodes, r.start_us / 1e6, r.end_us / 1e6)
        for r in result.ledger.attempts
        if r.start_us >= 0
    }


@pytest.mark.parametrize("policy", POLICIES)
class TestEveryFlexiblePolicy:
    @settings(max_examples=few(60))
    @given(workload=flexible_workloads(), events=group_failures(), perfect=st.booleans())
    def test_is_safe_when_groups_of_processors_fail(
        self, policy, workload, events, perfect
    ) -> None:
        """No processor is used twice or while it is down. Sizes match the shapes. Work is
        conserved."""
        prepared = add_perfect(workload) if perfect else workload
        result = run(policy, prepared, events)
        check_run(result)
        check_sizes_allowed(result, workload)
        check_work(result.ledger, workload)
        assert len(result.rows) == len(workload.jobs)
        states = {row.final_state for row in result.rows}
        assert "spares" in policy or states == {"COMPLETED_SUCCESSFULLY"}

    @settings(max_examples=few(15))
    @given(workload=flexible_workloads(), events=group_failures())
    def test_gives_the_same_bytes_again(self, policy, workload, events) -> None:
        first, second = run(policy, workload, events), run(policy, workload, events)
        assert [*jobs_csv(first.jobs)] == [*jobs_csv(second.jobs)]
        assert [*rows_csv(first.rows)] == [*rows_csv(second.rows)]


# ---- SA


def test_sa_takes_the_size_that_ends_first_on_the_plan() -> None:
    """Six of ten nodes are in use until 100. Job 2 would run from 101 to 151.5 on 8 nodes, but
    from 0 to 101 on its four nodes, which ends earlier."""
    workload = flexible(10, (6, 100, 0, None), (4, 100, 0, moldable(2, 8)))
    ran = story(run("sa", workload))
    assert ran == {"1": (6, 0, 100), "2": (4, 0, 100)}


def test_sa_waits_where_that_ends_first() -> None:
    """Job 2 would run from 0 to 202 on two nodes, but from 11 to 61.5 at the latest on eight
    nodes."""
    workload = flexible(10, (8, 10, 0, None), (4, 100, 0, moldable(2, 8)))
    ran = story(run("sa", workload))
    assert ran == {"1": (8, 0, 10), "2#1": (8, 10, 60)}


def test_a_molded_job_is_no_rejected_job() -> None:
    result = run("sa", flexible(10, (2, 100, 0, moldable(8))))
    (row,) = result.rows
    assert (row.size, row.final_state, row.attempts) == (2, "COMPLETED_SUCCESSFULLY", 1)
    assert result.summary.rejected == 0
    assert [r.cause for r in result.ledger.attempts] == [Cause.MOLDED, Cause.COMPLETED]
    assert [job.state for job in result.jobs] == ["REJECTED", "COMPLETED_SUCCESSFULLY"]


def test_what_fits_in_no_size_is_rejected() -> None:
    workload = flexible(4, (8, 10, 0, moldable(6)), (8, 10, 0, moldable(2)), (8, 10, 0, None))
    states = {row.job_id: row.final_state for row in run("sa", workload).rows}
    assert states == {"1": "REJECTED", "2": "COMPLETED_SUCCESSFULLY", "3": "REJECTED"}


# ---- malleable jobs


def test_a_malleable_job_starts_on_what_is_idle() -> None:
    assert story(run("dbes", flexible(8, (4, 80, 0, malleable(2, 6))))) == {
        "1#1": (6, 0, 53.333333)
    }


def test_under_sa_a_malleable_job_is_rigid() -> None:
    assert story(run("sa", flexible(8, (4, 80, 0, malleable(2, 6))))) == {"1": (4, 0, 80)}


@pytest.mark.parametrize("policy", ["pwa", "dbes"])
def test_a_job_shrinks_for_the_head_and_grows_again(policy: str) -> None:
    """Job 1 has all 8 nodes. Job 2 needs 4 of them from 10 to 20. Job 1 has 320 node-seconds of
    work: 80 until 10, 40 until 20, and the other 200 in 25 s."""
    workload = flexible(8, (4, 80, 0, malleable(2, 8)), (4, 10, 10, None))
    ran = story(run(policy, workload))
    assert ran == {"1#1": (8, 0, 10), "1#2": (4, 10, 20), "2": (4, 10, 20), "1#3": (8, 20, 45)}


def test_under_pra_a_running_job_goes_first() -> None:
    workload = flexible(8, (4, 80, 0, malleable(2, 8)), (4, 10, 10, None))
    assert story(run("pra", workload)) == {"1#1": (8, 0, 40), "2": (4, 40, 50)}


def test_pra_grows_what_runs_before_anything_starts() -> None:
    """At 10 job 1 ends and six nodes are free. Under PRA job 2 takes four of them, and job 3
    waits. Under PWA job 3 starts, and job 2 takes the other two nodes."""
    workload = flexible(8, (6, 10, 0, None), (4, 80, 0, malleable(2, 6)), (4, 10, 1, None))
    pra, pwa = story(run("pra", workload)), story(run("pwa", workload))
    assert pra["2#1"] == pwa["2#1"] == (2, 0, 10)
    assert (pra["2#2"], pra["3"]) == ((6, 10, 60), (4, 60, 70))
    assert (pwa["2#2"], pwa["3"], pwa["2#3"]) == ((4, 10, 20), (4, 10, 20), (6, 20, 63.333333))


def test_resizes_cost_what_they_are_said_to() -> None:
    """Each resize costs 3 s of recovery. Job 1 has 8 nodes until 10, then 4 nodes for 10 s, of
    which 7 s are work, then 8 nodes again."""
    workload = add_perfect(flexible(8, (4, 80, 0, malleable(2, 8)), (4, 10, 10, None)))
    ran = story(run("pwa:resize_cost=3", workload))
    assert ran["1#2"] == (4, 10, 20)
    assert ran["1#3"] == (8, 20, 20 + 3 + (320 - 80 - 28) / 8)


def test_a_failure_loses_what_a_resize_took_along() -> None:
    """Job 1 has no checkpoints. Its work on 8 nodes until 10 and on 4 nodes until 15 is lost.
    The same holds with a checkpoint every 100 s."""
    workload = flexible(8, (4, 80, 0, malleable(2, 8)), (4, 10, 10, None))
    result = run("pwa", workload, fails(0, 15, 1000))
    assert story(result)["1#5"] == (7, 20, 63.571429)  # 305 node-seconds are left
    assert result.rows[0].wasted_node_seconds == 100
    assert result.summary.platform.waste_failure == 100
    # The 404 s of eq. 1 contain 400 s of work, which are 1600 node-seconds. Of these, 15 are done
    # on 3 nodes from 55 to 61.
    workload = flexible(8, (4, 400, 0, malleable(2, 8)), (4, 10, 50, None))
    checkpointed = add_young_daly(
        workload, n_nodes=8, mtbf_s=2500, cost_s=1.0, recovery_s=1.0, rounding="ceil"
    )
    result = run("pwa", checkpointed, fails(0, 55, 1000))
    last = result.ledger.attempts[-1]
    work_s = (1600 - 5 * 3) / 7  # on 7 nodes, after 1 s of recovery on 3 nodes
    assert (last.end_us - last.start_us) / 1e6 == pytest.approx(work_s + 2, abs=1e-5)


def test_a_job_that_is_killed_and_goes_on_runs_for_just_its_time() -> None:
    """Check (h): a job of 123.456789 s is killed at 40 % and runs for exactly the rest."""
    workload = add_perfect(flexible(4, (4, 123.456789, 0, None)))
    result = run("dbes", workload, fails(0, 49.382716, 60))
    runs = [r.end_us - r.start_us for r in result.ledger.attempts]
    assert (len(runs), sum(runs)) == (2, 123_456_789)


# ---- managers


def members(*ranges: tuple[int, int, int]) -> list[Member]:
    """Return members of (size, min, max), the oldest first."""
    return [Member(None, None, size, low, high, 0) for size, low, high in ranges]


@pytest.mark.parametrize(
    ("manager", "grown", "shrunk"),
    [("fpsma", [5, 6, 2], [3, 1, 1]), ("egs", [5, 4, 4], [2, 2, 1])],
)
def test_managers_grow_and_shrink_as_buisson_and_others_say(manager, grown, shrunk) -> None:
    """Seven nodes are idle. FPSMA adds 2 to the oldest job, which then has its maximum, and 5 to
    the next. EGS adds 3, 2 and 2, but the oldest can take only 2, so another job gets the third.
    Then four nodes are requested from three jobs of 3 nodes."""
    able = members((3, 1, 5), (1, 1, 6), (2, 1, 9))
    assert MANAGERS[manager].grow(able, 7) == 0
    assert [member.size for member in able] == grown
    able = members((3, 1, 5), (3, 1, 6), (3, 1, 9))
    assert MANAGERS[manager].shrink(able, 4) == 0
    assert [member.size for member in able] == shrunk


@given(
    ranges=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), max_size=6),
    n=st.integers(0, 40),
    manager=st.sampled_from(sorted(MANAGERS)),
)
def test_managers_hand_out_all_they_can_and_nothing_else(ranges, n, manager) -> None:
    able = members(*((low + up, low, low + up + more) for low, up, more in ranges))
    sizes, room = sum(m.size for m in able), sum(m.room for m in able)
    left = MANAGERS[manager].grow(able, n)
    assert left == max(0, n - room)
    assert sum(m.size for m in able) == sizes + n - left
    extra = sum(m.extra for m in able)
    missing = MANAGERS[manager].shrink(able, n)
    assert missing == max(0, n - extra)
    assert all(m.low <= m.size <= m.high for m in able)


@pytest.mark.parametrize(
    ("order", "sizes"),
    [("earliest", [3, 1, 1]), ("latest", [1, 3, 1]), ("fewest", [1, 1, 3])],
)
def test_orders_of_lenders(order: str, sizes: list[int]) -> None:
    """Three jobs of 3 nodes grew at 9, 5 and 7 and had 0, 1 and 4 resizes. Four nodes are
    requested."""
    able = members((3, 1, 9), (3, 1, 9), (3, 1, 9))
    for member, expanded_us, n_resizes in zip(able, (9, 5, 7), (0, 1, 4), strict=True):
        member.expanded_us, member.n_resizes = expanded_us, n_resizes
    shrink = LENDERS[order]
    assert shrink is not None and shrink(able, 4) == 0
    assert [member.size for member in able] == sizes
    assert shrink(able, 9) == 7


def test_dbes_takes_back_the_even_share_first() -> None:
    """The first job has 4 nodes above its minimum, then both jobs receive 1 in an even
    distribution. To return three nodes, DBES first takes the evenly distributed nodes, then one
    of the first job."""
    able = members((6, 2, 9), (2, 2, 9))
    for member in able:
        member.take(1, even=True)
    dbes(MANAGERS["fpsma"]).shrink(able, 3)
    assert [(member.size, member.even) for member in able] == [(5, 0), (2, 0)]


def test_sizes_are_told_where_they_changed(tmp_path) -> None:
    resized = run("pwa", flexible(8, (4, 80, 0, malleable(2, 8)), (4, 10, 10, None)))
    write_run(tmp_path / "resized", resized, {})
    told = (tmp_path / "resized/rebat_sizes.csv").read_text().splitlines()
    assert told == ["job_id,size,node_seconds,resizes", "1,4,320.000000,2", "2,4,40.000000,0"]
    write_run(tmp_path / "rigid", run("sa", flexible(8, (4, 80, 0, None))), {})
    assert not (tmp_path / "rigid/rebat_sizes.csv").exists()
