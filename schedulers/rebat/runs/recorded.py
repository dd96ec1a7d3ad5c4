# SPDX-License-Identifier: Apache-2.0
"""A recorded schedule as the result of a run, with the metrics and files of simulated runs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from rebat.core.attempts import Attempt, Cause, resubmission_id
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.engine.jobs import FAILED, KILLED, SUCCESS, WALLTIME, EndedJob, ended_jobs
from rebat.models.failures.events import MachineEvent
from rebat.results.files.run_folder import RECORDED
from rebat.results.measures.nodetime import sharing
from rebat.results.measures.platform import free_steps
from rebat.results.measures.summary import Layout, Measures, summarise
from rebat.runs.single import RunResult, owners_of
from rebat.state.ledger import AttemptRecord, Ledger, attempts_of
from rebat.workloads.recorded import RecordedAttempt, RecordedSchedule

MEASURES = Measures(walltime_kills="useful")
"""The work of jobs that were killed at their walltime counts as useful.

In a simulation, a job that reached its walltime in the record completes, and its work is useful.
Therefore, it also counts as useful in the record.
"""

TOGETHER_US = 5 * US_PER_S
"""Maximum time (us) between the failure of a node and the recorded end of its attempt."""

STATES: dict[Cause, str] = {
    Cause.COMPLETED: SUCCESS,
    Cause.JOB_FAILED: FAILED,
    Cause.WALLTIME: WALLTIME,
}
"""Batsim's final state for each cause of the end. With any other cause, the attempt was killed."""


def recorded_run(schedule: RecordedSchedule) -> RunResult:
    """Return the result of a recorded schedule, as if a policy named 'recorded' had run."""
    attempts = schedule.attempts
    entries = sorted(attempts, key=lambda attempt: (attempt.queued_us, attempt.job, attempt.number))
    serials = {id(attempt): serial for serial, attempt in enumerate(entries)}
    pairs = [_attempt(schedule, serials[id(attempt)], attempt) for attempt in attempts]
    events = NodeEvents((event.at_us, event.available, event.nodes) for event in schedule.events)
    ledger = Ledger(attempts=attempts_of(record for record, _ in pairs), node_events=events)
    may_share = schedule.crowded or not schedule.assigned_nodes
    ledger.shared = may_share and bool(sharing(ledger).any())
    n_nodes = schedule.workload.n_nodes
    ledger.failures_that_hit = list(_hits(ledger, schedule.events, n_nodes))
    layout = Layout(owners=owners_of(schedule.workload))
    summary, rows = summarise(ledger, n_nodes, MEASURES, layout)
    return RunResult(RECORDED, summary, rows, ledger, ended_jobs(job for _, job in pairs))


def n_sharing(result: RunResult) -> int:
    """Return the number of attempts that share nodes with other attempts."""
    return int(sharing(result.ledger).sum()) if result.ledger.shared else 0


def _attempt(
    schedule: RecordedSchedule, serial: int, recorded: RecordedAttempt
) -> tuple[AttemptRecord, EndedJob]:
    """Return an attempt in two forms: as a record for metrics, and as a job of Batsim."""
    job, number = schedule.workload.jobs[recorded.job], recorded.number
    job_id, walltime_us = f"w0!{job.id}", recorded.walltime_us
    attempt_id = resubmission_id(job_id, number) if number else job_id
    size, start_us, end_us = recorded.nodes.size, recorded.start_us, recorded.end_us
    state = STATES.get(recorded.cause, KILLED)
    attempt = Attempt(
        id=attempt_id,
        job_id=job_id,
        serial=serial,
        job_serial=recorded.job,
        number=number,
        n_nodes=size,
        walltime_us=FOREVER_US if walltime_us is None else walltime_us,
        submit_us=job.submit_us,
        queued_us=recorded.queued_us,
    )
    record = AttemptRecord(
        attempt,
        job.profile,
        None,
        start_us,
        end_us,
        recorded.cause,
        state,
        0 if recorded.lost else end_us - start_us,
        recorded.nodes,
        why=recorded.why,
    )
    batsim = EndedJob(
        attempt_id,
        size,
        recorded.queued_us,
        walltime_us,
        job.profile,
        "w0",
        start_us=start_us,
        end_us=end_us,
        state=state,
        nodes=recorded.nodes,
    )
    return record, batsim


def _hits(
    ledger: Ledger, events: Sequence[MachineEvent], n_nodes: int
) -> Iterator[tuple[int, int]]:
    """Yield time and number of free nodes at each failure that ended an attempt."""
    ended = sorted(
        (record for record in ledger.attempts if record.cause == Cause.NODE_FAILURE),
        key=lambda record: record.end_us,
    )
    ends_us = [record.end_us for record in ended]
    at_us, free = free_steps(ledger, n_nodes)
    for event in events:
        if event.available:
            continue
        low = bisect_left(ends_us, event.at_us - TOGETHER_US)
        high = bisect_right(ends_us, event.at_us + TOGETHER_US)
        hit = [r.nodes for r in ended[low:high] if r.nodes and r.nodes.meets(event.nodes)]
        if hit:
            before = free[max(int(np.searchsorted(at_us, event.at_us)) - 1, 0)]
            yield event.at_us, max(int(before) - _alone(event.nodes, hit), 0)


def _alone(nodes: NodeSet, hit: Sequence[NodeSet]) -> int:
    """Return how many of the failed nodes were not used by an attempt that ended."""
    return sum(not any(node in held for held in hit) for node in nodes)
