# SPDX-License-Identifier: Apache-2.0
"""Options declared by annotated fields of a struct, with type, range, unit and help text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.units import parse_duration

T = TypeVar("T", bound=msgspec.Struct)


class Declared(msgspec.Struct, frozen=True):
    """An option that a field of a struct declares.

    Attributes
    ----------
    name : str
        Name of the field.
    kind : type
        Type of the values, without None.
    choices : tuple of str
        The valid values, if the type is a list of values. Otherwise empty.
    default : Any
    limits : dict
        The limits ``ge``, ``gt``, ``le`` and ``lt`` that are set.
    help : str
    extra : dict
        Further properties: ``unit`` ('s' means a duration), ``flags``, ``file``, ``machine``.
    """

    name: str
    kind: Any
    choices: tuple[str, ...]
    default: Any
    limits: dict[str, float]
    help: str
    extra: dict[str, Any]

    @property
    def is_duration(self) -> bool:
        """Whether values may be texts with units, like 5min."""
        return self.extra.get("unit") == "s"


@lru_cache
def declared(struct: type[msgspec.Struct]) -> dict[str, Declared]:
    """Return the options of a struct by name."""
    hints = get_type_hints(struct, include_extras=True)
    return {
        f.name: _option(f.name, hints[f.name], f.default) for f in msgspec.structs.fields(struct)
    }


def _option(name: str, hint: Any, default: Any) -> Declared:
    limits: dict[str, float] = {}
    extra: dict[str, Any] = {}
    description = ""
    for meta in _metas(hint):
        limits |= {
            key: value
            for key in ("ge", "gt", "le", "lt")
            if (value := getattr(meta, key)) is not None
        }
        extra |= meta.extra or {}
        description = meta.description or description
    kind = _bare(hint)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return Declared(name, kind, choices, default, limits, description, extra)


def _metas(hint: Any) -> list[msgspec.Meta]:
    """Return all annotations of a type. For a union, its own annotations come first."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        return [*_metas(inner), *metas]
    return [meta for part in get_args(hint) for meta in _metas(part)]


def _bare(hint: Any) -> Any:
    """Return a type without its annotations and without a union with None."""
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else without_none(hint)
    return hint if inner is hint else _bare(inner)


def without_none(kind: Any) -> Any:
    """If a type is a union of T and None, return T. Return other types unchanged."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (bare,) = (part for part in get_args(kind) if part is not type(None))
    return bare


def converted(values: Mapping[str, Any], struct: type[T]) -> T:
    """Check types and ranges of arguments, and return the arguments as a struct.

    Numbers may be numpy scalars. Paths may be texts. Durations may be texts with units.
    """
    options = declared(struct)
    plain = {name: _plain(value, options.get(name)) for name, value in values.items()}
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at ")
        name = where.strip("`$.") or None
        choices = options[name].choices if name in options else ()
        expected = " or ".join(filter(None, (", ".join(choices[:-1]), *choices[-1:])))
        if name in plain and (kind := _EXPECTED.match(text)):
            text, expected = f"is {short(plain[name])}", expected or kind[1] + kind[2]
        raise InputError(text, name, expected or None) from None


_EXPECTED = re.compile("Expected `([^`]+)`([^,]*)")
"""Beginning of an error of msgspec: the type and, if it has one, the range."""


def _plain(value: Any, option: Declared | None) -> Any:
    if option is not None and option.is_duration and isinstance(value, str | int | float):
        return parse_duration(value)
    if isinstance(value, PathLike | str) and option is not None and option.kind is Path:
        return Path(value)
    if isinstance(value, PathLike):
        return fspath(value)
    return value.item() if hasattr(value, "item") else value


U = TypeVar("U")


def tagged(value: Any, field: str, kinds: Mapping[str, type[U]], noun: str) -> U:
    """Return a JSON object as a struct, which the value of ``field`` selects from ``kinds``."""
    kind = str(value.get(field) if isinstance(value, dict) else value)
    if kind not in kinds:
        raise unknown_name(noun, kind, kinds)
    try:
        return msgspec.convert(value, kinds[kind])
    except msgspec.ValidationError as error:
        raise InputError(f"{noun}: {error}", expected=f"an object with {field} {kind!r}") from None


def name_and_values(text: str, form: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the name and the values in a text ``NAME:KEY=VALUE,KEY=VALUE``.

    >>> name_and_values("poisson:mtbf=1h,downtime=10min")
    ('poisson', {'mtbf': '1h', 'downtime': '10min'})
    """
    name, _, pairs = text.partition(":")
    values: dict[str, str] = {}
    for part in pairs.split(",") if pairs else ():
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise InputError(f"{part!r} is not PARAMETER=VALUE", expected=form)
        if key in values:
            raise InputError(f"parameter {key} has two values", expected=form)
        values[key] = value
    return name, values


def weights_of(text: str, separator: str) -> dict[str, float]:
    """Return the positive weights in a text such as ``gpu=148+nic=7``.

    >>> weights_of("1:3+32:1", ":")
    {'1': 3.0, '32': 1.0}
    """
    weights: dict[str, float] = {}
    for part in text.split("+"):
        name, _, number = part.partition(separator)
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not name or name in weights or not 0 < weight < math.inf:
            raise InputError(
                f"{part!r} is not a weight", expected=f"NAME{separator}WEIGHT, above 0"
            )
        weights[name] = weight
    return weights
