# SPDX-License-Identifier: Apache-2.0
"""Jobs of the engine: static, registered and ended ones.

Each attempt is a separate job, because Batsim has no attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from rebat.core.attempts import job_name
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs, submission_order
from rebat.core.jobs import Job, duration_us
from rebat.core.nodes import NodeSet
from rebat.core.table import Schema, Table, fields
from rebat.core.units import MAX_SECONDS, to_us

SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"

NO_LEGS: Iterator[int] = iter(())
Profiles = dict[str, dict[str, Any]]


class EndedJob(msgspec.Struct, gc=False, array_like=True):
    """A Batsim job that ended or was rejected. Times are in us, or -1 if it never ran."""

    id: str
    n_nodes: int
    submit_us: int
    walltime_us: int | None
    profile: str
    workload: str
    start_us: int = -1
    end_us: int = -1
    state: str = ""
    nodes: NodeSet | None = None
    metadata: str = ""
    registered: bool = False
    """Whether the scheduler registered the job during the simulation."""


_fields_of = attrgetter(*EndedJob.__struct_fields__)


class EngineJob(EndedJob, gc=False, kw_only=True):
    """A Batsim job, static or registered by the scheduler, until its end."""

    submission: Job | dict[str, Any] | None = None
    """The job, or the JSON of a registered job, until the submission event has been sent."""
    return_code: int = 0
    profiles: Profiles = {}
    """The profile of the job with its parts, even if Batsim has deleted them.

    Several jobs may share this dictionary.
    """
    submitted: bool = False
    legs: Iterator[int] = NO_LEGS
    """Remaining delays of a running job, in order."""
    place: int = -1
    """Position in the list of ended jobs, or -1 before the end."""

    @property
    def running(self) -> bool:
        """Whether the job has started and not ended."""
        return self.start_us >= 0 and not self.state

    def ended(self) -> EndedJob:
        """Return the record of the job after its end."""
        return EndedJob(*_fields_of(self))


def again(job: EndedJob, place: int) -> EngineJob:
    """Return the ended job at this position as an `EngineJob`, for later decisions about it."""
    return EngineJob(*_fields_of(job), submitted=True, place=place)


def _ended(columns: Mapping[str, Sequence[Any]]) -> Iterator[EndedJob]:
    pairs = zip(columns["workload"], columns["name"], strict=True)
    named = {
        **columns,
        "id": [f"{workload}!{name}" for workload, name in pairs],
        "walltime_us": [None if us < 0 else us for us in columns["walltime_us"]],
        "registered": map(bool, columns["registered"]),
    }
    return map(EndedJob, *(named[name] for name in EndedJob.__struct_fields__))


def _name(job: EndedJob) -> str:  # no lambda, because results can be pickled
    return job_name(job.id)


ENDED = Schema(
    EndedJob,
    numbers=fields("n_nodes", "submit_us", "walltime_us", "start_us", "end_us", "registered"),
    codes=fields("state", "profile", "workload", "metadata"),
    texts={"name": _name},
    rare={},
    rows=_ended,
)
"""The columns of ended jobs. The texts are their names, like ``7#2``."""


def ended_jobs(jobs: Iterable[EndedJob] = ()) -> Table[EndedJob]:
    """Return ended jobs as the table in which the engine stores them."""
    return Table(ENDED, jobs)


def registered_job(job_id: str, fields: dict[str, Any]) -> EngineJob:
    """Return the job that REGISTER_JOB describes. If Batsim would abort, raise InputError."""
    if any(mark in job_id for mark in "(),|}"):
        raise InputError("a job id must not contain ( ) , | or }", f"job {job_id!r}")
    workload, _, name = job_id.partition("!")
    if not workload or not name:
        raise InputError("a job id must be 'workload!name'", f"job {job_id!r}")
    n_nodes, subtime, profile = (fields.get(key) for key in ("res", "subtime", "profile"))
    walltime = fields.get("walltime", -1)
    if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise InputError(f"res is {n_nodes!r}", f"job {job_id}", "a whole number of at least 1")
    if not isinstance(subtime, int | float) or not 0 <= subtime <= MAX_SECONDS:
        raise InputError(f"subtime is {subtime!r}", f"job {job_id}", "seconds, at least 0")
    if not isinstance(profile, str):
        raise InputError(f"profile is {profile!r}", f"job {job_id}", "the name of a profile")
    if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
        raise InputError(f"walltime is {walltime!r}", f"job {job_id}", "seconds above 0, or -1")
    return EngineJob(
        job_id,
        n_nodes,
        to_us(subtime),
        None if walltime == -1 else to_us(walltime),
        profile,
        workload,
        submission={**fields, "id": job_id},
        registered=True,
    )


def progress(
    profiles: Profiles, name: str, elapsed_us: int, repetitions: bool = False
) -> dict[str, Any]:
    """Return the progress of a killed job as in Batsim's message, including its current part.

    Batsim 4 counts the parts of all repetitions of a composed profile. With ``repetitions``, the
    result contains the repetition and the part within it, as in Batsim 5.
    """
    profile = profiles[name]
    if profile["type"] != "composed":
        total = duration_us(profiles, name)
        return {"profile_name": name, "progress": elapsed_us / total if total else 1.0}
    lengths = [duration_us(profiles, part) for part in profile["seq"]]
    repetition, index = int(profile.get("repeat", 1)) - 1, 0
    if total := sum(lengths):
        repetition = min(elapsed_us // total, repetition)
    left_us = elapsed_us - repetition * total
    while index < len(lengths) - 1 and left_us >= lengths[index]:
        left_us -= lengths[index]
        index += 1
    place = (
        {"current_repetition": repetition, "current_task_index": index}
        if repetitions
        else {"current_task_index": repetition * len(lengths) + index}
    )
    part = progress(profiles, profile["seq"][index], left_us, repetitions)
    return {"profile_name": name, **place, "current_task": part}


# ---- static jobs

Placed = tuple[str, Job]
"""The name of a workload, and one of its jobs."""

_CHUNK = 4096


class StaticJobs:
    """The jobs of all workloads. There may be millions, so job objects are created on access.

    The attribute ``n`` is the number of jobs.
    """

    def __init__(self) -> None:
        self._workloads: list[tuple[str, Jobs]] = []
        self.n = 0

    def add(self, workload: str, jobs: Jobs) -> None:
        """Add the jobs of a workload with this name."""
        self._workloads.append((workload, jobs))
        self.n += len(jobs)

    def groups(self) -> Iterator[list[Placed]]:
        """Yield the jobs of each submission time, ordered by id as text, as Batsim does."""
        for _, same in groupby(self._in_order(), lambda placed: placed[1].submit_us):
            yield [*same]

    def _in_order(self) -> Iterator[Placed]:
        order = submission_order(self._workloads)
        for first in range(0, self.n, _CHUNK):
            yield from map(self._at, order[first : first + _CHUNK].tolist())

    def find(self, job_id: str) -> Placed | None:
        """Return the job with an id such as ``w0!12``, or None if there is none.

        The first call takes time proportional to the number of jobs.
        """
        name, _, own = job_id.partition("!")
        for workload, jobs in self._workloads:
            if workload == name and (row := jobs.ids.position(own)) is not None:
                return workload, jobs.at(row)
        return None

    def _at(self, row: int) -> Placed:
        for workload, jobs in self._workloads:
            if row < len(jobs):
                return workload, jobs.at(row)
            row -= len(jobs)
        raise IndexError(row)
