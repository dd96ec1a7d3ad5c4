# SPDX-License-Identifier: Apache-2.0
"""The nodes of a machine, for people's code: views of the tables, and the reasons of drains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.kernels import pool
from rebat.kernels.pool import FREE
from rebat.state.tables import Room

Mask = npt.NDArray[np.bool_]


class Nodes:
    """The nodes of a machine. Each is up, down or drained, and free or held.

    A held node has a tag: the serial number of an attempt, or of a hold (nodes held for a job). If
    the node fails or is drained, it keeps the tag until the holder releases it. A node is *usable*
    if it is up and not drained.

    Attributes
    ----------
    n_nodes : int
    """

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self._drained_for: dict[str, Mask] = {}
        self._reported: list[tuple[int, bool]] = []
        self._out = np.empty((n_nodes // 2 + 1, 2), dtype=np.int64)

    def show(self, room: Room) -> None:
        """Show these tables from now on."""
        self._room, self._state = room, room.state

    @property
    def up_since_us(self) -> Ints:
        """Time at which each node last came up (see `State`). It is not a copy."""
        times_us: Ints = self._state.up_since
        return times_us

    @property
    def failed_us(self) -> Ints:
        """Time at which each node last failed (see `State`). It is not a copy."""
        times_us: Ints = self._state.failed_at
        return times_us

    @property
    def n_free(self) -> int:
        """Number of nodes that are usable and not held."""
        return int(self._state.n.n_free)

    @property
    def n_down(self) -> int:
        """Number of nodes that are down."""
        return int(self._state.n.n_down)

    @property
    def free(self) -> Mask:
        """A mask of the nodes that are usable and not held, as a new array."""
        free: Mask = (self._state.owner == FREE) & ~self._state.down
        return free

    @property
    def down(self) -> Mask:
        """A mask of the nodes that have failed and are not yet repaired. It is not a copy."""
        failed: Mask = self._state.failed
        return failed

    @property
    def drained(self) -> Mask:
        """A mask of the nodes that are drained for any reason. It is not a copy."""
        drained: Mask = self._state.drained
        return drained

    def tag(self, node: int) -> int:
        """Return the tag of a node, or -1 if it is not held."""
        return int(self._state.owner[node])

    @property
    def all_tags(self) -> npt.NDArray[np.int32]:
        """The tag of each node, or -1 if it is not held, as a new array."""
        owner: npt.NDArray[np.int32] = self._state.owner.copy()
        return owner

    def tags(self, nodes: NodeSet) -> npt.NDArray[np.int32]:
        """Return the tags of these nodes in ascending order of nodes. Unheld nodes have -1."""
        return nodes.of_each(self._state.owner)

    def obstacle(self, nodes: NodeSet) -> int:
        """Return the first of these nodes that is unusable or held, or -1 if there is none."""
        state = self._state
        return int(pool.first_obstacle(state.owner, state.down, state.free, nodes.intervals))

    def lowest(self, count: int) -> NodeSet:
        """Return the lowest-numbered free nodes. Raise ValueError if fewer nodes are free."""
        state = self._state
        k = pool.lowest_free(state.owner, state.down, state.free, count, self._out)
        if k < 0:
            raise ValueError(f"{count} nodes requested, {self.n_free} free")
        return NodeSet(self._out[:k].copy(), count)

    def up(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are up. It includes drained nodes."""
        return NodeSet.of_sorted(nodes.ids[~nodes.of_each(self.down)])

    def usable(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are usable."""
        state = self._state
        k, n = pool.usable_of(state.owner, state.down, nodes.intervals, False, self._out)
        return NodeSet(self._out[:k].copy(), int(n))

    def news(self) -> Iterator[tuple[int, bool, bool]]:
        """Yield each changed node, whether it is usable, and whether this is new to the policy.

        For example, a node that was repaired and failed again since the last report is not new.
        """
        room, down = self._room, self._state.down
        self._reported = [(node, bool(down[node])) for node in self._changed()]
        for node, unusable in self._reported:
            yield node, not unusable, unusable != bool(room.reported[node])
            room.marked[node] = False

    def _changed(self) -> list[int]:
        changed: list[int] = self._room.changed[: self._state.n.n_changed].tolist()
        return changed

    def note_reported(self) -> None:
        """Note that the policy has received the last news, after its plan."""
        reported, self._reported = self._reported, []
        if not reported:
            return
        for node, unusable in reported:
            self._room.reported[node] = unusable
        left = self._changed()[len(reported) :]
        self._state.n.n_changed = len(left)
        self._room.changed[: len(left)] = left

    def drained_for(self, why: str) -> Mask:
        """Return a mask of the nodes that are drained for a reason. The mask is not a copy."""
        if why not in self._drained_for:
            self._drained_for[why] = np.zeros(self.n_nodes, dtype=np.bool_)
        return self._drained_for[why]

    def drained_only_for(self, why: str) -> Mask:
        """Return a mask of the nodes that are drained only for this reason, as a new array."""
        only = self.drained_for(why).copy()
        for other, mask in self._drained_for.items():
            if other != why:
                only &= ~mask
        return only

    def drain(self, nodes: NodeSet, why: str, drains: bool) -> Any:
        """Add or remove a reason for drains. Return which of the nodes are drained then."""
        nodes.put(self.drained_for(why), drains)
        return nodes.of_each(np.logical_or.reduce([*self._drained_for.values()]))


class LoopNodes:
    """What `rebat.contract.Machine` shows of the nodes of a driver that asks no policy."""

    def __init__(self, n_nodes: int, cores_per_node: int) -> None:
        self.nodes, self.options = Nodes(n_nodes), SessionOptions(cores_per_node=cores_per_node)

    def show(self, room: Room) -> None:
        """Show these tables from now on."""
        self._n = room.state.n
        self.nodes.show(room)

    @property
    def now_us(self) -> int:
        """The present time."""
        return int(self._n.now)
