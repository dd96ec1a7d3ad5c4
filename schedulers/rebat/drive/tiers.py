# SPDX-License-Identifier: Apache-2.0
"""The tables of checkpoints in several tiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from rebat.drive.parts import LoopMachine
from rebat.models.checkpoint import Checkpointing
from rebat.state import tables
from rebat.state.rows import array_of

NumberOf = Callable[[str], int]
"""The function that returns the number of a cause of failures."""


def tiers_for(
    profiles: Iterable[Checkpointing | None],
    number_of: NumberOf,
    machine: LoopMachine,
    cores_per_node: int,
    n_attempts: int,
    compiled: bool = False,
) -> tables.Tiers:
    """Return the tables of these profiles, with space for a number of attempts."""
    hosts = machine.original if machine.partitions else np.arange(machine.n_nodes)
    at_risk = np.zeros((n_attempts, tables.MOST_TIERS + 1), dtype=np.int64)
    after = np.zeros(tables.MOST_TIERS + 1, dtype=np.int64)
    made = tables.Tiers([], [], [], at_risk, after, hosts // cores_per_node)
    for checkpoints in profiles:
        add_profile(made, checkpoints, number_of)
    if not compiled:
        return made
    return made._replace(
        profiles=array_of(tables.Light, made.profiles),
        tiers=array_of(tables.Tier, made.tiers),
        causes=np.array(made.causes, dtype=np.int64),
    )


def add_profile(made: tables.Tiers, checkpoints: Checkpointing | None, number_of: NumberOf) -> None:
    """Add the row of a profile. The tables are not compiled."""
    light = checkpoints.light if checkpoints else None
    row = tables.Light(len(made.tiers), first_cause=len(made.causes))
    if light:
        row.n, row.group, row.n_causes = len(light.tiers), light.group, len(light.software)
        for tier in light.tiers:
            of_tier = tier.period_us, tier.cost_us, tier.recovery_us, tier.level
            made.tiers.append(tables.Tier(*of_tier))
        made.causes.extend(map(number_of, light.software))
    made.profiles.append(row)
