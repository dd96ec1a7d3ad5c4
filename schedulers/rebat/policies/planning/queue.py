# SPDX-License-Identifier: Apache-2.0
"""The queue as sorted parallel arrays for the kernels."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from rebat.contract import PlannedStarts, View
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels import counts
from rebat.kernels.counts import NEVER
from rebat.policies.queue_order import Key, QueueOrder, bound, keys_of, planned_us, varies

T = TypeVar("T")


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
    period_us : int
        Time between sorts of the queue in microseconds, if the order changes over time.
    """

    def __init__(
        self, order: QueueOrder, margin_us: int = 0, seed: int = 0, period_us: int = 0
    ) -> None:
        self._order = order
        self._margin_us = margin_us
        self._seed = seed
        self._period_us, self._sorted_us = period_us, -(2**62)
        self._keys: list[Key] = []
        self._proposed: list[tuple[int, Attempt]] = []
        self.attempts: list[Attempt] = []
        self.size, self.duration, self.start, self.serial, self._positions = (
            np.zeros(64, dtype=np.int64) for _ in range(5)
        )

    def __len__(self) -> int:
        return len(self.attempts)

    def add(self, attempt: Attempt, predicted_us: int | None = None) -> int:
        """Insert an attempt, and return its position.

        ``predicted_us`` is its predicted run time (default: its walltime).
        """
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
        self.duration[at] = self.duration_of(attempt, predicted_us)
        self.start[at] = NEVER
        self.serial[at] = attempt.serial
        return at

    def on_machine(self, view: View) -> None:
        """Set the machine and its size, which the order may need.

        Call this before adding attempts.
        """
        self._order = bound(self._order, view, self._margin_us, self._seed)

    def sort(self, now_us: int) -> bool:
        """Sort the queue again, if its order changes over time. Return whether it changed."""
        n = len(self.attempts)
        if not varies(self._order) or now_us < self._sorted_us + self._period_us:
            return False
        self._sorted_us = now_us
        keys = keys_of(self._order, self.attempts)
        places = sorted(range(n), key=keys.__getitem__)
        self._keys = [keys[at] for at in places]
        if places == [*range(n)]:
            return False
        self.attempts = [self.attempts[at] for at in places]
        for array in (self.size, self.duration, self.start, self.serial):
            array[:n] = array[places]
        return True

    def duration_of(self, attempt: Attempt, predicted_us: int | None = None) -> int:
        """Return the planned duration of an attempt in microseconds, at least 1."""
        length_us = attempt.walltime_us if predicted_us is None else predicted_us
        return planned_us(length_us, self._margin_us)

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
        as_due = not withdrawn and names == [attempt.job_id for _, attempt in proposed]
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


LaterEnd = Callable[[str, int], int]
"""Function that returns a planned end after the present time, for an attempt that did not end.

Arguments: id of the attempt, and present time (us).
"""


def in_1_us(attempt_id: str, now_us: int) -> int:
    """Return the time in 1 us."""
    return now_us + 1


class AvailabilityPlan(Protocol):
    """Interface of a plan. Initially all nodes of the machine are up and free."""

    later_end: LaterEnd
    """Function that returns the next planned end of an overdue attempt."""

    def advance(self, now_us: int) -> None:
        """Set the current time. Attempts whose start was due at the previous time have started."""

    def started(self, running: Running, end_us: int) -> None:
        """Record that an attempt with a reservation runs, until ``end_us`` at the latest."""

    def clear(self) -> None:
        """Delete all reservations. The caller must then call `rebuild`."""

    def held(self, running: Running, end_us: int) -> None:
        """Record that an attempt occupies nodes without a reservation.

        This is the case if the attempt moved or its nodes are held. All reservations are deleted.
        The caller must then call `rebuild`.
        """

    def ended(self, running: Running) -> None:
        """Record that an attempt freed its nodes."""

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Record that nodes are unusable. ``under`` contains the attempts that hold some of them.

        Plans of particular nodes delete all reservations.
        """

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Record that nodes are usable again. Held nodes stay in use until their attempts end."""

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Make first-fit reservations for these queue positions.

        Other reservations do not change.
        """

    def rebuild(self, queue: SortedQueue) -> None:
        """Delete all reservations and place the entire queue again, in order."""

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Renew the reservations of the first ``last`` attempts, one after the other."""

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Rebuild with at most ``depth`` reservations for attempts that cannot start now.

        With ``first``, the first ``depth`` attempts of the queue get reservations, including
        attempts that can start now.
        """

    def nodes_at(self, position: int) -> NodeSet | None:
        """Return the nodes that the most recent plan reserved for a queue position."""

    @property
    def without_place(self) -> WithoutPlace | None:
        """The sizes that do not fit now. None if an attempt fits whenever enough nodes are free."""


class PlanBook(Generic[T]):
    """The attempts that hold nodes, with their nodes and planned ends (us)."""

    def __init__(self) -> None:
        self.later_end: LaterEnd = in_1_us
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
        overdue = {
            name: self.later_end(name, self._now_us) for name in self._late if name in self._holds
        }
        self._late.clear()
        return overdue
