# SPDX-License-Identifier: Apache-2.0
"""The recorded schedule of a trace that has start times, but no node names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from rebat.records.swf import PARTIAL
from rebat.workloads.columns import TraceColumns
from rebat.workloads.recorded import (
    Execution,
    RecordedSchedule,
    counted_attempts,
    recorded_schedule,
)
from rebat.workloads.trace import PlacedTrace


def trace_schedule(trace: TraceColumns, done: PlacedTrace) -> RecordedSchedule:
    """Return the attempts of the jobs of a workload, with assigned nodes.

    Parameters
    ----------
    trace : TraceColumns
        All records. A record that is marked for exclusion and has a final state is a partial
        execution. It belongs to the previous job with the same number.
    done : PlacedTrace
        The workload.
    """
    counts = Counter[str]()
    executions = list(_executions(trace, done, counts))
    notes = [f"{counted_attempts(n)} left out: {why}" for why, n in sorted(counts.items())]
    if not any(execution.state for execution in executions):
        notes.append("the record has no final states: all attempts count as completed")
    rows = [e._replace(state=e.state or "COMPLETED") for e in executions]
    return recorded_schedule(done, rows, math.nan, notes=notes)


def _executions(
    trace: TraceColumns, done: PlacedTrace, counts: Counter[str]
) -> Iterator[Execution]:
    places = {line: place for place, line in enumerate(done.jobs.lines.tolist())}
    sizes = np.where(trace.allocated > 0, trace.allocated, trace.requested)
    parts = _parts(trace)
    for row, line in enumerate(trace.lines.tolist()):
        if line not in places:
            continue
        for part in parts.get(row, [row]):
            start_s, run_s = float(trace.start_s[part]), float(trace.run_s[part])
            if math.isnan(start_s) or run_s < 0 or sizes[part] < 1:
                counts["no start, no run time or no nodes"] += 1
                continue
            state = "" if trace.states is None else trace.states[part]
            yield Execution(
                places[line],
                start_s,
                start_s + run_s,
                "PREEMPTED" if state == PARTIAL else state,
                int(sizes[part]),
                limit_s=float(trace.walltime_s[row]),
                continued=state == PARTIAL,
            )


def _parts(trace: TraceColumns) -> dict[int, list[int]]:
    """Return the rows of partial executions, for the row of each job that has any."""
    parts: dict[int, list[int]] = {}
    if trace.states is None:
        return parts
    owners: dict[str, int] = {}
    for row, (name, is_job) in enumerate(zip(trace.ids, trace.is_job, strict=True)):
        if is_job:
            owners[name] = row
        elif name in owners and trace.states[row]:
            parts.setdefault(owners[name], []).append(row)
    return parts
