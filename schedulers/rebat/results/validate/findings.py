# SPDX-License-Identifier: Apache-2.0
"""Findings of the validation of a job table, and the checks of single rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.core.units import to_s
from rebat.models.failures.events import MachineEvent
from rebat.results.files.batsim_files import REJECTED, SUCCESS, WALLTIME, JobRecord

ROUNDING_US = 1
"""Maximum rounding error of a difference of two times, in microseconds."""


class Finding(msgspec.Struct, frozen=True):
    """A contradiction in a job table: kind (a key of ``KINDS``), line in the file, and text."""

    kind: str
    line: int
    text: str


KINDS = {
    "overlap": "two jobs on one node",
    "dead node": "a job on a node that is down",
    "outside": "a node outside the machine",
    "node twice": "a node listed twice",
    "size": "not the requested number of nodes",
    "walltime": "a run longer than the walltime",
    "run time": "not the run time of the profile",
    "state": "a final state that is impossible in a simulation",
    "early start": "a start before the submission",
    "negative run": "a finish before the start",
    "dependency": "a start that violates a dependency or the limit of an array",
    "times": "columns that contradict each other",
    "request": "not the request of the workload",
    "lost": "a job of the workload without a row",
    "unknown": "a row without a job of the workload",
    "doubled": "several rows with the same id",
    "attempts": "resubmissions that overlap or are missing",
}
"""The kinds of findings, in the order of the report."""


OF_MACHINES = frozenset(
    {
        "overlap",
        "size",
        "walltime",
        "run time",
        "state",
        "dependency",
        "request",
        "lost",
        "attempts",
    }
)
"""Kinds that do not count as errors in a recorded run.

On a real machine, jobs may share nodes, change size, exceed their walltime while they are killed,
and have other final states than in a simulation. rebat may have corrected the recorded end of a job
on which another job depends.
"""


class Reference(msgspec.Struct, frozen=True):
    """Reference data for the validation of a job table. Unknown data are None.

    Attributes
    ----------
    n_nodes
        Number of nodes of the machine.
    events
        Failures and repairs of nodes.
    workload
        The workload of the run.
    slack_us
        Maximum time, in microseconds, for which a job may continue after a failure of one of its
        nodes or after its walltime. On a platform with network latency, messages delay the kill.
    resubmits
        Whether the scheduler resubmits killed jobs, so that the last attempt of a job is never
        killed. Default: True if any job was resubmitted, or if nodes fail.
    six_digits
        Whether lengths and walltimes of resubmissions are rounded to six digits (``digits=six``).
        Default: True if all of them have at most six digits.
    by_rebat
        Whether rebat created the resubmissions. Default: True if a profile is named as rebat names
        it.
    hung_us
        Time (us) for which an attempt hangs on its nodes after a failure, by id (``7``, ``7#1``).
    queued_us
        Time (us) at which rebat queued each attempt, by id. Empty if this is unknown.
    spans_us
        Start and end (us) of each attempt in rebat's own table, by id. Empty if this is unknown.
    ended_us
        Time (us) at which rebat killed each job that never completes, by id.
    given_up
        Ids of jobs that rebat gave up after too many failures (``--max-attempts``).
    max_attempts
        Number of attempts after which a job may end without a resubmission. Default: no limit.
    """

    n_nodes: int | None = None
    events: Sequence[MachineEvent] = ()
    workload: Workload | None = None
    slack_us: int = 0
    resubmits: bool | None = None
    six_digits: bool | None = None
    by_rebat: bool | None = None
    ended_us: Mapping[str, int] = {}
    hung_us: Mapping[str, int] = {}
    queued_us: Mapping[str, int] = {}
    spans_us: Mapping[str, tuple[int, int]] = {}
    given_up: frozenset[str] = frozenset()
    max_attempts: int | None = None

    @property
    def endless(self) -> frozenset[str]:
        """Ids of jobs that never complete. They may be killed without a resubmission."""
        jobs = self.workload.jobs if self.workload else ()
        eternal = {job.id for job in jobs if traits_of(job.extra).eternal}
        return frozenset(self.ended_us.keys() | eternal)


def seconds(us: int) -> str:
    """Format a time in seconds with all its digits.

    >>> seconds(1_500_000)
    '1.5 s'
    """
    return f"{to_s(us):.6f}".rstrip("0").rstrip(".") + " s"


Wrong = tuple[str, str]
"""Kind and text of a finding."""

_LAST_DIGIT = 1e-6
"""Maximum rounding error of a stretch, which Batsim prints with six digits."""


def row_errors(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    """Yield the errors of a row for which no other row is needed, for any scheduler."""
    n_nodes, slack_us = reference.n_nodes, ROUNDING_US + reference.slack_us
    last = int(row.nodes.intervals[-1, 1]) if len(row.nodes) else -1
    if n_nodes is not None and last >= n_nodes:
        yield "outside", f"runs on node {last}, but the machine has {n_nodes} nodes"
    if row.duplicate_node is not None:
        yield "node twice", f"lists node {row.duplicate_node} twice"
    if row.ran and row.n_nodes is not None and len(row.nodes) != row.n_nodes:
        yield "size", f"ran on {len(row.nodes)} nodes, but requested {row.n_nodes}"
    elif row.ran and not len(row.nodes):
        yield "size", "ran without nodes"
    elif not row.ran and len(row.nodes):
        yield "size", f"never started, but has {len(row.nodes)} nodes"
    held_us, walltime_us = row.held_us, row.walltime_us
    if held_us is not None and walltime_us is not None and held_us > walltime_us + slack_us:
        yield "walltime", f"ran {seconds(held_us)}, but its walltime is {seconds(walltime_us)}"
    if row.success is not None and row.success != (row.state == SUCCESS):
        yield "state", f"success is {int(row.success)}, but final_state is {row.state}"
    if row.ran == (row.state == REJECTED):
        yield "state", f"is {row.state}, but {'ran' if row.ran else 'never started'}"
    yield from _time_errors(row, slack_us)
    spans = zip((row.start_us, row.left_us), reference.spans_us.get(row.job_id, ()), strict=False)
    for name, (ours, recorded) in zip(("starts", "ends"), spans, strict=False):
        if ours is not None and abs(ours - recorded) > slack_us:
            other = f"at {seconds(recorded)} in rebat_attempts"
            yield "times", f"{name} at {seconds(ours)}, but {other}"


def _time_errors(row: JobRecord, slack_us: int) -> Iterator[Wrong]:
    """Check the times. The stretch is turnaround / run time, up to the rounding error."""
    start_us, end_us, walltime_us = row.start_us, row.end_us, row.walltime_us
    if start_us is None or end_us is None:
        return
    run_us = end_us - start_us
    if row.state == WALLTIME and walltime_us is None and row.walltime_listed:
        yield "state", "reached its walltime, but has none"
    elif row.state == WALLTIME and walltime_us is not None and run_us < walltime_us - slack_us:
        ran = f"its walltime of {seconds(walltime_us)}, but ran {seconds(run_us)}"
        yield "state", f"reached {ran}"
    starts = f"starts at {seconds(start_us)}"
    if row.submit_us is not None and start_us < row.submit_us:
        yield "early start", f"{starts}, but is submitted at {seconds(row.submit_us)}"
    if run_us < 0:
        yield "negative run", f"finishes at {seconds(end_us)}, but {starts}"
    for name, value, later, earlier in (
        ("execution_time", row.run_us, end_us, start_us),
        ("waiting_time", row.wait_us, start_us, row.submit_us),
        ("turnaround_time", row.flow_us, end_us, row.submit_us),
    ):
        if value is None or earlier is None:
            continue
        if abs(value - (later - earlier)) > ROUNDING_US:
            difference = seconds(later - earlier)
            yield "times", f"{name} is {seconds(value)}, but its times differ by {difference}"
    if row.stretch is None or row.submit_us is None or run_us < 0:
        return
    flow_us = end_us - row.submit_us
    least = (flow_us - ROUNDING_US) / (run_us + ROUNDING_US)
    most = (flow_us + ROUNDING_US) / (run_us - ROUNDING_US) if run_us > ROUNDING_US else math.inf
    if not least - _LAST_DIGIT <= row.stretch <= most + _LAST_DIGIT:
        actual = f"its times result in {flow_us / run_us:.6f}" if run_us else "its run time is 0"
        yield "times", f"stretch is {row.stretch:.6f}, but {actual}"
