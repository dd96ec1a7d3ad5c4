# SPDX-License-Identifier: Apache-2.0
"""Quantities with units in SimGrid: speeds, bandwidths and latencies.

Source: the comment on DTD version 4 in SimGrid's ``simgrid.dtd``.
"""

from __future__ import annotations

import math
import re

from rebat.core.errors import InputError

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
