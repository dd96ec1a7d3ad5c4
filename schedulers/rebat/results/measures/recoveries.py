# SPDX-License-Identifier: Apache-2.0
"""Recoveries of failed jobs: lost node time (by cause and stage) and effective training time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import OVER, SECOND_ORDER
from rebat.core.table import Table
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.checkpoint import Patterns, checkpoint_time_us, checkpoint_times_us
from rebat.results.measures.sharing import dot
from rebat.session.ledger import AttemptRecord, Ledger

Span = tuple[int, int]
"""Start and end in microseconds."""


UNKNOWN = "unknown"
"""Name of an unknown cause."""


class Recoveries(msgspec.Struct, frozen=True):
    """Recoveries of all jobs over the entire run. Node time is in node-seconds.

    Attributes
    ----------
    ettr, ettr_queued
        Effective training time: kept work of all jobs, without checkpoints, divided by their time
        on nodes (``ettr``) or by their time from submission to end (``ettr_queued``). Work and time
        are weighted by nodes.
    mttf_s
        Time of all jobs on nodes, divided by the number of failures that hit them.
    second_order
        Number of preemptions in favour of jobs that a failure interrupted.
    stages
        Node time of each stage.
    lost
        Lost node time by cause of the failure. It is the run time that was not kept, plus the
        stages.
    """

    ettr: float
    ettr_queued: float
    mttf_s: float
    second_order: int
    stages: dict[str, float]
    lost: dict[str, float]


def recoveries(ledger: Ledger) -> Recoveries | None:
    """Return the recoveries of a run, or None if no failure of a job has a cause or stages."""
    attempts = ledger.attempts
    hit = attempts.column("hit") != 0
    if not hit.any():
        return None
    stages: dict[str, float] = defaultdict(float)
    lost: dict[str, float] = defaultdict(float)
    for record in attempts.where(hit):
        for name, us in record.stages.items():
            stages[name] += us * record.attempt.n_nodes / US_PER_S
        all_us = since_checkpoint_us(record) + sum(record.stages.values())
        lost[record.failure or UNKNOWN] += all_us * record.attempt.n_nodes / US_PER_S
    ran = attempts.column("start_us") >= 0
    names = ("start_us", "end_us", "submit_us", "job_serial")
    start_us, end_us, submit_us, job = (attempts.column(name)[ran] for name in names)
    sizes = attempts.column("n_nodes")[ran]
    done = dot(_works_us(attempts)[ran], sizes)
    on_nodes = dot(end_us - start_us, sizes)
    last = len(job) - 1 - np.unique(job[::-1], return_index=True)[1]  # each job's last attempt
    in_system = dot((end_us - submit_us)[last], sizes[last])
    return Recoveries(
        ettr=done / on_nodes if on_nodes else 0.0,
        ettr_queued=done / in_system if in_system else 0.0,
        mttf_s=int((end_us - start_us).sum()) / US_PER_S / int(hit.sum()),
        second_order=int(attempts.having("why", SECOND_ORDER).sum()),
        stages=dict(sorted(stages.items())),
        lost=dict(sorted(lost.items())),
    )


def _works_us(attempts: Table[AttemptRecord]) -> npt.NDArray[np.int64]:
    over = attempts.having("cause", *OVER)
    useful_us = attempts.column("useful_us")
    kept_us = useful_us - attempts.column("lost_us")
    distinct = attempts.values("checkpointing")
    patterns = Patterns.of(attempts.column("checkpointing"), distinct)
    return kept_us - checkpoint_times_us(patterns, kept_us, useful_us, over, "exact")


def work_us(record: AttemptRecord) -> int:
    """Return the work (us) of an attempt that was kept for good, without checkpoints."""
    kept_us = record.useful_us - record.lost_us
    pattern, is_over = record.checkpointing, record.cause in OVER
    return kept_us - checkpoint_time_us(pattern, kept_us, record.useful_us, is_over, "exact")


def since_checkpoint_us(record: AttemptRecord) -> int:
    """Return the run time (us) that a failure cost an attempt, without recovery stages.

    This is the run time before the failure, minus the initial recovery and the kept progress.
    """
    recovery_us = record.checkpointing.first_recovery_us if record.checkpointing else 0
    ran_us = record.end_us - record.hung_us - record.start_us
    return max(0, ran_us - min(recovery_us, ran_us) - record.useful_us)


def hung_on_dead(ledger: Ledger) -> list[Span]:
    """Return the intervals in which an attempt hangs on a node that is down.

    Their node-seconds count as downtime, not as recovery.
    """
    hung = ledger.attempts.column("hung_us") != 0
    if not hung.any():
        return []
    outages = sorted(ledger.node_events.outages(FOREVER_US).rows(), key=lambda o: o[1])
    starts, spans = [down for _, down, _ in outages], []
    for record in ledger.attempts.where(hung):
        failed_us, nodes = record.end_us - record.hung_us, record.nodes
        first = bisect_left(starts, failed_us)
        for node, down, up in outages[first : bisect_left(starts, record.end_us)]:
            if nodes is not None and node in nodes:
                spans.append((down, min(up, record.end_us)))
    return spans
