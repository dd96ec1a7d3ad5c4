# SPDX-License-Identifier: Apache-2.0
"""Schedulers by name or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.policies.choosing import changed
from rebat.policies.own import is_own
from rebat.policies.own_policy import OwnPolicy, own_policy, without_class
from rebat.policies.placement.hazards import is_file
from rebat.policies.preset import Preset
from rebat.policies.preset_table import ALIASES, PRESETS
from rebat.policies.queue_order import QUEUE_ORDERS

__all__ = ["ALIASES", "PRESETS", "Preset", "preset", "scheduler", "schedulers"]


def preset(spec: str, folder: Path | None = None) -> Preset:
    """Return a preset by its name or alias, with the changes in the text (``axis=value``).

    Names are case-insensitive. A value without an axis sets the queue order. Relative paths of
    user-defined rules start from ``folder`` (default: the working directory).

    >>> preset("baseline:depth=easy,react=stealing").point == preset("easy-sfsj").point
    True
    >>> preset("r-list-q:la").point == preset("r-list-q:order=la").point
    True
    """
    typed, _, texts = spec.strip().partition(":")
    name = ALIASES.get(typed.lower(), typed.lower())
    if name not in PRESETS:
        if typed.endswith(".py"):
            raise without_class(typed, folder)
        raise unknown_name("policy", name, [*PRESETS, *ALIASES])
    row = PRESETS[name]
    if not texts:
        return row
    pairs = [_change(text) for text in texts.split(",")]
    if not all(axis and value for axis, value in pairs):
        raise InputError(f"invalid policy {spec!r}", expected="name:axis=choice,axis=choice")
    repeated = [axis for axis, n in Counter(axis for axis, _ in pairs).items() if n > 1]
    if repeated:
        error = f"policy {spec!r} has two values for {repeated[0]}"
        raise InputError(error, expected="one value per axis")
    point = changed(row.point, dict(pairs), folder)
    changes = ",".join(
        text if is_own(text) or is_file(text) else text.lower() for text in texts.split(",")
    )
    return Preset(f"{name}:{changes}", f"{row.summary}; with {changes}", row.source, point)


def _change(text: str) -> tuple[str, str]:
    """Return the axis and the choice in a text. Both are in lower case, except file names."""
    axis, equals, value = text.partition("=")
    if not equals and (is_own(text) or text.lower() in QUEUE_ORDERS):
        axis, value = "order", text
    return axis.lower(), value if is_own(value) or is_file(value) else value.lower()


def scheduler(spec: str, folder: Path | None = None) -> Preset | OwnPolicy:
    """Return a preset by its name (see `preset`), or a custom policy ``FILE.py:CLASS``."""
    if is_own(spec) and spec.strip().partition(":")[0].lower() not in {*PRESETS, *ALIASES}:
        return own_policy(spec, folder)
    return preset(spec, folder)


def schedulers(specs: Iterable[str]) -> list[Preset | OwnPolicy]:
    """Return the schedulers in order.

    If several custom policies have the same class name, their names consist of file and class.
    """
    rows: dict[Any, Preset | OwnPolicy] = {}
    typed: dict[Any, str] = {}
    for spec in map(str.strip, specs):
        row = scheduler(spec)
        key = row.place if isinstance(row, OwnPolicy) else row.name
        if key in rows:
            other = "" if spec == typed[key] else f" of {typed[key]}"
            raise InputError(f"{spec} is a duplicate{other}", expected="each policy once")
        rows[key], typed[key] = row, spec
    counts = Counter(row.name for row in rows.values())
    return [
        msgspec.structs.replace(row, name=typed[key])
        if isinstance(row, OwnPolicy) and counts[row.name] > 1
        else row
        for key, row in rows.items()
    ]
