# SPDX-License-Identifier: Apache-2.0
"""Intervals of any statistic of samples, computed by the rule of `results.intervals`.

For a statistic that is not a mean, such as the largest of several means, there is no formula for
the standard error. With few samples, its interval is Student's t interval with the standard error
of the jackknife. (For a mean, this is the usual standard error.) With more samples, it is the
bias-corrected and accelerated bootstrap interval.

References
----------
.. [1] B. Efron, "Better bootstrap confidence intervals", JASA 82, 1987, equations 2.3 and 6.6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rebat.results.intervals import (
    CONFIDENCE,
    FEWEST,
    FEWEST_RESAMPLED,
    Interval,
    students_quantile,
)

Floats = npt.NDArray[np.float64]

RESAMPLES = 1_000
"""Number of resamples. It is smaller than for means, because a statistic can take a millisecond."""

Statistic = Callable[[int], float | None]
"""Function of a row of `Weights`. It returns the weighted statistic, or None if it is undefined."""


class Weights:
    """Weights of n samples: a row for all samples, rows that omit one sample, and resamples.

    Parameters
    ----------
    n : int
        Number of samples.

    Attributes
    ----------
    rows : ndarray of shape (1 + n + n_resamples, n)
        Row 0: every sample counts once. Rows 1 to n: one sample is left out. Further rows:
        resamples with replacement, which depend only on n.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        once = np.ones((1, n))
        left_out = 1 - np.eye(n)
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        n_resamples = RESAMPLES if n >= FEWEST_RESAMPLED else 0
        self.rows: Floats = np.concatenate([once, left_out, drawn[:n_resamples]])

    def interval(self, statistic: Statistic) -> Interval | None:
        """Return the statistic of all samples with its interval, or None if it is undefined."""
        value = statistic(0)
        if value is None:
            return None
        if self.n < FEWEST:
            return Interval(value, n=self.n)
        left_out = _values(statistic, range(1, self.n + 1))
        if self.n < FEWEST_RESAMPLED:
            error = np.sqrt((self.n - 1) / self.n * ((left_out - left_out.mean()) ** 2).sum())
            half = students_quantile(self.n, CONFIDENCE) * float(error)
            return Interval(value, value - half, value + half, self.n)
        resampled = _values(statistic, range(self.n + 1, len(self.rows)))
        low, high = np.quantile(resampled, _shares(value, left_out, resampled))
        return Interval(value, min(float(low), value), max(float(high), value), self.n)


def _values(statistic: Statistic, rows: range) -> Floats:
    values = (statistic(row) for row in rows)
    return np.array([value for value in values if value is not None])


def _shares(value: float, left_out: Floats, resampled: Floats) -> Floats:
    """Return which shares of the resamples lie below the two ends of the interval."""
    from scipy.special import ndtr, ndtri

    plain = np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    bias = ndtri(((resampled < value).mean() + (resampled <= value).mean()) / 2)
    off = left_out.mean() - left_out
    scale = (off**2).sum()
    if not np.isfinite(bias) or not scale:
        return plain
    z = bias + ndtri(plain)
    shares: Floats = ndtr(bias + z / (1 - (off**3).sum() / (6 * scale**1.5) * z))
    return shares
