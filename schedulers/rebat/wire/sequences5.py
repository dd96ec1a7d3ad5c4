# SPDX-License-Identifier: Apache-2.0
"""Resubmissions as sequences: recovery, work, checkpoint, work, and so on.

Unlike Batsim 4, Batsim 5 can run sequences that are registered during the simulation. If a sequence
is killed, Batsim 5 reports the part that was interrupted. A sequence has the same length as the
delay profile that it replaces. If the delay fails, its last part is a profile of the workload file
that fails (`rebat.core.batsim5.as_sequence`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebat.core.batsim5 import ENDING_US, FAILS
from rebat.core.decisions import Decision, RegisterProfile
from rebat.core.jobs import batsim_number
from rebat.core.units import to_us
from rebat.models.checkpoint import Checkpointing, checkpointing_of

MOST_PARTS = 100
"""Maximum number of parts of a sequence. A profile with more parts remains a delay profile."""


def with_sequences(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Return the decisions. Replace checkpointed delays and delays that fail by sequences."""
    if not any(isinstance(decision, RegisterProfile) for decision in decisions):
        return decisions
    result: list[Decision] = []
    for decision in decisions:
        parts = _parts(decision) if isinstance(decision, RegisterProfile) else []
        if isinstance(decision, RegisterProfile) and parts:
            result += _sequence(decision, parts)
        else:
            result.append(decision)
    return tuple(result)


def _parts(decision: RegisterProfile) -> list[tuple[str, int]]:
    """Return the parts (name, length in us). If the profile remains a delay, there are none."""
    profile = decision.profile
    if profile.get("type") != "delay":
        return []
    c = checkpointing_of(profile)
    length_us = to_us(profile["delay"])
    parts = [("work", length_us)]
    if c and not c.never and length_us <= MOST_PARTS // 2 * c.cycle_us:
        parts = [part for part in parts_of(c, length_us) if part[1] > 0]
    if _failing(profile):
        parts[-1] = ("end", parts[-1][1] - ENDING_US)
        return [part for part in parts if part[1] > 0] + [(FAILS, ENDING_US)]
    return parts if len(parts) > 1 else []


def _failing(profile: dict[str, Any]) -> list[str]:
    """Return the names of the parts of a static delay, if the profile fails as the delay does."""
    return profile.get(FAILS, []) if profile.get("ret") else []


def parts_of(c: Checkpointing, length_us: int) -> Iterator[tuple[str, int]]:
    """Yield name and length (us) of each part of an attempt of this length.

    >>> c = Checkpointing(100, 10, 7, first_period_us=40, first_recovery_us=7)
    >>> [name for name, _ in parts_of(c, 197)]
    ['recovery', 'first', 'checkpoint', 'work', 'checkpoint', 'last', 'checkpoint']
    """
    recovery_us = min(c.first_recovery_us, length_us)
    yield "recovery", recovery_us
    left_us, name, period_us = length_us - recovery_us, "first", c.first_period_us
    while left_us > period_us + c.cost_us:
        yield name, period_us
        yield "checkpoint", c.cost_us
        left_us, name, period_us = left_us - period_us - c.cost_us, "work", c.period_us
    complete = left_us == period_us + c.cost_us
    closing_us = c.cost_us if (complete or c.closing) and left_us > c.cost_us else 0
    yield (name if complete else "last"), left_us - closing_us
    yield "checkpoint", closing_us


def _sequence(decision: RegisterProfile, parts: list[tuple[str, int]]) -> list[Decision]:
    """Return the registrations of the parts and of the sequence, which keeps all other fields."""
    at_us, workload = decision.at_us, decision.workload
    registered: list[Decision] = []
    names = {name: f"{decision.name}.{name}" for name, _ in parts}
    failing = _failing(decision.profile)
    if failing:
        names[FAILS] = failing[-1]
    for name, length_us in dict(parts).items():
        if name == FAILS:
            continue
        profile: dict[str, Any] = {"type": "delay", "delay": batsim_number(length_us)}
        registered.append(
            RegisterProfile(at_us=at_us, workload=workload, name=names[name], profile=profile)
        )
    others = {k: v for k, v in decision.profile.items() if k not in ("type", "delay", "ret", FAILS)}
    sequence = {"type": "composed", "repeat": 1, **others}
    sequence["seq"] = [names[name] for name, _ in parts]
    if decision.profile.get("ret") and not failing:
        sequence["ret"] = decision.profile["ret"]  # the encoder rejects this, as for a delay
    registered.append(
        RegisterProfile(at_us=at_us, workload=workload, name=decision.name, profile=sequence)
    )
    return registered
