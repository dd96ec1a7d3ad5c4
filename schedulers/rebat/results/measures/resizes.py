# SPDX-License-Identifier: Apache-2.0
"""Resizes of jobs and replacements of failed nodes (Prabhakaran et al. 2018)."""

from __future__ import annotations

import msgspec
import numpy as np

from rebat.core.attempts import Cause
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.platform import Window
from rebat.session.ledger import Ledger


class Resizes(msgspec.Struct, frozen=True):
    """Counts of resizes and replacements in a window.

    Attributes
    ----------
    molded
        Jobs of the entire run whose first start was not on the requested number of nodes.
    grown, shrunk
        Resizes of running malleable jobs to more and to fewer nodes, decided by the policy's
        planning.
    lent
        Resizes of malleable jobs to fewer nodes, to replace failed nodes of other jobs.
    restarted
        Moldable jobs that restarted from the beginning to release nodes for other jobs.
    by_local
        Attempts hit by a failure whose jobs continued on fewer nodes.
    by_idle
        Attempts hit by a failure whose jobs continued on idle or spare nodes.
    by_remote
        Attempts hit by a failure whose jobs continued on nodes released by malleable jobs.
    by_restart
        Attempts hit by a failure whose jobs restarted from the beginning, or continued on nodes of
        other moldable jobs that restarted.
    requeued
        Attempts hit by a failure whose jobs were requeued or paused.
    jobs_hit
        Distinct jobs hit by a failure.
    mean_wait_s
        Mean time between submission and end during which a job held no nodes.
    """

    molded: int
    grown: int
    shrunk: int
    lent: int
    restarted: int
    by_local: int
    by_idle: int
    by_remote: int
    by_restart: int
    requeued: int
    jobs_hit: int
    mean_wait_s: float


_WORDS = {
    "grow": "grown",
    "shrink": "shrunk",
    "lend": "lent",
    "restart for another": "restarted",
    "local": "by_local",
    "idle": "by_idle",
    "remote": "by_remote",
    "restart": "by_restart",
}
"""Field of `Resizes` that counts a stop, by the reason that the policy states."""


def resizes(ledger: Ledger, rows: JobRows, window: Window) -> Resizes:
    """Return the counts in a window. The mean wait includes all jobs of the run."""
    attempts = ledger.attempts
    end_us, molded = attempts.column("end_us"), attempts.having("cause", Cause.MOLDED)
    stopped = ~molded & (window[0] <= end_us) & (end_us < window[1])
    hit = stopped & attempts.having("cause", Cause.NODE_FAILURE)
    reasons = attempts.values("why")
    of_stops, of_hits = (
        dict(zip(reasons, np.bincount(of, minlength=len(reasons)).tolist(), strict=True))
        for of in (attempts.column("why")[mask] for mask in (stopped, hit))
    )
    counts = {name: of_stops.get(word, 0) for word, name in _WORDS.items()}
    counts["molded"] = int((molded & (attempts.column("number") == 0)).sum())
    counts["requeued"] = sum(n for word, n in of_hits.items() if word not in _WORDS)
    waits = rows.column("waiting_time")
    waits = waits[~np.isnan(waits)]
    mean_wait_s = float(np.cumsum(waits)[-1]) / len(waits) if len(waits) else 0.0
    jobs_hit = len({*attempts.column("job_serial")[hit].tolist()})
    return Resizes(**counts, jobs_hit=jobs_hit, mean_wait_s=mean_wait_s)
