# SPDX-License-Identifier: Apache-2.0
"""The tables of a grid of simulations in a campaign file."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rebat.models.checkpoint import Accounting, Rounding
from rebat.results.measures.platform import WalltimeKills
from rebat.runs.options import Count, ScenarioOptions
from rebat.runs.reading import Duration

_DEFAULTS = ScenarioOptions()
"""Defaults are those of the command line."""


class FailuresIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.failures]`` without the parameters of its law, which stand there too.

    ``model`` is another word for ``law``; a ``file`` alone is the law ``trace``. Seeds are numbers,
    or 'workload': each workload meets the failures of its own seed. ``group`` and the like are
    those of `Correlation`.
    """

    law: str | None = None
    model: str | None = None
    file: str | None = None
    seeds: list[int] | Literal["workload"] | None = None
    horizon: Duration | None = None
    begin: Duration = 0
    group: int = _DEFAULTS.failure_group
    cascade: float = _DEFAULTS.cascade
    cascade_window: Duration = _DEFAULTS.cascade_window
    cascade_within: int = 0


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.checkpoint]``; its MTBF is the failures' unless it says otherwise.

    'perfect' has no other parameters.
    """

    model: Literal["none", "young-daly", "perfect"] = "young-daly"
    cost: Duration = _DEFAULTS.checkpoint_cost
    recovery: Duration = _DEFAULTS.recovery_cost
    rounding: Rounding = _DEFAULTS.checkpoint_rounding
    mtbf: Duration | None = None


class SilentErrorsIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.silent_errors]``: every rate or every probability, with the seeds of the failures, or
    with these where no failures are drawn."""

    rate: float | list[float] | None = None
    probability: float | list[float] | None = None
    seeds: list[int] | None = None


class GridIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[grid]]``: workloads x policies x failures; ``failure_free`` policies also run without
    failures and silent errors, once per workload and kind of checkpoints; without
    ``failure_free_checkpoints`` without checkpoints, too."""

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []
    failure_free_checkpoints: bool = True
    failures: dict[str, Any] | None = None
    checkpoint: CheckpointIn | None = None
    silent_errors: SilentErrorsIn | None = None
    nodes: int | None = None
    cores_per_node: int = _DEFAULTS.cores_per_node
    operations: str | None = None
    window: str = _DEFAULTS.window
    select: str = _DEFAULTS.select
    walltime_kills: WalltimeKills = _DEFAULTS.walltime_kills
    max_attempts: Count = _DEFAULTS.max_attempts
    accounting: Accounting = _DEFAULTS.accounting
