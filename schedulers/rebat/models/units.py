# SPDX-License-Identifier: Apache-2.0
"""Allocation units: a machine that hands out blocks of nodes rather than single ones.

Mira gave out midplanes, boxes of 4x4x4x4x2 = 512 nodes; partitions are boxes of whole units, on a
torus whose nodes are the units.
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
"""Number of nodes asked for -> number of nodes that are taken for it."""


class Units:
    """A torus divided into equal boxes; ``of_nodes`` is the torus that the units form.

    >>> units = Units(MIRA, (4, 4, 4, 4, 2))
    >>> str(units.torus), units.size, units.count_for(600)
    ('2x3x4x4x1', 512, 2)

    Raises
    ------
    InputError
        For extents that do not divide those of the torus.
    """

    def __init__(self, of_nodes: Torus, extents: Extents | None = None) -> None:
        extents = extents or (1,) * len(of_nodes.sizes)
        if len(extents) != len(of_nodes.sizes) or any(
            e < 1 or s % e for e, s in zip(extents, of_nodes.sizes, strict=False)
        ):
            raise InputError(
                f"units of {'x'.join(map(str, extents))} do not divide {of_nodes}",
                expected=f"{len(of_nodes.sizes)} extents that divide those of the torus",
            )
        self.of_nodes, self.extents = of_nodes, extents
        self.torus = Torus(tuple(s // e for s, e in zip(of_nodes.sizes, extents, strict=True)))
        self.size = math.prod(extents)

    @cached_property
    def of_node(self) -> Ints:
        """The unit of every node: shape (nodes,)."""
        coordinates = self.of_nodes.coordinate_table() // np.array(self.extents)
        units: Ints = coordinates @ np.array(self.torus.strides)
        return units

    @cached_property
    def members(self) -> Ints:
        """The nodes of every unit, ascending: shape (units, nodes of a unit)."""
        return np.argsort(self.of_node, kind="stable").reshape(self.torus.n_nodes, self.size)

    def in_line_for(self, n_nodes: int) -> int:
        """Units that so many nodes come to, wherever they lie."""
        return -(-n_nodes // self.size)

    def count_for(self, n_nodes: int) -> int:
        """Units of the smallest box that holds so many nodes.

        Raises
        ------
        InputError
            For more nodes than there are, or none.
        """
        try:
            return volume_for(self.torus.sizes, self.in_line_for(n_nodes))
        except InputError:
            most = self.of_nodes.n_nodes
            raise InputError(f"no box of {n_nodes} nodes", expected=f"1 to {most}") from None

    def whole(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which units lie in a mask of nodes with all of theirs: shape (units,)."""
        if self.size == 1:
            return mask
        found: npt.NDArray[np.bool_] = np.logical_and.reduce(mask[self.members], axis=1)
        return found

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum over every unit of a value of each node: shape (units,)."""
        if self.size == 1:
            return values
        found: npt.NDArray[np.float64] = values[self.members].sum(axis=1)
        return found

    def nodes(self, box: Box) -> Ints:
        """The nodes of a box of units, ascending."""
        return np.sort(self.members[box.nodes(self.torus)].ravel())


MIDPLANES: dict[Torus, Extents] = {MIRA: (4, 4, 4, 4, 2), INTREPID: (8, 8, 8)}
"""What these machines hand out: 512 nodes each (ALCF)."""
