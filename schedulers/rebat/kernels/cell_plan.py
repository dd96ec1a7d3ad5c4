# SPDX-License-Identifier: Apache-2.0
"""Plans of nodes that belong to reservations, or to several partitions.

Nodes that belong to the same partitions and reservations form a *cell*, and are interchangeable. A
job uses the cells of its partition. It first uses the cells that belong to the fewest partitions
and reservations, so that the nodes that several of them share remain free.

A reservation has one *window* of time, or repeated windows. A job starts on no node that it could
still use in a window that is closed to it. Only the windows that *bind* divide nodes into cells
(see `bind_windows`). Each plan computes the profile of free nodes of each cell again, from the
nodes that attempts hold and from the planned starts (`profile`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rebat.kernels.blocks import nodes_of
from rebat.kernels.counts import NEVER, any_before, step_at
from rebat.kernels.jit import inner, loop
from rebat.kernels.pool import BLOCK, FREE, extend

AHEAD = 8
"""Number of future windows of a repeated reservation that a plan considers."""

APPEND, COMPRESS, REBUILD = 1, 2, 3
"""Ways to update a plan (`rebat.state.codes`)."""


class CellTable(NamedTuple):
    """The partitions and reservations of a machine, and the arrays of plans in cells.

    There are p groups of partitions, q partitions, r reservations, w kinds of owners of jobs, at
    most c cells in a group, n nodes, and k attempts. Times are in microseconds. Arrays are int64
    if nothing else is stated.

    Attributes
    ----------
    shared : bool array, shape (p,)
        Whether partitions of a group share nodes, so that all of its plans are in cells.
    group, counted_with, members : arrays, shape (q,), and bool array, shape (q, n)
        The group of each partition, the partition with which its planned starts are counted for
        the depth, and its nodes.
    before : array, shape (r, n + 1)
        The number of nodes of a reservation before each node.
    begin, length, every : arrays, shape (r,)
        The first window of each reservation, and the time between windows (0: there is only one).
    asks, admits : bool arrays, shape (w, r)
        Whether a job requested a reservation, and whether a reservation is for its user or account.
    n_inside, n_members : arrays, shapes (q, r) and (q,)
        Number of nodes of each partition, in each reservation and in total.
    slot_begin, slot_end : arrays, shape (r * AHEAD,)
        The windows of each reservation that have not ended. An end of 0 means that there is none.
    binding : array, shape (p, r * AHEAD)
        The beginning of each window that binds, plus 1, or 0.
    home, cell_of, n_cells, order, n_order, closed : arrays
        The group and the cell of each node, the number of cells of each group, the cells of each
        partition in the order in which jobs use them, their number, and the cells in each
        reservation (bool, p, r, c).
    n_nodes, nodes_before : arrays, shapes (p, c) and (c, n + 1)
        The number of nodes of each cell, in total and before each node.
    open : bool array, shape (v, q)
        The partitions in which the jobs with each value of ``places`` may run.
    wall, who, partition, places : arrays, shape (k,)
        Walltime of each attempt, kind of owner, partition, and row of ``open``.
    reserved : array, shape (k, c)
        The nodes of each cell that an attempt will use, or holds.
    holders, n_holders : arrays, shapes (p, k) and (p,)
        The attempts that hold nodes of each group, and their number.
    place, until, nodes_at, n_nodes_at : arrays, shape (k,)
        Of holders: place in ``holders``, planned end, and the intervals of their nodes.
    queued : array
        The attempts of a queue, in its order.
    t, f : arrays
        Times of a profile, and free nodes of each cell.
    times, rows, signs : arrays
        Events of a profile.
    opened, ordered, out, codes : arrays
        Scratch.
    """

    shared: Any
    group: Any
    counted_with: Any
    members: Any
    before: Any
    begin: Any
    length: Any
    every: Any
    asks: Any
    admits: Any
    n_inside: Any
    n_members: Any
    slot_begin: Any
    slot_end: Any
    binding: Any
    home: Any
    cell_of: Any
    n_cells: Any
    order: Any
    n_order: Any
    closed: Any
    n_nodes: Any
    nodes_before: Any
    open: Any
    wall: Any
    who: Any
    partition: Any
    places: Any
    reserved: Any
    holders: Any
    n_holders: Any
    place: Any
    until: Any
    nodes_at: Any
    n_nodes_at: Any
    queued: Any
    t: Any
    f: Any
    times: Any
    rows: Any
    signs: Any
    opened: Any
    ordered: Any
    out: Any
    codes: Any


# ---- reservations


@loop
def find_windows(cells: Any, now: int) -> None:
    """Find the windows that have not ended, for each reservation."""
    for r in range(cells.begin.shape[0]):
        begin, length, every, first = cells.begin[r], cells.length[r], cells.every[r], 0
        if every:
            first = max(0, (now - begin - length) // every + 1)
        for k in range(first, first + (AHEAD if every else 1)):
            s = r * AHEAD + k % AHEAD
            cells.slot_begin[s] = begin + k * every
            end = min(begin + k * every + length, NEVER)
            cells.slot_end[s] = end if end > now else 0


@loop
def release_windows(cells: Any, p: int) -> bool:
    """Let windows that have ended no longer bind. Return whether there are any."""
    any_ended = False
    for s in range(cells.slot_end.shape[0]):
        bound = cells.binding[p, s]
        if bound and (cells.slot_end[s] == 0 or bound != cells.slot_begin[s] + 1):
            cells.binding[p, s] = 0
            any_ended = True
    return any_ended


@inner
def fits_in(cells: Any, a: int, r: int, size: int, now: int) -> bool:
    """Return whether a job that requests a reservation can run in one of its windows."""
    most = 0
    for q in range(cells.group.shape[0]):
        if cells.open[cells.places[a], q]:
            most = max(most, cells.n_inside[q, r])
    if most < size:
        return False
    if cells.every[r]:
        return bool(cells.wall[a] <= cells.length[r])
    return bool(min(cells.begin[r] + cells.length[r], NEVER) > now)


@inner
def requests(cells: Any, a: int, size: int, now: int) -> bool:
    """Return whether a job is bound to a reservation that it requested."""
    for r in range(cells.begin.shape[0]):
        if cells.asks[cells.who[a], r] and fits_in(cells, a, r, size, now):
            return True
    return False


@inner
def opens(cells: Any, a: int, r: int, requested: bool) -> bool:
    """Return whether a job may use the nodes of a reservation in its windows."""
    return bool(cells.asks[cells.who[a], r] if requested else cells.admits[cells.who[a], r])


@loop
def never_fits(cells: Any, a: int, size: int, now: int) -> bool:
    """Return whether a job fits between no two windows of the reservations that are closed to it.

    It can then use too few nodes.
    """
    requested, any_blocks = requests(cells, a, size, now), False
    for r in range(cells.begin.shape[0]):
        any_blocks |= blocks(cells, a, r, requested)
    if not any_blocks:
        return False
    for q in range(cells.group.shape[0]):
        if not cells.open[cells.places[a], q]:
            continue
        if cells.n_members[q] < size:
            return False
        n_left = 0
        for node in range(cells.members.shape[1]):
            usable = cells.members[q, node]
            for r in range(cells.begin.shape[0] if usable else 0):
                if cells.before[r, node + 1] > cells.before[r, node]:
                    usable &= not blocks(cells, a, r, requested)
            n_left += usable
        if n_left >= size:
            return False
    return True


@inner
def blocks(cells: Any, a: int, r: int, requested: bool) -> bool:
    """Return whether a job fits between no two windows of a reservation that is closed to it."""
    too_long = 0 < cells.every[r] < cells.wall[a] + cells.length[r]
    return too_long and not opens(cells, a, r, requested)


@loop
def bind_windows(
    cells: Any, table: Any, p: int, named: bool, size: Any, start: Any, n: int, now: int,
    intervals: Any,
) -> bool:  # fmt: skip
    """Let windows bind that the plan violates, or that a job can use. Return whether there are any.

    ``table`` is the plan of named nodes, or None, and ``named`` whether it has the planned starts.
    ``intervals`` is scratch.
    """
    any_new = False
    for s in range(cells.slot_end.shape[0]):
        if cells.slot_end[s] == 0 or cells.binding[p, s] == cells.slot_begin[s] + 1:
            continue
        r, begin, end = s // AHEAD, cells.slot_begin[s], cells.slot_end[s]
        for at in range(n):
            if start[at] >= NEVER:
                continue
            a = cells.queued[at]
            q, requested = cells.partition[a], requests(cells, a, size[at], now)
            inside, binds = cells.n_inside[q, r], False
            if opens(cells, a, r, requested):
                is_now = begin <= start[at] <= now and inside < cells.n_members[q]
                binds = inside > 0 and (requested or is_now)
            elif start[at] < end and cells.wall[a] > begin - start[at]:
                binds = inside > 0
                if table is not None and named and binds:
                    k, binds = nodes_of(table, table.held[at], intervals), False
                    for i in range(k):
                        low, high = intervals[i, 0], intervals[i, 1]
                        binds |= cells.before[r, high + 1] > cells.before[r, low]
            if binds:
                cells.binding[p, s] = begin + 1
                any_new = True
                break
    return any_new


@loop
def in_cells(cells: Any, p: int) -> bool:
    """Return whether a group must be planned in cells."""
    result = cells.shared[p]
    for s in range(cells.slot_end.shape[0]):
        result |= cells.binding[p, s] > 0
    return bool(result)


@loop
def divide(cells: Any, p: int, first: int, end: int, nodes: Any) -> None:
    """Divide the nodes of a group into cells, and sort the cells of each partition.

    ``nodes`` contains the intervals of the nodes of attempts.
    """
    n, cell_of, codes = 1, cells.cell_of, cells.codes
    n_q, n_r = cells.group.shape[0], cells.begin.shape[0]
    for node in range(first, end):
        if cells.home[node] == p:
            cell_of[node] = 0
    for x in range(n_q + n_r):
        if not divides(cells, p, x):
            continue
        for code in range(2 * n):
            codes[code] = -1
        n = 0
        for node in range(first, end):
            if cells.home[node] != p:
                continue
            code = 2 * cell_of[node] + contains(cells, x, node)
            if codes[code] < 0:
                codes[code] = n
                n += 1
            cell_of[node] = codes[code]
    cells.n_cells[p] = n
    # the cells in the order of their first nodes, and the number of sets to which each belongs
    n_found, weight, ahead = 0, cells.out, cells.ordered
    for node in range(first, end):
        c = cell_of[node]
        if cells.home[node] != p or c < n_found:
            continue
        n_found, weight[c] = n_found + 1, 0
        for q in range(n_q):
            weight[c] += cells.group[q] == p and cells.members[q, node]
        for r in range(n_r):
            cells.closed[p, r, c] = contains(cells, n_q + r, node) > 0
            for s in range(r * AHEAD, (r + 1) * AHEAD):
                weight[c] += cells.binding[p, s] > 0 and cells.closed[p, r, c]
        i = c
        while i > 0 and weight[ahead[i - 1]] > weight[c]:
            ahead[i] = ahead[i - 1]
            i -= 1
        ahead[i] = c
        codes[c] = node
    for q in range(n_q):
        if cells.group[q] != p:
            continue
        k = 0
        for i in range(n):
            if cells.members[q, codes[ahead[i]]]:
                cells.order[q, k] = ahead[i]
                k += 1
        cells.n_order[q] = k
    count_nodes(cells, p, first, end)
    for i in range(cells.n_holders[p]):
        count_held(cells, cells.holders[p, i], p, nodes)


@inner
def count_nodes(cells: Any, p: int, first: int, end: int) -> None:
    """Count the nodes of each cell of a group, in total and before each node."""
    for c in range(cells.nodes_before.shape[0]):
        before, cells.n_nodes[p, c] = cells.nodes_before[c], 0
        for node in range(first, end):
            inside = cells.cell_of[node] == c
            before[node + 1] = before[node] + inside
            cells.n_nodes[p, c] += inside and cells.home[node] == p


@inner
def divides(cells: Any, p: int, x: int) -> bool:
    """Return whether a set divides a group: one of its partitions, or a reservation that binds."""
    n_q = cells.group.shape[0]
    if x < n_q:
        return bool(cells.group[x] == p)
    result = False
    for s in range((x - n_q) * AHEAD, (x - n_q + 1) * AHEAD):
        result |= cells.binding[p, s] > 0
    return result


@inner
def contains(cells: Any, x: int, node: int) -> int:
    """Return 1 if a set (see `divides`) contains a node, or 0."""
    n_q = cells.group.shape[0]
    if x < n_q:
        return int(cells.members[x, node])
    return int(cells.before[x - n_q, node + 1] - cells.before[x - n_q, node])


# ---- the profile


@loop
def hold(cells: Any, p: int, a: int, first: int, k: int, nodes: Any, until: int) -> None:
    """Note the nodes of an attempt, as ``k`` intervals, and its planned end."""
    i = cells.n_holders[p]
    if is_holder(cells, p, a):
        i = cells.place[a]
    else:
        cells.n_holders[p] += 1
    cells.holders[p, i], cells.place[a] = a, i
    cells.nodes_at[a], cells.n_nodes_at[a], cells.until[a] = first, k, until
    count_held(cells, a, p, nodes)


@inner
def is_holder(cells: Any, p: int, a: int) -> bool:
    """Return whether an attempt is a holder."""
    i = cells.place[a]
    return bool(i < cells.n_holders[p] and cells.holders[p, i] == a)


@loop
def let_go(cells: Any, p: int, a: int) -> None:
    """Note that an attempt holds no nodes."""
    if is_holder(cells, p, a):
        cells.n_holders[p] -= 1
        other, i = cells.holders[p, cells.n_holders[p]], cells.place[a]
        cells.holders[p, i], cells.place[other] = other, i


@inner
def count_held(cells: Any, a: int, p: int, nodes: Any) -> None:
    """Count the nodes of each cell that a holder has, including nodes that are down."""
    for c in range(cells.n_cells[p]):
        k, before = 0, cells.nodes_before[c]
        for i in range(cells.nodes_at[a], cells.nodes_at[a] + cells.n_nodes_at[a]):
            k += before[nodes[i, 1] + 1] - before[nodes[i, 0]]
        cells.reserved[a, c] = k


@inner
def take_down(cells: Any, p: int, owner: Any, down: Any, down_in: Any, sign: int) -> None:
    """Take each node that is down from the free nodes, or from those of its holder (sign -1).

    If the sign is 1, give it back to its holder.
    """
    for b in range(down_in.shape[0]):
        for node in range(b * BLOCK, min((b + 1) * BLOCK, owner.shape[0]) if down_in[b] else 0):
            if not down[node] or cells.home[node] != p:
                continue
            if owner[node] == FREE:
                cells.f[0, cells.cell_of[node]] -= sign < 0
            else:
                cells.reserved[owner[node] - 1, cells.cell_of[node]] += sign


@inner
def sort_events(cells: Any, n: int) -> None:
    """Sort the events of a profile by time (Shell's method)."""
    times, rows, signs, gap = cells.times, cells.rows, cells.signs, 1
    while 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            at, a, sign, k = times[i], rows[i], signs[i], i
            while k >= gap and times[k - gap] > at:
                times[k], rows[k], signs[k] = times[k - gap], rows[k - gap], signs[k - gap]
                k -= gap
            times[k], rows[k], signs[k] = at, a, sign
        gap //= 3


@inner
def profile(cells: Any, p: int, n_events: int, now: int) -> int:
    """Compute the free nodes of each cell over time. Return the number of steps.

    The first row contains the nodes that are free now, if no attempt starts. The events are ends of
    holders, and planned starts and ends.
    """
    t, f, n, k = cells.t, cells.f, 1, cells.n_cells[p]
    sort_events(cells, n_events)
    t[0] = now
    for i in range(n_events):
        at, a = cells.times[i], cells.rows[i]
        if at >= NEVER:
            break
        if at > t[n - 1]:
            t[n] = at
            for c in range(k):
                f[n, c] = f[n - 1, c]
            n += 1
        for c in range(k if a >= 0 else 0):
            f[n - 1, c] += cells.signs[i] * cells.reserved[a, c]
    return n


@inner
def add_event(cells: Any, e: int, at: int, a: int, sign: int) -> int:
    """Add an event of a profile. Return the number of events."""
    cells.times[e], cells.rows[e], cells.signs[e] = at, a, sign
    return e + 1


@inner
def add_windows(cells: Any, p: int, e: int, now: int) -> int:
    """Add a step at the beginning and the end of each window that binds."""
    for s in range(cells.slot_end.shape[0]):
        if cells.binding[p, s]:
            e = add_event(cells, e, max(now, cells.slot_begin[s]), -1, 0)
            e = add_event(cells, e, max(now, cells.slot_end[s]), -1, 0)
    return e


@inner
def change(cells: Any, p: int, n: int, start: int, end: int, a: int, sign: int) -> int:
    """Add ``sign`` times the nodes of an attempt over ``[start, end)``. Return the new ``n``."""
    if end <= start:
        return n
    i, n = split(cells, p, n, start)
    j = n
    if end < NEVER:
        j, n = split(cells, p, n, end)
    for k in range(i, j):
        for c in range(cells.n_cells[p]):
            cells.f[k, c] += sign * cells.reserved[a, c]
    return n


@inner
def split(cells: Any, p: int, n: int, time: int) -> tuple[int, int]:
    """Make ``time`` the start of a step. Return the index of this step and the new ``n``."""
    t, f, i = cells.t, cells.f, step_at(cells.t, n, time)
    if t[i] == time:
        return i, n
    for k in range(n, i + 1, -1):
        t[k] = t[k - 1]
        for c in range(cells.n_cells[p]):
            f[k, c] = f[k - 1, c]
    t[i + 1] = time
    for c in range(cells.n_cells[p]):
        f[i + 1, c] = f[i, c]
    return i + 1, n + 1


# ---- starts


@inner
def open_to(cells: Any, p: int, a: int, size: int, now: int) -> bool:
    """Find the windows that are open to an attempt, and the order in which it uses the cells.

    It first uses the nodes of reservations that are open to it now. Return whether it starts only
    in a reservation that its job requested.
    """
    q, requested, bound, any_now = cells.partition[a], requests(cells, a, size, now), False, False
    for s in range(cells.slot_end.shape[0]):
        r = s // AHEAD
        cells.opened[s] = cells.binding[p, s] > 0 and opens(cells, a, r, requested)
        if cells.opened[s]:
            bound |= requested and cells.n_inside[q, r] >= size
            any_now |= cells.slot_begin[s] <= now
    k = 0
    for is_ahead in (True, False):
        for i in range(cells.n_order[q]):
            c, now_open = cells.order[q, i], False
            for s in range(cells.slot_end.shape[0] if any_now else 0):
                is_open = cells.opened[s] and cells.slot_begin[s] <= now
                now_open |= is_open and cells.closed[p, s // AHEAD, c]
            if now_open == is_ahead:
                cells.ordered[k] = c
                k += 1
    return bound


@inner
def is_closed(cells: Any, p: int, c: int, at: int, longest: int, bound: bool) -> bool:
    """Return whether an attempt that starts in a cell at a time could meet a closed window.

    Until the end of the last window of its reservation, an attempt that is bound to it must fit in
    these windows.
    """
    last, until = 0, at
    for s in range(cells.slot_end.shape[0]):
        if not cells.binding[p, s]:
            continue
        if cells.opened[s]:
            last = max(last, cells.slot_end[s])
            continue
        meets = at < cells.slot_end[s] and cells.slot_begin[s] - at < longest
        if meets and cells.closed[p, s // AHEAD, c]:
            return True
    while bound and at < last and until - at < longest:
        after = until
        for s in range(cells.slot_end.shape[0]):
            inside = cells.slot_begin[s] <= until < cells.slot_end[s]
            if cells.opened[s] and inside and cells.closed[p, s // AHEAD, c]:
                after = cells.slot_end[s]
        if after == until:
            return True
        until = after
    return False


@inner
def fit(cells: Any, p: int, n: int, a: int, size: int, duration: int, latest: int, now: int) -> int:
    """Return the earliest start of an attempt, and write its nodes of each cell into ``reserved``.

    Only starts up to ``latest`` are possible. The result is NEVER if there is none.
    """
    t, f, out, ordered, k = cells.t, cells.f, cells.out, cells.ordered, 0
    bound = open_to(cells, p, a, size, now)
    k = cells.n_order[cells.partition[a]]
    longest, any_binds = cells.wall[a], False
    for s in range(cells.slot_end.shape[0]):
        any_binds |= cells.binding[p, s] > 0
    for i in range(n):
        if t[i] > latest:
            return NEVER
        total = 0
        for x in range(k):
            c = ordered[x]
            out[c] = max(0, f[i, c])
            if any_binds and out[c] and is_closed(cells, p, c, t[i], longest, bound):
                out[c] = 0
            total += out[c]
        j = i + 1
        while total >= size and j < n and t[j] < t[i] + duration:
            for x in range(k):
                c = ordered[x]
                if f[j, c] < out[c]:
                    lower = max(0, f[j, c])
                    total -= out[c] - lower
                    out[c] = lower
            j += 1
        if total < size:
            continue
        left = size
        for c in range(cells.n_cells[p]):
            cells.reserved[a, c] = 0
        for x in range(k):
            c = ordered[x]
            cells.reserved[a, c] = min(out[c], left)
            left -= cells.reserved[a, c]
        return int(t[i])
    return NEVER


@inner
def place(
    cells: Any, p: int, n: int, size: Any, duration: Any, start: Any, begin: int, end: int,
    depth: int, first: bool, now: int,
) -> int:  # fmt: skip
    """Make first-fit reservations for several attempts, in order. Return the new ``n``.

    ``depth`` is the number of attempts of each partition that may start later than now, or -1 for
    all. With ``first``, attempts that can start now also count.
    """
    n_q, made = cells.group.shape[0], cells.codes
    free_now = made[n_q:]
    for q in range(n_q):
        made[q], free_now[q] = 0, free_at_first(cells, q)
    for at in range(begin, end):
        a = cells.queued[at]
        q = cells.partition[a]
        x = cells.counted_with[q]
        latest = NEVER - 1 if depth < 0 or made[x] < depth else now
        if latest == now and size[at] > free_now[q]:
            start[at] = NEVER
            made[x] += first
            continue
        start[at] = fit(cells, p, n, a, size[at], duration[at], latest, now)
        if start[at] < NEVER:
            n = change(cells, p, n, start[at], start[at] + duration[at], a, -1)
        if first or now < start[at] < NEVER:
            made[x] += 1
        for other in range(n_q if start[at] == now else 0):
            free_now[other] = free_at_first(cells, other)
    return n


@inner
def free_at_first(cells: Any, q: int) -> int:
    """Return the number of nodes of a partition that are free in the first step of the profile."""
    n_free = 0
    for i in range(cells.n_order[q]):
        n_free += max(0, cells.f[0, cells.order[q, i]])
    return n_free


@loop
def plan(
    cells: Any, p: int, owner: Any, down: Any, down_in: Any, size: Any, duration: Any, start: Any,
    before: int, n: int, upkeep: int, late: int, depth: int, first: bool, now: int,
) -> None:  # fmt: skip
    """Plan the first ``n`` attempts of a queue.

    Parameters
    ----------
    owner, down, down_in : arrays
        See `rebat.kernels.pool`.
    before : int
        Number of attempts that were in the queue at the last plan.
    upkeep, depth, first
        See `rebat.rules.plan` and `place`.
    late : int
        Planned starts before this time are not valid.
    """
    n_valid = 0
    if depth < 0 and upkeep != REBUILD and not any_before(start, before, late):
        n_valid = before
    for c in range(cells.n_cells[p]):
        cells.f[0, c] = cells.n_nodes[p, c]
        for i in range(cells.n_holders[p]):
            cells.f[0, c] -= cells.reserved[cells.holders[p, i], c]
    take_down(cells, p, owner, down, down_in, -1)
    e = add_windows(cells, p, 0, now)
    for i in range(cells.n_holders[p]):
        a = cells.holders[p, i]
        e = add_event(cells, e, cells.until[a], a, 1)
    for at in range(n_valid):
        if start[at] < NEVER:
            e = add_event(cells, e, start[at], cells.queued[at], -1)
            e = add_event(cells, e, start[at] + duration[at], cells.queued[at], 1)
    steps = profile(cells, p, e, now)
    take_down(cells, p, owner, down, down_in, 1)
    if depth >= 0 or upkeep == REBUILD:
        place(cells, p, steps, size, duration, start, 0, n, depth, first, now)
        return
    if n_valid < before:
        steps = place(cells, p, steps, size, duration, start, 0, before, -1, False, now)
    for at in range(before if upkeep == COMPRESS else 0):
        a = cells.queued[at]
        if start[at] < NEVER:
            steps = change(cells, p, steps, max(start[at], now), start[at] + duration[at], a, 1)
        start[at] = fit(cells, p, steps, a, size[at], duration[at], NEVER - 1, now)
        if start[at] < NEVER:
            steps = change(cells, p, steps, start[at], start[at] + duration[at], a, -1)
    place(cells, p, steps, size, duration, start, before, n, -1, False, now)


@loop
def choose(
    cells: Any, p: int, a: int, owner: Any, down: Any, free: Any, first: int, end: int, out: Any
) -> int:
    """Write the lowest free nodes of the cells of an attempt as intervals, and count them.

    Return -1 if there are too few.
    """
    k, left, wanted = 0, 0, cells.out
    for c in range(cells.n_cells[p]):
        wanted[c] = cells.reserved[a, c]
        left += wanted[c]
    node = first
    while node < end and left > 0:
        if node % BLOCK == 0 and free[node // BLOCK] == 0:
            node += BLOCK
            continue
        c = cells.cell_of[node]
        is_free = owner[node] == FREE and not down[node]
        if is_free and cells.home[node] == p and wanted[c]:
            k = extend(out, k, node, node)
            wanted[c] -= 1
            left -= 1
        node += 1
    return k if left == 0 else -1


# ---- starts without a plan


@loop
def is_open(cells: Any, blocked_by: Any, q: int, a: int) -> bool:
    """Return whether an attempt may run in a partition that no earlier attempt blocks."""
    return bool(blocked_by[q] == 0 and cells.open[cells.places[a], q])


@loop
def next_open(cells: Any, blocked_by: Any, at: int, n: int) -> int:
    """Return the first position from ``at`` of an attempt with an open partition, or ``n``."""
    while at < n:
        for q in range(blocked_by.shape[0]):
            if is_open(cells, blocked_by, q, cells.queued[at]):
                return at
        at += 1
    return n


@loop
def block(cells: Any, blocked_by: Any, a: int) -> None:
    """Let an attempt block all partitions in which it may run."""
    for q in range(blocked_by.shape[0]):
        if is_open(cells, blocked_by, q, a):
            blocked_by[q] = a + 1


@loop
def close(cells: Any, a: int, size: int, now: int, usable: Any) -> None:
    """Mark the nodes as unusable on which reservations do not let an attempt start now."""
    n_slots, opened, end = cells.slot_end.shape[0], cells.opened, now + cells.wall[a]
    requested = requests(cells, a, size, now)
    for s in range(n_slots):
        r = s // AHEAD
        is_now = cells.slot_begin[s] <= now and end <= cells.slot_end[s]
        opened[s] = is_now and opens(cells, a, r, requested) and fits_in(cells, a, r, size, now)
    for node in range(usable.shape[0] if n_slots else 0):
        is_usable, inside = usable[node], not requested
        for s in range(n_slots if is_usable else 0):
            r = s // AHEAD
            if cells.slot_end[s] == 0 or cells.before[r, node + 1] == cells.before[r, node]:
                continue
            if opens(cells, a, r, requested):
                inside |= opened[s]
            elif cells.slot_begin[s] < end:
                is_usable = False
        usable[node] = is_usable and inside


@loop
def find_inside(
    cells: Any, q: int, a: int, size: int, preferred: bool, now: int, usable: Any, out: Any
) -> int:  # fmt: skip
    """Write and count the usable nodes of a partition.

    If ``preferred`` is set, the nodes must be in a window that is open to the attempt now.
    """
    n_slots, opened, count = cells.slot_end.shape[0], cells.opened, 0
    requested, any_open = requests(cells, a, size, now), not preferred
    for s in range(n_slots):
        is_now = cells.slot_end[s] > 0 and cells.slot_begin[s] <= now
        opened[s] = is_now and opens(cells, a, s // AHEAD, requested)
        any_open |= opened[s]
    if not any_open:
        return 0
    for node in range(usable.shape[0]):
        inside = usable[node] and cells.members[q, node]
        if inside and preferred:
            inside = False
            for s in range(n_slots):
                r = s // AHEAD
                inside |= opened[s] and cells.before[r, node + 1] > cells.before[r, node]
        out[node] = inside
        count += inside
    return count


# ---- wakes


@loop
def longest_of(cells: Any, queue: Any, n: int) -> int:
    """Return the longest walltime of the first ``n`` attempts of a queue, or 0."""
    longest = 0
    for at in range(n):
        longest = max(longest, cells.wall[queue[at]])
    return longest


@loop
def next_end(cells: Any, now: int, longest: int) -> int:
    """Return the end of the next window that could delay an attempt of a length, or NEVER."""
    best = NEVER
    for s in range(cells.slot_end.shape[0]):
        if cells.slot_end[s] and cells.slot_begin[s] - now < longest:
            best = min(best, cells.slot_end[s])
    return best


@loop
def next_begin(cells: Any, queue: Any, size: Any, n: int, now: int) -> int:
    """Return the beginning of the next window that a queued attempt requested, or NEVER."""
    best = NEVER
    for at in range(n):
        best = min(best, next_requested(cells, queue[at], size[at], now))
    return best


@loop
def next_requested(cells: Any, a: int, size: int, now: int) -> int:
    """Return the beginning of the next window that an attempt requested, or NEVER."""
    best = NEVER
    for r in range(cells.begin.shape[0]):
        if cells.asks[cells.who[a], r] and fits_in(cells, a, r, size, now):
            for s in range(r * AHEAD, (r + 1) * AHEAD):
                if cells.slot_end[s] and cells.slot_begin[s] > now:
                    best = min(best, cells.slot_begin[s])
    return best
