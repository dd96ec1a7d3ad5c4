# SPDX-License-Identifier: Apache-2.0
"""Profiles: the number of free nodes over time, if nodes are interchangeable.

A profile consists of two int64 arrays and a length n. ``t[0:n]`` are ascending times
(microseconds). ``f[i]`` is the number of nodes that are free in ``[t[i], t[i+1])``; this interval
is called a step. The last step has no end. ``t[0]`` is never later than the current time. Each
reservation adds at most two steps. `steps_needed` returns an array length that is always
sufficient.

Placement is *first fit*: a job starts at the earliest time from which enough nodes stay free for
its duration (conservative backfilling, Mu'alem and Feitelson 2001; section 4.1 of Du et al. 2024).
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels.jit import kernel

NEVER = FOREVER_US


@kernel
def step_at(t: Any, n: int, time: int) -> int:
    """Return the index of the step that contains ``time``, or 0 if it is before the first step."""
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if t[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def split(t: Any, f: Any, n: int, time: int) -> tuple[int, int]:
    """Make ``time`` the start of a step. Return the index of this step and the new ``n``."""
    i = step_at(t, n, time)
    if t[i] == time:
        return i, n
    for k in range(n, i + 1, -1):
        t[k] = t[k - 1]
        f[k] = f[k - 1]
    t[i + 1] = time
    f[i + 1] = f[i]
    return i + 1, n + 1


@kernel
def drop_if_flat(t: Any, f: Any, n: int, i: int) -> int:
    """Join step ``i`` to the previous step if their free nodes are equal. Return the new ``n``."""
    if i <= 0 or i >= n or f[i] != f[i - 1]:
        return n
    for k in range(i, n - 1):
        t[k] = t[k + 1]
        f[k] = f[k + 1]
    return n - 1


@kernel
def change(t: Any, f: Any, n: int, start: int, end: int, delta: int) -> int:
    """Add ``delta`` free nodes over ``[start, end)``, and return the new ``n``.

    If ``end`` is NEVER, the interval has no end.
    """
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
def forget(t: Any, f: Any, n: int, now: int) -> int:
    """Delete the past, so that the first step begins at ``now``. Return the new ``n``."""
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
    """Return the earliest start of a job whose present reservation begins at ``reserved``.

    From ``reserved`` on, the job can use the nodes of its own reservation. Therefore, only steps
    before ``reserved`` are searched. No new window begins at or after ``horizon`` (see
    ``compress``).
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
    """Return the earliest time from which ``size`` nodes stay free for ``duration``, or NEVER."""
    return earlier_fit(t, f, n, size, duration, NEVER, NEVER)


@kernel
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int
) -> int:
    """Reserve the first fit for the queued jobs ``first`` to ``last - 1``, in queue order."""
    for i in range(first, last):
        start[i] = first_fit(t, f, n, size[i], duration[i])
        if start[i] < NEVER:
            n = change(t, f, n, start[i], start[i] + duration[i], -size[i])
    return n


@kernel
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int
) -> tuple[int, int]:
    """Move the reservation of each queued job to its first fit, one job after another.

    No job moves to a later time. A job can move to an earlier window only if it uses nodes that
    were freed since the last pass. ``opened`` is the latest time until which any of these nodes was
    in use. Therefore, all windows to which jobs move begin before ``opened``.

    Returns
    -------
    n, moved : int
        The new length of the profile, and the latest end of the reservations that were moved in
        this pass. Their nodes count as freed in the next pass, because jobs ahead in the queue
        could not use them in this pass.
    """
    now = t[0]
    moved = now
    for i in range(queued):
        old = start[i]
        if old <= now:
            # The job would start now: decide again with the nodes that are now free.
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
    """Schedule the queue with at most ``depth`` reservations (0: greedy, 1: EASY).

    ``t`` and ``f`` are the profile of the running jobs.

    In queue order, each job starts now if it can. The first ``depth`` jobs that cannot start now
    get reservations. Further jobs that cannot start wait without a reservation (``start`` is
    NEVER). If ``first`` is set, only the first ``depth`` jobs of the queue get reservations,
    including jobs that start now (Algorithm 1 of RR-9296).
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
def any_before(start: Any, queued: int, time: int) -> bool:
    """Return whether any of the first ``queued`` entries of ``start`` is before ``time``."""
    for i in range(queued):
        if start[i] < time:
            return True
    return False


@kernel
def due(start: Any, queued: int, now: int, out: Any) -> int:
    """Write the positions of jobs whose ``start`` is at most ``now``, and return their number."""
    n_due = 0
    for i in range(queued):
        if start[i] <= now:
            out[n_due] = i
            n_due += 1
    return n_due


@kernel
def take_out(
    size: Any, duration: Any, start: Any, serial: Any, queued: int, out: Any, n_out: int
) -> None:
    """Remove the jobs at the ascending positions ``out[:n_out]`` from the four arrays."""
    n_removed = 0
    for i in range(queued):
        if n_removed < n_out and i == out[n_removed]:
            n_removed += 1
        elif n_removed:
            size[i - n_removed] = size[i]
            duration[i - n_removed] = duration[i]
            start[i - n_removed] = start[i]
            serial[i - n_removed] = serial[i]


@kernel
def make_place(size: Any, duration: Any, start: Any, serial: Any, queued: int, at: int) -> None:
    """Move the jobs from position ``at`` on by one position, in the four arrays."""
    for k in range(queued, at, -1):
        size[k] = size[k - 1]
        duration[k] = duration[k - 1]
        start[k] = start[k - 1]
        serial[k] = serial[k - 1]


@kernel
def move_on(values: Any, queued: int, at: int) -> None:
    """Move the values from position ``at`` on by one position."""
    for k in range(queued, at, -1):
        values[k] = values[k - 1]


@kernel
def copy_profile(t: Any, f: Any, n: int, to_t: Any, to_f: Any) -> None:
    """Copy a profile."""
    for i in range(n):
        to_t[i] = t[i]
        to_f[i] = f[i]
