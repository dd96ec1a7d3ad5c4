# SPDX-License-Identifier: Apache-2.0
"""The plan of a list scheduler for boxes of a torus or blocks in a line: a fast `ChosenPlan`.

A table contains the blocks in use or reserved. The timeline of free blocks follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Machine
from rebat.core.arrays import Ints
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import box_plan, box_slots
from rebat.kernels.box_free import LINEAR, RANDOM, Catalogue
from rebat.kernels.box_plan import PlanRows
from rebat.kernels.box_slots import NEVER, Slots
from rebat.models.boxes import Steps, free_boxes
from rebat.policies.placement.boxes import BoxChooser, Division
from rebat.policies.placement.choosers import Request
from rebat.policies.placement.places import Waiting

Words = npt.NDArray[np.uint64]

MOST_KNOWN = 4096
"""Maximum number of node sets to cache."""


class BoxPlan:
    """A plan that reserves boxes.

    `places.Places` documents the methods, `kernels.box_slots` the timeline.
    """

    def __init__(self, machine: Machine, choose: BoxChooser) -> None:
        self._machine, self._choose = machine, choose
        self._division = choose.division(machine.n_nodes)
        self._n_blocks = self._division.blocks.torus.n_nodes
        self._volumes = Volumes(self._division, choose.rule)
        self._timeline = BoxTimeline(self._n_blocks)
        self._unusable = np.zeros(self._n_blocks, dtype=np.int32)
        self._now_us = 0
        self._given_back = self._nothing_released()
        self._holds: dict[int, int] = {}
        self._node_sets: dict[bytes, NodeSet] = {}
        self._loose: set[int] = set()
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._starts: Ints = np.zeros(0, dtype=np.int64)
        self._sizes: Ints = np.zeros(0, dtype=np.int64)

    def _nothing_released(self) -> box_plan.Released:
        words = np.zeros(-(-self._n_blocks // 64), dtype=np.uint64)
        return box_plan.Released(words, np.zeros(1, dtype=np.int64))

    def _nodes_of(self, taken: bytes) -> NodeSet:
        nodes = self._node_sets.get(taken)
        if nodes is None:
            blocks = self._timeline.unpacked(np.frombuffer(taken, dtype=np.uint64))
            nodes = self._node_sets[taken] = self._division.nodes(blocks)
            if len(self._node_sets) > MOST_KNOWN:
                self._node_sets.pop(next(iter(self._node_sets)))
        return nodes

    # ---- updates

    def advance(self, now_us: int) -> None:
        waits = self._starts > self._now_us
        if not waits.all():
            self._drop(self._rows[~waits])
            self._rows, self._starts = self._rows[waits], self._starts[waits]
        self._now_us = now_us
        self._timeline.forget(now_us)

    def clear(self) -> None:
        if not len(self._rows):
            return
        self._drop(self._rows)
        self._rows, self._starts = self._rows[:0], self._starts[:0]

    def _drop(self, rows: Ints) -> None:
        """Delete the rows in ``rows`` that do not belong to running attempts."""
        runs = np.zeros(len(self._timeline.rows.end), dtype=np.bool_)
        runs[list(self._holds.values())] = True
        self._timeline.drop(rows[~runs[rows]])

    def hold(self, a: int, intervals: Ints, until_us: int) -> None:
        taken = np.zeros(self._n_blocks, dtype=np.uint8)
        taken[self._division.blocks.of_node[NodeSet(intervals).ids]] = 1
        self._holds[a] = self._timeline.take(0, until_us, self._timeline.packed(taken))
        self._loose.add(a)

    def end(self, a: int) -> None:
        row = self._holds.pop(a)
        given, rows = self._given_back, self._timeline.rows
        given.opened[0] = max(given.opened[0], rows.end[row])
        given.blocks[:] |= rows.mask[row]
        if self._loose:  # another row may contain some of these blocks
            self._timeline.stale = True
            self._loose.discard(a)
        self._timeline.drop(np.array([row]))

    def prolong(self, a: int, until_us: int) -> None:
        self._timeline.rows.end[self._holds[a]] = until_us
        self._timeline.stale = True

    def settle(self, late_us: int) -> None:
        if (self._starts < late_us).any():
            self.clear()

    def fail(self, intervals: Ints) -> None:
        np.add.at(self._unusable, self._division.blocks.of_node[NodeSet(intervals).ids], 1)
        self._timeline.die(self._unusable)

    def repair(self, intervals: Ints) -> None:
        np.subtract.at(self._unusable, self._division.blocks.of_node[NodeSet(intervals).ids], 1)
        self._timeline.die(self._unusable)
        self._given_back.opened[0], self._given_back.blocks[:] = FOREVER_US, ~np.uint64(0)

    # ---- plans

    def append(self, waiting: Waiting) -> None:
        self._fill(waiting, FOREVER_US)

    def _fill(self, waiting: Waiting, depth: int, by_rank: bool = False) -> None:
        position, last = len(self._rows), len(waiting[0])
        new, self._sizes = last - position, waiting[0].copy()
        if new:
            self._rows = np.concatenate([self._rows, self._timeline.new_rows(new)])
            self._starts = np.concatenate([self._starts, np.full(new, NEVER)])
            self._place(waiting, position, last, depth, by_rank)
        waiting[2][: len(self._starts)] = self._starts

    def _place(self, waiting: Waiting, position: int, last: int, depth: int, by_rank: bool) -> None:
        plan, reserved = self._plan(waiting, self._sizes), 0
        while position < last:
            plan = self._ready(plan, last - position)
            position, reserved = box_plan.place(plan, position, last, depth, by_rank, reserved)
            self._pick(waiting, position - 1)

    def _plan(self, waiting: Waiting, sizes: Ints) -> box_plan.Plan:
        """Return the input and output arrays of the kernels, with the present slots."""
        choose, volumes = self._choose, self._volumes.of(sizes)  # adds missing volumes
        return box_plan.Plan(
            slots=self._timeline.ready(self._now_us, 0),
            rows=self._timeline.rows,
            catalogue=self._volumes.catalogue,
            volumes=volumes,
            durations=waiting[1],
            serials=waiting[3][: len(sizes)] + 1,
            own=self._rows,
            starts=self._starts,
            now=self._now_us,
            rule=choose.rule,
            seed=choose.seed,
            pick=choose.pick is not None,
        )

    def _ready(self, plan: box_plan.Plan, changes: int) -> box_plan.Plan:
        """Return the plan with space for ``changes`` added or removed rows."""
        slots = self._timeline.ready(self._now_us, changes)
        return plan._replace(slots=slots, rows=self._timeline.rows)

    def rebuild(self, waiting: Waiting) -> None:
        self.clear()
        self.append(waiting)
        self._given_back.opened[0], self._given_back.blocks[:] = self._now_us, 0

    def compress(self, waiting: Waiting) -> None:
        """Move each reservation to an earlier time if possible."""
        position, placed, again = 0, len(self._rows), self._nothing_released()
        plan = self._plan(waiting, waiting[0][:placed])
        while position < placed:
            plan = self._ready(plan, placed - position)
            position = box_plan.compress(plan, position, placed, self._given_back, again)
            self._pick(waiting, position - 1)
        self._given_back = again

    def backfill(self, waiting: Waiting, depth: int, first: bool) -> None:
        self.clear()
        self._fill(waiting, depth, first)

    def _pick(self, waiting: Waiting, position: int) -> None:
        """If the rule ``pick`` is set, use it to choose the box of an attempt that starts now."""
        pick = self._choose.pick
        if pick is None or self._starts[position] != self._now_us:
            return
        row, volumes = int(self._rows[position]), self._volumes
        slots, rows = self._timeline.ready(self._now_us, 0), self._timeline.rows
        size, length_us, _, a = (int(column[position]) for column in waiting)
        volume = volumes.of(np.array([size]))[0]
        if not box_plan.may_choose(slots, rows, volumes.catalogue, volume, row):
            return
        with self._timeline.out(row, self._now_us) as choice:
            request = Request(size, length_us, 0, a + 1)
            boxes = self._division.boxes(self._division.blocks.count_for(size))
            index = pick(self._division, boxes, choice.free, request, self._machine)
            choice.taken[boxes.box(index).nodes(self._division.blocks.torus)] = 1

    def without_place(self, sizes: set[int]) -> list[int]:
        """Return the requested sizes for which no box, or no line of blocks, is free now."""
        busy = self._timeline.unpacked(self._timeline.ready(self._now_us, 0).busy[0])
        return self._choose.without_place(busy, self._machine.n_nodes, sizes)

    def start(self, at: int, a: int, out: Any) -> int:
        if self._starts[at] == NEVER:
            return -1
        row = self._holds[a] = int(self._rows[at])
        taken = self._timeline.rows.mask[row].tobytes()
        intervals = self._nodes_of(taken).first(int(self._sizes[at])).intervals
        out[: len(intervals)] = intervals
        return len(intervals)


Mask = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]


class Choice(msgspec.Struct):
    """The blocks that are free during a row, and the blocks that the caller chooses."""

    free: Mask
    taken: Flags


class BoxTimeline:
    """A table of the uses of blocks (rows), and its timeline (slots).

    `kernels.box_plan` defines the rows, `kernels.box_slots` the slots.

    A change of rows also changes the slots. If the slots are ``stale``, they are rebuilt before the
    next access.
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks = n_blocks
        self._words = -(-n_blocks // 64)
        self.rows = self._made(16)
        self._unused = list(range(16))
        self._slots = box_slots.empty_slots(64, n_blocks)
        self._dead: Words = np.zeros(self._words, dtype=np.uint64)
        self.stale = True

    def _made(self, count: int) -> PlanRows:
        start, end = np.zeros((2, count), dtype=np.int64)
        return PlanRows(start, end, np.zeros((count, self._words), dtype=np.uint64))

    # ---- sets of blocks

    def packed(self, blocks: Flags) -> Words:
        """Return the set of the blocks whose entry is not 0, as bits."""
        words = np.zeros(self._words, dtype=np.uint64)
        box_slots.pack(blocks, words)
        return words

    def unpacked(self, words: Words) -> Mask:
        """Return, for each block, whether it is in a set: shape (blocks,)."""
        blocks = np.zeros(self._n_blocks, dtype=np.uint8)
        box_slots.unpack(words, blocks)
        return blocks.view(np.bool_)

    # ---- changes

    def new_rows(self, count: int) -> Ints:
        """Return the indices of unused rows."""
        if len(self._unused) < count:
            old, rows = len(self.rows.end), self.rows
            self.rows = self._made(2 * old + count)
            for new, before in zip(self.rows, rows, strict=True):
                new[:old] = before
            self._unused += range(old, len(self.rows.end))
        return np.array([self._unused.pop() for _ in range(count)], dtype=np.int64)

    def take(self, start_us: int, end_us: int, words: Words) -> int:
        """Add a row for blocks in use, and return its index."""
        row = int(self.new_rows(1)[0])
        self.rows.start[row], self.rows.end[row], self.rows.mask[row] = start_us, end_us, words
        self.stale = True
        return row

    def drop(self, rows: Ints) -> None:
        """Delete rows."""
        used = rows[self.rows.end[rows] != 0]
        if not self.stale and len(used):
            self.stale = bool((self.rows.mask[used] & self._dead).any())  # failed blocks
        if not self.stale:
            self._make_room(len(used))
            for row in used.tolist():
                start_us, end_us = int(self.rows.start[row]), int(self.rows.end[row])
                box_plan.enter(self._slots, self.rows, row, start_us, end_us, False)
        self.rows.end[rows] = 0
        self._unused += rows.tolist()

    def die(self, unusable: npt.NDArray[np.int32]) -> None:
        """Set which blocks are unusable because of failures. Their entries are not 0."""
        self._dead = self.packed((unusable != 0).view(np.uint8))
        self.stale = True

    def forget(self, now_us: int) -> None:
        """Delete the slots before ``now_us``."""
        if not self.stale:
            box_slots.forget(self._slots, now_us)

    # ---- reading

    def ready(self, now_us: int, changes: int) -> Slots:
        """Return the slots from ``now_us`` on, with space for ``changes`` added or removed rows."""
        crowded = self._slots.n[0] > 64 + 3 * (len(self.rows.end) - len(self._unused))
        if self.stale or crowded:
            self._make_room(len(self.rows.end) + changes, rebuild=True)
            box_slots.lay(
                self._slots,
                self.rows.start,
                self.rows.end,
                self.rows.mask,
                self._dead,
                now_us,
                self._n_blocks,
            )
            self.stale = False
        self._make_room(changes)
        return self._slots

    def _make_room(self, changes: int, rebuild: bool = False) -> None:
        """Enlarge the arrays by two slots per change."""
        n = 1 if rebuild else int(self._slots.n[0])
        need = n + 2 * changes + 2
        if need > len(self._slots.t):
            more = box_slots.empty_slots(2 * need, self._n_blocks)
            for new, old in zip(more, self._slots, strict=True):
                new[: len(old)] = old
            self._slots = more

    @contextmanager
    def out(self, row: int, now_us: int) -> Iterator[Choice]:
        """Remove a row that begins now, and add it again with blocks that the caller chooses."""
        slots, end_us = self.ready(now_us, 2), int(self.rows.end[row])
        box_plan.enter(slots, self.rows, row, now_us, end_us, False)
        words = np.zeros(self._words, dtype=np.uint64)
        box_slots.taken_over(slots, 0, end_us, words)
        choice = Choice(~self.unpacked(words), np.zeros(self._n_blocks, dtype=np.uint8))
        yield choice
        self.rows.mask[row] = self.packed(choice.taken)
        box_plan.enter(slots, self.rows, row, now_us, end_us, True)


Array = npt.NDArray[Any]

REMEMBERED = 16
"""Number of cached sets of busy blocks per volume.

A cached set leaves no box of the volume free.
"""


class VolumeTable:
    """An array that grows when rows are added. Only the first ``n`` rows are valid.

    Parameters
    ----------
    shape : sequence of int
        Shape of a row.
    dtype : numpy type
    """

    def __init__(self, *shape: int, dtype: npt.DTypeLike = np.int64) -> None:
        self.n = 0
        self.array: Array = np.zeros((4, *shape), dtype)

    def add(self, rows: npt.ArrayLike) -> None:
        """Append rows."""
        added = np.asarray(rows)
        n = self.n + len(added)
        if n > len(self.array):
            more = np.zeros((2 * n, *self.array.shape[1:]), self.array.dtype)
            more[: self.n] = self.array[: self.n]
            self.array = more
        self.array[self.n : n] = added
        self.n = n


class Volumes:
    """The box volume (in blocks) for each requested number of nodes, and a catalogue of boxes.

    Parameters
    ----------
    division : Division
    rule : int
        A rule of `kernels.box_free`.
    """

    def __init__(self, division: Division, rule: int) -> None:
        self._division, self._rule = division, rule
        self._index: Ints = np.full(division.blocks.of_nodes.n_nodes + 1, -1, dtype=np.int64)
        self._indices: dict[int, int] = {}
        torus = division.blocks.torus
        self._steps, words, axes = Steps(torus), -(-torus.n_nodes // 64), len(torus.sizes)
        self._tables: dict[str, VolumeTable] = {
            "volume": VolumeTable(),
            "program_of": VolumeTable(),
            "program": VolumeTable(8),
            "shapes_of": VolumeTable(),
            "shapes": VolumeTable(axes),
            "allowed": VolumeTable(words, dtype=np.uint64),
            "ranks": VolumeTable(torus.n_nodes if rule == RANDOM else 0, dtype=np.int32),
            "full": VolumeTable(REMEMBERED, words, dtype=np.uint64),
            "next_full": VolumeTable(),
        }
        for name in ("program_of", "shapes_of"):
            self._tables[name].add([0])
        self._scratch: dict[str, Array] = {
            "sets": np.zeros((1, 3 * words + 1), dtype=np.uint64),
            "busy": np.zeros(torus.n_nodes, dtype=np.uint8),
            "taken": np.zeros(torus.n_nodes, dtype=np.uint8),
            "words": np.zeros(words, dtype=np.uint64),
        }
        self.catalogue = self._made()

    def of(self, sizes: Ints) -> Ints:
        """Return, for each size, the index of its volume in the catalogue.

        Missing volumes are added.
        """
        indices: Ints = self._index[sizes]
        if (indices < 0).any():
            before = len(self._indices)
            for size in np.unique(sizes[indices < 0]).tolist():
                self._index[size] = self._place(size)
            if len(self._indices) > before:
                self.catalogue = self._made()
            indices = self._index[sizes]
        return indices

    def _place(self, size: int) -> int:
        blocks = self._division.blocks
        linear = self._rule == LINEAR
        volume = blocks.in_line_for(size) if linear else blocks.count_for(size)
        if volume not in self._indices:
            self._indices[volume] = len(self._indices)
            self._add(volume)
        return self._indices[volume]

    def _add(self, volume: int) -> None:
        """Add a volume, and its boxes, to the tables."""
        tables, words = self._tables, len(self._steps.everything)
        tables["volume"].add([volume])
        tables["full"].add(np.full((1, REMEMBERED, words), ~np.uint64(0)))
        tables["next_full"].add([0])
        if self._rule == LINEAR:
            return
        search = free_boxes(self._division.boxes(volume), self._steps, self._rule == RANDOM)
        for name in ("program", "shapes", "allowed", "ranks"):
            tables[name].add(getattr(search, name))
        for name in ("program", "shapes"):
            tables[f"{name}_of"].add([tables[name].n])
        if search.n_sets > len(self._scratch["sets"]):
            self._scratch["sets"] = np.zeros((search.n_sets, 3 * words + 1), dtype=np.uint64)

    def _made(self) -> Catalogue:
        return Catalogue(
            **{name: table.array for name, table in self._tables.items()},
            **self._scratch,
            inside=self._steps.inside,
            everything=self._steps.everything,
            sizes=np.array(self._division.blocks.torus.sizes),
        )
