# SPDX-License-Identifier: Apache-2.0
"""A timeline of blocks: consecutive slots of time, each with the set of blocks in use.

A set of blocks is a row of 64-bit words with a bit per block. A slot lasts until the start of the
next slot. The last slot has no end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.counts import step_at
from rebat.kernels.jit import inner, kernel, step

NEVER = 2**62

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Slots(NamedTuple):
    """The slots of a timeline.

    Attributes
    ----------
    n : array (1,)
        Number of slots.
    t : array (slots,)
        Start of each slot, ascending.
    busy : array (slots, words)
        The blocks in use in each slot.
    free : array (slots,)
        Number of free blocks in each slot.
    opens : array (slots,)
        For each slot, whether any block becomes free at its start.
    back : array (slots, words)
        Temporary results.
    """

    n: Ints
    t: Ints
    busy: Words
    free: Ints
    opens: npt.NDArray[np.bool_]
    back: Words


def empty_slots(capacity: int, n_blocks: int) -> Slots:
    """Return a timeline with space for ``capacity`` slots. The function `lay` fills it."""
    words = -(-n_blocks // 64)
    return Slots(
        np.zeros(1, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros((capacity, words), dtype=np.uint64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.bool_),
        np.zeros((capacity, words), dtype=np.uint64),
    )


@step
def n_bits(word: Any) -> int:
    """Return the number of set bits of a word."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@step
def n_set(words: Any) -> int:
    """Return the number of blocks in the set ``words``."""
    n = 0
    for word in words:
        n += n_bits(word)
    return n


@step
def any_left(blocks: Any, taken: Any) -> bool:
    """Return whether at least one block of ``blocks`` is not in ``taken``."""
    for w in range(blocks.shape[0]):
        if blocks[w] & ~taken[w]:
            return True
    return False


@step
def any_in(blocks: Any, others: Any) -> bool:
    """Return whether at least one block of ``blocks`` is in ``others``."""
    for w in range(blocks.shape[0]):
        if blocks[w] & others[w]:
            return True
    return False


@kernel
def unpack(words: Any, out: Any) -> None:
    """Write into ``out``, for each block, whether it is in the set ``words``."""
    for block in range(out.shape[0]):
        out[block] = (words[block >> 6] >> np.uint64(block & 63)) & np.uint64(1)


@kernel
def pack(blocks: Any, out: Any) -> None:
    """Write the set of all blocks whose entry in ``blocks`` is not 0 into ``out``."""
    out[:] = 0
    for block in range(blocks.shape[0]):
        if blocks[block]:
            out[block >> 6] |= np.uint64(1) << np.uint64(block & 63)


@step
def copy(slots: Any, source: int, target: int) -> None:
    """Copy slot ``source`` over slot ``target``, except ``back``."""
    slots.t[target], slots.free[target] = slots.t[source], slots.free[source]
    slots.opens[target] = slots.opens[source]
    for w in range(slots.busy.shape[1]):
        slots.busy[target, w] = slots.busy[source, w]


@step
def mark(slots: Any, first: int, last: int) -> None:
    """Update ``opens`` of slots ``first`` to ``last`` after their blocks in use have changed."""
    for i in range(max(first, 1), min(last + 1, slots.n[0])):
        opens = False
        for w in range(slots.busy.shape[1]):
            if slots.busy[i - 1, w] & ~slots.busy[i, w]:
                opens = True
                break
        slots.opens[i] = opens


@step
def split(slots: Any, time: int) -> int:
    """Return the index of the slot that begins at ``time``. If there is none, create it.

    ``time`` must not be before the first slot.
    """
    n, t = slots.n[0], slots.t
    at = step_at(t, n, time)
    if t[at] == time:
        return at
    at += 1
    for i in range(n, at, -1):
        copy(slots, i - 1, i)
    copy(slots, at - 1, at)
    t[at], slots.opens[at] = time, False
    slots.n[0] = n + 1
    return at


@inner
def put(slots: Any, start: int, end: int, words: Any, size: int, take: bool) -> None:
    """Mark the ``size`` blocks of ``words`` as in use, or as free, over [start, end).

    If ``take`` is true, the blocks are marked as in use, and must have been free. Otherwise, they
    are marked as free. Times before the first slot are ignored. The arrays must have space for two
    more slots.
    """
    start = max(start, slots.t[0])
    if start >= end:
        return
    first = split(slots, start)
    last = slots.n[0] if end >= NEVER else split(slots, end)
    for i in range(first, last):
        for w in range(words.shape[0]):
            if take:
                slots.busy[i, w] |= words[w]
            else:
                slots.busy[i, w] &= ~words[w]
        slots.free[i] += -size if take else size
    mark(slots, first, last)


@kernel
def forget(slots: Any, now: int) -> None:
    """Delete the slots that end by ``now``. The first remaining slot then begins at ``now``."""
    n, gone = slots.n[0], 0
    while gone + 1 < n and slots.t[gone + 1] <= now:
        gone += 1
    if gone > 0:
        for i in range(n - gone):
            copy(slots, i + gone, i)
        slots.n[0] = n - gone
    slots.t[0] = now


@kernel
def lay(slots: Any, start: Any, end: Any, masks: Any, dead: Any, now: int, n_blocks: int) -> None:
    """Build the timeline from rows. Row k uses the blocks ``masks[k]`` over [start[k], end[k]).

    The blocks in ``dead`` are never free. Rows that have ended are ignored. Two rows may use the
    same block. The arrays must have space for two slots per row.
    """
    slots.n[0] = 1
    slots.t[0] = now
    slots.busy[0] = dead
    for row in range(start.shape[0]):
        if end[row] > now:
            put(slots, start[row], end[row], masks[row], 0, True)
    for i in range(slots.n[0]):
        slots.free[i] = n_blocks - n_set(slots.busy[i])


@kernel
def taken_over(slots: Any, first: int, end: int, out: Any) -> None:
    """Write the blocks that are in use from the start of slot ``first`` to ``end`` into ``out``."""
    out[:] = slots.busy[first]
    i = first + 1
    while i < slots.n[0] and slots.t[i] < end:
        out |= slots.busy[i]
        i += 1
