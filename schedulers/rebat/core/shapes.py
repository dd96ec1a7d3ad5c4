"""The shape of a job: on which numbers of nodes it can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.tagged import tagged


class Rigid(msgspec.Struct, frozen=True, tag_field="kind", tag="rigid"):
    """Only on as many nodes as it asked for."""

    def allows(self, n_nodes: int, asked: int) -> bool:
        """Whether a job that asked for ``asked`` nodes can go on on ``n_nodes``."""
        return n_nodes == asked


class Moldable(msgspec.Struct, frozen=True, tag_field="kind", tag="moldable"):
    """On any of these numbers of nodes, chosen when it starts."""

    sizes: tuple[int, ...]

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
        raise InputError(f"shape {given}", expected=_EXPECTED[type(shape)])
    return shape


_EXPECTED: dict[type[Shape], str] = {
    Moldable: '"sizes": whole numbers, 1 or more',
    Malleable: '"min" and "max": whole numbers, 1 <= min <= max',
}


def _possible(shape: Shape) -> bool:
    if isinstance(shape, Moldable):
        return bool(shape.sizes) and min(shape.sizes) >= 1
    return isinstance(shape, Rigid) or 1 <= shape.min <= shape.max
