# SPDX-License-Identifier: Apache-2.0
"""What a worker does: perform one unit and write its result, or why there is none."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from rebat.campaign.kinds import KINDS
from rebat.campaign.store import Store, UnitResult
from rebat.core.errors import one_line
from rebat.runs.unit import Unit


class Task(msgspec.Struct, frozen=True):
    """What a worker gets: a unit, where its result goes, and whether to keep its files."""

    unit: Unit
    results: Path
    keep: bool


class Outcome(msgspec.Struct, frozen=True):
    """What a worker says of a unit whose result it has written."""

    key: str
    error: str | None
    seconds: float


def perform(task: Task) -> Outcome:
    """Perform one unit and write its result, or why there is none; runs in a worker."""
    began = time.perf_counter()
    unit, store = task.unit, Store(task.results)
    kind = KINDS[unit.kind]
    folder = store.run_folder(unit.key) if task.keep and kind.files else None
    try:
        metrics = kind.perform(unit, folder)
        done = UnitResult(key=unit.key, status="ok", identity=unit.identity, metrics=metrics)
    except Exception as error:
        done = _failed(unit, one_line(error))
    store.write(done)
    return Outcome(unit.key, done.error, time.perf_counter() - began)


def lost(task: Task, reason: str) -> Outcome:
    """Record a unit whose worker died."""
    Store(task.results).write(_failed(task.unit, reason))
    return Outcome(task.unit.key, reason, 0.0)


def _failed(unit: Unit, error: str) -> UnitResult:
    return UnitResult(key=unit.key, status="failed", identity=unit.identity, error=error)
