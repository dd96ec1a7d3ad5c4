# SPDX-License-Identifier: Apache-2.0
"""The boxes of a size on a torus, and the free one that is least likely to fail.

Source: Vardas et al. 2022, section 2.2; equation (1) with its sign put right.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.boxes import Box, Boxes, Extents
from rebat.models.failures.node_table import NodeTable
from rebat.models.topology import Torus
from rebat.models.units import Units


class SafestBox(msgspec.Struct, frozen=True):
    """A box of nodes, and the probability that one of them fails."""

    shape: Extents
    origin: Extents
    nodes: NodeSet
    failure_probability: float


class BoxList:
    """The boxes that a job of a size can get.

    Parameters
    ----------
    torus : Torus
    size : int
        Nodes asked for; if no box has this many, those of the smallest that has more.
    which : str
        One of `boxes.LISTS`.
    unit : tuple of int, optional
        Extents of a block, the nodes that are allocated together (default: single nodes).

    Raises
    ------
    InputError
        For sizes beyond the torus, and blocks that do not divide it.
    """

    def __init__(
        self, torus: Torus, size: int, which: str = "all", unit: Extents | None = None
    ) -> None:
        self.units, self.size = Units(torus, unit), size
        self.boxes = Boxes(self.units.torus, self.units.count_for(size), which)
        self.box_nodes = self.boxes.volume * self.units.size

    @property
    def waste(self) -> int:
        """Nodes of a box that the job leaves empty."""
        return self.box_nodes - self.size

    @property
    def shapes(self) -> list[tuple[Extents, int]]:
        """Extents in nodes, and how many boxes of the list have them."""
        counts = zip(self.boxes.shapes, self.boxes.per_shape, strict=True)
        return [(self._in_nodes(shape), count) for shape, count in counts if count]

    def best(self, table: NodeTable, duration_s: float, busy: NodeSet) -> SafestBox:
        """The free box least likely to fail in a time from now on; among equals the lowest corner.

        Raises
        ------
        InputError
            For busy nodes, or laws, of another machine, and when no box is free.
        """
        n_nodes = self.units.of_nodes.n_nodes
        if len(table) != n_nodes:
            raise InputError(f"laws of {len(table)} nodes", expected=f"of {n_nodes}")
        if busy.size and int(busy.intervals[-1, 1]) >= n_nodes:
            what = f"node {busy.intervals[-1, 1]} is not on the torus"
            raise InputError(what, "busy nodes", f"0 to {n_nodes - 1}")
        hazard = table.laws.hazard(table.uptime_s, duration_s)
        free = np.ones(n_nodes, dtype=np.bool_)
        busy.put(free, False)
        cost = np.where(self.units.whole(free), self.units.sums(hazard), math.inf)
        index = self.boxes.least(cost)
        if index < 0:
            what = f"no box of {self.box_nodes} nodes is free"
            raise InputError(what, "busy nodes", "fewer of them")
        box = self.boxes.box(index)
        nodes = self.units.nodes(box)
        found = self._box_in_nodes(box)
        probability = float(-np.expm1(-hazard[nodes].sum()))
        return SafestBox(found.shape, found.origin, NodeSet.of_sorted(nodes), probability)

    def _box_in_nodes(self, box: Box) -> Box:
        return Box(self._in_nodes(box.shape), self._in_nodes(box.origin))

    def _in_nodes(self, of_units: Extents) -> Extents:
        return tuple(n * e for n, e in zip(of_units, self.units.extents, strict=True))
