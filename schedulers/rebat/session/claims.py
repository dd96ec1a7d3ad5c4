# SPDX-License-Identifier: Apache-2.0
"""Who holds which node: the only writer of the node pool."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import FREE
from rebat.models.node_pool import NodePool


class Claims:
    """The nodes of a machine: up, down or drained; free, or held by a tag.

    A tag is the serial of an attempt, running or with nodes held for it. A node that goes down, or
    is drained, stays with its tag until that gives it back.

    Attributes
    ----------
    down, drained : bool arrays, shape (n,)
    up_since_us : int64 array, shape (n,)
        When each node came up last; 0 or less: before the simulation.
    failed_us : int64 array, shape (n,)
        When each node failed last; when it came up, where it has not failed in the simulation.
    """

    def __init__(self, n_nodes: int) -> None:
        self._pool = NodePool(n_nodes)  # its own ``down`` are the nodes that cannot be used
        self.down: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self.drained: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self._drained_for: dict[str, npt.NDArray[np.bool_]] = {}
        self.up_since_us: npt.NDArray[np.int64] = np.zeros(n_nodes, dtype=np.int64)
        self.failed_us: npt.NDArray[np.int64] = self.up_since_us.copy()
        self.n_nodes = n_nodes
        self.n_down = 0
        self._changed: dict[int, None] = {}
        self._told_unusable: set[int] = set()

    def begin(self, uptime_us: npt.NDArray[np.int64]) -> None:
        """For how long each node has been up at date 0."""
        if len(uptime_us) != self.n_nodes:
            expected = f"{self.n_nodes}, one a node"
            raise InputError(f"{len(uptime_us)} uptimes", expected=expected)
        self.up_since_us, self.failed_us = -uptime_us, -uptime_us

    @property
    def n_free(self) -> int:
        """Nodes that can be used and are not held."""
        return self._pool.n_free

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which nodes can be used and are not held; a new array."""
        free: npt.NDArray[np.bool_] = (self._pool.owner == FREE) & ~self._pool.down
        return free

    def tag(self, node: int) -> int:
        """Who holds a node; -1: nobody."""
        return int(self._pool.owner[node])

    @property
    def all_tags(self) -> npt.NDArray[np.int32]:
        """Who holds each node; -1: nobody; a new array."""
        return self._pool.owner.copy()

    def tags(self, nodes: NodeSet) -> npt.NDArray[np.int32]:
        """Who holds each of these nodes, ascending by node; -1: nobody."""
        return nodes.of_each(self._pool.owner)

    def obstacle(self, nodes: NodeSet) -> int:
        """The first of these nodes that is not usable and free; -1 if all are."""
        return self._pool.obstacle(nodes)

    def lowest(self, count: int) -> NodeSet:
        """The lowest-numbered free nodes."""
        return self._pool.lowest(count)

    def up(self, nodes: NodeSet) -> NodeSet:
        """Those of the nodes that are up, in service or not."""
        return NodeSet.of_sorted(nodes.ids[~nodes.of_each(self.down)])

    def usable(self, nodes: NodeSet) -> NodeSet:
        """Those of the nodes that can be used."""
        return self._pool.usable(nodes)

    def usable_and_free(self, nodes: NodeSet) -> NodeSet:
        """Those of the nodes that can be used and are not held."""
        return self._pool.usable(nodes, unheld=True)

    # ---- who holds them

    def take(self, nodes: NodeSet, tag: int) -> None:
        """Give free nodes to a tag."""
        obstacle = self._pool.take(nodes, tag)
        assert obstacle < 0, f"node {obstacle} is not up and free"

    def release(self, nodes: NodeSet) -> None:
        """Take nodes back from their tag."""
        self._pool.release(nodes)

    # ---- which can be used

    def fail(self, nodes: NodeSet, now_us: int) -> list[int]:
        """Nodes go down; gives the tags that hold some of them, ascending, each once."""
        tags = {self.tag(node) for node in nodes} - {FREE}
        for node in nodes:
            self.down[node] = True
            self.failed_us[node] = now_us
        self.n_down += nodes.size
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))
        return sorted(tags)

    def repair(self, nodes: NodeSet, now_us: int) -> None:
        """Nodes come up again."""
        for node in nodes:
            self.down[node] = False
            self.up_since_us[node] = now_us
        self.n_down -= nodes.size
        self._use(nodes)

    def drained_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Which nodes are drained for something; the array itself."""
        if why not in self._drained_for:
            self._drained_for[why] = np.zeros(self.n_nodes, dtype=np.bool_)
        return self._drained_for[why]

    def drained_only_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Which nodes are drained for something and for nothing else; a new array."""
        found = self.drained_for(why).copy()
        for other, mask in self._drained_for.items():
            if other != why:
                found &= ~mask
        return found

    def drain(self, nodes: NodeSet, why: str = "") -> None:
        """Nothing more starts on these nodes."""
        nodes.put(self.drained_for(why), True)
        nodes.put(self.drained, True)
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))

    def undrain(self, nodes: NodeSet, why: str = "") -> None:
        """Nodes are in service again, if they are up and drained for nothing else."""
        nodes.put(self.drained_for(why), False)
        nodes.put(self.drained, False)
        for mask in self._drained_for.values():
            self.drained |= mask
        self._use(nodes)

    def _use(self, nodes: NodeSet) -> None:
        self._pool.repair(
            NodeSet.of(node for node in nodes if not (self.down[node] or self.drained[node]))
        )
        self._changed.update(dict.fromkeys(nodes))

    def news(self) -> Iterator[tuple[int, bool, bool]]:
        """Of each node that changed: whether it can be used, and whether that was told otherwise.

        A node may have been repaired and have failed again since, at one date even.
        """
        for node in self._changed:
            unusable = bool(self._pool.down[node])
            yield node, not unusable, unusable != (node in self._told_unusable)
            (self._told_unusable.add if unusable else self._told_unusable.discard)(node)
        self._changed.clear()
