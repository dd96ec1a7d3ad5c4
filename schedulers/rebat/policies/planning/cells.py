# SPDX-License-Identifier: Apache-2.0
"""The plan of a group of partitions that share nodes, or of nodes with reservations.

Nodes that belong to the same partitions and reservations form a *cell*, and are interchangeable. A
job uses the cells of its partition. It first uses the cells that belong to the fewest partitions
and reservations, so that the nodes that several of them share remain free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.contract import Machine
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import cells, counts
from rebat.kernels.counts import NEVER
from rebat.policies.partitions import Partition
from rebat.policies.planning.queue import PlanBook, SortedQueue, WithoutPlace
from rebat.policies.queue_order import planned_us
from rebat.policies.windows import Window, Windows

Counts = npt.NDArray[np.int64]
"""A number of nodes of each cell."""


class CellProfile:
    """Free nodes of each cell over time, as arrays that grow."""

    def __init__(self, free: Counts) -> None:
        self.t = np.zeros(64, dtype=np.int64)
        self.f = np.tile(free, (64, 1))
        self.n = 1

    def room_for(self, intervals: int) -> None:
        """Enlarge the arrays for changes in more intervals."""
        need = self.n + 2 * intervals
        if need > len(self.t):
            more = 2 * need - len(self.t)
            self.t = np.concatenate([self.t, np.zeros(more, dtype=np.int64)])
            self.f = np.concatenate([self.f, np.zeros((more, self.f.shape[1]), dtype=np.int64)])

    def change(self, start_us: int, end_us: int, nodes: Counts, sign: int) -> None:
        """Add or remove free nodes in an interval."""
        self.room_for(1)
        self.n = cells.change(self.t, self.f, self.n, start_us, end_us, nodes, sign)

    def copy_from(self, other: CellProfile) -> None:
        """Copy another profile into this one."""
        self.n, self.t, self.f = other.n, other.t.copy(), other.f.copy()

    def forget(self, now_us: int) -> None:
        """Delete the part before ``now_us``."""
        self.n = counts.forget(self.t, self.f, self.n, now_us)


class CellPlan(PlanBook[Counts]):
    """The plan of a list scheduler for a group of partitions. Initially all nodes are up and free.

    Parameters
    ----------
    machine : Machine
        The nodes of the group.
    rows : list of (Partition, NodeSet)
        The partitions, and their nodes in the numbers of the group.
    of : callable
        Function that returns the partition of an attempt.
    closed : list of (Window, NodeSet)
        Windows of reservations, and their nodes in the numbers of the group.
    windows : Windows, optional
        The reservations, if there are closed windows.
    """

    def __init__(
        self,
        machine: Machine,
        rows: Sequence[tuple[Partition, NodeSet]],
        of: Callable[[Attempt], Partition],
        closed: Sequence[tuple[Window, NodeSet]] = (),
        windows: Windows | None = None,
    ) -> None:
        super().__init__()
        self._machine, self._of, self._windows = machine, of, windows
        sets = [nodes for _, nodes in rows] + [nodes for _, nodes in closed]
        members = np.array([nodes.mask(machine.n_nodes) for nodes in sets])
        kinds, self._cell_of = _distinct(members)
        self._sizes = np.bincount(self._cell_of).astype(np.int64)
        order = sorted(
            range(len(self._sizes)), key=lambda c: (int(kinds[:, c].sum()), self._first(c))
        )
        self._cells = {
            partition.name: np.array([c for c in order if kinds[i, c]], dtype=np.int64)
            for i, (partition, _) in enumerate(rows)
        }
        self._closed = [
            (window, np.flatnonzero(kinds[len(rows) + i]).astype(np.int64))
            for i, (window, _) in enumerate(closed)
        ]
        self._kinds: dict[tuple[tuple[bool, ...], bool], int] = {}
        self._closed_to: list[npt.NDArray[np.int64]] = []
        self._orders: dict[tuple[str, ...], npt.NDArray[np.int64]] = {
            (name,): row for name, row in self._cells.items()
        }
        self._base, self._plan = CellProfile(self._sizes), CellProfile(self._sizes)
        self._down = np.zeros(machine.n_nodes, dtype=np.bool_)
        self._nodes: dict[str, NodeSet] = {}
        self._reserved: dict[str, Counts] = {}
        self._queued: list[Attempt] = []
        self._free: npt.NDArray[np.bool_] | None = None

    def _first(self, cell: int) -> int:
        return int(np.argmax(self._cell_of == cell))

    def _count(self, ids: npt.NDArray[np.int64]) -> Counts:
        counted = np.bincount(self._cell_of[ids], minlength=len(self._sizes))
        return counted.astype(np.int64)

    # ---- updates

    def advance(self, now_us: int) -> None:
        self._now_us = max(self._now_us, now_us)
        self._free = None
        self._note_late(now_us)

    def started(self, running: Running, end_us: int) -> None:
        self._reserved.pop(running.attempt.id, None)
        self._take(running.attempt.id, running.nodes, end_us)

    def clear(self) -> None:
        """Do nothing: `rebuild` deletes all reservations."""

    held = started

    def _take(self, attempt_id: str, nodes: NodeSet, end_us: int) -> None:
        ids = nodes.ids
        held = self._count(ids[~self._down[ids]])
        self._base.change(self._now_us, end_us, held, -1)
        self._nodes[attempt_id] = nodes
        self._hold(attempt_id, held, end_us)

    def ended(self, running: Running) -> None:
        held, end_us = self._holds.pop(running.attempt.id)
        del self._nodes[running.attempt.id]
        self._change(max(end_us, self._now_us), held, 1)

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self._down[nodes] = True
        self._change(FOREVER_US, self._count(np.array(nodes, dtype=np.int64)), -1)
        self._count_again(nodes)

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self._down[nodes] = False
        self._change(FOREVER_US, self._count(np.array(nodes, dtype=np.int64)), 1)
        self._count_again(nodes)

    def _count_again(self, nodes: list[int]) -> None:
        """Recount the nodes of attempts that hold some of ``nodes``, which failed or came up.

        ``under`` contains only attempts that held the nodes before: a hold can begin at this time.
        """
        changed = NodeSet.of(nodes)
        for attempt_id in [name for name, held in self._nodes.items() if held.meets(changed)]:
            before, end_us = self._holds[attempt_id]
            ids = self._nodes[attempt_id].ids
            held = self._count(ids[~self._down[ids]])
            self._change(end_us, before - held, 1)
            self._holds[attempt_id] = held, end_us

    def _change(self, end_us: int, nodes: Counts, sign: int) -> None:
        self._base.change(self._now_us, end_us, nodes, sign)
        self._plan.change(self._now_us, end_us, nodes, sign)

    # ---- plans

    def _extend(self) -> dict[str, int]:
        """Set the planned end of each overdue attempt to its next one. Return these ends by id."""
        overdue = self._overdue()
        for attempt_id, end_us in overdue.items():
            held = self._holds[attempt_id][0]
            self._base.change(self._now_us, end_us, held, -1)
            self._hold(attempt_id, held, end_us)
        return overdue

    def _settle(self, queue: SortedQueue, last: int) -> None:
        """Adjust planned ends.

        If a reservation starts before a new end, or was due but did not start, recompute all.
        """
        overdue = self._extend()
        self._plan.forget(self._now_us)
        late_us = max(overdue.values(), default=self._now_us)
        if counts.any_before(queue.start, last, late_us):
            self._begin()
            self._place(queue, 0, last)
            return
        for attempt_id in overdue:
            held, end_us = self._holds[attempt_id]
            self._plan.change(self._now_us, end_us, held, -1)

    def _begin(self) -> None:
        """Begin a plan without reservations."""
        self._base.forget(self._now_us)
        self._plan.copy_from(self._base)
        self._reserved.clear()
        for window, _ in self._closed:
            for at_us in (window.begin_us, window.end_us):
                self._plan.change(max(at_us, self._now_us), FOREVER_US, 0 * self._sizes, 1)

    def _place(
        self, queue: SortedQueue, begin: int, end: int, depth: int = -1, first: bool = False
    ) -> None:
        """Reserve the first fits of the queue positions from ``begin`` to ``end``."""
        attempts, plan = queue.attempts[begin:end], self._plan
        nodes = np.zeros((len(attempts), len(self._sizes)), dtype=np.int64)
        part, longest, *tables = self._tables(queue, begin, end)
        plan.room_for(len(attempts) + 1)
        plan.n = cells.place(
            plan.t, plan.f, plan.n, queue.size[begin:end], queue.duration[begin:end], longest,
            part, *tables, depth, first, self._now_us, queue.start[begin:end], nodes,
        )  # fmt: skip
        self._note_reserved(queue, begin, end, nodes)

    def _note_reserved(self, queue: SortedQueue, begin: int, end: int, nodes: Counts) -> None:
        starts_us = queue.start[begin:end]
        for attempt, start_us, own in zip(queue.attempts[begin:end], starts_us, nodes, strict=True):
            if start_us < NEVER:
                self._reserved[attempt.id] = own

    def _tables(self, queue: SortedQueue, begin: int, end: int) -> tuple[Any, ...]:
        """Return ``part``, ``longest``, and ``order`` to ``n_closed`` for `kernels.cells.place`.

        They are those of the queue positions from ``begin`` to ``end``.
        """
        self._queued, attempts = queue.attempts, queue.attempts[begin:end]
        names = [*self._cells]
        part = np.array([names.index(self._of(each).name) for each in attempts], dtype=np.int64)
        kind, order = np.zeros(len(attempts), dtype=np.int64), part
        longest = queue.duration[begin:end]
        if self._closed:
            walltimes = [planned_us(attempt.walltime_us) for attempt in attempts]
            longest = np.array(walltimes, dtype=np.int64)
            assert self._windows is not None
            if self._windows.alike((window for window, _ in self._closed), attempts):
                kind[:] = [self._kind_of(attempt) for attempt in attempts[:1]]
            else:
                kind[:] = [self._kind_of(attempt) for attempt in attempts]
                order = np.array([self._order_of(attempt) for attempt in attempts], dtype=np.int64)
        return (
            part, longest, order, kind, *_padded([*self._orders.values()]),
            *_padded(self._closed_to or [_NOTHING]),
        )  # fmt: skip

    def _kind_of(self, attempt: Attempt) -> int:
        """Return the position of the table of cells that are closed to an attempt."""
        windows = self._windows
        assert windows is not None
        opened = tuple(windows.opens(window, attempt) for window, _ in self._closed)
        bound = self._is_bound(attempt)
        if (opened, bound) not in self._kinds:
            rows = [
                (cell, window.begin_us, window.end_us)
                for (window, closed), opens in zip(self._closed, opened, strict=True)
                if not opens
                for cell in closed.tolist()
            ]
            if bound:
                rows += self._outside(opened)
            self._kinds[opened, bound] = len(self._closed_to)
            self._closed_to.append(np.array(rows, dtype=np.int64).reshape(-1, 3))
        return self._kinds[opened, bound]

    def _is_bound(self, attempt: Attempt) -> bool:
        """Return whether an attempt starts only in a reservation that its job requested."""
        assert self._windows is not None
        names = {window.name for window in self._windows.requested(attempt)}
        cells = next((cells for window, cells in self._closed if window.name in names), _NOTHING)
        usable = np.intersect1d(cells, self._cells[self._of(attempt).name])
        return bool(names) and self._sizes[usable].sum() >= attempt.n_nodes

    def _outside(self, opened: Sequence[bool]) -> Iterator[tuple[int, int, int]]:
        """Yield the cells and times outside the open windows, up to the end of the last one."""
        own = [pair for pair, opens in zip(self._closed, opened, strict=True) if opens]
        own.sort(key=lambda pair: pair[0].begin_us)
        last_us = max(window.end_us for window, _ in own)
        for cell in range(len(self._sizes)):
            end_us = 0
            for window, cells_of in own:
                if cell in cells_of:
                    yield cell, end_us, window.begin_us
                    end_us = max(end_us, window.end_us)
            yield cell, end_us, last_us

    def _order_of(self, attempt: Attempt) -> int:
        """Return the position of the cells of an attempt, in the order in which it uses them.

        The nodes of reservations that are open to it now are first.
        """
        assert self._windows is not None
        name = self._of(attempt).name
        windows = self._windows.preferred([window for window, _ in self._closed], attempt)
        key = name, *(window.name for window in windows)
        if key not in self._orders:
            first = [cell for window, cells in self._closed if window in windows for cell in cells]
            rest = self._cells[name]
            ahead = np.isin(rest, first)
            self._orders[key] = np.concatenate([rest[ahead], rest[~ahead]])
        return [*self._orders].index(key)

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        self._settle(queue, first)
        self._place(queue, first, last)

    def rebuild(self, queue: SortedQueue) -> None:
        self._extend()
        self._begin()
        self._place(queue, 0, len(queue))

    def compress(self, queue: SortedQueue, last: int) -> None:
        self._settle(queue, last)
        _, longest, *tables = self._tables(queue, 0, last)
        nodes, nothing = np.zeros((last, len(self._sizes)), dtype=np.int64), 0 * self._sizes
        for at, attempt in enumerate(queue.attempts[:last]):
            nodes[at] = self._reserved.pop(attempt.id, nothing)
        plan = self._plan
        plan.room_for(2 * last + 1)
        plan.n = cells.compress(
            plan.t, plan.f, plan.n, queue.size[:last], queue.duration[:last], longest, *tables,
            self._now_us, queue.start[:last], nodes,
        )  # fmt: skip
        self._note_reserved(queue, 0, last, nodes)

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Rebuild with at most ``depth`` reservations in each partition."""
        self._extend()
        self._begin()
        self._place(queue, 0, len(queue), depth, first)

    def nodes_at(self, position: int) -> NodeSet | None:
        """Return the lowest free nodes of each cell, for a position that is due."""
        if self._free is None:
            self._free = self._machine.free
        chosen = []
        for cell, count in enumerate(self._reserved[self._queued[position].id].tolist()):
            free = np.flatnonzero(self._free & (self._cell_of == cell))[:count]
            self._free[free] = False
            chosen.append(free)
        return NodeSet.of_sorted(np.sort(np.concatenate(chosen)))

    without_place: WithoutPlace | None = None


_NOTHING = np.zeros((0, 3), dtype=np.int64)


def _distinct(members: npt.NDArray[np.bool_]) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the distinct columns of a table in ascending order, and the position of each column.

    The result is that of ``numpy.unique`` with ``axis=1``, which is slow for many columns.
    """
    codes = np.zeros(members.shape[1], dtype=np.int64)
    for i, row in enumerate(members):
        codes = 2 * codes + row
        if i % 60 == 59:  # a code has 63 bits
            codes = np.unique(codes, return_inverse=True)[1].ravel()
    _, first, of_column = np.unique(codes, return_index=True, return_inverse=True)
    return members[:, first], of_column.ravel()


def _padded(rows: Sequence[npt.NDArray[np.int64]]) -> tuple[Counts, Counts]:
    """Return arrays of different lengths as one array, and their lengths."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    shape = (len(rows), int(lengths.max()), *rows[0].shape[1:])
    padded = np.zeros(shape, dtype=np.int64)
    for at, row in enumerate(rows):
        padded[at, : len(row)] = row
    return padded, lengths
