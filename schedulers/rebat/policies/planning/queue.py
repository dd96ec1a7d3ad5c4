# SPDX-License-Identifier: Apache-2.0
"""The waiting queue as sorted parallel arrays, ready for the kernels."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels.counts import NEVER, due, take_out
from rebat.policies.queue_order import Key, QueueOrder, bound, planned_us


class SortedQueue:
    """Attempts in queue order, with size, duration and reserved start of each.

    ``size``, ``duration`` and ``start`` are int64 arrays of which the first ``len(queue)`` entries
    count; ``start`` is NEVER where an attempt holds no reservation.

    Parameters
    ----------
    order : QueueOrder
    margin_us : int
        Added to every walltime; below 0 where walltimes are known to hold that much slack.
    seed : int
        For an order that is drawn.
    """

    def __init__(self, order: QueueOrder, margin_us: int = 0, seed: int = 0) -> None:
        self._order = order
        self._margin_us = margin_us
        self._seed = seed
        self._keys: list[Key] = []
        self._proposed: list[tuple[int, Attempt]] = []
        self.attempts: list[Attempt] = []
        self.size, self.duration, self.start, self._positions = (
            np.zeros(64, dtype=np.int64) for _ in range(4)
        )

    def __len__(self) -> int:
        return len(self.attempts)

    def add(self, attempt: Attempt) -> int:
        """Insert an attempt; gives its position."""
        n = len(self.attempts)
        if n == len(self.size):
            self.size, self.duration, self.start, self._positions = (
                np.concatenate([a, np.zeros_like(a)])
                for a in (self.size, self.duration, self.start, self._positions)
            )
        key = self._order(attempt)
        at = bisect_right(self._keys, key)
        self._keys.insert(at, key)
        self.attempts.insert(at, attempt)
        if at < n:
            for array in (self.size, self.duration, self.start):
                array[at + 1 : n + 1] = array[at:n].copy()
        self.size[at] = attempt.n_nodes
        self.duration[at] = self.duration_of(attempt)
        self.start[at] = NEVER
        return at

    def on_machine(self, n_nodes: int) -> None:
        """Tell the order how large the machine is, before anything is added."""
        self._order = bound(self._order, n_nodes, self._margin_us, self._seed)

    def duration_of(self, attempt: Attempt) -> int:
        """How long an attempt lasts in plans, at least one tick."""
        return planned_us(attempt, self._margin_us)

    def due(self, now_us: int) -> list[tuple[int, Attempt]]:
        """The attempts whose reserved start has come, with their positions; they stay for now."""
        k = due(self.start, len(self.attempts), now_us, self._positions)
        self._proposed = [(at, self.attempts[at]) for at in self._positions[:k].tolist()]
        return self._proposed

    def book(self, started: Sequence[Running], withdrawn: Sequence[str] = ()) -> bool:
        """Take out what really started; whether that is just what was due.

        What was due and did not start is in the queue still, but for the jobs ``withdrawn``. They
        are known by their jobs: on another number of nodes one starts as its next attempt.
        """
        proposed, self._proposed = self._proposed, []
        if not (proposed or started or withdrawn):
            return True
        names = [*(running.attempt.job_id for running in started), *withdrawn]
        as_due = names == [attempt.job_id for _, attempt in proposed]
        if as_due:
            positions = [at for at, _ in proposed]
        else:
            positions = [at for at, attempt in enumerate(self.attempts) if attempt.job_id in names]
            for at, _ in proposed:
                self.start[at] = NEVER
            self._positions[: len(positions)] = positions
        self._take_out(positions)
        return as_due

    def _take_out(self, positions: list[int]) -> None:
        """Forget these positions, ascending; they stand in the array of positions already."""
        take_out(
            self.size, self.duration, self.start, len(self.attempts), self._positions,
            len(positions),
        )  # fmt: skip
        for at in reversed(positions):
            del self.attempts[at], self._keys[at]


class AvailabilityPlan(Protocol):
    """What a placement must offer to be planned on; see ``CountedPlan`` for the meanings."""

    def advance(self, now_us: int) -> None: ...
    def started(self, running: Running, end_us: int) -> None: ...
    def clear(self) -> None: ...
    def held(self, running: Running, end_us: int) -> None: ...
    def ended(self, running: Running) -> None: ...
    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None: ...
    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None: ...
    def append(self, queue: SortedQueue, first: int, last: int) -> None: ...
    def rebuild(self, queue: SortedQueue) -> None: ...
    def compress(self, queue: SortedQueue, last: int) -> None: ...
    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None: ...
    def nodes_at(self, position: int) -> NodeSet | None: ...
