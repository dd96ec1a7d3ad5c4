# SPDX-License-Identifier: Apache-2.0
"""Units in, outcomes out: the runs of seeds, of calibrations and of campaigns.

An outcome is the metrics of a unit, or the error of a unit that failed. If a store is given, the
worker passes the outcome to the store and does not return the metrics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, RebatError, one_line
from rebat.executors.resources import Resources
from rebat.executors.threads import on_this_machine
from rebat.runs.simulating import in_threads
from rebat.runs.unit import Unit


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a task: the metrics, or an error."""

    number: int
    """Number of the task."""
    key: str
    metrics: dict[str, Any] | None = None
    error: str | None = None
    seconds: float = 0.0


class Task(msgspec.Struct, frozen=True):
    """A unit to run, and how."""

    unit: Unit
    perform: Callable[[Unit, Path | None], dict[str, Any]]
    """Function that runs a unit and returns its metrics (see `Kind.perform`)."""
    number: int = 0
    folder: Path | None = None
    """Folder for the files of the unit."""
    store: Callable[[Unit, Outcome], None] | None = None
    """Function that stores an outcome."""


def perform(task: Task) -> Outcome:
    """Run a unit in a worker.

    Without a store, an invalid input ends all runs: all units have the same input.
    """
    began = time.perf_counter()
    metrics = error = None
    try:
        metrics = task.perform(task.unit, task.folder)
    except Exception as problem:
        if task.store is None and (
            isinstance(problem, InputError) or not isinstance(problem, RebatError)
        ):
            raise
        error = one_line(problem)
    return _stored(task, metrics, error, time.perf_counter() - began)


def lost(task: Task, reason: str) -> Outcome:
    """Return the outcome of a unit whose worker process ended unexpectedly."""
    return _stored(task, None, reason, 0.0)


def _stored(
    task: Task, metrics: dict[str, Any] | None, error: str | None, seconds: float
) -> Outcome:
    outcome = Outcome(task.number, task.unit.key, metrics, error, seconds)
    if task.store is None:
        return outcome
    task.store(task.unit, outcome)
    return msgspec.structs.replace(outcome, metrics=None)


def perform_all(
    units: Sequence[Unit],
    perform_unit: Callable[[Unit, Path | None], dict[str, Any]],
    workers: int,
) -> Iterator[Outcome]:
    """Yield the outcomes of simulations as they complete, numbered from 0 in the order of units.

    With one worker, the units run one after another in this process. With several workers, threads
    run units on the compiled loop where this is faster, and processes run the others.
    """
    tasks = [Task(unit, perform_unit, number) for number, unit in enumerate(units)]
    if workers == 1:
        yield from map(perform, tasks)
        return
    keys = in_threads(units, workers)
    resources = Resources(workers=workers)
    yield from on_this_machine(tasks, perform, lost, resources, lambda task: task.unit.key in keys)
