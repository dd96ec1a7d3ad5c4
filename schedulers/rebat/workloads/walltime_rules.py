# SPDX-License-Identifier: Apache-2.0
"""Rules for jobs without walltime, and for jobs that ran for at least their walltime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rebat.workloads.columns import Mask, TraceColumns, counted


def _missing_run(trace: TraceColumns, missing: Mask) -> TraceColumns:
    walltime_s = np.where(missing, trace.run_s + 1, trace.walltime_s)
    note = f"{counted(missing.sum())} without walltime: the walltime was set to the run time + 1 s"
    return replace(trace, walltime_s=walltime_s).noting(note)


def _missing_none(trace: TraceColumns, missing: Mask) -> TraceColumns:
    walltime_s = np.where(missing, np.nan, trace.walltime_s)
    note = f"{counted(missing.sum())} without walltime: imported without walltime"
    return replace(trace, walltime_s=walltime_s).noting(note)


def _missing_drop(trace: TraceColumns, missing: Mask) -> TraceColumns:
    return trace.keep(~missing, "no walltime")


def _raise_walltime(trace: TraceColumns, over: Mask) -> TraceColumns:
    """Raise walltimes above the run times, as the authors of the node-stealing paper do."""
    walltime_s = np.where(over, trace.run_s + 1, trace.walltime_s)
    note = (
        f"{counted(over.sum())} ran up to or over the walltime: the walltime was raised to the run "
        "time + 1 s"
    )
    return replace(trace, walltime_s=walltime_s).noting(note)


def _clamp(trace: TraceColumns, over: Mask) -> TraceColumns:
    # Batsim kills a job if run time and walltime are equal. Subtract 1 s, or half below 2 s.
    below_s = np.maximum(trace.walltime_s - 1, trace.walltime_s / 2)
    note = (
        f"{counted(over.sum())} ran up to or over the walltime: the run time was shortened to "
        "1 s less"
    )
    return replace(trace, run_s=np.where(over, below_s, trace.run_s)).noting(note)


def _drop_overrun(trace: TraceColumns, over: Mask) -> TraceColumns:
    return trace.keep(~over, "ran up to or over the walltime")


def _keep_overrun(trace: TraceColumns, over: Mask) -> TraceColumns:
    return trace.noting(
        f"{counted(over.sum())} ran over the walltime: Batsim will kill them at the walltime"
    )


Rule = Callable[[TraceColumns, Mask], TraceColumns]
OVERRUN_RULES: dict[str, Rule] = {
    "raise-walltime": _raise_walltime,
    "clamp": _clamp,
    "drop": _drop_overrun,
    "keep": _keep_overrun,
}
MISSING_WALLTIME_RULES: dict[str, Rule] = {
    "run": _missing_run,
    "none": _missing_none,
    "drop": _missing_drop,
}
