# SPDX-License-Identifier: Apache-2.0
"""Silent errors: probabilities, failure scenarios and lower bounds of makespans.

A silent error is detected when an attempt ends.

Sections 3 and 5.1 of Benoit, Le Fèvre, Raghavan, Robert and Sun, "Design and comparison of
resilient scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464).

Times are integers in any unit. Rates are per processor and unit of time. In all functions ``times``
and ``sizes`` have shape (n,), and ``failures`` has shape (n_scenarios, n) or (n,).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import index
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from rebat.core.arrays import Floats, Ints
from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload, duration_us
from rebat.core.table import distinct
from rebat.core.units import to_s

SYNTHETIC_SETS = 30
SYNTHETIC_JOBS = 100
SYNTHETIC_PROCS = 10_000
SYNTHETIC_SIZES = (50, 2000)
SYNTHETIC_TIMES_S = (100, 20_000)
PAPER_SCENARIOS = 1000
"""Sizes and times of the paper's synthetic campaign (Section 5.1) are uniform in these limits."""

MOST_FAILURES = 1e9
"""Maximum expected number of failures per job. More failures would take too long to simulate."""

ERRORS_FIELD = "silent_errors"
"""The profile field with the number of attempts that will end with an error."""


def areas(times: ArrayLike, sizes: ArrayLike) -> Floats:
    """Return the areas ``a_j = p_j t_j`` as floats."""
    product: Floats = np.asarray(times, float) * np.asarray(sizes, float)
    return product


def error_rate(times: ArrayLike, sizes: ArrayLike, mean_probability: float) -> float:
    """Return the rate lambda at which a job of the *average area* fails with ``mean_probability``.

    This is the paper's definition of the average failure probability: ``q = 1 - exp(-lambda a)``
    with the mean area a (Section 5.1), so ``lambda = -ln(1 - q) / a``. The mean of the ``q_j`` is
    slightly smaller than q.
    """
    if not 0 <= mean_probability < 1:
        problem = f"the average failure probability is {mean_probability}"
        raise InputError(problem, expected="at least 0 and below 1")
    if np.size(times) == 0:
        raise InputError("there is no job", expected="at least one job")
    return -math.log1p(-mean_probability) / float(areas(times, sizes).mean())


def draw_failures(
    times: ArrayLike,
    sizes: ArrayLike,
    rate: float,
    scenarios: Iterable[int],
    *,
    seed: int,
    job_set: str | int = 0,
    most_failures: int | None = None,
    largest_probability: float | None = None,
) -> Ints:
    """Draw failure scenarios: job j fails f_j times with probability ``q_j^f_j (1 - q_j)``.

    Each scenario has its own random stream, so any part of a campaign can be drawn again
    separately. All rates use the same uniform random numbers. Therefore, raising the rate never
    reduces the number of failures of a job.

    Parameters
    ----------
    rate : float
        Errors per processor and unit of time, lambda.
    scenarios : iterable of int
        Numbers of the scenarios.
    seed, job_set
        Together with the number of the scenario, these values identify the random stream.
    most_failures : int, optional
        Maximum number of failed attempts of a job. The paper states no maximum.
    largest_probability : float, optional
        Maximum error probability of an attempt. The paper states no maximum.

    Returns
    -------
    int array, shape (number of scenarios, n)
    """
    exposure = _finite_rate(rate) * areas(times, sizes)
    if largest_probability is not None:
        exposure = np.minimum(exposure, -math.log1p(-largest_probability))
    for job in np.flatnonzero(exposure > math.log(MOST_FAILURES)).tolist():
        problem = f"would fail about 1e{exposure[job] / math.log(10):.0f} times before it succeeds"
        raise InputError(problem, f"job {job}", "a lower failure probability, or smaller jobs")
    with np.errstate(divide="ignore"):  # q_j = 0 yields -inf: no failures
        log_q = np.log(-np.expm1(-exposure))
    rows = [
        np.floor(np.log1p(-stream(seed, "silent-errors", job_set, k).random(len(log_q))) / log_q)
        for k in scenarios
    ]
    failures = np.array(rows, np.int64).reshape(len(rows), len(log_q))
    return failures if most_failures is None else np.minimum(failures, most_failures)


def longest_chain(times: ArrayLike, failures: ArrayLike) -> Ints:
    """Return the lower bound ``t_max(f) = max (f_j + 1) t_j`` of each scenario (equation 5)."""
    chains = (_table(failures) + 1) * np.asarray(times, np.int64)
    return np.asarray(chains.max(axis=1, initial=0))


def total_area(times: ArrayLike, sizes: ArrayLike, failures: ArrayLike) -> list[int]:
    """Return ``A(f) = sum (f_j + 1) a_j`` of each scenario as exact Python integers."""
    area = [int(t) * int(p) for t, p in zip(np.ravel(times), np.ravel(sizes), strict=True)]
    bound = max(area, default=0) * (int(_table(failures).max(initial=0)) + 1) * max(1, len(area))
    rows = _table(failures) + 1
    if bound < 1 << 62:  # the sums fit into 64 bits
        return list((rows @ np.array(area, np.int64)).tolist())
    return [sum(a * f for a, f in zip(area, row, strict=True)) for row in rows.tolist()]


def lower_bounds(
    times: ArrayLike, sizes: ArrayLike, failures: ArrayLike, n_procs: int
) -> list[float]:
    """Return ``L(f) = max(t_max(f), A(f) / P)`` of each scenario, equations (5) and (6).

    The values are correctly rounded, because only integers are divided.

    Examples
    --------
    >>> lower_bounds([4, 3], [1, 2], [[0, 0], [0, 1]], 4)
    [4.0, 6.0]
    """
    chains = longest_chain(times, failures).tolist()
    totals = total_area(times, sizes, failures)
    return [
        float(chain) if chain * n_procs >= area else area / n_procs
        for chain, area in zip(chains, totals, strict=True)
    ]


def normalised(makespans: ArrayLike, bounds: ArrayLike) -> Floats:
    """Return makespans divided by lower bounds, the measure of the paper (Section 5.1).

    All values are at least 1.
    """
    ratios: Floats = np.asarray(makespans, float) / np.asarray(bounds, float)
    return ratios


def synthetic_jobs(
    seed: int, job_set: int, n: int = SYNTHETIC_JOBS, unit_s: float = 1e-6
) -> tuple[Ints, Ints]:
    """Return times (in units of `unit_s`) and sizes of a synthetic job set (Section 5.1).

    Sizes are uniform from 50 to 2000 processors. Times are uniform from 100 to 20,000 s, in whole
    units, so that they are exact and rarely equal.
    """
    draw = stream(seed, "synthetic-jobs", job_set)
    shortest, longest = (round(t / unit_s) for t in SYNTHETIC_TIMES_S)
    sizes = draw.integers(*SYNTHETIC_SIZES, size=n, endpoint=True)
    return draw.integers(shortest, longest, size=n, endpoint=True), sizes


def errors_left(profile: Mapping[str, Any]) -> int:
    """Return how many further attempts of a job with this profile will end with an error.

    The number is the field ``silent_errors`` of the profile. Without this field, a return code
    ``ret`` other than 0 counts as one error.
    """
    default = 1 if profile.get("ret", 0) else 0
    left = profile.get(ERRORS_FIELD, default)
    if not isinstance(left, int) or isinstance(left, bool) or left < 0:
        raise InputError(f"silent_errors is {left!r}", "profile", "a whole number, 0 or more")
    return left


def erring_profile(profile: Mapping[str, Any], errors: int) -> dict[str, Any]:
    """Return the profile of a job whose next ``errors`` attempts will fail (``ret`` 1)."""
    return {**profile, "ret": 1 if errors else 0, ERRORS_FIELD: errors}


def retried_profile(whole: Mapping[str, Any], failed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile after a failed attempt: the entire job, with one error fewer."""
    return erring_profile(whole, max(0, errors_left(failed) - 1))


def with_errors_left(profile: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile with as many errors as the profile of the previous attempt has left.

    The profile of a job that starts over is that of its first attempt, which has all errors.
    """
    left = errors_left(before)
    return profile if errors_left(profile) == left else erring_profile(profile, left)


def add_silent_errors(
    workload: Workload, errors: float | Sequence[int], *, seed: int = 0, scenario: int = 0
) -> Workload:
    """Return the workload with a failure scenario in its profiles. Schedulers cannot read profiles.

    The profile of a job that fails f times gets ``"silent_errors": f`` and Batsim's return code
    ``"ret": 1``, so that the first attempt ends as COMPLETED_FAILED. For each later attempt, the
    session registers a profile with one error fewer.

    Parameters
    ----------
    errors : float or sequence of int, shape (n,)
        If this is a number, it is the rate lambda in errors per node and second, and a scenario is
        drawn (Section 3.4). If it is a sequence, it is the scenario: the number of failed attempts
        of each job, in the order of the workload's jobs.
    seed : int
        Seed, if a scenario is drawn.
    scenario : int
        Number of the scenario, if it is drawn.

    Examples
    --------
    >>> from rebat.core.jobs import Job
    >>> jobs = (Job("a", 1, 0, None, "d"), Job("b", 1, 0, None, "d"))
    >>> workload = Workload("two", 2, jobs, {"d": {"type": "delay", "delay": 5}})
    >>> add_silent_errors(workload, [0, 2]).profiles["d.err2"]
    {'type': 'delay', 'delay': 5, 'ret': 1, 'silent_errors': 2}
    """
    jobs = Jobs.of(workload.jobs)
    if isinstance(errors, int | float):
        times_s, job_set = job_times_s(workload), _name_of_jobs(jobs)
        table = draw_failures(times_s, jobs.n_nodes, errors, [scenario], seed=seed, job_set=job_set)
        failures = table[0]
    else:
        failures = np.array([index(f) for f in errors], np.int64)
    if len(failures) != len(jobs):
        counts = f"contains {len(failures)} failure counts"
        raise InputError(counts, expected=f"{len(jobs)} numbers, one per job")
    if (failures < 0).any():
        raise InputError("has a negative number of failures", expected="0 or more for each job")
    profiles, names = dict(workload.profiles), []
    rows, codes = distinct(jobs.profile_codes, failures)
    for code, f in zip(jobs.profile_codes[rows].tolist(), failures[rows].tolist(), strict=True):
        name = jobs.profile_names[code]
        if f != errors_left(profile := workload.profiles[name]):
            name = _new_name(f"{name}.err{f}", profiles)
            profiles[name] = erring_profile(profile, f)
        names.append(name)
    changed = jobs.changed(jobs.walltime_us, codes, names)
    return msgspec.structs.replace(workload, jobs=changed, profiles=profiles)


def _name_of_jobs(jobs: Jobs) -> str:
    """Return a name for the random stream of a workload's errors, computed from its jobs.

    The name does not depend on the file name or the run times. Therefore, the same jobs draw the
    same random numbers with and without checkpoints.
    """
    rows = zip(jobs.ids, jobs.n_nodes.tolist(), jobs.submit_us.tolist(), strict=True)
    return hashlib.sha256(msgspec.json.encode([*rows])).hexdigest()


def job_times_s(workload: Workload) -> Floats:
    """Return the time of one uninterrupted attempt of each job, in seconds, shape (n,)."""
    jobs = Jobs.of(workload.jobs)
    times_s = [to_s(duration_us(workload.profiles, name)) for name in jobs.profile_names]
    return np.array(times_s, float)[jobs.profile_codes]


def _new_name(wanted: str, taken: Container[str]) -> str:
    while wanted in taken:
        wanted += "'"
    return wanted


def _table(failures: ArrayLike) -> Ints:
    return np.atleast_2d(np.asarray(failures, np.int64))


def _finite_rate(rate: float) -> float:
    if not (math.isfinite(rate) and rate >= 0):
        raise InputError(f"the error rate is {rate}", expected="a finite number of at least 0")
    return rate
