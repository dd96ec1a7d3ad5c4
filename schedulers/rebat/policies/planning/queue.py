# SPDX-License-Identifier: Apache-2.0
"""The queue as sorted parallel arrays for the kernels."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from rebat.contract import PlannedStarts, View
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels import counts
from rebat.kernels.counts import NEVER
from rebat.policies.queue_order import Key, QueueOrder, bound, planned_us


class SortedQueue:
    """The queued attempts in queue order, with their sizes, planned durations and reserved starts.

    ``size`` (nodes), ``duration`` and ``start`` (microseconds) and ``serial`` are int64 arrays.
    Only the first ``len(queue)`` entries are valid. ``start`` is NEVER for an attempt without a
    reservation.

    Parameters
    ----------
    order : QueueOrder
    margin_us : int
        Microseconds that are added to each walltime. The number may be negative.
    seed : int
        Seed of a random order.
    """

    def __init__(self, order: QueueOrder, margin_us: int = 0, seed: int = 0) -> None:
        self._order = order
        self._margin_us = margin_us
        self._seed = seed
        self._keys: list[Key] = []
        self._proposed: list[tuple[int, Attempt]] = []
        self.attempts: list[Attempt] = []
        self.size, self.duration, self.start, self.serial, self._positions = (
            np.zeros(64, dtype=np.int64) for _ in range(5)
        )

    def __len__(self) -> int:
        return len(self.attempts)

    def add(self, attempt: Attempt) -> int:
        """Insert an attempt, and return its position."""
        n = len(self.attempts)
        if n == len(self.size):
            self.size, self.duration, self.start, self.serial, self._positions = (
                np.concatenate([a, np.zeros_like(a)])
                for a in (self.size, self.duration, self.start, self.serial, self._positions)
            )
        key = self._order(attempt)
        at = bisect_right(self._keys, key)
        self._keys.insert(at, key)
        self.attempts.insert(at, attempt)
        if at < n:
            for array in (self.size, self.duration, self.start, self.serial):
                array[at + 1 : n + 1] = array[at:n].copy()
        self.size[at] = attempt.n_nodes
        self.duration[at] = self.duration_of(attempt)
        self.start[at] = NEVER
        self.serial[at] = attempt.serial
        return at

    def on_machine(self, n_nodes: int) -> None:
        """Set the size of the machine, which the order may need.

        Call this before adding attempts.
        """
        self._order = bound(self._order, n_nodes, self._margin_us, self._seed)

    def duration_of(self, attempt: Attempt) -> int:
        """Return the planned duration of an attempt in microseconds, at least 1."""
        return planned_us(attempt, self._margin_us)

    def due(self, now_us: int) -> list[tuple[int, Attempt]]:
        """Return the attempts whose reserved start time is reached, with their positions.

        These attempts stay in the queue.
        """
        if not self.attempts:
            self._proposed = []
            return self._proposed
        k = counts.due(self.start, len(self.attempts), now_us, self._positions)
        self._proposed = [(at, self.attempts[at]) for at in self._positions[:k].tolist()]
        return self._proposed

    def book(self, started: Sequence[Running], withdrawn: Sequence[str] = ()) -> bool:
        """Remove the attempts that started.

        Return whether they are exactly the attempts that were due.

        Due attempts that did not start stay in the queue, except attempts of ``withdrawn`` jobs.
        Attempts are compared by job, because a job that starts on another number of nodes has a new
        attempt.
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
        """Remove the attempts at these positions."""
        counts.take_out(
            self.size,
            self.duration,
            self.start,
            self.serial,
            len(self.attempts),
            self._positions,
            len(positions),
        )
        for at in reversed(positions):
            del self.attempts[at], self._keys[at]

    def planned(self, plan: AvailabilityPlan, view: View) -> PlannedStarts:
        """Return the planned starts of the attempts that remain in the queue."""
        n = len(self.attempts)
        size, start = self.size[:n], self.start[:n]
        starts = PlannedStarts(self.serial[:n], size, self.duration[:n], start)
        if without_place := plan.without_place:
            waits = (start > view.now_us) & (size <= view.n_free)
            if waits.any():
                lacking = without_place(set(size[waits].tolist()))
                placeless = np.zeros(n, dtype=np.bool_)
                for n_nodes in lacking:  # faster than numpy.isin, because there are few sizes
                    placeless |= size == n_nodes
                starts.placeless = placeless & waits
        return starts


WithoutPlace = Callable[[set[int]], list[int]]
"""Function that returns the sizes (numbers of nodes) that do not fit on the free nodes."""


class AvailabilityPlan(Protocol):
    """Interface of a plan. ``CountedPlan`` documents the methods."""

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

    @property
    def without_place(self) -> WithoutPlace | None:
        """The sizes that do not fit now. None if an attempt fits whenever enough nodes are free."""
