# SPDX-License-Identifier: Apache-2.0
"""Stops, moves, waits and drains in special cases: no job is lost or waits forever."""

from __future__ import annotations

import pytest

from rebat.contract import (
    Drain,
    Move,
    Policy,
    Reject,
    Release,
    Requeue,
    Start,
    Stop,
    Undrain,
    Wait,
    Wake,
    When,
)
from rebat.core.attempts import Cause
from rebat.core.errors import PolicyError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.policies.composition import Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.placement.boxes import BoxChooser, Site
from rebat.policies.placement.torus import boxed
from rebat.policies.presets import preset
from tests.support.flexible import flexible, malleable, moldable
from tests.support.planning import by_list
from tests.support.scenarios import Custom, check_run, fails, machine
from tests.support.scenarios import simulate as simulate_custom


class At:
    """A reaction that makes given proposals at given times."""

    def __init__(self, **script) -> None:
        self.script = {int(date[1:]): proposals for date, proposals in script.items()}
        self.asked = False

    def react(self, view, news):
        if not self.asked:
            self.asked = True
            yield from (Wake(to_us(date), str(date)) for date in self.script)
        for tag in news.woken:
            yield from self.script[int(tag)]


def play(workload, events=(), placement="any", **script):
    """Run conservative backfilling with scripted reactions; return the times of each attempt."""
    policy = Scheduler(by_list(placement), [At(**script)])
    result = simulate_custom(workload, Custom(policy), machine_events=events)
    check_run(result)
    return {r.attempt.id: (r.start_us / 1e6, r.end_us / 1e6) for r in result.ledger.attempts}


def stop(name: str, then) -> Stop:
    return Stop(f"w0!{name}", Cause.PREEMPTED, then=then)


def test_a_wait_without_a_date_asks_for_no_call_at_the_end_of_time() -> None:
    ran = play(machine(4, (2, 10)), _3=[stop("1", Wait())], _8=[Release("w0!1")])
    assert ran == {"w0!1": (0, 3), "w0!1#1": (8, 18)}


def test_what_a_reaction_rejects_leaves_the_plan() -> None:
    workload = machine(4, (4, 20), (4, 20), (2, 5))
    ran = play(workload, _5=[Reject("w0!2", "no more")])
    assert ran["w0!3"] == (20, 25)


def test_a_drained_node_under_a_hold_is_lost_once() -> None:
    workload = machine(4, (2, 10), (2, 5, 6))
    wait = stop("1", Wait(until_us=to_us(30)))
    ran = play(workload, _3=[wait], _4=[Drain(NodeSet.parse("0"))], _40=[Undrain(NodeSet.of([0]))])
    assert ran["w0!2"] == (6, 11)


def test_nodes_that_a_stopped_job_gives_up_wait_for_the_move_that_wants_them() -> None:
    """The queued job 3 would fit on these nodes, but job 1 moves there."""
    workload = machine(4, (2, 10), (2, 10), (2, 5, 1))
    moves = [stop("2", Requeue(1)), stop("1", Move(NodeSet.parse("2-3")))]
    ran = play(workload, _4=moves)
    assert ran["w0!1#1"] == (4, 14)


def test_nobody_moves_to_nodes_that_stay_held() -> None:
    moves = [stop("2", Wait(until_us=to_us(20))), stop("1", Move(NodeSet.parse("2-3")))]
    with pytest.raises(PolicyError, match="cannot move: node 2 is used or held by another job"):
        play(machine(4, (2, 10), (2, 10)), _4=moves)


class Plans(Policy):
    """A policy that starts jobs from a given time on. When a job ends, it undrains drained
    nodes."""

    def __init__(self, first_s: int = 0) -> None:
        self.first_us = to_us(first_s)

    def react(self, view, news):
        if view.now_us == 0 and news.arrived:
            yield Drain(NodeSet.parse("2-3"))
            if self.first_us:
                yield Wake(self.first_us)

    def plan(self, view, changes):
        if changes.ended and view.machine.drained.any():
            yield Undrain(NodeSet.parse("2-3"))
            return
        free = view.n_free
        for attempt in view.queue.values() if view.now_us >= self.first_us else ():
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield Start(attempt.id)


@pytest.mark.parametrize("first_s", [0, 5])
def test_what_a_plan_changes_is_planned_on_and_a_wake_asks_for_a_plan(first_s: int) -> None:
    result = simulate_custom(machine(4, (2, 10), (4, 10)), Custom(Plans(first_s)))
    starts = {r.attempt.id: r.start_us / 1e6 for r in result.ledger.attempts}
    assert starts == {"w0!1": first_s, "w0!2": first_s + 10}


def test_a_profile_that_cannot_be_shortened_keeps_its_walltime() -> None:
    """The job cannot use its checkpoints. It starts over with its entire walltime."""
    profile = {"type": "parallel_homogeneous", "cpu": 2e10, "com": 0, "checkpoint_period": 5}
    workload = Workload("flops", 2, (Job("1", 1, 0, to_us(22), "p"),), {"p": profile})
    result = simulate_custom(workload, preset("baseline"), machine_events=fails(0, 15, 90))
    ends = [(r.cause, r.useful_us, r.end_us / 1e6) for r in result.ledger.attempts]
    assert ends == [(Cause.NODE_FAILURE, 0, 15), (Cause.COMPLETED, to_us(20), 35)]


def test_stealing_does_not_count_on_drained_nodes() -> None:
    """One of job 1's two nodes is drained, the other fails. The node of job 2 would not be
    enough."""
    policy = Scheduler(
        by_list(), [At(_2=[Drain(NodeSet.of([0]))], _90=[Undrain(NodeSet.of([0]))]),
                           preset("sfsj").make()._reactions[0]],
    )  # fmt: skip
    result = simulate_custom(
        machine(3, (2, 20), (1, 20)), Custom(policy), machine_events=fails(1, 5, 80)
    )
    assert [r.attempt.id for r in result.ledger.attempts if r.cause == Cause.STOLEN] == []


def test_a_moldable_job_goes_back_to_the_size_it_asked_for() -> None:
    shape = {"shape": {"kind": "moldable", "sizes": [4]}}
    profile = {"type": "delay", "delay": 40}
    workload = Workload("m", 4, (Job("1", 2, 0, to_us(99), "p", shape),), {"p": profile})
    grow = stop("1", Move(NodeSet.parse("0-3")))
    back = Stop("w0!1#1", Cause.MOVED, then=Move(NodeSet.parse("0-1")))
    ran = play(workload, _2=[grow], _4=[back])
    assert ran == {"w0!1": (0, 2), "w0!1#1": (2, 4), "w0!1#2": (4, 44)}


@pytest.mark.parametrize(
    "then", [Move("0-1"), Wait(until_us="9"), Requeue(priority="high")], ids=repr
)
def test_a_guarded_policy_is_told_what_is_wrong_with_what_comes_then(then) -> None:
    class Wrong(Policy):
        def react(self, view, news):
            return [stop("1", then)]

    with pytest.raises(PolicyError, match=r"Wrong\.react at 0 s: proposed a "):
        list(Guarded(Wrong(), "Wrong", []).react(type("V", (), {"now_us": 0}), None))


@pytest.mark.parametrize("placement", ["any", "named"])
def test_a_moved_attempt_is_planned_with_the_margin_as_one_that_was_started(placement) -> None:
    """Job 1 starts over at 3 and ends at 13. With the margin it is planned until 18, when job 2
    starts. Job 3 lasts 8 s, or 13 s with the margin. If it starts at 4, it ends before 18, but
    not before 13."""
    workload = machine(4, (2, 10), (4, 10, 1), (2, 8, 4))
    reaction = At(_3=[stop("1", Move(NodeSet.parse("2-3")))])
    planning = by_list(placement, margin=5.0)
    result = simulate_custom(workload, Custom(Scheduler(planning, [reaction])))
    check_run(result)
    starts = {r.attempt.id: r.start_us / 1e6 for r in result.ledger.attempts}
    assert (starts["w0!1#1"], starts["w0!3"]) == (3, 4)


def resized(delay_s: float, walltime_s: float, nodes: str, at_s: int, **profile) -> list[tuple]:
    """Return (size, length, walltime, cause) of each attempt of one malleable job of 4 nodes."""
    shape = {"shape": {"kind": "malleable", "min": 1, "max": 8}}
    content = {"type": "delay", "delay": delay_s, **profile}
    workload = Workload("m", 8, (Job("1", 4, 0, to_us(walltime_s), "p", shape),), {"p": content})
    policy = Scheduler(by_list(), [At(**{f"_{at_s}": [stop("1", Move(NodeSet.parse(nodes)))]})])
    result = simulate_custom(workload, Custom(policy))
    return [
        (r.attempt.n_nodes, (r.end_us - r.start_us) / 1e6, r.attempt.walltime_us / 1e6, r.cause)
        for r in result.ledger.attempts
    ]


CHECKPOINTS = {"checkpoint_period": 10, "checkpoint_cost": 1, "recovery_cost": 2}


@pytest.mark.parametrize(
    ("nodes", "length", "walltime"),
    [
        # 25 s of work take 25 + 3 x 1 (equation 1). After 12 s, 10 s are saved: 15 s of the length
        # are left, and 30 s of the walltime (40 - 10). 2 nodes take twice the time: the length is
        # 2 + 30 + 3 x 1, and the walltime 2 + 60 + 6 x 1.
        ("0-1", 35, 68),
        # 8 nodes take half the time: 2 + 7.5 + 1, and 2 + 15 + 2 x 1.
        ("0-7", 10.5, 19),
    ],
)
def test_only_work_is_scaled_when_a_job_is_resized(nodes, length, walltime) -> None:
    first, second = resized(28, 44, nodes, 12, **CHECKPOINTS)
    assert first == (4, 12, 44, Cause.PREEMPTED)
    assert second == (len(NodeSet.parse(nodes)), length, walltime, Cause.COMPLETED)


def test_a_resized_job_whose_walltime_was_long_enough_is_not_cut() -> None:
    """Length and walltime end within the same checkpoint: both contain 10 s of work."""
    _, second = resized(11.2, 11.7, "0-7", 5, **CHECKPOINTS)
    assert second == (8, 8, 8.000001, Cause.COMPLETED)


def test_nodes_drained_before_a_stop_count_as_lost_as_those_that_failed() -> None:
    seen = []

    class Watching(At):
        def react(self, view, news):
            seen.extend((job.n_held, job.n_lost) for job in view.waiting.values())
            yield from super().react(view, news)

    script = Watching(_2=[Drain(NodeSet.of([0]))], _3=[stop("1", Wait(until_us=to_us(9)))], _6=[])
    policy = Scheduler(by_list(), [script])
    result = simulate_custom(machine(4, (3, 5)), Custom(policy), machine_events=fails(1, 5, 7))
    check_run(result)
    assert [*dict.fromkeys(seen)] == [(2, 1), (1, 2)]


@pytest.mark.parametrize("placement", ["any", "named"])
def test_what_a_reaction_starts_on_nodes_just_freed_is_not_planned_over(placement) -> None:
    """Job 1 ends long before its walltime. A reaction then starts job 3 before job 2, which is
    next."""

    class Jumps(At):
        def react(self, view, news):
            return (
                [Start("w0!3", NodeSet.parse("0-1"))] if news.ended and "w0!3" in view.queue else []
            )

    policy = Scheduler(by_list(placement), [Jumps()])
    result = simulate_custom(machine(3, (2, 10, 0, 99), (2, 5), (2, 5, 1)), Custom(policy))
    check_run(result)
    ran = {r.attempt.id: r.start_us / 1e6 for r in result.ledger.attempts}
    assert ran == {"w0!1": 0, "w0!3": 10, "w0!2": 15}


def test_nodes_claimed_for_the_move_of_what_has_ended_since_are_free_for_others() -> None:
    """Job 1 is to move to node 3 after a checkpoint, but ends before. Then job 2 moves there."""
    checkpoints = {"checkpoint_period": 8, "checkpoint_cost": 5, "recovery_cost": 0}
    workload = machine(4, (1, 10), (2, 30), profiles={})
    workload.profiles["10s"].update(checkpoints)

    class Follows(At):
        def react(self, view, news):
            yield from super().react(view, news)
            if news.ended and "w0!2" in view.running:
                assert not view.scheduled
                yield stop("2", Move(NodeSet.parse("0 3")))

    later = Stop("w0!1", Cause.MOVED, When.CHECKPOINT, Move(NodeSet.parse("3")))
    policy = Scheduler(by_list(), [Follows(_7=[later])])
    result = simulate_custom(workload, Custom(policy))
    check_run(result)
    ran = {r.attempt.id: (r.start_us / 1e6, str(r.nodes)) for r in result.ledger.attempts}
    assert ran == {"w0!1": (0, "0"), "w0!2": (0, "1-2"), "w0!2#1": (10, "0 3")}


def test_a_job_rejected_after_having_run_has_no_flow() -> None:
    script = At(_3=[stop("1", Requeue(1)), Drain(NodeSet.of([0]))], _4=[Reject("w0!1#1", "enough")])
    policy = Scheduler(by_list(), [script])
    result = simulate_custom(machine(1, (1, 10)), Custom(policy))
    (row,) = result.rows
    assert (row.final_state, row.attempts, row.first_start) == ("REJECTED", 1, 0)
    assert (row.finish_time, row.waiting_time, row.flow) == (None, None, None)
    assert result.summary.finished == 0


def test_a_node_that_comes_back_and_is_moved_to_at_once_is_counted_once() -> None:
    """Node 5 is down from 5 to 10. Job 1 moves there at 10, so four nodes are free."""
    workload = machine(6, (2, 20), (4, 10, 11))
    ran = play(workload, fails(5, 5, 10), _10=[stop("1", Move(NodeSet.of([0, 5])))])
    assert ran == {"w0!1": (0, 10), "w0!1#1": (10, 30), "w0!2": (11, 21)}


class DrainsAgain(At):
    """A reaction that drains a node again in the message that confirms the last stop."""

    def react(self, view, news):
        yield from super().react(view, news)
        if view.now_us == to_us(10) and not news.woken:
            yield Drain(NodeSet.of([5]))


@pytest.mark.parametrize("placement", ["any", "named", boxed(BoxChooser(Site("6")))])
def test_a_node_that_is_drained_again_under_what_moved_there_is_lost_once(placement) -> None:
    """Node 5 is drained from 2 on, except for an instant at 10, when job 1 moves there."""
    spare = NodeSet.of([5])
    there = [Undrain(spare), stop("1", Move(NodeSet.of([0, 5])))]
    script = DrainsAgain(_2=[Drain(spare)], _10=there, _40=[Undrain(spare)])
    workload = machine(6, (2, 20), (4, 10, 11), (6, 5, 40))
    result = simulate_custom(workload, Custom(Scheduler(by_list(placement), [script])))
    check_run(result)
    starts = {r.attempt.id: r.start_us / 1e6 for r in result.ledger.attempts}
    assert starts == {"w0!1": 0, "w0!1#1": 10, "w0!2": 11, "w0!3": 40}


class PlannedWalltimes(Policy):
    """A policy that resubmits jobs on three nodes and stores the walltimes for this size."""

    def __init__(self) -> None:
        self.said: dict[str, int] = {}

    def plan(self, view, changes):
        for attempt in view.queue.values():
            if view.n_free >= 3:
                self.said[attempt.job_id] = view.walltime_on_us(attempt.id, 3)
                yield Start(attempt.id, n_nodes=3 if attempt.number else None)


@pytest.mark.parametrize("extra", [malleable(1, 6), moldable(2, 3)])
def test_a_job_that_starts_in_another_size_has_the_walltime_that_was_told(extra) -> None:
    """A job that continues pays the resize cost. A job that starts over pays nothing."""
    policy = PlannedWalltimes()
    script = At(_5=[stop("1", Requeue(1))])
    workload = flexible(6, (2, 60, 0, extra))
    session = SessionOptions(resize_cost="7")
    result = simulate_custom(workload, Custom(Scheduler(policy, [script]), session))
    check_run(result)
    again = [r.attempt for r in result.ledger.attempts if r.start_us == to_us(5)]
    assert [attempt.walltime_us for attempt in again] == [policy.said["w0!1"]]


def test_work_in_an_image_is_not_at_risk_any_more() -> None:
    """Job 1 is resized at 4, when it has no checkpoint. It is checkpointed at 6 and fails at 10.
    It continues from the image of 6, with an overhead at each restart from an image."""
    grow = Stop("w0!1", Cause.MOVED, When.RESIZE, Move(NodeSet.parse("0-3")))
    image = Stop("w0!1#1", Cause.MOVED, When.IMAGE, Move(NodeSet.parse("2-5")))
    policy = Scheduler(by_list(), [At(_4=[grow], _6=[image])])
    workload = flexible(6, (2, 20, 0, malleable(1, 6)))
    custom = Custom(policy, SessionOptions(migration_cost="2"))
    result = simulate_custom(workload, custom, machine_events=fails(5, 10, 11))
    check_run(result)
    done = [(r.start_us / 1e6, r.end_us / 1e6, r.useful_us / 1e6) for r in result.ledger.attempts]
    # Of 40 node-seconds, 8 are done until 4 and 8 more until 6. Four nodes do 8 from 8 to 10, which
    # are lost.
    assert done == [(0, 4, 4), (4, 6, 2), (6, 10, 0), (10, 18, 6)]
    assert result.summary.platform.waste_failure == 2 * 4
    assert result.summary.platform.recovery == 2 * 4 + 2 * 4
    assert all(record.lost_us == 0 for record in result.ledger.attempts)
