"""A run as plain data, in seconds, and the tables of the file that it comes from.

``grid`` makes the former of the latter; ``scenario`` makes a simulation of it; ``keys`` says what
of a run determines its result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from rebat.campaign.reading import Duration, Durations
from rebat.models.checkpoint import Rounding


class Source(msgspec.Struct, frozen=True):
    """Where a workload comes from: a generator with a seed, or a file with import options."""

    generator: str | None = None
    seed: int = 0
    file: str | None = None
    options: dict[str, Any] = {}


class FailureScenario(msgspec.Struct, frozen=True):
    """Failures to draw; in seconds, the MTBF that of the whole machine."""

    model: str
    mtbf_s: float
    downtime_s: float
    seed: int
    horizon_s: float | None = None


class CheckpointModel(msgspec.Struct, frozen=True):
    """Young/Daly checkpoints in every job (section 5.2 of Du et al. 2024); in seconds."""

    mtbf_s: float
    cost_s: float
    recovery_s: float
    rounding: Rounding


class FailureFile(msgspec.Struct, frozen=True):
    """Failures as an event file has them."""

    path: Path


class SilentErrors(msgspec.Struct, frozen=True):
    """Silent errors to draw: at a rate per node and second, or such that a job of the average area
    errs with a probability."""

    rate: float | None = None
    probability: float | None = None
    seed: int = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload meets, policies apart: machine, failures, checkpoints, silent errors, and
    what is measured. Without ``nodes``, the workload's own machine."""

    nodes: int | None = None
    failures: FailureScenario | FailureFile | None = None
    checkpoint: CheckpointModel | None = None
    silent_errors: SilentErrors | None = None
    window: str = "auto"
    select: str = "auto"


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``grid``, ``workload`` and ``policy`` are also what the tables call it.

    ``folder`` is where files of one's own that the policy names are looked for.
    """

    grid: str
    workload: str
    policy: str
    source: Source
    scenario: Scenario = Scenario()
    folder: str = ""


class FailuresIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.failures]``: every MTBF with every downtime and every seed."""

    mtbf: Durations
    downtime: Durations = "1h"
    seeds: list[int] = msgspec.field(default_factory=lambda: [0])
    model: str = "authors"
    horizon: Duration | None = None


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.checkpoint]``; its MTBF is the failures' unless it says otherwise."""

    model: Literal["none", "young-daly"] = "young-daly"
    cost: Duration = "5min"
    recovery: Duration = "5min"
    rounding: Rounding = "ceil"
    mtbf: Duration | None = None


class SilentErrorsIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[grid.silent_errors]``: every rate or every probability, with the seeds of the failures, or
    with these where nothing else fails."""

    rate: float | list[float] | None = None
    probability: float | list[float] | None = None
    seeds: list[int] | None = None


class GridIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[grid]]``: workloads x policies x failures; ``failure_free`` policies also run without
    failures, silent errors and checkpoints, once per workload."""

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []
    failures: FailuresIn | None = None
    checkpoint: CheckpointIn | None = None
    silent_errors: SilentErrorsIn | None = None
    nodes: int | None = None
    window: str = "auto"
    select: str = "auto"
