# SPDX-License-Identifier: Apache-2.0
"""What users feel beside the flow: how long jobs wait, and how much longer that makes them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.results.measures.jobs import JobRows

SHORT_S = 10.0
"""Jobs that hold nodes for less count as if they held them so long (bounded slowdown, Feitelson and
Rudolph 1998)."""


class Service(msgspec.Struct, frozen=True):
    """Waiting times and flows in seconds, and slowdowns, of the jobs whose flow is measured.

    A job waits whenever it holds no nodes. Its slowdown is its flow over the time for which it held
    nodes, all attempts together; the bounded one at least 1. ``p50`` is a median, ``p95`` what 95 %
    of the jobs do not exceed (between two jobs in proportion).
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
    """How equally users are served: by the mean bounded slowdown of each one's jobs.

    ``jain`` is Jain's index of these means (Jain, Chiu, Hawe 1984): their sum squared over their
    number and the sum of their squares. 1: all are alike; 1/n: one of n has it all. Of slowdowns it
    says how alike, not how good.
    """

    users: int
    jain: float
    median_user: float
    worst_user: float


def service_of(rows: JobRows) -> Service | None:
    """Of these finished jobs; None when there are none."""
    if not rows:
        return None
    waits, flows, held = rows.column("waiting_time"), rows.column("flow"), _held(rows)
    bounded = bounded_slowdowns(rows)
    wait_p50, wait_p95 = np.quantile(waits, (0.5, 0.95)).tolist()
    flow_p50, flow_p95 = np.quantile(flows, (0.5, 0.95)).tolist()
    bounded_p50, bounded_p95 = np.quantile(bounded, (0.5, 0.95)).tolist()
    return Service(
        float(waits.mean()), wait_p95, float(waits.max()), float((flows / held).mean()),
        float(bounded.mean()), wait_p50, flow_p50, flow_p95, bounded_p50, bounded_p95,
        float(bounded.max()),
    )  # fmt: skip


def bounded_slowdowns(rows: JobRows) -> npt.NDArray[np.float64]:
    """Of each of these finished jobs: flow over the time for which it held nodes, at least 1."""
    bounded: npt.NDArray[np.float64] = np.maximum(
        1.0, rows.column("flow") / np.maximum(_held(rows), SHORT_S)
    )
    return bounded


def _held(rows: JobRows) -> npt.NDArray[np.float64]:
    """Seconds for which each job held nodes."""
    held: npt.NDArray[np.float64] = np.maximum(
        rows.column("flow") - rows.column("waiting_time"), 1e-6
    )
    return held


def groups(rows: JobRows, column: str) -> Iterator[tuple[str, JobRows]]:
    """The jobs of each user or queue, by its name; none where no job has one."""
    names, which = np.unique(rows.column(column).astype(str), return_inverse=True)
    if names.tolist() in ([], [""]):
        return
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    for name, some in zip(names.tolist(), np.split(order, ends[:-1]), strict=True):
        yield name, rows[some]


def fairness(rows: JobRows) -> Fairness | None:
    """Among the users of these finished jobs, those apart that have none; None without users."""
    means = np.array(
        [bounded_slowdowns(some).mean() for name, some in groups(rows, "user") if name]
    )
    if not len(means):
        return None
    return Fairness(len(means), jain(means), float(np.median(means)), float(means.max()))


def jain(values: npt.NDArray[np.float64]) -> float:
    """Jain's fairness index of some values above 0.

    >>> jain(np.array([1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
