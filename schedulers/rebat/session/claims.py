# SPDX-License-Identifier: Apache-2.0
"""The holder and the state of each node. No other module changes the node pool."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import FREE
from rebat.models.node_pool import NodePool


class Claims:
    """The nodes of a machine. Each is up, down or drained, and free or held.

    A held node has a tag: the serial number of an attempt, or of a hold (nodes held for a job, see
    `session.holds`). If the node fails or is drained, it keeps the tag until the holder releases
    it. A node is *usable* if it is up and not drained.

    Attributes
    ----------
    down, drained : bool arrays, shape (n,)
    up_since_us : int64 array, shape (n,)
        Time at which each node last came up, in microseconds. It is negative if this was before the
        simulation.
    failed_us : int64 array, shape (n,)
        Time at which each node last failed, in microseconds. If a node has not failed in the
        simulation, its entry is that of ``up_since_us``.
    """

    def __init__(self, n_nodes: int) -> None:
        self._pool = NodePool(n_nodes)  # ``down`` of the pool means unusable
        self.down: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self.drained: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self._drained_for: dict[str, npt.NDArray[np.bool_]] = {}
        self.up_since_us: npt.NDArray[np.int64] = np.zeros(n_nodes, dtype=np.int64)
        self.failed_us: npt.NDArray[np.int64] = self.up_since_us.copy()
        self.n_nodes = n_nodes
        self.n_down = 0
        self._changed: dict[int, None] = {}
        self._reported_unusable: set[int] = set()

    def begin(self, uptime_us: npt.NDArray[np.int64]) -> None:
        """Set the uptime of each node at time 0, in microseconds."""
        if len(uptime_us) != self.n_nodes:
            expected = f"{self.n_nodes}, one per node"
            raise InputError(f"there are {len(uptime_us)} uptimes", expected=expected)
        self.up_since_us, self.failed_us = -uptime_us, -uptime_us

    @property
    def n_free(self) -> int:
        """Number of nodes that are usable and not held."""
        return self._pool.n_free

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that are usable and not held, as a new array."""
        free: npt.NDArray[np.bool_] = (self._pool.owner == FREE) & ~self._pool.down
        return free

    def tag(self, node: int) -> int:
        """Return the tag of a node, or -1 if it is not held."""
        return int(self._pool.owner[node])

    @property
    def all_tags(self) -> npt.NDArray[np.int32]:
        """The tag of each node, or -1 if it is not held, as a new array."""
        return self._pool.owner.copy()

    def tags(self, nodes: NodeSet) -> npt.NDArray[np.int32]:
        """Return the tags of these nodes in ascending order of nodes. Unheld nodes have -1."""
        return nodes.of_each(self._pool.owner)

    def obstacle(self, nodes: NodeSet) -> int:
        """Return the first of these nodes that is unusable or held, or -1 if there is none."""
        return self._pool.obstacle(nodes)

    def lowest(self, count: int) -> NodeSet:
        """Return the lowest-numbered free nodes."""
        return self._pool.lowest(count)

    def up(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are up. It includes drained nodes."""
        return NodeSet.of_sorted(nodes.ids[~nodes.of_each(self.down)])

    def usable(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are usable."""
        return self._pool.usable(nodes)

    def usable_and_free(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are usable and not held."""
        return self._pool.usable(nodes, unheld=True)

    # ---- holders

    def take(self, nodes: NodeSet, tag: int) -> None:
        """Mark free nodes as held by a tag."""
        obstacle = self._pool.take(nodes, tag)
        assert obstacle < 0, f"node {obstacle} is not up and free"

    def release(self, nodes: NodeSet) -> None:
        """Mark nodes as no longer held."""
        self._pool.release(nodes)

    # ---- states

    def fail(self, nodes: NodeSet, now_us: int) -> list[int]:
        """Mark nodes as down. Return the tags of their holders, ascending and unique."""
        tags = {self.tag(node) for node in nodes} - {FREE}
        for node in nodes:
            self.down[node] = True
            self.failed_us[node] = now_us
        self.n_down += nodes.size
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))
        return sorted(tags)

    def repair(self, nodes: NodeSet, now_us: int) -> None:
        """Mark nodes as up."""
        for node in nodes:
            self.down[node] = False
            self.up_since_us[node] = now_us
        self.n_down -= nodes.size
        self._use(nodes)

    def drained_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that are drained for a reason. The mask is not a copy."""
        if why not in self._drained_for:
            self._drained_for[why] = np.zeros(self.n_nodes, dtype=np.bool_)
        return self._drained_for[why]

    def drained_only_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that are drained only for this reason, as a new array."""
        only = self.drained_for(why).copy()
        for other, mask in self._drained_for.items():
            if other != why:
                only &= ~mask
        return only

    def drain(self, nodes: NodeSet, why: str = "") -> None:
        """Drain nodes: no attempt starts on them."""
        nodes.put(self.drained_for(why), True)
        nodes.put(self.drained, True)
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))

    def undrain(self, nodes: NodeSet, why: str = "") -> None:
        """Remove a reason for drains. A node that is up and has no other reason becomes usable."""
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
        """Yield each changed node, whether it is usable, and whether this is new to the policy.

        For example, a node that was repaired and failed again since the last report is not new.
        """
        for node in self._changed:
            unusable, reported = bool(self._pool.down[node]), self._reported_unusable
            yield node, not unusable, unusable != (node in reported)
            (reported.add if unusable else reported.discard)(node)
        self._changed.clear()
