# SPDX-License-Identifier: Apache-2.0
"""Shell completion of values: policies with axes, failure laws, generators and metrics.

The public functions have the signature that ``shell_complete`` of a click parameter requires:
context, parameter and incomplete text. Modules are imported only when the shell requests a
completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from rebat.core.errors import RebatError

Items = list[CompletionItem[str]]
Helps = Mapping[str, str]
"""Help text of each candidate."""


class Keys(NamedTuple):
    """The keys that a text NAME:KEY=VALUE,... can have, with their help texts and choices."""

    helps: Helps
    choices: Callable[[str], Iterable[str]]


def items_of(helps: Helps, before: str, part: str, after: str = "") -> Items:
    """Return the candidates that begin with ``part``, each between ``before`` and ``after``."""
    return [
        CompletionItem(f"{before}{name}{after}", help=_line(text))
        for name, text in helps.items()
        if name.startswith(part.lower())
    ]


def notation(text: str, names: Helps, keys_of: Callable[[str, dict[str, str]], Keys]) -> Items:
    """Complete a text NAME:KEY=VALUE,...

    Parameters
    ----------
    text : str
        The incomplete text.
    names : mapping
        Help text by name.
    keys_of : callable
        Function that returns the keys, from the name and the values of the complete pairs.
    """
    name, colon, pairs = text.partition(":")
    if not colon:
        return items_of(names, "", text)
    *complete, part = pairs.split(",")
    before = text[: len(text) - len(part)]
    values = {key: value for key, _, value in (pair.partition("=") for pair in complete)}
    keys = keys_of(name.lower(), values)
    key, equals, value = part.partition("=")
    if equals:
        return _choices(keys.choices(key), f"{before}{key}=", value)
    unused = {key: text for key, text in keys.helps.items() if key not in values}
    return items_of(unused, before, part, "=")


def _choices(names: Iterable[str], before: str, value: str) -> Items:
    """Return the choices of a key. In a value like ``a+b``, complete only the last part."""
    joined, plus, part = value.rpartition("+")
    used = joined.split("+")
    return items_of({n: "" for n in names if n not in used}, f"{before}{joined}{plus}", part)


def _line(text: str | None) -> str | None:
    """Return a help text as one line, or None if it is empty."""
    return " ".join((text or "").split()) or None


# ---- policies


def complete_policy(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a policy, then its axes and their choices, or a file."""
    from rebat.policies.presets import ALIASES, PRESETS

    names = {name: row.summary for name, row in PRESETS.items()}
    names |= {alias: f"alias of {name}" for alias, name in ALIASES.items()}
    items = notation(incomplete, names, _axes)
    is_file = incomplete and not items and ":" not in incomplete
    return [CompletionItem(incomplete, type="file")] if is_file else items


def _axes(name: str, values: dict[str, str]) -> Keys:
    from rebat.policies.choosing import OPTIONS

    helps = {axis: OPTIONS[axis].meta.description or "" for axis in _axes_with_effect(name, values)}

    return Keys(helps, lambda axis: OPTIONS[axis].names if axis in OPTIONS else ())


def _axes_with_effect(name: str, values: dict[str, str]) -> Iterable[str]:
    """Return the axes that have an effect together with these values."""
    from rebat.policies.choosing import changed
    from rebat.policies.presets import ALIASES, PRESETS

    row = PRESETS.get(ALIASES.get(name, name))
    if row is None:
        return ()
    try:
        return changed(row.point, values).effective
    except RebatError:
        return row.point.effective


# ---- failure laws and generators


def complete_law(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a failure law, then its parameters."""
    return notation(incomplete, _laws(), _law_parameters)


def complete_law_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a failure law that has an MTBF."""
    from rebat.models.failures.laws import parameters

    helps = {name: text for name, text in _laws().items() if "mtbf" in parameters(name)}
    return items_of(helps, "", incomplete)


def _laws() -> Helps:
    from rebat.models.failures.laws import LAWS, prefabs

    laws = {name: (kind.__doc__ or "").partition("\n")[0] for name, kind in LAWS.items()}
    return laws | {name: prefab.title for name, prefab in prefabs().items()}


def _law_parameters(name: str, values: dict[str, str]) -> Keys:
    from rebat.models.failures.laws import parameters

    if name not in _laws():
        return Keys({}, lambda key: ())
    fields = parameters(name)
    helps = {key: "required" if field.required else "" for key, field in fields.items()}
    return Keys(helps, lambda key: _values(fields[key].type) if key in fields else ())


def _values(kind: Any) -> tuple[str, ...]:
    """Return the values of a Boolean or literal type. Other types have no list of values."""
    if kind is bool:
        return ("true", "false")
    return tuple(map(str, get_args(kind))) if str(get_origin(kind)) == "typing.Literal" else ()


def complete_generator(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a workload generator, then its options."""
    from rebat.workloads.generate import NAMES

    return notation(incomplete, dict.fromkeys(NAMES, ""), _generator_options)


def _generator_options(name: str, values: dict[str, str]) -> Keys:
    from rebat.workloads.generate import OPTIONS

    hints = get_type_hints(OPTIONS[name][0]) if name in OPTIONS else {}
    return Keys(dict.fromkeys(hints, ""), lambda key: _values(hints.get(key)))


# ---- metrics


def complete_metric(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a metric. If it is measured by size class, append ``:all``."""
    return items_of(_metrics(), "", incomplete)


def complete_metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the last name of a list of metrics, separated by commas."""
    before, comma, part = incomplete.rpartition(",")
    used = before.split(",")
    unused = {name: text for name, text in _metrics().items() if name not in used}
    return items_of(unused, before + comma, part)


def _metrics() -> Helps:
    from rebat.results.catalogue import CATALOGUE, FURTHER

    return {
        f"{row.name}:all" if row.by_class else row.name: row.heading.strip()
        for row in (*CATALOGUE, *FURTHER)
        if not row.derived and "*" not in row.name
    }
