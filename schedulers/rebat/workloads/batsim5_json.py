# SPDX-License-Identifier: Apache-2.0
"""Conversion of workloads between the forms of Batsim 4 and Batsim 5.

Batsim 5 has other types of profiles. It reads additional fields only from ``extra_data``, and
rejects a walltime of -1. It interprets each name that contains the name of the workload as a
complete id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rebat.core.batsim5 import (
    BY_FOUR,
    EXTRA,
    FAILS,
    FIVE_TYPES,
    FORMS,
    STRATEGY,
    as_delay,
    as_sequence,
    form_of_five,
    packed,
    unmistakable,
    unpacked,
)
from rebat.core.errors import InputError, short
from rebat.core.jobs import Job, Workload, job_fields, with_parts
from rebat.core.units import to_us

_JOB_KEYS = ("id", "subtime", "walltime", "res", "profile")
_RESERVED = frozenset({*_JOB_KEYS, EXTRA})
_COMPLETE = re.compile(r"w\d+!")
"""The beginning of a complete id. In Batsim, the names of workloads are w0, w1, and so on."""


# ---- reading


def is_five(profiles: Mapping[str, Any]) -> bool:
    """Return whether any profile has a type of Batsim 5."""
    return any(
        isinstance(profile, dict) and profile.get("type") in FIVE_TYPES
        for profile in profiles.values()
    )


def profiles_of_five(profiles: Mapping[str, Any]) -> dict[str, Any]:
    """Return profiles in Batsim 4's form. Invalid profiles are not changed."""
    result = {}
    for name, profile in profiles.items():
        try:
            result[name] = _profile(profile)
        except InputError as error:
            raise error.at(f"profile {name!r}") from None
    for name in [*result]:
        parts = result.get(name, {}).pop(FAILS, ()) if isinstance(result.get(name), dict) else ()
        for part in parts:
            result.pop(part, None)
    return result


def _profile(profile: Any) -> Any:
    if not isinstance(profile, dict):
        return profile
    if profile.get("type") in BY_FOUR:
        expected = f"{BY_FOUR[profile['type']].five}, as in the rest of the workload"
        raise InputError(f"is {short(profile['type'])}", "type", expected)
    form = form_of_five(str(profile.get("type")), profile.get(STRATEGY))
    if form is None:
        return profile
    fields = {"type": form.four, **{k: v for k, v in profile.items() if k in (*form.fields, "ret")}}
    if isinstance(fields.get("seq"), list):
        fields["seq"] = [_plain(part) for part in fields["seq"]]
    return as_delay(fields | unpacked(profile.get(EXTRA), form.own()))


def job_of_five(job: Any) -> Any:
    """Return a job in Batsim 4's form. An invalid job is not changed."""
    if not isinstance(job, dict):
        return job
    fields = {key: _plain(job[key]) for key in _JOB_KEYS if key in job}
    try:
        return fields | unpacked(job.get(EXTRA), _RESERVED)
    except InputError as error:
        raise error.at(f"job {short(job.get('id'))}") from None


def _plain(value: Any) -> Any:
    """Return a name without the name of its workload. Other values are not changed."""
    return _COMPLETE.sub("", value, count=1) if _is_complete(value) else value


def _is_complete(value: Any) -> bool:
    return isinstance(value, str) and _COMPLETE.match(value) is not None


# ---- writing


def to_five(workload: Workload, name: str = "w0") -> dict[str, Any]:
    """Return a workload as Batsim 5's JSON object, in which ``jobs`` is an iterator.

    Profiles that no job needs are omitted, because Batsim 5 deletes them and can crash later.

    Parameters
    ----------
    name : str
        The name that Batsim gives to the workload: w0 for the first option ``-w``.
    """
    document: dict[str, Any] = {"nb_res": workload.n_nodes}
    if workload.notes:
        document["notes"] = list(workload.notes)
    if workload.machine is not None:
        document["machine"] = workload.machine
    workload = with_failing_parts(workload)
    needed: dict[str, dict[str, Any]] = {}
    for profile in dict.fromkeys(job.profile for job in workload.jobs):
        needed |= with_parts(workload.profiles, profile)
    profiles = {key: _five(key, needed[key], name) for key in workload.profiles if key in needed}
    document["jobs"] = _five_jobs(workload, name)
    document["profiles"] = profiles
    return document


def with_failing_parts(workload: Workload) -> Workload:
    """Return a workload in which delays that fail are sequences (see `as_sequence`)."""
    profiles: dict[str, dict[str, Any]] = {}
    limits = {(job.profile, job.walltime_us) for job in workload.jobs}
    for name, profile in workload.profiles.items():
        fails = profile.get("type") == "delay" and profile.get("ret")
        limited = bool(fails) and (name, to_us(profile["delay"])) in limits
        new = as_sequence(name, profile, limited)
        for part in new:
            if part != name and part in workload.profiles:
                problem = f"has the name of a part of profile {name!r}, which fails"
                raise InputError(problem, f"profile {part!r}", "another name")
        profiles |= new
    return msgspec.structs.replace(workload, profiles=profiles)


def _five_jobs(workload: Workload, name: str) -> Iterator[dict[str, Any]]:
    for job in workload.jobs:
        yield _five_job(job, name)


def _five_job(job: Job, name: str) -> dict[str, Any]:
    fields = {key: value for key, value in job_fields(job).items() if key in _JOB_KEYS}
    fields["id"] = unmistakable(job.id, name)
    fields["profile"] = unmistakable(job.profile, name)
    if job.extra:
        fields[EXTRA] = packed(job.extra)
    return fields


def _five(key: str, profile: dict[str, Any], name: str) -> dict[str, Any]:
    form = BY_FOUR.get(profile["type"])
    if form is None:
        expected = ", ".join(form.four for form in FORMS)
        raise InputError(f"type is {short(profile['type'])}", f"profile {key!r}", expected)
    fields: dict[str, Any] = {"type": form.five}
    for field in (*form.fields, "ret"):
        if field in profile:
            fields[field] = profile[field]
    if "seq" in fields:
        fields["seq"] = [unmistakable(part, name) for part in fields["seq"]]
    if form.strategy:
        fields |= {field: profile.get(field, 0) for field in form.fields} | {
            STRATEGY: form.strategy
        }
    extra = {k: v for k, v in profile.items() if k not in form.own() or k == EXTRA}
    if extra:
        fields[EXTRA] = packed(extra)
    return fields
