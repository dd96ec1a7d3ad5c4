"""Availability by named nodes: which nodes are free in each time slice, as in Batsched's schedule.

Placement is first fit, in time and in space: the earliest beginning of a slice from which enough
nodes, the same ones, stay free for the whole duration; and of these the lowest-numbered. The last
slice has no end. See ``rebat.kernels.blocks`` for the arrays and for how a set of nodes is held.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.blocks import (
    BITS,
    BLOCKS,
    RESERVED,
    SLICES,
    mark_nodes,
    number,
    split_block,
    weight,
    words_of,
)
from rebat.kernels.counts import NEVER, step_at
from rebat.kernels.jit import kernel

# ---- slices


@kernel
def split_slice(table: Any, date: int) -> int:
    """Make ``date`` the beginning of a slice; gives its index."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, date)
    if table.t[i] == date:
        return i
    for k in range(n, i + 1, -1):
        copy_slice(table, k - 1, k, words)
    copy_slice(table, i, i + 1, words)
    table.t[i + 1] = date
    table.n[SLICES] = n + 1
    return i + 1


@kernel
def copy_slice(table: Any, source: int, target: int, words: int) -> None:
    """Write one slice over another."""
    table.t[target] = table.t[source]
    table.f[target] = table.f[source]
    for w in range(words):
        table.free[target, w] = table.free[source, w]


@kernel
def drop_if_same(table: Any, date: int) -> None:
    """Join the slice that begins at ``date`` to the one before when both have the same nodes."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, date)
    if i == 0 or table.t[i] != date or table.f[i] != table.f[i - 1]:
        return
    for w in range(words):
        if table.free[i, w] != table.free[i - 1, w]:
            return
    for k in range(i, n - 1):
        copy_slice(table, k + 1, k, words)
    table.n[SLICES] = n - 1


@kernel
def forget(table: Any, now: int) -> None:
    """Drop the past: the slice that holds ``now`` becomes the first and begins now."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, now)
    if i > 0:
        for k in range(i, n):
            copy_slice(table, k, k - i, words)
    table.t[0] = now
    table.n[SLICES] = n - i


@kernel
def until(table: Any, end: int) -> int:
    """One past the last slice that begins before ``end``, which is a slice's bound."""
    return split_slice(table, end) if end < NEVER else table.n[SLICES]


@kernel
def take(table: Any, row: Any, start: int, end: int) -> None:
    """The row's blocks are not free over ``[start, end)``, whether they were before or not."""
    if end <= start:
        return
    i = split_slice(table, start)
    for k in range(i, until(table, end)):
        for w in range(words_of(table.n[BLOCKS])):
            lost = table.free[k, w] & row[w]
            table.free[k, w] ^= lost
            table.f[k] -= weight(table.first, w, lost)
    drop_if_same(table, end)
    drop_if_same(table, start)


@kernel
def give(table: Any, row: Any, start: int, end: int) -> None:
    """The row's blocks are free over ``[start, end)`` again, those that are up."""
    if end <= start:
        return
    i = split_slice(table, start)
    for k in range(i, until(table, end)):
        for w in range(words_of(table.n[BLOCKS])):
            won = row[w] & ~table.free[k, w] & ~table.down[0, w]
            table.free[k, w] |= won
            table.f[k] += weight(table.first, w, won)
    drop_if_same(table, end)
    drop_if_same(table, start)


# ---- facts


@kernel
def take_nodes(table: Any, intervals: Any, start: int, end: int) -> None:
    """Nodes are in use over ``[start, end)``."""
    mark_nodes(table, intervals)
    take(table, table.mark[0], start, end)


@kernel
def give_nodes(table: Any, intervals: Any, start: int, end: int) -> None:
    """Nodes are not in use any more over ``[start, end)``."""
    mark_nodes(table, intervals)
    give(table, table.mark[0], start, end)


@kernel
def fail(table: Any, intervals: Any) -> None:
    """Nodes are down: unusable until their repair."""
    take_nodes(table, intervals, table.t[0], NEVER)
    for w in range(words_of(table.n[BLOCKS])):
        table.down[0, w] |= table.mark[0, w]


@kernel
def repair(table: Any, intervals: Any) -> None:
    """Nodes are up, and free for ever."""
    mark_nodes(table, intervals)
    for w in range(words_of(table.n[BLOCKS])):
        table.down[0, w] &= ~table.mark[0, w]
    give(table, table.mark[0], table.t[0], NEVER)


# ---- first fit


@kernel
def last_obstacle(table: Any, size: int, i: int, j: int) -> int:
    """The last slice of ``i`` to ``j - 1`` from which to ``j - 1`` fewer than ``size`` nodes stay free.

    -1 if there is none; then ``fit`` holds the nodes free in all these slices. A window that begins
    at or before the obstacle and reaches ``j`` cannot fit: that spares looking at most windows.
    """
    for k in range(j - 1, i - 1, -1):
        if table.f[k] < size:
            return k
    words, fit = words_of(table.n[BLOCKS]), table.fit[0]
    for w in range(words):
        fit[w] = table.free[j - 1, w]
    left = table.f[j - 1]
    for k in range(j - 2, i - 1, -1):
        for w in range(words):
            lost = fit[w] & ~table.free[k, w]
            if lost:
                left -= weight(table.first, w, lost)
                fit[w] ^= lost
        if left < size:
            return k
    return -1


@kernel
def first_fit(table: Any, size: int, duration: int) -> int:
    """Earliest beginning of a slice at which the job fits; NEVER if none. ``fit`` as above."""
    n = table.n[SLICES]
    i = j = 0
    while i < n:
        if table.f[i] < size:
            i += 1
            continue
        while j < n and table.t[j] < table.t[i] + duration:
            j += 1
        obstacle = last_obstacle(table, size, i, j)
        if obstacle < 0:
            return table.t[i]
        i = obstacle + 1
    return NEVER


@kernel
def fits_now(table: Any, size: int, duration: int) -> bool:
    """Whether the job can start at once; then ``fit`` holds the nodes it may have."""
    if table.f[0] < size:
        return False
    j = step_at(table.t, table.n[SLICES], table.t[0] + duration - 1) + 1
    return last_obstacle(table, size, 0, j) < 0


# ---- reservations


@kernel
def hold_lowest(table: Any, k: int, size: int) -> None:
    """Write the ``size`` lowest nodes of ``fit`` into row ``k`` of ``held``."""
    words = words_of(table.n[BLOCKS])
    table.held[k, :words] = 0
    for w in range(words):
        bits = table.fit[0, w]
        while bits and size > 0:
            low = bits & -bits
            b = w * BITS + number(low)
            nodes = table.first[b + 1] - table.first[b]
            if nodes > size:
                split_block(table, b, size)
            table.held[k, w] |= low
            size -= nodes
            bits ^= low


@kernel
def reserve(table: Any, k: int, size: int, duration: int, start: int) -> None:
    """Reservation ``k`` gets the lowest nodes of ``fit`` from ``start`` on, unless that is NEVER."""
    table.start[k] = table.end[k] = start
    if start < NEVER:
        table.end[k] = start + duration
        hold_lowest(table, k, size)
        take(table, table.held[k], start, table.end[k])
    else:
        table.held[k, : words_of(table.n[BLOCKS])] = 0


@kernel
def withdraw(table: Any, k: int) -> None:
    """The nodes of reservation ``k`` are free again."""
    if table.start[k] < NEVER:
        give(table, table.held[k], max(table.start[k], table.t[0]), table.end[k])


@kernel
def clear(table: Any) -> None:
    """Withdraw all reservations."""
    for k in range(table.n[RESERVED]):
        withdraw(table, k)
    table.n[RESERVED] = 0


@kernel
def drop_begun(table: Any, now: int) -> None:
    """Forget the reservations whose start has come: they are attempts now, on the same nodes."""
    kept, words = 0, words_of(table.n[BLOCKS])
    for k in range(table.n[RESERVED]):
        if table.start[k] <= now:
            continue
        if kept < k:
            table.start[kept] = table.start[k]
            table.end[kept] = table.end[k]
            for w in range(words):
                table.held[kept, w] = table.held[k, w]
        kept += 1
    table.n[RESERVED] = kept
