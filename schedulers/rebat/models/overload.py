# SPDX-License-Identifier: Apache-2.0
"""Jobs that failures hit so often that they cannot be expected to finish.

The failure rate of a job's nodes is their share of the machine's, and an attempt that is hit goes
on from what was kept. With failures taken as memoryless, the chance to get from there to the next
checkpoint (or to the end, if that is nearer; recovery included) in a time t is exp(-rate x t), so
that exp(rate x t) attempts are expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from rebat.core.attempts import job_name
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, duration_us
from rebat.core.units import FOREVER_US, to_s
from rebat.models.checkpoint import checkpointing_of

MANY_ATTEMPTS = 1000
"""From so many expected attempts on a job is told."""


WHAT_TO_DO = (
    "with --checkpoint it keeps what it has done, a larger --mtbf leaves it time, and a smaller "
    "--max-attempts ends it earlier"
)


def stuck_job(interrupted: Mapping[str, int], max_attempts: int) -> str:
    """The job that failures have interrupted MANY_ATTEMPTS times; an empty text if there is none.

    Parameters
    ----------
    interrupted : mapping
        Number of interrupted attempts by job.
    max_attempts : int
        After so many the job ends as failed.
    """
    for job_id, count in interrupted.items():
        if count >= MANY_ATTEMPTS:
            return (
                f"failures interrupted job {job_name(job_id)} {count:,} times. It ends as failed "
                f"after {max_attempts:,} attempts: {WHAT_TO_DO}"
            )
    return ""


class Hopeless(NamedTuple):
    """A job, the seconds between what it keeps, and the expected attempts' natural logarithm."""

    job: Job
    span_s: float
    log_attempts: float

    @property
    def attempts(self) -> str:
        """The expected attempts for people; they may be beyond any float."""
        digits = self.log_attempts / math.log(10)
        return f"10^{digits:.0f}" if digits >= 6 else f"{math.exp(self.log_attempts):,.0f}"


def hopeless_jobs(
    workload: Workload, n_nodes: int, mtbf_s: float, group: int = 1, cascade: float = 0.0
) -> list[Hopeless]:
    """The jobs with MANY_ATTEMPTS or more, the worst first; ``mtbf_s`` is the whole machine's.

    A failure takes down ``group`` nodes, and brings another one with probability ``cascade``.
    """
    found = []
    mtbf_s *= 1 - cascade
    for job in workload.jobs:
        if job.n_nodes <= n_nodes:
            span_s = _span_s(job, workload)
            exposed = min(n_nodes, -(-job.n_nodes // group) * group)
            log_attempts = exposed / (n_nodes * mtbf_s) * span_s
            if log_attempts >= math.log(MANY_ATTEMPTS):
                found.append(Hopeless(job, span_s, log_attempts))
    return sorted(found, key=lambda one: -one.log_attempts)


def _span_s(job: Job, workload: Workload) -> float:
    """From a restart to what is kept next; 0 where only Batsim knows how long a job lasts."""
    try:
        length_us = duration_us(workload.profiles, job.profile)
    except InputError:
        return 0.0
    length_us = min(length_us, job.walltime_us or FOREVER_US)
    c = checkpointing_of(workload.profiles[job.profile])
    return to_s(length_us if c is None else min(length_us, c.period_us + c.cost_us) + c.recovery_us)
