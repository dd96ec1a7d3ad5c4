# SPDX-License-Identifier: Apache-2.0
"""Readers of tables in a campaign file. Errors state the position in the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from rebat.core.declared import TYPES, in_words
from rebat.core.durations import LARGEST_SEED
from rebat.core.errors import InputError, check_keys
from rebat.core.units import parse_duration

_T = TypeVar("_T", bound=msgspec.Struct)

Duration = str | float
"""A duration: a text with units, or a number of seconds."""

Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]


def convert(table: Any, kind: type[_T], where: str) -> _T:
    """Convert a table to a struct. If a key is unknown, the error lists the valid keys."""
    if not isinstance(table, dict):
        raise InputError("is not a table", where)
    check_keys(table, kind.__struct_fields__, where)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:  # "what - at `$.place`"
        problem, _, place = str(error).partition(" - at ")
        inner = place.strip("`").removeprefix("$").removeprefix(".")
        raise _plain(problem, f"{where}.{inner}" if inner else where, kind) from None


_MISSING = re.compile("Object missing required field `(.+)`")
_WRONG = re.compile("Expected `(.+)`, got `(.+)`")


def _plain(problem: str, where: str, kind: type[msgspec.Struct]) -> InputError:
    """Return the error for a problem that msgspec found, in the terms of a campaign file."""
    if missing := _MISSING.fullmatch(problem):
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        of = types.get(missing[1])
        name = getattr(getattr(of, "__origin__", of), "__name__", "")
        return InputError("is missing", f"{where}.{missing[1]}", TYPES.get(name))
    wrong = _WRONG.fullmatch(problem)
    if wrong and {*wrong[1].split(" | "), wrong[2]} - {"null"} <= TYPES.keys():
        return InputError(f"is {TYPES[wrong[2]]}", where, in_words(wrong[1]))
    return InputError(problem, where)


def required(table: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    """Return the value of a required key. The value must not be empty."""
    value = table.get(key)
    if not isinstance(value, kind) or not value:
        raise InputError("is missing" if value is None else "is invalid or empty", key, expected)
    return value


def distinct(values: Sequence[Any], where: str) -> None:
    """Raise InputError if a value is a duplicate."""
    duplicates = [value for value, count in Counter(values).items() if count > 1]
    if duplicates:
        raise InputError(f"lists {duplicates[0]!r} twice", where)


def nonempty(values: Sequence[Any], where: str) -> None:
    """Raise InputError if the list is empty or contains duplicate values."""
    if not values:
        raise InputError("is empty", where, "one value or more")
    distinct(values, where)


def check_seeds(seeds: Sequence[int], where: str) -> None:
    """Raise InputError if the list is empty, or if a seed is too large for the results table."""
    wrong = [seed for seed in seeds if not 0 <= seed <= LARGEST_SEED]
    if wrong or not seeds:
        problem = f"is {wrong[0]}" if wrong else "is empty"
        raise InputError(problem, where, f"whole numbers from 0 to {LARGEST_SEED}")


def seconds(value: Duration, where: str) -> float:
    """Return a duration in seconds. It must be above 0."""
    try:
        duration_s = parse_duration(value)
    except InputError as error:
        raise error.at(where) from None
    if duration_s <= 0:
        raise InputError(f"is {value!r}", where, "a duration above 0")
    return duration_s
