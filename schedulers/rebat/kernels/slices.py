# SPDX-License-Identifier: Apache-2.0
"""Time slices, and the nodes that are free in each. ``rebat.kernels.blocks`` declares the arrays.

The first slice begins at 0, or at the time of the last call of `forget`. The last slice has no end.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.blocks import BLOCKS, SLICES, mark_nodes, weight, words_of
from rebat.kernels.counts import NEVER, step_at
from rebat.kernels.jit import inner, loop


@inner
def split_slice(table: Any, time: int) -> int:
    """Make ``time`` the start of a slice, and return the index of this slice."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, time)
    if table.t[i] == time:
        return i
    for k in range(n, i + 1, -1):
        copy_slice(table, k - 1, k, words)
    copy_slice(table, i, i + 1, words)
    table.t[i + 1] = time
    table.n[SLICES] = n + 1
    return i + 1


@inner
def copy_slice(table: Any, source: int, target: int, words: int) -> None:
    """Copy slice ``source`` over slice ``target``."""
    table.t[target] = table.t[source]
    table.f[target] = table.f[source]
    for w in range(words):
        table.free[target, w] = table.free[source, w]


@loop
def same(table: Any, i: int, j: int) -> bool:
    """Return whether the same nodes are free in slices ``i`` and ``j``."""
    w, words = 0, words_of(table.n[BLOCKS])
    while w < words and table.free[i, w] == table.free[j, w]:
        w += 1
    return w == words


@inner
def drop_if_same(table: Any, time: int) -> None:
    """Join the slice that begins at ``time`` with the previous slice if both are equal."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, time)
    if i > 0 and table.t[i] == time and same(table, i, i - 1):
        for k in range(i, n - 1):
            copy_slice(table, k + 1, k, words)
        table.n[SLICES] = n - 1


@inner
def join_all(table: Any) -> None:
    """Join each slice with the previous slice if both are equal."""
    last, words = 0, words_of(table.n[BLOCKS])
    for k in range(1, table.n[SLICES]):
        if not same(table, k, last):
            last += 1
            if last < k:
                copy_slice(table, k, last, words)
    table.n[SLICES] = last + 1


@loop
def forget(table: Any, now: int) -> None:
    """Delete the past. The slice that contains ``now`` then begins at ``now``."""
    n, words = table.n[SLICES], words_of(table.n[BLOCKS])
    i = step_at(table.t, n, now)
    if i > 0:
        for k in range(i, n):
            copy_slice(table, k, k - i, words)
    table.t[0] = now
    table.n[SLICES] = n - i


@inner
def window(table: Any, start: int, end: int) -> tuple[int, int]:
    """Split slices at both times. Return the slices that begin at ``start`` and at ``end``."""
    i = split_slice(table, start)
    return i, split_slice(table, end) if end < NEVER else table.n[SLICES]


@loop
def join(table: Any, start: int, end: int) -> None:
    """Join the two slices at ``start``, and the two slices at ``end``, if they are equal."""
    drop_if_same(table, end)
    drop_if_same(table, start)


@inner
def remove(table: Any, row: Any, i: int, j: int) -> None:
    """Mark the blocks of ``row`` as not free in slices ``[i, j)``. Some may already be marked."""
    for w in range(words_of(table.n[BLOCKS])):
        whole = weight(table.first, w, row[w])
        for k in range(i, j):
            lost = table.free[k, w] & row[w]
            table.free[k, w] ^= lost
            table.f[k] -= whole if lost == row[w] else weight(table.first, w, lost)


@loop
def add(table: Any, row: Any, i: int, j: int) -> None:
    """In slices ``[i, j)``, mark as free every block of ``row`` that is not down."""
    for w in range(words_of(table.n[BLOCKS])):
        whole = weight(table.first, w, row[w])
        for k in range(i, j):
            won = row[w] & ~table.free[k, w] & ~table.down[0, w]
            table.free[k, w] |= won
            table.f[k] += whole if won == row[w] else weight(table.first, w, won)


@inner
def take(table: Any, row: Any, start: int, end: int) -> None:
    """Mark the blocks of ``row`` as used over ``[start, end)``."""
    if start < end:
        i, j = window(table, start, end)
        remove(table, row, i, j)
        join(table, start, end)


@inner
def give(table: Any, row: Any, start: int, end: int) -> None:
    """Mark the blocks of ``row`` as unused over ``[start, end)``."""
    if start < end:
        i, j = window(table, start, end)
        add(table, row, i, j)
        join(table, start, end)


# ---- nodes


@loop
def take_nodes(table: Any, intervals: Any, start: int, end: int) -> None:
    """Mark the nodes of ``intervals`` as used over ``[start, end)``."""
    mark_nodes(table, intervals)
    take(table, table.mark[0], start, end)


@loop
def give_nodes(table: Any, intervals: Any, start: int, end: int) -> None:
    """Mark the nodes of ``intervals`` as unused over ``[start, end)``."""
    mark_nodes(table, intervals)
    give(table, table.mark[0], start, end)


@loop
def fail(table: Any, intervals: Any) -> None:
    """Mark the nodes of ``intervals`` as down. They are unusable until their repair."""
    take_nodes(table, intervals, table.t[0], NEVER)
    for w in range(words_of(table.n[BLOCKS])):
        table.down[0, w] |= table.mark[0, w]


@loop
def repair(table: Any, intervals: Any) -> None:
    """Mark the nodes of ``intervals`` as up, and free from now on."""
    mark_nodes(table, intervals)
    for w in range(words_of(table.n[BLOCKS])):
        table.down[0, w] &= ~table.mark[0, w]
    give(table, table.mark[0], table.t[0], NEVER)
