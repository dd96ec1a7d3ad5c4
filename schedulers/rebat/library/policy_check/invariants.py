# SPDX-License-Identifier: Apache-2.0
"""The rules that every run of any policy must keep."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from rebat.core.attempts import INTERRUPTED, Cause
from rebat.core.decisions import Reply
from rebat.core.errors import RebatError
from rebat.core.events import Message
from rebat.core.formatting import counted
from rebat.core.units import to_s
from rebat.engine.engine import Scheduler
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.summary import RunSummary
from rebat.runs.single import RunResult
from rebat.session.ledger import Ledger
from rebat.session.session import Session


class Violation(RebatError):
    """Error: a run broke a rule."""


def require(condition: object, text: str) -> None:
    """Raise a Violation with this text if the condition is False."""
    if not condition:
        raise Violation(text)


def validated(session: Session) -> Scheduler:
    """Return a scheduler that checks the invariants of a session after each message."""

    def handle(message: Message) -> Reply:
        reply = session.handle(message)
        session.validate()
        return reply

    return handle


def check_run(result: RunResult) -> None:
    """Check the nodes, ends, sizes and times of attempts in a run without latency."""
    check_nodes(result.ledger)
    check_ends(result.ledger)
    check_sizes(result.ledger)
    check_time(result.summary, result.rows)


def check_nodes(ledger: Ledger, slack_us: int = 0) -> None:
    """Check that no node runs two attempts, and that no attempt runs on a node that is down.

    An attempt may hang on a node that is down until the failure is detected. ``slack_us`` is the
    delay of a kill on a platform with latency.
    """
    held, hung_us = defaultdict(list), {}
    for record in ledger.attempts:
        hung_us[record.attempt.id] = record.hung_us
        for node in record.nodes or ():
            if record.end_us > record.start_us:
                held[node].append((record.start_us, record.end_us, record.attempt.id))
    for node, intervals in held.items():
        intervals.sort()
        for (_, end, first), (start, _, second) in pairwise(intervals):
            require(end <= start, f"node {node} runs {first} and {second}")
    horizon = max((record.end_us for record in ledger.attempts), default=0)
    for node, down, up in ledger.node_events.outages(horizon).rows():
        for start, end, attempt in held.get(node, ()):
            dead = min(end - hung_us[attempt], up) - max(start, down)
            require(dead <= slack_us, f"{attempt} runs on the dead node {node}")


def check_ends(ledger: Ledger) -> None:
    """Check that every job ends exactly once, with its last attempt.

    All earlier attempts must have been interrupted. The attempts of a job must not overlap.
    """
    again = INTERRUPTED | {Cause.SILENT_ERROR, Cause.MOLDED}
    attempts = defaultdict(list)
    for record in ledger.attempts:
        attempts[record.attempt.job_id].append(record)
    for job_id, records in attempts.items():
        records.sort(key=lambda record: record.attempt.number)
        numbers = [record.attempt.number for record in records]
        require(numbers == [*range(len(records))], f"job {job_id} has the attempts {numbers}")
        causes = [record.cause for record in records]
        require(all(c in again for c in causes[:-1]), f"job {job_id} continues after its end")
        require(causes[-1] not in again, f"job {job_id} does not end")
        for before, after in pairwise(record for record in records if record.start_us >= 0):
            require(before.end_us <= after.start_us, f"two attempts of job {job_id} overlap")


def check_sizes(ledger: Ledger, slack_us: int = 0) -> None:
    """Check that each attempt has the right number of nodes, and starts after its submission.

    Each attempt must also end within its walltime.
    """
    for record in ledger.attempts:
        attempt = record.attempt
        if record.nodes is not None:
            size, ran_us = len(record.nodes), record.end_us - record.start_us
            require(size == attempt.n_nodes, f"{attempt.id} runs on {counted(size, 'node')}")
            require(attempt.queued_us <= record.start_us, f"{attempt.id} starts too early")
            require(ran_us <= attempt.walltime_us + slack_us, f"{attempt.id} exceeds its walltime")


def check_time(summary: RunSummary, rows: JobRows) -> None:
    """Check that the uses of node time add up to the total, and that no flow is negative."""
    p = summary.platform
    parts = (
        p.useful, p.checkpoint, p.recovery, p.waste_failure, p.waste_stealing, p.waste_silent,
        p.waste_walltime, p.waste_moving, p.held,
    )  # fmt: skip
    gap = abs(sum(parts) + p.downtime + p.idle - p.total)
    require(gap <= 1e-6 * max(1.0, p.total), "the uses of node time do not add up")
    require(min(*parts, p.downtime, p.idle) >= 0, "a use of node time is negative")
    require(all(row.flow >= 0 for row in rows if row.flow is not None), "a flow is negative")


def check_starts(ledger: Ledger) -> None:
    """Check that each job starts within its maximum wait, in a run without failures.

    The maximum wait of a job is the longest walltime, multiplied by the number of jobs submitted up
    to and including the job. A policy that serves jobs in order of arrival never exceeds it.
    Backfilling does not exceed it either, if it never delays the first job of the queue.
    """
    firsts = [record for record in ledger.attempts if record.attempt.number == 0]
    longest_us = max(record.attempt.walltime_us for record in firsts)
    for record in firsts:
        attempt = record.attempt
        until = sum(other.attempt.submit_us <= attempt.submit_us for other in firsts)
        if record.start_us >= 0:
            waited_us, bound_us = record.start_us - attempt.submit_us, until * longest_us
            require(
                waited_us <= bound_us,
                f"job {attempt.job_id} of {counted(attempt.n_nodes, 'node')} waits "
                f"{to_s(waited_us):g} s "
                f"(bound: {counted(until, 'job')} of {to_s(longest_us):g} s)",
            )
