# SPDX-License-Identifier: Apache-2.0
"""Findings of the validation of a job table, and the data with which the table is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.core.units import to_s
from rebat.models.failures.events import MachineEvent

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
