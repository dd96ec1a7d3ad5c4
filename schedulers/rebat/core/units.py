# SPDX-License-Identifier: Apache-2.0
"""Times as integers in microseconds, which is the resolution of Batsim's messages (`%.6f`).

Equal times are equal integers, so the engine and the plans need no tolerance. Names that end in
``_us`` are integers in microseconds. Names that end in ``_s`` are seconds.
"""

from __future__ import annotations

import math
import re

from rebat.core.errors import InputError

US_PER_S = 1_000_000
US_PER_MS = 1_000
FOREVER_US = 2**62
"""A time after all other times. It marks jobs, outages and waits without an end."""

MAX_SECONDS = 1e11
"""Maximum time or duration in seconds (3,000 years)."""

UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
    "w": 604800.0,
}
_DURATION = re.compile(r"\s*([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([a-z]*)")


def to_us(seconds: float) -> int:
    """Convert seconds to the nearest microsecond."""
    return round(seconds * US_PER_S)


def to_s(us: int) -> float:
    """Convert microseconds to seconds."""
    return us / US_PER_S


def parse_duration(text: str | float) -> float:
    """Convert a duration in human units to seconds.

    >>> parse_duration("1h30min"), parse_duration("5 min"), parse_duration("90")
    (5400.0, 300.0, 90.0)
    """
    source = str(text).strip().lower()
    total, position = 0.0, 0
    while position < len(source):
        match = _DURATION.match(source, position)
        if not match or match[2] not in {"", *UNITS}:
            break
        try:
            total += float(match[1]) * UNITS.get(match[2], 1.0)
        except ValueError:
            break
        position = match.end()
    if not source or position < len(source) or not math.isfinite(total) or total > MAX_SECONDS:
        raise InputError(
            f"{text!r} is not a duration", expected="for example 300, 5min, 1h30min, 2d"
        )
    return total
