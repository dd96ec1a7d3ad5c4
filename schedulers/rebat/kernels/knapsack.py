# SPDX-License-Identifier: Apache-2.0
"""The cheapest set of jobs to restart on fewer nodes, so that enough nodes become free.

Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
equation (3). This is a multiple-choice knapsack problem, solved exactly by dynamic programming over
the number of nodes that are still needed: ``f[k] = min(f[k], f[max(0, k - freed)] + cost)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel

NEVER = np.int64(2**62)


@kernel
def cheapest_rows(costs: Any, freed: Any, ends: Any, need: int) -> tuple[int, Any]:
    """Return the minimum cost to free at least ``need`` nodes, and the chosen rows.

    Each row is a way to shrink a job: its cost, and the number of nodes that it frees. At most one
    row of each job is chosen. ``ends`` contains the first row of each job, followed by the number
    of rows. Consider the best choice among job j and later jobs that frees at least k nodes: entry
    (j, k) of ``total`` is its cost, and entry (j, k) of ``count`` is its number of rows.
    """
    n_jobs = len(ends) - 1
    total = np.full((n_jobs + 1, need + 1), NEVER, np.int64)
    count = np.zeros((n_jobs + 1, need + 1), np.int64)
    total[n_jobs, 0] = 0
    for j in range(n_jobs - 1, -1, -1):
        for k in range(need + 1):
            total[j, k], count[j, k] = total[j + 1, k], count[j + 1, k]
        for row in range(ends[j], ends[j + 1]):
            for k in range(need + 1):
                remaining = max(0, k - freed[row])
                if total[j + 1, remaining] == NEVER:
                    break  # then it is also impossible for larger k
                cost, number = total[j + 1, remaining] + costs[row], count[j + 1, remaining] + 1
                if cost < total[j, k] or (cost == total[j, k] and number < count[j, k]):
                    total[j, k], count[j, k] = cost, number
    return total[0, need], _rows(costs, freed, ends, total, count, need)


@kernel
def _rows(costs: Any, freed: Any, ends: Any, total: Any, count: Any, need: int) -> Any:
    """Return the rows of the best choice. If there is a tie, choose the lowest rows."""
    rows = np.empty(count[0, need], np.int64)
    chosen, k = 0, need
    for j in range(len(ends) - 1):
        for row in range(ends[j], ends[j + 1]):
            remaining = max(0, k - freed[row])
            if (
                total[j + 1, remaining] != NEVER
                and total[j + 1, remaining] + costs[row] == total[j, k]
                and count[j + 1, remaining] + 1 == count[j, k]
            ):
                rows[chosen] = row
                chosen, k = chosen + 1, remaining
                break
    return rows
