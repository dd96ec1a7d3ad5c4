# SPDX-License-Identifier: Apache-2.0
"""An attempt is one execution of a job (one Batsim job): queued first, then running."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum, StrEnum

import msgspec

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US


class Priority(IntEnum):
    """Queue priorities of section 7.2.1 of the node-stealing paper; higher goes first."""

    REGULAR = 1
    VICTIM = 2
    FAILED = 3


class Cause(StrEnum):
    """Why an attempt ended; SILENT_ERROR: with an error, and the job is run again.

    MOVED: it goes on on other nodes. PREEMPTED: it made room for another. HORIZON: it has no end of
    its own, and was ended. MOLDED: it never ran, as the job started on another number of nodes, as
    its next attempt.
    """

    COMPLETED = "completed"
    JOB_FAILED = "job failed"
    SILENT_ERROR = "silent error"
    WALLTIME = "walltime"
    NODE_FAILURE = "node failure"
    STOLEN = "stolen"
    MOVED = "moved"
    PREEMPTED = "preempted"
    HORIZON = "horizon"
    MOLDED = "molded"
    REJECTED = "rejected"


class When(StrEnum):
    """When a running attempt is stopped, which decides on what it keeps."""

    NOW = "now"
    """At once: what its last checkpoint holds."""
    CHECKPOINT = "checkpoint"
    """It checkpoints now, and is stopped when that is done."""
    NEXT_CHECKPOINT = "next checkpoint"
    """When its next regular checkpoint is done."""
    RESIZE = "resize"
    """At once, and all is kept: as only a malleable job can, that moves to other nodes."""
    IMAGE = "image"
    """At once, and all is kept in an image that a checkpointer writes and restores; what that costs
    is paid when the job goes on (section 3 of Rodríguez-Pascual et al. 2019)."""


INTERRUPTED = frozenset({Cause.NODE_FAILURE, Cause.STOLEN, Cause.MOVED, Cause.PREEMPTED})
"""Causes after which a job goes on in a further attempt, from its last checkpoint."""


def job_name(job_id: str) -> str:
    """A job, or an attempt, as its workload calls it: without the workload's name.

    >>> job_name("w0!12")
    '12'
    """
    return job_id.partition("!")[2]


def resubmission_id(job_id: str, number: int) -> str:
    """Return the id of a job's resubmission; its first is number 1.

    >>> resubmission_id("w0!12", 3)
    'w0!12#3'
    """
    return f"{job_id}#{number}"


def split_attempt(name: str) -> tuple[str, int]:
    """Return the original job's id and the number of the attempt; 0 for what is no resubmission.

    >>> split_attempt("12#3"), split_attempt("12"), split_attempt("12#03")
    (('12', 3), ('12', 0), ('12#03', 0))
    """
    base, _, digits = name.rpartition("#")
    decimal = digits.isascii() and digits.isdecimal() and len(digits) < 10
    number = int(digits) if base and decimal else 0
    return (base, number) if number and name == resubmission_id(base, number) else (name, 0)


def attempt_profile(name: str, profile: str) -> str:
    """Return the name of the profile of a resubmission, made from the profile before it.

    >>> attempt_profile("12#1", "delay5"), attempt_profile("12#2", "12#1:delay5")
    ('12#1:delay5', '12#2:delay5')
    """
    return f"{name}:{profile.partition(':')[2] or profile}"


def check_ids(ids: Collection[str]) -> None:
    """Refuse jobs of one workload of which one has the id of another one's resubmission.

    Batsim aborts when a job is registered under an id that the workload has.

    Raises
    ------
    InputError
        For the first such job.
    """
    known = set(ids)
    for name in ids:
        base, number = split_attempt(name)
        if number and base in known:
            raise taken_id(name, base)


def taken_id(name: str, base: str) -> InputError:
    """Return the error for a job that has the id of a resubmission of another one."""
    return InputError(
        f"has the id of a resubmission of job {base}",
        f"job {name}",
        "another id: ID#1, ID#2 ... are the resubmissions of job ID",
    )


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """A request for nodes as the scheduler may know it: not how long the job will really run.

    Attributes
    ----------
    id : str
        The Batsim job's id (``w0!7``, ``w0!7#1`` for the first resubmission).
    job_id : str
        The original job's Batsim id.
    serial : int
        Counts queue entries over the whole run: the last key of every order.
    job_serial : int
        Position of the original job in the order of submission.
    number : int
        0 for the original, 1 for its first resubmission.
    n_nodes : int
    walltime_us : int
        FOREVER_US where the user gave none.
    submit_us, queued_us : int
        Submission of the original job; entry of this attempt into the queue.
    priority : int
    """

    id: str
    job_id: str
    serial: int
    job_serial: int
    number: int
    n_nodes: int
    walltime_us: int
    submit_us: int
    queued_us: int
    priority: int = Priority.REGULAR

    @property
    def has_walltime(self) -> bool:
        """Whether the user gave a walltime."""
        return self.walltime_us < FOREVER_US


class Running(msgspec.Struct, frozen=True, gc=False):
    """An attempt that holds nodes."""

    attempt: Attempt
    start_us: int
    nodes: NodeSet

    @property
    def planned_end_us(self) -> int:
        """When the attempt ends at the latest."""
        return min(self.start_us + self.attempt.walltime_us, FOREVER_US)
