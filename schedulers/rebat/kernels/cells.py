# SPDX-License-Identifier: Apache-2.0
"""Profiles of several *cells*: nodes that belong to the same partitions are interchangeable.

A profile consists of the times ``t[0:n]`` (ascending, in microseconds) and the table ``f``:
``f[i, c]`` is the number of nodes of cell ``c`` that are free in ``[t[i], t[i+1])``. The last step
has no end. `rebat.kernels.counts` has the operations that are the same for a single cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.counts import NEVER, split
from rebat.kernels.jit import kernel


@kernel
def change(t: Any, f: Any, n: int, start: int, end: int, counts: Any, sign: int) -> int:
    """Add ``sign * counts[c]`` free nodes of each cell over ``[start, end)``. Return the new ``n``.

    If ``end`` is NEVER, the interval has no end.
    """
    if end <= start:
        return n
    i, n = split(t, f, n, start)
    j = n
    if end < NEVER:
        j, n = split(t, f, n, end)
    for k in range(i, j):
        for c in range(counts.shape[0]):
            f[k, c] += sign * counts[c]
    return n


@kernel
def fit(
    t: Any, f: Any, n: int, size: int, duration: int, longest: int, cells: Any, closed: Any,
    latest: int, out: Any,
) -> int:  # fmt: skip
    """Return the earliest start of a job, and write its nodes of each cell into ``out``.

    Parameters
    ----------
    duration, longest : int
        Planned and maximum run time of the job.
    cells : int64 array
        The cells that the job may use. Nodes of earlier cells are used first.
    closed : int64 array, shape (w, 3)
        Cells that the job may not use in an interval of time: cell, begin and end. The profile has
        a step at each end.
    latest : int
        Only starts up to this time are possible. The result is NEVER if there is none.
    """
    for i in range(n):
        if t[i] > latest:
            return NEVER
        for c in range(out.shape[0]):
            out[c] = 0
        for c in cells:
            out[c] = max(0, f[i, c])
        for w in range(closed.shape[0]):
            if t[i] < closed[w, 2] and closed[w, 1] - t[i] < longest:
                out[closed[w, 0]] = 0
        total = 0
        for c in cells:
            total += out[c]
        j = i + 1
        while total >= size and j < n and t[j] < t[i] + duration:
            for c in cells:
                if f[j, c] < out[c]:
                    lower = max(0, f[j, c])
                    total -= out[c] - lower
                    out[c] = lower
            j += 1
        if total < size:
            continue
        left = size
        for c in cells:
            out[c] = min(out[c], left)
            left -= out[c]
        return int(t[i])
    return NEVER


@kernel
def place(
    t: Any, f: Any, n: int, size: Any, duration: Any, longest: Any, part: Any, order: Any,
    kind: Any, cells: Any, n_cells: Any, closed: Any, n_closed: Any, depth: int, first: bool,
    now: int, start: Any, out: Any,
) -> int:  # fmt: skip
    """Make first-fit reservations for several jobs, in order. Return the new ``n``.

    Parameters
    ----------
    size, duration, longest : int64 arrays, shape (q,)
        See `fit`. The profile needs space for ``2 q`` more steps.
    part, order, kind : int64 arrays, shape (q,)
        The partition of each job, the position of its cells in ``cells``, and the kind of jobs by
        the cells that are closed to them.
    cells, n_cells : int64 arrays, shapes (o, c) and (o,)
        The cells of each partition in one or more orders, and their number.
    closed, n_closed : int64 arrays, shapes (k, w, 3) and (k,)
        For each kind of jobs, the closed cells (see `fit`), and their number.
    depth : int
        Number of jobs of each partition that may start later than now, or -1 for all jobs.
    first : bool
        Whether jobs that can start now also count for the depth.
    start : int64 array, shape (q,)
        Receives the start of each job, or NEVER.
    out : int64 array, shape (q, c)
        Receives the nodes of each cell.
    """
    made = np.zeros(n_cells.shape[0], dtype=np.int64)
    for at in range(size.shape[0]):
        p, o, k = part[at], order[at], kind[at]
        latest = NEVER - 1 if depth < 0 or made[p] < depth else now
        start[at] = fit(
            t, f, n, size[at], duration[at], longest[at], cells[o, : n_cells[o]],
            closed[k, : n_closed[k]], latest, out[at],
        )  # fmt: skip
        if start[at] < NEVER:
            n = change(t, f, n, start[at], start[at] + duration[at], out[at], -1)
        if first or now < start[at] < NEVER:
            made[p] += 1
    return n


@kernel
def compress(
    t: Any, f: Any, n: int, size: Any, duration: Any, longest: Any, order: Any, kind: Any,
    cells: Any, n_cells: Any, closed: Any, n_closed: Any, now: int, start: Any, out: Any,
) -> int:  # fmt: skip
    """Make the reservation of each job again, one after another (see `place`).

    ``start`` and ``out`` contain the present reservations. The profile needs space for ``4 q`` more
    steps.
    """
    for at in range(size.shape[0]):
        o, k = order[at], kind[at]
        if start[at] < NEVER:
            n = change(t, f, n, max(start[at], now), start[at] + duration[at], out[at], 1)
        start[at] = fit(
            t, f, n, size[at], duration[at], longest[at], cells[o, : n_cells[o]],
            closed[k, : n_closed[k]], NEVER - 1, out[at],
        )  # fmt: skip
        if start[at] < NEVER:
            n = change(t, f, n, start[at], start[at] + duration[at], out[at], -1)
    return n
