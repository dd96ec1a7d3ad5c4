# SPDX-License-Identifier: Apache-2.0
"""ETTR and best intervals of several tiers of checkpoints. All times are in seconds.

The pattern is nested: ``counts[i]`` checkpoints of tier i, then one checkpoint of tier i + 1. Each
failure needs the checkpoint of a certain tier: the job returns to its last checkpoint of this tier
or of a heavier tier.

The expected times are computed by a recursion over the tiers. (Moody, Bronevetsky, Mohror and de
Supinski, "Design, modeling, and evaluation of a scalable multi-level checkpointing system", SC
2010, derive them from a Markov chain.) Detection time is modelled as in `ettr`. The search starts
at the first-order optimum of Benoit, Cavelan, Le Fèvre, Robert and Sun, "Towards optimal
multi-level checkpointing", IEEE TC 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from rebat.core.errors import InputError

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


_MAX_EXPONENT = 700.0


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
