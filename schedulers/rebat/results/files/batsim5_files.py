# SPDX-License-Identifier: Apache-2.0
"""Batsim 5's output files, jobs.csv and schedule.json, from the engine's record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebat.core.attempts import job_name
from rebat.core.batsim5 import complete
from rebat.core.packed import Packed
from rebat.engine.jobs import REJECTED, EndedJob
from rebat.results.files.batsim_csv import JOB_COLUMNS, NodeEvents, columns_of_run, totals

VERSION5 = "5.0.0-rc2-rebat"
_ONLY_IN_4 = ("scheduling_time", "simulation_time")


def jobs_csv5(jobs: Iterable[EndedJob]) -> Iterator[str]:
    """Yield the lines of jobs.csv. It has a row per Batsim job or resubmission, sorted by end.

    Like Batsim, the file does not quote names. The energy of static jobs is -1.
    """
    yield JOB_COLUMNS
    yield from map(_row, jobs)


def _row(job: EndedJob) -> str:
    profile = complete(job.profile, job.workload)
    energy = "0.000000" if job.registered else "-1.000000"
    if job.state == REJECTED:
        energy = ""
    return f"{job_name(job.id)},{job.workload},{profile},{columns_of_run(job)},{energy},"


def schedule_json(jobs: Packed[EndedJob], n_nodes: int, node_events: NodeEvents) -> str:
    """Return schedule.json: an object with the totals of the schedule, one field per line."""
    values = totals(jobs, n_nodes, node_events) | {"batsim_version": f'"{VERSION5}"'}
    rows = (f'  "{name}": {value}' for name, value in values.items() if name not in _ONLY_IN_4)
    return "{\n" + ",\n".join(rows) + "\n}\n"
