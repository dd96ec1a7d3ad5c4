# SPDX-License-Identifier: Apache-2.0
"""Cores of nodes: which cores an attempt gets, and where the jobs of a node could move.

Node k of c cores has cores ``c k`` to ``c k + c - 1``. Sections 3.3 and 4.4 of Rodríguez-Pascual et
al., "Job migration in HPC clusters by means of checkpoint/restart", 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel
from rebat.kernels.pool import extend


@kernel
def rooms(free: Any, cores: int) -> Any:
    """Return the number of free cores of each node: shape (nodes,)."""
    n = free.shape[0] // cores
    room = np.zeros(n, dtype=np.int64)
    for node in range(n):
        for core in range(node * cores, (node + 1) * cores):
            room[node] += free[core]
    return room


@kernel
def tightest(room: Any, count: int, best: bool, backwards: bool, skip: int) -> int:
    """Return a node with ``count`` free cores, other than ``skip``; -1 if there is none.

    With ``best``, this is the node with the fewest free cores that are sufficient. Without
    ``best``, and for ties, it is the node with the lowest number (the highest if ``backwards``).
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
    """Write how many cores to take from each node; return whether there are enough.

    All free cores of a node are taken before the next node. With ``best``, the nodes with most free
    cores come first. Without ``best``, and for ties, nodes are sorted by number.
    """
    n = room.shape[0]
    keys = -room if best else np.zeros(n, dtype=np.int64)
    if backwards:
        order = n - 1 - np.argsort(keys[::-1], kind="mergesort")
    else:
        order = np.argsort(keys, kind="mergesort")
    left = count
    for i in range(n):
        take[order[i]] = min(left, room[order[i]])
        left -= take[order[i]]
        if left == 0:
            return True
    return False


@kernel
def lowest_cores(free: Any, cores: int, take: Any, out: Any) -> int:
    """Write the lowest free cores of each node as intervals; return the number of intervals."""
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
def fit(free: Any, cores: int, count: int, best: bool, backwards: bool, out: Any) -> int:
    """Write the cores of an attempt as intervals; return their number, -1 if there are too few.

    An attempt that fits on one node gets one node. Other attempts take as many cores of each node
    as possible.
    """
    room = rooms(free, cores)
    take = np.zeros(room.shape[0], dtype=np.int64)
    node = tightest(room, count, best, backwards, -1)
    if node >= 0:
        take[node] = count
    elif not spread(room, count, best, backwards, take):
        return -1
    return int(lowest_cores(free, cores, take, out))


@kernel
def survey(tags: Any, unusable: Any, cores: int, room: Any, victims: Any, used: Any) -> int:
    """Find the mixed nodes; return their number.

    A node is mixed if all its cores are usable and some, but not all, are in use.

    Parameters
    ----------
    tags, unusable : arrays, shape (nodes x cores,)
        Holder of each core (-1 if free), and whether it is down or drained.
    room : output, shape (nodes,)
        Free cores of the mixed nodes, -1 for other nodes.
    victims : output
        The mixed nodes, sorted by number of used cores, then by node number.
    used : output, shape (nodes,)
        Number of used cores.
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
    """Write which attempts hold cores of each victim (a node to empty), and how many.

    For each victim, the attempts are sorted by descending number of cores, then by their first
    core. Entries ``first[v]`` to ``first[v + 1] - 1`` of ``holders`` and ``sizes`` are those of
    victim v.
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
    """Return the index of the first victim, from ``begin`` on, whose jobs fit on other mixed nodes.

    This is Algorithm 1, but only the room is checked, not the other conditions. Entries
    ``first[v]`` to ``first[v + 1] - 1`` of ``shares`` are the numbers of cores that jobs hold on
    victim v. ``room`` contains the free cores of possible targets, and -1 for other nodes.
    ``targets`` receives the target of each share. Returns -1 if there is no victim.
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
