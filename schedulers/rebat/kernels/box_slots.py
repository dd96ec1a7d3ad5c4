# SPDX-License-Identifier: Apache-2.0
"""A timeline of units in use: slots of time, each with a set of taken units.

Units are nodes or blocks (`models.units`). Sets of units are bits of 64-bit words. A slot lasts
until the start of the next slot. The last slot has no end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.jit import kernel

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
        The taken units of each slot.
    free : array (slots,)
        Number of free units.
    opens : array (slots,)
        Whether any unit is free that is taken in the previous slot.
    back : array (slots, words)
        Scratch.
    """

    n: Ints
    t: Ints
    busy: Words
    free: Ints
    opens: npt.NDArray[np.bool_]
    back: Words


def empty_slots(capacity: int, n_units: int) -> Slots:
    """Return empty arrays for slots; ``lay`` fills them."""
    words = -(-n_units // 64)
    return Slots(
        np.zeros(1, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros((capacity, words), dtype=np.uint64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.bool_),
        np.zeros((capacity, words), dtype=np.uint64),
    )


@kernel
def n_bits(word: Any) -> int:
    """Return the number of set bits of a word."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def n_set(words: Any) -> int:
    """Return the number of units in a set."""
    n = 0
    for word in words:
        n += n_bits(word)
    return n


@kernel
def unpack(words: Any, out: Any) -> None:
    """Write for each unit whether it is in a set."""
    for unit in range(out.shape[0]):
        out[unit] = (words[unit >> 6] >> np.uint64(unit & 63)) & np.uint64(1)


@kernel
def pack(units: Any, out: Any) -> None:
    """Write the set of the units whose entry is not 0."""
    out[:] = 0
    for unit in range(units.shape[0]):
        if units[unit]:
            out[unit >> 6] |= np.uint64(1) << np.uint64(unit & 63)


@kernel
def copy(slots: Any, source: int, target: int) -> None:
    """Copy a slot to another slot, except the scratch array."""
    slots.t[target], slots.free[target] = slots.t[source], slots.free[source]
    slots.opens[target] = slots.opens[source]
    for w in range(slots.busy.shape[1]):
        slots.busy[target, w] = slots.busy[source, w]


@kernel
def mark(slots: Any, first: int, last: int) -> None:
    """Update ``opens`` of slots ``first`` to ``last`` after their taken units have changed."""
    for i in range(max(first, 1), min(last + 1, slots.n[0])):
        opens = False
        for w in range(slots.busy.shape[1]):
            if slots.busy[i - 1, w] & ~slots.busy[i, w]:
                opens = True
                break
        slots.opens[i] = opens


@kernel
def split(slots: Any, time: int) -> int:
    """Return the slot that begins at a time, after creating it if necessary.

    The time must not be before the first slot.
    """
    n, t = slots.n[0], slots.t
    at = int(np.searchsorted(t[:n], time))
    if at < n and t[at] == time:
        return at
    for i in range(n, at, -1):
        copy(slots, i - 1, i)
    copy(slots, at - 1, at)
    t[at], slots.opens[at] = time, False
    slots.n[0] = n + 1
    return at


@kernel
def put(slots: Any, start: int, end: int, words: Any, size: int, take: bool) -> None:
    """Take a set of units from ``start`` to ``end``, or release it; taken units must be free.

    Times before the first slot are ignored. There must be room for two more slots.
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
    """Drop the past: the first slot begins now."""
    n, gone = slots.n[0], 0
    while gone + 1 < n and slots.t[gone + 1] <= now:
        gone += 1
    if gone > 0:
        for i in range(n - gone):
            copy(slots, i + gone, i)
        slots.n[0] = n - gone
    slots.t[0] = now


@kernel
def lay(slots: Any, start: Any, end: Any, masks: Any, dead: Any, now: int, n_units: int) -> None:
    """Build a timeline from the dead units, and the units of each row from its start to its end.

    Rows that have ended are ignored. Several rows may take the same unit. There must be room for
    two slots per row.
    """
    slots.n[0] = 1
    slots.t[0] = now
    slots.busy[0] = dead
    for row in range(start.shape[0]):
        if end[row] > now:
            put(slots, start[row], end[row], masks[row], 0, True)
    for i in range(slots.n[0]):
        slots.free[i] = n_units - n_set(slots.busy[i])


@kernel
def taken_over(slots: Any, first: int, end: int, out: Any) -> None:
    """Write the units taken at any time from the start of a slot until ``end``."""
    out[:] = slots.busy[first]
    i = first + 1
    while i < slots.n[0] and slots.t[i] < end:
        out |= slots.busy[i]
        i += 1
