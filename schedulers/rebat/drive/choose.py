# SPDX-License-Identifier: Apache-2.0
"""The choice between the rules as machine code or plain Python, and asking a policy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, cast, get_args

from rebat.core.arrays import Ints
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.drive.eligible import why_not_policy, why_not_run, why_not_tiers
from rebat.drive.embedded import run
from rebat.drive.keys import needs_python
from rebat.drive.outcome import Outcome
from rebat.drive.parts import Uncovered
from rebat.drive.simulate import (
    Events,
    OnProgress,
    simulate,
    smallest_arguments,
    submissions_of,
)
from rebat.engine.engine import EngineOptions
from rebat.kernels.jit import is_ready, machine_code_of, may_compile
from rebat.models.failures.events import GenericEvent
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.point import Point
from rebat.policies.presets import Preset

PAYS = 500_000
"""Number of jobs from which compiling the loop takes less time than it saves.

Compiling takes 36 s of CPU if the kernels are compiled. With policy ``easy``, machine code then
saves 72 microseconds per job (20,000 jobs: 1.4 s, 50,000: 3.5 s, 100,000: 7.6 s).
"""


def only_plain(point: Point) -> str:
    """Return why the rules cannot be compiled for a scheduler, or an empty text if they can."""
    if needs_python(point):
        return "a queue order in Python"
    return f"placement={point.placement.name}" if point.chooses_nodes else ""


RUN_S, JOB_S, LOOP_S, START_S = 0.01, 6e-6, 1e-5, 1.0
"""Times in seconds: Python code per run and per job, the loop per job, start of a process."""

_READY: set[tuple[Point, bool, bool]] = set()


def ready(point: Point, tiered: bool = False, operating: bool = False) -> bool:
    """Return whether machine code of the loop for a scheduler is in memory or in the cache.

    ``tiered`` is whether jobs have checkpoints in several tiers, ``operating`` whether there are
    operations. Their rules are only compiled if they are needed.
    """
    case = point, tiered, operating
    if case not in _READY and is_ready(run, smallest_arguments(*case)):
        _READY.add(case)
    return case in _READY


def is_tiered(workload: Workload) -> bool:
    """Return whether any job has checkpoints in several tiers. The loop covers the workload."""
    return submissions_of(workload).tiered


def why_not_compiled(point: Point) -> str:
    """Return why machine code cannot simulate a scheduler, or an empty text if it can."""
    return why_not_policy(point) or only_plain(point)


def covers(workload: Workload, preset: object) -> bool:
    """Return whether the loop can simulate a run without operations."""
    if not isinstance(preset, Preset) or _why_not(preset, EngineOptions(), False):
        return False
    try:
        return not (submissions_of(workload).tiered and why_not_tiers(preset.point))
    except Uncovered:
        return False


def compile_for(point: Point, n_jobs: int, tiered: bool = False) -> bool:
    """Compile the loop if that saves time for runs with this total number of jobs.

    Return whether the loop is compiled.
    """
    if only_plain(point):
        return False
    pays = n_jobs >= PAYS or how_of() == "compiled"
    if pays and may_compile() and not ready(point, tiered):
        machine_code_of(run)(*smallest_arguments(point, tiered))
        _READY.add((point, tiered, False))
    return ready(point, tiered)


def threads_pay(n_runs: int, n_jobs: int, workers: int) -> bool:
    """Return whether threads end before processes would.

    Only the loop runs in several threads at a time, but processes have to start and to read their
    inputs. ``n_jobs`` is the total number of jobs of all runs.
    """
    python_s = n_runs * RUN_S + n_jobs * JOB_S
    shared_s = (python_s + n_jobs * LOOP_S) / workers
    return python_s <= shared_s + START_S


def compiled_outcome(
    workload: Workload,
    preset: object,
    events: Events,
    *,
    how: How,
    n_nodes: int,
    cores_per_node: int,
    max_attempts: int,
    options: EngineOptions,
    operations: Sequence[GenericEvent],
    uptime_us: Ints | None,
    explain: bool,
    on_progress: OnProgress | None,
) -> Outcome | None:
    """Return the outcome of a run by the rules, or None if they do not cover it.

    Raises
    ------
    InputError
        If ``how`` is compiled and the loop does not cover the run.
    """
    reason, plain = _why_not(preset, options, bool(operations)), ""
    if isinstance(preset, Preset) and not reason:
        plain = "--explain" if explain else only_plain(preset.point)
        reason = plain if how == "compiled" else ""
    if isinstance(preset, Preset) and not reason:
        compiled = how != "interpreted" and not plain and may_compile()
        try:
            if compiled and how != "compiled" and len(workload.jobs) < PAYS:
                compiled = ready(preset.point, is_tiered(workload), bool(operations))
            return simulate(
                workload, preset.point, events, n_nodes=n_nodes,
                cores_per_node=cores_per_node, max_attempts=max_attempts,
                compiled=compiled,
                hazards=preset.hazards, uptime_us=uptime_us, explain=explain,
                on_progress=on_progress, operations=operations,
            )  # fmt: skip
        except Uncovered as error:
            reason = str(error)
    if how in ("compiled", "interpreted"):
        problem = f"does not cover this run: {reason}"
        raise InputError(problem, f"--engine {how}", "--engine auto")
    return None


def _why_not(preset: object, options: EngineOptions, operations: bool) -> str:
    if not isinstance(preset, Preset):
        return "a custom policy" if isinstance(preset, OwnPolicy) else "a policy in memory"
    return why_not_policy(preset.point) or why_not_run(
        preset.point, options, preset.session, operations=operations
    )


How = Literal["auto", "compiled", "interpreted"]
"""Ways to simulate a run: the rules as machine code or as plain Python, or auto."""

VARIABLE = "REBAT_ENGINE"
"""Environment variable with the default way."""


def how_of(how: str | None = None) -> How:
    """Return the way to simulate. The default is the value of `VARIABLE`, otherwise auto."""
    value = how or os.environ.get(VARIABLE) or "auto"
    if value not in get_args(How):
        where = "--engine" if how else VARIABLE
        raise InputError(f"is {value!r}", where, ", ".join(get_args(How)))
    return cast(How, value)
