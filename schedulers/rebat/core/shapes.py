# SPDX-License-Identifier: Apache-2.0
"""The shape of a job: on which numbers of nodes it can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.tagged import tagged


class Rigid(msgspec.Struct, frozen=True, tag_field="kind", tag="rigid"):
    """Only on as many nodes as it asked for."""

    def allows(self, n_nodes: int, asked: int) -> bool:
        """Whether a job that asked for ``asked`` nodes can go on on ``n_nodes``."""
        return n_nodes == asked


class Moldable(msgspec.Struct, frozen=True, tag_field="kind", tag="moldable"):
    """On any of these numbers of nodes, chosen when it starts."""

    sizes: tuple[int, ...]

    def with_asked(self, asked: int) -> list[int]:
        """Its sizes and the one that was asked for, ascending."""
        return sorted({asked, *self.sizes})

    def allows(self, n_nodes: int, asked: int) -> bool:
        """Whether a job that asked for ``asked`` nodes can go on on ``n_nodes``."""
        return n_nodes == asked or n_nodes in self.sizes


class Malleable(msgspec.Struct, frozen=True, tag_field="kind", tag="malleable"):
    """On any number of nodes in a range, which may change while it runs."""

    min: int
    max: int

    def allows(self, n_nodes: int, asked: int) -> bool:
        """Whether a job that asked for ``asked`` nodes can go on on ``n_nodes``."""
        return self.min <= n_nodes <= self.max


RIGID = Rigid()
Shape = Rigid | Moldable | Malleable
KINDS: dict[str, type[Shape]] = {"rigid": Rigid, "moldable": Moldable, "malleable": Malleable}


def shape_of(fields: Mapping[str, Any]) -> Shape:
    """The shape that a job's JSON gives: ``"shape": {"kind": "malleable", "min": 2, "max": 31}``.

    >>> shape_of({"res": 4, "shape": {"kind": "moldable", "sizes": [4, 8]}})
    Moldable(sizes=(4, 8))

    Raises
    ------
    InputError
        For an unknown kind, and for sizes that are none.
    """
    given = fields.get("shape")
    if given is None:
        return RIGID
    shape = tagged(given, "kind", KINDS, "shape")
    if not _possible(shape):
        raise InputError(f"shape {short(given)}", expected=_EXPECTED[type(shape)])
    return shape


def fields_of(shape: Shape) -> dict[str, Any]:
    """What a job's JSON says of a shape: nothing of a rigid one; see `shape_of`.

    >>> fields_of(Malleable(2, 31))
    {'shape': {'kind': 'malleable', 'min': 2, 'max': 31}}
    """
    if isinstance(shape, Rigid):
        return {}
    return {"shape": msgspec.json.decode(msgspec.json.encode(shape))}


def kind_of(shape: Shape) -> str:
    """The name of a shape's kind."""
    return next(name for name, kind in KINDS.items() if kind is type(shape))


def check_shape(shape: Shape, asked: int, n_nodes: int) -> None:
    """Check a shape against the number of nodes its job asks for, and the machine's.

    Raises
    ------
    InputError
        For sizes beyond the machine, and a malleable job that asks for less or more than it can
        run on. A moldable one may ask for a size that it does not list: it can run on both.
    """
    if isinstance(shape, Malleable):
        if not shape.min <= asked <= shape.max:
            expected = f"{short(shape.min)} to {short(shape.max)}, as the shape says"
            raise InputError(f"is {asked}", "res", expected)
        largest, field = shape.max, "max"
    elif isinstance(shape, Moldable):
        largest, field = max(shape.sizes), "sizes"
    else:
        return
    if largest > n_nodes:
        expected = f"at most the machine's {n_nodes} nodes"
        raise InputError(f"holds {short(largest)}", f"shape: {field}", expected)


def extent(shape: Shape, asked: int) -> tuple[int, int]:
    """The least and the most nodes that a job which asked for ``asked`` can run on."""
    if isinstance(shape, Malleable):
        return shape.min, shape.max
    sizes = shape.with_asked(asked) if isinstance(shape, Moldable) else [asked]
    return sizes[0], sizes[-1]


_EXPECTED: dict[type[Shape], str] = {
    Moldable: '"sizes": whole numbers, 1 or more, each once',
    Malleable: '"min" and "max": whole numbers, 1 <= min <= max',
}


def _possible(shape: Shape) -> bool:
    if isinstance(shape, Moldable):
        distinct = len(set(shape.sizes)) == len(shape.sizes)
        return bool(shape.sizes) and min(shape.sizes) >= 1 and distinct
    return isinstance(shape, Rigid) or 1 <= shape.min <= shape.max
