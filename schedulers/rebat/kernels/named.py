# SPDX-License-Identifier: Apache-2.0
"""First fit and reservations on named nodes, as in the schedule of Batsched.

A job gets the first fit in time: the earliest start of a slice from which enough nodes stay free
for its duration. It also gets the first fit in space: the lowest-numbered nodes that stay free. If
two neighbouring slices are equal, they need not be joined, because a job that fits from the second
slice on also fits from the first.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.blocks import (
    BITS,
    BLOCKS,
    RESERVED,
    SLICES,
    number,
    split_block,
    weight,
    words_of,
)
from rebat.kernels.counts import NEVER, step_at
from rebat.kernels.jit import inner, loop
from rebat.kernels.slices import add, join_all, take, window


@inner
def free_in(table: Any, k: int) -> int:
    """Set ``fit`` to the free blocks of slice ``k``, and return their number of nodes."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] = table.free[k, w]
    return table.f[k]


@inner
def excess(table: Any, k: int) -> int:
    """Return the number of nodes of ``fit`` that are not free in slice ``k``."""
    nodes = 0
    for w in range(words_of(table.n[BLOCKS])):
        nodes += weight(table.first, w, table.fit[0, w] & ~table.free[k, w])
    return nodes


@loop
def narrow(table: Any, k: int) -> None:
    """Remove from ``fit`` the blocks that are not free in slice ``k``."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] &= table.free[k, w]


@inner
def first_fit(table: Any, size: int, duration: int, since: int) -> int:
    """Return the earliest start at which the job fits, starting at slice ``since``, or NEVER.

    After the call, ``fit`` contains the nodes that are free in the entire window. During the search
    it contains the nodes that are free in all slices ``[i, j)``. There are always enough of them.
    If too few of them are free in slice ``j``, the window must begin after the last slice that
    prevents it.
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


@inner
def fits_now(table: Any, size: int, duration: int) -> bool:
    """Return whether the job can start immediately. If so, ``fit`` contains the available nodes."""
    left = free_in(table, 0)
    k = 1
    while left >= size and k < table.n[SLICES] and table.t[k] < table.t[0] + duration:
        left -= excess(table, k)
        narrow(table, k)
        k += 1
    return left >= size


# ---- reservations


@inner
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


@loop
def reserve(table: Any, k: int, size: int, duration: int, start: int) -> None:
    """Reserve the lowest nodes of ``fit`` for reservation ``k``, beginning at ``start``.

    If ``start`` is NEVER, it gets no nodes.
    """
    table.start[k] = table.end[k] = start
    if start < NEVER:
        table.end[k] = start + duration
        hold_lowest(table, k, size)
        take(table, table.held[k], start, table.end[k])
    else:
        table.held[k, : words_of(table.n[BLOCKS])] = 0


@inner
def lift(table: Any, k: int) -> None:
    """Free the nodes of reservation ``k``. Slices that become equal are not joined."""
    if table.end[k] > table.t[0] and table.start[k] < NEVER:
        i, j = window(table, max(table.start[k], table.t[0]), table.end[k])
        add(table, table.held[k], i, j)


@loop
def clear(table: Any) -> None:
    """Remove all reservations and free their nodes."""
    for k in range(table.n[RESERVED]):
        lift(table, k)
    table.n[RESERVED] = 0
    join_all(table)


@loop
def drop_begun(table: Any, now: int) -> None:
    """Delete the reservations that have started, because their jobs now run on the nodes."""
    n_kept, words = 0, words_of(table.n[BLOCKS])
    for k in range(table.n[RESERVED]):
        if table.start[k] <= now:
            continue
        if n_kept < k:
            table.start[n_kept] = table.start[k]
            table.end[n_kept] = table.end[k]
            for w in range(words):
                table.held[n_kept, w] = table.held[k, w]
        n_kept += 1
    table.n[RESERVED] = n_kept
