# SPDX-License-Identifier: Apache-2.0
"""The number of reservations that depend on each running job.

This is the first stage of DBES (reference [6] of Prabhakaran, Neumann and Wolf 2018), in the form
of ``policies.malleable.rules``. Processors are interchangeable. Therefore, the kernel only
determines which jobs release the processors of each reservation. A reservation uses idle processors
first, then others in the order in which they become free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel

NO_OWNER = -1

GROUP = 62
"""Number of running jobs that are processed in one pass, one per bit of an integer."""


@kernel
def dependents(idle: int, run_end: Any, run_size: Any, start: Any, end: Any, size: Any) -> Any:
    """Return the number of reservations that depend on each running job, directly or indirectly.

    Parameters
    ----------
    idle : int
        Number of free nodes.
    run_end, run_size : int64 arrays, shape (m,)
        Planned ends (microseconds) and sizes of the running jobs.
    start, end, size : int64 arrays, shape (n,)
        The reservations, by ascending start.

    Returns
    -------
    int64 array, shape (m,)
        The number for each job. A reservation depends on a job if it uses processors that the job
        releases at or before the start of the reservation. It also depends on the job if it uses
        processors released by another reservation that depends on the job.
    """
    m, n = len(run_end), len(start)
    ends = np.concatenate((run_end, end))
    sizes = np.concatenate((run_size, size))
    by_end = np.argsort(ends, kind="mergesort")
    owner = np.empty(m + n + 1, dtype=np.int64)
    count = np.empty(m + n + 1, dtype=np.int64)
    owner[0], count[0] = NO_OWNER, idle
    head, tail, ended = 0, 1, 0
    edge_from = np.empty(m + 2 * n + 1, dtype=np.int64)
    edge_to = np.empty(m + 2 * n + 1, dtype=np.int64)
    edges = 0
    for q in range(n):
        while ended < m + n and ends[by_end[ended]] <= start[q]:
            owner[tail], count[tail] = by_end[ended], sizes[by_end[ended]]
            tail += 1
            ended += 1
        wanted = size[q]
        while wanted > 0 and head < tail:
            taken = min(wanted, count[head])
            if taken > 0 and owner[head] != NO_OWNER:
                edge_from[edges], edge_to[edges] = owner[head], q
                edges += 1
            count[head] -= taken
            wanted -= taken
            if count[head] == 0:
                head += 1
    return reached_from(m, n, edge_from[:edges], edge_to[:edges])


@kernel
def reached_from(m: int, n: int, edge_from: Any, edge_to: Any) -> Any:
    """Return how many of the ``n`` reservations each of the ``m`` running jobs reaches.

    A job reaches a reservation along edges, which are sorted by the reservation at their end. Each
    edge begins at a job or at an earlier reservation. One pass over the edges processes ``GROUP``
    jobs, one per bit.
    """
    n_dependents = np.zeros(m, dtype=np.int64)
    for first in range(0, m, GROUP):
        reached = np.zeros(n, dtype=np.int64)
        for e in range(len(edge_from)):
            giver = edge_from[e]
            if giver >= m:
                reached[edge_to[e]] |= reached[giver - m]
            elif first <= giver < first + GROUP:
                reached[edge_to[e]] |= 1 << (giver - first)
        for job in range(first, min(m, first + GROUP)):
            for reservation in reached:  # not .sum(), for which numba would import scipy.linalg
                n_dependents[job] += (reservation >> (job - first)) & 1
    return n_dependents
