# SPDX-License-Identifier: Apache-2.0
"""The specification of a run as plain data, with times in seconds.

The module `staging` prepares a simulation from it. The module `keys` selects the data that
determines the result.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.options import MAX_ATTEMPTS
from rebat.models.checkpoint import Accounting, Rounding
from rebat.models.failures.events import GenericEvent
from rebat.models.failures.law import Law
from rebat.models.tiers import Shares
from rebat.results.measures.platform import WalltimeKills


class Source(msgspec.Struct, frozen=True):
    """The origin of a workload: a generator with a seed, or a file with import options."""

    generator: str | None = None
    seed: int = 0
    file: str | None = None
    options: dict[str, Any] = {}


class FailureScenario(msgspec.Struct, frozen=True):
    """Failures that follow a law."""

    law: Law
    seed: int = 0
    horizon_s: float | None = None
    """Time after which no failure occurs, in seconds from the start of the run."""
    begin_s: float = 0.0
    """Time of the law at which the run begins. Earlier failures only set initial uptimes."""

    @property
    def mtbf_s(self) -> float | None:
        """Mean time between failures of the machine, or None if the law has none."""
        return getattr(self.law, "mtbf_s", None)

    @property
    def downtime_s(self) -> float | None:
        """Time that a failed node stays down, or None if the law does not define it."""
        return getattr(self.law, "downtime_s", None)


class CheckpointModel(msgspec.Struct, frozen=True):
    """Young/Daly checkpoints of all jobs (section 5.2 of Du et al. 2024). Times are in seconds."""

    mtbf_s: float
    cost_s: float
    recovery_s: float
    rounding: Rounding


class PerfectCheckpoints(msgspec.Struct, frozen=True, tag_field="model", tag="perfect"):
    """Checkpoints with which interruptions lose no work and no time (Prabhakaran et al. 2018)."""


class TierCheckpoints(msgspec.Struct, frozen=True, tag_field="model", tag="tiers"):
    """Checkpoints of all jobs in storage tiers (see `models.tiers`). Times are in seconds."""

    mtbf_s: float
    tiers: str
    light_share: Shares
    """For each light tier, the share of the failures that it survives."""
    software: str = ""
    """Causes of failures after which a node remains usable, joined by +."""
    group: int | msgspec.UnsetType = msgspec.UNSET
    """Number of nodes in a group that can fail together. Set only if a tier survives this."""


Checkpoints = CheckpointModel | PerfectCheckpoints | TierCheckpoints


class SilentErrors(msgspec.Struct, frozen=True):
    """Random silent errors. Either their rate or their probability is set."""

    rate: float | None = None
    """Errors per node and second."""
    probability: float | None = None
    """Probability of an error in a job of average area."""
    seed: int = 0


class OperationFile(msgspec.Struct, frozen=True):
    """Operations of an administrator: the events, and the name of their file, shown in tables."""

    file: str
    events: tuple[GenericEvent, ...]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a run: machine, failures, checkpoints, operations and measurement."""

    nodes: int | None = None
    """Number of nodes. If None, the workload defines it."""
    cores_per_node: int = 1
    """Number of consecutive cores that form a node and fail together. If 1, hosts are nodes."""
    failures: FailureScenario | None = None
    checkpoint: Checkpoints | None = None
    silent_errors: SilentErrors | None = None
    operations: OperationFile | None = None
    window: str = "auto"
    select: str = "auto"
    walltime_kills: WalltimeKills = "wasted"
    max_attempts: int = MAX_ATTEMPTS
    accounting: Accounting = "exact"


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one run."""

    grid: str
    """Name of the grid in tables."""
    workload: str
    """Name of the workload in tables."""
    policy: str
    """Name of the policy, which is also its name in tables."""
    source: Source
    scenario: Scenario = Scenario()
    kind: Any = None
    """Class of the policy, if a script or notebook defines it instead of a file."""
    folder: str = ""
    """Folder of user-defined files that the policy names."""
