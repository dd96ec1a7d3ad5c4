# SPDX-License-Identifier: Apache-2.0
"""Placement and compression of deep queues on spread profiles.

The results are those of `counts.place` and `counts.compress`, step by step. A moved reservation
usually overlaps its old time window, so that only the nodes at the two ends of the window change.
The search skips blocks whose bounds exclude a fit (see `rebat.kernels.spread`).
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.counts import NEVER, step_at
from rebat.kernels.jit import kernel, loop, step
from rebat.kernels.spread import (
    BLOCK,
    ENDLESS,
    Spread,
    at_or_after,
    change,
    from_place,
    gather,
    next_block,
    raise_to,
    set_bound,
    spread,
)


@step
def window_in(
    t: Any, f: Any, first: int, last: int, size: int, duration: int, reserved: int, limit: int
) -> tuple[int, int]:
    """Find the first window that begins at a step from ``first`` to ``last - 1`` (see `earlier`).

    Returns the index of its first step (-1 if there is no window), and the index of the step at
    which the window is long enough. The search is one pass without unpredictable branches, except
    at the end.
    """
    k, opened = first, first
    begin = end = int(t[first]) if first < t.size else NEVER
    while opened < last and begin < limit and end < min(begin + duration, reserved):
        narrow = f[k] < size
        k += 1
        end = int(t[k]) if k < t.size else NEVER
        begin = end if narrow else begin
        opened = k if narrow else opened
    return (opened if opened < last and begin < limit else -1), k


@step
def measured(t: Any, f: Any, block: int, width: int) -> int:
    """Return the length of the longest window of ``width`` nodes that begins in ``block``."""
    longest, k = 0, block * BLOCK
    while k < (block + 1) * BLOCK:
        j = k
        while j < t.size and f[j] >= width:
            j += 1
        longest = max(longest, (t[j] if j < t.size else ENDLESS) - t[k])
        k = j + 1
    return longest


@step
def earlier(steps: Spread, size: int, duration: int, reserved: int, limit: int) -> tuple[int, int]:
    """Return the first and last step of a job's first fit before ``limit``; -1 if there is none.

    The result is that of `counts.earlier_fit`. A window that begins up to ``reserved - duration``
    must have the full duration, so only blocks with sufficient bounds are searched. Steps after
    that time are all searched.
    """
    near = steps.t.size if reserved == NEVER else at_or_after(steps.t, reserved - duration + 1)
    last = (near - 1) // BLOCK
    w = step_at(steps.wide, steps.wide.size, size)
    block, k, end = next_block(steps, w, 0, duration), -1, 0
    while k < 0 and block <= last and steps.t[block * BLOCK] < limit:
        first = block * BLOCK
        k, end = window_in(steps.t, steps.f, first, first + BLOCK, size, duration, reserved, limit)
        if k < 0:
            set_bound(steps, w, block, measured(steps.t, steps.f, block, steps.wide[w]))
            block = next_block(steps, w, block + 1, duration) if block < last else last + 1
    if k < 0:
        k, end = window_in(steps.t, steps.f, near, steps.t.size, size, duration, reserved, limit)
    return k, end


@step
def raise_bounds(steps: Spread, start: int, end: int, longest: int, k: int) -> None:
    """Raise the bounds of windows that may be longer after nodes were freed over ``[start, end)``.

    Windows are followed up to the length ``longest``; no job needs a longer window. The search for
    the step that begins at ``start`` begins at index ``k``.
    """
    first = from_place(steps.t, start + 1, k) - 1
    right, n = first + 1, steps.t.size
    free = steps.f[first]
    while right < n and steps.t[right] < end:
        free = max(free, steps.f[right])
        right += 1
    left, last = first, right - 1
    earliest, latest = start - longest, min(end, NEVER - longest) + longest
    top = step_at(steps.wide, steps.wide.size, free) if free >= steps.wide[0] else -1
    for w in range(top, -1, -1):
        width = steps.wide[w]
        while left > 0 and steps.f[left - 1] >= width and steps.t[left] > earliest:
            left -= 1
        while right < n and steps.f[right] >= width and steps.t[right] < latest:
            right += 1
        until = steps.t[right] if right < n else ENDLESS
        for block in range(left // BLOCK, last // BLOCK + 1):
            raise_to(steps, w, block, until - max(steps.t[left], steps.t[block * BLOCK]))


@step
def give_back(steps: Spread, start: int, end: int, size: int, longest: int, k: int) -> None:
    """Add ``size`` free nodes over ``[start, end)`` and raise bounds (see `raise_bounds`)."""
    if start < min(end, NEVER):
        near = k if k < steps.t.size and steps.t[k] >= start else at_or_after(steps.t, start)
        change(steps, start, end, size, near)
        raise_bounds(steps, start, min(end, NEVER), longest, near)


@step
def bounds(values: Any) -> tuple[int, int]:
    """Return the minimum and the maximum of ``values``."""
    least = most = values[0]
    for value in values:
        least, most = min(least, value), max(most, value)
    return least, most


@kernel
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int
) -> tuple[int, int]:
    """Do the same as `counts.compress`, faster for deep queues; no job may be due now."""
    _, longest = bounds(duration[:queued])
    least, most = bounds(size[:queued])
    steps = spread(t, f, n, n + 2 * queued + 8, least, most)
    moved = move_all(steps, size, duration, start, queued, opened, longest)
    return gather(steps, t, f), moved


@loop
def move_all(
    steps: Spread, size: Any, duration: Any, start: Any, queued: int, opened: int, longest: int
) -> int:
    """Move each job to its first fit; the other jobs do not change (see `counts.compress`)."""
    moved = steps.t[0]
    for i in range(queued):
        old, wanted, lasts = start[i], size[i], duration[i]
        k, until = earlier(steps, wanted, lasts, old, min(old, max(opened, moved)))
        if k >= 0:
            new = steps.t[k]
            if old < NEVER:
                give_back(steps, max(old, new + lasts), old + lasts, wanted, longest, until)
            change(steps, new, min(old, new + lasts), -wanted, k)
            start[i] = new
            moved = max(moved, min(old, NEVER - lasts) + lasts)
    return moved


@kernel
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int
) -> int:
    """Do the same as `counts.place`, faster for many jobs."""
    least, most = bounds(size[first:last])
    steps = spread(t, f, n, n + 2 * (last - first) + 8, least, most)
    place_all(steps, size, duration, start, first, last)
    return gather(steps, t, f)


@loop
def place_all(steps: Spread, size: Any, duration: Any, start: Any, first: int, last: int) -> None:
    """Reserve the first fit for each job, in queue order (see `counts.place`)."""
    for i in range(first, last):
        k, _ = earlier(steps, size[i], duration[i], NEVER, NEVER)
        start[i] = steps.t[k] if k >= 0 else NEVER
        if k >= 0:
            change(steps, start[i], start[i] + duration[i], -size[i], k)
