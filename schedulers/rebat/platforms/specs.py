# SPDX-License-Identifier: Apache-2.0
"""Specifications of machines: 'mira', 'intrepid', 'torus:8,8,8,8' or 'flat:128'; SimGrid's units.

Source: the comment on DTD version 4 in SimGrid's ``simgrid.dtd``.
"""

from __future__ import annotations

import math
import re

import msgspec

from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
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


_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{name}i": 1024.0**power for power, name in enumerate("KMGTPE", start=1)}
_WORDS = ("", "kilo", "mega", "giga", "tera", "peta", "exa")

_SPEED = {f"{si}f": value for si, value in _SI.items()}
_SPEED |= {f"{word}flops": 1000.0**power for power, word in enumerate(_WORDS)}
_BANDWIDTH = {f"{si}Bps": value for si, value in (_SI | _BINARY).items()}
_BANDWIDTH |= {f"{si}bps": value / 8 for si, value in (_SI | _BINARY).items()}
_LATENCY = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}

UNITS: dict[str, tuple[dict[str, float], str]] = {
    "speed": (_SPEED, "flop/s above 0, like 1Gf"),
    "bandwidth": (_BANDWIDTH, "bytes or bits per second above 0, like 2GBps"),
    "latency": (_LATENCY, "a time, like 1us"),
}
"""For each kind of quantity: the factor of each unit, and a text about expected values.

A number without unit is in the base unit.
"""

_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]*)\s*\Z")


def parse_quantity(kind: str, text: str, where: str | None = None) -> float:
    """Return a quantity in flop/s, bytes/s or seconds.

    >>> parse_quantity("speed", "1Gf"), parse_quantity("latency", "2us")
    (1000000000.0, 2e-06)
    """
    units, expected = UNITS[kind]
    match = _QUANTITY.match(text)
    if not match or match[2] not in {"", *units}:
        raise InputError(f"{kind} is {text[:40]!r}", where, expected)
    value = float(match[1]) * units.get(match[2], 1.0)
    if not math.isfinite(value) or (value == 0 and kind != "latency"):
        raise InputError(f"{kind} is {text[:40]!r}", where, expected)
    return value
