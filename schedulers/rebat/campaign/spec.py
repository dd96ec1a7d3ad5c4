"""A run as plain data: which workload, which failures, which checkpoints, which policy.

Durations are in seconds. ``keys`` says which of it determines the result.
"""

from __future__ import annotations

from typing import Any

import msgspec

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
    horizon_s: float


class CheckpointModel(msgspec.Struct, frozen=True):
    """Young/Daly checkpoints in every job (section 5.2 of Du et al. 2024); in seconds."""

    mtbf_s: float
    cost_s: float
    recovery_s: float
    rounding: Rounding


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``grid``, ``workload`` and ``policy`` are also what the tables call it."""

    grid: str
    workload: str
    policy: str
    source: Source
    nodes: int | None = None
    failures: FailureScenario | None = None
    checkpoint: CheckpointModel | None = None
    window: str = "auto"
    select: str = "auto"
