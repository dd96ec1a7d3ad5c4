# SPDX-License-Identifier: Apache-2.0
"""Light checkpoints (in memory or on a local disk) between the regular ones (remote storage).

A period of a job consists of parts, each with a light checkpoint at its end. The regular checkpoint
follows the last part. A failure that light checkpoints survive only loses the current part. Another
failure loses the work since the last regular checkpoint, also that of earlier attempts.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.units import MAX_SECONDS, to_us

Survives = Literal["process", "node"]
"""Failures that light checkpoints survive: those that keep the node, or those of a single node."""

FIELDS = ("light_period", "light_cost", "light_recovery")


class Failure(msgspec.Struct, frozen=True):
    """A failure of an attempt: how long it had run, the cause, and how many of its nodes failed."""

    ran_us: int
    cause: str = ""
    n_nodes: int = 1


class LightCheckpoints(msgspec.Struct, frozen=True):
    """Light checkpoints of an execution; in microseconds.

    Attributes
    ----------
    period_us, cost_us, recovery_us : int
        Work between two light checkpoints, time to write and to read a checkpoint.
    survives : 'process' or 'node'
    software : tuple of str
        Causes of failures that keep the node.
    """

    period_us: int
    cost_us: int
    recovery_us: int
    survives: Survives
    software: tuple[str, ...] = ()

    @property
    def part_us(self) -> int:
        """Work and its light checkpoint."""
        return self.period_us + self.cost_us

    def survive(self, failure: Failure) -> bool:
        """Return whether the light checkpoints survive a failure."""
        if failure.cause in self.software:
            return True
        return self.survives == "node" and failure.n_nodes == 1

    def complete_us(self, worked_us: int) -> int:
        """Return the complete parts of a progress within a period."""
        return worked_us - worked_us % self.part_us

    def written_us(self, worked_us: int) -> int:
        """Return how much of ``worked_us`` was spent to write light checkpoints."""
        n_complete, position_us = divmod(worked_us, self.part_us)
        return n_complete * self.cost_us + max(0, position_us - self.period_us)


def light_of(profile: dict[str, Any]) -> LightCheckpoints | None:
    """Return the light checkpoints in a Batsim profile; None if it has none.

    Raises
    ------
    InputError
        If a field has a wrong value.
    """
    if "light_period" not in profile:
        return None
    values = []
    for name in FIELDS:
        value = profile.get(name, 0)
        if not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            raise InputError(
                f"profile field {name} is {short(value)}", expected="seconds, 0 or more"
            )
        values.append(to_us(value))
    if values[0] == 0:
        raise InputError("profile field light_period is 0", expected="seconds, above 0")
    survives, software = profile.get("light_survives", "node"), profile.get("light_software", "")
    if survives not in get_args(Survives):
        expected = " or ".join(get_args(Survives))
        raise InputError(f"profile field light_survives is {short(survives)}", expected=expected)
    if not isinstance(software, str):
        raise InputError(f"profile field light_software is {short(software)}", expected="a text")
    causes = tuple(part for part in software.split("+") if part)
    period_us, cost_us, recovery_us = values
    return LightCheckpoints(period_us, cost_us, recovery_us, survives, causes)
