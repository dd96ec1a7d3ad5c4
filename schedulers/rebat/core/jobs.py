# SPDX-License-Identifier: Apache-2.0
"""Jobs as submitted by the users, their profiles, and workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short
from rebat.core.units import MAX_SECONDS, US_PER_S, to_us


class Job(msgspec.Struct, frozen=True, gc=False):
    """A job of a workload, as submitted by the user.

    Attributes
    ----------
    id : str
        Unique id in the workload, without Batsim's ``w0!`` prefix.
    n_nodes : int
        Requested number of nodes, at least 1.
    submit_us : int
        Time of submission in microseconds since the start of the workload.
    walltime_us : int or None
        Maximum run time, after which Batsim kills the job; None means no limit.
    profile : str
        Name of the profile that defines the work of the job.
    extra : dict
        Other fields of the JSON of the job. Batsim forwards them unchanged to the scheduler.
    """

    id: str
    n_nodes: int
    submit_us: int
    walltime_us: int | None
    profile: str
    extra: dict[str, Any] = {}


class Workload(msgspec.Struct, frozen=True):
    """Jobs in the order of their file, with their profiles.

    Attributes
    ----------
    name : str
        Name in reports: the stem of a file, or the name of a generator.
    n_nodes : int
        Number of nodes of the intended machine (Batsim's ``nb_res``).
    jobs : sequence of Job
    profiles : dict
        Batsim profile JSON by name.
    notes : tuple of str
        Sentences about the origin of the workload, and about changes that an importer made to its
        jobs.
    machine : dict, optional
        The recorded machine, from accounting records: ``nodes`` (names in compact form like
        ``node[1-4]``, in the order of the node numbers), ``cores_per_node``, ``partitions`` (see
        `workloads.machine`), ``origin_s`` (time 0 in seconds since the Unix epoch),
        ``mean_wait_s`` (recorded mean wait of the jobs).
    """

    name: str
    n_nodes: int
    jobs: Sequence[Job]
    profiles: dict[str, dict[str, Any]]
    notes: tuple[str, ...] = ()
    machine: dict[str, Any] | None = None


Profiles = Mapping[str, dict[str, Any]]
"""Batsim profile JSON by name."""

PROBES = "rebat"
"""Workload name of probe jobs, which never run.

rebat registers them only because Batsim acknowledges registrations (`wire.instants`).
"""

MAX_TASKS = 1_000_000
"""Maximum number of executions of a composed profile, including repeats."""

MAX_DEPTH = 100
"""Maximum depth of nested composed profiles."""


HOMOGENEOUS = ("parallel_homogeneous", "ptask_homogeneous")
"""Profiles in which each host computes the same amount: the names of Batsim 4 and 5."""


def duration_us(profiles: Profiles, name: str, speed_flops: float | None = 1e9) -> int:
    """Return the run time (us) of a profile that needs no network model.

    ``speed_flops`` is the speed of the nodes in flop/s. If it is None (unknown), profiles with
    computations have no duration.
    """
    if name in profiles and profiles[name].get("type") != "composed":
        return _alone_us(name, profiles[name], speed_flops)
    alone_us = partial(_alone_us, speed_flops=speed_flops)
    return _extents(profiles, (name,), alone_us)[name].us


def _alone_us(name: str, profile: dict[str, Any], speed_flops: float | None) -> int:
    try:
        length_us = _length_us(profile, speed_flops)
    except InputError as error:
        raise error.at(f"profile {name!r}") from None
    if length_us is not None:
        return length_us
    raise InputError(
        f"profile {name!r} of type {profile.get('type')!r} needs a network model",
        expected="delay, composed of delays, or parallel_homogeneous without communication; "
        "or a run with Batsim (rebat serve)",
    )


def check_profiles(profiles: Profiles) -> None:
    """Raise InputError if a composed profile is invalid."""
    composed = tuple(n for n, profile in profiles.items() if profile.get("type") == "composed")
    _extents(profiles, composed, lambda _, profile: _length_us(profile, None) or 0)


class _Extent(NamedTuple):
    """Extent of a profile: duration (us), number of executions, and depth of nested profiles."""

    us: int
    tasks: int = 1
    depth: int = 0


def _extents(
    profiles: Profiles, names: Sequence[str], alone_us: Callable[[str, dict[str, Any]], int]
) -> dict[str, _Extent]:
    """Return the extent of each of these profiles and of all their parts."""
    extents: dict[str, _Extent] = {}
    for name in _parts_first(profiles, names):
        profile = profiles[name]
        if profile.get("type") == "composed":
            extents[name] = _composed(name, profile, [extents[part] for part in profile["seq"]])
        else:
            extents[name] = _Extent(alone_us(name, profile))
    return extents


def _composed(name: str, profile: dict[str, Any], parts: Sequence[_Extent]) -> _Extent:
    repeat = profile.get("repeat", 1)
    extent = _Extent(
        repeat * sum(part.us for part in parts),
        repeat * sum(part.tasks for part in parts),
        1 + max(part.depth for part in parts),
    )
    where = f"profile {name!r}"
    if extent.depth > MAX_DEPTH:
        raise InputError(
            "contains profiles nested too deeply", where, f"at most {MAX_DEPTH} levels"
        )
    if extent.tasks > MAX_TASKS:
        expected = f"at most {MAX_TASKS}, including repeats"
        raise InputError(f"runs {extent.tasks} profiles in sequence", where, expected)
    if extent.us > MAX_SECONDS * US_PER_S:
        raise InputError(f"lasts {extent.us // US_PER_S} s", where, f"at most {MAX_SECONDS:.0e} s")
    return extent


def _parts_first(profiles: Profiles, names: Sequence[str]) -> Iterable[str]:
    """Return these profiles and all their parts. The parts of a profile come before the profile."""
    parts: dict[str, list[str]] = {}
    open_names = list(reversed(names))
    while open_names:
        name = open_names.pop()
        if name not in parts:
            parts[name] = _parts(profiles, name)
            open_names += parts[name]
    try:
        return tuple(TopologicalSorter(parts).static_order())
    except CycleError as error:
        cycle = " of ".join(repr(name) for name in reversed(error.args[1]))
        raise InputError(f"profile contains itself: {cycle}") from None


def _parts(profiles: Profiles, name: str) -> list[str]:
    if name not in profiles:
        raise InputError(f"unknown profile {name!r}")
    profile, where = profiles[name], f"profile {name!r}"
    if profile.get("type") != "composed":
        return []
    seq, repeat = profile.get("seq"), profile.get("repeat", 1)
    if not isinstance(seq, list) or not seq or not all(isinstance(part, str) for part in seq):
        raise InputError("has no parts", f"{where}: seq", "a list of profile names")
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= MAX_TASKS:
        expected = f"a whole number from 1 to {MAX_TASKS}"
        raise InputError(f"is {short(repeat)}", f"{where}: repeat", expected)
    for part in seq:
        if part not in profiles:
            raise InputError(f"unknown profile {part!r}", f"{where}: seq")
    return list(dict.fromkeys(seq))


def _length_us(profile: dict[str, Any], speed_flops: float | None) -> int | None:
    """Return the run time (us) of a profile that is not composed, or None if it is unknown."""
    kind = profile.get("type")
    if kind == "delay":
        return delay_us(profile)
    if kind in HOMOGENEOUS and not profile.get("com") and speed_flops is not None:
        return to_us(number(profile, "cpu", MAX_SECONDS * speed_flops) / speed_flops)
    return None


def delay_us(profile: dict[str, Any]) -> int:
    """Return the duration of a delay profile in microseconds."""
    length_us = to_us(number(profile, "delay", MAX_SECONDS, "seconds", least="0.000001"))
    if length_us < 1:
        expected = f"seconds, from 0.000001 to {MAX_SECONDS:.0e}; Batsim refuses 0"
        raise InputError(f"is {short(profile['delay'])}", "delay", expected)
    return length_us


def delays_us_of(profiles: Sequence[dict[str, Any]]) -> npt.NDArray[np.int64]:
    """Return the durations of delay profiles in microseconds. For the errors, see `delay_us`."""
    try:
        times_us = times_us_of([profile["delay"] for profile in profiles], least_us=1)
    except (KeyError, ValueError, OverflowError):
        times_us = np.array([delay_us(profile) for profile in profiles], np.int64)
    return times_us


def times_us_of(values_s: list[Any], least_us: int = 0) -> npt.NDArray[np.int64]:
    """Return times in microseconds. Raise ValueError if a value is not a valid time in seconds."""
    if not set(map(type, values_s)) <= {int, float}:
        raise ValueError
    times_s = np.array(values_s, float)
    if not ((times_s >= 0) & (times_s <= MAX_SECONDS)).all():
        raise ValueError
    times_us = rounded_us(times_s)
    if (times_us < least_us).any():
        raise ValueError
    return times_us


def rounded_us(times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return times in seconds as whole microseconds."""
    times_us: npt.NDArray[np.int64] = np.rint(times_s * US_PER_S).astype(np.int64)
    return times_us


def number(
    fields: dict[str, Any], key: str, most: float, kind: str = "a number", least: str = "0"
) -> float:
    """Return a field as a number. If it is not from 0 to ``most``, raise InputError.

    The error states ``least`` as the smallest value. The caller checks it if it is not 0.
    """
    value: Any = fields.get(key)
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    if plain and 0 <= value <= most:
        return float(value)
    problem = f"is {short(value)}" if key in fields else "is missing"
    raise InputError(problem, key, f"{kind}, from {least} to {most:.0e}")


def with_parts(profiles: Profiles, name: str) -> dict[str, dict[str, Any]]:
    """Return a profile and its parts by name. For the errors, see `check_profiles`."""
    if name in profiles and profiles[name].get("type") != "composed":
        return {name: profiles[name]}
    return {part: profiles[part] for part in _parts_first(profiles, (name,))}


def leg_durations_us(profiles: Profiles, name: str, speed_flops: float = 1e9) -> Iterator[int]:
    """Yield the run time (us) of each part of a profile, in the order of execution.

    For the errors, see `duration_us`.
    """
    profile = profiles[name]
    if profile.get("type") != "composed":
        yield duration_us(profiles, name, speed_flops)
        return
    for _ in range(profile.get("repeat", 1)):
        for part in profile["seq"]:
            yield from leg_durations_us(profiles, part, speed_flops)


def batsim_number(us: int) -> int | float:
    """Return a time in the form of Batsim's workloads: in seconds, as an integer if possible."""
    whole, part = divmod(us, 1_000_000)
    return us / 1_000_000 if part else whole


def job_fields(job: Job, job_id: str = "") -> dict[str, Any]:
    """Return the Batsim JSON of a job, optionally with another id. Additional fields are last."""
    fields: dict[str, Any] = {"id": job_id or job.id, "subtime": batsim_number(job.submit_us)}
    if job.walltime_us is not None:
        fields["walltime"] = batsim_number(job.walltime_us)
    fields["res"] = job.n_nodes
    fields["profile"] = job.profile
    fields |= job.extra
    return fields
