# SPDX-License-Identifier: Apache-2.0
"""Recorded schedules as folders of results, which are written next to the workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.api.result import Result
from rebat.core.files import file_hash
from rebat.core.numbers import counted, percent
from rebat.results.files.run_folder import RECORDED, RecordSource
from rebat.results.measures.summary import part_of_run
from rebat.runs.recorded import MEASURES, n_sharing, recorded_run
from rebat.runs.single import PolicyRuns
from rebat.workloads.machine import machine_facts
from rebat.workloads.recorded import RecordedSchedule, counted_attempts


class RecordedResult(msgspec.Struct, frozen=True):
    """The result of a recorded schedule, and its source."""

    result: Result
    source: RecordSource

    @property
    def lines(self) -> list[str]:
        """Facts about the schedule for readers."""
        summary = self.result.runs[0].summary
        first = (
            f"schedule: {counted(summary.attempts, 'attempt')} of {counted(summary.jobs, 'job')}; "
            f"{part_of_run(summary.window_s, summary.makespan_s)}"
            f"{counted(summary.node_failures, 'failure')} of nodes, useful utilisation "
            f"{percent(summary.useful_utilisation)}"
        )
        return [first, *(f"schedule: {note}" for note in self.source.notes)]


def recorded_result(
    schedule: RecordedSchedule, form: str, record: Path, workload: Path, events: Path | None
) -> RecordedResult:
    """Return the result of a recorded schedule.

    Parameters
    ----------
    form : str
        Format of the record.
    record : Path
        The record.
    workload : Path
        The file of the workload.
    events : Path, optional
        The record of node events.
    """
    run = recorded_run(schedule)
    shared = n_sharing(run)
    notes = [*schedule.notes, *_of_shared(shared)]
    source = RecordSource(
        format=form,
        file=record.name,
        sha256=file_hash(record),
        events=None if events is None else {"file": events.name, "sha256": file_hash(events)},
        attempts=len(schedule.attempts),
        shared_attempts=shared,
        assigned_nodes=schedule.assigned_nodes,
        notes=tuple(notes),
    )
    done = PolicyRuns(results=[run], sources=[()])
    return RecordedResult(Result.of_runs(done, 0, _provenance(schedule, source, workload)), source)


def _of_shared(count: int) -> list[str]:
    if not count:
        return []
    text = "on shared nodes: the time of a node is divided equally among its attempts"
    return [f"{counted_attempts(count)} {text}"]


def _provenance(schedule: RecordedSchedule, source: RecordSource, workload: Path) -> dict[str, Any]:
    notes = schedule.workload.notes
    machine = machine_facts(schedule.workload, schedule.workload.n_nodes)
    return {
        "workload": {
            "file": workload.name,
            "jobs": len(schedule.workload.jobs),
            **({"notes": notes} if notes else {}),
            **machine,
        },
        "options": {
            "nodes": schedule.workload.n_nodes,
            "window": "auto",
            "select": "auto",
            "walltime_kills": MEASURES.walltime_kills,
        },
        RECORDED: msgspec.to_builtins(source),
    }
