# SPDX-License-Identifier: Apache-2.0
"""Medians over seeds with intervals that ask for no distribution.

Makespans have heavy tails here: one long repair under a job that needs nearly all processors may
double one. A mean over ten workloads would tell of that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb
from statistics import median
from typing import NamedTuple

from rebat.results.estimates import CONFIDENCE


class Middle(NamedTuple):
    """A median of n values, and the order statistics between which the true one lies with 95 %, or
    the least and the greatest value where n is too small for that."""

    median: float
    low: float
    high: float
    n: int

    def holds(self, value: float) -> bool:
        """Whether the interval does."""
        return self.low <= value <= self.high


def middle(values: Mapping[int, float]) -> Middle | None:
    """Of the values of all seeds; None without any.

    >>> middle({seed: float(seed) for seed in range(10)})
    Middle(median=4.5, low=1.0, high=8.0, n=10)
    """
    if not values:
        return None
    ordered = sorted(values.values())
    rank = max(_rank(len(ordered)), 1)
    return Middle(median(ordered), ordered[rank - 1], ordered[-rank], len(ordered))


def _rank(n: int) -> int:
    """The largest rank j such that the median lies between the j-th least and the j-th greatest of
    n values often enough; 0: none does.

    >>> [_rank(n) for n in (5, 6, 10, 20)]
    [0, 1, 2, 6]
    """
    rank, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, rank) / 2**n) <= 1 - CONFIDENCE:
        rank += 1
    return rank


def written(found: Middle | None, shown: Callable[[float], str]) -> str:
    """A median with its interval."""
    if found is None:
        return ""
    text = shown(found.median)
    return text if found.low == found.high else f"{text} [{shown(found.low)}, {shown(found.high)}]"
