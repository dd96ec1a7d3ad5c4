# SPDX-License-Identifier: Apache-2.0
"""Attempts: an attempt is one execution of a job (one Batsim job), first queued, then running."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum, StrEnum

import msgspec

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.traits import USUAL, Traits
from rebat.core.units import FOREVER_US


class Priority(IntEnum):
    """Queue priorities (node-stealing paper, section 7.2.1); the highest priority comes first."""

    REGULAR = 1
    VICTIM = 2
    FAILED = 3


class Cause(StrEnum):
    """Reasons why an attempt ends."""

    COMPLETED = "completed"
    JOB_FAILED = "job failed"
    SILENT_ERROR = "silent error"
    """The attempt ended with an error, and the job runs again."""
    WALLTIME = "walltime"
    NODE_FAILURE = "node failure"
    STOLEN = "stolen"
    MOVED = "moved"
    """The job stopped to continue on other nodes."""
    PREEMPTED = "preempted"
    """The attempt was stopped to free nodes for another job."""
    HORIZON = "horizon"
    """rebat ended a job that has no end."""
    MOLDED = "molded"
    """The attempt never ran: the job started on another number of nodes, as a new attempt."""
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    """A user or an administrator ended the job. Only recorded runs have this cause."""


class When(StrEnum):
    """When a running attempt is stopped. This determines how much work it keeps."""

    NOW = "now"
    """Immediately. The attempt keeps only the work of its last checkpoint."""
    CHECKPOINT = "checkpoint"
    """After a checkpoint that starts now."""
    NEXT_CHECKPOINT = "next checkpoint"
    """After the next regular checkpoint of the attempt."""
    RESIZE = "resize"
    """Immediately, without losing work. Only malleable jobs that move can do this."""
    IMAGE = "image"
    """Immediately, without losing work, because the batch system writes a checkpoint.

    The job spends the time for this checkpoint when it continues (section 3 of Rodríguez-Pascual et
    al. 2019).
    """


SECOND_ORDER = "for a failed job"
"""Reason of a preemption in favour of a job that a failure interrupted."""

SPARE = "spare"
"""Reason of the drains of spare nodes, which replace failed nodes."""

OVER = frozenset({Cause.COMPLETED, Cause.JOB_FAILED})
"""Causes of the end of jobs that did all their work, including the final checkpoint."""

INTERRUPTED = frozenset({Cause.NODE_FAILURE, Cause.STOLEN, Cause.MOVED, Cause.PREEMPTED})
"""Causes of the end of an attempt after which its job continues from the last checkpoint."""


def job_name(job_id: str) -> str:
    """Return the name of a job or an attempt without the name of its workload.

    >>> job_name("w0!12")
    '12'
    """
    return job_id.partition("!")[2]


def workload_name(job_id: str) -> str:
    """Return the name of the workload of a job or an attempt.

    >>> workload_name("w0!12")
    'w0'
    """
    return job_id.partition("!")[0]


def resubmission_id(job_id: str, number: int) -> str:
    """Return the id of a resubmission of a job. The first resubmission has number 1.

    >>> resubmission_id("w0!12", 3)
    'w0!12#3'
    """
    return f"{job_id}#{number}"


def hold_id(job_id: str, serial: int, lives: int) -> str:
    """Return the id of nodes that are held for a job. ``lives`` is how often they were chosen.

    >>> hold_id("w0!12", 7, 1), hold_id("w0!12", 7, 2)
    ('w0!12~7', 'w0!12~7~')
    """
    return f"{job_id}~{serial}" + "~" * (lives - 1)


def split_attempt(name: str) -> tuple[str, int]:
    """Return the id of the job, and the number of the resubmission (0 for the original job).

    >>> split_attempt("12#3"), split_attempt("12"), split_attempt("12#03")
    (('12', 3), ('12', 0), ('12#03', 0))
    """
    base, _, digits = name.rpartition("#")
    decimal = digits.isascii() and digits.isdecimal() and len(digits) < 10
    number = int(digits) if base and decimal else 0
    return (base, number) if number and name == resubmission_id(base, number) else (name, 0)


def attempt_profile(name: str, profile: str) -> str:
    """Return the profile name of a resubmission, given the profile name of the previous attempt.

    >>> attempt_profile("12#1", "delay5"), attempt_profile("12#2", "12#1:delay5")
    ('12#1:delay5', '12#2:delay5')
    """
    return f"{name}:{profile.partition(':')[2] or profile}"


def check_ids(ids: Collection[str]) -> None:
    """Check that no job of a workload has the id of a resubmission of another job.

    Batsim aborts if a job is registered under an existing id.

    Raises
    ------
    InputError
        If a job has the id of a resubmission of another job. The error names the first such job.
    """
    unique = set(ids)
    for name in ids:
        base, number = split_attempt(name)
        if number and base in unique:
            raise taken_id(name, base)


def taken_id(name: str, base: str) -> InputError:
    """Return the error for a job with the id of a resubmission of another job."""
    return InputError(
        f"has the id of a resubmission of job {base}",
        f"job {name}",
        "another id: ID#1, ID#2, ... are the resubmissions of job ID",
    )


class Attempt(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A request for nodes. The real run time is not included: schedulers must not know it.

    Attributes
    ----------
    id : str
        Id of the Batsim job (``w0!7``; ``w0!7#1`` for the first resubmission).
    job_id : str
        Batsim id of the original job.
    serial : int
        Position of the attempt in the order in which attempts entered the queue. Every queue order
        uses it last, to break ties.
    job_serial : int
        Position of the original job in the order of submissions.
    number : int
        Number of the attempt of the job: 0 for the original attempt, 1 for the first resubmission.
    n_nodes : int
    walltime_us : int
        Maximum run time of this attempt in microseconds, or FOREVER_US if the user set no walltime.
        An attempt that continues from a checkpoint has a shorter walltime than the attempt before:
        without the time for the work and the checkpoints that the job keeps, but with the time to
        load the checkpoint. It can be longer if loading takes longer than the work that is kept.
    submit_us, queued_us : int
        Submission time of the original job, and time at which this attempt entered the queue.
    priority : int
    priority_class : int
        Priority class of the job (`Traits`), for the queue order ``priority``.
    traits : Traits
        Properties of the job, for example its user.
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
    priority_class: int = 0
    traits: Traits = USUAL

    @property
    def has_walltime(self) -> bool:
        """Whether the user set a walltime."""
        return self.walltime_us < FOREVER_US


class Running(msgspec.Struct, frozen=True, gc=False):
    """An attempt that holds nodes."""

    attempt: Attempt
    start_us: int
    nodes: NodeSet

    @property
    def id(self) -> str:
        """Id of the attempt."""
        return self.attempt.id

    @property
    def job_id(self) -> str:
        """Id of the job."""
        return self.attempt.job_id

    @property
    def n_nodes(self) -> int:
        """Number of nodes that the attempt requests."""
        return self.attempt.n_nodes

    @property
    def planned_end_us(self) -> int:
        """The latest possible end of the attempt: its start plus its walltime."""
        return min(self.start_us + self.attempt.walltime_us, FOREVER_US)
