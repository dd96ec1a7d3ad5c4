# SPDX-License-Identifier: Apache-2.0
"""Schedulers by name, or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.policies.choosing import changed
from rebat.policies.own import is_own
from rebat.policies.own_policy import OwnPolicy, own_policy
from rebat.policies.placement.hazards import is_file
from rebat.policies.preset import Preset
from rebat.policies.preset_table import ALIASES, PRESETS
from rebat.policies.queue_order import QUEUE_ORDERS

__all__ = ["ALIASES", "PRESETS", "Preset", "preset", "scheduler", "schedulers"]


def preset(spec: str, folder: Path | None = None) -> Preset:
    """The scheduler of a name or alias, in any case, with changed options if it names some.

    A choice without its axis is a queue order. Files with rules of one's own are looked for from
    ``folder`` on, or from here.

    >>> preset("baseline:depth=easy,react=stealing").point == preset("easy-sfsj").point
    True
    >>> preset("r-list-q:la").point == preset("r-list-q:order=la").point
    True

    Raises
    ------
    InputError
        For an unknown name, axis or choice; the message lists what there is. For an axis with two
        values.
    """
    name, _, texts = spec.strip().partition(":")
    name = ALIASES.get(name.lower(), name.lower())
    if name not in PRESETS:
        raise unknown_name("policy", name, [*PRESETS, *ALIASES])
    found = PRESETS[name]
    if not texts:
        return found
    pairs = [_change(text) for text in texts.split(",")]
    if not all(axis and value for axis, value in pairs):
        raise InputError(f"policy {spec!r}", expected="name:axis=choice,axis=choice")
    twice = [axis for axis, times in Counter(axis for axis, _ in pairs).items() if times > 1]
    if twice:
        raise InputError(f"policy {spec!r} has two values for {twice[0]}", expected="one per axis")
    point = changed(found.point, dict(pairs), folder)
    changes = ",".join(
        text if is_own(text) or is_file(text) else text.lower() for text in texts.split(",")
    )
    return Preset(f"{name}:{changes}", f"{found.summary}; but {changes}", found.source, point)


def _change(text: str) -> tuple[str, str]:
    """An axis and its choice; names in any case, files as they are."""
    axis, equals, value = text.partition("=")
    if not equals and (is_own(text) or text.lower() in QUEUE_ORDERS):
        axis, value = "order", text
    return axis.lower(), value if is_own(value) or is_file(value) else value.lower()


def scheduler(spec: str, folder: Path | None = None) -> Preset | OwnPolicy:
    """A preset by name, or a policy of one's own: ``FILE.py:CLASS``, from ``folder`` on."""
    if is_own(spec) and spec.strip().partition(":")[0].lower() not in {*PRESETS, *ALIASES}:
        return own_policy(spec, folder)
    return preset(spec, folder)


def schedulers(specs: Iterable[str]) -> list[Preset | OwnPolicy]:
    """Schedulers in order, each once; own policies whose name is taken go by file and class."""
    found: dict[Any, Preset | OwnPolicy] = {}
    typed: dict[Any, str] = {}
    for spec in specs:
        one = scheduler(spec)
        key = one.place if isinstance(one, OwnPolicy) else one.name
        found.setdefault(key, one)
        typed.setdefault(key, spec.strip())
    taken = Counter(one.name for one in found.values())
    return [
        msgspec.structs.replace(one, name=typed[key])
        if isinstance(one, OwnPolicy) and taken[one.name] > 1
        else one
        for key, one in found.items()
    ]
