# SPDX-License-Identifier: Apache-2.0
"""The parts of a generated month: sizes, run times, their correlation, arrivals, walltimes.

Each docstring names the published numbers that a function reproduces, or the assumption that it
makes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from itertools import chain

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats, Ints
from rebat.workloads import published
from rebat.workloads.arrivals import BURST_GAP_S
from rebat.workloads.published import PublishedMonth

WALLTIME_GRAIN_S = 300
"""Assumption: users request multiples of 5 minutes (98.8 % of Mira's jobs of November 2018)."""

WALLTIME_LIMIT_S = 86_400
"""Assumption: the queue allows 24 h.

If the run time of a job is longer, the queue allows the run time.
"""

LEAST_ACCURACY = 0.1
"""Assumption: run time / walltime is uniform from this value to 1, so its mean is 0.55. (On Mira in
November 2018 it was 0.56 for jobs that did not exceed their walltime.)
"""

STRESS_TOLERANCE = 1e-6
"""Relative tolerance of the stress, which the paper publishes with four digits."""


def sizes(data: PublishedMonth, rng: np.random.Generator) -> Ints:
    """Return sizes with the counts of Table 2, in random order."""
    drawn = [np.full(data.class_counts[-1], data.cap)]
    for bound, count in zip(published.SIZE_BOUNDS, data.class_counts[:-1], strict=True):
        weights = published.PARTITION_WEIGHTS[bound]
        drawn.append(rng.choice(list(weights), size=count, p=list(weights.values())))
    return rng.permutation(np.concatenate(drawn)).astype(np.int64)


def run_times(data: PublishedMonth, rng: np.random.Generator) -> Ints:
    """Return ascending run times in whole seconds that match Table 3 exactly."""
    n = data.n_jobs
    n_side = (n - 1) // 2  # number of jobs before and after the one or two median jobs
    below = data.min_s * (data.median_s / data.min_s) ** _strata(n_side, rng)
    below[0] = data.min_s
    fixed = [*np.rint(below).astype(np.int64), *[data.median_s] * (n - 2 * n_side)]
    strata = _strata(n_side - 1, rng)
    target = data.mean_s * n - sum(fixed) - data.max_s
    low, high = -20.0, 50.0
    for _ in range(100):
        exponent = (low + high) / 2
        total = _pareto(data, strata, exponent).sum()
        low, high = (exponent, high) if total > target else (low, exponent)
    above = _spread(_pareto(data, strata, high), target, data.max_s)
    return np.array([*fixed, *above, data.max_s], dtype=np.int64)


def _strata(n: int, rng: np.random.Generator) -> Floats:
    """Return ascending uniform numbers: one in each of n equal parts of [0, 1]."""
    return (np.arange(n) + rng.random(n)) / n


def _pareto(data: PublishedMonth, u: Floats, exponent: float) -> Ints:
    """Return quantiles of a Pareto law that is truncated to the range from median to maximum."""
    width = np.log(data.max_s / data.median_s)
    scale = exponent if abs(exponent) > 1e-9 else 1e-9
    logs = -np.log1p(-u * -np.expm1(-scale * width)) / scale
    quantiles: Ints = np.rint(data.median_s * np.exp(logs)).astype(np.int64)
    return quantiles


def _spread(values: Ints, target: int, largest: int) -> Ints:
    """Correct rounding errors: raise run times by one second each until their sum is ``target``."""
    gap = target - int(values.sum())
    free = np.flatnonzero(values < largest)[-gap:] if gap > 0 else np.empty(0, dtype=np.int64)
    values[free] += 1
    if int(values.sum()) != target:
        raise AssertionError(f"run times miss their sum by {gap} s")
    return values


def coupled(
    data: PublishedMonth,
    sizes: Ints,
    ordered_s: Ints,
    rng: Callable[[str], np.random.Generator],
) -> Ints:
    """Return the run time of each job, assigned so that the stress is as published."""
    target = data.stress * data.n_nodes * data.length_s
    size_rank = np.argsort(np.lexsort((rng("ties").random(len(sizes)), sizes))) / len(sizes)
    noise = rng("coupling").random(len(sizes))
    low, high = -1.0, 1.0
    for _ in range(40):
        weight = (low + high) / 2
        run_s = _by_key(weight * size_rank + (1 - abs(weight)) * noise, ordered_s)
        low, high = (weight, high) if float(sizes @ run_s) < target else (low, weight)
    return _swapped(sizes, run_s, target, rng("swaps"))


def _by_key(key: Floats, ordered_s: Ints) -> Ints:
    run_s = np.empty_like(ordered_s)
    run_s[np.argsort(key, kind="stable")] = ordered_s
    return run_s


def _swapped(sizes: Ints, run_s: Ints, target: float, rng: np.random.Generator) -> Ints:
    """Return run times, swapped between random pairs of jobs to bring the work to the target."""
    missing = target - float(sizes @ run_s)
    drawn = rng.integers(len(sizes), size=(100, 1000, 2))
    # Few pairs are needed, and lists of all would take longer than the rest of the workload.
    for a, b in chain.from_iterable(map(np.ndarray.tolist, drawn)):
        if abs(missing) <= STRESS_TOLERANCE * target:
            return run_s
        gain = float((sizes[a] - sizes[b]) * (run_s[b] - run_s[a]))
        if abs(missing - gain) < abs(missing):
            run_s[a], run_s[b] = run_s[b], run_s[a]
            missing -= gain
    raise AssertionError(f"the stress misses its target by {missing / target:.1e}")


def cycle(hour_of_month: Floats, first_weekday: int) -> Floats:
    """Return an assumed arrival rate: 0.6 to 1.4 over a day (peak at 16 h), x 0.7 at weekends."""
    hour = hour_of_month % 24
    weekday = (first_weekday + hour_of_month // 24) % 7
    daily: Floats = 1 + 0.4 * np.cos((hour - 16) * (2 * np.pi / 24))
    rate: Floats = daily * np.where(weekday >= 5, 0.7, 1.0)
    return rate


def arrivals(data: PublishedMonth, rng: np.random.Generator, n: int | None = None) -> Floats:
    """Return ascending submission times (s), by inversion of the cumulative arrival rate.

    There are ``n`` times (default: one for each job).
    """
    hours = np.arange(data.n_days * 24, dtype=np.float64)
    rate = cycle(hours, date(data.year, data.month, 1).weekday())
    cumulative = np.concatenate([[0.0], np.cumsum(rate)])
    drawn = np.sort(rng.random(data.n_jobs if n is None else n)) * cumulative[-1]
    times_s: Floats = np.interp(drawn, cumulative, np.append(hours, len(hours))) * 3600
    return np.floor(times_s)


def walltimes(run_s: Ints, rng: np.random.Generator) -> Ints:
    """Return the assumed walltimes: run time / U[0.1, 1], rounded as in `requested`."""
    return requested(run_s, rng.uniform(LEAST_ACCURACY, 1.0, len(run_s)))


def requested(run_s: Ints, accuracy: Floats) -> Ints:
    """Return run time / accuracy, rounded up to 5 min.

    The result is limited to 24 h, but it is always above the run time.
    """
    requested_s = run_s / accuracy
    needed_s = (run_s + 1).astype(np.float64)
    return np.maximum(np.minimum(_grain(requested_s), WALLTIME_LIMIT_S), _grain(needed_s))


def bursts(
    data: PublishedMonth, continues: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """Return ascending submission times (s) of jobs in sessions.

    A job that continues a session is submitted soon after the previous job. All other jobs have the
    submission times of `arrivals`.
    """
    first = arrivals(data, rng, int((~continues).sum()))
    following = np.arange(len(continues)) - np.maximum.accumulate(
        np.where(continues, 0, np.arange(len(continues)))
    )
    times_s = first[np.cumsum(~continues) - 1] + BURST_GAP_S * following
    return np.maximum.accumulate(times_s)


def _grain(values_s: Floats) -> Ints:
    return (np.ceil(values_s / WALLTIME_GRAIN_S) * WALLTIME_GRAIN_S).astype(np.int64)
