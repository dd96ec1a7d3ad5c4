# SPDX-License-Identifier: Apache-2.0
"""Failure laws by name, and their command-line syntax: ``authors:mtbf=1h,downtime=1h``.

Failure laws of real machines by name: ``lanl-20`` is a law with fitted parameters.

`scripts/fit_failure_models.py` fits parameters to published records, and writes them to
``failure_events/models.toml``. ``failure_events/fleets.toml`` contains published parameters of
training clusters.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from rebat.core.declared import name_and_values
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.files import folder
from rebat.core.numbers import exact
from rebat.core.units import parse_duration
from rebat.models.failures.correlated import Correlated
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import Law, check_span, least_s
from rebat.models.failures.per_node_laws import Exponential, Gamma, LogNormal, Weibull
from rebat.models.failures.recorded import Recorded, Trace
from rebat.models.failures.renewal import Authors, Poisson, Renewal, Scaled

LAWS: dict[str, type[Law]] = {
    "authors": Authors,
    "poisson": Poisson,
    "renewal": Renewal,
    "scaled": Scaled,
    "trace": Trace,
    "record": Recorded,
    "weibull": Weibull,
    "gamma": Gamma,
    "lognormal": LogNormal,
    "exponential": Exponential,
    "fleet": Fleet,
}


def law_named(name: str) -> type[Law]:
    """Return the class of a law, by its name or by the name of the machine it is fitted to."""
    if name in LAWS:
        return LAWS[name]
    if name not in prefabs():
        raise unknown_name("failure law", name, [*LAWS, *prefabs()], "rebat failures models")
    return LAWS[prefabs()[name].law]


def _prefab(name: str) -> Prefab | None:
    return None if name in LAWS else prefabs().get(name)


def name_of(law: Law) -> str:
    """Return the name of a law: its machine if it is fitted to one, else its key in `LAWS`.

    The name of a user-defined law is the name of its class. For correlated failures, return the
    name of the underlying law.
    """
    base = law.of if isinstance(law, Correlated) else law
    if isinstance(base, Scaled | Fleet) and base.machine:
        return base.machine
    kind = type(base)
    return next((name for name, of in LAWS.items() if of is kind), kind.__name__)


def reads_files(law: Law | None) -> bool:
    """Return whether a law, or the law underlying correlated failures, reads files."""
    base = law.of if isinstance(law, Correlated) else law
    return base is not None and bool(base.paths)


def parameters(name: str) -> dict[str, FieldInfo]:
    """Return the parameters of the law with this name. The keys do not have the ending ``_s``."""
    fields = msgspec.structs.fields(law_named(name))
    return {field.name.removesuffix("_s"): field for field in fields}


def make_law(name: str, values: Mapping[str, Any]) -> Law:
    """Return the law with this name and these parameters. Durations may be texts like '1h'.

    A law of a machine (`prefab`) already has values for all parameters. If ``values`` changes any
    of them, the law no longer has the name of the machine.
    """
    fields = parameters(name)
    for key in values:
        if key not in fields:
            raise unknown_name(f"parameter of {name}", key, fields)
    if prefab := _prefab(name):
        values = {**prefab.parameters, **(values or {"machine": name})}
    for key, field in fields.items():
        if field.required and key not in values:
            raise InputError(f"{name}: parameter {key} is missing", expected=form_of(name))
    return law_named(name)(**{fields[k].name: read(fields[k], v, k) for k, v in values.items()})


def read(field: FieldInfo, value: Any, where: str) -> Any:
    """Return the value of a parameter, which is given as text or as a number."""
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
        converted = msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"is {short(value)}: {error}", where) from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise InputError(f"is {converted}", where, "a finite number")
    return converted


def parse_law(text: str) -> Law:
    """Return the law that a command-line text describes.

    >>> parse_law("poisson:mtbf=1h,downtime=10min")
    Poisson(mtbf_s=3600.0, downtime_s=600.0)
    """
    form = form_of(text.partition(":")[0])  # raises InputError if the name is unknown
    name, values = name_and_values(text, form)
    return make_law(name, values)


def changed_parameters(law: Law) -> dict[str, Any]:
    """Return the parameters of a law that differ from their defaults. A machine has none."""
    if getattr(law, "machine", ""):
        return {}
    return {
        name: getattr(law, field.name)
        for name, field in parameters(name_of(law)).items()
        if getattr(law, field.name) != field.default
    }


def text_of(law: Law) -> str:
    """Return a law as `parse_law` reads it.

    >>> text_of(parse_law("authors:mtbf=90min,downtime=100"))
    'authors:mtbf=1.5h,downtime=100s'
    """
    name = name_of(law)
    fields = parameters(name)
    changed = changed_parameters(law).items()
    texts = ",".join(f"{key}={_text(fields[key], value)}" for key, value in changed)
    return f"{name}:{texts}" if texts else name


def _text(field: FieldInfo, value: Any) -> str:
    if field.name.endswith("_s"):
        text = exact(value).replace(" ", "")
        return text if parse_duration(text) == value else f"{value!r}s"
    return str(value).lower() if isinstance(value, bool) else str(value)


def form_of(name: str) -> str:
    """Return the command-line syntax of a law, with optional parameters in brackets.

    >>> form_of("authors")
    'authors:mtbf=DURATION[,downtime=DURATION]'
    """
    texts: list[str] = []
    prefab = _prefab(name)
    for key, field in parameters(name).items():
        text = f"{',' if texts else ''}{key}={_kind(field)}"
        texts.append(text if field.required and not prefab else f"[{text}]")
    return f"{name}:{''.join(texts)}"


def _kind(field: FieldInfo) -> str:
    if field.name.endswith("_s"):
        return "DURATION"
    return {str: "TEXT", int: "INTEGER", bool: "true"}.get(field.type, "NUMBER")


def described() -> str:
    """Return the syntax and the docstring of every law, for help."""
    return "\n\n".join(f"{_folded(name)}\n\n{_help_text(kind)}" for name, kind in LAWS.items())


def _folded(name: str) -> str:
    form = form_of(name)
    if len(form) <= _WIDTH:
        return form
    return textwrap.fill(form.replace("][", "] ["), _WIDTH, subsequent_indent="    ")


_WIDTH = 78
"""Columns of a line of help."""


def _help_text(kind: type[Law]) -> str:
    text, _, _ = (inspect.getdoc(kind) or "").partition("\n\nExamples")
    return textwrap.indent(re.sub(r"_s : float$", " : duration", text, flags=re.MULTILINE), "  ")


FILE = "models.toml"
FLEETS = "fleets.toml"


class Prefab(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure law of a real machine.

    Parameters
    ----------
    title : str
        The machine, and the period of the record.
    source : str
        The record or the publication.
    nodes : int
        Number of nodes of the machine.
    failures : int, optional
        Number of failures of the machine in the record. Failures at the same time count once. None
        if only a rate is published.
    days : float, optional
        Length of the record.
    law : str
        Name of the law in `laws.LAWS`.
    parameters : dict of str to number or text
        Parameters of the law. Durations are in seconds.
    """

    title: str
    source: str
    nodes: int
    law: str
    parameters: dict[str, float | str]
    failures: int | None = None
    days: float | None = None


@cache
def prefabs() -> dict[str, Prefab]:
    """Return all failure laws of real machines, by name."""
    import tomllib  # most runs read no table of machines

    rows: dict[str, Any] = {}
    for file in (FILE, FLEETS):
        rows |= tomllib.loads((folder("failure_events") / file).read_text())
    return msgspec.convert(rows, dict[str, Prefab])
