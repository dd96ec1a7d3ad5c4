# SPDX-License-Identifier: Apache-2.0
"""Means and medians over seeds with 95 % intervals.

- Fewer than `FEWEST` values have no interval.
- A mean of fewer than `FEWEST_RESAMPLED` values has Student's t interval.
- A mean of more values has the bias-corrected and accelerated bootstrap interval (Efron 1987).
- The interval of a median lies between two order statistics. It is valid for any distribution of
  the values.
- A ratio of two means has Student's t interval of its logarithm, with the standard error of the
  paired jackknife.

``docs/explanation/intervals.md`` shows how often each interval contains the true value.

For a statistic that is not a mean, such as the largest of several means, there is no formula for
the standard error. With few samples, its interval is Student's t interval with the standard error
of the jackknife. (For a mean, this is the usual standard error.) With more samples, it is the
bias-corrected and accelerated bootstrap interval.

References
----------
.. [1] B. Efron, "Better bootstrap confidence intervals", JASA 82, 1987, equations 2.3 and 6.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb, exp, fsum, log
from statistics import fmean, median, stdev

import msgspec
import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 2_000
"""Number of bootstrap resamples.

With other random numbers, the ends of an interval change by a few per cent of its width. The random
numbers have a fixed seed, so equal values always have equal intervals.
"""

FEWEST = 5
"""The smallest number of values for which a mean has an interval.

A median needs one more value, because the range of five values contains the true median in only
93.75 % of all samples.
"""

FEWEST_RESAMPLED = 10
"""The smallest number of values for which a mean has a bootstrap interval."""

BySeed = Mapping[int, float]


class Interval(msgspec.Struct, frozen=True):
    """A mean or a median with its interval.

    Attributes
    ----------
    mean
        The mean, or the median.
    low, high
        The ends of the interval, or None if there are too few values.
    n
        Number of values, or 0 if ``mean`` is an exact number.
    single
        Range in which 95 % of single values are expected, or None if there is no interval. For a
        mean, this is Student's prediction interval, which assumes a normal distribution. For a
        median, it is the range from the smallest to the largest value.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    single: tuple[float, float] | None = None

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside the interval (False if there is no interval)."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= value <= self.high

    def contains(self, value: float) -> bool:
        """Return whether a value is within the interval (False if there is no interval)."""
        return self.low is not None and not self.excludes(value)

    def minus(self, value: float) -> Interval:
        """Return the interval after the subtraction of a value, for example 1 from a ratio."""
        if self.low is None or self.high is None:
            return Interval(self.mean - value, n=self.n)
        single = self.single and (self.single[0] - value, self.single[1] - value)
        return Interval(self.mean - value, self.low - value, self.high - value, self.n, single)

    @property
    def negative(self) -> Interval:
        """The interval of the negative values."""
        if self.low is None or self.high is None:
            return Interval(0.0 - self.mean, n=self.n)
        return Interval(0.0 - self.mean, 0.0 - self.high, 0.0 - self.low, self.n)

    @property
    def width(self) -> float | None:
        """The width of the interval, or None if there is no interval."""
        return None if self.low is None or self.high is None else self.high - self.low


def any_interval(estimates: Iterable[Interval | None]) -> bool:
    """Return whether at least one mean or median has an interval that a figure can show."""
    return any(estimate is not None and estimate.width for estimate in estimates)


def exact_number(value: float) -> Interval:
    """Return an `Interval` for a number without uncertainty."""
    return Interval(value, value, value, 0)


def interval(
    values: BySeed | Iterable[float], *, of_median: bool = False, among: int = 1
) -> Interval | None:
    """Return the mean or median of values with its interval, or None if there are no values.

    Parameters
    ----------
    of_median : bool
        Return the median instead of the mean.
    among : int
        Number of intervals that are considered together. With a confidence of 95 %, all of them
        contain their true values (Bonferroni).
    """
    numbers = list(values.values() if isinstance(values, Mapping) else values)
    if not numbers:
        return None
    if of_median:
        return _of_ranks(sorted(numbers))
    mean, n = fmean(numbers), len(numbers)
    if n < FEWEST:
        return Interval(mean, n=n)
    if min(numbers) == max(numbers):
        return Interval(mean, mean, mean, n, (mean, mean))
    level = 1 - (1 - CONFIDENCE) / among
    half = students_quantile(n, level) * stdev(numbers) / n**0.5
    low, high = (mean - half, mean + half) if n < FEWEST_RESAMPLED else _resampled(numbers, level)
    apart = students_quantile(n, CONFIDENCE) * stdev(numbers) * (1 + 1 / n) ** 0.5
    return Interval(mean, low, high, n, (mean - apart, mean + apart))


def students_quantile(n: int, level: float) -> float:
    """Return the quantile of Student's t distribution for a two-sided interval from n values."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2))


def _resampled(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the ends of the bias-corrected and accelerated bootstrap interval of a mean.

    If ``level`` is above 95 %, the function uses more resamples. The tails then contain as many
    resamples as with 95 %.
    """
    import numpy as np
    from scipy.stats import bootstrap

    ends = bootstrap(
        (np.asarray(values, dtype=float),),
        np.mean,
        confidence_level=level,
        method="BCa",
        n_resamples=round(RESAMPLES * (1 - CONFIDENCE) / (1 - level)),
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(ends.low), float(ends.high)


def _of_ranks(ordered: Sequence[float]) -> Interval:
    rank, n = _rank(len(ordered)), len(ordered)
    if not rank:
        return Interval(median(ordered), n=n)
    return Interval(
        median(ordered), ordered[rank - 1], ordered[-rank], n, (ordered[0], ordered[-1])
    )


def _rank(n: int) -> int:
    """Return the rank j for the interval of a median, or 0 if there is no interval.

    The interval extends from the j-th smallest to the j-th largest of n values. The function
    returns the largest j for which this interval contains the true median with a probability of at
    least 95 %.

    >>> [_rank(n) for n in (5, 6, 10, 20)]
    [0, 1, 2, 6]
    """
    rank, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, rank) / 2**n) <= 1 - CONFIDENCE:
        rank += 1
    return rank


def ratio_of_means(ours: BySeed, base: BySeed) -> Interval | None:
    """Return the mean of ours / the mean of base over the seeds that both have, with its interval.

    Return None if there are no such seeds, or if the mean of base is 0. There is no interval if a
    mean without one of the seeds is 0 or has another sign.

    >>> ratio_of_means({0: 1.0, 1: 5.0}, {0: 2.0, 1: 2.0})
    Interval(mean=1.5, low=None, high=None, n=2, single=None)
    """
    seeds = sorted(ours.keys() & base.keys())
    n, our_sum, base_sum = len(seeds), fsum(ours[s] for s in seeds), fsum(base[s] for s in seeds)
    if not base_sum:
        return None
    ratio = our_sum / base_sum
    if n < FEWEST:
        return Interval(ratio, n=n)
    if not any(ours[seed] for seed in seeds):
        return Interval(0.0, 0.0, 0.0, n)
    sums = [(our_sum - ours[seed], base_sum - base[seed]) for seed in seeds]
    if any(our * ratio * other <= 0 for our, other in sums):
        return Interval(ratio, n=n)
    logs = [log(our / other / ratio) for our, other in sums]
    error = (n - 1) * stdev(logs) / n**0.5
    factor = exp(students_quantile(n, CONFIDENCE) * error)
    low, high = sorted((ratio / factor, ratio * factor))
    return Interval(ratio, low, high, n)


def mean_of_ratios(ours: BySeed, base: BySeed) -> Interval | None:
    """Return the mean over seeds of ours / base, with its interval. Omit seeds with base 0.

    Reports of papers use this mean. Tables that also show the two means use `ratio_of_means`.
    """
    return interval(ratios(ours, base))


def ratios(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours / base for each seed. Omit seeds with base 0."""
    return {seed: ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)}


def minus(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours - base by seed."""
    return {seed: ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())}


ANY_SEED = -1
"""The key of a value that applies to every seed."""


def relative(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours / base - 1 for each seed. If a seed has no base, use that of `ANY_SEED`."""
    pairs = ((seed, value, base.get(seed, base.get(ANY_SEED))) for seed, value in ours.items())
    return {seed: value / other - 1 for seed, value, other in pairs if other}


def combined(how: Callable[[list[float]], float], *samples: BySeed) -> dict[int, float]:
    """Apply a function such as max to the values of each seed. Omit seeds with missing values."""
    seeds = set.intersection(*map(set, samples)) if samples else set()
    return {seed: how([sample[seed] for sample in samples]) for seed in sorted(seeds)}


def relative_width(estimate: Interval | None) -> float | None:
    """Return the width of an interval divided by the mean, or None if there is no interval."""
    if estimate is None or estimate.width is None or not estimate.mean:
        return None
    return estimate.width / abs(estimate.mean)


Floats = npt.NDArray[np.float64]

RESAMPLES_OF_STATISTIC = 1_000
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
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES_OF_STATISTIC)
        n_resamples = RESAMPLES_OF_STATISTIC if n >= FEWEST_RESAMPLED else 0
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
