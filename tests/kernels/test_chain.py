# SPDX-License-Identifier: Apache-2.0
"""Long profiles: planning on chains results in the plans of the simple kernels and the oracle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.kernels import chain, counts, deep
from rebat.kernels.chain import Chain
from rebat.kernels.counts import NEVER
from tests.kernels.test_counts import MOVES, Both, attempt
from tests.support.amount import few
from tests.support.plans import CountedPlan, Waiting


class Profile:
    """A profile and a queue, planned by the kernels of one module."""

    def __init__(self, kernels, n_nodes: int, size, duration) -> None:
        self.kernels = kernels
        self.scratch = ()
        if kernels is deep:
            self.scratch = (np.zeros(chain.scratch_needed(8 * len(size) + 400), np.int64),)
        self.size, self.duration = size, duration
        self.start = np.full(len(size), NEVER)
        self.t, self.f = (np.zeros(8 * len(size) + 400, np.int64) for _ in range(2))
        self.f[0], self.n, self.opened = n_nodes, 1, 0

    def take(self, end: int, nodes: int) -> None:
        self.n = counts.change(self.t, self.f, self.n, self.t[0], end, -nodes)
        self.opened = max(self.opened, end) if nodes < 0 else self.opened

    def advance(self, now: int) -> None:
        self.n = counts.forget(self.t, self.f, self.n, now)

    def place(self, first: int, last: int) -> None:
        self.n = self.kernels.place(
            self.t, self.f, self.n, self.size, self.duration, self.start, first, last,
            *self.scratch,
        )  # fmt: skip

    def compress(self) -> None:
        self.n, self.opened = self.kernels.compress(
            self.t, self.f, self.n, self.size, self.duration, self.start, len(self.size),
            self.opened, *self.scratch,
        )  # fmt: skip

    def start_due(self) -> None:
        waits = self.start > self.t[0]
        self.size, self.duration, self.start = (
            np.ascontiguousarray(a[waits]) for a in (self.size, self.duration, self.start)
        )

    def state(self) -> list:
        n = self.n
        return [n, self.opened, self.start.tolist(), self.t[:n].tolist(), self.f[:n].tolist()]


def histories(seed: int, n_jobs: int, rounds: int):
    """Yield the profiles of both modules after each round of a random history."""
    rng = np.random.default_rng(seed)
    n_nodes, longest = int(rng.choice([4, 16, 100, 1000])), int(rng.choice([3, 20, 1000, 10**9]))
    size = rng.integers(1, n_nodes // int(rng.choice([1, 2, 4])) + 1, n_jobs)
    duration = rng.integers(1, longest + 1, n_jobs)
    duration[rng.random(n_jobs) < 0.01] = NEVER if rng.random() < 0.2 else 3 * longest
    both = [Profile(kernels, n_nodes, size, duration) for kernels in (counts, deep)]
    down = int(rng.integers(0, n_nodes // 2)) * (rng.random() < 0.4)
    ends = sorted(rng.integers(1, 3 * longest, 5).tolist())
    halves = n_jobs // 2
    for one in both:
        one.take(NEVER, down)
        for end in ends:
            one.take(end, int(one.f[: one.n].min()) // 3)
        one.place(0, halves)
        one.place(halves, n_jobs)
    yield both
    for _ in range(rounds):
        now = int(rng.integers(0, longest // 10 + 1))
        end = NEVER if rng.random() < 0.1 else int(rng.integers(1, 2 * longest))
        freed = int(rng.integers(1, n_nodes // 4 + 1))
        for one in both:
            one.start_due()
            at = int(one.start.min()) - 1 if len(one.start) else 0
            one.advance(max(int(one.t[0]), min(int(one.t[0]) + now, at)))
            one.take(max(end, int(one.t[0]) + 1), -freed)
            if len(one.start):
                one.compress()
        yield both


@pytest.mark.parametrize("n_jobs", [2, 3, 10, 40, 150, 600])
def test_chains_result_in_the_plain_plans_step_for_step(n_jobs: int) -> None:
    for seed in range(60):
        for plain, chained in histories(seed, n_jobs, rounds=6):
            assert plain.state() == chained.state(), seed


@settings(max_examples=few(300))
@given(st.lists(MOVES, max_size=60))
def test_any_history_planned_on_chains_gives_the_oracles_plan(moves) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deep, "DEEP", 0)
        both = Both()
        for name, *arguments in moves:
            getattr(both, name)(*arguments)


def lasting(steps: Chain, w: int) -> Iterator[tuple[int, int]]:
    """Yield the block of each measured step, and how long its window has lasted at its end."""
    k, begin = 0, steps.t[0]
    while k != steps.counts[chain.NEXT]:
        block, is_wide, k = steps.block[k], steps.f[k] >= steps.wide[w], steps.next[k]
        begin = begin if is_wide else steps.t[k]
        yield int(block), min(int(steps.t[k] - begin), steps.longest)


def check_bounds(steps: Chain) -> None:
    """Check that no bound is less than the length of a window, and the maxima of bounds."""
    n_widths, rows = len(steps.wide), int(steps.counts[chain.ROWS])
    bounds, most = (
        values[: rows * n_widths].reshape(rows, n_widths) for values in (steps.bounds, steps.most)
    )
    assert (most == np.maximum.accumulate(bounds)).all()
    for w in range(n_widths):
        for block, length in lasting(steps, w):
            assert bounds[block, w] >= length


@pytest.mark.parametrize("seed", range(20))
def test_no_window_is_longer_than_its_bound(monkeypatch, seed: int) -> None:
    """This holds before and after each search."""
    earlier = getattr(deep.earlier, "interpreted", deep.earlier)

    def checked(steps: Chain, *arguments) -> int:
        check_bounds(steps)
        found = earlier(steps, *arguments)
        check_bounds(steps)
        return found

    rng = np.random.default_rng(seed)
    size, duration = rng.integers(1, (60, 90), (80, 2)).T.copy()
    plan = Profile(deep, 100, size, duration)
    for end in rng.integers(1, 60, 8):
        plan.take(int(end), int(plan.f[: plan.n].min()) // 2)
    plan.place(0, len(size))
    for now in range(1, 40, 4):
        plan.start_due()
        plan.advance(now)
        plan.take(now + int(rng.integers(1, 30)), -int(rng.integers(1, 10)))
        if (plan.start > now).all():
            with monkeypatch.context() as patch:
                patch.setattr(deep, "earlier", checked)
                plan.compress()


def test_a_deep_queue_is_planned_on_chains_and_as_before(monkeypatch) -> None:
    """The plan itself chooses blocks, for the first fits of all jobs and for each later
    compression."""
    rng = np.random.default_rng(5)
    jobs = [attempt(i, *rng.integers(1, (40, 100)).tolist()) for i in range(deep.DEEP + 300)]

    def starts(pays: int) -> list[list[int]]:
        monkeypatch.setattr(deep, "DEEP", pays)
        plan, queue = CountedPlan(100), Waiting()
        for one in jobs:
            queue.add(one)
        plan.append(queue, 0, len(queue))
        found = []
        for now in range(0, 200, 2):
            plan.advance(now)
            due = [Running(one, now, NodeSet.of([])) for _, one in queue.due(now)]
            queue.book(due)
            for running in due:
                plan.started(running, now + running.attempt.walltime_us)
            for running in due[::2]:
                plan.ended(running)
            plan.compress(queue, len(queue))
            found.append(queue.start[: len(queue)].tolist())
        return found

    assert starts(deep.DEEP) == starts(10**9)
