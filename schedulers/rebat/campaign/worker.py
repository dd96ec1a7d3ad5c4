# SPDX-License-Identifier: Apache-2.0
"""The task of a worker: perform a unit and write its result or error."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rebat.campaign.store import Store, UnitResult
from rebat.core.errors import one_line
from rebat.runs.unit import Unit


class Task(msgspec.Struct, frozen=True):
    """A unit to perform, how, the results folder, and whether to keep the files of the unit."""

    unit: Unit
    perform: Callable[[Unit, Path | None], dict[str, Any]]
    """See `Kind.perform`."""
    results: Path
    keep: bool


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a unit. A worker has already written its result."""

    key: str
    error: str | None
    seconds: float


def perform(task: Task) -> Outcome:
    """Perform a unit in a worker, and write its result or error."""
    began = time.perf_counter()
    unit, store = task.unit, Store(task.results)
    folder = store.run_folder(unit.key) if task.keep else None
    try:
        metrics = task.perform(unit, folder)
        done = UnitResult(key=unit.key, status="ok", identity=unit.identity, metrics=metrics)
    except Exception as error:
        done = _failed(unit, one_line(error))
    store.write(done)
    return Outcome(unit.key, done.error, time.perf_counter() - began)


def lost(task: Task, reason: str) -> Outcome:
    """Write an error for a unit whose worker process ended unexpectedly."""
    Store(task.results).write(_failed(task.unit, reason))
    return Outcome(task.unit.key, reason, 0.0)


def _failed(unit: Unit, error: str) -> UnitResult:
    return UnitResult(key=unit.key, status="failed", identity=unit.identity, error=error)
