# SPDX-License-Identifier: Apache-2.0
"""Jobs that failures interrupt so often that they will probably not complete.

A job's failure rate is its share of the machine's nodes times the machine's failure rate. An
interrupted job continues from its last checkpoint. Let t be the time from a restart to the next
checkpoint, including the recovery. If the job ends before this checkpoint, t is the time to its
end. If failures are memoryless, an attempt survives the time t with probability exp(-rate x t). So
a job needs exp(rate x t) attempts on average to make progress.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rebat.core.attempts import job_name
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.jobs import Job, Workload, duration_us
from rebat.core.units import FOREVER_US, to_s
from rebat.models.checkpoint import checkpointing_of

MANY_ATTEMPTS = 1000
"""A message reports a job if it has at least this number of attempts, or of expected attempts."""


WHAT_TO_DO = (
    "use --checkpoint to keep its work, a larger --mtbf to give it time, or a smaller "
    "--max-attempts to end it earlier"
)


def stuck_job(interrupted: Mapping[str, int], max_attempts: int) -> str:
    """Return a message about the first job with MANY_ATTEMPTS interruptions, or an empty text.

    Parameters
    ----------
    interrupted : mapping
        Number of interrupted attempts of each job.
    max_attempts : int
        Number of attempts after which a job ends as failed.
    """
    for job_id, count in interrupted.items():
        if count >= MANY_ATTEMPTS:
            return (
                f"failures interrupted job {job_name(job_id)} {count:,} times. It ends as failed "
                f"after {max_attempts:,} attempts: {WHAT_TO_DO}"
            )
    return ""


class Hopeless(NamedTuple):
    """A job, the seconds to its next checkpoint, and the logarithm of its expected attempts."""

    job: Job
    span_s: float
    log_attempts: float

    @property
    def attempts(self) -> str:
        """The expected number of attempts as text, because it can be too large for a float."""
        digits = self.log_attempts / math.log(10)
        return f"10^{digits:.0f}" if digits >= 6 else f"{math.exp(self.log_attempts):,.0f}"


def hopeless_jobs(
    workload: Workload, n_nodes: int, mtbf_s: float, group: int = 1, cascade: float = 0.0
) -> list[Hopeless]:
    """Return the jobs that need at least MANY_ATTEMPTS attempts on average, sorted by this number.

    The job with the most attempts is first. ``mtbf_s`` is the MTBF of the entire machine. A failure
    takes down ``group`` nodes, and causes another failure with probability ``cascade``.
    """
    all_mtbf_s = mtbf_s * (1 - cascade)

    jobs = Jobs.of(workload.jobs)

    def log_attempts(sizes: Any, spans_s: Any) -> Any:
        exposed = np.minimum(n_nodes, -(-sizes // group) * group)
        return exposed / (n_nodes * all_mtbf_s) * spans_s

    spans_s = np.array([_span_s(workload, name) for name in jobs.profile_names])
    logs = log_attempts(jobs.n_nodes, spans_s[jobs.profile_codes])
    hopeless = []
    for row in np.flatnonzero((jobs.n_nodes <= n_nodes) & (logs >= math.log(MANY_ATTEMPTS))):
        job = jobs.at(int(row))
        span_s = _span_s(workload, job.profile, job.walltime_us or FOREVER_US)
        log = float(log_attempts(job.n_nodes, span_s))
        if log >= math.log(MANY_ATTEMPTS):
            hopeless.append(Hopeless(job, span_s, log))
    return sorted(hopeless, key=lambda job: -job.log_attempts)


def _span_s(workload: Workload, profile: str, walltime_us: int = FOREVER_US) -> float:
    """Return the time from a restart of a job to its next checkpoint, in seconds.

    Return 0 if only Batsim can compute the duration of the job's profile.
    """
    try:
        length_us = duration_us(workload.profiles, profile)
    except InputError:
        return 0.0
    length_us = min(length_us, walltime_us)
    c = checkpointing_of(workload.profiles[profile])
    return to_s(length_us if c is None else min(length_us, c.period_us + c.cost_us) + c.recovery_us)
