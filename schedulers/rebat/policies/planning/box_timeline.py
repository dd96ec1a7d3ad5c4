# SPDX-License-Identifier: Apache-2.0
"""Table of the blocks in use or reserved, and the resulting timeline of free blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.kernels import box_plan, box_slots
from rebat.kernels.box_plan import PlanRows
from rebat.kernels.box_slots import Slots

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
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
