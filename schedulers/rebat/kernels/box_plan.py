"""First fit of boxes: over a table of what is in use when, find dates and boxes that stay free.

The table has a row per use: ``start`` and ``end`` (microseconds; a row that stands for nothing has
end 0) and ``mask``, which says what units it takes (uint8, shape (rows, units)). The catalogue says
for each volume which sums to run (see ``box_sums``) and which boxes there are; where boxes are of
no interest (``LINEAR``), units are taken as a line.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from rebat.kernels.box_sums import run_sums
from rebat.kernels.jit import kernel

LINEAR, LOWEST, RANDOM = 0, 1, 2
"""What is taken of what is free: the first units in a line, the first box in their order, any."""

NEVER = 2**62

Table = namedtuple("Table", ("start", "end", "mask", "unusable"))
"""Uses by row; ``unusable`` counts the dead nodes of every unit (int32)."""

Catalogue = namedtuple(
    "Catalogue",
    ("volume", "program_of", "program", "chosen_of", "chosen", "extents", "origins", "values_at",
     "sizes", "coordinates", "work", "busy"),
)  # fmt: skip
"""The boxes of each volume: rows ``program_of[v] : program_of[v + 1]`` of ``program``, and so on;
``extents`` and ``origins`` of every chosen box; ``work`` and ``busy`` are scratch arrays."""


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
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(32))


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
def free_over(table: Any, start: int, end: int, busy: Any) -> int:
    """Mark what is in use at some time of [start, end), or dead; gives how many units are not."""
    for unit in range(busy.shape[0]):
        busy[unit] = table.unusable[unit] != 0
    for row in range(table.start.shape[0]):
        if table.start[row] < end and start < table.end[row]:
            busy |= table.mask[row]
    n_free = 0
    for unit in range(busy.shape[0]):
        n_free += busy[unit] == 0
    return n_free


@kernel
def fit(catalogue: Any, v: int, busy: Any, rule: int, seed: int, serial: int, out: Any) -> bool:
    """Choose among what is not busy, and write the units taken; whether anything fits."""
    if rule == LINEAR:
        return line(busy, catalogue.volume[v], out)
    at, work = catalogue.values_at[v], catalogue.work
    for unit in range(busy.shape[0]):
        work[at + unit] = busy[unit]
    run_sums(catalogue.program[catalogue.program_of[v] : catalogue.program_of[v + 1]], work)
    first = catalogue.chosen_of[v]
    chosen = catalogue.chosen[first : catalogue.chosen_of[v + 1]]
    box = random_box(work, chosen, seed, serial) if rule == RANDOM else first_box(work, chosen)
    if box < 0:
        return False
    put_box(catalogue, first + box, out)
    return True


@kernel
def next_end(table: Any, after: int) -> int:
    """The first date after another at which something ends."""
    date = NEVER
    for row in range(table.end.shape[0]):
        if after < table.end[row] < date:
            date = table.end[row]
    return date


@kernel
def fits_from(
    table: Any, catalogue: Any, v: int, length: int, date: int, rule: int, seed: int, serial: int,
    out: Any,
) -> bool:  # fmt: skip
    """Whether something stays free so long from a date on; what is taken is written."""
    busy = catalogue.busy
    n_free = free_over(table, date, min(date + length, NEVER), busy)
    return n_free >= catalogue.volume[v] and fit(catalogue, v, busy, rule, seed, serial, out)


@kernel
def first_fit(
    table: Any, catalogue: Any, v: int, length: int, now: int, until: int, rule: int, seed: int,
    serial: int, out: Any,
) -> int:  # fmt: skip
    """The first date before ``until`` from which something stays free so long; NEVER: none."""
    date = now
    while date < until:
        if fits_from(table, catalogue, v, length, date, rule, seed, serial, out):
            return date
        date = next_end(table, date)
    return NEVER


@kernel
def place(
    table: Any, catalogue: Any, volumes: Any, durations: Any, serials: Any, rows: Any, starts: Any,
    first: int, last: int, depth: int, by_rank: bool, reserved: int, now: int, rule: int,
    seed: int, pick: bool,
) -> tuple[int, int]:  # fmt: skip
    """Give positions of the queue their first fit in turn, in the rows meant for them.

    At most ``depth`` may wait (with ``by_rank`` the first ones of the queue). With ``pick`` it
    stops after one that starts now, for somebody else to choose its units. Gives the position after
    the last one placed, and how many wait.
    """
    for i in range(first, last):
        row = rows[i]
        until = NEVER if (i if by_rank else reserved) < depth else now + 1
        start = first_fit(
            table, catalogue, volumes[i], durations[i], now, until, rule, seed, serials[i],
            table.mask[row],
        )  # fmt: skip
        starts[i] = start
        if start == NEVER:
            table.end[row] = 0
            continue
        table.start[row], table.end[row] = start, min(start + durations[i], NEVER)
        if start > now:
            reserved += 1
        elif pick:
            return i + 1, reserved
    return last, reserved


@kernel
def compress(
    table: Any, catalogue: Any, volumes: Any, durations: Any, serials: Any, rows: Any, starts: Any,
    first: int, last: int, opened: int, again: int, now: int, rule: int, seed: int, pick: bool,
) -> tuple[int, int, int]:  # fmt: skip
    """Take each position's place out and find it anew, in turn, the others standing.

    Nothing was freed since the last time but before ``opened``: dates from then on, where nothing
    fitted, need not be tried, and a place that begins there stays. Gives the position after the
    last one looked at (see ``place``), ``opened`` for the ones after it, and for the next time.
    """
    for i in range(first, last):
        row, old, v = rows[i], starts[i], volumes[i]
        out, old_end = table.mask[row], table.end[row]
        moves = old < opened or (pick and old == now)
        table.end[row] = 0
        start = first_fit(
            table, catalogue, v, durations[i], now, min(old, opened), rule, seed, serials[i], out
        )
        if start == NEVER and moves and old < NEVER:
            fits_from(table, catalogue, v, durations[i], old, rule, seed, serials[i], out)
            start = old
        if start == NEVER:
            table.end[row] = old_end
            continue
        starts[i] = start
        table.start[row], table.end[row] = start, min(start + durations[i], NEVER)
        opened, again = max(opened, old_end), max(again, old_end)
        if start == now and pick:
            return i + 1, opened, again
    return last, opened, again
