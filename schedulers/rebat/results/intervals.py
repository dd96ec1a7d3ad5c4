# SPDX-License-Identifier: Apache-2.0
"""What seeds say of a number: its centre with a 95 % interval, by one of three methods.

`BOOTSTRAP` is for means of values whose law is unknown or skewed (flows, ratios of them): it is
the method of comparisons and of everything that has no reason for another. `STUDENT` is for means
of few values that are about normal (utilisations, differences paired by seed): it is symmetric,
exact for normal values, and can be widened for several means at once. `RANKS` is for medians: it
asks for no law at all, and is the choice where single values are extreme (makespans under heavy
tails).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb
from statistics import fmean, median, stdev
from string import ascii_letters

import msgspec

CONFIDENCE = 0.95
RESAMPLES = 2_000
"""The ends of a bootstrap interval vary by a few per cent of its width from one such number of
draws to another; the draws are seeded, so that the same values have the same interval."""

BOOTSTRAP, STUDENT, RANKS = "bootstrap", "student", "ranks"

BySeed = Mapping[int, float]


class Interval(msgspec.Struct, frozen=True):
    """A mean over ``n`` seeds (by `RANKS`: a median) and where it lies; from one seed there is no
    telling (None). ``half`` is the distance of the ends by `STUDENT`, whose mean is in the middle.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    half: float | None = None

    def excludes(self, value: float) -> bool:
        """Whether a value is outside of the interval."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= value <= self.high

    def contains(self, value: float) -> bool:
        """Whether a value is within the interval."""
        return self.low is not None and not self.excludes(value)

    def less(self, value: float) -> Interval:
        """Return the interval of the estimate minus a number: of a ratio less 1, the change."""
        low = None if self.low is None else self.low - value
        high = None if self.high is None else self.high - value
        return Interval(self.mean - value, low, high, self.n, self.half)

    @property
    def width(self) -> float | None:
        """From end to end."""
        return None if self.low is None or self.high is None else self.high - self.low


def interval(
    values: BySeed | Iterable[float], method: str = BOOTSTRAP, among: int = 1
) -> Interval | None:
    """The centre of some values with its interval; None without values.

    Parameters
    ----------
    values : mapping or iterable of float
    method : {'bootstrap', 'student', 'ranks'}
        Bias-corrected and accelerated bootstrap (Efron 1987, as scipy computes it; too narrow for
        fewer than ten values); Student's t; order statistics, or the least and the greatest of
        fewer than six values.
    among : int
        Student's interval is widened so that so many hold at once (Bonferroni).

    >>> found = interval([1.0, 2.0, 3.0, 4.0])
    >>> found.mean, found.n, found.excludes(2.0), found.excludes(9.0)
    (2.5, 4, False, True)
    >>> round(interval({0: 1.0, 1: 2.0, 2: 3.0}, STUDENT).half, 5)
    2.48414
    """
    some = list(values.values() if isinstance(values, Mapping) else values)
    if not some:
        return None
    if len(some) == 1:
        return Interval(fmean(some))
    if method == RANKS:
        return _of_ranks(sorted(some))
    return _students(some, among) if method == STUDENT else _bootstrapped(some)


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
    """The largest rank j such that the median lies between the j-th least and the j-th greatest of
    n values often enough; 0: none does.

    >>> [_rank(n) for n in (5, 6, 10, 20)]
    [0, 1, 2, 6]
    """
    rank, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, rank) / 2**n) <= 1 - CONFIDENCE:
        rank += 1
    return rank


def paired_ratio(ours: BySeed, base: BySeed, method: str = BOOTSTRAP) -> Interval | None:
    """Of ours over base, seed by seed, where both have a value and the base is not 0."""
    return interval(ratios(ours, base), method)


def ratios(ours: BySeed, base: BySeed) -> dict[int, float]:
    """ours / base, seed by seed."""
    return {seed: ours[seed] / base[seed] for seed in sorted(ours) if base.get(seed)}


def minus(ours: BySeed, base: BySeed) -> dict[int, float]:
    """ours - base, seed by seed."""
    return {seed: ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())}


ANY_SEED = -1
"""The seed of what has none: it goes with every other."""


def relative(ours: BySeed, base: BySeed) -> dict[int, float]:
    """ours / base - 1, seed by seed; a base without a seed goes with all."""
    pairs = ((seed, value, base.get(seed, base.get(ANY_SEED))) for seed, value in ours.items())
    return {seed: value / other - 1 for seed, value, other in pairs if other}


def combined(how: Callable[[list[float]], float], *some: BySeed) -> dict[int, float]:
    """The largest of several, say, seed by seed."""
    seeds = set.intersection(*(set(sample) for sample in some)) if some else set()
    return {seed: how([sample[seed] for sample in some]) for seed in sorted(seeds)}


def relative_width(estimate: Interval | None) -> float | None:
    """The width of an interval as a share of its mean; None while there is none."""
    if estimate is None or estimate.width is None or not estimate.mean:
        return None
    return estimate.width / abs(estimate.mean)


# ---- as texts

Shown = Callable[[float], str]


def spread(estimate: Interval | None, shown: Shown) -> str:
    """Return a centre with its interval as text; a unit that all numbers share is written once.

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
    """A ratio or an effect with its interval; = where the seeds do not tell it from none.

    >>> marked(Interval(1.02, 0.99, 1.05, 9))
    '= 1.020 [0.990, 1.050]'
    """
    if estimate is None:
        return ""
    unsure = "" if estimate.low is None or estimate.excludes(neutral) else "= "
    return unsure + spread(estimate, shown)


def narrow(estimate: Interval | None, shown: Shown) -> str:
    """The same in one line, and without the interval where all seeds agree."""
    if estimate is not None and not estimate.half:
        return shown(estimate.mean)
    return spread(estimate, shown).replace(" ", "\N{NO-BREAK SPACE}")
