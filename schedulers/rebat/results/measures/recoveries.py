# SPDX-License-Identifier: Apache-2.0
"""Recoveries of failed jobs: lost node time, effective training time, and the parts of a job."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.attempts import INTERRUPTED, OVER, SECOND_ORDER, Cause, job_name
from rebat.core.errors import InputError, unknown_name
from rebat.core.options import HUNG
from rebat.core.table import Table
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.checkpoint import Patterns, checkpoint_time_us, checkpoint_times_us
from rebat.results.measures.jobs import JobRows, by_class
from rebat.results.measures.nodetime import dot
from rebat.results.metric import Metric
from rebat.state.ledger import AttemptRecord, Ledger

Span = tuple[int, int]
"""Start and end in microseconds."""


UNKNOWN = "unknown"
"""Name of an unknown cause."""


class Recoveries(msgspec.Struct, frozen=True):
    """Recoveries of all jobs over the entire run. Node time is in node-seconds."""

    # fmt: off
    ettr: Annotated[float, Metric("ETTR", "share", "high", "", "effective training time ratio of all jobs: sum(nodes x kept work, without checkpoints) / sum(nodes x time on nodes)")]
    ettr_queued: Annotated[float, Metric("ETTR with queueing", "share", "high", "", "the same, with the time in the queue: sum(nodes x kept work, without checkpoints) / sum(nodes x time from submission to end)")]
    mttf_s: Annotated[float, Metric("time to failure of a job", "time", "high", "", "time on nodes of all jobs / failures that hit them")]
    second_order: Annotated[int, Metric("preemptions for failed jobs", "count", "low", "", "jobs that were preempted for a job that a failure interrupted")]
    stages: Annotated[dict[str, float], Metric("recovery, stage *", "node time", "low", "", "node time of a stage of the recovery", listed=False)]
    lost: Annotated[dict[str, float], Metric("lost to failures, cause *", "node time", "low", "", "lost run time, and time of the stages, after failures with this cause", listed=False)]
    # fmt: on


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
    done = dot(works_us(attempts)[ran], sizes)
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


def works_us(attempts: Table[AttemptRecord]) -> npt.NDArray[np.int64]:
    """Return `work_us` of each attempt."""
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


class Training(msgspec.Struct, frozen=True):
    """Effective training time of a group of jobs. Jobs are weighted by their nodes.

    While a job does not run, it is weighted by its requested nodes.
    """

    # fmt: off
    ettr: Annotated[float, Metric("ETTR of measured jobs", "share", "high", "", "sum(nodes x kept work, without checkpoints) / sum(nodes x time from the first start to the end, without later waits in the queue)")]
    ettr_queued: Annotated[float, Metric("ETTR of measured jobs, with queueing", "share", "high", "", "sum(nodes x kept work, without checkpoints) / sum(nodes x time from submission to end)")]
    mttf_s: Annotated[float | None, Metric("MTTF of measured jobs", "time", "high", "", "run time of the measured jobs / failures that hit them; absent without failures")]
    # fmt: on


def training_by_class(ledger: Ledger, rows: JobRows, n_nodes: int) -> dict[str, Training | None]:
    """Return the metrics of each size class of the machine, and of all measured jobs (key 'all').

    ``rows`` has the measured jobs.
    """
    attempts = ledger.attempts
    ran = np.flatnonzero(attempts.column("start_us") >= 0)
    codes: dict[str, int] = {}
    job = [codes.setdefault(name, len(codes)) for name in attempts.texts("name", ran)]
    run_s = (attempts.column("end_us") - attempts.column("start_us"))[ran] / US_PER_S
    sizes = attempts.column("n_nodes")[ran]
    hit = attempts.having("cause", Cause.NODE_FAILURE) | (attempts.column("hit") != 0)
    sums: list[Any] = [
        np.bincount(np.array(job, dtype=np.int64), values, len(codes) + 1)
        for values in (works_us(attempts)[ran] / US_PER_S * sizes, run_s * sizes, run_s, hit[ran])
    ]  # the last column is that of jobs that never ran
    measured = np.array([codes.get(name, -1) for name in rows.column("job_id")], dtype=np.int64)
    classes = dict(by_class(rows, n_nodes)) | {"all": np.arange(len(rows))}
    return {
        name: _training(rows[places], [of_job[measured[places]] for of_job in sums])
        for name, places in classes.items()
    }


def _training(rows: JobRows, sums: Sequence[Floats]) -> Training | None:
    """Return the metrics of jobs from their work, node time, run time and number of failures."""
    if not rows:
        return None
    sizes, flow, waits = (rows.column(name) for name in ("size", "flow", "waiting_time"))
    stopped = flow - sums[2]
    work, ran, run_s, failures = (sum(of_job.tolist()) for of_job in sums)
    held = ran + sum((sizes * (stopped - waits)).tolist())
    total = ran + sum((sizes * stopped).tolist())
    return Training(
        ettr=work / held if held else 0.0,
        ettr_queued=work / total if total else 0.0,
        mttf_s=run_s / failures if failures else None,
    )


WAIT, LOAD, KEPT, LOST = "wait", "load", "kept", "lost"
"""Kinds of parts, in addition to the stages of `recovery.HUNG`."""

KINDS = (KEPT, LOST, *HUNG, LOAD, WAIT)


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
