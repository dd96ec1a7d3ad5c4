# SPDX-License-Identifier: Apache-2.0
"""Parameters with several values, from options of a scenario: ``rebat sweep --over``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from rebat.api.checks import UsedOptions, check_options, error_at
from rebat.api.sweep import CHECKPOINT, grid_of, tables_of
from rebat.core.errors import InputError, short
from rebat.core.units import parse_duration
from rebat.models.failures.laws import name_of
from rebat.runs.scenario import OPTIONS, Conditions, ScenarioOptions
from rebat.runs.unit import Source


def values_of(text: str) -> tuple[str, list[Any]]:
    """Return the name and the values of ``--over``.

    >>> values_of("mtbf=15min..4h:3"), values_of("spares=0..8:3"), values_of("load=0.8,1,1.2")
    (('mtbf', [900.0, 3600.0, 14400.0]), ('spares', [0, 4, 8]), ('load', [0.8, 1, 1.2]))
    """
    name, equals, listed = text.partition("=")
    span = re.fullmatch(r"(.+)\.\.(.+):(\d+)", listed)
    expected = "NAME=LOW..HIGH:N or NAME=VALUE,VALUE,..."
    name = name.strip().replace("-", "_")
    if not equals or not name or not listed:
        raise InputError(f"is {short(text)}", "--over", expected)
    with error_at("--over"):
        if span is None:
            return name, [_value(each) for each in listed.split(",")]
        low, high, n = _value(span[1]), _value(span[2]), int(span[3])
        if not low < high or n < 2:
            raise InputError(f"is {short(text)}", expected=f"{expected}, LOW below HIGH, N above 1")
        if span[1][-1].isalpha():
            return name, [_rounded(low * (high / low) ** (k / (n - 1))) for k in range(n)]
        steps = [low + (high - low) * k / (n - 1) for k in range(n)]
        whole = isinstance(low, int) and isinstance(high, int)
        return name, list(dict.fromkeys(round(v) if whole else round(v, 9) for v in steps))


def _value(text: str) -> Any:
    """Return a number, or a duration in seconds."""
    text = text.strip()
    if text[-1:].isalpha():
        return parse_duration(text)
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise InputError(f"{short(text)} is not a number", expected="like 5, 0.5 or 5min") from None


def _rounded(seconds: float) -> float:
    """Round a duration of at least a minute to whole seconds."""
    return float(round(seconds)) if seconds >= 60 else round(seconds, 6)


def checked_options(
    values: Mapping[str, Any], used: UsedOptions, over: Mapping[str, list[Any]]
) -> ScenarioOptions:
    """Return the options of a scenario with the first values of ``--over``, after checks.

    ``used`` has the spelling of the options that the user set.
    """
    first = {name: listed[0] for name, listed in over.items() if name in OPTIONS}
    spelled = {name: f"--over {name}" for name in first}
    for name in first.keys() & used.keys():
        raise InputError("has no effect", used[name], f"only one of {used[name]} and --over {name}")
    options = ScenarioOptions(**{**values, **first})
    check_options(options, {**used, **spelled})
    return options


def campaign_tables(
    source: Source,
    policies: Sequence[str],
    options: ScenarioOptions,
    over: Mapping[str, list[Any]],
    seeds: int = 10,
) -> dict[str, Any]:
    """Return the tables of a campaign file that has the runs of a sweep."""
    arguments = arguments_of(options, over)
    law, checkpoint = arguments.pop("law", None), arguments.pop("checkpoint", "none")
    return tables_of(source, grid_of(policies, law, seeds, checkpoint, arguments))


def arguments_of(options: ScenarioOptions, over: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return arguments of `sweep` for options of a scenario and values of some parameters."""
    usual, law = ScenarioOptions(), options.single_law()
    chosen: dict[str, Any] = {}
    if law is not None:
        chosen["law"] = name_of(law)
        if not getattr(law, "machine", ""):
            chosen |= {
                field.name.removesuffix("_s"): getattr(law, field.name)
                for field in structs.fields(law)
                if getattr(law, field.name) != field.default
            }
        for name in filter(chosen.get, law.paths):
            chosen[name] = str(Path(chosen[name]).absolute())
    names = {
        "horizon": "horizon", "begin": "begin", "failure_group": "group", "cascade": "cascade",
        "cascade_window": "cascade_window", "cascade_within": "cascade_within",
        "checkpoint": "checkpoint", **{name: name for name in CHECKPOINT},
        **{name: name for name in Conditions.__struct_fields__},
    }  # fmt: skip
    for name, argument in names.items():
        if (value := getattr(options, name)) != getattr(usual, name):
            chosen[argument] = value
    if options.mtbf is not None and law is not None and not hasattr(law, "mtbf_s"):
        chosen["checkpoint_mtbf"] = options.mtbf
    if options.operations:
        chosen["operations"] = str(options.operations.absolute())
    silent = {"rate": options.silent_errors, "probability": options.silent_error_probability}
    if set_ := {name: value for name, value in silent.items() if value is not None}:
        chosen["silent_errors"] = set_
    return chosen | dict(over)
