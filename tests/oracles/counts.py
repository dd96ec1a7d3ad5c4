# SPDX-License-Identifier: Apache-2.0
"""Slow, simple availability: a list of rectangles; each time in the list is tried for a start."""

from __future__ import annotations

from rebat.core.units import FOREVER_US

Rectangle = tuple[int, int, int]  # start, end, nodes


def free_at(n_nodes: int, rectangles: list[Rectangle], date: int) -> int:
    """Return the number of nodes that are free at a date."""
    return n_nodes - sum(size for start, end, size in rectangles if start <= date < end)


def fits(n_nodes: int, rectangles: list[Rectangle], date: int, size: int, duration: int) -> bool:
    """Whether ``size`` nodes are free throughout ``[date, date + duration)``."""
    dates = [date] + [r[0] for r in rectangles if date < r[0] < date + duration]
    return all(free_at(n_nodes, rectangles, at) >= size for at in dates)


def first_fit(n_nodes: int, rectangles: list[Rectangle], now: int, size: int, duration: int) -> int:
    """Return the earliest date at which a job fits, among now and all ends of rectangles."""
    dates = sorted({now, *(r[1] for r in rectangles if now < r[1] < FOREVER_US)})
    for date in dates:
        if fits(n_nodes, rectangles, date, size, duration):
            return date
    return FOREVER_US


class Plan:
    """The rectangles of running jobs, and a queue of [size, duration, start]."""

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes, self.running, self.queue = n_nodes, [], []

    def others(self, skip: int | None = None) -> list[Rectangle]:
        """Return every rectangle except that of the queue position ``skip``."""
        reserved = [
            (start, start + duration, size)
            for i, (size, duration, start) in enumerate(self.queue)
            if i != skip and start < FOREVER_US
        ]
        return [*self.running, *reserved]

    def place(self, now: int, i: int) -> None:
        """Place one queue position at its first fit; the others do not move."""
        size, duration, _ = self.queue[i]
        self.queue[i][2] = FOREVER_US
        self.queue[i][2] = first_fit(self.n_nodes, self.others(i), now, size, duration)

    def compress(self, now: int) -> None:
        """Remove each queue position in turn and place it again."""
        for i in range(len(self.queue)):
            self.place(now, i)

    def rebuild(self, now: int) -> None:
        """Remove all queue positions, then place all of them again, in order."""
        for entry in self.queue:
            entry[2] = FOREVER_US
        for i in range(len(self.queue)):
            self.place(now, i)

    def backfill(self, now: int, depth: int, first: bool = False) -> None:
        """List scheduling with ``depth`` reservations for jobs that cannot start now.

        With ``first``, Algorithm 1 of RR-9296: reservations are for the first jobs of the queue.
        """
        for entry in self.queue:
            entry[2] = FOREVER_US
        for i in range(len(self.queue)):
            size, duration, _ = self.queue[i]
            start = first_fit(self.n_nodes, self.others(i), now, size, duration)
            if start == now:
                self.queue[i][2] = now
            elif (i < depth if first else depth > 0) and start < FOREVER_US:
                depth -= not first
                self.queue[i][2] = start
