# SPDX-License-Identifier: Apache-2.0
"""Effective training time ratio (ETTR) of one job, in closed form. All times are in seconds.

ETTR is productive time / available time. The job alternates work and checkpoints. Failures of its
nodes arrive at the rate ``lambda``. The detection of a failure takes the time D. The job then loads
its last checkpoint, which takes the time L. Failures can hit the job while it works, writes or
loads. They have no effect during the detection, because the job is not running.

Sources: the renewal argument of Daly, "A higher order estimate of the optimum checkpoint interval
for restart dumps", FGCS 2006, without failures during D; Young, CACM 1974; Kokolis et al.,
"Revisiting Reliability in Large-Scale Machine Learning Research Clusters", HPCA 2025 (`rsc_ettr`).

ETTR and best intervals of several tiers of checkpoints. All times are in seconds.

The pattern is nested: ``counts[i]`` checkpoints of tier i, then one checkpoint of tier i + 1. Each
failure needs the checkpoint of a certain tier: the job returns to its last checkpoint of this tier
or of a heavier tier.

The expected times are computed by a recursion over the tiers. (Moody, Bronevetsky, Mohror and de
Supinski, "Design, modeling, and evaluation of a scalable multi-level checkpointing system", SC
2010, derive them from a Markov chain.) Detection time is modelled as in `ettr`. The search starts
at the first-order optimum of Benoit, Cavelan, Le Fèvre, Robert and Sun, "Towards optimal
multi-level checkpointing", IEEE TC 2017.

ETTR and best intervals of two tiers of checkpoints, in closed form. All times are in seconds.

A light checkpoint (in the memory of another node) survives a share of the failures. Every n-th
checkpoint is also written to the deep tier (remote storage), where it survives all failures.

Source: Benoit, Cavelan, Robert, Sun: "Optimal checkpointing patterns", 2016; Benoit, Cavelan,
Le Fèvre, Robert, Sun: "Towards optimal multi-level checkpointing", IEEE TC 2017 (first order).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS

DAY_S = 86_400.0


class TrainingJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that occupies its nodes and writes checkpoints at regular intervals.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of the job, above 0: 1 / lambda.
    interval_s : float
        Work between two checkpoints, above 0 (Delta).
    write_s : float
        Time for which a checkpoint blocks the job (w).
    detect_s : float
        Time from a failure until the job restarts (D). During this time, further failures have no
        effect.
    load_s : float
        Time to initialise and to load a checkpoint (L). After a failure during this time, the load
        begins again.
    """

    mtbf_s: float
    interval_s: float
    write_s: float = 0.0
    detect_s: float = 0.0
    load_s: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, positive = getattr(self, name), name in ("mtbf_s", "interval_s")
            if not 0 <= value <= MAX_SECONDS or (positive and value == 0):
                expected = "seconds above 0" if positive else "seconds, 0 or more"
                raise InputError(f"is {value:g} s", name.removesuffix("_s"), expected)

    @property
    def rate(self) -> float:
        """Failures per second (lambda)."""
        return 1 / self.mtbf_s


def failure_rate(n_nodes: int, rate: float) -> float:
    """Return the failures per second of a job. ``rate`` is in failures per 1,000 node-days.

    >>> round(1 / failure_rate(2048, 6.5) / 3600, 6)
    1.802885
    """
    return n_nodes * rate / (1000 * DAY_S)


def ettr(job: TrainingJob) -> float:
    """Return the exact ETTR of a job.

    It is lambda Delta / [e^(lambda L) (1 + lambda D) (e^(lambda (Delta + w)) - 1)].

    >>> job = TrainingJob(mtbf_s=6490.386, interval_s=1800, detect_s=300, load_s=300)
    >>> round(ettr(job), 6)
    0.791934
    """
    rate, exponent = job.rate, job.rate * (job.interval_s + job.write_s)
    if exponent + rate * job.load_s > _MAX_EXPONENT:
        return 0.0
    lost = math.exp(rate * job.load_s) * (1 + rate * job.detect_s)
    return rate * job.interval_s / (lost * math.expm1(exponent))


_MAX_EXPONENT = 700.0
"""Largest exponent: exp() of a larger number overflows. The ETTR is then 0 in double precision."""


def ettr_safe_load(job: TrainingJob) -> float:
    """Return the exact ETTR if failures cannot strike while a checkpoint is loaded."""
    detect_s = job.detect_s + job.load_s
    return ettr(msgspec.structs.replace(job, detect_s=detect_s, load_s=0.0))


def rework_s(job: TrainingJob) -> float:
    """Return the mean work lost to a failure.

    It is 1 / lambda - (Delta + w) / (e^(lambda (Delta + w)) - 1).
    """
    period_s = job.interval_s + job.write_s
    exponent = period_s / job.mtbf_s
    if exponent > _MAX_EXPONENT:
        return job.mtbf_s
    if exponent < _MIN_EXPONENT:
        return period_s / 2
    return job.mtbf_s - period_s / math.expm1(exponent)


_MIN_EXPONENT = 1e-7
"""Smallest value for which the formula of `rework_s` is accurate. Below it, the limit is used: half
a period.
"""


def rsc_ettr(job: TrainingJob) -> float:
    """Return the first-order ETTR of Kokolis et al.

    It is (1 - lambda (u0 + Delta / 2)) / (1 + w / Delta), where u0 is the time of detection plus
    loading. If the result is negative, the formula does not apply, and 0 is returned.
    """
    start_s = job.detect_s + job.load_s
    left = 1 - job.rate * (start_s + job.interval_s / 2)
    return max(0.0, left) / (1 + job.write_s / job.interval_s)


# ---- the best interval


def young_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return Young's interval sqrt(2 w M), for the write time w and the MTBF M."""
    return math.sqrt(2 * write_s * mtbf_s)


def daly_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return Daly's higher-order optimum (equation 37 of the FGCS paper).

    If w >= 2 M, the optimum is M.
    """
    if write_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = math.sqrt(write_s / (2 * mtbf_s))
    return young_interval_s(mtbf_s, write_s) * (1 + ratio / 3 + ratio**2 / 9) - write_s


def best_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return the exact optimum M (1 + W0(-e^(-w/M - 1))). If checkpoints cost nothing, it is 0.

    >>> round(best_interval_s(6491.88, 60) / 60, 4)
    14.0514
    """
    from scipy.special import lambertw

    if write_s == 0:
        return 0.0
    return mtbf_s * (1 + float(lambertw(-math.exp(-write_s / mtbf_s - 1)).real))


# ---- spare nodes


def spare_nodes(mean_in_repair: float, quantile: float = 0.99) -> int:
    """Return the number of spare nodes that suffices with probability ``quantile``.

    The number of nodes in repair has a Poisson distribution for any distribution of the repair time
    (M/G/infinity). Its mean is failures per second x mean repair time.

    >>> spare_nodes(2048 * 3.79 / 1000), spare_nodes(2048 * 3.79 / 1000 / 6)
    (15, 5)
    """
    from scipy.stats import poisson

    return int(poisson.ppf(quantile, mean_in_repair))


def enough_spares(mean_in_repair: float, n_spares: int) -> float:
    """Return the probability that at most ``n_spares`` nodes are in repair."""
    from scipy.stats import poisson

    return float(poisson.cdf(n_spares, mean_in_repair))


MOST_COUNT = 100_000
"""Maximum number of checkpoints of a tier between two checkpoints of the next tier."""


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoint tiers of a job, from the lightest to the heaviest.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of the job.
    shares : tuple of float
        Share of the failures that need each tier. The shares add up to 1.
    writes_s : tuple of float
        Time to write a checkpoint of each tier.
    loads_s : tuple of float
        Time to load a checkpoint of each tier.
    detect_s : float
        Time from a failure until the job restarts.
    """

    mtbf_s: float
    shares: tuple[float, ...]
    writes_s: tuple[float, ...]
    loads_s: tuple[float, ...]
    detect_s: float = 0.0

    def __post_init__(self) -> None:
        if abs(sum(self.shares) - 1) > 1e-9 or min(self.shares) < 0:
            expected = "shares, 0 or more, that add up to 1"
            raise InputError(f"are {self.shares}", "shares of the tiers", expected)


class _Phase(msgspec.Struct, frozen=True):
    """A phase of the execution, which may end early because of a failure.

    A phase may recover from failures itself. ``time_s`` is the expected time until the phase
    completes, or until a failure from which it does not recover. ``drops[k]`` is the probability
    that it ends with a failure that needs tier k.
    """

    time_s: float
    drops: tuple[float, ...]

    @property
    def success(self) -> float:
        """Probability that the phase completes."""
        return 1 - sum(self.drops)


def levels_ettr(levels: Levels, interval_s: float, counts: tuple[int, ...]) -> float:
    """Return the exact ETTR of a pattern.

    ``interval_s`` is the work between two checkpoints of the first tier. ``counts`` contains the
    number of checkpoints of each tier between two checkpoints of the next tier.

    >>> two = Levels(mtbf_s=7200, shares=(0.8, 0.2), writes_s=(1, 0), loads_s=(30, 120))
    >>> round(levels_ettr(two, 156, (12,)), 6)
    0.952759
    """
    exponent = (interval_s + max(levels.writes_s)) / levels.mtbf_s
    if exponent > _MAX_EXPONENT:
        return 0.0
    phase = _handled(levels, 0, _attempt(levels, interval_s + levels.writes_s[0]))
    for tier, count in enumerate(counts, start=1):
        write = _writing(levels, tier)
        phase = _handled(levels, tier, _sequence(phase, count, write))
        if not math.isfinite(phase.time_s):
            return 0.0
    return interval_s * math.prod(counts) / phase.time_s


def _attempt(levels: Levels, length_s: float) -> _Phase:
    """Return a phase that ends at any failure.

    Its expected time includes the detection of the failure.
    """
    fails = -math.expm1(-length_s / levels.mtbf_s)
    time_s = fails * (levels.mtbf_s + levels.detect_s)
    return _Phase(time_s, tuple(fails * share for share in levels.shares))


def _load(levels: Levels, tier: int) -> _Phase:
    """Return the phase that loads a checkpoint of a tier.

    If a failure needs this tier or a lighter tier, the load begins again.
    """
    once = _attempt(levels, levels.loads_s[tier])
    return _repeated(once, sum(once.drops[: tier + 1]), 0.0, tier + 1)


def _repeated(once: _Phase, again: float, extra_s: float, first: int) -> _Phase:
    """Return a phase that is repeated with probability ``again``.

    Each repetition adds ``extra_s`` on average. The result recovers from failures that need tiers
    below ``first``.
    """
    if again >= 1:
        return _Phase(math.inf, once.drops)
    drops = tuple(p / (1 - again) if k >= first else 0.0 for k, p in enumerate(once.drops))
    return _Phase((once.time_s + extra_s) / (1 - again), drops)


def _handled(levels: Levels, tier: int, once: _Phase) -> _Phase:
    """Return ``once`` with recovery from failures that need this tier.

    After these failures, the phase loads a checkpoint of this tier and begins again.
    """
    fails, load = once.drops[tier], _load(levels, tier)
    drops = tuple(p + fails * q for p, q in zip(once.drops, load.drops, strict=True))
    escaped = _Phase(once.time_s, drops)
    return _repeated(escaped, fails * load.success, fails * load.time_s, tier + 1)


def _sequence(part: _Phase, count: int, write: _Phase) -> _Phase:
    """Return a phase that consists of ``count`` times ``part``, followed by ``write``."""
    success, n_parts = part.success**count, _geometric(part.success, count)
    return _Phase(
        n_parts * part.time_s + success * write.time_s,
        tuple(n_parts * p + success * q for p, q in zip(part.drops, write.drops, strict=True)),
    )


def _geometric(ratio: float, count: int) -> float:
    """Return 1 + ratio + ... + ratio^(count - 1)."""
    return float(count) if ratio >= 1 else (1 - ratio**count) / (1 - ratio)


def _writing(levels: Levels, tier: int) -> _Phase:
    """Return the phase that writes a checkpoint of a tier.

    After a failure that needs a lighter tier, the job loads the checkpoint of the lighter tier,
    which has the same progress, and repeats the write.
    """
    once = _attempt(levels, levels.writes_s[tier])
    chains: list[_Phase] = []
    for lighter in reversed(range(tier)):  # a failure during a load may need a heavier tier
        load = _load(levels, lighter)
        time_s, drops = load.time_s, list(load.drops)
        for other, chain in zip(reversed(range(tier)), chains, strict=False):
            fails, drops[other] = drops[other], 0.0
            time_s += fails * chain.time_s
            drops = [p + fails * q for p, q in zip(drops, chain.drops, strict=True)]
        chains.append(_Phase(time_s, tuple(drops)))
    extra_s, again, drops = 0.0, 0.0, list(once.drops)
    for lighter, chain in zip(reversed(range(tier)), chains, strict=True):
        fails, drops[lighter] = drops[lighter], 0.0
        extra_s += fails * chain.time_s
        again += fails * chain.success
        drops = [p + fails * q for p, q in zip(drops, chain.drops, strict=True)]
    return _repeated(_Phase(once.time_s, tuple(drops)), again, extra_s, tier)


# ---- the best pattern


def best_pattern(
    levels: Levels, start_s: list[float], fixed: tuple[bool, ...]
) -> tuple[float, tuple[int, ...]]:
    """Return the interval of the first tier and the counts with the highest ETTR.

    A coordinate search over the counts begins with the intervals ``start_s`` of the tiers. For
    given counts, Brent's method finds the interval of the first tier. Tiers that are ``fixed`` keep
    their interval. A fixed interval of the first tier is kept exactly. A fixed interval of another
    tier is rounded to a whole number of intervals of the next lighter tier.
    """
    search = _Search(levels, tuple(start_s), fixed)
    best = search.on(search.first)
    while True:
        better = max(map(search.on, _neighbours(best.counts, fixed)), default=best)
        if better.ettr <= best.ettr * (1 + _LEAST_GAIN):
            return best.interval_s, search.realised(best.interval_s, best.counts)
        best = better


_LEAST_GAIN = 1e-9
"""Relative gain below which the search ends."""


class _Found(NamedTuple):
    ettr: float
    interval_s: float
    counts: tuple[int, ...]


class _Search(msgspec.Struct, frozen=True):
    """The best intervals of the first tier for given counts."""

    levels: Levels
    start_s: tuple[float, ...]
    fixed: tuple[bool, ...]

    @property
    def first(self) -> tuple[int, ...]:
        """The counts with which the search begins."""
        return tuple(_count(heavy_s / light_s) for light_s, heavy_s in pairwise(self.start_s))

    def realised(self, interval_s: float, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Return the counts, with those of fixed tiers computed from the first tier's interval."""
        realised = []
        for count, wanted_s, fixed in zip(counts, self.start_s[1:], self.fixed[1:], strict=True):
            realised.append(_count(wanted_s / interval_s) if fixed else count)
            interval_s *= realised[-1]
        return tuple(realised)

    def on(self, counts: tuple[int, ...]) -> _Found:
        """Return the best interval for these counts, and its ETTR."""
        from scipy.optimize import minimize_scalar

        def loss(log_s: float) -> float:
            interval_s = math.exp(log_s)
            return -levels_ettr(self.levels, interval_s, self.realised(interval_s, counts))

        middle = math.log(self.start_s[0])
        if self.fixed[0]:
            return _Found(-loss(middle), self.start_s[0], counts)
        bounds = (middle - _WIDTH, middle + _WIDTH)
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
        return _Found(-float(best.fun), math.exp(float(best.x)), counts)


_WIDTH = 3.0
"""The search assumes that the best interval is at most e^3 times shorter or longer than the
first-order optimum."""


def _count(ratio: float) -> int:
    return max(1, min(MOST_COUNT, round(ratio)))


def _neighbours(counts: tuple[int, ...], fixed: tuple[bool, ...]) -> Iterator[tuple[int, ...]]:
    """Yield counts that differ in one tier, or in two tiers with about the same product."""
    free = [tier for tier in range(len(counts)) if not fixed[tier + 1]]
    for tier in free:
        for new in _near(counts[tier]):
            yield _with(counts, {tier: new})
            for other in (tier - 1, tier + 1):
                if other in free:
                    opposite = _count(counts[other] * counts[tier] / new)
                    yield _with(counts, {tier: new, other: opposite})


def _near(count: int) -> set[int]:
    return {_count(new) for new in (count - 1, count + 1, count / 1.25, count * 1.25)} - {count}


def _with(counts: tuple[int, ...], changes: dict[int, int]) -> tuple[int, ...]:
    return tuple(changes.get(tier, count) for tier, count in enumerate(counts))


class TwoTiers(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern of ``per_pattern`` periods of work, each with a light checkpoint.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of the job.
    light_share : float
        Share of the failures that the light tier survives, 0 to 1.
    interval_s : float
        Work between two checkpoints.
    per_pattern : int
        Number of periods between two deep checkpoints, at least 1.
    writes_s : (float, float)
        Time to write a checkpoint of the light and of the deep tier. A deep checkpoint follows a
        light checkpoint.
    loads_s : (float, float)
        Time to load a checkpoint of the light and of the deep tier.
    detect_s : float
        Time from a failure until the job restarts.
    """

    mtbf_s: float
    light_share: float
    interval_s: float
    per_pattern: int
    writes_s: tuple[float, float]
    loads_s: tuple[float, float]
    detect_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.light_share <= 1:
            raise InputError(f"is {self.light_share:g}", "share of the light tier", "0 to 1")
        if self.per_pattern < 1:
            raise InputError(f"is {self.per_pattern}", "periods per pattern", "at least 1")


def two_tier_ettr(tiers: TwoTiers, safe_loads: bool = False) -> float:
    """Return the exact ETTR by solving the linear equations of the expected times.

    ``x_j`` is the expected time to the end of the pattern from period j on. After a failure in
    period j, the job returns to the start of the period if the light checkpoint survives.
    Otherwise, it returns to the start of the pattern. With ``safe_loads``, failures cannot strike
    while a checkpoint is loaded.
    """
    rate, share, n = 1 / tiers.mtbf_s, tiers.light_share, tiers.per_pattern
    light_s, deep_s = tiers.loads_s
    # a light load takes ``time_s`` and ends in x_j, or with probability ``lost`` in x_0
    fails = 0.0 if safe_loads else -math.expm1(-rate * light_s)
    again = 1 - fails * share
    lost = fails * (1 - share) / again
    deep_time_s = deep_s if safe_loads else math.expm1(rate * deep_s) * (1 / rate + tiers.detect_s)
    time_s = light_s if safe_loads else fails * (1 / rate + tiers.detect_s) / again
    time_s += lost * deep_time_s
    matrix, constant = np.eye(n), np.zeros(n)
    for j in range(n):
        length_s = tiers.interval_s + tiers.writes_s[0] + (tiers.writes_s[1] if j == n - 1 else 0)
        fails = -math.expm1(-rate * length_s)
        light, deep = fails * share, fails * (1 - share)
        constant[j] = fails * (1 / rate + tiers.detect_s) + light * time_s + deep * deep_time_s
        matrix[j, j] -= light * (1 - lost)
        matrix[j, 0] -= deep + light * lost
        if j < n - 1:
            matrix[j, j + 1] -= 1 - fails
    total_s = np.linalg.solve(matrix, constant)[0]
    return float(n * tiers.interval_s / total_s)


def tier_overhead(mtbf_s: float, shares: tuple[float, ...], writes_s: tuple[float, ...]) -> float:
    """Return H* = sum of sqrt(2 lambda_i w_i), the overhead at the best intervals (first order)."""
    pairs = zip(shares, writes_s, strict=True)
    return sum(math.sqrt(2 * share / mtbf_s * write_s) for share, write_s in pairs)
