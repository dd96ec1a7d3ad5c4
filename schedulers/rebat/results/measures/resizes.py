# SPDX-License-Identifier: Apache-2.0
"""How often jobs changed their size, and what replaced dead nodes (Prabhakaran et al. 2018)."""

from __future__ import annotations

import msgspec
import numpy as np

from rebat.core.attempts import Cause
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.platform import Window
from rebat.session.ledger import Ledger


class Resizes(msgspec.Struct, frozen=True):
    """Counts of a window.

    ``molded`` jobs first started, at any date, in another size than they had asked for.
    ``grown``, ``shrunk``: resizes of running malleable jobs by the planning; ``lent``: those
    that shrank to replace nodes; ``restarted``: moldable jobs that started over for another's
    sake. Of the attempts that a failure hit, ``by_local`` went on in a smaller size,
    ``by_idle`` on idle or spare nodes, ``by_remote`` on nodes that others gave back,
    ``by_restart`` on those of moldable jobs that start over (or started over itself);
    ``requeued`` had to wait; ``jobs_hit`` are the different jobs among them. ``mean_wait_s`` is
    the mean time that a job held no nodes, between its submission and its end.
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
    "grow": "grown", "shrink": "shrunk", "lend": "lent", "restart for another": "restarted",
    "local": "by_local", "idle": "by_idle", "remote": "by_remote", "restart": "by_restart",
}  # fmt: skip
"""The words that policies give with a stop, and what they are counted as."""


def resizes(ledger: Ledger, rows: JobRows, window: Window) -> Resizes:
    """Count within a window, by the dates of the stops; waits are of all jobs."""
    counts = dict.fromkeys((*_WORDS.values(), "molded", "requeued"), 0)
    for record in ledger.attempts:
        name = _WORDS.get(record.why)
        if record.cause == Cause.MOLDED:
            counts["molded"] += record.attempt.number == 0
        elif window[0] <= record.end_us < window[1]:
            if name:
                counts[name] += 1
            elif record.cause == Cause.NODE_FAILURE:
                counts["requeued"] += 1
    hit = {
        record.attempt.job_serial
        for record in ledger.attempts
        if record.cause == Cause.NODE_FAILURE and window[0] <= record.end_us < window[1]
    }
    waits = rows.column("waiting_time")
    waits = waits[~np.isnan(waits)]
    mean_wait_s = sum(waits.tolist()) / len(waits) if len(waits) else 0.0
    return Resizes(**counts, jobs_hit=len(hit), mean_wait_s=mean_wait_s)
