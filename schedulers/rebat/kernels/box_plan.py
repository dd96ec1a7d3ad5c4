# SPDX-License-Identifier: Apache-2.0
"""Planning with boxes: search for the first time at which a box stays free long enough.

The timeline consists of slots (see ``box_slots``). The catalogue defines the boxes of each volume
(see ``box_free``). The rule ``LINEAR`` uses no boxes, but the first free blocks.
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
    any_in,
    any_left,
    n_set,
    pack,
    put,
    taken_over,
    unpack,
)
from rebat.kernels.jit import inner, kernel, step

UNKNOWN = -1

COUNT_EVERY = 8
"""Number of slots after which the search checks whether enough free blocks are left."""


class PlanRows(NamedTuple):
    """Blocks in use or reserved. Row k has the blocks ``mask[k]`` over ``[start[k], end[k])``.

    A mask is a set of blocks (see ``box_slots``). A row whose end is 0 is unused.
    """

    start: Ints
    end: Ints
    mask: Words


class Plan(NamedTuple):
    """Input, output and state of planning a queue.

    Attributes
    ----------
    slots, rows, catalogue
        Timeline, blocks in use or reserved, and boxes.
    volumes, durations, serials : int64 arrays
        Volume, duration and serial of each attempt, in queue order.
    own : int64 array
        For each attempt, the index of its row in ``rows``.
    starts : int64 array
        Planned start of each attempt.
    now : int
        The current time.
    rule : int
        A rule of `box_free`.
    seed : int
        Seed of RANDOM.
    pick : bool
        Whether the caller chooses the blocks of attempts that start now.
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


class Released(NamedTuple):
    """Blocks released since the last pass, and the time ``opened`` at which the last use ended."""

    blocks: Words
    opened: Ints


class Lifted(NamedTuple):
    """The present blocks of the attempt to plan, which are free for it over [start, end)."""

    blocks: Words
    start: int
    end: int


@kernel
def fit(plan: Plan, k: int, words: Words, out: Words) -> bool:
    """Choose blocks outside ``words`` for attempt ``k``. Return whether this is possible."""
    catalogue, v = plan.catalogue, plan.volumes[k]
    if is_full(catalogue, v, words):
        return False
    if plan.rule == LINEAR:
        unpack(words, catalogue.busy)
        fits = line(catalogue.busy, catalogue.volume[v], catalogue.taken)
        if fits:
            pack(catalogue.taken, out)
    else:
        shape, corner = free_box(catalogue, v, words, plan.rule, plan.seed, plan.serials[k])
        fits = shape >= 0
        if fits:
            put_box(catalogue.sizes, catalogue.shapes[shape], corner, out)
    if not fits:
        remember_full(catalogue, v, words)
    return fits


@inner
def first_fit(
    plan: Plan, k: int, until: int, opened: int, freed: Words, reach: Ints, lifted: Lifted,
    front: Words, out: Any,
) -> int:  # fmt: skip
    """Return the first time before ``until`` at which attempt ``k`` fits, or NEVER.

    The chosen blocks are written into ``out``. Before ``opened``, the attempt fits only if it gets
    at least one of the blocks ``freed``. ``reach[i]`` is the time until which at least one of these
    blocks stays free, counted from slot ``i``. If this time is UNKNOWN, the function computes it.
    ``front`` is for temporary results.
    """
    slots, catalogue, length = plan.slots, plan.catalogue, plan.durations[k]
    own, own_start, own_end = lifted
    i, n, volume, words = 0, slots.n[0], catalogue.volume[plan.volumes[k]], catalogue.words
    most, n_own = catalogue.busy.shape[0] - volume, n_set(own)
    meets = any_in(own, freed)
    folded = past = counted = 0
    t, opens, free = slots.t, slots.opens, slots.free
    while i < n and t[i] < until:
        if i > 0 and not opens[i] and not own_start <= t[i] <= own_end:
            i += 1  # an attempt that fits here also fits a slot earlier
            continue
        end, needs_freed = min(t[i] + length, NEVER), t[i] < opened
        bounded = needs_freed and not meets
        if bounded and UNKNOWN < reach[i] < end:
            i += 1
            continue
        if i > 0 and not any_released(slots, i, lifted):
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
            i = counted = counted + 1  # no interval that includes this slot has enough free blocks
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


@step
def add_slot(slots: Slots, k: int, lifted: Lifted, words: Words) -> None:
    """Add the blocks in use in slot ``k`` to ``words``.

    The attempt's present blocks (``lifted``) do not count as in use.
    """
    if lifted.start <= slots.t[k] < lifted.end:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w] & ~lifted.blocks[w]
    else:
        for w in range(words.shape[0]):
            words[w] |= slots.busy[k, w]


@step
def fold(slots: Slots, first: int, past: int, lifted: Lifted, front: Words) -> None:
    """For each slot from ``first``, write the blocks used up to slot ``past``. Clear ``front``."""
    for k in range(past - 1, first - 1, -1):
        is_own = lifted.start <= slots.t[k] < lifted.end
        for w in range(front.shape[0]):
            word = slots.busy[k, w] & ~lifted.blocks[w] if is_own else slots.busy[k, w]
            slots.back[k, w] = word | slots.back[k + 1, w] if k + 1 < past else word
    for w in range(front.shape[0]):
        front[w] = 0


@step
def widen(
    slots: Slots, i: int, folded: int, past: int, end: int, most: int, freed: Words,
    needs_freed: bool, lifted: Lifted, front: Words, words: Words,
) -> tuple[int, bool]:  # fmt: skip
    """Write the blocks in use from slot ``i`` until ``end`` into ``words``. Stop if too many are.

    ``slots.back[i]`` contains the blocks in use from slot ``i`` up to slot ``folded`` (excluded).
    ``front`` contains the blocks in use from slot ``folded`` up to slot ``past`` (excluded).
    ``past`` only increases, so the search adds each slot once. The results are ``past``, and
    whether enough blocks are left.
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


@step
def any_released(slots: Slots, i: int, lifted: Lifted) -> bool:
    """Return whether any block is in use in slot ``i - 1`` but not in slot ``i``."""
    own = lifted.blocks
    was_own = lifted.start <= slots.t[i - 1] < lifted.end
    is_own = lifted.start <= slots.t[i] < lifted.end
    for w in range(own.shape[0]):
        before = slots.busy[i - 1, w] & ~own[w] if was_own else slots.busy[i - 1, w]
        after = slots.busy[i, w] & ~own[w] if is_own else slots.busy[i, w]
        if before & ~after:
            return True
    return False


@inner
def reach_of(slots: Any, i: int, blocks: Any, words: Any) -> int:
    """Return the time until which any of ``blocks`` stays free, starting at slot ``i``."""
    for w in range(words.shape[0]):
        words[w] = blocks[w]
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
    """Return whether several boxes of volume ``v`` are available to the attempt of ``row``.

    A box is available if it is free until the end of the row. The row's own blocks count as free.
    """
    taken_over(slots, 0, rows.end[row], catalogue.words)
    for w in range(catalogue.words.shape[0]):
        catalogue.words[w] &= ~rows.mask[row, w]
    return any_choice(catalogue, v, catalogue.words)


@kernel
def enter(slots: Any, rows: Any, row: int, start: int, end: int, take: bool) -> None:
    """Mark the blocks of ``row`` as in use over [start, end), or as free if ``take`` is false."""
    rows.start[row], rows.end[row] = start, end if take else 0
    put(slots, start, end, rows.mask[row], n_set(rows.mask[row]), take)


@kernel
def place(
    plan: Plan, first: int, last: int, depth: int, by_rank: bool, reserved: int
) -> tuple[int, int]:
    """Reserve the first fit for each attempt from ``first`` to ``last - 1``, in queue order.

    At most ``depth`` attempts that cannot start now get a reservation. If ``by_rank`` is set, only
    the first ``depth`` attempts of the queue may get one. If ``plan.pick`` is set, the function
    returns after the first attempt that starts now, and the caller calls it again. The results are
    the position after the last attempt, and the number of attempts with a reservation.
    """
    rows, no_blocks = plan.rows, np.zeros_like(plan.catalogue.words)
    none, front = Lifted(no_blocks, 0, 0), np.empty_like(no_blocks)
    for i in range(first, last):
        row = plan.own[i]
        until = NEVER if (i if by_rank else reserved) < depth else plan.now + 1
        start = first_fit(plan, i, until, 0, no_blocks, plan.slots.t, none, front, rows.mask[row])
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
def compress(plan: Plan, first: int, last: int, released: Released, again: Released) -> int:
    """Move the attempts ``first`` to ``last - 1`` of the queue to earlier times, in order.

    If an attempt starts now, its blocks are chosen again. Other attempts can move to an earlier
    time only if they get at least one of the blocks ``released``. Blocks released in this pass are
    added to ``released``, and to ``again`` for the next pass. The result is the position after the
    last processed attempt (see ``place``).
    """
    slots, rows = plan.slots, plan.rows
    blocks, front = np.empty_like(released.blocks), np.empty_like(released.blocks)
    reach = np.empty_like(slots.t)
    reach[:] = UNKNOWN
    for i in range(first, last):
        row, old = plan.own[i], plan.starts[i]
        old_end, again_now = rows.end[row], old == plan.now
        blocks[:] = rows.mask[row]
        start = first_fit(
            plan, i, old + 1 if again_now else min(old, released.opened[0]),
            old if again_now else NEVER, released.blocks, reach,
            Lifted(rows.mask[row], old, old_end), front, blocks,
        )  # fmt: skip
        if start == NEVER:
            continue
        if old < NEVER:
            for w in range(blocks.shape[0]):
                released.blocks[w] |= rows.mask[row, w]
                again.blocks[w] |= rows.mask[row, w]
            released.opened[0] = max(released.opened[0], old_end)
            again.opened[0] = max(again.opened[0], old_end)
            enter(slots, rows, row, old, old_end, False)
        rows.mask[row], plan.starts[i] = blocks, start
        enter(slots, rows, row, start, min(start + plan.durations[i], NEVER), True)
        reach[:] = UNKNOWN
        if start == plan.now and plan.pick:
            return i + 1
    return last
