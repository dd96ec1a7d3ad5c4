# SPDX-License-Identifier: Apache-2.0
"""Starts and reservations in a long queue, without a scan of the entire queue.

Attempts that start leave *gaps* in the queue, until there are more gaps than attempts. The size of
a gap is `GAP`. An index contains the least size and the least duration in each group of `NARROW`
positions, and in each group of `WIDE` positions. A search skips the groups in which no attempt can
start now. The starts and reservations equal those of `counts.backfill`.

The rows of an index are the least sizes and durations of narrow groups, then those of wide groups.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import counts
from rebat.kernels.counts import NEVER
from rebat.kernels.jit import kernel

NARROW, WIDE = 16, 256

SCANNED = 256
"""Number of queued attempts up to which a plan scans the entire queue."""

GAP = 2**62
"""Size and duration of a gap. No attempt is larger or takes longer."""


def groups_of(queued: int) -> int:
    """Return the number of narrow groups in a queue of this length."""
    return queued // NARROW + 1


@kernel
def set_least(index: Any, size: Any, duration: Any, queued: int, first: int, last: int) -> None:
    """Update the groups that contain the positions ``first`` to ``last``."""
    for group in range(first // NARROW, last // NARROW + 1):
        least = shortest = GAP
        for at in range(group * NARROW, min((group + 1) * NARROW, queued)):
            least, shortest = min(least, size[at]), min(shortest, duration[at])
        index[0, group], index[1, group] = least, shortest
    n_groups, groups_in = (queued + NARROW - 1) // NARROW, WIDE // NARROW
    for wide in range(first // WIDE, last // WIDE + 1):
        least = shortest = GAP
        for group in range(wide * groups_in, min((wide + 1) * groups_in, n_groups)):
            least, shortest = min(least, index[0, group]), min(shortest, index[1, group])
        index[2, wide], index[3, wide] = least, shortest


@kernel
def set_lows(t: Any, f: Any, n: int, after: Any, low: Any) -> int:
    """Write when a profile has fewer free nodes than at all times before, and how many these are.

    ``after`` are the times from now on. Return the number of times.
    """
    after[0], low[0] = 0, f[0]
    k = 1
    for i in range(1, n):
        if f[i] < low[k - 1]:
            after[k], low[k] = t[i] - t[0], f[i]
            k += 1
    return k


@kernel
def can_start(size: int, duration: int, after: Any, low: Any, n_lows: int) -> bool:
    """Return whether ``size`` nodes stay free from now on for ``duration`` (see `set_lows`)."""
    k = 1
    while k < n_lows and after[k] < duration:
        k += 1
    return size <= low[k - 1]


@kernel
def next_start(
    index: Any, size: Any, duration: Any, queued: int, at: int, after: Any, low: Any,
    n_lows: int,
) -> int:  # fmt: skip
    """Return the first position from ``at`` on of an attempt that can start now, or -1."""
    while at < queued:
        if at % WIDE == 0:
            wide = at // WIDE
            if not can_start(index[2, wide], index[3, wide], after, low, n_lows):
                at += WIDE
                continue
        if at % NARROW == 0:
            group = at // NARROW
            if not can_start(index[0, group], index[1, group], after, low, n_lows):
                at += NARROW
                continue
        if can_start(size[at], duration[at], after, low, n_lows):
            return at
        at += 1
    return -1


@kernel
def next_attempt(index: Any, size: Any, queued: int, at: int) -> int:
    """Return the first position from ``at`` on that is not a gap, or -1."""
    while at < queued:
        if at % WIDE == 0 and index[2, at // WIDE] == GAP:
            at += WIDE
        elif at % NARROW == 0 and index[0, at // NARROW] == GAP:
            at += NARROW
        elif size[at] == GAP:
            at += 1
        else:
            return at
    return -1


@kernel
def backfill(
    t: Any, f: Any, n: int, index: Any, size: Any, duration: Any, queued: int, depth: int,
    first: bool, after: Any, low: Any, due: Any,
) -> int:  # fmt: skip
    """Schedule the queue as `counts.backfill` does. Return how many attempts start now.

    Their positions are written to ``due``. ``after`` and ``low`` are arrays as long as the profile.
    """
    now, n_due, at, n_reserved = t[0], 0, 0, 0
    while n_reserved < depth:
        at = next_attempt(index, size, queued, at)
        if at < 0:
            return n_due
        fit = counts.first_fit(t, f, n, size[at], duration[at])
        if fit < NEVER:
            n = counts.change(t, f, n, fit, fit + duration[at], -size[at])
        if fit == now:
            due[n_due] = at
            n_due += 1
        if first or now < fit < NEVER:
            n_reserved += 1
        at += 1
    n_lows = set_lows(t, f, n, after, low)
    at = next_start(index, size, duration, queued, at, after, low, n_lows)
    while at >= 0:
        due[n_due] = at
        n_due += 1
        n = counts.change(t, f, n, now, now + duration[at], -size[at])
        n_lows = set_lows(t, f, n, after, low)
        at = next_start(index, size, duration, queued, at + 1, after, low, n_lows)
    return n_due


@kernel
def nearest_gap(size: Any, queued: int, at: int) -> int:
    """Return the gap, or the end of the queue, that is nearest to the place before ``at``."""
    k = 0
    while at + k < queued and size[at + k] != GAP:
        if k < at and size[at - 1 - k] == GAP:
            return at - 1 - k
        k += 1
    return at + k


@kernel
def make_place(size: Any, duration: Any, queue: Any, queued: int, at: int) -> tuple[int, int]:
    """Move attempts into the nearest gap, so that one can enter before position ``at``.

    Return two positions: where it enters, and where the gap was.
    """
    gap = nearest_gap(size, queued, at)
    for k in range(gap, at, -1):
        size[k], duration[k], queue[k] = size[k - 1], duration[k - 1], queue[k - 1]
    for k in range(gap, at - 1):
        size[k], duration[k], queue[k] = size[k + 1], duration[k + 1], queue[k + 1]
    return (at if gap >= at else at - 1), gap


@kernel
def close_gaps(size: Any, duration: Any, queue: Any, queued: int) -> int:
    """Remove all gaps, and return the number of queued attempts."""
    n = 0
    for at in range(queued):
        if size[at] != GAP:
            size[n], duration[n], queue[n] = size[at], duration[at], queue[at]
            n += 1
    return n
