# SPDX-License-Identifier: Apache-2.0
"""First fit of boxes on a timeline of slots (see ``box_slots``): dates and boxes that stay free.

The catalogue says for each volume which boxes there are (see ``box_free``); where boxes are of no
interest (``LINEAR``), units are taken in a line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebat.kernels.box_free import (
    LINEAR,
    Catalogue,
    any_choice,
    free_box,
    is_full,
    line,
    put_box,
    remember_full,
)
from rebat.kernels.box_slots import (
    NEVER,
    Ints,
    Slots,
    Words,
    n_set,
    pack,
    put,
    taken_over,
    unpack,
)
from rebat.kernels.jit import kernel

UNKNOWN = -1

COUNT_EVERY = 8
"""Number of slots between checks for over-allocation."""


class PlanRows(NamedTuple):
    """What is in use or reserved: over [start, end), the units of a mask (see ``box_slots``); a row
    of end 0 stands for nothing."""

    start: Ints
    end: Ints
    mask: Words


class Plan(NamedTuple):
    """All that planning a queue reads and writes.

    ``volumes``, ``durations`` and ``serials`` are of the attempts in queue order; so are ``own``,
    their rows, and ``starts``. ``rule`` is one of `box_free`, ``seed`` that of RANDOM. With
    ``pick`` somebody else chooses the units of what starts ``now``.
    """

    slots: Slots
    rows: PlanRows
    catalogue: Catalogue
    volumes: Ints
    durations: Ints
    serials: Ints
    own: Ints
    starts: Ints
    now: int
    rule: int
    seed: int
    pick: bool


class Given(NamedTuple):
    """What was given back since the last time: some ``units``, before the time ``opened``."""

    units: Words
    opened: Ints


class Lifted(NamedTuple):
    """Units that count as free over [start, end): those of the attempt that is planned."""

    units: Words
    start: int
    end: int


@kernel
def fit(plan: Plan, k: int, words: Words, out: Words) -> bool:
    """Choose among what is not taken, and write the units (a set); whether attempt k fits."""
    catalogue, v = plan.catalogue, plan.volumes[k]
    if is_full(catalogue, v, words):
        return False
    if plan.rule == LINEAR:
        unpack(words, catalogue.busy)
        found = line(catalogue.busy, catalogue.volume[v], catalogue.taken)
        if found:
            pack(catalogue.taken, out)
    else:
        shape, corner = free_box(catalogue, v, words, plan.rule, plan.seed, plan.serials[k])
        found = shape >= 0
        if found:
            put_box(catalogue.sizes, catalogue.shapes[shape], corner, out)
    if not found:
        remember_full(catalogue, v, words)
    return found


@kernel
def first_fit(
    plan: Plan, k: int, until: int, opened: int, freed: Words, reach: Ints, lifted: Lifted, out: Any
) -> int:
    """The first time before ``until`` from which attempt ``k`` fits; NEVER: there is none.

    What it takes is written. Nothing fits before ``opened`` but with some of the units ``freed``,
    of which one at least stays free from each slot to the time ``reach`` of that slot (worked out
    where it is UNKNOWN).
    """
    slots, catalogue, length = plan.slots, plan.catalogue, plan.durations[k]
    own, own_start, own_end = lifted
    i, n, volume, words = 0, slots.n[0], catalogue.volume[plan.volumes[k]], catalogue.words
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
        if i > 0 and not any_given_back(slots, i, lifted):
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
            fold(slots, i, past, lifted, front)
            folded = past
        past, room = widen(
            slots, i, folded, past, end, most, freed, needs_freed, lifted, front, words
        )
        if room and fit(plan, k, words, out):
            return t[i]
        i += 1
    return NEVER


@kernel
def add_slot(slots: Slots, k: int, lifted: Lifted, words: Words) -> None:
    """Add what is taken in a slot, but for what is lifted, to a set."""
    if lifted.start <= slots.t[k] < lifted.end:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w] & ~lifted.units[w]
    else:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w]


@kernel
def fold(slots: Slots, first: int, past: int, lifted: Lifted, front: Words) -> None:
    """Write what is taken from each slot on up to a last one; ``front``, what is after it, is 0."""
    for k in range(past - 1, first - 1, -1):
        is_own = lifted.start <= slots.t[k] < lifted.end
        for w in range(front.shape[0]):
            word = slots.busy[k, w] & ~lifted.units[w] if is_own else slots.busy[k, w]
            slots.back[k, w] = word | slots.back[k + 1, w] if k + 1 < past else word
    for w in range(front.shape[0]):
        front[w] = 0


@kernel
def widen(
    slots: Slots, i: int, folded: int, past: int, end: int, most: int, freed: Words,
    needs_freed: bool, lifted: Lifted, front: Words, words: Words,
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
            add_slot(slots, past, lifted, front)
            past += 1


@kernel
def any_given_back(slots: Slots, i: int, lifted: Lifted) -> bool:
    """Whether units that are taken in the slot before are not in this one."""
    own = lifted.units
    was_own = lifted.start <= slots.t[i - 1] < lifted.end
    is_own = lifted.start <= slots.t[i] < lifted.end
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
    plan: Plan, first: int, last: int, depth: int, by_rank: bool, reserved: int
) -> tuple[int, int]:
    """Give positions of the queue their first fit in turn.

    At most ``depth`` may wait (with ``by_rank`` the first ones of the queue). With ``pick`` it
    stops after an attempt that starts now. Returns the position after the last one placed, and how
    many wait.
    """
    rows, nothing = plan.rows, np.zeros_like(plan.catalogue.words)
    none = Lifted(nothing, 0, 0)
    for i in range(first, last):
        row = plan.own[i]
        until = NEVER if (i if by_rank else reserved) < depth else plan.now + 1
        start = first_fit(plan, i, until, 0, nothing, plan.slots.t, none, rows.mask[row])
        plan.starts[i] = start
        if start == NEVER:
            rows.end[row] = 0
            continue
        enter(plan.slots, rows, row, start, min(start + plan.durations[i], NEVER), True)
        if start > plan.now:
            reserved += 1
        elif plan.pick:
            return i + 1, reserved
    return last, reserved


@kernel
def compress(plan: Plan, first: int, last: int, given: Given, again: Given) -> int:
    """Move each position's place to an earlier time where one is free, in turn.

    A place that begins now is chosen again as well. Nothing fits earlier but with some of the units
    ``given`` back. What is given back on the way is added to that, and is in ``again`` for the
    next time. Returns the position after the last one looked at (see ``place``).
    """
    slots, rows = plan.slots, plan.rows
    units, reach = np.empty_like(given.units), np.empty_like(slots.t)
    reach[:] = UNKNOWN
    for i in range(first, last):
        row, old = plan.own[i], plan.starts[i]
        old_end, again_now = rows.end[row], old == plan.now
        units[:] = rows.mask[row]
        start = first_fit(
            plan, i, old + 1 if again_now else min(old, given.opened[0]),
            old if again_now else NEVER, given.units, reach, Lifted(rows.mask[row], old, old_end),
            units,
        )  # fmt: skip
        if start == NEVER:
            continue
        if old < NEVER:
            for w in range(units.shape[0]):
                given.units[w] |= rows.mask[row, w]
                again.units[w] |= rows.mask[row, w]
            given.opened[0] = max(given.opened[0], old_end)
            again.opened[0] = max(again.opened[0], old_end)
            enter(slots, rows, row, old, old_end, False)
        rows.mask[row], plan.starts[i] = units, start
        enter(slots, rows, row, start, min(start + plan.durations[i], NEVER), True)
        reach[:] = UNKNOWN
        if start == plan.now and plan.pick:
            return i + 1
    return last
