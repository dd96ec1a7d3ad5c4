# SPDX-License-Identifier: Apache-2.0
"""Quality of service for users: waiting times, slowdowns and fairness."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.results.measures.jobs import JobRows

SHORT_S = 10.0
"""Minimum divisor of the bounded slowdown in seconds (Feitelson and Rudolph 1998)."""


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


def service_of(rows: JobRows) -> Service | None:
    """Return the service of finished jobs, or None if there are no jobs."""
    if not rows:
        return None
    waits, flows, held = rows.column("waiting_time"), rows.column("flow"), _held(rows)
    bounded = bounded_slowdowns(rows)
    medians, tails = np.quantile((waits, flows, bounded), (0.5, 0.95), axis=1).tolist()
    (wait_p50, flow_p50, bounded_p50), (wait_p95, flow_p95, bounded_p95) = medians, tails
    return Service(
        float(waits.mean()),
        wait_p95,
        float(waits.max()),
        float((flows / held).mean()),
        float(bounded.mean()),
        wait_p50,
        flow_p50,
        flow_p95,
        bounded_p50,
        bounded_p95,
        float(bounded.max()),
    )


def bounded_slowdowns(rows: JobRows) -> npt.NDArray[np.float64]:
    """Return the bounded slowdown of each finished job."""
    bounded: npt.NDArray[np.float64] = np.maximum(
        1.0, rows.column("flow") / np.maximum(_held(rows), SHORT_S)
    )
    return bounded


def _held(rows: JobRows) -> npt.NDArray[np.float64]:
    """Return the time in seconds for which each job held nodes."""
    held: npt.NDArray[np.float64] = np.maximum(
        rows.column("flow") - rows.column("waiting_time"), 1e-6
    )
    return held


def groups(rows: JobRows, column: str) -> Iterator[tuple[str, JobRows]]:
    """Yield the name and the jobs of each user or queue. Yield nothing if the names are unknown."""
    names, which = np.unique(rows.column(column).astype(str), return_inverse=True)
    if names.tolist() in ([], [""]):
        return
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    for name, places in zip(names.tolist(), np.split(order, ends[:-1]), strict=True):
        yield name, rows[places]


def fairness(rows: JobRows) -> Fairness | None:
    """Return the fairness among the users of finished jobs, or None if no user is known."""
    means = np.array(
        [bounded_slowdowns(jobs).mean() for name, jobs in groups(rows, "user") if name]
    )
    if not len(means):
        return None
    return Fairness(len(means), jain(means), float(np.median(means)), float(means.max()))


def jain(values: npt.NDArray[np.float64]) -> float:
    """Return Jain's fairness index of non-negative values.

    >>> jain(np.array([1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
