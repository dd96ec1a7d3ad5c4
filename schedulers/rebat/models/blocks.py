# SPDX-License-Identifier: Apache-2.0
"""Blocks: groups of nodes that a machine allocates as a whole.

On Mira, blocks are midplanes: boxes of 4x4x4x4x2 = 512 nodes. Partitions were boxes of blocks. The
blocks of a machine also form a torus.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.models.boxes import Box, Extents, Ints, volume_for
from rebat.models.topology import INTREPID, MIRA, Torus

Allotment = Callable[[int], int]
"""Function from the number of requested nodes to the number of allocated nodes."""


class TorusBlocks:
    """A torus divided into equal boxes, the blocks. The blocks form the smaller torus ``torus``.

    >>> blocks = TorusBlocks(MIRA, (4, 4, 4, 4, 2))
    >>> str(blocks.torus), blocks.size, blocks.count_for(600)
    ('2x3x4x4x1', 512, 2)
    """

    def __init__(self, of_nodes: Torus, extents: Extents | None = None) -> None:
        extents = extents or (1,) * len(of_nodes.sizes)
        if len(extents) != len(of_nodes.sizes) or any(
            e < 1 or s % e for e, s in zip(extents, of_nodes.sizes, strict=False)
        ):
            raise InputError(
                f"blocks of {'x'.join(map(str, extents))} do not divide {of_nodes}",
                expected=f"{len(of_nodes.sizes)} extents that divide those of the torus",
            )
        self.of_nodes, self.extents = of_nodes, extents
        self.torus = Torus(tuple(s // e for s, e in zip(of_nodes.sizes, extents, strict=True)))
        self.size = math.prod(extents)

    @cached_property
    def of_node(self) -> Ints:
        """The block of every node: shape (nodes,)."""
        coordinates = self.of_nodes.coordinate_table() // np.array(self.extents)
        blocks: Ints = coordinates @ np.array(self.torus.strides)
        return blocks

    @cached_property
    def members(self) -> Ints:
        """The nodes of every block, ascending: shape (blocks, nodes of a block)."""
        return np.argsort(self.of_node, kind="stable").reshape(self.torus.n_nodes, self.size)

    def in_line_for(self, n_nodes: int) -> int:
        """Return the minimum number of blocks that together have at least ``n_nodes`` nodes.

        The blocks need not form a box.
        """
        return -(-n_nodes // self.size)

    def count_for(self, n_nodes: int) -> int:
        """Return the number of blocks of the smallest box with at least ``n_nodes`` nodes."""
        try:
            return volume_for(self.torus.sizes, self.in_line_for(n_nodes))
        except InputError:
            most = self.of_nodes.n_nodes
            raise InputError(
                f"no box of {n_nodes} nodes is possible", expected=f"1 to {most} nodes"
            ) from None

    def whole(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return, for each block, whether the mask contains all its nodes: shape (blocks,)."""
        if self.size == 1:
            return mask
        inside: npt.NDArray[np.bool_] = np.logical_and.reduce(mask[self.members], axis=1)
        return inside

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of node values over each block: shape (blocks,)."""
        if self.size == 1:
            return values
        totals: npt.NDArray[np.float64] = values[self.members].sum(axis=1)
        return totals

    def nodes(self, box: Box) -> Ints:
        """Return the nodes of a box of blocks, ascending."""
        return np.sort(self.members[box.nodes(self.torus)].ravel())


MIDPLANES: dict[Torus, Extents] = {MIRA: (4, 4, 4, 4, 2), INTREPID: (8, 8, 8)}
"""Extents of the blocks of these machines. A block has 512 nodes (ALCF)."""
