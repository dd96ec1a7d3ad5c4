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
def same(table: Any, i: int, j: int) -> bool:
    """Whether the same nodes are free in two slices."""
    if table.f[i] != table.f[j]:
        return False
    for w in range(words_of(table.n[BLOCKS])):  # noqa: SIM110
        if table.free[i, w] != table.free[j, w]:
            return False
    return True


@kernel
def drop_if_same(table: Any, date: int) -> None:
    """Join the slice that begins at ``date`` to the one before when both have the same nodes."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, date)
    if i > 0 and table.t[i] == date and same(table, i, i - 1):
        for k in range(i, n - 1):
            copy_slice(table, k + 1, k, words)
        table.n[SLICES] = n - 1


@kernel
def join_all(table: Any) -> None:
    """Join every slice to the one before that has the same nodes."""
    kept, words = 0, words_of(table.n[BLOCKS])
    for k in range(1, table.n[SLICES]):
        if not same(table, k, kept):
            kept += 1
            if kept < k:
                copy_slice(table, k, kept, words)
    table.n[SLICES] = kept + 1


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
def window(table: Any, start: int, end: int) -> tuple[int, int]:
    """Make both dates bounds of slices; gives the first slice and one past the last."""
    i = split_slice(table, start)
    return i, split_slice(table, end) if end < NEVER else table.n[SLICES]


@kernel
def join(table: Any, start: int, end: int) -> None:
    """Join what these dates need not part any more."""
    drop_if_same(table, end)
    drop_if_same(table, start)


@kernel
def remove(table: Any, row: Any, i: int, j: int) -> None:
    """The row's blocks are not free in slices ``[i, j)``, whether they were before or not."""
    for w in range(words_of(table.n[BLOCKS])):
        whole = weight(table.first, w, row[w])
        for k in range(i, j):
            lost = table.free[k, w] & row[w]
            table.free[k, w] ^= lost
            table.f[k] -= whole if lost == row[w] else weight(table.first, w, lost)


@kernel
def add(table: Any, row: Any, i: int, j: int) -> None:
    """The row's blocks are free in slices ``[i, j)``, those that are up."""
    for w in range(words_of(table.n[BLOCKS])):
        whole = weight(table.first, w, row[w])
        for k in range(i, j):
            won = row[w] & ~table.free[k, w] & ~table.down[0, w]
            table.free[k, w] |= won
            table.f[k] += whole if won == row[w] else weight(table.first, w, won)


@kernel
def take(table: Any, row: Any, start: int, end: int) -> None:
    """The row's blocks are in use over ``[start, end)``."""
    if start < end:
        i, j = window(table, start, end)
        remove(table, row, i, j)
        join(table, start, end)


@kernel
def give(table: Any, row: Any, start: int, end: int) -> None:
    """The row's blocks are not in use any more over ``[start, end)``."""
    if start < end:
        i, j = window(table, start, end)
        add(table, row, i, j)
        join(table, start, end)


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
def free_in(table: Any, k: int) -> int:
    """Let ``fit`` be what is free in slice ``k``; gives the number of nodes."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] = table.free[k, w]
    return table.f[k]


@kernel
def excess(table: Any, k: int) -> int:
    """How many nodes of ``fit`` are not free in slice ``k``."""
    nodes = 0
    for w in range(words_of(table.n[BLOCKS])):
        nodes += weight(table.first, w, table.fit[0, w] & ~table.free[k, w])
    return nodes


@kernel
def narrow(table: Any, k: int) -> None:
    """Leave in ``fit`` what is free in slice ``k`` too."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] &= table.free[k, w]


@kernel
def first_fit(table: Any, size: int, duration: int, since: int) -> int:
    """Earliest beginning of a slice from ``since`` on at which the job fits; NEVER if none.

    ``fit`` is left with the nodes that are free in the whole window. While the search goes on it
    holds those that are free in all of the slices ``[i, j)``, always enough; when slice ``j`` makes
    them too few, the window can only begin later: after the last slice that clashes with it.
    """
    n, left = table.n[SLICES], 0
    i = j = step_at(table.t, n, since)
    while i < n:
        if i < j and (j == n or table.t[j] >= table.t[i] + duration):
            return table.t[i]
        if table.f[j] < size:
            i = j = j + 1
            continue
        if i < j:
            left -= excess(table, j)
            if left >= size:
                narrow(table, j)
                j += 1
                continue
        left = free_in(table, j)
        k = j - 1
        while k >= i:
            fewer = left - excess(table, k)
            if fewer < size:
                break
            left = fewer
            narrow(table, k)
            k -= 1
        i = k + 1
        j += 1
    return NEVER


@kernel
def fits_now(table: Any, size: int, duration: int) -> bool:
    """Whether the job can start at once; then ``fit`` holds the nodes it may have."""
    left = free_in(table, 0)
    k = 1
    while left >= size and k < table.n[SLICES] and table.t[k] < table.t[0] + duration:
        left -= excess(table, k)
        narrow(table, k)
        k += 1
    return left >= size


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
    """Reservation ``k`` gets the lowest nodes of ``fit`` from ``start`` on; none if NEVER."""
    table.start[k] = table.end[k] = start
    if start < NEVER:
        table.end[k] = start + duration
        hold_lowest(table, k, size)
        take(table, table.held[k], start, table.end[k])
    else:
        table.held[k, : words_of(table.n[BLOCKS])] = 0


@kernel
def lift(table: Any, k: int) -> None:
    """The nodes of reservation ``k`` are free again; the bounds of its slices stay."""
    if table.end[k] > table.t[0] and table.start[k] < NEVER:
        i, j = window(table, max(table.start[k], table.t[0]), table.end[k])
        add(table, table.held[k], i, j)


@kernel
def clear(table: Any) -> None:
    """Withdraw all reservations."""
    for k in range(table.n[RESERVED]):
        lift(table, k)
    table.n[RESERVED] = 0
    join_all(table)


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
