# SPDX-License-Identifier: Apache-2.0
"""Means over seeds with 95 % confidence intervals, and differences paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import msgspec

CONFIDENCE = 0.95


class Estimate(msgspec.Struct, frozen=True):
    """A mean, and half of the width of its interval (None: from one value there is none)."""

    mean: float
    half: float | None

    @property
    def differs(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.half is not None and abs(self.mean) > self.half


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean and Student's interval of it; None without values.

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half, 5)
    (2.0, 2.48414)
    """
    if not values:
        return None
    if len(values) == 1:
        return Estimate(values[0], None)
    from scipy.stats import t

    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return Estimate(fmean(values), quantile * stdev(values) / len(values) ** 0.5)


def paired(ours: Mapping[int, float], base: Mapping[int, float]) -> Estimate | None:
    """Of the differences, seed by seed, where both have a value."""
    return estimate([ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())])
