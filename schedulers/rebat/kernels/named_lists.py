# SPDX-License-Identifier: Apache-2.0
"""Queue scheduling on named nodes: append, compress, backfill (see ``rebat.kernels.named``).

The arguments ``size`` and ``duration`` are arrays over the queued jobs. Reservation ``k`` belongs
to the job at position ``k`` of the queue.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.blocks import BLOCKS, RESERVED, SLICES, merge_blocks, weight, words_of
from rebat.kernels.counts import NEVER, step_at
from rebat.kernels.jit import inner, loop
from rebat.kernels.named import clear, first_fit, fits_now, lift, reserve
from rebat.kernels.slices import join


@loop
def place(table: Any, size: Any, duration: Any, last: int) -> None:
    """Reserve the first fit for each job before ``last`` that has no reservation, in queue order.

    No nodes are freed during this call. Therefore, a job cannot begin before an earlier placed job
    that is at most as large and as long.
    """
    first = table.n[RESERVED]
    for k in range(first, last):
        since = table.t[0]
        for i in range(first, k):
            if size[i] <= size[k] and duration[i] <= duration[k] and table.start[i] > since:
                since = table.start[i]
        fit = first_fit(table, size[k], duration[k], since) if since < NEVER else NEVER
        table.n[RESERVED] = k + 1
        reserve(table, k, size[k], duration[k], fit)


@inner
def fits_from(table: Any, k: int, size: int, i: int, end: int) -> int:
    """Return ``i`` if ``size`` nodes stay free from slice ``i`` until ``end``, else a later slice.

    The nodes of reservation ``k`` count as free. The later slice is the next slice from which
    ``size`` nodes may stay free. No window of the same length can begin between ``i`` and this
    slice.
    """
    n, j = table.n[SLICES], i + 1
    left = table.f[i]
    for w in range(words_of(table.n[BLOCKS])):
        table.fit[0, w] = table.free[i, w]
    while j < n and table.t[j] < end:
        left -= narrow_without(table, k, j)
        if left < size:
            return after_conflict(table, k, size, j)
        j += 1
    return i


@inner
def narrow_without(table: Any, k: int, j: int) -> int:
    """Remove from ``fit`` the blocks that are not free in slice ``j``, and count their nodes.

    The nodes of reservation ``k`` count as free.
    """
    own, lost = table.start[k] <= table.t[j] < table.end[k], 0
    for w in range(words_of(table.n[BLOCKS])):
        gone = table.fit[0, w] & ~table.free[j, w]
        if own:
            gone &= ~table.held[k, w]
        if gone:
            lost += weight(table.first, w, gone)
            table.fit[0, w] ^= gone
    return lost


@inner
def after_conflict(table: Any, k: int, size: int, j: int) -> int:
    """Return the first slice from which ``size`` nodes stay free up to slice ``j``.

    The nodes of reservation ``k`` count as free.
    """
    own, left = table.start[k] <= table.t[j] < table.end[k], 0
    for w in range(words_of(table.n[BLOCKS])):
        free = table.free[j, w] | (table.held[k, w] if own else 0)
        table.fit[0, w] = free
        left += weight(table.first, w, free)
    while left >= size:
        j -= 1
        left -= narrow_without(table, k, j)
    return j + 1


@inner
def earlier_start(table: Any, k: int, size: int, duration: int, before: int) -> int:
    """Return the earliest time before ``before`` at which reservation ``k`` fits, or NEVER.

    The numbers of free nodes are checked first. After its present start, the reservation can use
    its own nodes.
    """
    n, reserved = table.n[SLICES], table.start[k]
    i = j = 0  # the slices [i, j) have enough free nodes
    while i < n and table.t[i] < before:
        end = min(table.t[i] + duration, reserved)
        while j < n and (j == i or table.t[j] < end) and table.f[j] >= size:
            j += 1
        if j == i or (j < n and table.t[j] < end):
            i = j = j + 1
            continue
        since = fits_from(table, k, size, i, table.t[i] + duration)
        if since == i:
            return table.t[i]
        i = since
        j = max(i, j)
    return NEVER


@inner
def may_move_down(table: Any, k: int) -> bool:
    """Return whether a lower node can replace the highest node of reservation ``k``.

    The lower node must be free in the entire window of the reservation.
    """
    fit, held = table.fit[0], table.held[k]
    top = words_of(table.n[BLOCKS]) - 1
    while top > 0 and not held[top]:
        top -= 1
    for w in range(top):
        fit[w] = -1
    below = held[top]
    for shift in (1, 2, 4, 8, 16, 32):
        below |= below >> shift
    fit[top] = below
    n = table.n[SLICES]
    i = step_at(table.t, n, table.start[k])
    while i < n and table.t[i] < table.end[k]:
        any_free = False
        for w in range(top + 1):
            fit[w] &= table.free[i, w]
            any_free |= fit[w] != 0
        if not any_free:
            return False
        i += 1
    return True


@loop
def compress(table: Any, size: Any, duration: Any, opened: int) -> int:
    """Move each reservation to its first fit, one after another.

    No job moves to a later time. Some nodes were freed since the last pass. ``opened`` is the
    latest time until which any of them was in use. No new window begins after ``opened``.

    Returns
    -------
    moved : int
        The latest end of the reservations that were moved in this pass. Their nodes count as freed
        in the next pass, because jobs ahead in the queue could not use them in this pass.
    """
    merge_blocks(table)
    moved = table.t[0]
    for k in range(table.n[RESERVED]):
        start, end = table.start[k], table.end[k]
        horizon = max(opened, moved)
        since = earlier_start(table, k, size[k], duration[k], min(start, horizon))
        if since == NEVER and start < min(horizon, NEVER) and may_move_down(table, k):
            since = start
        if since < NEVER and move(table, k, size[k], duration[k], since) and start < NEVER:
            moved = max(moved, end)
    return moved


@inner
def move(table: Any, k: int, size: int, duration: int, since: int) -> bool:
    """Move reservation ``k`` to its first fit from slice ``since`` on.

    The function returns whether the start or the nodes of the reservation have changed.
    """
    start, end, words = table.start[k], table.end[k], words_of(table.n[BLOCKS])
    lift(table, k)
    for w in range(words):
        table.mark[0, w] = table.held[k, w]
    reserve(table, k, size, duration, first_fit(table, size, duration, since))
    # Most reservations return to their old window. Therefore, equal slices are joined only later.
    if table.start[k] != start:
        join(table, start, end)
        return True
    moved = words_of(table.n[BLOCKS]) != words
    for w in range(words):
        moved |= table.held[k, w] != table.mark[0, w]
    return moved


@loop
def backfill(
    table: Any, size: Any, duration: Any, queued: int, depth: int, first: bool = False
) -> None:
    """Replace all reservations by at most ``depth`` new ones (0: greedy, 1: EASY).

    In queue order, each job starts now if it can. The first ``depth`` jobs that cannot start now
    get reservations. Further jobs that cannot start wait without a reservation (``start`` is
    NEVER). `counts.backfill` explains ``first``.
    """
    clear(table)
    merge_blocks(table)
    now, reserved = table.t[0], 0
    for k in range(queued):
        table.n[RESERVED] = k + 1
        if (k if first else reserved) < depth:
            fit = first_fit(table, size[k], duration[k], now)
            if now < fit < NEVER:
                reserved += 1
        else:
            fit = now if fits_now(table, size[k], duration[k]) else NEVER
        reserve(table, k, size[k], duration[k], fit)
