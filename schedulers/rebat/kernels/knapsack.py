# SPDX-License-Identifier: Apache-2.0
"""Which jobs to restart on fewer nodes, so that enough nodes come free at the least cost.

Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
equation (3): a multiple-choice knapsack, solved exactly by dynamic programming over the nodes that
are still needed, ``f[k] = min(f[k], f[max(0, k - freed)] + cost)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.jit import kernel

Ints = npt.NDArray[np.int64]

_NEVER = np.int64(2**62)


class Restarts(NamedTuple):
    """The least total cost, and the rows that make it, ascending."""

    total: int
    rows: Ints


def cheapest_restarts(costs: Ints, freed: Ints, job: Ints, need: int) -> Restarts | None:
    """Choose rows, at most one of each job, that free enough nodes at the least total cost.

    Of equal totals the one with the fewest rows is chosen, and of these the one whose lowest row is
    lowest, then the next, and so on.

    Parameters
    ----------
    costs : int64 array, shape (m,)
        What each row costs, in microseconds; may be negative.
    freed : int64 array, shape (m,)
        Nodes that it frees, 0 or more.
    job : int64 array, shape (m,)
        Whose row it is: rows of a job stand together, jobs ascend.
    need : int
        Nodes to be freed.

    Returns
    -------
    Restarts or None
        None: all jobs together do not free so many.

    Raises
    ------
    OverflowError
        For costs whose sum may be beyond 2**62.
    ValueError
        For jobs that do not ascend, or a row that frees less than nothing.

    Examples
    --------
    >>> rows = [(60, 2, 0), (30, 1, 0), (20, 2, 1)]
    >>> found = cheapest_restarts(*np.array(rows).T, need=3)
    >>> found.total, found.rows.tolist()
    (50, [1, 2])
    """
    if not len(job):
        return None if need > 0 else Restarts(0, np.empty(0, np.int64))
    firsts = np.flatnonzero(np.diff(job, prepend=job[0] - 1))
    if (np.diff(job) < 0).any() or freed.min() < 0:
        raise ValueError("jobs do not ascend, or a row frees less than nothing")
    if float(np.abs(costs.astype(float)).max()) * len(firsts) >= 2**62:
        raise OverflowError("the sum of the costs is not an int64")
    if need > np.maximum.reduceat(freed, firsts).sum():
        return None
    ends = np.append(firsts, len(job))
    total, rows = _cheapest(costs, freed, ends, max(need, 0))
    return Restarts(int(total), rows)


@kernel
def _cheapest(costs: Any, freed: Any, ends: Any, need: int) -> tuple[int, Any]:
    """``ends`` are the first rows of the jobs, and their number.

    ``total`` and ``count`` have a line for each job and what is chosen from it on: column k is the
    best that frees k nodes or more.
    """
    n_jobs = len(ends) - 1
    total = np.full((n_jobs + 1, need + 1), _NEVER, np.int64)
    count = np.zeros((n_jobs + 1, need + 1), np.int64)
    total[n_jobs, 0] = 0
    for j in range(n_jobs - 1, -1, -1):
        for k in range(need + 1):
            total[j, k], count[j, k] = total[j + 1, k], count[j + 1, k]
        for row in range(ends[j], ends[j + 1]):
            for k in range(need + 1):
                rest = max(0, k - freed[row])
                if total[j + 1, rest] == _NEVER:
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
                total[j + 1, rest] != _NEVER
                and total[j + 1, rest] + costs[row] == total[j, k]
                and count[j + 1, rest] + 1 == count[j, k]
            ):
                rows[found] = row
                found, k = found + 1, rest
                break
    return rows
