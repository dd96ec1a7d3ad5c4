# SPDX-License-Identifier: Apache-2.0
"""Placement and compression of long queues on chains of steps (`rebat.kernels.chain`).

The results after each step equal those of `counts.place` and `counts.compress`. When a reservation
is moved, its new time window usually overlaps the old one. Then only the numbers of free nodes at
the two ends of the window change. The search skips a block of steps if its bounds exclude a fit.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import counts
from rebat.kernels.chain import (
    ROWS,
    Chain,
    add,
    chain_of,
    full_window,
    gather,
    measure,
    near,
    raise_bounds,
    spacing,
    step_at,
    widest,
)
from rebat.kernels.counts import NEVER
from rebat.kernels.jit import inner, loop, rule, step

DEEP = 128
"""Number of attempts above which a chain is faster than a simple profile."""


@step
def earlier(chain: Chain, size: int, duration: int, own: int, reserved: int, limit: int) -> int:
    """Return the step of a job's first fit before ``limit``, or ``own``, the step of its start.

    The fit is the same as in `counts.earlier_fit`. A window that begins at ``reserved - duration``
    or earlier must have the full duration. Later windows must extend to the job's own reservation.
    A backward search finds the first of them.
    """
    t, f, k = chain.t, chain.f, -1
    before = min(limit, reserved - duration + 1)
    if before > t[0]:
        w = widest(chain, size)
        measure(chain, before, w, duration)
        last = min(chain.block[own], chain.counts[ROWS] - 1)
        if chain.most[last * chain.wide.size + w] >= duration:
            k = full_window(chain, w, size, duration, last)
            if k >= 0 and t[k] >= before:
                k = -1
    if k < 0:
        k = own
        previous = chain.previous[k]
        while k > 0 and f[previous] >= size and t[previous] >= before:
            k, previous = previous, chain.previous[previous]
    return k if t[k] < limit else own


@loop
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, queued: int, opened: int,
    scratch: Any,
) -> tuple[int, int]:  # fmt: skip
    """Do the same as `counts.compress`, but faster for long queues. No job may be due now.

    ``scratch`` is an int64 array of at least `scratch_needed` entries.
    """
    chain = chain_of(t, f, n, size, duration, 0, queued, 0, scratch)
    moved = move_all(chain, size, duration, start, queued, opened)
    return gather(chain, t, f), moved


@inner
def move_all(chain: Chain, size: Any, duration: Any, start: Any, queued: int, opened: int) -> int:
    """Move each job to its first fit, one job after another (see `counts.compress`)."""
    moved = chain.t[0]
    for i in range(queued):
        old, wanted, lasts = start[i], size[i], duration[i]
        own = step_at(chain, near(chain, old), old)
        k = earlier(chain, wanted, lasts, own, old, min(old, max(opened, moved)))
        if k == own:
            continue
        new = start[i] = chain.t[k]
        until, last = new + lasts, own
        if until < old:
            last = step_at(chain, near(chain, until), until)
        add(chain, k, last, -wanted)
        if old < NEVER:
            end = step_at(chain, near(chain, old + lasts), old + lasts)
            first = step_at(chain, end, until) if until > old else own
            if first != end:
                add(chain, first, end, wanted)
                raise_bounds(chain, first, end, wanted)
        moved = max(moved, min(old, NEVER - lasts) + lasts)
    return moved


@loop
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, start: Any, first: int, last: int,
    scratch: Any,
) -> int:  # fmt: skip
    """Do the same as `counts.place`, but faster for many jobs (see also `compress`)."""
    gap = spacing(f[n - 1], size, duration, first, last)
    chain = chain_of(t, f, n, size, duration, first, last, gap, scratch)
    place_all(chain, size, duration, start, first, last)
    return gather(chain, t, f)


@inner
def place_all(chain: Chain, size: Any, duration: Any, start: Any, first: int, last: int) -> None:
    """Reserve the first fit for each job, in queue order (see `counts.place`)."""
    measure(chain, NEVER, 0, 0)
    for i in range(first, last):
        w, n_rows = widest(chain, size[i]), chain.counts[ROWS]
        k = full_window(chain, w, size[i], duration[i], n_rows - 1)
        start[i] = chain.t[k] if k >= 0 else NEVER
        if k >= 0:
            end = start[i] + duration[i]
            add(chain, k, step_at(chain, near(chain, end), end), -size[i])


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
