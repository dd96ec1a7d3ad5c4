# SPDX-License-Identifier: Apache-2.0
"""Which jobs to restart on fewer nodes, so that enough nodes come free at the least cost.

Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
equation (3): a multiple-choice knapsack, solved exactly by dynamic programming over the nodes that
are still needed, ``f[k] = min(f[k], f[max(0, k - freed)] + cost)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel

NEVER = np.int64(2**62)


@kernel
def cheapest_rows(costs: Any, freed: Any, ends: Any, need: int) -> tuple[int, Any]:
    """``ends`` are the first rows of the jobs, and their number.

    ``total`` and ``count`` have a line for each job and what is chosen from it on: column k is the
    best that frees k nodes or more.
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
                rest = max(0, k - freed[row])
                if total[j + 1, rest] == NEVER:
                    break  # as it is for whatever needs more
                cost, number = total[j + 1, rest] + costs[row], count[j + 1, rest] + 1
                if cost < total[j, k] or (cost == total[j, k] and number < count[j, k]):
                    total[j, k], count[j, k] = cost, number
    return total[0, need], _rows(costs, freed, ends, total, count, need)


@kernel
def _rows(costs: Any, freed: Any, ends: Any, total: Any, count: Any, need: int) -> Any:
    """The rows of the best choice: of each job the lowest that is part of one, if any is."""
    rows = np.empty(count[0, need], np.int64)
    found, k = 0, need
    for j in range(len(ends) - 1):
        for row in range(ends[j], ends[j + 1]):
            rest = max(0, k - freed[row])
            if (
                total[j + 1, rest] != NEVER
                and total[j + 1, rest] + costs[row] == total[j, k]
                and count[j + 1, rest] + 1 == count[j, k]
            ):
                rows[found] = row
                found, k = found + 1, rest
                break
    return rows
