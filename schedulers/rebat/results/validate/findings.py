# SPDX-License-Identifier: Apache-2.0
"""Findings of the validation of a job table, and the checks of single rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

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
        "request",
        "lost",
        "attempts",
    }
)
"""Kinds that do not count as errors in a recorded run.

On a real machine, jobs may share nodes, change size, exceed their walltime while they are killed,
and have other final states than in a simulation.
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
    ended_us
        Time (us) at which rebat killed each job that never completes, by id.
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


def _outside(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    last = int(row.nodes.intervals[-1, 1]) if len(row.nodes) else -1
    if reference.n_nodes is not None and last >= reference.n_nodes:
        yield "outside", f"runs on node {last}, but the machine has {reference.n_nodes} nodes"


def _twice(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.duplicate_node is not None:
        yield "node twice", f"lists node {row.duplicate_node} twice"


def _size(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.ran and row.n_nodes is not None and len(row.nodes) != row.n_nodes:
        yield "size", f"ran on {len(row.nodes)} nodes, but requested {row.n_nodes}"
    elif row.ran and not len(row.nodes):
        yield "size", "ran without nodes"
    elif not row.ran and len(row.nodes):
        yield "size", f"never started, but has {len(row.nodes)} nodes"


def _walltime(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    run = row.held_us
    if run is None or row.walltime_us is None:
        return
    if run > row.walltime_us + ROUNDING_US + reference.slack_us:
        yield "walltime", f"ran {seconds(run)}, but its walltime is {seconds(row.walltime_us)}"


def _state(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    if row.success is not None and row.success != (row.state == SUCCESS):
        yield "state", f"success is {int(row.success)}, but final_state is {row.state}"
    if row.ran == (row.state == REJECTED):
        yield "state", f"is {row.state}, but {'ran' if row.ran else 'never started'}"
    if row.state != WALLTIME or row.start_us is None or row.end_us is None:
        return
    if row.walltime_us is None:
        if row.walltime_listed:
            yield "state", "reached its walltime, but has none"
    elif row.end_us - row.start_us < row.walltime_us - ROUNDING_US - reference.slack_us:
        ran = seconds(row.end_us - row.start_us)
        yield "state", f"reached its walltime of {seconds(row.walltime_us)}, but ran {ran}"


def _order(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.start_us is None or row.end_us is None:
        return
    starts = f"starts at {seconds(row.start_us)}"
    if row.submit_us is not None and row.start_us < row.submit_us:
        yield "early start", f"{starts}, but is submitted at {seconds(row.submit_us)}"
    if row.end_us < row.start_us:
        yield "negative run", f"finishes at {seconds(row.end_us)}, but {starts}"


def _times(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    for name, value, later, earlier in (
        ("execution_time", row.run_us, row.end_us, row.start_us),
        ("waiting_time", row.wait_us, row.start_us, row.submit_us),
        ("turnaround_time", row.flow_us, row.end_us, row.submit_us),
    ):
        if value is None or later is None or earlier is None:
            continue
        if abs(value - (later - earlier)) > ROUNDING_US:
            difference = seconds(later - earlier)
            yield "times", f"{name} is {seconds(value)}, but its times differ by {difference}"


def _stretch(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    """Check that the stretch is turnaround divided by run time, up to the rounding error."""
    if row.stretch is None or row.start_us is None or row.end_us is None or row.submit_us is None:
        return
    run, flow = row.end_us - row.start_us, row.end_us - row.submit_us
    if run < 0:
        return
    least = (flow - ROUNDING_US) / (run + ROUNDING_US)
    most = (flow + ROUNDING_US) / (run - ROUNDING_US) if run > ROUNDING_US else math.inf
    if not least - _LAST_DIGIT <= row.stretch <= most + _LAST_DIGIT:
        actual = f"its times result in {flow / run:.6f}" if run else "its run time is 0"
        yield "times", f"stretch is {row.stretch:.6f}, but {actual}"


Check = Callable[[JobRecord, Reference], Iterator[Wrong]]

CHECKS: tuple[Check, ...] = (
    _outside,
    _twice,
    _size,
    _walltime,
    _state,
    _order,
    _times,
    _stretch,
)
