"""Jobs as the user submitted them, their profiles, and workloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.units import to_us


class Job(msgspec.Struct, frozen=True):
    """What the user submitted: one job of a workload.

    Attributes
    ----------
    id : str
        Unique in the workload, without Batsim's ``w0!`` prefix.
    n_nodes : int
        Requested number of nodes, at least 1.
    submit_us : int
        Submission date in microseconds from the workload's start.
    walltime_us : int or None
        Upper bound on the run time; Batsim kills the job there. None: no bound.
    profile : str
        Name of the profile that says what the job does.
    extra : dict
        Further fields of the job's JSON; Batsim hands them to the scheduler untouched.
    """

    id: str
    n_nodes: int
    submit_us: int
    walltime_us: int | None
    profile: str
    extra: dict[str, Any] = {}


class Workload(msgspec.Struct, frozen=True):
    """Jobs in the order of the file they came from, with their profiles.

    Attributes
    ----------
    name : str
        What to call it in reports (a file's stem, a generator's name).
    n_nodes : int
        Nodes of the machine that the workload is meant for (Batsim's ``nb_res``).
    jobs : tuple of Job
    profiles : dict
        Batsim profile JSON by name.
    notes : tuple of str
        What an importer or generator did on the way (dropped, clamped, capped jobs), for people.
    """

    name: str
    n_nodes: int
    jobs: tuple[Job, ...]
    profiles: dict[str, dict[str, Any]]
    notes: tuple[str, ...] = ()


def duration_us(profiles: dict[str, dict[str, Any]], name: str, speed_flops: float = 1e9) -> int:
    """How long a profile runs, in microseconds, when no network model is needed.

    Raises
    ------
    InputError
        For a profile that needs Batsim's network model (communications, parallel tasks, I/O).
    """
    profile = profiles[name]
    kind = profile.get("type")
    if kind == "delay":
        return to_us(profile["delay"])
    if kind == "parallel_homogeneous" and not profile.get("com"):
        return to_us(profile["cpu"] / speed_flops)
    if kind == "composed":
        once = sum(duration_us(profiles, part, speed_flops) for part in profile["seq"])
        return int(profile.get("repeat", 1)) * once
    raise InputError(
        f"profile {name!r} of type {kind!r} needs a network model: run it with Batsim",
        expected="delay, composed of delays, or parallel_homogeneous without communication",
    )


def with_parts(profiles: dict[str, dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    """A profile and those it is composed of, by name; InputError for a part that is unknown."""
    found: dict[str, dict[str, Any]] = {}
    names = [name]
    while names:
        name = names.pop()
        if name in found:
            continue
        if name not in profiles:
            raise InputError(f"unknown profile {name!r}")
        found[name] = profiles[name]
        names += reversed(found[name].get("seq", ()))
    return found


def leg_durations_us(
    profiles: dict[str, dict[str, Any]], name: str, speed_flops: float = 1e9
) -> Iterator[int]:
    """The delays of a profile in their order, each a wait of its own; see `duration_us`."""
    profile = profiles[name]
    if profile.get("type") != "composed":
        yield duration_us(profiles, name, speed_flops)
        return
    for _ in range(int(profile.get("repeat", 1))):
        for part in profile["seq"]:
            yield from leg_durations_us(profiles, part, speed_flops)


def batsim_number(us: int) -> int | float:
    """A time as Batsim workloads write it: seconds, whole ones as integers."""
    whole, part = divmod(us, 1_000_000)
    return us / 1_000_000 if part else whole


def job_fields(job: Job, prefix: str = "") -> dict[str, Any]:
    """The job's Batsim JSON, its extra fields last."""
    fields: dict[str, Any] = {"id": prefix + job.id, "subtime": batsim_number(job.submit_us)}
    if job.walltime_us is not None:
        fields["walltime"] = batsim_number(job.walltime_us)
    fields["res"] = job.n_nodes
    fields["profile"] = job.profile
    return fields | job.extra
