# SPDX-License-Identifier: Apache-2.0
"""Policy options as JSON: the scheduler, its options, and the checkpointing of jobs.

The JSON is the value of ``--options``, of Batsim's ``--sched-cfg``, or of pybatsim's ``-o``. If
both ``--options`` and ``--sched-cfg`` are set, the latter takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.contract import Policy
from rebat.core.errors import InputError
from rebat.core.options import SessionOptions, YoungDaly
from rebat.core.units import parse_duration
from rebat.policies.choosing import changed
from rebat.policies.presets import Preset, scheduler

_CHECKPOINT = {"mtbf": None, "checkpoint_cost": 300.0, "recovery_cost": 300.0}
"""Options of checkpointing and their defaults, in seconds (section 5.2 of Du et al. 2024)."""


COUNTS = ("cores_per_node", "max_attempts")
"""Options of a session that are options of a scenario, and not of a policy: whole numbers."""


def parse_options(text: str, where: str) -> dict[str, Any]:
    """Return the options in a JSON object. For an empty text, return an empty dict."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(
            f"is not JSON: {error}", where, 'an object like {"policy": "sfsj"}'
        ) from None
    if not isinstance(value, dict):
        raise InputError(
            f"{text[:60]!r} is not a JSON object", where, 'an object like {"policy": "sfsj"}'
        )
    return value


class Configured(msgspec.Struct, frozen=True):
    """A configured scheduler: its name, a function that creates it, and its session options."""

    name: str
    make: Callable[[], Policy]
    session: SessionOptions


Adapt = Callable[[Preset, int], Preset]
"""Function that adapts a preset to the machine, given the number of cores per node."""


def configure(policy: str, options: Mapping[str, Any], adapt: Adapt | None = None) -> Configured:
    """Return the scheduler with this name and these options.

    The option ``policy`` overrides the name. ``adapt`` adapts a preset to the machine.
    """
    remaining = dict(options)
    name = str(remaining.pop("policy", policy))
    counts = {key: _count(key, remaining.pop(key)) for key in COUNTS if key in remaining}
    checkpoint = {key: remaining.pop(key, default) for key, default in _CHECKPOINT.items()}
    chosen = scheduler(name)
    make, session = chosen.make, chosen.session
    if isinstance(chosen, Preset):
        chosen = msgspec.structs.replace(chosen, point=changed(chosen.point, remaining))
        if adapt:
            chosen = adapt(chosen, counts.get("cores_per_node", 1))
        make, session = chosen.make, chosen.session
    elif remaining:
        names = ", ".join(remaining)
        raise InputError(f"options {names} have no effect on a policy from a file")
    if checkpoint["mtbf"] is not None:
        seconds = {key: _seconds(key, value) for key, value in checkpoint.items()}
        young_daly = YoungDaly(
            seconds["mtbf"], seconds["checkpoint_cost"], seconds["recovery_cost"]
        )
        session = msgspec.structs.replace(session, young_daly=young_daly)
    session = msgspec.structs.replace(session, **counts)
    return Configured(name, make, session)


def _count(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"option {key} is {value!r}", expected="a whole number of at least 1")
    return value


def _seconds(key: str, value: Any) -> float:
    seconds = parse_duration(value) if isinstance(value, str | int | float) else 0.0
    if seconds <= 0:
        raise InputError(f"option {key} is {value!r}", expected="a duration above 0")
    return seconds
