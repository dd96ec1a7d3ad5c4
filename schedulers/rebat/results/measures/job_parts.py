# SPDX-License-Identifier: Apache-2.0
"""The parts of a job's history from submission to end, and its effective training time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import INTERRUPTED, Cause, job_name
from rebat.core.errors import InputError, unknown_name
from rebat.core.options import HUNG
from rebat.results.measures.recoveries import work_us
from rebat.session.ledger import AttemptRecord, Ledger

WAIT, LOAD, KEPT, LOST = "wait", "load", "kept", "lost"
"""Kinds of parts, in addition to the stages of `recovery.HUNG`."""

KINDS = (KEPT, LOST, *HUNG, LOAD, WAIT)

Floats = npt.NDArray[np.float64]


class JobPart(NamedTuple):
    """A part of the history of a job.

    Attributes
    ----------
    kind
        One of `KINDS`. ``wait``: time without an attempt. ``load``: initialisation and loading of a
        checkpoint. ``kept``: kept work, including its checkpoints. ``lost``: work that was not
        kept. The other kinds are stages of recovery, in which the attempt hangs on its nodes.
    start_us, end_us
        Times in microseconds.
    n_nodes
        Number of nodes of the attempt. For ``wait``, it is the number of nodes of the next attempt.
    work_us
        Kept work without checkpoints, in microseconds.
    """

    kind: str
    start_us: int
    end_us: int
    n_nodes: int
    work_us: int = 0


def largest_job(ledger: Ledger) -> str:
    """Return the id of the job with the most node time. In a tie, return the first to end."""
    used: Counter[str] = Counter()
    for record in ledger.attempts:
        if record.start_us >= 0:
            ran_us = record.end_us - record.start_us
            used[job_name(record.attempt.job_id)] += ran_us * record.attempt.n_nodes
    if not used:
        raise InputError("no job ran")
    return used.most_common(1)[0][0]


def job_parts(ledger: Ledger, job: str) -> list[JobPart]:
    """Return the history of a job in order of time. The list is empty if the job never ran."""
    records = [r for r in ledger.attempts if job_name(r.attempt.job_id) == job]
    if not records:
        raise unknown_name("job", job, {job_name(r.attempt.job_id) for r in ledger.attempts})
    parts: list[JobPart] = []
    since_us = records[0].attempt.submit_us
    for record in sorted(records, key=lambda r: r.start_us):
        if record.start_us >= 0:
            n_nodes = record.attempt.n_nodes
            parts.append(JobPart(WAIT, since_us, record.start_us, n_nodes))
            parts += _of_attempt(record)
            since_us = record.end_us
    return [part for part in parts if part.end_us > part.start_us]


def _of_attempt(record: AttemptRecord) -> Iterator[JobPart]:
    """Yield the parts of an attempt: loading, kept work, lost work, and recovery stages.

    During the recovery stages, the attempt hangs on its nodes.
    """
    start_us, n_nodes = record.start_us, record.attempt.n_nodes
    failed_us = record.end_us - record.hung_us
    load_us = record.checkpointing.first_recovery_us if record.checkpointing else 0
    ready_us = min(start_us + load_us, failed_us)
    stopped = record.cause in INTERRUPTED or record.cause == Cause.SILENT_ERROR
    useful_us = record.useful_us if stopped else failed_us - ready_us
    kept_us = min(max(0, useful_us - record.lost_us), failed_us - ready_us)
    yield JobPart(LOAD, start_us, ready_us, n_nodes)
    yield JobPart(KEPT, ready_us, ready_us + kept_us, n_nodes, work_us(record))
    yield JobPart(LOST, ready_us + kept_us, failed_us, n_nodes)
    at_us = failed_us
    for stage in HUNG:
        until_us = min(at_us + record.stages.get(stage, 0), record.end_us)
        yield JobPart(stage, at_us, until_us, n_nodes)
        at_us = until_us


def cumulative_ettr(parts: Sequence[JobPart], times_us: Floats) -> tuple[Floats, Floats]:
    """Return the effective training time ratio up to each time, without and with queue time.

    The numerator is the work that was kept, without checkpoints. The denominator is the time on
    nodes (without queue time), or the time since the submission (with queue time). Work and times
    are weighted by nodes. The work of a part is distributed evenly over the part. Before the job
    first holds nodes, the ratio is NaN.
    """
    edges = np.array([parts[0].start_us, *(part.end_us for part in parts)], dtype=np.float64)
    lengths = np.diff(edges) * [part.n_nodes for part in parts]
    queued = np.array([part.kind == WAIT for part in parts])
    work, on_nodes, total = (
        np.interp(times_us, edges, np.append(0.0, np.cumsum(steps)))
        for steps in (
            [part.work_us * part.n_nodes for part in parts],
            np.where(queued, 0.0, lengths),
            lengths,
        )
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return work / on_nodes, work / total
