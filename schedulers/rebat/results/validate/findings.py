# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a job table, and what is known of the run that it tells of."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.core.units import to_s
from rebat.models.failures.events import MachineEvent

ROUNDING_US = 1
"""Dates are printed in microseconds: the difference of two may be off by so much."""


class Finding(msgspec.Struct, frozen=True):
    """Something that cannot be; ``kind`` is a key of ``KINDS``, ``line`` the line of the file."""

    kind: str
    line: int
    text: str


KINDS = {
    "overlap": "two jobs on one node",
    "dead node": "a job on a node that is down",
    "outside": "a node that the machine has not",
    "node twice": "a node listed twice",
    "size": "not as many nodes as requested",
    "walltime": "longer than the walltime",
    "run time": "not the run time of the profile",
    "state": "an end that the job cannot have had",
    "early start": "started before its submission",
    "negative run": "finished before it started",
    "times": "columns that contradict each other",
    "request": "not what the workload asks for",
    "lost": "a job of the workload without a row",
    "unknown": "a row for no job of the workload",
    "doubled": "several rows of one id",
    "attempts": "resubmissions that do not follow each other, or are missing",
}
"""What is looked for, in the order in which it is told."""


class Reference(msgspec.Struct, frozen=True):
    """What to hold a job table against; None where it is not known.

    ``slack_us``: how long a job may outlive the failure of one of its nodes, and its walltime; on a
    platform with network latency a kill takes some messages.
    ``resubmits``: whether the scheduler runs again what it kills, so that a job cannot end with a
    kill; None: if it did so for some job, or if nodes fail.
    ``six_digits``: whether resubmissions have lengths and walltimes of six digits (``digits=six``);
    None: if their rows look so.
    ``by_rebat``: whether rebat made the resubmissions; None: if it named the profile of one.
    ``ended``: ids of jobs that were ended for good, as they have no end of their own.
    """

    n_nodes: int | None = None
    events: Sequence[MachineEvent] = ()
    workload: Workload | None = None
    slack_us: int = 0
    resubmits: bool | None = None
    six_digits: bool | None = None
    by_rebat: bool | None = None
    ended: frozenset[str] = frozenset()

    @property
    def endless(self) -> frozenset[str]:
        """Ids of jobs without an end of their own: they may be killed, and not run again."""
        jobs = self.workload.jobs if self.workload else ()
        return self.ended | {job.id for job in jobs if traits_of(job.extra).eternal}


def seconds(us: int) -> str:
    """A time for people, all its digits.

    >>> seconds(1_500_000)
    '1.5 s'
    """
    return f"{to_s(us):.6f}".rstrip("0").rstrip(".") + " s"
