# SPDX-License-Identifier: Apache-2.0
"""Effective training time of rigid jobs that complete, counted second by second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Timed(NamedTuple):
    """A job with its work (without the time of checkpoints) and its executions, in seconds.

    An execution is (time of entry into the queue, start, end).

    All executions but the last one ended with a failure.
    """

    n_nodes: int
    work: int
    submitted: int
    runs: Sequence[tuple[int, int, int]]


def effective_time(jobs: Sequence[Timed]) -> tuple[float, float, float | None]:
    """Return ETTR without and with queueing, and run time per failure (None without failures)."""
    work = on_nodes = to_end = run_s = failures = 0
    for job in jobs:
        work += job.n_nodes * job.work
        failures += len(job.runs) - 1
        for second in range(job.submitted, job.runs[-1][2]):
            to_end += job.n_nodes
            waits = any(queued <= second < start for queued, start, _ in job.runs)
            on_nodes += 0 if waits else job.n_nodes
            run_s += any(start <= second < end for _, start, end in job.runs)
    return work / on_nodes, work / to_end, run_s / failures if failures else None
