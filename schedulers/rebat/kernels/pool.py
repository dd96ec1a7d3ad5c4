# SPDX-License-Identifier: Apache-2.0
"""The holder of each node, and searches for the lowest free nodes.

``owner`` contains the tag of each node, a number that represents its holder. ``down`` is a mask of
the nodes that are down. ``free`` and ``down_in`` contain the numbers of nodes that are free, and of
nodes that are down, in each block of `BLOCK` nodes.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel

FREE = -1


BLOCK = 128
"""Nodes per block. The search skips blocks that have no free node."""


@kernel
def extend(out: Any, k: int, first: int, last: int) -> int:
    """Append nodes ``first`` to ``last`` to the ``k`` intervals of ``out``. Return the new ``k``.

    All intervals must be below ``first``. If the last interval ends at ``first - 1``, it is
    extended.
    """
    if k > 0 and out[k - 1, 1] == first - 1:
        out[k - 1, 1] = last
        return k
    out[k, 0] = first
    out[k, 1] = last
    return k + 1


@kernel
def lowest_free(owner: Any, down: Any, free: Any, count: int, out: Any) -> int:
    """Write the ``count`` lowest nodes that are up and free as intervals. Count the intervals.

    ``free[b]`` is the number of nodes of block ``b`` that are up and free. The result is -1 if
    there are too few free nodes.
    """
    n = owner.shape[0]
    n_found, k = 0, 0
    for b in range(free.shape[0]):
        if free[b] == 0:
            continue
        node, last = b * BLOCK, min((b + 1) * BLOCK, n)
        all_free = free[b] == last - node
        while node < last:
            while node < last and not all_free and (owner[node] != FREE or down[node]):
                node += 1
            end = most = min(last, node + count - n_found)
            if not all_free:
                end = node
                while end < most and owner[end] == FREE and not down[end]:
                    end += 1
            if end > node:
                k = extend(out, k, node, end - 1)
                n_found += end - node
                if n_found == count:
                    return k
            node = end + 1
    return -1


@kernel
def highest_free(owner: Any, down: Any, free: Any, count: int, out: Any) -> int:
    """Write up to ``count`` of the highest nodes that are up and free as intervals.

    The result is the number of intervals.
    """
    n, n_found, k = owner.shape[0], 0, 0
    first = n
    while first > 0 and n_found < count:
        first -= 1
        if free[first // BLOCK] == 0:
            first -= first % BLOCK
        elif owner[first] == FREE and not down[first]:
            n_found += 1
    for node in range(first, n):
        if owner[node] == FREE and not down[node]:
            k = extend(out, k, node, node)
    return k


@kernel
def standby(drained: Any, failed: Any, first: int, count: int, out: Any) -> tuple[int, int]:
    """Write the ``count`` lowest nodes from ``first`` on that are drained and up, as intervals.

    The results are the number of intervals and the number of nodes, if there are fewer.
    """
    node, n_found, k = first, 0, 0
    while node < drained.shape[0] and n_found < count:
        if drained[node] and not failed[node]:
            k = extend(out, k, node, node)
            n_found += 1
        node += 1
    return k, n_found


@kernel
def insert(out: Any, k: int, node: int) -> int:
    """Add a node to ``k`` ascending intervals, which do not contain it. Return the new ``k``."""
    i = k
    while i > 0 and out[i - 1, 0] > node:
        i -= 1
    before = i > 0 and out[i - 1, 1] == node - 1
    after = i < k and out[i, 0] == node + 1
    if before and after:
        out[i - 1, 1] = out[i, 1]
        for j in range(i, k - 1):
            out[j, 0], out[j, 1] = out[j + 1, 0], out[j + 1, 1]
        return k - 1
    if before:
        out[i - 1, 1] = node
    elif after:
        out[i, 0] = node
    else:
        for j in range(k, i, -1):
            out[j, 0], out[j, 1] = out[j - 1, 0], out[j - 1, 1]
        out[i, 0] = out[i, 1] = node
        return k + 1
    return k


@kernel
def first_obstacle(owner: Any, down: Any, free: Any, intervals: Any) -> int:
    """Return the first node of the intervals that is down or held, or -1 if there is none."""
    n = owner.shape[0]
    for i in range(intervals.shape[0]):
        node, last = intervals[i, 0], intervals[i, 1]
        while node <= last and node < n:
            end = min((node // BLOCK + 1) * BLOCK, n)
            if node % BLOCK == 0 and last >= end - 1 and free[node // BLOCK] == end - node:
                node = end  # the entire block is free
                continue
            if owner[node] != FREE or down[node]:
                return node
            node += 1
        if node <= last:
            return node
    return -1


@kernel
def take(owner: Any, down: Any, free: Any, intervals: Any, tag: int) -> int:
    """If all nodes of the intervals are up and free, assign them to ``tag``.

    The result is -1 on success. Otherwise nothing changes, and the result is the first node that is
    down or held.
    """
    obstacle = first_obstacle(owner, down, free, intervals)
    if obstacle < 0:
        assign(owner, free, intervals, tag)
    return obstacle


@kernel
def assign(owner: Any, free: Any, intervals: Any, tag: int) -> None:
    """Assign all nodes of the intervals to ``tag``. They must be up and free."""
    for i in range(intervals.shape[0]):
        node, last = int(intervals[i, 0]), int(intervals[i, 1])
        owner[node : last + 1] = tag
        while node <= last:
            b = node // BLOCK
            end = min(last + 1, (b + 1) * BLOCK)
            free[b] -= end - node
            node = end


@kernel
def release(owner: Any, down: Any, down_in: Any, free: Any, intervals: Any) -> int:
    """Release every node of the intervals, and return how many of them are up."""
    freed = 0
    for i in range(intervals.shape[0]):
        node, last = int(intervals[i, 0]), int(intervals[i, 1])
        owner[node : last + 1] = FREE
        while node <= last:
            b = node // BLOCK
            end = min(last + 1, (b + 1) * BLOCK)
            up = end - node - (n_set(down, node, end) if down_in[b] else 0)
            free[b] += up
            freed += up
            node = end
    return freed


@kernel
def n_down(down: Any, down_in: Any, intervals: Any) -> int:
    """Return how many nodes of the intervals are down."""
    n = 0
    for i in range(intervals.shape[0]):
        node, last = int(intervals[i, 0]), int(intervals[i, 1])
        while node <= last:
            b = node // BLOCK
            end = min(last + 1, (b + 1) * BLOCK)
            n += n_set(down, node, end) if down_in[b] else 0
            node = end
    return n


@kernel
def n_set(mask: Any, first: int, end: int) -> int:
    """Return the number of set entries from ``first`` to ``end - 1`` of ``mask``."""
    n = 0
    for node in range(first, end):
        n += mask[node]
    return n


@kernel
def n_free_of(owner: Any, down: Any, mask: Any) -> int:
    """Return how many nodes of a mask are up and free."""
    n = 0
    for node in range(mask.shape[0]):
        n += mask[node] and owner[node] == FREE and not down[node]
    return n


@kernel
def usable_of(owner: Any, down: Any, intervals: Any, unheld: bool, out: Any) -> tuple[int, int]:
    """Write the nodes of ``intervals`` that are up into ``out``, as intervals.

    If ``unheld`` is set, the nodes must also be free. The results are the number of intervals and
    the number of nodes.
    """
    n_found, k = 0, 0
    for i in range(intervals.shape[0]):
        for node in range(intervals[i, 0], intervals[i, 1] + 1):
            if down[node] or (unheld and owner[node] != FREE):
                continue
            k = extend(out, k, node, node)
            n_found += 1
    return k, n_found


@kernel
def find_free(owner: Any, down: Any, out: Any) -> None:
    """Write which nodes are usable and not held."""
    for node in range(owner.shape[0]):
        out[node] = owner[node] == FREE and not down[node]


@kernel
def lowest_of(free: Any, count: int, out: Any) -> int:
    """Write the ``count`` lowest nodes of the mask ``free`` as intervals. Count the intervals."""
    node, n_found, k = 0, 0, 0
    while n_found < count:
        if free[node]:
            k = extend(out, k, node, node)
            n_found += 1
        node += 1
    return k
