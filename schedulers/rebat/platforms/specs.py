# SPDX-License-Identifier: Apache-2.0
"""Specifications of machines: 'mira', 'intrepid', 'torus:8,8,8,8' or 'flat:128'."""

from __future__ import annotations

import msgspec

from rebat.core.errors import InputError
from rebat.core.sizes import MAX_NODES
from rebat.models.topology import TORI, Torus, parse_sizes

EXPECTED = f"{', '.join(TORI)}, torus:SIZES like torus:8,8,8,8, or flat:NODES like flat:128"


class PlatformSpec(msgspec.Struct, frozen=True):
    """A machine of equal nodes. ``name`` is also its file name. A flat machine has no ``torus``."""

    name: str
    n_nodes: int
    torus: Torus | None = None


def parse_spec(text: str) -> PlatformSpec:
    """Return the machine that a specification describes.

    >>> parse_spec("torus:8,8,8,8").name, parse_spec("flat:128").n_nodes
    ('torus-8x8x8x8', 128)
    """
    kind, _, sizes = text.strip().lower().partition(":")
    if kind in TORI and not sizes:
        return PlatformSpec(kind, TORI[kind].n_nodes, TORI[kind])
    if kind == "torus" and sizes:
        torus = _torus(sizes, text)
        return PlatformSpec(f"torus-{torus}", torus.n_nodes, torus)
    if kind == "flat" and sizes:
        n_nodes = _count(sizes, text)
        return PlatformSpec(f"flat-{n_nodes}", n_nodes)
    raise InputError(f"unknown platform {text!r}", expected=EXPECTED)


def _torus(sizes: str, text: str) -> Torus:
    torus = parse_sizes(sizes, f"platform {text!r}")
    if min(torus.sizes) < 2:
        # With two dimensions of size 1, SimGrid would create two links with the same name.
        expected = "sizes of at least 2: omit dimensions of size 1"
        raise InputError("a dimension has the size 1", f"platform {text!r}", expected)
    return torus


def _count(sizes: str, text: str) -> int:
    n_nodes = int(sizes) if sizes.isdecimal() and len(sizes) <= 8 else 0
    if not 1 <= n_nodes <= MAX_NODES:
        raise InputError(f"has {sizes!r} nodes", f"platform {text!r}", f"1 to {MAX_NODES}")
    return n_nodes
