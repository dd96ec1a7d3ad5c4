# SPDX-License-Identifier: Apache-2.0
"""Tori: node numbers, coordinates and hop distances.

Only this module defines how the nodes of a torus are numbered. The numbering is that of SimGrid's
TORUS clusters (the routing of ``TorusZone`` in SimGrid 3.2x to 3.34). The **first** coordinate
varies fastest: node ``i`` has the coordinates ``i % s0``, ``(i // s0) % s1`` and so on. Every
dimension wraps around. Routes follow one dimension after another, each in the shorter direction.
Their length is the hop distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from rebat.core.arrays import Ints
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError


class Torus(msgspec.Struct, frozen=True):
    """A torus of any number of dimensions.

    ``sizes`` are its extents; the dimension that varies fastest is first.

    >>> Torus((8, 12, 16, 16, 2)).n_nodes
    49152
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or math.prod(self.sizes) > MAX_NODES:
            raise InputError(
                f"invalid torus: {'x'.join(map(str, self.sizes)) or 'no dimension'}",
                expected=f"dimensions of at least 1, at most {MAX_NODES} nodes",
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return math.prod(self.sizes)

    @property
    def strides(self) -> tuple[int, ...]:
        """For each dimension, the difference between the node numbers of two neighbours."""
        return tuple(math.prod(self.sizes[:axis]) for axis in range(len(self.sizes)))

    @property
    def diameter(self) -> int:
        """The largest hop distance between two nodes."""
        return sum(size // 2 for size in self.sizes)

    def coordinates(self, node: int) -> tuple[int, ...]:
        """Return the coordinates of a node.

        >>> Torus((3, 2, 2)).coordinates(7)
        (1, 0, 1)
        """
        self._check(node)
        pairs = zip(self.strides, self.sizes, strict=True)
        return tuple(node // stride % size for stride, size in pairs)

    def node(self, coordinates: Sequence[int]) -> int:
        """Return the node at coordinates, which wrap around: ``-1`` is the last coordinate.

        >>> Torus((3, 2, 2)).node((1, 0, 1)), Torus((3, 2, 2)).node((-1, 0, 0))
        (7, 2)
        """
        if len(coordinates) != len(self.sizes):
            raise InputError(
                f"the node has {len(coordinates)} coordinates", expected=f"{len(self.sizes)}"
            )
        axes = zip(coordinates, self.sizes, self.strides, strict=True)
        return sum(value % size * stride for value, size, stride in axes)

    def coordinate_table(self) -> Ints:
        """Return the coordinates of all nodes: shape (nodes, dimensions)."""
        nodes = np.arange(self.n_nodes, dtype=np.int64)[:, None]
        table: Ints = nodes // np.array(self.strides) % np.array(self.sizes)
        return table

    def neighbours(self, node: int) -> list[int]:
        """Return the nodes one hop away, ascending."""
        here = self.coordinates(node)
        adjacent = {
            self.node((*here[:axis], here[axis] + step, *here[axis + 1 :]))
            for axis in range(len(here))
            for step in (-1, 1)
        }
        return sorted(adjacent - {node})

    def _check(self, node: int) -> None:
        if not 0 <= node < self.n_nodes:
            raise InputError(
                f"node {node} is not on the torus", expected=f"0 to {self.n_nodes - 1}"
            )

    def __str__(self) -> str:
        return "x".join(map(str, self.sizes))


def parse_extents(text: str, separator: str = "x", where: str | None = None) -> tuple[int, ...]:
    """Return the whole numbers in a text like '4x4x4x4x2'."""
    parts = [part.strip() for part in text.split(separator)]
    if not all(part.isdecimal() and len(part) <= 8 for part in parts):
        example = separator.join(map(str, MIRA.sizes))
        raise InputError(
            f"invalid dimensions {text[:60]!r}", where, f"whole numbers, like {example}"
        )
    return tuple(int(part) for part in parts)


def parse_torus(text: str) -> Torus:
    """Return a torus by its name in TORI, or by its extents.

    >>> str(parse_torus("intrepid")), parse_torus("4x4x2").n_nodes
    ('40x32x32', 32)
    """
    return TORI[text] if text in TORI else Torus(parse_extents(text))


def parse_sizes(text: str, where: str | None = None) -> Torus:
    """Return a torus from its extents in SimGrid's notation: '8,12,16,16,2'."""
    sizes = parse_extents(text, ",", where)
    try:
        return Torus(sizes)
    except InputError as error:
        raise (error.at(where) if where else error) from None


MIRA = Torus((8, 12, 16, 16, 2))
"""Blue Gene/Q of ALCF: 48 racks of 1,024 nodes, a 5D torus of 49,152."""

INTREPID = Torus((40, 32, 32))
"""Blue Gene/P of ALCF: 40 racks of 1,024 nodes, a 3D torus of 40,960."""

TORI: dict[str, Torus] = {"mira": MIRA, "intrepid": INTREPID}
"""Machines by name. Vardas et al. 2022 (section 3) use an 8x8x8x8 torus without a name."""
