# SPDX-License-Identifier: Apache-2.0
"""The distributions of Cirne's model of rigid and moldable jobs, as in Prabhakaran et al. 2018.

Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
section IV-B, equations (4) to (6) and Tables I and II, after Cirne and Berman. Each distribution
(*law*) is sampled by inversion of uniform random numbers, which the caller passes.

The paper leaves three details open, which rebat defines as follows:

- A size that is rounded to a power of two becomes the nearest power, not 2**u.
- The first argument of equation (6) is the minimum size, and the second is the mean parallelism.
  The reverse order contradicts the law of the minimum sizes.
- A mean parallelism below the minimum size is raised to the minimum size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.arrays import Floats, Ints


class LogUniform(NamedTuple):
    """The law P(X <= x) = slope log2(x) + intercept for x >= 1: equation (4)."""

    slope: float
    intercept: float

    def exponents(self, uniform: Floats) -> Floats:
        """Return log2 of the values for uniform numbers in [0, 1), by inversion of the law."""
        return np.maximum((uniform - self.intercept) / self.slope, 0.0)

    def integers(self, uniform: Floats) -> Ints:
        """Return the values rounded up. P(N <= n) then equals the law at every integer n."""
        return np.ceil(2 ** self.exponents(uniform)).astype(np.int64)


SIZE = LogUniform(0.12, 0.20)
"""Processors of rigid jobs: 1 to 102 (Table I)."""

ESTIMATE_S = LogUniform(0.10, -0.75)
"""Estimated run times: 181 s to 51.5 h (Table I)."""

LEAST_SIZE = LogUniform(0.06920, 0.6279)
"""Minimum processors of moldable jobs: 1 to 42 (Table II)."""

REQUESTS = LogUniform(0.1918, 0.1876)
"""Law of the number of sizes that a user requests: 1 to 19 (Table II)."""

POWER_OF_TWO = 0.75
"""Probability that a size is a power of two (Table I)."""

PHI, GAMMA, ETA, RHO = 0.009548, -0.01877, 0.07468, -0.009198
"""Parameters of equation (6) (Table II)."""


def rigid_sizes(uniform: Floats, powers: Floats, most: int) -> Ints:
    """Return sizes of rigid jobs.

    The random numbers ``uniform`` determine the sizes. The random numbers ``powers`` decide which
    sizes are rounded to powers of two.
    """
    exponents = SIZE.exponents(uniform)
    rounded = (2 ** np.rint(exponents)).astype(np.int64)
    sizes = np.where(powers < POWER_OF_TWO, rounded, SIZE.integers(uniform))
    return np.minimum(sizes, most)


def parallelisms(least: Ints, uniform: Floats) -> Floats:
    """Return the mean parallelism of jobs with these minimum sizes, by equation (6).

    In the law of the minimum sizes, the size 1 has a positive probability. Above 1, the density of
    log2 of the minimum size is constant.
    """
    of_one = (LEAST_SIZE.intercept * uniform - RHO) / ETA
    of_more = (LEAST_SIZE.slope * uniform - GAMMA) / PHI
    parallelism: Floats = 2 ** np.where(least == 1, of_one, of_more)
    return parallelism


def sizes_between(least: int, most: int, uniform: Floats, powers: Floats) -> list[int]:
    """Return log-uniform integers from ``least`` to ``most``, mostly powers of two.

    ``powers`` are uniform numbers that decide which sizes are rounded to the nearest power of two.
    If the nearest power of two is below ``least`` or above ``most``, the size is not rounded.
    """
    low, high = np.log2(least), np.log2(most + 1)
    sizes = np.minimum(np.floor(2 ** (low + (high - low) * uniform)), most)
    rounded = 2 ** np.rint(np.log2(sizes))
    fits = (powers < POWER_OF_TWO) & (least <= rounded) & (rounded <= most)
    chosen: list[int] = np.where(fits, rounded, sizes).astype(np.int64).tolist()
    return chosen


def requests(least: int, others: Sequence[int], count: int) -> list[int]:
    """Return up to ``count`` distinct sizes that a user requests. The minimum size is first.

    >>> requests(2, [8, 2, 8, 4, 16, 32], 4)
    [2, 8, 4, 16]
    """
    return list(dict.fromkeys([least, *others]))[:count]
