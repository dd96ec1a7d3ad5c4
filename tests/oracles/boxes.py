# SPDX-License-Identifier: Apache-2.0
"""The boxes of a torus: each extent is tried at each origin, and each node set is listed once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def node(sizes: Sequence[int], coordinates: Sequence[int]) -> int:
    """Return the number of a node: the first dimension varies fastest."""
    number, stride = 0, 1
    for size, at in zip(sizes, coordinates, strict=True):
        number += at % size * stride
        stride *= size
    return number


def box_nodes(sizes: Sequence[int], shape: Sequence[int], origin: Sequence[int]) -> frozenset[int]:
    """The nodes of one box."""
    ranges = [range(o, o + e) for o, e in zip(origin, shape, strict=True)]
    return frozenset(node(sizes, at) for at in itertools.product(*ranges))


def all_boxes(sizes: Sequence[int], volume: int) -> dict[frozenset[int], tuple[int, ...]]:
    """Return every distinct set of ``volume`` nodes that is a box, with its extents."""
    found: dict[frozenset[int], tuple[int, ...]] = {}
    for shape in itertools.product(*(range(1, size + 1) for size in sizes)):
        if math.prod(shape) == volume:
            for origin in itertools.product(*map(range, sizes)):
                found[box_nodes(sizes, shape, origin)] = shape
    return found


def aligned_boxes(sizes: Sequence[int], volume: int) -> set[frozenset[int]]:
    """Return the boxes whose origins are multiples of their extents; none of them wraps around."""
    found = set()
    for shape in itertools.product(*(range(1, size + 1) for size in sizes)):
        if math.prod(shape) == volume:
            steps = [range(0, s - e + 1, e) for s, e in zip(sizes, shape, strict=True)]
            found |= {box_nodes(sizes, shape, origin) for origin in itertools.product(*steps)}
    return found
