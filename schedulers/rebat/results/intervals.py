# SPDX-License-Identifier: Apache-2.0
"""What seeds say of a number: its mean with a 95 % bootstrap interval, and paired ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

CONFIDENCE = 0.95
RESAMPLES = 2_000
"""The ends of an interval vary by a few per cent of its width from one such number of draws to
another; the draws are seeded, so that the same values have the same interval."""

BySeed = Mapping[int, float]


class Interval(msgspec.Struct, frozen=True):
    """A mean over ``n`` seeds and where it lies; from one seed there is no telling (None)."""

    mean: float
    low: float | None
    high: float | None
    n: int

    def tells_from(self, value: float) -> bool:
        """Whether a value is outside of the interval."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= value <= self.high

    @property
    def width(self) -> float | None:
        """From end to end."""
        return None if self.low is None or self.high is None else self.high - self.low


def interval(values: Sequence[float]) -> Interval | None:
    """The mean of some values with its bias-corrected and accelerated bootstrap interval.

    Efron 1987, as scipy computes it; None without values. Intervals of fewer than ten values are
    known to be too narrow.

    >>> found = interval([1.0, 2.0, 3.0, 4.0])
    >>> found.mean, found.n, found.tells_from(2.0), found.tells_from(9.0)
    (2.5, 4, False, True)
    """
    n = len(values)
    if n == 0:
        return None
    mean = fmean(values)
    if n == 1:
        return Interval(mean, None, None, n)
    if min(values) == max(values):
        return Interval(mean, mean, mean, n)
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.asarray(values, dtype=float),), np.mean, confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES, method="BCa", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return Interval(mean, float(found.low), float(found.high), n)


def paired_ratio(ours: BySeed, base: BySeed) -> Interval | None:
    """Of ours over base, seed by seed, where both have a value and the base is not 0."""
    return interval([ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)])


def relative_width(found: Interval | None) -> float | None:
    """The width of an interval as a share of its mean; None while there is none."""
    if found is None or found.width is None or not found.mean:
        return None
    return found.width / abs(found.mean)
