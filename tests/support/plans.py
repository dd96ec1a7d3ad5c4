# SPDX-License-Identifier: Apache-2.0
"""Drivers of the kernels of plans, for tests: a queue as sorted arrays, and the attempts that run.

`rebat.rules.plan` drives the same kernels over the tables of a simulation.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from rebat.core.attempts import Attempt, Running
from rebat.core.units import FOREVER_US
from rebat.kernels import counts, deep
from rebat.kernels.chain import scratch_needed
from rebat.kernels.counts import NEVER
from rebat.policies.queue_order import fcfs, planned_us

T = TypeVar("T")


class Waiting:
    """The queued attempts, first come, first served, as arrays for the kernels."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.size, self.duration, self.start, self._positions = np.zeros((4, 4096), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.attempts)

    def add(self, attempt: Attempt) -> None:
        """Insert an attempt."""
        at, n = bisect_right(self.attempts, fcfs(attempt), key=fcfs), len(self)
        self.attempts.insert(at, attempt)
        for array in (self.size, self.duration, self.start):
            array[at + 1 : n + 1] = array[at:n].copy()
        self.size[at], self.duration[at] = attempt.n_nodes, planned_us(attempt.walltime_us)
        self.start[at] = NEVER

    def due(self, now_us: int) -> list[tuple[int, Attempt]]:
        """Return the attempts whose reserved start is reached, with their positions."""
        k = counts.due(self.start, len(self), now_us, self._positions)
        return [(at, self.attempts[at]) for at in self._positions[:k].tolist()]

    def book(self, started: Sequence[Running]) -> None:
        """Remove the attempts that started."""
        names = {running.attempt.id for running in started}
        positions = [at for at, attempt in enumerate(self.attempts) if attempt.id in names]
        self._positions[: len(positions)] = positions
        counts.take_out(
            self.size, self.duration, self.start, self.start, len(self), self._positions,
            len(positions),
        )  # fmt: skip
        self.attempts = [attempt for attempt in self.attempts if attempt.id not in names]


class PlanBook(Generic[T]):
    """The attempts that hold nodes, with their nodes and planned ends (us)."""

    def __init__(self) -> None:
        self._now_us = 0
        self._opened_us = 0
        self._holds: dict[str, tuple[T, int]] = {}
        self._heap: list[tuple[int, str]] = []
        self._late: list[str] = []

    def _hold(self, attempt_id: str, held: T, end_us: int) -> None:
        self._holds[attempt_id] = held, end_us
        heapq.heappush(self._heap, (end_us, attempt_id))

    def _note_late(self, now_us: int) -> None:
        """Find the attempts whose planned end is not after the current time."""
        while self._heap and self._heap[0][0] <= now_us:
            end_us, attempt_id = heapq.heappop(self._heap)
            held = self._holds.get(attempt_id)
            if held is not None and held[1] == end_us:
                self._late.append(attempt_id)

    def _overdue(self) -> dict[str, int]:
        """Return the next planned ends of the late attempts that still hold nodes, and forget them.

        The keys are their ids.
        """
        overdue = {name: self._now_us + 1 for name in self._late if name in self._holds}
        self._late.clear()
        return overdue


class CountedPlan(PlanBook[int]):
    """The plan of a list scheduler for interchangeable nodes. Initially all are up and free."""

    def __init__(self, n_nodes: int) -> None:
        super().__init__()
        self._base_t, self._base_f, self._t, self._f = np.zeros((4, 20_000), dtype=np.int64)
        self._base_f[0] = self._f[0] = n_nodes
        self._base_n = self._n = 1
        self._scratch = np.zeros(scratch_needed(20_000), dtype=np.int64)

    def advance(self, now_us: int) -> None:
        self._now_us = now_us
        self._base_n = counts.forget(self._base_t, self._base_f, self._base_n, now_us)
        self._n = counts.forget(self._t, self._f, self._n, now_us)

    def started(self, running: Running, end_us: int) -> None:
        self._hold(running.attempt.id, running.attempt.n_nodes, end_us)
        self._change_base(end_us, -running.attempt.n_nodes)

    def ended(self, running: Running) -> None:
        size, end_us = self._holds.pop(running.attempt.id)
        self._change(max(end_us, self._now_us), size)
        self._opened_us = max(self._opened_us, end_us)

    def failed(self, nodes: list[int]) -> None:
        self._change(FOREVER_US, -len(nodes))

    def rejuvenated(self, nodes: list[int]) -> None:
        self._change(FOREVER_US, len(nodes))
        self._opened_us = FOREVER_US

    def _change_base(self, end_us: int, delta: int) -> None:
        self._base_n = counts.change(
            self._base_t, self._base_f, self._base_n, self._now_us, end_us, delta
        )

    def _change(self, end_us: int, delta: int) -> None:
        self._change_base(end_us, delta)
        self._n = counts.change(self._t, self._f, self._n, self._now_us, end_us, delta)

    def append(self, queue: Waiting, first: int, last: int) -> None:
        self._n = deep.reserve(
            self._t, self._f, self._n, queue.size, queue.duration, queue.start, first, last,
            self._scratch,
        )  # fmt: skip

    def _begin(self) -> None:
        counts.copy_profile(self._base_t, self._base_f, self._base_n, self._t, self._f)
        self._n = self._base_n

    def rebuild(self, queue: Waiting) -> None:
        self._begin()
        self.append(queue, 0, len(queue))
        self._opened_us = self._now_us

    def compress(self, queue: Waiting, last: int) -> None:
        self._n, self._opened_us = deep.renew(
            self._t, self._f, self._n, queue.size, queue.duration, queue.start, last,
            self._opened_us, self._scratch,
        )  # fmt: skip

    def backfill(self, queue: Waiting, depth: int, first: bool) -> None:
        self._begin()
        self._n = counts.backfill(
            self._t, self._f, self._n, queue.size, queue.duration, queue.start, len(queue), depth,
            first,
        )  # fmt: skip
