# SPDX-License-Identifier: Apache-2.0
"""Options declared by annotated fields of a struct, or by annotated parameters of a function.

An annotation contains the type, the range, the unit, the help text and the flags of an option::

    size: Annotated[Count | None, "--size", "Number of nodes that a job requests."] = None
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, signature
from os import PathLike, fspath
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.units import parse_duration

T = TypeVar("T", bound=msgspec.Struct)


def extra(**properties: Any) -> msgspec.Meta:
    """Return an annotation with further properties of an option, see `Declared`."""
    return msgspec.Meta(extra=properties)


Seconds = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "s"})]
"""A duration in seconds. In options, it may also be a text like "5min"."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Machine = Annotated[int, msgspec.Meta(ge=1), extra(machine=True)]
"""The number of nodes of a machine."""
Seed = Annotated[int, extra(seed=True)]


class Declared(msgspec.Struct, frozen=True):
    """An option that a field or a parameter declares.

    Attributes
    ----------
    name : str
        Name of the field or parameter.
    kind : type
        Type of the values, without None. For a tuple: type of its elements.
    choices : tuple
        The valid values, if the type is a list of values. Otherwise empty.
    default : Any
        `msgspec.NODEFAULT` if the option is required.
    limits : dict
        The limits ``ge``, ``gt``, ``le`` and ``lt`` that are set.
    help : str
    extra : dict
        Further properties: ``unit`` ('s' means a duration), ``flags``, ``file`` (kind of file),
        ``machine`` and ``seed`` (see `Machine` and `Seed`), ``values`` (how to complete values),
        ``metavar``, ``choices`` that no type lists, ``check`` (function that raises InputError for
        an invalid text), ``without_value`` (the value if the option has none on the command line).
    several : bool
        Whether the type is a tuple: the option may be repeated.
    positional : bool
        Whether the option is a positional parameter of a function.
    """

    name: str
    kind: Any
    choices: tuple[Any, ...]
    default: Any
    limits: dict[str, float]
    help: str
    extra: dict[str, Any]
    several: bool = False
    positional: bool = False

    @property
    def is_duration(self) -> bool:
        """Whether values may be texts with units, like 5min."""
        return self.extra.get("unit") == "s"


@lru_cache
def declared(source: type[msgspec.Struct] | Callable[..., Any]) -> dict[str, Declared]:
    """Return the options of a struct or of a function by name."""
    if isinstance(source, type):
        hints = get_type_hints(source, include_extras=True)
        defaults = {field.name: field.default for field in msgspec.structs.fields(source)}
        return {name: declaration(name, hints[name], value) for name, value in defaults.items()}
    hints = hints_of(source)
    return {
        name: declaration(
            name,
            hints[name],
            msgspec.NODEFAULT if row.default is Parameter.empty else row.default,
            row.kind is not Parameter.KEYWORD_ONLY,
        )
        for name, row in signature(source).parameters.items()
        if name in hints and row.kind is not Parameter.VAR_KEYWORD
    }


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of the parameters of a function, without that of its result."""
    texts = {name: text for name, text in function.__annotations__.items() if name != "return"}
    parameters = SimpleNamespace(__annotations__=texts)
    return get_type_hints(parameters, function.__globals__, include_extras=True)


def declaration(name: str, hint: Any, default: Any, positional: bool = False) -> Declared:
    """Return the option with this annotation."""
    limits: dict[str, float] = {}
    properties: dict[str, Any] = {}
    description = ""
    flags: list[str] = []
    for meta in _metas(hint):
        if not isinstance(meta, msgspec.Meta):
            if str(meta).startswith("-"):
                flags.append(meta)
            else:
                description = meta
            continue
        limits |= {
            key: value
            for key in ("ge", "gt", "le", "lt")
            if (value := getattr(meta, key)) is not None
        }
        properties |= meta.extra or {}
        description = meta.description or description
    if flags:
        properties["flags"] = tuple(flags)
    kind = _bare(hint)
    several = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if several:
        kind = _bare(get_args(kind)[0])
    choices = get_args(kind) if get_origin(kind) is Literal else properties.get("choices", ())
    return Declared(
        name, kind, choices, default, limits, description, properties, several, positional
    )


def _metas(hint: Any) -> list[Any]:
    """Return all annotations of a type. For a union, its own annotations come first."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        return [*_metas(inner), *metas]
    if get_origin(hint) is Literal:
        return []
    return [meta for part in get_args(hint) for meta in _metas(part)]


def _bare(hint: Any) -> Any:
    """Return a type without its annotations. Of a union, return the type that is not None.

    If the union has several, return a tuple or Path if it is one of them, and otherwise str.
    """
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) not in (Union, UnionType):
        return hint
    parts = [_bare(part) for part in get_args(hint) if part is not type(None)]
    if len(parts) == 1:
        return parts[0]
    tuples = [part for part in parts if get_origin(part) is tuple]
    return tuples[0] if tuples else Path if Path in parts else str


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
            text, expected = f"is {short(plain[name])}", expected or in_words(kind[1], kind[2])
        raise InputError(text, name, expected or None) from None


_EXPECTED = re.compile("Expected `([^`]+)`([^,]*)")
"""Beginning of an error of msgspec: the type and, if it has one, the range."""


TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "object": "a table",
    "str": "a text",
}
"""Names of types in errors."""

_LIMITS = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}


def in_words(kinds: str, limit: str = "") -> str:
    """Return types and a limit of msgspec in words.

    >>> in_words("int | null", " >= 1"), in_words("float | array")
    ('a whole number, at least 1', 'a number or a list')
    """
    names = [TYPES.get(kind, kind) for kind in kinds.split(" | ") if kind != "null"]
    sign, _, number = limit.strip().partition(" ")
    number = number.removesuffix(".0")
    return " or ".join(names) + (f", {_LIMITS[sign]} {number}" if sign in _LIMITS else "")


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
