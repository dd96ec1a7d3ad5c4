# SPDX-License-Identifier: Apache-2.0
"""Attempts that run on the same nodes: their shares of the time of the nodes, and surplus nodes.

An attempt is a row of ``first`` and ``number``: its nodes are the intervals from ``first`` on. It
begins in one step and ends in another one (``at``, ``begins``, ``which``, sorted by time).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel


@kernel
def node_times(
    intervals: Any, first: Any, number: Any, at: Any, begins: Any, which: Any, n_nodes: int
) -> Any:
    """Return the node-microseconds of each attempt. The users of a node share its time equally."""
    users, since = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    share, times = np.zeros(n_nodes), np.zeros(len(first))
    for i in range(len(at)):
        a, total = which[i], 0.0
        for k in range(first[a], first[a] + number[a]):
            for node in range(intervals[k, 0], intervals[k, 1] + 1):
                if users[node]:
                    share[node] += (at[i] - since[node]) / users[node]
                else:
                    share[node] = 0.0  # removes rounding errors
                since[node] = at[i]
                total += share[node]
                users[node] += 1 if begins[i] else -1
        times[a] += -total if begins[i] else total
    return times


@kernel
def surplus(intervals: Any, first: Any, number: Any, begins: Any, which: Any, n_nodes: int) -> Any:
    """Return by how much each step changes the number of surplus nodes.

    A node with k users counts k - 1 times too often in a sum over attempts.
    """
    users, changes = np.zeros(n_nodes, dtype=np.int64), np.zeros(len(which), dtype=np.int64)
    for i in range(len(which)):
        a = which[i]
        for k in range(first[a], first[a] + number[a]):
            for node in range(intervals[k, 0], intervals[k, 1] + 1):
                if begins[i]:
                    changes[i] += users[node] > 0
                    users[node] += 1
                else:
                    changes[i] -= users[node] > 1
                    users[node] -= 1
    return changes
