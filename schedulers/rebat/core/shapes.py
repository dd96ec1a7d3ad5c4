# SPDX-License-Identifier: Apache-2.0
"""Shapes of jobs: the numbers of nodes on which a job can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.tagged import tagged


class Rigid(msgspec.Struct, frozen=True, tag_field="kind", tag="rigid"):
    """A job that runs only on the requested number of nodes."""

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return n_nodes == request


class Moldable(msgspec.Struct, frozen=True, tag_field="kind", tag="moldable"):
    """A job that runs on one of several numbers of nodes. The number is chosen at the start."""

    sizes: tuple[int, ...]

    def with_request(self, request: int) -> list[int]:
        """Return the listed sizes and the requested size, in ascending order."""
        return sorted({request, *self.sizes})

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return n_nodes == request or n_nodes in self.sizes


class Malleable(msgspec.Struct, frozen=True, tag_field="kind", tag="malleable"):
    """A job that runs on any number of nodes in a range, which may change during the run."""

    min: int
    max: int

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return self.min <= n_nodes <= self.max


RIGID = Rigid()
Shape = Rigid | Moldable | Malleable
KINDS: dict[str, type[Shape]] = {"rigid": Rigid, "moldable": Moldable, "malleable": Malleable}


def shape_of(fields: Mapping[str, Any]) -> Shape:
    """Return the shape in the JSON of a job: ``{"kind": "malleable", "min": 2, "max": 31}``.

    >>> shape_of({"res": 4, "shape": {"kind": "moldable", "sizes": [4, 8]}})
    Moldable(sizes=(4, 8))
    """
    value = fields.get("shape")
    if value is None:
        return RIGID
    shape = tagged(value, "kind", KINDS, "shape")
    if not _possible(shape):
        raise InputError(f"invalid shape {short(value)}", expected=_EXPECTED[type(shape)])
    return shape


def fields_of(shape: Shape) -> dict[str, Any]:
    """Return the JSON fields of a shape (see `shape_of`). A rigid shape has no fields.

    >>> fields_of(Malleable(2, 31))
    {'shape': {'kind': 'malleable', 'min': 2, 'max': 31}}
    """
    if isinstance(shape, Rigid):
        return {}
    return {"shape": msgspec.json.decode(msgspec.json.encode(shape))}


def kind_of(shape: Shape) -> str:
    """Return the name of a shape's kind, for example ``malleable``."""
    return next(name for name, kind in KINDS.items() if kind is type(shape))


def check_shape(shape: Shape, request: int, n_nodes: int) -> None:
    """Raise InputError if a shape does not fit its job's request or the machine."""
    if isinstance(shape, Malleable):
        if not shape.min <= request <= shape.max:
            expected = f"{short(shape.min)} to {short(shape.max)}, the range of the shape"
            raise InputError(f"is {request}", "res", expected)
        largest, field = shape.max, "max"
    elif isinstance(shape, Moldable):
        largest, field = max(shape.sizes), "sizes"
    else:
        return
    if largest > n_nodes:
        expected = f"at most the machine's {n_nodes} nodes"
        raise InputError(f"contains {short(largest)}", f"shape: {field}", expected)


def extent(shape: Shape, request: int) -> tuple[int, int]:
    """Return the minimum and maximum number of nodes of a job that requests ``request``."""
    if isinstance(shape, Malleable):
        return shape.min, shape.max
    sizes = shape.with_request(request) if isinstance(shape, Moldable) else [request]
    return sizes[0], sizes[-1]


_EXPECTED: dict[type[Shape], str] = {
    Moldable: '"sizes": unique whole numbers of at least 1',
    Malleable: '"min" and "max": whole numbers, 1 <= min <= max',
}


def _possible(shape: Shape) -> bool:
    if isinstance(shape, Moldable):
        distinct = len(set(shape.sizes)) == len(shape.sizes)
        return bool(shape.sizes) and min(shape.sizes) >= 1 and distinct
    return isinstance(shape, Rigid) or 1 <= shape.min <= shape.max
