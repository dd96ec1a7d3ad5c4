# SPDX-License-Identifier: Apache-2.0
"""Planning on named nodes results in the plans of the slow oracle, for random events in any
order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import blocks
from tests.oracles.named import Plan
from tests.support.amount import few
from tests.support.named_plan import NamedPlan
from tests.support.plans import Waiting


def attempt(serial: int, size: int, duration: int) -> Attempt:
    name = f"w0!{serial}"
    return Attempt(name, name, serial, serial, 0, size, duration, 0, serial)


class Both:
    """The same events for the plan of the kernels and for the plan of the oracle."""

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes, self.now, self.serial = n_nodes, 0, 0
        self.queue = Waiting()
        self.plans = NamedPlan(n_nodes), Plan(n_nodes)
        self.running: list[Running] = []
        self.down: set[int] = set()

    def tell(self, fact: str, *arguments: object) -> None:
        for plan in self.plans:
            getattr(plan, fact)(*arguments)

    def ask(self, what: str, *arguments: object) -> None:
        """Plan with both, compare starts and nodes, and start the attempts that are due."""
        n, answers = len(self.queue), []
        for plan in self.plans:
            self.queue.start[:n] = -1
            getattr(plan, what)(self.queue, *arguments)
            nodes = [plan.nodes_at(position) for position in range(n)]
            answers.append(list(zip(self.queue.start[:n].tolist(), nodes, strict=True)))
        assert answers[0] == answers[1]
        due = [Running(a, self.now, answers[0][k][1]) for k, a in self.queue.due(self.now)]
        self.queue.book(due)
        for running in due:
            assert self.down.isdisjoint(running.nodes)
            assert all(set(running.nodes).isdisjoint(other.nodes) for other in self.running)
            self.tell("started", running, self.now + running.attempt.walltime_us)
            self.running.append(running)

    def advance(self) -> None:
        self.tell("advance", self.now)

    def arrive(self, size: int, duration: int) -> None:
        self.advance()
        self.serial += 1
        self.queue.add(attempt(self.serial, min(size, self.n_nodes), duration))
        self.ask("append", len(self.queue) - 1, len(self.queue))

    def wait(self, duration: int) -> None:
        """Advance the time, but not beyond the next planned end."""
        ends = [max(self.now, running.planned_end_us) for running in self.running]
        self.now = min([self.now + duration, *ends])
        self.advance()
        self.end([r for r in self.running if r.planned_end_us <= self.now])

    def overstay(self, duration: int) -> None:
        """Advance the time, so that attempts may run beyond their planned ends."""
        self.now += duration
        self.advance()
        self.ask("compress", len(self.queue))

    def finish(self, which: int) -> None:
        """End a running attempt, early or late."""
        self.advance()
        if self.running:
            self.end([self.running[which % len(self.running)]])

    def end(self, ended: list[Running]) -> None:
        for running in ended:
            self.running.remove(running)
            self.tell("ended", running)
        self.ask("compress", len(self.queue))

    def fail(self, node: int) -> None:
        """Fail a node, and end the attempt that runs on it."""
        self.advance()
        node %= self.n_nodes
        if node in self.down:
            return
        self.down.add(node)
        for running in [r for r in self.running if node in r.nodes]:
            self.running.remove(running)
            self.tell("ended", running)
        self.tell("failed", [node])
        self.ask("rebuild")

    def repair(self, which: int) -> None:
        self.advance()
        if self.down:
            node = sorted(self.down)[which % len(self.down)]
            self.down.remove(node)
            self.tell("rejuvenated", [node])
            self.ask("compress", len(self.queue))

    def rebuild(self) -> None:
        self.advance()
        self.ask("rebuild")

    def backfill(self, depth: int, first: bool) -> None:
        self.advance()
        self.ask("backfill", depth, first)
        self.rebuild()


MOVES = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 12), st.integers(1, 20)),
    st.tuples(st.just("arrive"), st.integers(1, 4), st.integers(1, 6)),
    st.tuples(st.sampled_from(["wait", "overstay"]), st.integers(1, 8)),
    st.tuples(st.sampled_from(["finish", "fail", "repair"]), st.integers(0, 100)),
    st.tuples(st.just("backfill"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("rebuild")),
)


@settings(max_examples=few(300))
@given(st.sampled_from([5, 12, 70]), st.lists(MOVES, max_size=50))
def test_any_history_gives_the_oracles_plan(n_nodes, moves) -> None:
    both = Both(n_nodes)
    for name, *arguments in moves:
        getattr(both, name)(*arguments)


def test_a_plan_grows_to_many_words_and_shrinks_again() -> None:
    """One-node jobs of different lengths divide a machine into as many blocks as it has nodes."""
    both = Both(150)
    for node in range(150):
        both.arrive(1, 1 + (37 * node) % 151)
    for size in (2, 151, 3, 70, 150, 1):
        both.arrive(size, 40)
    for which in range(0, 300, 7):
        both.finish(which)
    while both.running:
        both.wait(50)
    assert not both.queue.attempts
    both.arrive(150, 1)
    assert both.plans[0]._table.n[blocks.BLOCKS] < 64


def start(plan: NamedPlan, queue: Waiting) -> Running:
    """Start the first attempt of the queue at 0, with a planned end at 10."""
    ((_, first),) = queue.due(0)
    running = Running(first, 0, plan.nodes_at(0))
    queue.book([running])
    plan.started(running, 10)
    return running


def test_an_attempt_that_outlives_its_planned_end_keeps_its_nodes() -> None:
    plan, queue = NamedPlan(4), Waiting()
    queue.add(attempt(0, 3, 10))
    plan.append(queue, 0, 1)
    first = start(plan, queue)
    plan.advance(1)
    queue.add(attempt(1, 4, 5))
    plan.append(queue, 0, 1)
    assert queue.start[0] == 10
    plan.advance(10)
    plan.append(queue, 1, 1)
    assert queue.start[0] == 11
    plan.advance(12)
    plan.ended(first)
    plan.compress(queue, 1)
    assert queue.start[0] == 12


def test_a_node_that_comes_back_under_an_attempt_is_free_when_it_ends() -> None:
    plan, queue = NamedPlan(4), Waiting()
    queue.add(attempt(0, 3, 10))
    plan.append(queue, 0, 1)
    start(plan, queue)
    plan.advance(1)
    plan.failed([1, 3])
    plan.rejuvenated([1])
    queue.add(attempt(1, 3, 5))
    plan.rebuild(queue)
    assert (queue.start[0], plan.nodes_at(0)) == (10, NodeSet.parse("0-2"))


def test_an_attempt_without_walltime_blocks_its_nodes_for_good() -> None:
    plan, queue = NamedPlan(4), Waiting()
    queue.add(attempt(0, 3, FOREVER_US))
    queue.add(attempt(1, 2, 5))
    plan.append(queue, 0, 2)
    assert queue.start[0] == 0
    assert queue.start[1] >= 2**60


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_plan_holds_more_attempts_than_its_first_arrays(size: int) -> None:
    plan, queue = NamedPlan(8), Waiting()
    for serial in range(300):
        queue.add(attempt(serial, size, 10))
    plan.append(queue, 0, 300)
    at_once = 8 // size
    assert queue.start[:300].tolist() == [10 * (serial // at_once) for serial in range(300)]
    assert plan.nodes_at(1) == NodeSet.of(range(size * (1 % at_once), size * (1 % at_once + 1)))


# ---- blocks

N = 200
NODE_SETS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(1, 60)), max_size=5).map(
    lambda spans: NodeSet.from_intervals([(a, min(a + k, N) - 1) for a, k in spans])
)


def nodes_in(table: blocks.BlockTable, row: np.ndarray) -> NodeSet:
    out = np.empty((N, 2), dtype=np.int64)
    return NodeSet(out[: blocks.nodes_of(table, row, out)].copy())


@settings(max_examples=few(200))
@given(st.lists(NODE_SETS, min_size=1, max_size=20), st.lists(st.integers(0, N), max_size=150))
def test_splitting_and_merging_blocks_changes_no_row(node_sets, cuts) -> None:
    table = blocks.empty_table(slices=1, blocks=N, reservations=len(node_sets))
    table.n[:] = 1, 1, len(node_sets)
    table.first[:2] = 0, N
    for row, nodes in enumerate(node_sets):
        blocks.mark_nodes(table, nodes.intervals)
        table.held[row] = table.mark[0]
    for node in cuts:
        blocks.cut_before(table, node)
    assert [nodes_in(table, row) for row in table.held] == node_sets
    bounds = {0} | {int(b) for s in node_sets for a, z in s.intervals for b in (a, z + 1)} - {N}
    assert table.n[blocks.BLOCKS] == len(bounds | set(cuts) - {N})
    blocks.merge_blocks(table)
    assert [nodes_in(table, row) for row in table.held] == node_sets
    assert blocks.words_of(table.n[blocks.BLOCKS]) == blocks.words_of(len(bounds))
