# SPDX-License-Identifier: Apache-2.0
"""JSON objects (*tables*) in several messages of Batsim 5: jobs and profiles.

Tables in decisions are strict, because Batsim 5 rejects unknown fields. Tables in messages of
Batsim are lenient, because later versions may add fields.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from rebat.core.batsim5 import (
    BY_FOUR,
    EXTRA,
    FORMS,
    STRATEGY,
    as_delay,
    complete,
    form_of_five,
    local,
    packed_text,
    unpacked,
)
from rebat.core.errors import InputError, short

Whole32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Whole64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Fields = dict[str, Any]

_JOB_KEYS = frozenset({"id", "subtime", "res", "walltime", "profile", EXTRA})


class Lenient(msgspec.Struct):
    """A table that Batsim sends. Fields that rebat does not know are ignored."""


class Strict(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A table that rebat sends. Unknown fields are an error, and defaults are omitted."""


# ---- ids


def checked_id(value: str) -> str:
    """Return a complete id. If Batsim 5 cannot split it into two parts, raise InputError."""
    workload, _, name = value.partition("!")
    if not workload or not name or "!" in name:
        raise InputError(f"the id is {short(value)}", expected="WORKLOAD!NAME")
    return value


def _split(value: str) -> tuple[str, str]:
    workload, mark, name = value.partition("!")
    return (workload, name) if mark else ("", value)


# ---- profiles

_TYPES: dict[str, tuple[Any, Any]] = {
    "delay": (float, 0.0),
    "repetition_count": (Whole32, 1),
    "profile_ids": (list[str], []),
    "computation_vector": (list[float], []),
    "communication_matrix": (list[float], []),
    "computation_amount": (float, 0.0),
    "communication_amount": (float, 0.0),
}
"""Type and default of each field of a profile."""


def _table(kind: str) -> type[msgspec.Struct]:
    """Return the struct for the fields of a type of profile."""
    form = next(form for form in FORMS if form.five == kind)
    fields: list[Any] = [(name, *_TYPES[name]) for name in form.fields.values()]
    if form.strategy:
        fields.append((STRATEGY, str | None, None))
    return msgspec.defstruct(kind, fields, kw_only=True, forbid_unknown_fields=True)


_TABLES = {form.five: _table(form.five) for form in FORMS}


class SentProfile(Lenient):
    """A profile. The table ``profile`` contains the fields that belong to its type."""

    id: str
    profile_type: str
    profile: Fields = msgspec.field(default_factory=dict)
    extra_data: str | UnsetType | None = UNSET

    def core(self) -> tuple[str, str, Fields]:
        """Return the names of workload and profile, and the fields as in Batsim 4."""
        workload, name = _split(self.id)
        form = form_of_five(self.profile_type, self.profile.get(STRATEGY))
        extra = None if self.extra_data is UNSET else self.extra_data
        if form is None:  # unchanged, so that `of` can write it again
            return (
                workload,
                name,
                {"type": self.profile_type, "profile": self.profile, EXTRA: extra},
            )
        fields: Fields = {"type": form.four}
        for key, wire in form.fields.items():
            if wire in self.profile:
                fields[key] = self.profile[wire]
        if isinstance(fields.get("seq"), list):
            fields["seq"] = [local(str(part), workload) for part in fields["seq"]]
        return workload, name, as_delay(fields | unpacked(extra, form.own()))

    @classmethod
    def of(cls, workload: str, name: str, fields: Fields) -> Any:
        """Return the table of a profile, given Batsim 4's fields."""
        profile_id = f"{workload}!{name}" if workload else name
        form = BY_FOUR.get(str(fields.get("type")))
        if form is None:
            return _unknown(cls, profile_id, fields)
        table = {wire: fields[key] for key, wire in form.fields.items() if key in fields}
        if "profile_ids" in table:
            table["profile_ids"] = [complete(part, workload) for part in table["profile_ids"]]
        if form.strategy:
            table[STRATEGY] = form.strategy
        table = _checked(form.five, table, profile_id)
        own = form.own() - {EXTRA}
        text = packed_text({key: value for key, value in fields.items() if key not in own})
        extra = text or UNSET
        return cls(id=profile_id, profile_type=form.five, profile=table, extra_data=extra)


def _unknown(cls: Any, profile_id: str, fields: Fields) -> Any:
    """Return the table of a profile of an unknown type, as Batsim sent it."""
    if not isinstance(fields.get("profile"), dict):
        expected = ", ".join(form.four for form in FORMS)
        raise InputError(f"type is {short(fields.get('type'))}", f"profile {profile_id}", expected)
    extra = fields.get(EXTRA)
    return cls(
        id=profile_id,
        profile_type=fields["type"],
        profile=fields["profile"],
        extra_data=UNSET if extra is None else extra,
    )


def _checked(kind: str, table: Fields, profile_id: str) -> Fields:
    """Return the table of a profile with all its fields. Raise InputError for unknown fields."""
    try:
        checked = msgspec.convert(table, _TABLES[kind], strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error), f"profile {short(profile_id)}") from None
    fields: Fields = msgspec.structs.asdict(checked)
    if fields.get(STRATEGY, UNSET) is None:
        del fields[STRATEGY]
    return fields


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
        """Return the table of a profile to register."""
        if fields.get("ret"):
            raise InputError(
                f"ret is {short(fields['ret'])}",
                f"profile {name!r} of workload {workload!r}",
                "0, because Batsim 5 cannot register a profile that fails",
            )
        return super().of(workload, name, fields)


# ---- jobs


class SentJob(Lenient, kw_only=True):
    """A job as Batsim describes it."""

    resource_request: Whole32
    walltime: float | None = None
    extra_data: str | None = ""
    rigid: Any = True
    profile_id: str

    def core(self, job_id: str, submitted_s: float | int) -> Fields:
        """Return the job as in Batsim 4's messages."""
        fields: Fields = {"id": job_id, "subtime": submitted_s, "res": self.resource_request}
        fields["profile"] = local(self.profile_id, job_id.partition("!")[0])
        if self.walltime is not None and self.walltime >= 0:
            fields["walltime"] = self.walltime
        return fields | unpacked(self.extra_data, _JOB_KEYS)

    @classmethod
    def of(cls, job_id: str, fields: Fields) -> Any:
        """Return the table of a job, given its fields in Batsim 4's messages."""
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


# ---- numbers


def as_signed(code: int) -> int:
    """Return a signed return code, given the unsigned 32-bit number that Batsim 5 writes.

    >>> as_signed(4294967295), as_signed(7)
    (-1, 7)
    """
    return int(struct.unpack("=i", struct.pack("=I", code & 0xFFFFFFFF))[0])


def as_unsigned(code: int) -> int:
    """Return a return code as the unsigned 32-bit number that Batsim 5 writes.

    >>> as_unsigned(-2)
    4294967294
    """
    return code & 0xFFFFFFFF
