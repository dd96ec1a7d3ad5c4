# SPDX-License-Identifier: Apache-2.0
"""Tables of a campaign file, checked with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.core.units import parse_duration

_T = TypeVar("_T", bound=msgspec.Struct)

LARGEST_SEED = 2**63 - 1
"""The results table holds 64 bits."""

Duration = str | float
"""A text in human units, or seconds."""


def convert(table: Any, kind: type[_T], where: str) -> _T:
    """A table as a struct; an unknown key lists the known ones."""
    if not isinstance(table, dict):
        raise InputError("is no table", where)
    known_keys(table, kind.__struct_fields__, where)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:  # "what - at `$.place`"
        what, _, place = str(error).partition(" - at ")
        inner = place.strip("`").removeprefix("$").removeprefix(".")
        raise InputError(what, f"{where}.{inner}" if inner else where) from None


def known_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse keys that nobody reads."""
    for key in table:
        if key not in known:
            error = unknown_name("key", key, known)
            raise error.at(where) if where else error


def required(table: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    """A key's value, which must be there and hold something."""
    value = table.get(key)
    if not isinstance(value, kind) or not value:
        raise InputError("is missing" if value is None else "is wrong or empty", key, expected)
    return value


def distinct(values: Sequence[Any], where: str) -> None:
    """Refuse a value that stands there twice."""
    twice = [value for value in dict.fromkeys(values) if list(values).count(value) > 1]
    if twice:
        raise InputError(f"has {twice[0]!r} twice", where)


def some(values: Sequence[Any], where: str) -> None:
    """Refuse an empty list, and a value that stands there twice."""
    if not values:
        raise InputError("is empty", where, "one or more")
    distinct(values, where)


def check_seeds(seeds: Sequence[int], where: str) -> None:
    """Seeds that the results table can hold."""
    wrong = [seed for seed in seeds if not 0 <= seed <= LARGEST_SEED]
    if wrong or not seeds:
        what = f"is {wrong[0]}" if wrong else "is empty"
        raise InputError(what, where, f"whole numbers from 0 to {LARGEST_SEED}")


def seconds(value: Duration, where: str) -> float:
    """A duration above 0, in seconds."""
    try:
        found = parse_duration(value)
    except InputError as error:
        raise error.at(where) from None
    if found <= 0:
        raise InputError(f"is {value!r}", where, "a duration above 0")
    return found
