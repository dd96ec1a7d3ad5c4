# SPDX-License-Identifier: Apache-2.0
"""Planning on counts results in the plans of the slow oracle, for random events in any order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from tests.oracles.counts import Plan
from tests.support.amount import few
from tests.support.plans import CountedPlan, Waiting

NODES = 12


def attempt(serial: int, size: int, duration: int) -> Attempt:
    name = f"w0!{serial}"
    return Attempt(name, name, serial, serial, 0, size, duration, 0, serial)


class Both:
    """The same events for the plan of the kernels and for the plan of the oracle."""

    def __init__(self) -> None:
        self.now, self.serial = 0, 0
        self.plan, self.queue = CountedPlan(NODES), Waiting()
        self.oracle = Plan(NODES)
        self.running: list[Running] = []
        self.down = 0

    def arrive(self, size: int, duration: int) -> None:
        self.serial += 1
        self.queue.add(attempt(self.serial, size, duration))
        self.plan.append(self.queue, len(self.queue) - 1, len(self.queue))
        self.oracle.queue.append([size, duration, FOREVER_US])
        self.oracle.place(self.now, len(self.oracle.queue) - 1)
        self.settle()

    def settle(self) -> None:
        """Compare both plans, then start the attempts that are due."""
        n = len(self.queue)
        assert self.queue.start[:n].tolist() == [start for _, _, start in self.oracle.queue]
        due = [Running(one, self.now, NodeSet.parse("0")) for _, one in self.queue.due(self.now)]
        self.queue.book(due)
        for running in due:
            end = self.now + running.attempt.walltime_us
            self.plan.started(running, end)
            self.running.append(running)
            self.oracle.running.append((self.now, end, running.attempt.n_nodes))
        self.oracle.queue = [entry for entry in self.oracle.queue if entry[2] > self.now]

    def wait(self, duration: int) -> None:
        """Advance the time, but not beyond the next planned end."""
        ends = [r.planned_end_us for r in self.running]
        self.now = min([self.now + duration, *ends])
        self.plan.advance(self.now)
        self.end([r for r in self.running if r.planned_end_us == self.now])

    def finish(self, which: int) -> None:
        """End a running attempt early."""
        if self.running:
            self.end([self.running[which % len(self.running)]])

    def end(self, running: list[Running]) -> None:
        """End attempts, and compress both plans."""
        for one in running:
            self.running.remove(one)
            self.plan.ended(one)
            self.oracle.running.remove((one.start_us, one.planned_end_us, one.attempt.n_nodes))
        if running:
            self.compress()

    def compress(self) -> None:
        self.plan.compress(self.queue, len(self.queue))
        self.oracle.compress(self.now)
        self.settle()

    def fail(self) -> None:
        """Fail an idle node, and rebuild both plans."""
        busy = sum(size for _, _, size in self.oracle.running)
        if busy < NODES:
            self.down += 1
            self.plan.failed([0])
            self.oracle.running.append((self.now, FOREVER_US, 1))
            self.rebuild()

    def repair(self) -> None:
        dead = [r for r in self.oracle.running if r[1] == FOREVER_US]
        if dead:
            self.plan.rejuvenated([0])
            self.oracle.running.remove(dead[0])
            self.compress()

    def rebuild(self) -> None:
        self.plan.rebuild(self.queue)
        self.oracle.rebuild(self.now)
        self.settle()


MOVES = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, NODES), st.integers(1, 20)),
    st.tuples(st.just("arrive"), st.integers(1, 4), st.integers(1, 6)),
    st.tuples(st.just("wait"), st.integers(1, 8)),
    st.tuples(st.just("finish"), st.integers(0, 10)),
    st.tuples(st.sampled_from(["fail", "repair", "rebuild"])),
)


@settings(max_examples=few(400))
@given(st.lists(MOVES, max_size=60))
def test_any_history_gives_the_oracles_plan(moves) -> None:
    both = Both()
    for name, *arguments in moves:
        getattr(both, name)(*arguments)


@settings(max_examples=few(300))
@given(
    st.lists(st.tuples(st.integers(1, NODES), st.integers(1, 20)), max_size=6),
    st.lists(st.tuples(st.integers(1, NODES), st.integers(1, 20)), min_size=1, max_size=12),
    st.integers(0, 4),
    st.booleans(),
)
def test_backfilling_to_any_depth_equals_the_oracle(running, queued, depth, first) -> None:
    plan, queue, oracle = CountedPlan(NODES), Waiting(), Plan(NODES)
    free = NODES
    for serial, (size, duration) in enumerate(running):
        if size <= free:
            free -= size
            plan.started(
                Running(attempt(1000 + serial, size, duration), 0, NodeSet.of([])), duration
            )
            oracle.running.append((0, duration, size))
    for serial, (size, duration) in enumerate(queued):
        queue.add(attempt(serial, size, duration))
        oracle.queue.append([size, duration, FOREVER_US])
    plan.backfill(queue, depth, first)
    oracle.backfill(0, depth, first)
    assert queue.start[: len(queued)].tolist() == [start for _, _, start in oracle.queue]


def test_an_attempt_without_walltime_blocks_its_nodes_for_good() -> None:
    plan, queue = CountedPlan(4), Waiting()
    queue.add(attempt(0, 3, FOREVER_US))
    queue.add(attempt(1, 2, 5))
    plan.append(queue, 0, 2)
    assert queue.start[0] == 0
    assert queue.start[1] >= 2**60


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_plan_holds_more_attempts_than_its_first_arrays(size: int) -> None:
    plan, queue = CountedPlan(8), Waiting()
    for serial in range(700):
        queue.add(attempt(serial, size, 10))
    plan.append(queue, 0, 700)
    at_once = 8 // size
    assert queue.start[:700].tolist() == [10 * (serial // at_once) for serial in range(700)]
