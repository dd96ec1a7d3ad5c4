# SPDX-License-Identifier: Apache-2.0
"""The boxes of a size on a torus, and the free box with the lowest failure probability.

Source: Vardas et al. 2022, section 2.2, with the sign of equation (1) corrected.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from rebat.core.counted import counted
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.blocks import TorusBlocks
from rebat.models.boxes import Box, Boxes, Extents
from rebat.models.failures.node_table import NodeTable
from rebat.models.topology import Torus


class SafestBox(msgspec.Struct, frozen=True):
    """A box of nodes, and the probability that at least one of them fails."""

    shape: Extents
    origin: Extents
    nodes: NodeSet
    failure_probability: float


class BoxList:
    """The boxes that a job of a given size can get.

    Parameters
    ----------
    torus : Torus
    size : int
        Requested number of nodes. If no box has this size, the next larger size of a box is used.
    which : str
        One of `boxes.LISTS`.
    block : tuple of int, optional
        Extents of a block, the nodes that are allocated together (default: single nodes).
    """

    def __init__(
        self, torus: Torus, size: int, which: str = "all", block: Extents | None = None
    ) -> None:
        self.blocks, self.size = TorusBlocks(torus, block), size
        self.boxes = Boxes(self.blocks.torus, self.blocks.count_for(size), which)
        self.box_nodes = self.boxes.volume * self.blocks.size

    @property
    def waste(self) -> int:
        """Number of nodes of a box that the job leaves empty."""
        return self.box_nodes - self.size

    @property
    def shapes(self) -> list[tuple[Extents, int]]:
        """The extents (in nodes) of the boxes in the list, each with its number of boxes."""
        counts = zip(self.boxes.shapes, self.boxes.per_shape, strict=True)
        return [(self._in_nodes(shape), count) for shape, count in counts if count]

    def best(self, table: NodeTable, duration_s: float, busy: NodeSet) -> SafestBox:
        """Return the free box with the lowest failure probability.

        If several boxes have this probability, return the box with the lowest corner.
        """
        n_nodes = self.blocks.of_nodes.n_nodes
        if len(table) != n_nodes:
            raise InputError(
                f"contains laws for {counted(len(table), 'node')}",
                expected=f"laws for {n_nodes} nodes",
            )
        if busy.size and int(busy.intervals[-1, 1]) >= n_nodes:
            problem = f"node {busy.intervals[-1, 1]} is not on the torus"
            raise InputError(problem, "busy nodes", f"0 to {n_nodes - 1}")
        hazard = table.laws.hazard(table.uptime_s, duration_s)
        free = np.ones(n_nodes, dtype=np.bool_)
        busy.put(free, False)
        cost = np.where(self.blocks.whole(free), self.blocks.sums(hazard), math.inf)
        index = self.boxes.least(cost)
        if index < 0:
            problem = f"no box of {counted(self.box_nodes, 'node')} is free"
            raise InputError(problem, "busy nodes", "fewer busy nodes")
        box = self.boxes.box(index)
        nodes = self.blocks.nodes(box)
        node_box = self._box_in_nodes(box)
        probability = float(-np.expm1(-hazard[nodes].sum()))
        return SafestBox(node_box.shape, node_box.origin, NodeSet.of_sorted(nodes), probability)

    def _box_in_nodes(self, box: Box) -> Box:
        return Box(self._in_nodes(box.shape), self._in_nodes(box.origin))

    def _in_nodes(self, extents: Extents) -> Extents:
        return tuple(n * e for n, e in zip(extents, self.blocks.extents, strict=True))
