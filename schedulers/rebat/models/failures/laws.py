# SPDX-License-Identifier: Apache-2.0
"""Failure laws by name, and how people write them: ``authors:mtbf=1h,downtime=1h``."""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.units import parse_duration
from rebat.models.failures.authors import Authors
from rebat.models.failures.correlated import Correlated
from rebat.models.failures.law import Law, check_span, least_s
from rebat.models.failures.per_node_laws import Exponential, Gamma, LogNormal, Weibull
from rebat.models.failures.poisson import Poisson
from rebat.models.failures.recorded import Recorded
from rebat.models.failures.renewal import Renewal
from rebat.models.failures.trace import Trace

LAWS: dict[str, type[Law]] = {
    "authors": Authors,
    "poisson": Poisson,
    "renewal": Renewal,
    "trace": Trace,
    "record": Recorded,
    "weibull": Weibull,
    "gamma": Gamma,
    "lognormal": LogNormal,
    "exponential": Exponential,
}


def law_named(name: str) -> type[Law]:
    """The law of that name; an unknown one lists the choices."""
    if name not in LAWS:
        raise unknown_name("failure law", name, LAWS)
    return LAWS[name]


def name_of(law: Law) -> str:
    """The name of a law; correlated failures have that of the law behind them."""
    behind = law.of if isinstance(law, Correlated) else law
    return next(name for name, kind in LAWS.items() if kind is type(behind))


def reads_files(law: Law | None) -> bool:
    """Whether a law, or the one behind correlated failures, is read from files."""
    behind = law.of if isinstance(law, Correlated) else law
    return behind is not None and bool(behind.paths)


def parameters(name: str) -> dict[str, FieldInfo]:
    """A law's parameters as people write them: without the unit of their fields."""
    fields = msgspec.structs.fields(law_named(name))
    return {field.name.removesuffix("_s"): field for field in fields}


def make_law(name: str, values: Mapping[str, Any]) -> Law:
    """A law by name with its parameters; durations are in human units.

    Raises
    ------
    InputError
        For a name, a parameter or a value that cannot be, and for a parameter that is missing.
    """
    known = parameters(name)
    for key in values:
        if key not in known:
            raise unknown_name(f"parameter of {name}", key, known)
    for key, field in known.items():
        if field.required and key not in values:
            raise InputError(f"{name} lacks {key}", expected=form_of(name))
    return law_named(name)(**{known[k].name: read(known[k], v, k) for k, v in values.items()})


def read(field: FieldInfo, value: Any, where: str) -> Any:
    """The value of a parameter from a text or a number."""
    if not field.name.endswith("_s"):
        return _convert(field, value, where)
    try:
        seconds = parse_duration(value)
    except InputError as error:
        raise error.at(where) from None
    check_span(seconds, where, least_s(field.name))
    return seconds


def _convert(field: FieldInfo, value: Any, where: str) -> Any:
    try:
        found = msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"is {short(value)}: {error}", where) from None
    if isinstance(found, float) and not math.isfinite(found):
        raise InputError(f"is {found}", where, "a finite number")
    return found


def parse_law(text: str) -> Law:
    """A law from the command line.

    >>> parse_law("poisson:mtbf=1h,downtime=10min")
    Poisson(mtbf_s=3600.0, downtime_s=600.0)
    """
    name, _, rest = text.partition(":")
    known = form_of(name)  # an unknown name first
    values: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        key, given, value = part.partition("=")
        if not given or not value:
            raise InputError(f"{part!r} gives no parameter a value", expected=known)
        if key in values:
            raise InputError(f"two values for {key}", expected=known)
        values[key] = value
    return make_law(name, values)


def form_of(name: str) -> str:
    """How a law is written; what has a default stands in brackets.

    >>> form_of("authors")
    'authors:mtbf=DURATION[,downtime=DURATION]'
    """
    texts: list[str] = []
    for key, field in parameters(name).items():
        text = f"{',' if texts else ''}{key}={_kind(field)}"
        texts.append(text if field.required else f"[{text}]")
    return f"{name}:{''.join(texts)}"


def _kind(field: FieldInfo) -> str:
    if field.name.endswith("_s"):
        return "DURATION"
    return {str: "TEXT", int: "INTEGER", bool: "true"}.get(field.type, "NUMBER")


def described() -> str:
    """Every law: its form and its docstring, with the parameters as people write them."""
    return "\n\n".join(f"{form_of(name)}\n\n{_told(kind)}" for name, kind in LAWS.items())


def _told(kind: type[Law]) -> str:
    text, _, _ = (inspect.getdoc(kind) or "").partition("\n\nExamples")
    return textwrap.indent(re.sub(r"_s : float$", " : duration", text, flags=re.MULTILINE), "  ")
