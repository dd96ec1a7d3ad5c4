# SPDX-License-Identifier: Apache-2.0
"""Profiles and additional fields in the form of Batsim 5.

Internally, rebat uses the names of Batsim 4. Batsim 5 has other names for the types of profiles and
for their fields in messages. It forwards additional fields only in ``extra_data``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.jobs import batsim_number
from rebat.core.units import to_s, to_us

STRATEGY = "generation_strategy"
EXTRA = "extra_data"


class ProfileForm(NamedTuple):
    """A type of profile: its names in Batsim 4 and 5, and the names of its fields.

    The keys of ``fields`` are the names in files, which both versions share. The values are the
    names in messages of Batsim 5.
    """

    four: str
    five: str
    fields: dict[str, str]
    strategy: str = ""
    """Value of ``generation_strategy`` in Batsim 5. Batsim 4 has a separate type for each value."""

    def own(self) -> set[str]:
        """Return the keys that a profile in a file has besides its additional fields."""
        return {"type", "ret", EXTRA, *self.fields, *([STRATEGY] if self.strategy else ())}


_HOMOGENEOUS = {"cpu": "computation_amount", "com": "communication_amount"}
FORMS = (
    ProfileForm("delay", "DelayProfile", {"delay": "delay"}),
    ProfileForm(
        "composed",
        "SequentialCompositionProfile",
        {"repeat": "repetition_count", "seq": "profile_ids"},
    ),
    ProfileForm(
        "parallel",
        "ParallelTaskProfile",
        {"cpu": "computation_vector", "com": "communication_matrix"},
    ),
    ProfileForm(
        "parallel_homogeneous",
        "ParallelTaskHomogeneousProfile",
        _HOMOGENEOUS,
        "DefinedAmountsUsedForEachValue",
    ),
    ProfileForm(
        "parallel_homogeneous_total",
        "ParallelTaskHomogeneousProfile",
        _HOMOGENEOUS,
        "DefinedAmountsSpreadUniformly",
    ),
)
"""Types of profiles that both versions have.

If several forms have the same Batsim 5 type, the first one is the default.
"""

BY_FOUR = {form.four: form for form in FORMS}
FIVE_TYPES = frozenset(form.five for form in FORMS)


def form_of_five(kind: str, strategy: Any) -> ProfileForm | None:
    """Return the form of a profile with this Batsim 5 type and generation strategy.

    The result is None if no form matches.
    """
    fitting = [form for form in FORMS if form.five == kind]
    if strategy is None:
        return fitting[0] if fitting else None
    return next((form for form in fitting if form.strategy == strategy), None)


# ---- delays that fail

FAILS = "failing_delay"
"""Additional field of a sequence that stands for a delay that fails: ``delay`` and ``ret``."""

ENDING_US = 1
"""Length (us) of the part of a delay that fails."""


def as_sequence(
    name: str, profile: dict[str, Any], limited: bool = False
) -> dict[str, dict[str, Any]]:
    """Return a profile by its name. If it is a delay that fails, it becomes a sequence.

    Batsim 5 neither reports that a profile of a workload file fails, nor accepts a new profile that
    fails. However, it accepts a new sequence that ends with a profile of the workload file.
    Therefore, the last microsecond of the delay, which fails, is a profile of its own.

    If ``limited`` is set, a job with this profile has a walltime of the same length.
    """
    if profile.get("type") != "delay" or not profile.get("ret"):
        return {name: profile}
    others = {key: value for key, value in profile.items() if key not in ("type", "delay", "ret")}
    fails = {"delay": profile["delay"], "ret": profile["ret"]}
    work_us = to_us(profile["delay"]) - ENDING_US
    work_s = _limited_s(work_us) if limited else batsim_number(work_us)
    parts = {f"{name}.work": {"type": "delay", "delay": work_s}} if work_us else {}
    parts[f"{name}.ends"] = {
        "type": "delay",
        "delay": batsim_number(ENDING_US),
        "ret": profile["ret"],
    }
    whole = {"type": "composed", "repeat": 1, "seq": [*parts], FAILS: fails, **others}
    return {**parts, name: whole}


DIGITS = 15
"""Number of decimal digits that every binary number of 64 bits can represent."""


def _limited_s(work_us: int) -> float:
    """Return the length (s) of the part before the end if the walltime must end the last part.

    Batsim 5 subtracts this part from the walltime. The rounded difference must not exceed the
    length of the last part. Otherwise, the last part ends, and the job fails. Therefore, this part
    is longer by one unit of the 15th digit, which is more than the rounding error. Batsim reads
    numbers with more digits inexactly.
    """
    work_s = to_s(work_us)
    decimals = DIGITS - len(str(int(work_s)))
    return round(work_s + 10.0**-decimals, decimals)


def as_delay(profile: dict[str, Any]) -> dict[str, Any]:
    """Return a profile. If `as_sequence` made it from a delay, return this delay.

    The field `FAILS` then contains the names of the parts.
    """
    fails = profile.get(FAILS)
    if profile.get("type") != "composed" or not isinstance(fails, dict):
        return profile
    others = {k: v for k, v in profile.items() if k not in ("type", "repeat", "seq")}
    parts = profile.get("seq")
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return profile
    return {"type": "delay", **fails, **others, FAILS: parts}


# ---- ids


def complete(name: str, workload: str) -> str:
    """Return a name with its workload in front. Complete ids stay unchanged.

    >>> complete("d10", "w0"), complete("w1!d10", "w0")
    ('w0!d10', 'w1!d10')
    """
    return name if "!" in name else f"{workload}!{name}"


def unmistakable(name: str, workload: str) -> str:
    """Return a name as Batsim must read it from the file of a workload.

    Batsim takes a name that contains the name of the workload for a complete id. Therefore, this
    name is written as a complete id.

    >>> unmistakable("7", "w0"), unmistakable("flow0", "w0")
    ('7', 'w0!flow0')
    """
    return f"{workload}!{name}" if workload in name else name


def local(name: str, workload: str) -> str:
    """If an id belongs to ``workload``, return it without the workload. Other ids stay unchanged.

    >>> local("w0!d10", "w0"), local("w1!d10", "w0")
    ('d10', 'w1!d10')
    """
    return name.removeprefix(f"{workload}!")


# ---- additional fields


def packed(fields: dict[str, Any]) -> Any:
    """Return the value of ``extra_data`` for additional fields: an object, a list or a text."""
    alone = fields.get(EXTRA) if len(fields) == 1 else None
    return alone if isinstance(alone, str | list) else fields


def packed_text(fields: dict[str, Any]) -> str:
    """Return the text of ``extra_data`` in a message. Without additional fields, it is empty."""
    value = packed(fields) if fields else ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def unpacked(value: Any, reserved: Container[str]) -> dict[str, Any]:
    """Return the additional fields in a value of ``extra_data``.

    If the value is a text other than a JSON object, or if it is an object with a reserved key, it
    becomes the field ``extra_data``. Batsim rejects values of other types.

    >>> unpacked('{"user": "u1"}', ()), unpacked("text", ()), unpacked("", ())
    ({'user': 'u1'}, {'extra_data': 'text'}, {})
    """
    if value is None or value == "":
        return {}
    if not isinstance(value, str | list | dict):
        raise InputError(f"is {short(value)}", EXTRA, "a text, an object or a list")
    content = object_in(value) if isinstance(value, str) else value
    if isinstance(content, dict) and not any(k in reserved for k in content if k != EXTRA):
        return content
    return {EXTRA: value}


def object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, or None if the text is not a JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# ---- lines of event files

GENERIC = "generic"


def line_of_five(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of an event file in Batsim 4's form.

    Lines whose ``data`` is not the text of an object stay unchanged.

    >>> line_of_five({"type": "generic", "timestamp": 9, "data": '{"type": "drain"}'})
    {'type': 'drain', 'timestamp': 9}
    """
    if line.get("type") != GENERIC or not isinstance(line.get("data"), str):
        return line
    content = object_in(line["data"])
    if content is None or not isinstance(content.get("type"), str):
        return line
    return {**content, "timestamp": line.get("timestamp")}


def line_to_five(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of an event file in Batsim 5's form. Its content becomes the text ``data``."""
    if line.get("type") == GENERIC and isinstance(line.get("data"), str):
        return {"type": GENERIC, "timestamp": line["timestamp"], "data": line["data"]}
    content = {key: value for key, value in line.items() if key != "timestamp"}
    text = msgspec.json.encode(content).decode()
    return {"type": GENERIC, "timestamp": line["timestamp"], "data": text}
