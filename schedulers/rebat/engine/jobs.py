# SPDX-License-Identifier: Apache-2.0
"""The engine's own record of a job: Batsim knows executions, not who resubmitted what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, duration_us
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us

SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"


NO_LEGS: Iterator[int] = iter(())


class EngineJob(msgspec.Struct, gc=False):
    """One Batsim job, static or registered; times in microseconds.

    There may be millions, so that what is over is let go. ``asked`` is what its submission tells,
    the JSON of a registered job; None: it was told. ``profiles`` are its own and those that it is
    composed of, also when Batsim has forgotten them; jobs may share them. ``legs`` are the delays
    that are still ahead of a running job, one after the other.
    """

    id: str
    n_nodes: int
    submit_us: int
    walltime_us: int | None
    profile: str
    workload: str
    asked: Job | dict[str, Any] | None
    return_code: int = 0
    profiles: dict[str, dict[str, Any]] = {}
    submitted: bool = False
    start_us: int = -1
    end_us: int = -1
    state: str = ""
    nodes: NodeSet | None = None
    metadata: str = ""
    legs: Iterator[int] = NO_LEGS

    @property
    def running(self) -> bool:
        """Started and not ended."""
        return self.start_us >= 0 and not self.state


def static_job_order(job: EngineJob) -> tuple[int, str]:
    """Batsim submits jobs by date, those of one date by id (as text)."""
    return job.submit_us, job.id


def registered_job(job_id: str, fields: dict[str, Any]) -> EngineJob:
    """A job from a REGISTER_JOB's JSON; raises InputError where Batsim would abort."""
    if any(mark in job_id for mark in "(),|}"):
        raise InputError("a job id must not hold any of ( ) , | }", f"job {job_id!r}")
    workload, _, name = job_id.partition("!")
    if not workload or not name:
        raise InputError("a job id is 'workload!name'", f"job {job_id!r}")
    values = {key: fields.get(key) for key in ("res", "subtime", "profile")}
    n_nodes, subtime, profile = values["res"], values["subtime"], values["profile"]
    walltime = fields.get("walltime", -1)
    if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise InputError(f"res is {n_nodes!r}", f"job {job_id}", "a whole number, 1 or more")
    if not isinstance(subtime, int | float) or not 0 <= subtime <= MAX_SECONDS:
        raise InputError(f"subtime is {subtime!r}", f"job {job_id}", "seconds, 0 or more")
    if not isinstance(profile, str):
        raise InputError(f"profile is {profile!r}", f"job {job_id}", "a profile's name")
    if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
        raise InputError(f"walltime is {walltime!r}", f"job {job_id}", "seconds above 0, or -1")
    return EngineJob(
        job_id, n_nodes, to_us(subtime), None if walltime == -1 else to_us(walltime),
        profile, workload, {**fields, "id": job_id},
    )  # fmt: skip


def progress(profiles: dict[str, dict[str, Any]], name: str, elapsed_us: int) -> dict[str, Any]:
    """What JOB_KILLED says of a job's advance; sequences say which task was under way."""
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
