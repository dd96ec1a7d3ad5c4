# SPDX-License-Identifier: Apache-2.0
"""Means and medians over seeds with 95 % intervals, by one of three methods.

- `BOOTSTRAP`: means of values with an unknown or skewed distribution (flows and their ratios). This
  is the default, and the method of comparisons.
- `STUDENT`: means of few values that are about normal (utilisations, differences paired by seed).
  The interval is symmetric, exact for normal values, and can be widened for several means jointly.
- `RANKS`: medians. This method assumes no distribution and suits extreme values (makespans with
  heavy tails).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb
from statistics import fmean, median, stdev
from string import ascii_letters

import msgspec

CONFIDENCE = 0.95
RESAMPLES = 2_000
"""Bootstrap resamples. With this number, the ends of an interval vary between random streams by a
few per cent of its width. The stream is seeded, so the same values always have the same
interval."""

BOOTSTRAP, STUDENT, RANKS = "bootstrap", "student", "ranks"

BySeed = Mapping[int, float]


class Interval(msgspec.Struct, frozen=True):
    """A mean over ``n`` seeds (with `RANKS` a median) and its interval.

    ``low`` and ``high`` are None for one seed. ``half`` is the half width with `STUDENT`.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    half: float | None = None

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside the interval; False without an interval."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= value <= self.high

    def contains(self, value: float) -> bool:
        """Return whether a value is within the interval; False without an interval."""
        return self.low is not None and not self.excludes(value)

    def minus(self, value: float) -> Interval:
        """Return the interval of the estimate minus a number; a ratio minus 1 is a change."""
        low = None if self.low is None else self.low - value
        high = None if self.high is None else self.high - value
        return Interval(self.mean - value, low, high, self.n, self.half)

    @property
    def width(self) -> float | None:
        """The width of the interval; None without an interval."""
        return None if self.low is None or self.high is None else self.high - self.low


def interval(
    values: BySeed | Iterable[float], method: str = BOOTSTRAP, among: int = 1
) -> Interval | None:
    """Return the mean or median of values with its interval; None without values.

    Parameters
    ----------
    values : mapping or iterable of float
    method : {'bootstrap', 'student', 'ranks'}
        Bias-corrected and accelerated bootstrap (Efron 1987, computed by scipy; too narrow for
        fewer than ten values); Student's t; order statistics, or the smallest and the largest of
        fewer than six values.
    among : int
        Number of Student's intervals that hold jointly with 95 % (Bonferroni).

    >>> mean = interval([1.0, 2.0, 3.0, 4.0])
    >>> mean.mean, mean.n, mean.excludes(2.0), mean.excludes(9.0)
    (2.5, 4, False, True)
    >>> round(interval({0: 1.0, 1: 2.0, 2: 3.0}, STUDENT).half, 5)
    2.48414
    """
    numbers = list(values.values() if isinstance(values, Mapping) else values)
    if not numbers:
        return None
    if len(numbers) == 1:
        return Interval(fmean(numbers))
    if method == RANKS:
        return _of_ranks(sorted(numbers))
    return _students(numbers, among) if method == STUDENT else _bootstrapped(numbers)


def _bootstrapped(values: Sequence[float]) -> Interval:
    mean, n = fmean(values), len(values)
    if min(values) == max(values):
        return Interval(mean, mean, mean, n)
    import numpy as np
    from scipy.stats import bootstrap

    ends = bootstrap(
        (np.asarray(values, dtype=float),), np.mean, confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES, method="BCa", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return Interval(mean, float(ends.low), float(ends.high), n)


def _students(values: Sequence[float], among: int) -> Interval:
    from scipy.stats import t

    mean, n = fmean(values), len(values)
    quantile = float(t.ppf(1 - (1 - CONFIDENCE) / 2 / among, n - 1))
    half = quantile * stdev(values) / n**0.5
    return Interval(mean, mean - half, mean + half, n, half)


def _of_ranks(ordered: Sequence[float]) -> Interval:
    rank = max(_rank(len(ordered)), 1)
    return Interval(median(ordered), ordered[rank - 1], ordered[-rank], len(ordered))


def _rank(n: int) -> int:
    """Return the largest rank j whose order statistics contain the median with 95 %; 0 if none.

    The order statistics are the j-th smallest and the j-th largest of n values.

    >>> [_rank(n) for n in (5, 6, 10, 20)]
    [0, 1, 2, 6]
    """
    rank, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, rank) / 2**n) <= 1 - CONFIDENCE:
        rank += 1
    return rank


def paired_ratio(ours: BySeed, base: BySeed, method: str = BOOTSTRAP) -> Interval | None:
    """Return the interval of ours / base, paired by seed; seeds with a base of 0 are omitted."""
    return interval(ratios(ours, base), method)


def ratios(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours / base by seed; seeds with a base of 0 are omitted."""
    return {seed: ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)}


def minus(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours - base by seed."""
    return {seed: ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())}


ANY_SEED = -1
"""The seed of values without seeds; it matches every seed."""


def relative(ours: BySeed, base: BySeed) -> dict[int, float]:
    """Return ours / base - 1 by seed; a base of `ANY_SEED` matches every seed."""
    pairs = ((seed, value, base.get(seed, base.get(ANY_SEED))) for seed, value in ours.items())
    return {seed: value / other - 1 for seed, value, other in pairs if other}


def combined(how: Callable[[list[float]], float], *samples: BySeed) -> dict[int, float]:
    """Apply a function, such as max, to the values of each seed that all samples share."""
    seeds = set.intersection(*map(set, samples)) if samples else set()
    return {seed: how([sample[seed] for sample in samples]) for seed in sorted(seeds)}


def relative_width(estimate: Interval | None) -> float | None:
    """Return the width of an interval as a share of its mean; None without an interval."""
    if estimate is None or estimate.width is None or not estimate.mean:
        return None
    return estimate.width / abs(estimate.mean)


# ---- as texts

Shown = Callable[[float], str]


def spread(estimate: Interval | None, shown: Shown) -> str:
    """Format a centre with its interval; a unit that all numbers share is written once.

    >>> spread(Interval(0.5, 0.4, 0.7, 9), "{:.1%}".format)
    '50.0% [40.0, 70.0]'
    >>> spread(interval([1.0, 2.0, 3.0], STUDENT), "{:+.1f}".format)
    '+2.0 ± 2.5'
    """
    if estimate is None:
        return ""
    if estimate.half is not None:
        return f"{shown(estimate.mean)} ± {shown(estimate.half).removeprefix('+')}"
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return shown(estimate.mean)
    centre, *ends = shown(estimate.mean), shown(estimate.low), shown(estimate.high)
    unit = centre[len(centre.rstrip(_UNITS)) :]
    if unit and all(end.rstrip(_UNITS) + unit == end for end in ends):
        ends = [end.removesuffix(unit) for end in ends]
    return f"{centre} [{ends[0]}, {ends[1]}]"


_UNITS = "% " + ascii_letters


def marked(estimate: Interval | None, neutral: float = 1.0, shown: Shown = "{:.3f}".format) -> str:
    """Format a ratio or an effect with its interval; = if the interval contains ``neutral``.

    >>> marked(Interval(1.02, 0.99, 1.05, 9))
    '= 1.020 [0.990, 1.050]'
    """
    if estimate is None:
        return ""
    unsure = "" if estimate.low is None or estimate.excludes(neutral) else "= "
    return unsure + spread(estimate, shown)


def narrow(estimate: Interval | None, shown: Shown) -> str:
    """Format like `spread` without line breaks, and without the interval if all seeds agree."""
    if estimate is not None and not estimate.half:
        return shown(estimate.mean)
    return spread(estimate, shown).replace(" ", "\N{NO-BREAK SPACE}")
