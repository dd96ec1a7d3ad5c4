# SPDX-License-Identifier: Apache-2.0
"""Placement ``named``: the plan reserves named machines, the lowest-numbered free over a window.

One table is kept (see ``rebat.kernels.blocks``): the time slices with the nodes free in each, and
the reservations, one for each position of the queue from its head on.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import counts, named, named_lists, slices
from rebat.kernels.blocks import BLOCKS, RESERVED, empty_table, grown, nodes_of
from rebat.policies.planning.queue import SortedQueue


class NamedPlan:
    """The plan of a list scheduler over named nodes, all up and free at first."""

    def __init__(self, n_nodes: int) -> None:
        self._now_us = 0
        self._n_nodes = n_nodes
        self._table = empty_table(64, min(n_nodes, 64), 64)
        self._start_from_one_block()
        self._holds: dict[str, tuple[NodeSet, int]] = {}
        self._heap: list[tuple[int, str]] = []
        self._overdue: list[str] = []
        self._opened_us = 0

    def _start_from_one_block(self) -> None:
        table = self._table
        table.n[:] = 1, 1, 0
        table.first[:2] = 0, self._n_nodes
        table.f[0], table.free[0, 0] = self._n_nodes, 1

    # ---- facts

    def advance(self, now_us: int) -> None:
        """Move to a date; the attempts that were due at the last one have been started."""
        named.drop_begun(self._table, self._now_us)
        if now_us > self._now_us:
            self._now_us = now_us
            slices.forget(self._table, now_us)
        while self._heap and self._heap[0][0] <= now_us:
            end, attempt_id = heapq.heappop(self._heap)
            if attempt_id in self._holds and self._holds[attempt_id][1] == end:
                self._overdue.append(attempt_id)

    def started(self, running: Running, end_us: int) -> None:
        """An attempt runs where it was reserved, until ``end_us`` at the latest."""
        self._hold(running.attempt.id, running.nodes, end_us)

    def _hold(self, attempt_id: str, nodes: NodeSet, end_us: int) -> None:
        self._holds[attempt_id] = nodes, end_us
        heapq.heappush(self._heap, (end_us, attempt_id))

    def clear(self) -> None:
        """Nothing is reserved any more; a rebuild is due."""
        named.clear(self._table)

    def held(self, running: Running, end_us: int) -> None:
        """Nodes are held for a job, or it runs there unplanned; a rebuild is due."""
        self.clear()
        self._take(running.nodes, end_us)
        self._hold(running.attempt.id, running.nodes, end_us)

    def ended(self, running: Running) -> None:
        """An attempt freed its nodes."""
        nodes, end = self._holds.pop(running.attempt.id)
        self._make_room(0, nodes)
        slices.give_nodes(self._table, nodes.intervals, self._now_us, end)
        self._opened_us = max(self._opened_us, end)

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes went down: they are unusable until their repair, and nothing stays reserved."""
        named.clear(self._table)
        dead = NodeSet.of(nodes)
        self._make_room(0, dead)
        slices.fail(self._table, dead.intervals)

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes are up again; those that an attempt still holds are free when it ends."""
        alive = NodeSet.of(nodes)
        self._make_room(0, alive)
        slices.repair(self._table, alive.intervals)
        for held, end in self._holds.values():
            if held.meets(alive):
                self._take(held, end)
        self._opened_us = FOREVER_US

    def _take(self, nodes: NodeSet, end_us: int) -> None:
        self._make_room(0, nodes)
        slices.take_nodes(self._table, nodes.intervals, self._now_us, end_us)

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Give these positions of the queue their first fit, the other reservations standing."""
        self._settle(last)
        self._place(queue, last)

    def _place(self, queue: SortedQueue, last: int) -> None:
        """Give every position up to ``last`` that has no place its first fit."""
        named_lists.place(self._table, queue.size, queue.duration, last)
        self._tell(queue)

    def rebuild(self, queue: SortedQueue) -> None:
        """Clear all reservations and place the whole queue anew, in order."""
        named.clear(self._table)
        self.append(queue, 0, len(queue))
        self._opened_us = self._now_us

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Each of the first ``last`` attempts in turn out and back in, the others standing."""
        self._settle(last)
        self._opened_us = named_lists.compress(
            self._table, queue.size, queue.duration, self._opened_us
        )
        self._place(queue, last)

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Rebuild with at most ``depth`` reservations for attempts that cannot start now.

        ``first``: the first ``depth`` of the queue take them, also those that can start now.
        """
        self._settle(len(queue))
        named_lists.backfill(self._table, queue.size, queue.duration, len(queue), depth, first)
        self._tell(queue)

    def nodes_at(self, position: int) -> NodeSet | None:
        """The nodes reserved for a queue position, as it was when last planned."""
        table = self._table
        if position >= table.n[RESERVED] or table.start[position] >= FOREVER_US:
            return None
        out = np.empty((int(table.n[BLOCKS]), 2), dtype=np.int64)
        return NodeSet(out[: nodes_of(table, table.held[position], out)].copy())

    def _tell(self, queue: SortedQueue) -> None:
        n = int(self._table.n[RESERVED])
        queue.start[:n] = self._table.start[:n]

    def _settle(self, last: int) -> None:
        """Let attempts that outlive their planned end hold their nodes a tick more.

        A reservation whose date has come without its being started cannot stand then.
        """
        overdue = [one for one in self._overdue if one in self._holds]
        self._overdue.clear()
        late = self._now_us + (1 if overdue else 0)
        if counts.any_before(self._table.start, self._table.n[RESERVED], late):
            named.clear(self._table)
        for attempt_id in overdue:
            nodes, _ = self._holds[attempt_id]
            self._take(nodes, self._now_us + 1)
            self._hold(attempt_id, nodes, self._now_us + 1)
        self._make_room(last)

    # ---- room

    def _make_room(self, queued: int, nodes: NodeSet | None = None) -> None:
        """Make the arrays large enough to place so many attempts and to cut out these nodes."""
        table = self._table
        n_slices, n_blocks, n_reserved = table.n.tolist()
        cuts = 0 if nodes is None else 2 * len(nodes.intervals)
        n_slices += 2 * queued + 2
        blocks = min(n_blocks + queued + cuts, self._n_nodes)
        reservations = max(n_reserved, queued)
        room = len(table.t), len(table.first) - 1, len(table.start)
        if n_slices > room[0] or blocks > room[1] or reservations > room[2]:
            self._table = grown(
                table,
                max(room[0], 2 * n_slices),
                max(room[1], min(2 * blocks, self._n_nodes)),
                max(room[2], 2 * reservations),
            )
