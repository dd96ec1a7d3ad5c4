# SPDX-License-Identifier: Apache-2.0
"""JSON objects in several messages of Batsim 5: jobs, profiles, and sequences of profiles.

Objects in decisions are strict, because Batsim 5 rejects unknown fields. Objects in messages of
Batsim are lenient, because later versions may add fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from rebat.core.batsim5 import (
    BY_FOUR,
    ENDING_US,
    EXTRA,
    FAILS,
    FORMS,
    STRATEGY,
    as_delay,
    complete,
    form_of_five,
    local,
    packed_text,
    unpacked,
)
from rebat.core.decisions import Decision, RegisterJob, RegisterProfile
from rebat.core.errors import InputError, short
from rebat.core.jobs import batsim_number
from rebat.core.units import to_us
from rebat.models.checkpoint import Checkpointing, checkpointing_of
from rebat.wire.messages import Fields

Whole32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]

_JOB_KEYS = frozenset({"id", "subtime", "res", "walltime", "profile", EXTRA})


def checked_id(value: str) -> str:
    """Return a complete id. If Batsim 5 cannot split it into two parts, raise InputError."""
    workload, _, name = value.partition("!")
    if not workload or not name or "!" in name:
        raise InputError(f"the id is {short(value)}", expected="WORKLOAD!NAME")
    return value


# ---- jobs


class SentJob(msgspec.Struct, kw_only=True):
    """A job as Batsim describes it."""

    resource_request: Whole32
    walltime: float | None = None
    extra_data: str | None = ""
    rigid: Any = True
    profile_id: str

    def core(self, job_id: str, submitted_s: float) -> Fields:
        """Return the job as in Batsim 4's messages."""
        fields: Fields = {"id": job_id, "subtime": submitted_s, "res": self.resource_request}
        fields["profile"] = local(self.profile_id, job_id.partition("!")[0])
        if self.walltime is not None and self.walltime >= 0:
            fields["walltime"] = self.walltime
        return fields | unpacked(self.extra_data, _JOB_KEYS)

    @classmethod
    def of(cls, job_id: str, fields: Fields) -> Any:
        """Return the job, given its fields in Batsim 4's messages."""
        walltime = fields.get("walltime", -1)
        extra = {k: v for k, v in fields.items() if k not in _JOB_KEYS or k == EXTRA}
        return cls(
            resource_request=fields["res"],
            walltime=None if walltime == -1 else float(walltime),
            extra_data=packed_text(extra),
            profile_id=complete(str(fields["profile"]), job_id.partition("!")[0]),
        )


class NewJob(SentJob, forbid_unknown_fields=True, omit_defaults=True):
    """A job to register."""


# ---- profiles

_TYPES: dict[str, tuple[Any, Any]] = {
    "delay": (float, 0.0),
    "repetition_count": (Whole32, 1),
    "profile_ids": (list[str], []),
    "computation_vector": (list[float], []),
    "communication_matrix": (list[float], []),
    "computation_amount": (float, 0.0),
    "communication_amount": (float, 0.0),
    STRATEGY: (str | UnsetType | None, UNSET),
}
"""Type and default of each field of a profile."""

_TABLES = {
    form.five: msgspec.defstruct(
        form.five,
        [
            (name, *_TYPES[name])
            for name in (*form.fields.values(), *([STRATEGY] if form.strategy else ()))
        ],
        forbid_unknown_fields=True,
    )
    for form in FORMS
}
"""The fields of each type of profile."""


class SentProfile(msgspec.Struct):
    """A profile. The object ``profile`` contains the fields that belong to its type."""

    id: str
    profile_type: str
    profile: Fields = field(default_factory=dict)
    extra_data: str | UnsetType | None = UNSET

    def core(self) -> tuple[str, str, Fields]:
        """Return the names of workload and profile, and the fields as in Batsim 4."""
        workload, mark, name = self.id.partition("!")
        workload, name = (workload, name) if mark else ("", workload)
        form = form_of_five(self.profile_type, self.profile.get(STRATEGY))
        extra = None if self.extra_data is UNSET else self.extra_data
        if form is None:  # unchanged, so that `of` can write it again
            unknown = {"type": self.profile_type, "profile": self.profile, EXTRA: extra}
            return workload, name, unknown
        fields: Fields = {"type": form.four}
        for key, wire in form.fields.items():
            if wire in self.profile:
                fields[key] = self.profile[wire]
        if isinstance(fields.get("seq"), list):
            fields["seq"] = [local(str(part), workload) for part in fields["seq"]]
        return workload, name, as_delay(fields | unpacked(extra, form.own()))

    @classmethod
    def of(cls, workload: str, name: str, fields: Fields) -> Any:
        """Return a profile, given its fields in Batsim 4's form.

        A profile of an unknown type is written as Batsim sent it.
        """
        profile_id, kind = f"{workload}!{name}" if workload else name, str(fields.get("type"))
        form = BY_FOUR.get(kind)
        if form is None:
            if not isinstance(fields.get("profile"), dict):
                expected = ", ".join(form.four for form in FORMS)
                raise InputError(f"type is {short(kind)}", f"profile {profile_id}", expected)
            extra = fields.get(EXTRA)
            return cls(profile_id, kind, fields["profile"], UNSET if extra is None else extra)
        content = {wire: fields[key] for key, wire in form.fields.items() if key in fields}
        if "profile_ids" in content:
            content["profile_ids"] = [complete(part, workload) for part in content["profile_ids"]]
        if form.strategy:
            content[STRATEGY] = form.strategy
        own = form.own() - {EXTRA}
        extra = packed_text({key: value for key, value in fields.items() if key not in own})
        content = _checked(form.five, content, profile_id)
        return cls(profile_id, form.five, content, extra or UNSET)


def _checked(kind: str, fields: Fields, profile_id: str) -> Fields:
    """Return all fields of a profile. If one is unknown or invalid, raise InputError."""
    try:
        checked = msgspec.convert(fields, _TABLES[kind], strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error), f"profile {short(profile_id)}") from None
    values = msgspec.structs.asdict(checked)
    return {key: value for key, value in values.items() if value is not UNSET and value is not None}


class NewProfile(SentProfile, forbid_unknown_fields=True, omit_defaults=True):
    """A profile to register. In Batsim 5, profiles that schedulers register have no return code."""

    def __post_init__(self) -> None:
        if self.profile_type not in _TABLES:
            return
        where = f"profile {short(self.id)}"
        self.profile = _checked(self.profile_type, self.profile, self.id)
        if not self.profile.get("delay", 1) > 0:
            raise InputError(f"delay is {self.profile['delay']}", where, "more than 0 s")
        if not self.profile.get("profile_ids", True):
            raise InputError("has no parts", where, "at least one profile")
        for part in self.profile.get("profile_ids", ()):
            checked_id(part)

    @classmethod
    def of(cls, workload: str, name: str, fields: Fields) -> Any:
        """Return a profile to register."""
        if fields.get("ret"):
            raise InputError(
                f"ret is {short(fields['ret'])}",
                f"profile {name!r} of workload {workload!r}",
                "0, because Batsim 5 cannot register a profile that fails",
            )
        return super().of(workload, name, fields)


# ---- resubmissions as sequences: recovery, work, checkpoint, work, and so on

MOST_PARTS = 100
"""Maximum number of parts of a sequence. A profile with more parts remains a delay profile."""


def with_sequences(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Return the decisions. Replace checkpointed delays and delays that fail by sequences.

    Unlike Batsim 4, Batsim 5 can run sequences that are registered during the simulation. If a
    sequence is killed, Batsim 5 reports the part that was interrupted. A sequence has the same
    length as the delay profile that it replaces. If the delay fails, its last part is a profile of
    the workload file that fails (`rebat.core.batsim5.as_sequence`).

    Batsim 5 ends a delay at the walltime if both have the same length. For a sequence, it subtracts
    part after part from the walltime, with rounding errors, so the sequence may end before the
    walltime. Therefore, a delay of the same length as the walltime remains a delay. It does not
    fail, because the walltime always ends it.
    """
    if not any(isinstance(decision, RegisterProfile) for decision in decisions):
        return decisions
    jobs = [decision for decision in decisions if isinstance(decision, RegisterJob)]
    walltimes_us = dict(map(_walltime_us, jobs))
    result: list[Decision] = []
    for decision in decisions:
        if not isinstance(decision, RegisterProfile):
            result.append(decision)
            continue
        profile = decision.profile
        walltime_us = walltimes_us.get(f"{decision.workload}!{decision.name}")
        if profile.get("type") == "delay" and to_us(profile["delay"]) == walltime_us:
            endless = {k: v for k, v in profile.items() if k not in ("ret", FAILS)}
            result.append(msgspec.structs.replace(decision, profile=endless))
        elif parts := _parts(decision):
            result += _sequence(decision, parts)
        else:
            result.append(decision)
    return tuple(result)


def _walltime_us(decision: RegisterJob) -> tuple[str, int | None]:
    """Return the complete id of a job's profile, and the walltime of the job."""
    job, workload = decision.job, decision.job_id.partition("!")[0]
    walltime = job.get("walltime", -1)
    walltime_us = None if walltime == -1 else to_us(walltime)
    return complete(str(job["profile"]), workload), walltime_us


def _parts(decision: RegisterProfile) -> list[tuple[str, int]]:
    """Return the parts (name, length in us). If the profile remains a delay, there are none."""
    profile = decision.profile
    if profile.get("type") != "delay":
        return []
    c = checkpointing_of(profile)
    length_us = to_us(profile["delay"])
    parts = [("work", length_us)]
    if c and not c.never and length_us <= MOST_PARTS // 2 * c.cycle_us:
        parts = [part for part in parts_of(c, length_us) if part[1] > 0]
    if _failing(profile):
        parts[-1] = ("end", parts[-1][1] - ENDING_US)
        return [part for part in parts if part[1] > 0] + [(FAILS, ENDING_US)]
    return parts if len(parts) > 1 else []


def _failing(profile: Fields) -> list[str]:
    """Return the names of the parts of a static delay, if the profile fails as the delay does."""
    return profile.get(FAILS, []) if profile.get("ret") else []


def parts_of(c: Checkpointing, length_us: int) -> Iterator[tuple[str, int]]:
    """Yield name and length (us) of each part of an attempt of this length.

    >>> c = Checkpointing(100, 10, 7, first_period_us=40, first_recovery_us=7)
    >>> [name for name, _ in parts_of(c, 197)]
    ['recovery', 'first', 'checkpoint', 'work', 'checkpoint', 'last', 'checkpoint']
    """
    recovery_us = min(c.first_recovery_us, length_us)
    yield "recovery", recovery_us
    left_us, name, period_us = length_us - recovery_us, "first", c.first_period_us
    while left_us > period_us + c.cost_us:
        yield name, period_us
        yield "checkpoint", c.cost_us
        left_us, name, period_us = left_us - period_us - c.cost_us, "work", c.period_us
    complete = left_us == period_us + c.cost_us
    closing_us = c.cost_us if (complete or c.closing) and left_us > c.cost_us else 0
    yield (name if complete else "last"), left_us - closing_us
    yield "checkpoint", closing_us


def _sequence(decision: RegisterProfile, parts: list[tuple[str, int]]) -> Iterator[Decision]:
    """Yield the registrations of the parts and of the sequence, which keeps all other fields."""
    profile = decision.profile
    names = {name: f"{decision.name}.{name}" for name, _ in parts}
    failing = _failing(profile)
    if failing:
        names[FAILS] = failing[-1]
    for name, length_us in dict(parts).items():
        if name != FAILS:
            part: Fields = {"type": "delay", "delay": batsim_number(length_us)}
            yield msgspec.structs.replace(decision, name=names[name], profile=part)
    others = {k: v for k, v in profile.items() if k not in ("type", "delay", "ret", FAILS)}
    sequence = {
        "type": "composed",
        "repeat": 1,
        **others,
        "seq": [names[name] for name, _ in parts],
    }
    if profile.get("ret") and not failing:
        sequence["ret"] = profile["ret"]  # the encoder rejects this, as for a delay
    yield msgspec.structs.replace(decision, profile=sequence)
