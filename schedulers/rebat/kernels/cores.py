# SPDX-License-Identifier: Apache-2.0
"""Nodes with several cores: selection of the cores for an attempt, and moves of a node's jobs.

If nodes have c cores, node k has the cores ``c k`` to ``c k + c - 1``. Source: sections 3.3 and 4.4
of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart", 2019.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel
from rebat.kernels.pool import extend


@kernel
def find_rooms(free: Any, cores: int, room: Any) -> None:
    """Write the number of free cores of each node."""
    for node in range(room.shape[0]):
        room[node] = 0
        for core in range(node * cores, (node + 1) * cores):
            room[node] += free[core]


@kernel
def tightest(room: Any, count: int, best: bool, backwards: bool, skip: int) -> int:
    """Return a node (not ``skip``) with at least ``count`` free cores, or -1 if there is none.

    ``room`` contains the number of free cores of each node. If ``best`` is set, the function
    chooses a node with the fewest free cores among the nodes with enough free cores. Otherwise, it
    may choose any node with enough free cores. If there is a choice, it chooses the lowest node, or
    the highest if ``backwards`` is set.
    """
    n = room.shape[0]
    chosen = -1
    for i in range(n):
        node = n - 1 - i if backwards else i
        if node == skip or room[node] < count or (chosen >= 0 and room[node] >= room[chosen]):
            continue
        chosen = node
        if not best or room[node] == count:
            break
    return chosen


@kernel
def spread(room: Any, count: int, best: bool, backwards: bool, take: Any) -> bool:
    """Choose how many cores to use on each node. Return whether ``count`` cores are free.

    The numbers are written into ``take``. All free cores of a node are used before the next node is
    used. If ``best`` is set, nodes with more free cores come first. Otherwise, and if there is a
    tie, nodes are in ascending order, or in descending order if ``backwards`` is set.
    """
    n, left, most = room.shape[0], count, 0
    for node in range(n):
        most = max(most, room[node])
    for wanted in range(most, 0, -1):  # counting is faster than sorting all nodes
        for i in range(n):
            node = n - 1 - i if backwards else i
            if room[node] == 0 or (best and room[node] != wanted):
                continue
            take[node] = min(left, room[node])
            left -= take[node]
            if left == 0:
                return True
        if not best:
            break
    return False


@kernel
def lowest_cores(free: Any, cores: int, take: Any, out: Any) -> int:
    """Write the ``take[k]`` lowest free cores of each node k as intervals. Count the intervals."""
    k = 0
    for node in range(take.shape[0]):
        left = take[node]
        core = node * cores
        while left > 0:
            if free[core]:
                k = extend(out, k, core, core)
                left -= 1
            core += 1
    return k


@kernel
def fit(
    free: Any, cores: int, count: int, best: bool, backwards: bool, scratch: Any, out: Any
) -> int:  # fmt: skip
    """Write ``count`` free cores as intervals into ``out``. Return the number of intervals.

    If a single node has enough free cores, all cores are on this node. Otherwise, all free cores of
    a node are used before the next node is used. The result is -1 if there are too few free cores.
    ``scratch`` has the shape (2, nodes).
    """
    room, take = scratch[0], scratch[1]
    find_rooms(free, cores, room)
    take[:] = 0
    node = tightest(room, count, best, backwards, -1)
    if node >= 0:
        take[node] = count
    elif not spread(room, count, best, backwards, take):
        return -1
    return int(lowest_cores(free, cores, take, out))


@kernel
def survey(tags: Any, unusable: Any, cores: int, room: Any, victims: Any, used: Any) -> int:
    """Find the mixed nodes whose cores are all usable (the victims), and return their number.

    Parameters
    ----------
    tags, unusable : arrays, shape (nodes x cores,)
        The holder of each core (-1 if it is free), and a mask of the cores that are down or
        drained.
    room : output, shape (nodes,)
        Free cores of the mixed nodes, -1 for other nodes.
    victims : output
        The mixed nodes, sorted by the number of used cores, then by node number.
    used : output, shape (nodes,)
        Number of used cores of each node.
    """
    n_victims = 0
    for node in range(room.shape[0]):
        held, out = 0, False
        for core in range(node * cores, (node + 1) * cores):
            held += tags[core] >= 0
            out = out or unusable[core]
        used[node] = held
        room[node] = cores - held if 0 < held < cores and not out else -1
    for count in range(1, cores):
        for node in range(room.shape[0]):
            if used[node] == count and room[node] >= 0:
                victims[n_victims] = node
                n_victims += 1
    return n_victims


@kernel
def shares_of(tags: Any, cores: int, victims: Any, first: Any, holders: Any, sizes: Any) -> None:
    """Write the jobs that hold cores of each victim, and the number of these cores.

    Victim v has the entries ``first[v]`` to ``first[v + 1] - 1`` of ``holders`` and ``sizes``. The
    job with the most cores is first. Jobs with equally many cores are ordered by their first core.
    """
    k = 0
    first[0] = 0
    for v in range(victims.shape[0]):
        begin = k
        for core in range(victims[v] * cores, (victims[v] + 1) * cores):
            if tags[core] < 0:
                continue
            i = begin
            while i < k and holders[i] != tags[core]:
                i += 1
            if i == k:
                holders[k] = tags[core]
                sizes[k] = 0
                k += 1
            sizes[i] += 1
        for i in range(begin + 1, k):
            holder, size = holders[i], sizes[i]
            j = i
            while j > begin and sizes[j - 1] < size:
                holders[j], sizes[j] = holders[j - 1], sizes[j - 1]
                j -= 1
            holders[j], sizes[j] = holder, size
        first[v + 1] = k


@kernel
def find_move(
    room: Any, victims: Any, first: Any, shares: Any, single: bool, best: bool,
    begin: int, targets: Any,
) -> int:  # fmt: skip
    """Return the first victim whose jobs fit on other mixed nodes, starting at index ``begin``.

    The result is the index of the victim, or -1 if there is none. The function checks only one
    condition of Algorithm 1: the number of free cores. The entries ``shares[first[v]]`` to
    ``shares[first[v + 1] - 1]`` are the numbers of cores that the jobs of victim v need. ``room``
    contains the number of free cores of each possible target node, and -1 for other nodes. The
    target node of each job is written into ``targets``.
    """
    total = 0
    for node in range(room.shape[0]):
        if room[node] > 0:
            total += room[node]
    left = room.copy()
    for v in range(begin, victims.shape[0]):
        node = victims[v]
        used = 0
        for i in range(first[v], first[v + 1]):
            used += shares[i]
        if total - max(room[node], 0) < used:
            continue
        done = first[v]
        if single:
            target = tightest(room, used, best, False, node)
            if target >= 0:
                while done < first[v + 1]:
                    targets[done - first[v]] = target
                    done += 1
        else:
            left[:] = room
            while done < first[v + 1]:
                target = tightest(left, shares[done], best, False, node)
                if target < 0:
                    break
                targets[done - first[v]] = target
                left[target] -= shares[done]
                done += 1
        if done == first[v + 1]:
            return v
    return -1
