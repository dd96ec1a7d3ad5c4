# SPDX-License-Identifier: Apache-2.0
"""Light checkpoints (in memory or on a local disk) between the regular ones (remote storage).

A period of a job consists of *parts*, each with a light checkpoint at its end. The regular
checkpoint follows the last part. If there are several light tiers, a part of one tier consists of
parts of the next lighter tier. A failure loses the work since the last checkpoint that survives the
failure, including work of earlier attempts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, get_args

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.units import MAX_SECONDS, to_s, to_us

Survives = Literal["process", "node", "group"]
"""Failures that light checkpoints survive.

process: failures after which the node is still usable. node: also failures of a single node.
group: also failures of a group of nodes (a rack, a switch).
"""

FIELDS = ("light_period", "light_cost", "light_recovery")


class Failure(msgspec.Struct, frozen=True):
    """A failure of an attempt.

    Attributes
    ----------
    ran_us : int
        How long the attempt had run.
    cause : str
    n_nodes : int
        Number of its nodes that failed.
    first : int
        Lowest number of a failed node.
    last : int
        Highest number of a failed node.
    """

    ran_us: int
    cause: str = ""
    n_nodes: int = 1
    first: int = 0
    last: int = 0


class LightTier(msgspec.Struct, frozen=True):
    """A tier of light checkpoints. Times are in microseconds.

    Attributes
    ----------
    period_us : int
        Time between two checkpoints, including checkpoints of lighter tiers.
    cost_us : int
        Time to write a checkpoint.
    recovery_us : int
        Time to read a checkpoint.
    survives : 'process', 'node' or 'group'
    """

    period_us: int
    cost_us: int
    recovery_us: int
    survives: Survives

    @property
    def part_us(self) -> int:
        """Length of a part: the period plus the checkpoint at its end."""
        return self.period_us + self.cost_us


class LightCheckpoints(msgspec.Struct, frozen=True):
    """Light checkpoints of an execution.

    Attributes
    ----------
    tiers : tuple of LightTier
        The tiers from the lightest to the heaviest. Each survives more failures than the previous
        tier.
    software : tuple of str
        Causes of failures after which the node is still usable.
    group : int
        Number of consecutive nodes that form a group, which can fail together.
    """

    tiers: tuple[LightTier, ...]
    software: tuple[str, ...] = ()
    group: int = 1

    def surviving(self, failure: Failure) -> int | None:
        """Return the lightest tier that survives a failure.

        Return None if no light tier survives it.
        """
        needs = self._needs(failure)
        able = (i for i, tier in enumerate(self.tiers) if _LEVEL[tier.survives] >= needs)
        return next(able, None)

    def _needs(self, failure: Failure) -> int:
        """Return the lowest level in `_LEVEL` that survives a failure."""
        if failure.cause in self.software:
            return _LEVEL["process"]
        if failure.n_nodes == 1:
            return _LEVEL["node"]
        same = failure.first // self.group == failure.last // self.group
        return _LEVEL["group"] if same else len(_LEVEL)

    def complete_us(self, worked_us: int, tier: int) -> int:
        """Return the progress (us) in the last checkpoint of this tier or of a heavier tier.

        ``worked_us`` is the progress in a period of the regular checkpoints.
        """
        done_us, rest_us = 0, worked_us
        for level in reversed(self.tiers[tier:]):
            count, rest_us = divmod(rest_us, level.part_us)
            done_us += count * level.part_us
            rest_us = min(rest_us, level.period_us)  # lighter checkpoints come first
        return done_us

    def written_us(self, worked_us: int) -> int:
        """Return the time in ``worked_us`` that was spent to write light checkpoints."""
        return _written_us(self.tiers, worked_us)


def _written_us(tiers: tuple[LightTier, ...], worked_us: int) -> int:
    if not tiers:
        return 0
    *lighter, tier = tiers
    count, position_us = divmod(worked_us, tier.part_us)
    in_part_us = _written_us(tuple(lighter), tier.period_us) + tier.cost_us
    writing_us = max(0, position_us - tier.period_us)
    lighter_us = _written_us(tuple(lighter), min(position_us, tier.period_us))
    return count * in_part_us + lighter_us + writing_us


_LEVEL: dict[str, int] = {name: level for level, name in enumerate(get_args(Survives))}


def light_of(profile: dict[str, Any]) -> LightCheckpoints | None:
    """Return the light checkpoints in a Batsim profile.

    Return None if it has none. If there are several light tiers, each field is a list that begins
    with the lightest tier.
    """
    if "light_period" not in profile:
        return None
    columns = [_seconds_us(profile, name) for name in FIELDS]
    survives = _several(profile.get("light_survives", "node"))
    for value in survives:
        if value not in _LEVEL:
            expected = " or ".join(_LEVEL)
            raise InputError(f"profile field light_survives is {short(value)}", expected=expected)
    if {len(column) for column in columns} != {len(survives)}:
        names = ", ".join((*FIELDS, "light_survives"))
        raise InputError(f"profile fields {names} have different lengths", expected="equal lengths")
    tiers = tuple(LightTier(*values) for values in zip(*columns, survives, strict=True))
    _check_tiers(tiers)
    software, group = profile.get("light_software", ""), profile.get("light_group", 1)
    if not isinstance(software, str):
        raise InputError(f"profile field light_software is {short(software)}", expected="a text")
    if not isinstance(group, int) or group < 1:
        expected = "a number of nodes, 1 or more"
        raise InputError(f"profile field light_group is {short(group)}", expected=expected)
    return LightCheckpoints(tiers, tuple(part for part in software.split("+") if part), group)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) and value else [value]


def _seconds_us(profile: dict[str, Any], name: str) -> list[int]:
    values = []
    for value in _several(profile.get(name, 0)):
        if not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            raise InputError(
                f"profile field {name} is {short(value)}", expected="seconds, 0 or more"
            )
        values.append(to_us(value))
    return values


def _check_tiers(tiers: tuple[LightTier, ...]) -> None:
    if not all(tier.period_us for tier in tiers):
        raise InputError("profile field light_period is 0", expected="seconds, above 0")
    for lighter, tier in pairwise(tiers):
        if tier.period_us % lighter.part_us:
            expected = "a multiple of the period and cost of the lighter tier"
            raise InputError(
                f"profile field light_period has {to_s(tier.period_us):g}", expected=expected
            )
        if _LEVEL[tier.survives] <= _LEVEL[lighter.survives]:
            problem = f"profile field light_survives has {tier.survives} after {lighter.survives}"
            raise InputError(problem, expected=f"the order {', '.join(_LEVEL)}")
