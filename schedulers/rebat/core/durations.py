# SPDX-License-Identifier: Apache-2.0
"""Random durations in text form, and the random streams from which everything is drawn.

Example: ``5min``, ``90%*uniform:1h:3h+10%*uniform:1d:3d``. Streams are named and seeded: the same
seed and name always produce the same numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.random import Generator

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS, parse_duration

FORM = (
    "DURATION, uniform:LEAST:MOST, exponential:MEAN or lognormal:MEDIAN:SIGMA, "
    "or a mixture of them like 90%*30s+10%*10min"
)


class Family(NamedTuple):
    """A family of distributions of durations: its parameters, mean and random draw, in seconds."""

    parameters: tuple[str, ...]
    mean: Callable[..., float]
    draw: Callable[..., float]


FAMILIES: dict[str, Family] = {
    "constant": Family(("duration",), lambda s: s, lambda rng, s: s),
    "uniform": Family(
        ("least", "most"), lambda a, b: (a + b) / 2, lambda rng, a, b: rng.uniform(a, b)
    ),
    "exponential": Family(("mean",), lambda m: m, lambda rng, m: rng.exponential(m)),
    "lognormal": Family(
        ("median", "sigma"),
        lambda m, sigma: m * math.exp(sigma**2 / 2),
        lambda rng, m, sigma: m * math.exp(sigma * rng.standard_normal()),
    ),
}


class DurationPart(msgspec.Struct, frozen=True):
    """A part of a mixture: name and parameters of a distribution, and its probability."""

    family: str
    values: tuple[float, ...]
    weight: float = 1.0


class RandomDuration(msgspec.Struct, frozen=True):
    """A random duration. Its distribution is a mixture of distributions."""

    parts: tuple[DurationPart, ...]

    @property
    def mean_s(self) -> float:
        """The mean in seconds."""
        return sum(part.weight * FAMILIES[part.family].mean(*part.values) for part in self.parts)

    @property
    def constant(self) -> bool:
        """Whether every draw is the same."""
        return len(self.parts) == 1 and self.parts[0].family == "constant"

    def draw_s(self, rng: Generator) -> float:
        """Draw a duration in seconds, at most `MAX_SECONDS`."""
        part = self.parts[0]
        if len(self.parts) > 1:
            left = rng.random()
            for part in self.parts:
                left -= part.weight
                if left < 0:
                    break
        return min(float(FAMILIES[part.family].draw(rng, *part.values)), MAX_SECONDS)


def parse_random(text: str | float) -> RandomDuration:
    """Return the random duration of a text.

    >>> parse_random("90%*30s+10%*10min").mean_s
    87.0
    """
    parts = [_part(part) for part in str(text).split("+")]
    total = sum(part.weight for part in parts)
    if abs(total - 1) > 1e-6:
        raise InputError(f"{text!r}: the shares add up to {100 * total:g} %", expected="100 %")
    return RandomDuration(tuple(parts))


def _part(text: str) -> DurationPart:
    share, star, rest = text.partition("*")
    weight = _share(share) if star else 1.0
    name, colon, numbers = (rest if star else text).strip().partition(":")
    if not colon:
        name, numbers = "constant", name
    family, values = FAMILIES.get(name), numbers.split(":")
    if family is None or len(values) != len(family.parameters):
        raise InputError(f"{text!r} is not a random duration", expected=FORM)
    read = [
        float(value) if key == "sigma" and _is_number(value) else parse_duration(value)
        for key, value in zip(family.parameters, values, strict=True)
    ]
    if name == "uniform" and read[0] > read[1]:
        raise InputError(f"{text!r}: the minimum is above the maximum", expected=FORM)
    return DurationPart(name, tuple(read), weight)


def _share(text: str) -> float:
    number = text.strip().removesuffix("%")
    if not (text.strip().endswith("%") and _is_number(number)):
        raise InputError(f"{text!r} is not a share", expected="a percentage like 90%")
    return float(number) / 100


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


LARGEST_SEED = 2**63 - 1
"""Largest seed: the largest signed 64-bit number. Tables of results cannot contain larger ones."""


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of a named stream. Streams with different names are independent.

    >>> bool(stream(1, "sizes").random() == stream(1, "sizes").random())
    True
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest[:16], dtype=np.uint32).tolist()])
