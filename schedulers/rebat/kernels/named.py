# SPDX-License-Identifier: Apache-2.0
"""Availability by named nodes, as in Batsched's schedule: first fit and reservations.

Placement is first fit, in time and in space: the earliest beginning of a slice from which enough
nodes, the same ones, stay free for the whole duration; and of these the lowest-numbered. A slice
that could be joined to the one before changes nothing: what fits there fits before.
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
from rebat.kernels.jit import loop
from rebat.kernels.slices import add, join_all, take, window


@loop
def free_in(table: Any, k: int) -> int:
    """Let ``fit`` be what is free in slice ``k``; gives the number of nodes."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] = table.free[k, w]
    return table.f[k]


@loop
def excess(table: Any, k: int) -> int:
    """How many nodes of ``fit`` are not free in slice ``k``."""
    nodes = 0
    for w in range(words_of(table.n[BLOCKS])):
        nodes += weight(table.first, w, table.fit[0, w] & ~table.free[k, w])
    return nodes


@loop
def narrow(table: Any, k: int) -> None:
    """Leave in ``fit`` what is free in slice ``k`` too."""
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] &= table.free[k, w]


@loop
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


@loop
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


@loop
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
    """Reservation ``k`` gets the lowest nodes of ``fit`` from ``start`` on; none if NEVER."""
    table.start[k] = table.end[k] = start
    if start < NEVER:
        table.end[k] = start + duration
        hold_lowest(table, k, size)
        take(table, table.held[k], start, table.end[k])
    else:
        table.held[k, : words_of(table.n[BLOCKS])] = 0


@loop
def lift(table: Any, k: int) -> None:
    """The nodes of reservation ``k`` are free again; the bounds of its slices stay."""
    if table.end[k] > table.t[0] and table.start[k] < NEVER:
        i, j = window(table, max(table.start[k], table.t[0]), table.end[k])
        add(table, table.held[k], i, j)


@loop
def clear(table: Any) -> None:
    """Withdraw all reservations."""
    for k in range(table.n[RESERVED]):
        lift(table, k)
    table.n[RESERVED] = 0
    join_all(table)


@loop
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
