# SPDX-License-Identifier: Apache-2.0
"""A run as plain data, in seconds.

`staging` makes a simulation of it; `keys` says what of a run determines its result.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.options import MAX_ATTEMPTS
from rebat.models.checkpoint import Accounting, Rounding
from rebat.models.failures.events import GenericEvent
from rebat.models.failures.law import Law
from rebat.results.measures.platform import WalltimeKills


class Source(msgspec.Struct, frozen=True):
    """Where a workload comes from: a generator with a seed, or a file with import options."""

    generator: str | None = None
    seed: int = 0
    file: str | None = None
    options: dict[str, Any] = {}


class FailureScenario(msgspec.Struct, frozen=True):
    """Failures by a law; ``horizon_s`` is when they stop, in seconds from the run's begin.

    The run begins ``begin_s`` after the law's date 0: what failed before is history.
    """

    law: Law
    seed: int = 0
    horizon_s: float | None = None
    begin_s: float = 0.0

    @property
    def mtbf_s(self) -> float | None:
        """The machine's mean time between failures, where the law tells it."""
        return getattr(self.law, "mtbf_s", None)

    @property
    def downtime_s(self) -> float | None:
        """How long a failed node stays down, where the law tells it."""
        return getattr(self.law, "downtime_s", None)


class CheckpointModel(msgspec.Struct, frozen=True):
    """Young/Daly checkpoints in every job (section 5.2 of Du et al. 2024); in seconds."""

    mtbf_s: float
    cost_s: float
    recovery_s: float
    rounding: Rounding


class PerfectCheckpoints(msgspec.Struct, frozen=True, tag_field="model", tag="perfect"):
    """Every job goes on where it was interrupted, at no cost (Prabhakaran et al. 2018)."""


class SilentErrors(msgspec.Struct, frozen=True):
    """Silent errors to draw: at a rate per node and second, or such that a job of the average area
    errs with a probability."""

    rate: float | None = None
    probability: float | None = None
    seed: int = 0


class OperationFile(msgspec.Struct, frozen=True):
    """What an administrator asks for: a file's name, for tables, and its events."""

    file: str
    events: tuple[GenericEvent, ...]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload meets, policies apart: machine, failures, checkpoints, silent errors,
    operations, and what is measured. Without ``nodes``, the workload's own machine. With
    ``cores_per_node`` its nodes are cores, of which so many make up a node and fail together."""

    nodes: int | None = None
    cores_per_node: int = 1
    failures: FailureScenario | None = None
    checkpoint: CheckpointModel | PerfectCheckpoints | None = None
    silent_errors: SilentErrors | None = None
    operations: OperationFile | None = None
    window: str = "auto"
    select: str = "auto"
    walltime_kills: WalltimeKills = "wasted"
    max_attempts: int = MAX_ATTEMPTS
    accounting: Accounting = "exact"


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``grid``, ``workload`` and ``policy`` are also what the tables call it.

    ``folder`` is where files of one's own that the policy names are looked for; ``report`` the
    report that the file asks for, if it does.
    """

    grid: str
    workload: str
    policy: str
    source: Source
    scenario: Scenario = Scenario()
    folder: str = ""
    report: str = ""
