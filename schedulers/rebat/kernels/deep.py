# SPDX-License-Identifier: Apache-2.0
"""Placement and compression of long queues on spread profiles (`rebat.kernels.spread`).

The results after each step equal those of `counts.place` and `counts.compress`. When a reservation
is moved, its new time window usually overlaps the old one. Then only the numbers of free nodes at
the two ends of the window change. The search skips a block of steps if its bounds exclude a fit
(see `rebat.kernels.spread`).
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import counts
from rebat.kernels.counts import NEVER
from rebat.kernels.jit import inner, loop, rule, step
from rebat.kernels.spread import (
    BLOCK,
    ENDLESS,
    Spread,
    change,
    excluded,
    first_block,
    from_mark,
    from_place,
    gather,
    marks,
    next_block,
    raise_to,
    set_bound,
    spread,
)

DEEP = 64
"""Number of attempts above which a profile in blocks is faster than a simple profile."""


@step
def window_in(t: Any, f: Any, block: int, size: int, duration: int, before: int) -> int:
    """Return the first step in ``block``, and before ``before``, at which a window begins, or -1.

    For speed, the search is one pass without unpredictable branches, except at the end.
    """
    k = opened = block * BLOCK
    last = k + BLOCK
    begin = end = int(t[k])
    while opened < last and begin < before and end < min(begin + duration, NEVER):
        narrow = f[k] < size
        k += 1
        end = int(t[k]) if k < t.size else NEVER
        begin = end if narrow else begin
        opened = k if narrow else opened
    return opened if opened < last and begin < before else -1


@step
def measured(t: Any, f: Any, block: int, width: int) -> int:
    """Return the length of the longest window of ``width`` free nodes that begins in ``block``."""
    longest, k = 0, block * BLOCK
    while k < (block + 1) * BLOCK:
        j = k
        while j < t.size and f[j] >= width:
            j += 1
        longest = max(longest, (t[j] if j < t.size else ENDLESS) - t[k])
        k = j + 1
    return longest


@step
def full_window(steps: Spread, w: int, size: int, duration: int, before: int) -> int:
    """Return the first step before ``before`` at which a window of ``duration`` begins, or -1.

    Only blocks whose bounds for width number ``w`` allow this duration are searched.
    """
    block, k = first_block(steps, w, duration), -1
    while k < 0 and block < steps.blocks and steps.t[block * BLOCK] < before:
        k = window_in(steps.t, steps.f, block, size, duration, before)
        if k < 0:
            set_bound(steps, w, block, measured(steps.t, steps.f, block, steps.wide[w]))
            block = next_block(steps, w, block + 1, duration)
    return k


@step
def earlier(
    steps: Spread, size: int, duration: int, reserved: int, limit: int, near: int
) -> tuple[int, int]:
    """Return the step of a job's first fit before ``limit`` (or -1), and the step at ``reserved``.

    The fit is the same as in `counts.earlier_fit`. A window that begins at ``reserved - duration``
    or earlier must have the full duration. Later windows must extend to the job's own reservation.
    A backward search finds the first of them. The search for the step at ``reserved`` begins at
    index ``near``.
    """
    before = min(limit, reserved - duration + 1)
    own = from_mark(steps.t, reserved, near)
    last = min(own, steps.t.size - 1) // BLOCK
    while last > 0 and steps.t[last * BLOCK] >= before:
        last -= 1
    w, k = widest(steps, size), -1
    if not excluded(steps, w, last, duration):
        k = full_window(steps, w, size, duration, before)
    if k < 0:
        k = own
        while k > 0 and steps.f[k - 1] >= size and steps.t[k - 1] >= before:
            k -= 1
    return (k if k < own and steps.t[k] < limit else -1), own


@step
def raise_bounds(
    steps: Spread, start: int, end: int, longest: int, k: int, size: int = ENDLESS
) -> None:
    """Raise the bounds of windows that may have become longer over ``[start, end)``.

    ``size`` nodes were freed over this interval. The function skips widths that were already free
    in the entire interval. With the default ``size``, it skips none. It computes windows only up to
    the length ``longest``, because no job needs a longer one. The search for the step at ``start``
    begins at index ``k``.
    """
    first = from_place(steps.t, start + 1, k) - 1
    right, n = first + 1, steps.t.size
    least = free = steps.f[first]
    while right < n and steps.t[right] < end:
        least, free = min(least, steps.f[right]), max(free, steps.f[right])
        right += 1
    left, last = first, right - 1
    earliest, latest = start - longest, min(end, NEVER - longest) + longest
    for w in range(widest(steps, free), widest(steps, least - size), -1):
        width = steps.wide[w]
        while left > 0 and steps.f[left - 1] >= width and steps.t[left] > earliest:
            left -= 1
        while right < n and steps.f[right] >= width and steps.t[right] < latest:
            right += 1
        until = steps.t[right] if right < n else ENDLESS
        for block in range(left // BLOCK, last // BLOCK + 1):
            raise_to(steps, w, block, until - max(steps.t[left], steps.t[block * BLOCK]))


@step
def widest(steps: Spread, free: int) -> int:
    """Return the index of the largest width that is at most ``free``, or -1 if there is none."""
    w = -1
    for width in steps.wide:
        w += width <= free
    return w


@step
def take(steps: Spread, start: int, end: int, size: int, k: int, own: int) -> None:
    """Subtract ``size`` free nodes over ``[start, end)``, from the step at index ``k`` on.

    If a step begins at ``end``, it is usually the step at index ``own``.
    """
    if own < steps.t.size and steps.t[own] == end:
        for m in range(k, own):
            steps.f[m] -= size
    else:
        change(steps, start, end, -size, k)


@step
def give_back(steps: Spread, start: int, end: int, size: int, longest: int, k: int) -> None:
    """Add ``size`` free nodes over ``[start, end)`` and raise bounds (see `raise_bounds`).

    The search for ``start`` begins at index ``k``.
    """
    if start < min(end, NEVER):
        near = from_place(steps.t, start, k)
        change(steps, start, end, size, near)
        raise_bounds(steps, start, min(end, NEVER), longest, near, size)


@step
def bounds(values: Any) -> tuple[int, int]:
    """Return the minimum and the maximum of ``values``."""
    least = most = values[0]
    for value in values:
        least, most = min(least, value), max(most, value)
    return least, most


@loop
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int,
    scratch: Any,
) -> tuple[int, int]:  # fmt: skip
    """Do the same as `counts.compress`, but faster for long queues. No job may be due now.

    ``scratch`` is an int64 array of at least `scratch_needed` entries.
    """
    _, longest = bounds(duration[:queued])
    least, most = bounds(size[:queued])
    steps, rest = spread(t, f, n, n + 2 * queued + 8, least, most, scratch)
    index, power = marks(steps.t, n, rest)
    moved = move_all(steps, index, power, size, duration, start, queued, opened, longest)
    return gather(steps, t, f), moved


@inner
def move_all(
    steps: Spread, index: Any, power: int, size: Any, duration: Any, start: Any, queued: int,
    opened: int, longest: int,
) -> int:  # fmt: skip
    """Move each job to its first fit, one job after another (see `counts.compress`).

    ``index`` and ``power`` are the results of `marks` for the steps.
    """
    moved = now = steps.t[0]
    for i in range(queued):
        old, wanted, lasts = start[i], size[i], duration[i]
        near = index[min((old - now) >> power, index.size - 1)]
        k, own = earlier(steps, wanted, lasts, old, min(old, max(opened, moved)), near)
        if k >= 0:
            new = steps.t[k]
            take(steps, new, min(old, new + lasts), wanted, k, own)
            if old < NEVER:
                give_back(steps, max(old, new + lasts), old + lasts, wanted, longest, own)
            start[i] = new
            moved = max(moved, min(old, NEVER - lasts) + lasts)
    return moved


@loop
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int,
    scratch: Any,
) -> int:  # fmt: skip
    """Do the same as `counts.place`, but faster for many jobs (see also `compress`)."""
    least, most = bounds(size[first:last])
    steps, _ = spread(t, f, n, n + 2 * (last - first) + 8, least, most, scratch)
    place_all(steps, size, duration, start, first, last)
    return gather(steps, t, f)


@inner
def place_all(steps: Spread, size: Any, duration: Any, start: Any, first: int, last: int) -> None:
    """Reserve the first fit for each job, in queue order (see `counts.place`)."""
    for i in range(first, last):
        w = widest(steps, size[i])
        k = full_window(steps, w, size[i], duration[i], NEVER)
        start[i] = steps.t[k] if k >= 0 else NEVER
        if k >= 0:
            change(steps, start[i], start[i] + duration[i], -size[i], k)


@rule
def reserve(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int,
    scratch: Any,
) -> int:  # fmt: skip
    """Do the same as `counts.place`, on blocks if there are more than `DEEP` jobs."""
    if last - first > DEEP:
        return place(t, f, n, size, duration, start, first, last, scratch)
    return counts.place(t, f, n, size, duration, start, first, last)


@rule
def renew(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int,
    scratch: Any,
) -> Any:  # fmt: skip
    """Do the same as `counts.compress`, on blocks if more than `DEEP` jobs wait."""
    if queued > DEEP and not counts.any_before(start, queued, t[0] + 1):
        return compress(t, f, n, size, duration, start, queued, opened, scratch)
    return counts.compress(t, f, n, size, duration, start, queued, opened)
