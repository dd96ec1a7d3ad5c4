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
"""The same defaults as on the command line."""


class FailuresIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.failures]``. It also contains the parameters of the law.

    For ``group`` and the cascade options, see `Correlation`.
    """

    law: str | None = None
    model: str | None = None
    """Alternative name of ``law``."""
    file: str | None = None
    """Event file, for the law ``trace``."""
    seeds: list[int] | Literal["workload"] | None = None
    """Seeds of the failures. If 'workload', each workload's own seed is used."""
    horizon: Duration | None = None
    begin: Duration = 0
    group: int = _DEFAULTS.failure_group
    cascade: float = _DEFAULTS.cascade
    cascade_window: Duration = _DEFAULTS.cascade_window
    cascade_within: int = 0


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.checkpoint]``. The default MTBF is the MTBF of the failures.

    Durations and tiers can have several values. The model 'perfect' has no other parameters.
    """

    model: Literal["none", "young-daly", "perfect", "tiers:auto"] = "young-daly"
    tiers: str | list[str] = _DEFAULTS.tiers
    cost: Duration | list[Duration] = _DEFAULTS.checkpoint_cost
    recovery: Duration | list[Duration] = _DEFAULTS.recovery_cost
    rounding: Rounding = _DEFAULTS.checkpoint_rounding
    mtbf: Duration | list[Duration] | None = None


class SilentErrorsIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.silent_errors]``. Each rate or probability runs with each failure seed.

    ``seeds`` is used only if no failures are drawn at random.
    """

    rate: float | list[float] | None = None
    probability: float | list[float] | None = None
    seeds: list[int] | None = None


class GridIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[[grid]]``: all combinations of workloads, policies and failures."""

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []
    """Policies to run without failures and silent errors, once with each checkpoint model."""
    failure_free_checkpoints: bool = True
    """Whether the runs of ``failure_free`` policies have checkpoints."""
    sweep: dict[str, list[Any]] = {}
    """Values for the names in braces in policies (see `sweeps`)."""
    failures: dict[str, Any] | None = None
    checkpoint: CheckpointIn | None = None
    silent_errors: SilentErrorsIn | None = None
    nodes: int | list[int] | None = None
    cores_per_node: int = _DEFAULTS.cores_per_node
    operations: str | None = None
    window: str = _DEFAULTS.window
    select: str = _DEFAULTS.select
    walltime_kills: WalltimeKills = _DEFAULTS.walltime_kills
    max_attempts: Count = _DEFAULTS.max_attempts
    accounting: Accounting = _DEFAULTS.accounting
