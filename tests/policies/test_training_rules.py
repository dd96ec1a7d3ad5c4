# SPDX-License-Identifier: Apache-2.0
"""Rules of training clusters: exclusion of lemon nodes, and preemption after a grace time."""

from __future__ import annotations

import msgspec
import pytest

from rebat.core.errors import InputError
from rebat.core.traits import traits_of
from tests.session.test_hangs import story
from tests.support.scenarios import check_run, fails, machine, run


def drains(result) -> list[tuple]:
    """Return drains and returns to service as (time, back, nodes)."""
    return [(at / 1e6, back, str(nodes)) for at, back, nodes, _ in result.ledger.drain_events]


def test_a_node_is_excluded_after_its_third_hit() -> None:
    events = [*fails(0, 5, 6), *fails(0, 15, 16), *fails(0, 25, 26), *fails(0, 60, 61)]
    result = run(
        "easy:react=exclude,excluded_for=200,most_excluded=0.5", machine(2, (2, 100)), events
    )
    assert drains(result)[0] == (25, False, "0")
    assert story(result)[-1] == ("1#3", 225, 325, "completed", 100)
    check_run(result)


def test_an_excluded_node_returns() -> None:
    events = [*fails(0, 5, 6), *fails(0, 15, 16)]
    rule = "easy:react=exclude,hits=2,excluded_for=30,most_excluded=1"
    result = run(rule, machine(1, (1, 20)), events)
    assert drains(result) == [(15, False, "0"), (45, True, "0")]
    assert story(result)[-1] == ("1#2", 45, 65, "completed", 20)


def test_a_paused_job_continues_when_its_excluded_node_returns() -> None:
    """The return at 40 s is the last event. The job waits on its other node until then."""
    rule = "baseline:react=replacement+exclude,wait=hold,hits=1,excluded_for=30,most_excluded=1"
    result = run(rule, machine(2, (2, 20)), fails(0, 10, 15))
    assert drains(result)[-2:] == [(10, False, "0"), (40, True, "0")]
    assert story(result)[-1][1:4] == (40, 60, "completed")
    check_run(result)


def test_failures_of_idle_nodes_and_old_failures_do_not_count() -> None:
    idle = [*fails(1, 5, 6), *fails(1, 15, 16), *fails(1, 25, 26)]
    assert drains(run("easy:react=exclude", machine(20, (1, 100)), idle)) == []
    rare = [*fails(0, 5, 6), *fails(0, 50, 51), *fails(0, 95, 96)]
    seldom = "easy:react=exclude,within=60"
    assert drains(run(seldom, machine(20, (20, 500)), rare)) == []
    assert drains(run("easy:react=exclude,within=91", machine(20, (20, 500)), rare)) != []


def test_no_more_nodes_are_excluded_than_allowed() -> None:
    events = [*fails(0, 5, 6), *fails(1, 15, 16), *fails(2, 25, 26)]
    rule = "easy:react=exclude,hits=1,most_excluded=0.5,excluded_for=900"
    result = run(rule, machine(4, (2, 40)), events)
    assert [nodes for _, back, nodes in drains(result) if not back][:2] == ["0", "1"]
    assert len([nodes for _, back, nodes in drains(result) if not back]) == 2


PREEMPT = "easy:order=largest,react=preempt,period=1,grace=10"


def test_a_larger_job_preempts_smaller_ones_after_their_grace_time() -> None:
    result = run(PREEMPT, machine(4, (1, 60), (2, 60, 3), (4, 20, 5)))
    ends = {(name, end, cause) for name, _, end, cause, _ in story(result)}
    assert ("1", 13, "preempted") in ends
    assert ("2", 13, "preempted") in ends
    assert ("3", 33, "completed") in ends
    check_run(result)


def test_only_as_many_jobs_as_needed_are_preempted_the_smallest_first() -> None:
    result = run(PREEMPT, machine(4, (1, 60), (2, 60), (2, 20, 1)))
    causes = {name: cause for name, _, _, cause, _ in story(result)}
    assert causes["1"] == "preempted"  # one node is free: the smallest job has the other one
    assert causes["2"] == "completed"


def test_equal_and_larger_jobs_are_not_preempted() -> None:
    result = run(PREEMPT, machine(4, (3, 60), (2, 20, 1)))
    assert all(cause == "completed" for _, _, _, cause, _ in story(result))


def test_a_preemption_for_a_failed_job_is_of_second_order() -> None:
    jobs, events = machine(4, (3, 60), (1, 60)), fails(0, 20, 100)
    result = run(PREEMPT, jobs, events)
    (preempted,) = [r for r in result.ledger.attempts if r.cause == "preempted"]
    assert (preempted.why, preempted.end_us) == ("for a failed job", 21_000_000)


# ---- priority classes


def classed(workload, *classes: int):
    """Return the workload with these priority classes of its jobs."""
    jobs = (
        msgspec.structs.replace(job, extra={"priority_class": number})
        for job, number in zip(workload.jobs, classes, strict=True)
    )
    return msgspec.structs.replace(workload, jobs=tuple(jobs))


def test_the_order_priority_starts_the_highest_class_first() -> None:
    jobs = classed(machine(2, (2, 10), (2, 10, 1), (2, 10, 2), (2, 10, 3)), 0, 0, 2, 2)
    starts = {name: start for name, start, *_ in story(run("easy:order=priority", jobs))}
    assert starts == {"1": 0, "3": 10, "4": 20, "2": 30}
    plain = {name: start for name, start, *_ in story(run("easy", jobs))}
    assert plain == {"1": 0, "2": 10, "3": 20, "4": 30}


def test_a_failed_job_is_before_all_classes() -> None:
    jobs = classed(machine(2, (2, 10), (2, 10, 1)), 0, 5)
    result = run("easy:order=priority", jobs, fails(0, 5, 6))
    assert [row[:2] for row in story(result)] == [("1", 0), ("1#1", 6), ("2", 16)]


def test_a_higher_class_preempts_lower_ones_and_keeps_its_class() -> None:
    rule = "easy:order=priority,react=preempt,period=1,grace=10"
    jobs = classed(machine(4, (2, 60), (2, 60), (2, 20, 5)), 1, 0, 2)
    result = run(rule, jobs)
    rows = {name: (start, end, cause) for name, start, end, cause, _ in story(result)}
    assert rows["2"] == (0, 10, "preempted")  # the lowest class
    assert rows["3"] == (10, 30, "completed")
    assert rows["1"][2] == "completed"
    assert rows["2#1"] == (30, 90, "completed")
    assert {r.attempt.priority_class for r in result.ledger.attempts if r.attempt.number} == {0}
    check_run(result)


@pytest.mark.parametrize("value", [-1, 1.5, "high", True, 10**7])
def test_bad_classes(value) -> None:
    with pytest.raises(InputError, match="priority_class"):
        traits_of({"priority_class": value})
