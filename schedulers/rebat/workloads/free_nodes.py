# SPDX-License-Identifier: Apache-2.0
"""Assignment of node numbers to attempts, for records without node names."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from rebat.core.nodes import NodeSet


def most_used(start_us: Sequence[int], end_us: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the maximum number of nodes that attempts hold at the same time."""
    spans = list(zip(start_us, end_us, sizes, strict=True))
    changes = [(start, size) for start, end, size in spans if start < end]
    changes += [(end, -size) for start, end, size in spans if start < end]
    used = most = 0
    for _, change in sorted(changes):  # at equal times, ends come before starts
        used += change
        most = max(most, used)
    return max([most, *sizes])


def lowest_free(
    start_us: Sequence[int], end_us: Sequence[int], sizes: Sequence[int], n_nodes: int
) -> list[NodeSet]:
    """Return the nodes of each attempt: the lowest free nodes, assigned in order of starts.

    If too few nodes are free (see `most_used`), an attempt also gets nodes that are in use,
    beginning with the nodes that have the fewest attempts. An attempt with a run time of 0 gets the
    lowest nodes.
    """
    held = np.zeros(n_nodes, dtype=np.int64)
    nodes = [NodeSet.of(())] * len(sizes)
    running: list[tuple[int, int]] = []
    for which in sorted(range(len(sizes)), key=lambda at: (start_us[at], at)):
        start, end, size = start_us[which], end_us[which], sizes[which]
        if start == end:
            nodes[which] = NodeSet.of_sorted(np.arange(size))
            continue
        while running and running[0][0] <= start:
            held[nodes[heapq.heappop(running)[1]].ids] -= 1
        chosen = np.flatnonzero(held == 0)[:size]
        if len(chosen) < size:
            chosen = np.sort(np.argsort(held, kind="stable")[:size])
        nodes[which] = NodeSet.of_sorted(chosen)
        held[chosen] += 1
        heapq.heappush(running, (end, which))
    return nodes
