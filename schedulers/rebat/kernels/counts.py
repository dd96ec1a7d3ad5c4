# SPDX-License-Identifier: Apache-2.0
"""Availability by counts: how many nodes are free from each date on, nodes interchangeable.

A profile is two int64 arrays and a length: ``t[0:n]`` ascending dates (microseconds) and
``f[0:n]`` the nodes free in ``[t[i], t[i+1])``; the last step has no end. ``t[0]`` is never later
than now. Each reservation adds at most two steps, so a profile needs room for
``2 * rectangles + 2`` (``steps_needed``).

Placement is first fit: the earliest date from which enough nodes stay free for the whole
duration (conservative backfilling, Mu'alem and Feitelson 2001; section 4.1 of Du et al. 2024).
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels.jit import kernel

NEVER = FOREVER_US


def steps_needed(rectangles: int) -> int:
    """Room for the steps that so many running jobs and reservations can make."""
    return 2 * rectangles + 4


@kernel
def step_at(t: Any, n: int, date: int) -> int:
    """Index of the step that holds ``date`` (bisection; 0 when the date is before all)."""
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if t[middle] <= date:
            low = middle
        else:
            high = middle
    return low


@kernel
def split(t: Any, f: Any, n: int, date: int) -> tuple[int, int]:
    """Make ``date`` a step's start; give its index and the new length."""
    i = step_at(t, n, date)
    if t[i] == date:
        return i, n
    for k in range(n, i + 1, -1):
        t[k] = t[k - 1]
        f[k] = f[k - 1]
    t[i + 1] = date
    f[i + 1] = f[i]
    return i + 1, n + 1


@kernel
def drop_if_flat(t: Any, f: Any, n: int, i: int) -> int:
    """Join step ``i`` to the one before when both have as many free nodes."""
    if i <= 0 or i >= n or f[i] != f[i - 1]:
        return n
    for k in range(i, n - 1):
        t[k] = t[k + 1]
        f[k] = f[k + 1]
    return n - 1


@kernel
def change(t: Any, f: Any, n: int, start: int, end: int, delta: int) -> int:
    """Add ``delta`` free nodes over ``[start, end)``; ``end`` at NEVER has no end."""
    if end <= start:
        return n
    i, n = split(t, f, n, start)
    j = n
    if end < NEVER:
        j, n = split(t, f, n, end)
    for k in range(i, j):
        f[k] += delta
    n = drop_if_flat(t, f, n, j)
    return drop_if_flat(t, f, n, i)


@kernel
def change_all(t: Any, f: Any, n: int, changes: Any) -> int:
    """Each row of ``changes`` in turn: start, end, delta."""
    for i in range(changes.shape[0]):
        n = change(t, f, n, changes[i, 0], changes[i, 1], changes[i, 2])
    return n


@kernel
def forget(t: Any, f: Any, n: int, now: int) -> int:
    """Drop the past: the step that holds ``now`` becomes the first and begins now."""
    i = step_at(t, n, now)
    if i > 0:
        for k in range(i, n):
            t[k - i] = t[k]
            f[k - i] = f[k]
    t[0] = now
    return n - i


@kernel
def earlier_fit(
    t: Any, f: Any, n: int, size: int, duration: int, reserved: int, horizon: int
) -> int:
    """First fit for a job that holds a reservation from ``reserved`` on, its own nodes counted.

    Beyond ``reserved`` its own nodes suffice, so only the steps before it are looked at; a window
    that begins at or after ``horizon`` cannot have opened (see ``compress``).
    """
    limit = min(reserved, horizon)
    i = 0
    while i < n and t[i] < limit:
        if f[i] < size:
            i += 1
            continue
        end = min(t[i] + duration, reserved)
        j = i + 1
        while j < n and t[j] < end and f[j] >= size:
            j += 1
        if j == n or t[j] >= end:
            return t[i]
        i = j + 1
    return reserved


@kernel
def first_fit(t: Any, f: Any, n: int, size: int, duration: int) -> Any:
    """Earliest date from ``t[0]`` on with ``size`` nodes free for ``duration``; NEVER if none."""
    return earlier_fit(t, f, n, size, duration, NEVER, NEVER)


@kernel
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int
) -> int:
    """Give the queued jobs ``first`` to ``last - 1`` their first fit, in queue order."""
    for i in range(first, last):
        start[i] = first_fit(t, f, n, size[i], duration[i])
        if start[i] < NEVER:
            n = change(t, f, n, start[i], start[i] + duration[i], -size[i])
    return n


@kernel
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int
) -> tuple[int, int]:
    """Take each queued job out and put it back at its first fit, the others standing.

    No job moves later. ``opened`` is the latest end of what was freed since every job was last
    looked at: an earlier window must overlap something freed, so it begins before that date.

    Returns
    -------
    n, moved : int
        The profile's new length; the latest end of a reservation given up in this pass, which
        counts as freed for the next pass (jobs ahead in the queue did not see it).
    """
    now = t[0]
    moved = now
    for i in range(queued):
        old = start[i]
        if old <= now:
            # Due now: decide again on the nodes free at this very instant.
            n = change(t, f, n, now, old + duration[i], size[i])
            start[i] = first_fit(t, f, n, size[i], duration[i])
            n = change(t, f, n, start[i], start[i] + duration[i], -size[i])
            continue
        horizon = max(opened, moved)
        new = earlier_fit(t, f, n, size[i], duration[i], old, horizon)
        if new < old:
            if old < NEVER:
                n = change(t, f, n, old, old + duration[i], size[i])
            n = change(t, f, n, new, new + duration[i], -size[i])
            start[i] = new
            moved = max(moved, min(old, NEVER - duration[i]) + duration[i])
    return n, moved


@kernel
def backfill(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, depth: int,
    first: bool = False,
) -> int:  # fmt: skip
    """List scheduling with ``depth`` reservations (0 greedy, 1 EASY) on a profile of running jobs.

    In queue order each job starts now if it can; the first ``depth`` that cannot are reserved;
    the others wait without a reservation (``start`` NEVER). With ``first`` only the first
    ``depth`` jobs of the queue are reserved, and use up the reservations also when they start now
    (Algorithm 1 of RR-9296).
    """
    now = t[0]
    reserved = 0
    for i in range(queued):
        start[i] = NEVER
        used = i if first else reserved
        if f[0] < size[i] and used >= depth:
            continue
        fit = first_fit(t, f, n, size[i], duration[i])
        if fit > now:
            if used >= depth or fit == NEVER:
                continue
            reserved += 1
        start[i] = fit
        n = change(t, f, n, fit, fit + duration[i], -size[i])
    return n


@kernel
def any_before(start: Any, queued: int, date: int) -> bool:
    """Whether some job was to start before a date."""
    for i in range(queued):
        if start[i] < date:
            return True
    return False


@kernel
def due(start: Any, queued: int, now: int, out: Any) -> int:
    """The positions of the jobs whose start has come go to ``out``, ascending; their number."""
    found = 0
    for i in range(queued):
        if start[i] <= now:
            out[found] = i
            found += 1
    return found


@kernel
def take_out(size: Any, duration: Any, start: Any, queued: int, out: Any, n_out: int) -> None:
    """Take the jobs at the first ``n_out`` positions of ``out``, ascending, out of the arrays."""
    found = 0
    for i in range(queued):
        if found < n_out and i == out[found]:
            found += 1
        elif found:
            size[i - found] = size[i]
            duration[i - found] = duration[i]
            start[i - found] = start[i]
