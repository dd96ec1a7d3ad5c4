# SPDX-License-Identifier: Apache-2.0
"""Quality of service for users: waiting times, slowdowns and fairness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.results.measures.jobs import BOUNDED_SLOWDOWN, Floats, JobRows, job_times


class Service(msgspec.Struct, frozen=True):
    """Waiting times and flows in seconds, and slowdowns, of the measured jobs.

    A job waits while it holds no nodes. The slowdown is the flow divided by the time for which the
    job held nodes, over all attempts. The bounded slowdown is at least 1. ``p50`` is the median.
    ``p95`` is the 95th percentile with linear interpolation.
    """

    wait_mean_s: float
    wait_p95_s: float
    wait_max_s: float
    slowdown_mean: float
    bounded_slowdown_mean: float
    wait_p50_s: float
    flow_p50_s: float
    flow_p95_s: float
    bounded_slowdown_p50: float
    bounded_slowdown_p95: float
    bounded_slowdown_max: float


class Fairness(msgspec.Struct, frozen=True):
    """Fairness among users, from the mean bounded slowdown of each user's jobs.

    ``jain`` is Jain's index of these means (Jain, Chiu, Hawe 1984): (sum x)^2 / (n sum x^2). The
    index is 1 if all means are equal, and 1/n if all except one are 0. The index measures only how
    equal the slowdowns are, not how small they are.
    """

    users: int
    jain: float
    median_user: float
    worst_user: float


def service_of(times: Floats) -> Service | None:
    """Return the service of finished jobs, or None if there are no jobs. See `job_times`."""
    n_jobs = times.shape[1]
    if not n_jobs:
        return None
    wait_s, bounded, slowdown = (times[2:].sum(axis=1) / n_jobs).tolist()[1:]
    ordered = np.sort(times[2:5], axis=1)
    flow_p50, wait_p50, bounded_p50 = quantiles(ordered, 0.5)
    flow_p95, wait_p95, bounded_p95 = quantiles(ordered, 0.95)
    _, wait_max, bounded_max = ordered[:, -1].tolist()
    return Service(
        wait_s,
        wait_p95,
        wait_max,
        slowdown,
        bounded,
        wait_p50,
        flow_p50,
        flow_p95,
        bounded_p50,
        bounded_p95,
        bounded_max,
    )


def quantiles(ordered: Floats, share: float) -> list[float]:
    """Return a quantile of each row of sorted numbers, as `numpy.quantile` does by default."""
    at = (ordered.shape[1] - 1) * share
    low, beyond = int(at), at % 1
    below, above = ordered[:, low], ordered[:, min(low + 1, ordered.shape[1] - 1)]
    apart = above - below
    values = above - apart * (1 - beyond) if beyond >= 0.5 else below + apart * beyond
    numbers: list[float] = values.tolist()
    return numbers


def groups(names: npt.NDArray[Any]) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the name and the rows of each user or queue. Yield nothing if all names are empty."""
    if not any(names.tolist()):
        return
    distinct, which = np.unique(names.astype(str), return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    yield from zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True)


def fairness(rows: JobRows) -> Fairness | None:
    """Return the fairness among the users of finished jobs, or None if no user is known."""
    users = [rows[places] for name, places in groups(rows.column("user")) if name]
    if not users:
        return None
    means = np.array([job_times(jobs)[BOUNDED_SLOWDOWN].mean() for jobs in users])
    return Fairness(len(means), jain(means), float(np.median(means)), float(means.max()))


def jain(values: npt.NDArray[np.float64]) -> float:
    """Return Jain's fairness index of non-negative values.

    >>> jain(np.array([1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
