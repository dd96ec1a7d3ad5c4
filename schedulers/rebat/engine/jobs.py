# SPDX-License-Identifier: Apache-2.0
"""Jobs of the engine. Each attempt is a separate job, because Batsim has no attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from rebat.core.attempts import job_name
from rebat.core.errors import InputError
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


class EngineJob(EndedJob, gc=False, kw_only=True):
    """A Batsim job, static or registered by the scheduler, until its end."""

    submission: Job | dict[str, Any] | None = None
    """Content of the submission event: the job, or the JSON of a registered job.

    It is None after the event has been sent.
    """
    return_code: int = 0
    profiles: dict[str, dict[str, Any]] = {}
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


_fields_of = attrgetter(*EndedJob.__struct_fields__)


def ended(job: EngineJob) -> EndedJob:
    """Return the record of a job that ended."""
    return EndedJob(*_fields_of(job))


def again(job: EndedJob, place: int) -> EngineJob:
    """Return the ended job at this position as an `EngineJob`, for later decisions about it."""
    return EngineJob(*_fields_of(job), submitted=True, place=place)


def _ended(columns: Mapping[str, Sequence[Any]]) -> Iterator[EndedJob]:
    """Yield the jobs of rows."""
    pairs = zip(columns["workload"], columns["name"], strict=True)
    named = {
        **columns,
        "id": [f"{workload}!{name}" for workload, name in pairs],
        "walltime_us": [None if us < 0 else us for us in columns["walltime_us"]],
        "registered": map(bool, columns["registered"]),
    }
    return map(EndedJob, *(named[name] for name in EndedJob.__struct_fields__))


ENDED = Schema(
    EndedJob,
    numbers=fields("n_nodes", "submit_us", "walltime_us", "start_us", "end_us", "registered"),
    codes=fields("state", "profile", "workload", "metadata"),
    texts={"name": lambda job: job_name(job.id)},
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
    values = {key: fields.get(key) for key in ("res", "subtime", "profile")}
    n_nodes, subtime, profile = values["res"], values["subtime"], values["profile"]
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


def progress(profiles: dict[str, dict[str, Any]], name: str, elapsed_us: int) -> dict[str, Any]:
    """Return the progress of a job in the form that a message JOB_KILLED contains.

    For composed profiles, it includes the progress of the current part.
    """
    profile = profiles[name]
    if profile["type"] != "composed":
        total = duration_us(profiles, name)
        return {"profile_name": name, "progress": elapsed_us / total if total else 1.0}
    parts = profile["seq"] * int(profile.get("repeat", 1))
    index = 0
    while index < len(parts) - 1 and elapsed_us >= duration_us(profiles, parts[index]):
        elapsed_us -= duration_us(profiles, parts[index])
        index += 1
    return {
        "profile_name": name,
        "current_task_index": index,
        "current_task": progress(profiles, parts[index], elapsed_us),
    }


def sequence_progress(
    profiles: dict[str, dict[str, Any]], name: str, elapsed_us: int
) -> dict[str, Any]:
    """Return a job's progress as in Batsim 5, with the repetition of each nested sequence."""
    profile = profiles[name]
    if profile["type"] != "composed":
        return progress(profiles, name, elapsed_us)
    lengths = [duration_us(profiles, part) for part in profile["seq"]]
    repetition = min(elapsed_us // sum(lengths), int(profile.get("repeat", 1)) - 1)
    left_us, index = elapsed_us - repetition * sum(lengths), 0
    while index < len(lengths) - 1 and left_us >= lengths[index]:
        left_us -= lengths[index]
        index += 1
    return {
        "profile_name": name,
        "current_repetition": repetition,
        "current_task_index": index,
        "current_task": sequence_progress(profiles, profile["seq"][index], left_us),
    }
