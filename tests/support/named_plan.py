# SPDX-License-Identifier: Apache-2.0
"""Placement ``named``: the plan reserves particular nodes.

It reserves the lowest-numbered nodes that are free during the entire reservation.

The plan consists of a table of time slices with their free nodes (see ``rebat.kernels.blocks``),
and a reservation for each queue position, beginning at the head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import counts, named, named_lists, slices
from rebat.kernels.blocks import BLOCKS, RESERVED, empty_table, grown, nodes_of
from tests.support.plans import PlanBook, Waiting


class NamedPlan(PlanBook[NodeSet]):
    """The plan of a list scheduler for particular nodes. Initially all nodes are up and free."""

    def __init__(self, n_nodes: int) -> None:
        super().__init__()
        self._n_nodes = n_nodes
        self._table = empty_table(64, min(n_nodes, 64), 64)
        self._start_from_one_block()

    def _start_from_one_block(self) -> None:
        table = self._table
        table.n[:] = 1, 1, 0
        table.first[:2] = 0, self._n_nodes
        table.f[0], table.free[0, 0] = self._n_nodes, 1

    # ---- updates

    def advance(self, now_us: int) -> None:
        named.drop_begun(self._table, self._now_us)
        if now_us > self._now_us:
            self._now_us = now_us
            slices.forget(self._table, now_us)
        self._note_late(now_us)

    def started(self, running: Running, end_us: int) -> None:
        self._hold(running.attempt.id, running.nodes, end_us)

    def clear(self) -> None:
        named.clear(self._table)

    def held(self, running: Running, end_us: int) -> None:
        self.clear()
        self._take(running.nodes, end_us)
        self._hold(running.attempt.id, running.nodes, end_us)

    def ended(self, running: Running) -> None:
        nodes, end = self._holds.pop(running.attempt.id)
        self._make_room(0, nodes)
        slices.give_nodes(self._table, nodes.intervals, self._now_us, end)
        self._opened_us = max(self._opened_us, end)

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        named.clear(self._table)
        dead = NodeSet.of(nodes)
        self._make_room(0, dead)
        slices.fail(self._table, dead.intervals)

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
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

    def append(self, queue: Waiting, first: int, last: int) -> None:
        self._settle(last)
        self._place(queue, last)

    def _place(self, queue: Waiting, last: int) -> None:
        """Make a first-fit reservation for each position before ``last`` that has none."""
        named_lists.place(self._table, queue.size, queue.duration, last)
        self._copy_starts(queue)

    def rebuild(self, queue: Waiting) -> None:
        named.clear(self._table)
        self.append(queue, 0, len(queue))
        self._opened_us = self._now_us

    def compress(self, queue: Waiting, last: int) -> None:
        self._settle(last)
        self._opened_us = named_lists.compress(
            self._table, queue.size, queue.duration, self._opened_us
        )
        self._place(queue, last)

    def backfill(self, queue: Waiting, depth: int, first: bool = False) -> None:
        self._settle(len(queue))
        named_lists.backfill(self._table, queue.size, queue.duration, len(queue), depth, first)
        self._copy_starts(queue)

    def nodes_at(self, position: int) -> NodeSet | None:
        table = self._table
        if position >= table.n[RESERVED] or table.start[position] >= FOREVER_US:
            return None
        out = np.empty((int(table.n[BLOCKS]), 2), dtype=np.int64)
        return NodeSet(out[: nodes_of(table, table.held[position], out)].copy())

    def _copy_starts(self, queue: Waiting) -> None:
        n = int(self._table.n[RESERVED])
        queue.start[:n] = self._table.start[:n]

    def _settle(self, last: int) -> None:
        """Set the planned end of each overdue attempt to its next one.

        If a reservation starts before this end, or if its start was due but its attempt did not
        start, delete all reservations.
        """
        overdue = self._overdue()
        late = max(overdue.values(), default=self._now_us)
        if counts.any_before(self._table.start, self._table.n[RESERVED], late):
            named.clear(self._table)
        for attempt_id, end_us in overdue.items():
            nodes, _ = self._holds[attempt_id]
            self._take(nodes, end_us)
            self._hold(attempt_id, nodes, end_us)
        self._make_room(last)

    # ---- room

    def _make_room(self, queued: int, nodes: NodeSet | None = None) -> None:
        """Enlarge the arrays for ``queued`` reservations and for the use of ``nodes`` nodes."""
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
