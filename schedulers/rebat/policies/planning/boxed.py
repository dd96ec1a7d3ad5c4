"""The plan of a list scheduler over boxes of a torus, or units in a line: `ChosenPlan`, fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import box_plan
from rebat.kernels.box_plan import LINEAR, NEVER, RANDOM, Catalogue, Table
from rebat.policies.base import Machine
from rebat.policies.placement.boxes import BoxChooser, Division
from rebat.policies.placement.choosers import Request
from rebat.policies.planning.queue import SortedQueue

Ints = npt.NDArray[np.int64]


class BoxPlan:
    """See ``CountedPlan`` for the facts, `kernels.box_plan` for the table.

    Parameters
    ----------
    machine : Machine
        All nodes up and free.
    choose : BoxChooser
    """

    def __init__(self, machine: Machine, choose: BoxChooser) -> None:
        self._machine, self._choose = machine, choose
        self._division = choose.division(machine.n_nodes)
        self._volumes = Volumes(self._division, choose.rule == LINEAR)
        n_units = self._division.units.torus.n_nodes
        self._table = _table(16, n_units, np.zeros(n_units, dtype=np.int32))
        self._unused = list(range(16))
        self._now_us = self._opened_us = 0
        self._holds: dict[str, int] = {}
        self._given: dict[NodeSet, npt.NDArray[np.uint8]] = {}
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._starts: Ints = np.zeros(0, dtype=np.int64)
        self._sizes: Ints = np.zeros(0, dtype=np.int64)

    # ---- facts

    def advance(self, now_us: int) -> None:
        """Move to a date; what was due at the last one has been started."""
        waits = self._starts > self._now_us
        if not waits.all():
            self._free(self._rows[~waits])
            self._rows, self._starts = self._rows[waits], self._starts[waits]
        self._now_us = now_us
        self._given.clear()

    def clear(self) -> None:
        """Nothing is reserved any more; a rebuild is due."""
        self._free(self._rows)
        self._rows, self._starts = self._rows[:0], self._starts[:0]

    def started(self, running: Running, end_us: int) -> None:
        """An attempt runs where it was reserved, until ``end_us`` at the latest."""
        row = self._row()
        self._holds[running.attempt.id] = row
        self._table.start[row], self._table.end[row] = 0, end_us
        taken = self._given.get(running.nodes)
        self._table.mask[row] = self._touched(running.nodes) if taken is None else taken

    def _touched(self, nodes: NodeSet) -> npt.NDArray[np.uint8]:
        taken = np.zeros(self._division.units.torus.n_nodes, dtype=np.uint8)
        taken[self._division.units.of_node[list(nodes)]] = 1
        return taken

    def held(self, running: Running, end_us: int) -> None:
        """Nodes are held for a job, or it runs there unplanned; a rebuild is due."""
        self.clear()
        self.started(running, end_us)

    def ended(self, running: Running) -> None:
        """An attempt freed its nodes."""
        row = self._holds.pop(running.attempt.id)
        self._opened_us = max(self._opened_us, int(self._table.end[row]))
        self._free([row])

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes cannot be used until their repair, and nothing stays reserved."""
        np.add.at(self._table.unusable, self._division.units.of_node[nodes], 1)
        self.clear()

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes can be used again; those that an attempt still holds are free when it ends."""
        np.subtract.at(self._table.unusable, self._division.units.of_node[nodes], 1)
        self._opened_us = FOREVER_US

    # ---- rows of the table

    def _free(self, rows: Sequence[int] | Ints) -> None:
        for row in rows:
            self._table.end[row] = 0
            self._unused.append(int(row))

    def _row(self) -> int:
        if not self._unused:
            old, table = len(self._table.end), self._table
            self._table = _table(2 * old, table.mask.shape[1], table.unusable)
            for new, before in zip(self._table[:3], table[:3], strict=True):
                new[:old] = before
            self._unused = list(range(old, 2 * old))
        return self._unused.pop()

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Give the positions up to ``last`` that have no place their first fit."""
        self._settle()
        self._fill(queue, last, FOREVER_US)

    def _settle(self) -> None:
        """No reservation stands whose date has passed, or has come and is still taken."""
        late_us = self._now_us + (1 if self._outlive() else 0)
        if (self._starts < late_us).any():
            self.clear()

    def _outlive(self) -> bool:
        """What outlives its planned end holds its nodes a tick more; whether anything does."""
        overdue = [r for r in self._holds.values() if self._table.end[r] <= self._now_us]
        self._table.end[overdue] = self._now_us + 1
        return bool(overdue)

    def _fill(self, queue: SortedQueue, last: int, depth: int, by_rank: bool = False) -> None:
        position, reserved = len(self._rows), 0
        rows = [self._row() for _ in range(last - position)]
        self._rows = np.concatenate([self._rows, np.array(rows, dtype=np.int64)])
        self._starts = np.concatenate([self._starts, np.full(len(rows), NEVER)])
        volumes = self._volumes.of(queue.size[:last])
        while position < last:
            position, reserved = box_plan.place(
                self._table, self._volumes.catalogue, volumes, queue.duration,
                self._serials(queue, last), self._rows, self._starts, position, last, depth,
                by_rank, reserved, self._now_us, self._choose.rule, self._choose.seed,
                self._choose.pick is not None,
            )  # fmt: skip
            self._pick(queue, position - 1)
        queue.start[: len(self._starts)] = self._starts
        self._sizes = queue.size[:last].copy()

    def _serials(self, queue: SortedQueue, last: int) -> Ints:
        """What tells the attempts apart, where their places are drawn."""
        if self._choose.rule != RANDOM:
            return np.zeros(last, dtype=np.int64)
        return np.array([attempt.serial for attempt in queue.attempts[:last]], dtype=np.int64)

    def rebuild(self, queue: SortedQueue) -> None:
        """Clear all reservations and place the whole queue anew, in order."""
        self.clear()
        self.append(queue, 0, len(queue))
        self._opened_us = self._now_us

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Each of the first ``last`` attempts in turn out and back in, the others standing."""
        self._settle()
        position, placed, again_us = 0, len(self._rows), 0
        volumes = self._volumes.of(queue.size[:placed])
        while position < placed:
            position, self._opened_us, again_us = box_plan.compress(
                self._table, self._volumes.catalogue, volumes, queue.duration,
                self._serials(queue, placed), self._rows, self._starts, position, placed,
                self._opened_us,
                again_us, self._now_us, self._choose.rule, self._choose.seed,
                self._choose.pick is not None,
            )  # fmt: skip
            self._pick(queue, position - 1)
        self._opened_us = again_us
        self._fill(queue, last, FOREVER_US)

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Rebuild with at most ``depth`` reservations for attempts that cannot start now.

        ``first``: the first ``depth`` of the queue take them, also those that can start now.
        """
        self.clear()
        self._outlive()
        self._fill(queue, len(queue), depth, first)

    def _pick(self, queue: SortedQueue, position: int) -> None:
        """Choose again for an attempt that starts now, where that has a rule of its own."""
        pick = self._choose.pick
        if pick is None or self._starts[position] != self._now_us:
            return
        row, table = int(self._rows[position]), self._table
        size, length_us = int(queue.size[position]), int(queue.duration[position])
        end_us, table.end[row] = int(table.end[row]), 0
        busy = self._volumes.catalogue.busy
        box_plan.free_over(table, self._now_us, end_us, busy)
        request = Request(size, length_us, 0, queue.attempts[position].serial)
        boxes = self._division.boxes(self._division.units.count_for(size))
        index = pick(self._division, boxes, busy == 0, request, self._machine)
        taken = np.zeros(len(busy), dtype=np.uint8)
        taken[boxes.box(index).nodes(self._division.units.torus)] = 1
        table.mask[row], table.end[row] = taken, end_us

    def nodes_at(self, position: int) -> NodeSet | None:
        """The nodes on which the attempt at a queue position runs: the first of its units'."""
        if self._starts[position] == NEVER:
            return None
        taken = self._table.mask[self._rows[position]]
        nodes = self._division.nodes(taken.view(np.bool_)).first(int(self._sizes[position]))
        self._given[nodes] = taken.copy()
        return nodes


class Volumes:
    """The units that requests for nodes come to, and their boxes in one catalogue."""

    def __init__(self, division: Division, linear: bool) -> None:
        self._division, self._linear = division, linear
        self._index: Ints = np.full(division.units.of_nodes.n_nodes + 1, -1, dtype=np.int64)
        self._known: list[int] = []
        self.catalogue = self._made()

    def of(self, sizes: Ints) -> Ints:
        """The place of each size's volume in the catalogue, which has all of them then."""
        found: Ints = self._index[sizes]
        if (found < 0).any():
            for size in np.unique(sizes[found < 0]).tolist():
                self._index[size] = self._place(size)
            self.catalogue = self._made()
            found = self._index[sizes]
        return found

    def _place(self, size: int) -> int:
        units = self._division.units
        volume = -(-size // units.size) if self._linear else units.count_for(size)
        if volume not in self._known:
            self._known.append(volume)
        return self._known.index(volume)

    def _made(self) -> Catalogue:
        torus = self._division.units.torus
        lists = [] if self._linear else [self._division.boxes(v) for v in self._known]
        none = np.zeros((0, len(torus.sizes)), dtype=np.int64)
        return Catalogue(
            volume=np.array(self._known, dtype=np.int64),
            program_of=_offsets([len(boxes.sums_of.program) for boxes in lists]),
            program=np.concatenate([_NO_SUMS, *(boxes.sums_of.program for boxes in lists)]),
            chosen_of=_offsets([len(boxes) for boxes in lists]),
            chosen=np.concatenate([none[:, 0], *(boxes.chosen for boxes in lists)]),
            extents=np.concatenate([none, *(boxes.extents for boxes in lists)]),
            origins=np.concatenate([none, *(boxes.origins for boxes in lists)]),
            values_at=np.array([boxes.sums_of.values_at for boxes in lists], dtype=np.int64),
            sizes=np.array(torus.sizes),
            coordinates=torus.coordinate_table(),
            work=np.zeros(max([1, *(b.sums_of.work_size for b in lists)]), dtype=np.int32),
            busy=np.zeros(torus.n_nodes, dtype=np.uint8),
        )


_NO_SUMS: Ints = np.zeros((0, 8), dtype=np.int64)


def _offsets(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _table(rows: int, n_units: int, unusable: npt.NDArray[np.int32]) -> Table:
    start, end = np.zeros((2, rows), dtype=np.int64)
    return Table(start, end, np.zeros((rows, n_units), dtype=np.uint8), unusable)
