# SPDX-License-Identifier: Apache-2.0
"""Fast searches and changes in long profiles, with bounds on the lengths of windows.

A profile of `rebat.kernels.counts` with thousands of steps is slow in two ways: an inserted step
moves all later steps, and a first fit searches all earlier steps. This module avoids both:

- Steps are *spread*: each step is followed by a spare step with the same number of free nodes. A
  new step uses the nearest spare step. If a step gets the same number of free nodes as the previous
  step, it becomes a spare step, so that no step is ever removed.
- ``BLOCK`` consecutive array entries form a block of steps. A window of a certain width is a time
  interval in which at least this number of nodes is free. For some widths (each about 1.5 times the
  previous one), every block stores an upper *bound* on the length of the windows of this width that
  begin in the block. Bounds are computed at the start, and stay valid when nodes are used. They are
  raised when nodes are freed, and computed again when a search of the block fails (see
  `rebat.kernels.deep`). Every block also stores the maximum of the bounds up to this block. With
  these maxima, the search for a first fit skips all blocks that cannot contain the fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import loop, step

BLOCK = 32
"""Array entries per block."""

CHUNK = BLOCK // 2
"""Number of array entries that are compared together when entries before a time are counted."""

ENDLESS = 2**63 - 1
"""The end of a window without an end. It is later than the end of any job."""


class Spread(NamedTuple):
    """A profile with spare steps, and the bounds of its blocks.

    Attributes
    ----------
    t, f : int64[entries]
        As in `rebat.kernels.counts`.
    wide : int64[n_widths]
        The widths, in nodes.
    bounds : int64[n_widths * blocks]
        The bounds of all blocks for the first width, then for the second width, and so on.
    most : int64[n_widths * blocks]
        For each bound, the maximum of the bounds of this and all previous blocks.
    blocks : int
        Number of blocks.
    """

    t: Any
    f: Any
    wide: Any
    bounds: Any
    most: Any
    blocks: int


def scratch_needed(room: int) -> int:
    """Return the length of a scratch array that suffices to spread profiles over ``room`` entries.

    The profiles have at most this number of steps. There are less than 64 widths.
    """
    n_blocks = 2 * room // BLOCK + 1
    return n_blocks * (2 * BLOCK + 2 * 64) + 64 + room


@step
def widths(least: int, most: int, out: Any) -> int:
    """Write the widths that have bounds, ascending, for jobs of ``least`` to ``most`` nodes.

    A job uses the bounds of the largest width that is not above its number of nodes. This width is
    above two thirds of this number, except for the smallest jobs. The result is the number of
    widths.
    """
    out[0] = max(least, 2 * most // 3)
    n = 1
    while out[n - 1] > least:
        out[n] = max(least, 2 * out[n - 1] // 3)
        n += 1
    for i in range(n // 2):
        out[i], out[n - 1 - i] = out[n - 1 - i], out[i]
    return n


@step
def spread(
    t: Any, f: Any, n: int, room: int, least: int, most: int, scratch: Any
) -> tuple[Spread, Any]:
    """Spread the profile over at least ``room`` entries, for jobs of these sizes.

    Jobs have ``least`` to ``most`` nodes. The remaining spare steps are at the end of the arrays,
    where new steps after the last step can use them. Their time is after all other times. The
    result, and the rest of the scratch array, are parts of ``scratch`` (see `scratch_needed`).
    """
    n_blocks = max(room, 2 * n) // BLOCK + 1
    places = n_blocks * BLOCK
    n_widths = widths(least, most, scratch)
    wide, scratch = scratch[:n_widths], scratch[n_widths:]
    spread_t, spread_f = scratch[:places], scratch[places : 2 * places]
    bounds = scratch[2 * places : 2 * places + n_widths * n_blocks]
    scratch = scratch[2 * places + n_widths * n_blocks :]
    maxima, scratch = scratch[: n_widths * n_blocks], scratch[n_widths * n_blocks :]
    for i in range(n):
        spread_t[2 * i] = spread_t[2 * i + 1] = t[i]
        spread_f[2 * i] = spread_f[2 * i + 1] = f[i]
    for i in range(2 * n, places):
        spread_t[i], spread_f[i] = ENDLESS, f[n - 1]
    steps = Spread(spread_t, spread_f, wide, bounds, maxima, n_blocks)
    for w in range(n_widths):
        measure(steps, w)
    return steps, scratch


@loop
def measure(steps: Spread, w: int) -> None:
    """Set the bounds for width number ``w`` to the actual lengths of the longest windows.

    Every second step is a spare step, which can be skipped: its window is not longer than that of
    the previous step.
    """
    t, f, width = steps.t, steps.f, steps.wide[w]
    first, until = w * steps.blocks, ENDLESS
    for block in range(steps.blocks - 1, -1, -1):
        longest = 0
        for k in range((block + 1) * BLOCK - 2, block * BLOCK - 1, -2):
            until = until if f[k] >= width else t[k]
            longest = max(longest, until - t[k])
        steps.bounds[first + block] = longest
    longest = 0
    for at in range(first, first + steps.blocks):
        longest = max(longest, steps.bounds[at])
        steps.most[at] = longest


@loop
def gather(steps: Spread, t: Any, f: Any) -> int:
    """Write the profile without spare steps into ``t`` and ``f``, and return the number of steps.

    To avoid unpredictable branches, spare steps are also written, and the next step overwrites
    them.
    """
    n, before = 0, steps.f[0] - 1
    for k in range(steps.t.size):
        t[n], f[n] = steps.t[k], steps.f[k]
        n += steps.f[k] != before
        before = steps.f[k]
    return n


@step
def at_or_after(t: Any, time: int) -> int:
    """Return the index of the first step at or after ``time``, or ``t.size`` if there is none."""
    return between(t, time, 0, t.size)


@step
def between(t: Any, time: int, low: int, high: int) -> int:
    """Return the same as `at_or_after`, by bisection from index ``low`` to index ``high``."""
    while low < high:
        middle = (low + high) // 2
        if t[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@step
def from_mark(t: Any, time: int, k: int) -> int:
    """Return the same as `at_or_after`, by a search in chunks that begins at index ``k``."""
    low = max(0, min(k - CHUNK // 4, t.size - CHUNK))
    n = earlier_steps(t, time, low)
    if n == 0:
        return between(t, time, 0, low)
    while n == CHUNK and low + 2 * CHUNK <= t.size:
        low += CHUNK
        n = earlier_steps(t, time, low)
    return low + n if n < CHUNK else between(t, time, low + CHUNK, t.size)


@step
def earlier_steps(t: Any, time: int, low: int) -> int:
    """Of the ``CHUNK`` steps from index ``low``, return how many begin before ``time``.

    Counting needs no unpredictable branches.
    """
    n = 0
    for k in range(low, low + CHUNK):
        n += t[k] < time
    return n


@step
def from_place(t: Any, time: int, k: int) -> int:
    """Return the same as `at_or_after`, by a search step by step that begins at index ``k``."""
    while k < t.size and t[k] < time:
        k += 1
    while k > 0 and t[k - 1] >= time:
        k -= 1
    return k


@step
def marks(t: Any, n: int, scratch: Any) -> tuple[Any, int]:
    """Return the index of the first step in each of at most ``n`` equal intervals of time.

    The last interval has no end. The other intervals are 2^p microseconds long, and p is the second
    result. The first result is a part of ``scratch``.
    """
    size, power = at_or_after(t, ENDLESS), 0
    span = t[size - 1] - t[0]
    while span >> power >= n:
        power += 1
    first = scratch[: (span >> power) + 1]
    first[:] = size
    for k in range(size - 1, -1, -1):
        first[(t[k] - t[0]) >> power] = k
    for i in range(first.size - 1, 0, -1):
        first[i - 1] = min(first[i - 1], first[i])
    return first, power


@step
def spare(f: Any, k: int, keep: int) -> int:
    """Return the index of the spare step nearest to index ``k``. The result is never ``keep``."""
    after = before = k
    while after < f.size and (f[after] != f[after - 1] or after == keep):
        after += 1
    furthest = max(0, 2 * k - after) if after < f.size else 0
    while before > furthest and (f[before] != f[before - 1] or before == keep):
        before -= 1
    return before if before > furthest or after == f.size else after


@step
def cut(steps: Spread, time: int, k: int, keep: int) -> int:
    """Make ``time`` the start of a step, and return the index of this step.

    The search for the step begins at index ``k``. The entry at index ``keep`` stays there, or moves
    to the previous index.
    """
    at = from_place(steps.t, time, k)
    if at == steps.t.size or steps.t[at] != time:
        place = spare(steps.f, min(at, steps.t.size - 1), keep)
        last = at - 1
        if place < at:
            at -= 1
            last = at
        move(steps.t, at, place)
        move(steps.f, at, place)
        spill(steps, last // BLOCK, place // BLOCK)
        steps.t[at] = time
        steps.f[at] = steps.f[at - 1]
    return at


@step
def move(values: Any, source: int, target: int) -> None:
    """Move entries by one position from ``source`` towards ``target``, and overwrite ``target``."""
    for m in range(target, source, -1):
        values[m] = values[m - 1]
    for m in range(target, source):
        values[m] = values[m + 1]


@step
def spill(steps: Spread, source: int, target: int) -> None:
    """If a step moved to another block, raise the bounds there to those of its former block."""
    by = 1 if target > source else -1
    for block in range(target, source, -by):
        for w in range(steps.wide.size):
            raise_to(steps, w, block, steps.bounds[w * steps.blocks + block - by])


@step
def change(steps: Spread, start: int, end: int, delta: int, k: int) -> None:
    """Add ``delta`` free nodes over ``[start, end)``, without an update of the bounds."""
    first = cut(steps, start, k, -1)
    last = cut(steps, end, first, first) if end < NEVER else steps.t.size
    if first > 0 and steps.t[first - 1] == start:
        first -= 1
    for m in range(first, last):
        steps.f[m] += delta


@step
def raise_to(steps: Spread, w: int, block: int, bound: int) -> None:
    """Raise the bound of ``block`` for width number ``w`` to at least ``bound``."""
    at, end = w * steps.blocks + block, (w + 1) * steps.blocks
    if steps.bounds[at] < bound:
        steps.bounds[at] = bound
        while at < end and steps.most[at] < bound:
            steps.most[at] = bound
            at += 1


@step
def set_bound(steps: Spread, w: int, block: int, bound: int) -> None:
    """Set the bound of ``block`` for width number ``w`` to ``bound``."""
    at, end = w * steps.blocks + block, (w + 1) * steps.blocks
    steps.bounds[at] = bound
    most = steps.most[at - 1] if block > 0 else 0
    while at < end:
        most = max(most, steps.bounds[at])
        if steps.most[at] == most:
            break
        steps.most[at] = most
        at += 1


@step
def excluded(steps: Spread, w: int, block: int, duration: int) -> bool:
    """Return whether the bounds of all blocks up to ``block`` are less than ``duration``."""
    return steps.most[w * steps.blocks + block] < duration


@step
def first_block(steps: Spread, w: int, duration: int) -> int:
    """Return the first block with a bound of at least ``duration``, or the number of blocks."""
    first = w * steps.blocks
    return between(steps.most, duration, first, first + steps.blocks) - first


@step
def next_block(steps: Spread, w: int, block: int, duration: int) -> int:
    """Return the first block at or after ``block`` whose bound is at least ``duration``.

    If there is none, the result is the number of blocks.
    """
    while block < steps.blocks and steps.bounds[w * steps.blocks + block] < duration:
        block += 1
    return block
