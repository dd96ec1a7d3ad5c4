# SPDX-License-Identifier: Apache-2.0
"""The laws of Cirne's model of rigid and moldable jobs, as Prabhakaran et al. 2018 use it.

Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
section IV-B, equations (4) to (6) and Tables I and II, after Cirne and Berman. Every law is sampled
by inversion of uniform numbers, which come from outside.

Not printed there, and so chosen here: a power of two takes the place of 2**u for the nearest whole
u; the first argument of equation (6) is the least size and the second the mean parallelism (the
other order contradicts the law of the least sizes); a mean parallelism below the least size is
raised to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LogUniform(NamedTuple):
    """P(X <= x) = slope log2(x) + intercept from 1 on: equation (4)."""

    slope: float
    intercept: float

    def exponents(self, uniform: Floats) -> Floats:
        """log2 of the values of uniform numbers in [0, 1)."""
        return np.maximum((uniform - self.intercept) / self.slope, 0.0)

    def whole(self, uniform: Floats) -> Ints:
        """Whole values: rounded up, so that P(N <= n) is the law's at every n."""
        return np.ceil(2 ** self.exponents(uniform)).astype(np.int64)


SIZE = LogUniform(0.12, 0.20)
"""Processors of rigid jobs: 1 to 102 (Table I)."""

ESTIMATE_S = LogUniform(0.10, -0.75)
"""Estimated run times: 181 s to 51.5 h (Table I)."""

LEAST_SIZE = LogUniform(0.06920, 0.6279)
"""The least processors of moldable jobs: 1 to 42 (Table II)."""

REQUESTS = LogUniform(0.1918, 0.1876)
"""How many sizes a user asks for: 1 to 19 (Table II)."""

POWER_OF_TWO = 0.75
"""The probability that a size is a power of two (Table I)."""

PHI, GAMMA, ETA, RHO = 0.009548, -0.01877, 0.07468, -0.009198
"""Of equation (6) (Table II)."""


def rigid_sizes(uniform: Floats, powers: Floats, most: int) -> Ints:
    """Sizes of rigid jobs; a uniform number each for the size, and for the power of two."""
    exponents = SIZE.exponents(uniform)
    rounded = (2 ** np.rint(exponents)).astype(np.int64)
    sizes = np.where(powers < POWER_OF_TWO, rounded, SIZE.whole(uniform))
    return np.minimum(sizes, most)


def parallelisms(least: Ints, uniform: Floats) -> Floats:
    """Mean parallelisms of jobs with these least sizes: equation (6), given its first argument.

    The law has a point mass at a least size of 1; above, its density in log2 of the least size does
    not depend on it.
    """
    of_one = (LEAST_SIZE.intercept * uniform - RHO) / ETA
    of_more = (LEAST_SIZE.slope * uniform - GAMMA) / PHI
    found: Floats = 2 ** np.where(least == 1, of_one, of_more)
    return found


def sizes_between(least: int, most: int, uniform: Floats, powers: Floats) -> list[int]:
    """Log-uniform whole numbers from ``least`` to ``most``, often powers of two.

    ``powers`` are uniform numbers that decide on the nearest power of two, where it is in range.
    """
    low, high = np.log2(least), np.log2(most + 1)
    sizes = np.minimum(np.floor(2 ** (low + (high - low) * uniform)), most)
    rounded = 2 ** np.rint(np.log2(sizes))
    fits = (powers < POWER_OF_TWO) & (least <= rounded) & (rounded <= most)
    found: list[int] = np.where(fits, rounded, sizes).astype(np.int64).tolist()
    return found


def requests(least: int, others: Sequence[int], count: int) -> list[int]:
    """The sizes that a user asks for: the least one, then others, each once.

    They are fewer than ``count`` where there are no more.

    >>> requests(2, [8, 2, 8, 4, 16, 32], 4)
    [2, 8, 4, 16]
    """
    return list(dict.fromkeys([least, *others]))[:count]
