# SPDX-License-Identifier: Apache-2.0
"""First fit of boxes on a timeline of slots (see ``box_slots``): dates and boxes that stay free.

The catalogue says for each volume which boxes there are (see ``box_free``); where boxes are of no
interest (``LINEAR``), units are taken in a line.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from rebat.kernels.box_free import LINEAR, any_choice, free_box, put_box
from rebat.kernels.box_slots import NEVER, n_set, pack, put, taken_over, unpack
from rebat.kernels.jit import kernel

UNKNOWN = -1

COUNT_EVERY = 8
"""After so many slots it is looked whether what has been taken is too much already."""

Rows = namedtuple("Rows", ("start", "end", "mask"))
"""What is in use or reserved: over [start, end), sets of units (see ``box_slots``); a row of end 0
stands for nothing."""


@kernel
def line(busy: Any, count: int, out: Any) -> bool:
    """The first run of so many free units, else the first free ones; whether there are as many."""
    run, n_free, total = 0, 0, busy.shape[0]
    for unit in range(total):
        run = 0 if busy[unit] else run + 1
        n_free += not busy[unit]
        if run == count:
            out[:] = 0
            out[unit - count + 1 : unit + 1] = 1
            return True
    if n_free < count:
        return False
    out[:] = 0
    for unit in range(total):
        if not busy[unit]:
            out[unit] = 1
            count -= 1
            if count == 0:
                break
    return True


@kernel
def is_full(catalogue: Any, v: int, words: Any) -> bool:
    """Whether all of a set is taken beside which, as is remembered, no box of a volume is free."""
    for r in range(catalogue.full.shape[1]):
        holds = True
        for w in range(words.shape[0]):
            if catalogue.full[v, r, w] & ~words[w]:
                holds = False
                break
        if holds:
            return True
    return False


@kernel
def remember_full(catalogue: Any, v: int, words: Any) -> None:
    """Remember a set of units beside which no box is free, in the place of the oldest."""
    r = catalogue.next_full[v]
    for w in range(words.shape[0]):
        catalogue.full[v, r, w] = words[w]
    catalogue.next_full[v] = (r + 1) % catalogue.full.shape[1]


@kernel
def fit(catalogue: Any, v: int, words: Any, rule: int, seed: int, serial: int, out: Any) -> bool:
    """Choose among what is not taken, and write the units (a set); whether anything fits."""
    if is_full(catalogue, v, words):
        return False
    if rule == LINEAR:
        unpack(words, catalogue.busy)
        found = line(catalogue.busy, catalogue.volume[v], catalogue.taken)
        if found:
            pack(catalogue.taken, out)
    else:
        shape, corner = free_box(catalogue, v, words, rule, seed, serial)
        found = shape >= 0
        if found:
            put_box(catalogue.sizes, catalogue.shapes[shape], corner, out)
    if not found:
        remember_full(catalogue, v, words)
    return found


@kernel
def first_fit(
    slots: Any, catalogue: Any, v: int, length: int, until: int, opened: int, freed: Any,
    reach: Any, own: Any, own_start: int, own_end: int, rule: int, seed: int, serial: int, out: Any,
) -> int:  # fmt: skip
    """The first date before ``until`` from which something stays free so long; NEVER: none.

    What is taken is written. Nothing fits before ``opened`` but with some of the units ``freed``,
    of which one at least stays free from each slot to the date ``reach`` of that slot (worked out
    where it is UNKNOWN). The units ``own`` count as free over [own_start, own_end).
    """
    i, n, volume, words = 0, slots.n[0], catalogue.volume[v], catalogue.words
    most, n_own, front = catalogue.busy.shape[0] - volume, n_set(own), np.zeros_like(words)
    meets = any_left(own, ~freed)  # some of them are its own
    folded = past = counted = 0
    t, opens, free = slots.t, slots.opens, slots.free
    while i < n and t[i] < until:
        if i > 0 and not opens[i] and not own_start <= t[i] <= own_end:
            i += 1  # what begins a slot earlier is no worse off
            continue
        end, needs_freed = min(t[i] + length, NEVER), t[i] < opened
        bounded = needs_freed and not meets
        if bounded and UNKNOWN < reach[i] < end:
            i += 1
            continue
        if i > 0 and not any_given_back(slots, i, own, own_start, own_end):
            i += 1
            continue
        if bounded and reach[i] == UNKNOWN:
            reach[i] = reach_of(slots, i, freed, words)
            continue
        counted = max(counted, i)
        while counted < n and t[counted] < end:
            is_own = own_start <= t[counted] < own_end
            if free[counted] + is_own * n_own < volume:
                break
            counted += 1
        if counted < n and t[counted] < end:
            i = counted = counted + 1  # nothing that begins up to that slot stays free
            continue
        if folded <= i:
            past = max(past, i)
            fold(slots, i, past, own, own_start, own_end, front)
            folded = past
        past, room = widen(
            slots, i, folded, past, end, most, freed, needs_freed, own, own_start, own_end, front,
            words,
        )  # fmt: skip
        if room and fit(catalogue, v, words, rule, seed, serial, out):
            return t[i]
        i += 1
    return NEVER


@kernel
def add_slot(slots: Any, k: int, own: Any, own_start: int, own_end: int, words: Any) -> None:
    """Add what is taken in a slot, but for its ``own``, to a set."""
    if own_start <= slots.t[k] < own_end:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w] & ~own[w]
    else:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w]


@kernel
def fold(
    slots: Any, first: int, past: int, own: Any, own_start: int, own_end: int, front: Any
) -> None:
    """Write what is taken from each slot on up to a last one; ``front``, what is after it, is 0."""
    for k in range(past - 1, first - 1, -1):
        is_own = own_start <= slots.t[k] < own_end
        for w in range(front.shape[0]):
            word = slots.busy[k, w] & ~own[w] if is_own else slots.busy[k, w]
            slots.back[k, w] = word | slots.back[k + 1, w] if k + 1 < past else word
    for w in range(front.shape[0]):
        front[w] = 0


@kernel
def widen(
    slots: Any, i: int, folded: int, past: int, end: int, most: int, freed: Any, needs_freed: bool,
    own: Any, own_start: int, own_end: int, front: Any, words: Any,
) -> tuple[int, bool]:  # fmt: skip
    """Write what is taken from a slot to a date, or from there to where it is too much already.

    It is known from the slot to ``folded``, and in ``front`` from there to ``past``, which moves
    on: over all slots of a timeline once. Whether it is not too much comes second.
    """
    while True:
        for w in range(words.shape[0]):
            words[w] = front[w] | slots.back[i, w] if i < folded else front[w]
        if n_set(words) > most or (needs_freed and not any_left(freed, words)):
            return past, False
        if past == slots.n[0] or slots.t[past] >= end:
            return past, True
        stop = min(past + COUNT_EVERY, slots.n[0])
        while past < stop and slots.t[past] < end:
            add_slot(slots, past, own, own_start, own_end, front)
            past += 1


@kernel
def any_given_back(slots: Any, i: int, own: Any, own_start: int, own_end: int) -> bool:
    """Whether units that are taken in the slot before are not in this one."""
    was_own = own_start <= slots.t[i - 1] < own_end
    is_own = own_start <= slots.t[i] < own_end
    for w in range(own.shape[0]):
        before = slots.busy[i - 1, w] & ~own[w] if was_own else slots.busy[i - 1, w]
        after = slots.busy[i, w] & ~own[w] if is_own else slots.busy[i, w]
        if before & ~after:
            return True
    return False


@kernel
def any_left(some: Any, taken: Any) -> bool:
    """Whether some units are not all taken."""
    for w in range(some.shape[0]):
        if some[w] & ~taken[w]:
            return True
    return False


@kernel
def reach_of(slots: Any, i: int, some: Any, words: Any) -> int:
    """The date to which one of some units at least stays free from a slot on."""
    words[:] = some
    busy = slots.busy
    for j in range(i, slots.n[0]):
        left = np.uint64(0)
        for w in range(words.shape[0]):
            words[w] &= ~busy[j, w]
            left |= words[w]
        if left == 0:
            return slots.t[j]
    return NEVER


@kernel
def may_choose(slots: Any, rows: Any, catalogue: Any, v: int, row: int) -> bool:
    """Whether another box than that of a row, which begins in the first slot, is free as long."""
    taken_over(slots, 0, rows.end[row], catalogue.words)
    for w in range(catalogue.words.shape[0]):
        catalogue.words[w] &= ~rows.mask[row, w]
    return any_choice(catalogue, v, catalogue.words)


@kernel
def enter(slots: Any, rows: Any, row: int, start: int, end: int, take: bool) -> None:
    """Take a row's units over [start, end), or give them back."""
    rows.start[row], rows.end[row] = start, end if take else 0
    put(slots, start, end, rows.mask[row], n_set(rows.mask[row]), take)


@kernel
def place(
    slots: Any, rows: Any, catalogue: Any, volumes: Any, durations: Any, serials: Any, own: Any,
    starts: Any, first: int, last: int, depth: int, by_rank: bool, reserved: int, now: int,
    rule: int, seed: int, pick: bool,
) -> tuple[int, int]:  # fmt: skip
    """Give positions of the queue their first fit in turn, in the rows of their ``own``.

    At most ``depth`` may wait (with ``by_rank`` the first ones of the queue). With ``pick`` it
    stops after one that starts now, for somebody else to choose its units. Gives the position after
    the last one placed, and how many wait.
    """
    nothing = np.zeros_like(catalogue.words)
    for i in range(first, last):
        row = own[i]
        until = NEVER if (i if by_rank else reserved) < depth else now + 1
        start = first_fit(
            slots, catalogue, volumes[i], durations[i], until, 0, nothing, slots.t, nothing, 0, 0,
            rule, seed, serials[i], rows.mask[row],
        )  # fmt: skip
        starts[i] = start
        if start == NEVER:
            rows.end[row] = 0
            continue
        enter(slots, rows, row, start, min(start + durations[i], NEVER), True)
        if start > now:
            reserved += 1
        elif pick:
            return i + 1, reserved
    return last, reserved


@kernel
def compress(
    slots: Any, rows: Any, catalogue: Any, volumes: Any, durations: Any, serials: Any, own: Any,
    starts: Any, first: int, last: int, opened: int, freed: Any, again: int, freed_again: Any,
    now: int, rule: int, seed: int, pick: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Move each position's place to an earlier date where one is free, in turn.

    A place that begins now is chosen anew as well.
    Since the last time only units ``freed`` were given back, and before ``opened``: nothing fits
    earlier but with some of them. Gives the position after the last one looked at (see
    ``place``), ``opened`` for the ones after it, and ``again`` for the next time; what is given
    back on the way is ``freed`` likewise.
    """
    found, reach = np.empty_like(freed), np.empty_like(slots.t)
    reach[:] = UNKNOWN
    for i in range(first, last):
        row, old, v = own[i], starts[i], volumes[i]
        old_end, again_now = rows.end[row], old == now
        found[:] = rows.mask[row]
        start = first_fit(
            slots, catalogue, v, durations[i], old + 1 if again_now else min(old, opened),
            old if again_now else NEVER, freed, reach, rows.mask[row], old, old_end, rule, seed,
            serials[i], found,
        )  # fmt: skip
        if start == NEVER:
            continue
        if old < NEVER:
            for w in range(found.shape[0]):
                freed[w] |= rows.mask[row, w]
                freed_again[w] |= rows.mask[row, w]
            opened, again = max(opened, old_end), max(again, old_end)
            enter(slots, rows, row, old, old_end, False)
        rows.mask[row], starts[i] = found, start
        enter(slots, rows, row, start, min(start + durations[i], NEVER), True)
        reach[:] = UNKNOWN
        if start == now and pick:
            return i + 1, opened, again
    return last, opened, again
