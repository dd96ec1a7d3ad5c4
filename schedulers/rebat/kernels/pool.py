# SPDX-License-Identifier: Apache-2.0
"""Which node does what: one tag a node, and the search for the lowest free nodes.

``owner`` holds the tags, ``down`` is a mask, ``free`` counts free nodes in blocks.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel

FREE = -1


BLOCK = 128
"""Free nodes are also counted in blocks of so many, so that a search skips what is full."""


@kernel
def extend(out: Any, k: int, first: int, last: int) -> int:
    """Add nodes above all others to ``k`` intervals, joined if they touch; gives the new k."""
    if k > 0 and out[k - 1, 1] == first - 1:
        out[k - 1, 1] = last
        return k
    out[k, 0] = first
    out[k, 1] = last
    return k + 1


@kernel
def lowest_free(owner: Any, down: Any, free: Any, count: int, out: Any) -> int:
    """The ``count`` lowest nodes that are up and free, as intervals in ``out``; their number.

    ``free[b]`` is how many nodes of block ``b`` are up and free. -1 if there are too few.
    """
    n = owner.shape[0]
    found, k = 0, 0
    for b in range(free.shape[0]):
        if free[b] == 0:
            continue
        first, last = b * BLOCK, min((b + 1) * BLOCK, n)
        whole = free[b] == last - first and found + free[b] <= count
        node = first
        while node < last:
            if whole:
                end = last - 1
            elif owner[node] != FREE or down[node]:
                node += 1
                continue
            else:
                end = node
            k = extend(out, k, node, end)
            found += end - node + 1
            if found == count:
                return k
            node = end + 1
    return -1


@kernel
def first_obstacle(owner: Any, down: Any, free: Any, intervals: Any) -> int:
    """The first node of the intervals that is down, not free or not there; -1 when all are."""
    n = owner.shape[0]
    for i in range(intervals.shape[0]):
        node, last = intervals[i, 0], intervals[i, 1]
        while node <= last and node < n:
            end = min((node // BLOCK + 1) * BLOCK, n)
            if node % BLOCK == 0 and last >= end - 1 and free[node // BLOCK] == end - node:
                node = end  # a whole block, all of it free
                continue
            if owner[node] != FREE or down[node]:
                return node
            node += 1
        if node <= last:
            return node
    return -1


@kernel
def take(owner: Any, down: Any, free: Any, intervals: Any, tag: int) -> int:
    """Give every node of the intervals to ``tag`` if all are up and free.

    Gives the first that is not, and then nothing is changed; -1 when all are.
    """
    obstacle = first_obstacle(owner, down, free, intervals)
    if obstacle >= 0:
        return obstacle
    for i in range(intervals.shape[0]):
        node, last = intervals[i, 0], intervals[i, 1]
        while node <= last:
            b = node // BLOCK
            end = min(last + 1, (b + 1) * BLOCK)
            owner[node:end] = tag
            free[b] -= end - node
            node = end
    return -1


@kernel
def release(owner: Any, down: Any, free: Any, intervals: Any, some_down: bool) -> int:
    """Take every node of the intervals from its tag; gives how many of them are up.

    ``some_down`` says whether any node of the machine is down.
    """
    freed = 0
    for i in range(intervals.shape[0]):
        node, last = intervals[i, 0], intervals[i, 1]
        while node <= last:
            b = node // BLOCK
            end = min(last + 1, (b + 1) * BLOCK)
            owner[node:end] = FREE
            up = end - node - (n_set(down, node, end) if some_down else 0)
            free[b] += up
            freed += up
            node = end
    return freed


@kernel
def n_set(mask: Any, first: int, end: int) -> int:
    """How many entries of a mask are set from ``first`` to before ``end``."""
    n = 0
    for node in range(first, end):
        n += mask[node]
    return n


@kernel
def usable_of(owner: Any, down: Any, intervals: Any, unheld: bool, out: Any) -> int:
    """Those nodes of the intervals that are up, and with ``unheld`` also free, as intervals."""
    k = 0
    for i in range(intervals.shape[0]):
        for node in range(intervals[i, 0], intervals[i, 1] + 1):
            if down[node] or (unheld and owner[node] != FREE):
                continue
            k = extend(out, k, node, node)
    return k


@kernel
def lowest_of(free: Any, count: int, out: Any) -> int:
    """The ``count`` lowest nodes of a mask that has as many, as intervals in ``out``; how many."""
    node, found, k = 0, 0, 0
    while found < count:
        if free[node]:
            k = extend(out, k, node, node)
            found += 1
        node += 1
    return k
