"""First fit of boxes on a timeline of slots (see ``box_slots``): dates and boxes that stay free.

The catalogue says for each volume which sums to run (see ``box_sums``) and which boxes there are;
where boxes are of no interest (``LINEAR``), units are taken in a line.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from rebat.kernels.box_slots import NEVER, n_set, pack, put, unpack
from rebat.kernels.box_sums import run_sums
from rebat.kernels.jit import kernel

LINEAR, LOWEST, RANDOM = 0, 1, 2
"""What is taken of what is free: the first units in a line, the first box in their order, any."""

FEW_WORDS = 4
"""Sets of so many words are counted as often as they change."""

Rows = namedtuple("Rows", ("start", "end", "mask"))
"""What is in use or reserved: over [start, end), sets of units (see ``box_slots``); a row of end 0
stands for nothing."""

Catalogue = namedtuple(
    "Catalogue",
    ("volume", "program_of", "program", "chosen_of", "chosen", "extents", "origins", "values_at",
     "sizes", "coordinates", "work", "busy", "taken", "words", "seen", "seen_v"),
)  # fmt: skip
"""The boxes of each volume: rows ``program_of[v] : program_of[v + 1]`` of ``program``, and so on;
``extents`` and ``origins`` of every chosen box. ``work``, ``busy``, ``taken`` and ``words`` are
scratch arrays. ``seen`` are sets of units beside which no box of the volume ``seen_v`` is free."""


@kernel
def mix(seed: int, serial: int, index: int) -> int:
    """A random number of 32 bits for a box (splitmix64): the same again for the same three."""
    z = (
        np.uint64(seed)
        + np.uint64(serial) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(index) * np.uint64(0xD1342543DE82EF95)
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(32)))


@kernel
def random_box(sums: Any, chosen: Any, seed: int, serial: int) -> int:
    """One of the chosen boxes whose sum is 0, each as likely as any other; -1: there is none."""
    best, least = -1, 1 << 40
    for i in range(chosen.shape[0]):
        if sums[chosen[i]] == 0:
            number = mix(seed, serial, i)
            if number < least:
                best, least = i, number
    return best


@kernel
def first_box(sums: Any, chosen: Any) -> int:
    """The first of the chosen boxes whose sum is 0; -1: there is none."""
    for i in range(chosen.shape[0]):
        if sums[chosen[i]] == 0:
            return i
    return -1


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
def put_box(catalogue: Any, box: int, out: Any) -> None:
    """Write which units a box takes."""
    for unit in range(out.shape[0]):
        inside = True
        for axis in range(catalogue.sizes.shape[0]):
            size = catalogue.sizes[axis]
            offset = catalogue.coordinates[unit, axis] - catalogue.origins[box, axis]
            if (offset + size) % size >= catalogue.extents[box, axis]:
                inside = False
                break
        out[unit] = inside


@kernel
def known_full(catalogue: Any, v: int, words: Any) -> int:
    """Where it is remembered whether a volume fits beside a set of units: -1, it does not."""
    h = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    for word in words:
        h = (h ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    at = int(np.int64(h % np.uint64(catalogue.seen.shape[0])))
    if catalogue.seen_v[at] != v:
        return at
    for w in range(words.shape[0]):
        if catalogue.seen[at, w] != words[w]:
            return at
    return -1


@kernel
def fit(catalogue: Any, v: int, words: Any, rule: int, seed: int, serial: int, out: Any) -> bool:
    """Choose among what is not taken, and write the units (a set); whether anything fits."""
    at = known_full(catalogue, v, words)
    if at < 0:
        return False
    busy, taken, work = catalogue.busy, catalogue.taken, catalogue.work
    unpack(words, busy)
    if rule == LINEAR:
        found = line(busy, catalogue.volume[v], taken)
    else:
        work[catalogue.values_at[v] : catalogue.values_at[v] + busy.shape[0]] = busy
        run_sums(catalogue.program[catalogue.program_of[v] : catalogue.program_of[v + 1]], work)
        first = catalogue.chosen_of[v]
        chosen = catalogue.chosen[first : catalogue.chosen_of[v + 1]]
        box = random_box(work, chosen, seed, serial) if rule == RANDOM else first_box(work, chosen)
        found = box >= 0
        if found:
            put_box(catalogue, first + box, taken)
    if found:
        pack(taken, out)
    else:
        catalogue.seen[at] = words
        catalogue.seen_v[at] = v
    return found


@kernel
def first_fit(
    slots: Any, catalogue: Any, v: int, length: int, until: int, opened: int, freed: Any,
    rule: int, seed: int, serial: int, out: Any,
) -> int:  # fmt: skip
    """The first date before ``until`` from which something stays free so long; NEVER: none.

    What is taken is written. Nothing fits before ``opened`` but with some of the units ``freed``.
    """
    i, n, volume, words = 0, slots.n[0], catalogue.volume[v], catalogue.words
    most, n_words = catalogue.busy.shape[0] - volume, words.shape[0]
    while i < n and slots.t[i] < until:
        end, last = slots.t[i] + length, -1
        for w in range(n_words):
            words[w] = 0
        for j in range(i, n):
            if slots.t[j] >= end:
                break
            if slots.free[j] < volume:
                last = j  # nothing that begins up to that slot stays free
                break
            for w in range(n_words):
                words[w] |= slots.busy[j, w]
            if slots.t[i] < opened and not any_left(freed, words):
                last = i
                break
            if n_words <= FEW_WORDS and n_set(words) > most:
                last = i
                break
        if last >= 0:
            i = last + 1
            continue
        if n_set(words) <= most and fit(catalogue, v, words, rule, seed, serial, out):
            return slots.t[i]
        i += 1
    return NEVER


@kernel
def same(one: Any, other: Any) -> bool:
    """Whether two sets are the same."""
    for w in range(one.shape[0]):
        if one[w] != other[w]:
            return False
    return True


@kernel
def any_left(some: Any, taken: Any) -> bool:
    """Whether some units are not all taken."""
    for w in range(some.shape[0]):
        if some[w] & ~taken[w]:
            return True
    return False


@kernel
def any_room(slots: Any, volume: int, until: int) -> bool:
    """Whether so much is free at some date before ``until``."""
    for i in range(slots.n[0]):
        if slots.t[i] >= until:
            return False
        if slots.free[i] >= volume:
            return True
    return False


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
    for i in range(first, last):
        row = own[i]
        until = NEVER if (i if by_rank else reserved) < depth else now + 1
        start = first_fit(
            slots, catalogue, volumes[i], durations[i], until, 0, catalogue.words, rule, seed,
            serials[i], rows.mask[row],
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
    """Take each position's place out and find it anew, in turn, the others standing.

    Nothing was freed since the last time but units ``freed`` before ``opened``: dates from then on,
    where nothing fitted, need not be tried, and a place that begins there stays. Gives the position
    after the last one looked at (see ``place``), ``opened`` for the ones after it, and for the next
    time; what was ``freed`` likewise.
    """
    old_mask = np.empty_like(freed)
    for i in range(first, last):
        row, old, v = own[i], starts[i], volumes[i]
        moves = old < opened or (pick and old == now)
        if not moves and not any_room(slots, catalogue.volume[v], opened):
            continue
        old_end = rows.end[row]
        if old < NEVER:
            enter(slots, rows, row, old, old_end, False)
        until = old + 1 if moves else opened
        old_mask[:] = rows.mask[row]
        start = first_fit(
            slots, catalogue, v, durations[i], until, min(old, opened), freed, rule, seed,
            serials[i], rows.mask[row],
        )  # fmt: skip
        if start == NEVER:
            if old < NEVER:
                enter(slots, rows, row, old, old_end, True)
            continue
        starts[i] = start
        enter(slots, rows, row, start, min(start + durations[i], NEVER), True)
        chosen_again = start == now and pick  # who knows what for
        if old < NEVER and (start != old or chosen_again or not same(old_mask, rows.mask[row])):
            opened, again = max(opened, old_end), max(again, old_end)
            for w in range(old_mask.shape[0]):
                freed[w] |= old_mask[w]
                freed_again[w] |= old_mask[w]
        if chosen_again:
            return i + 1, opened, again
    return last, opened, again
