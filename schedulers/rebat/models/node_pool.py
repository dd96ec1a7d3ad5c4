# SPDX-License-Identifier: Apache-2.0
"""State of the nodes of a machine, for the session and the engine."""

from __future__ import annotations

import numpy as np

from rebat.core.nodes import NodeSet
from rebat.kernels import pool
from rebat.kernels.pool import BLOCK, FREE


class NodePool:
    """The nodes of a machine: up or down, and free or held by a tag (an integer, 0 or more).

    The integer identifies the job that holds a node. A node can be down and held at the same time,
    because a job holds a failed node until the job is killed.
    """

    def __init__(self, n_nodes: int) -> None:
        self.owner = np.full(n_nodes, FREE, dtype=np.int32)
        self.down = np.zeros(n_nodes, dtype=np.bool_)
        self.n_nodes = n_nodes
        self.n_free = n_nodes
        self.n_down = 0
        self._free = np.bincount(np.arange(n_nodes) // BLOCK).astype(np.int64)
        self._down_in = np.zeros_like(self._free)
        self._out = np.empty((n_nodes // 2 + 1, 2), dtype=np.int64)

    def lowest(self, count: int) -> NodeSet:
        """Return the ``count`` lowest free nodes. Raise ValueError if fewer nodes are free."""
        k = pool.lowest_free(self.owner, self.down, self._free, count, self._out)
        if k < 0:
            raise ValueError(f"{count} nodes requested, {self.n_free} free")
        return NodeSet(self._out[:k].copy(), count)

    def usable(self, nodes: NodeSet, unheld: bool = False) -> NodeSet:
        """Return the nodes of a set that are up.

        If ``unheld`` is set, leave out nodes that are held.
        """
        k, n = pool.usable_of(self.owner, self.down, nodes.intervals, unheld, self._out)
        return NodeSet(self._out[:k].copy(), int(n))

    def obstacle(self, nodes: NodeSet) -> int:
        """Return the first node of a set that is down or held. Return -1 if there is none."""
        return int(pool.first_obstacle(self.owner, self.down, self._free, nodes.intervals))

    def take(self, nodes: NodeSet, tag: int) -> int:
        """Assign nodes to a tag if all are up and free. Otherwise, change nothing.

        Return the first node that is down or held. Return -1 if the nodes were assigned.
        """
        obstacle = int(pool.take(self.owner, self.down, self._free, nodes.intervals, tag))
        if obstacle < 0:
            self.n_free -= nodes.size
        return obstacle

    def release(self, nodes: NodeSet) -> None:
        """Release nodes from their tag. Nodes that are down do not become free."""
        n = pool.release(self.owner, self.down, self._down_in, self._free, nodes.intervals)
        self.n_free += int(n)

    def fail(self, nodes: NodeSet) -> list[int]:
        """Mark nodes as down.

        Return the tags that hold any of them, ascending, without duplicates.
        """
        tags = set()
        for node in nodes:
            if self.down[node]:
                continue
            tag = int(self.owner[node])
            if tag == FREE:
                self.n_free -= 1
                self._free[node // BLOCK] -= 1
            else:
                tags.add(tag)
            self.down[node] = True
            self._down_in[node // BLOCK] += 1
            self.n_down += 1
        return sorted(tags)

    def repair(self, nodes: NodeSet) -> None:
        """Mark nodes as up."""
        for node in nodes:
            if self.down[node]:
                self.down[node] = False
                self._down_in[node // BLOCK] -= 1
                self.n_down -= 1
                if self.owner[node] == FREE:
                    self.n_free += 1
                    self._free[node // BLOCK] += 1


def compile_kernels() -> None:
    """Compile the kernels with which nodes are taken and released, or load them from the cache.

    Some schedulers wait only 2 s for a message of the simulator.
    """
    nodes = NodeSet.parse("0")
    machine = NodePool(1)
    machine.take(nodes, 0)
    machine.release(nodes)
