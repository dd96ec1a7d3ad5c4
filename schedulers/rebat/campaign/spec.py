"""A run as plain data, in seconds, and the tables of the file that it comes from.

``grid`` makes the former of the latter; ``keys`` says what of a run determines its result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from rebat.models.checkpoint import Rounding

Duration = str | float
"""A text in human units, or seconds."""
Durations = Duration | list[Duration]


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


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``grid``, ``workload`` and ``policy`` are also what the tables call it.

    ``folder`` is where files of one's own that the policy names are looked for.
    """

    grid: str
    workload: str
    policy: str
    source: Source
    nodes: int | None = None
    failures: FailureScenario | None = None
    checkpoint: CheckpointModel | None = None
    window: str = "auto"
    select: str = "auto"
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


class GridIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[grid]]``: workloads x policies x failures; ``failure_free`` policies also run without
    failures and checkpoints, once per workload."""

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []
    failures: FailuresIn | None = None
    checkpoint: CheckpointIn | None = None
    nodes: int | None = None
    window: str = "auto"
    select: str = "auto"


class Campaign(msgspec.Struct, frozen=True):
    """A campaign file, read and checked; ``path`` is the file."""

    path: Path
    name: str
    workloads: dict[str, Source]
    grids: list[GridIn]
