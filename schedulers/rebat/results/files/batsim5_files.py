# SPDX-License-Identifier: Apache-2.0
"""Batsim 5's output files, jobs.csv and schedule.json, from the engine's record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebat.core.batsim5 import complete
from rebat.core.node_events import NodeEvents
from rebat.core.table import Table
from rebat.core.units import US_PER_S
from rebat.engine.jobs import REJECTED, EndedJob
from rebat.results.files.batsim_csv import columns_of_run, totals
from rebat.results.files.columns import Names, Seconds, Words, csv_lines

VERSION5 = "5.0.0-rc2-rebat"
_ONLY_IN_4 = ("scheduling_time", "simulation_time")


def jobs_csv5(jobs: Table[EndedJob]) -> Iterator[str]:
    """Yield the lines of jobs.csv. It has a row per Batsim job or resubmission, sorted by end.

    Like Batsim, the file does not quote names. The energy of static jobs is -1.
    """
    profile, workload = jobs.column("profile"), jobs.column("workload")
    names = jobs.values("profile")
    pairs, which = np.unique(workload * len(names) + profile, return_inverse=True)
    complete_names = [
        complete(names[pair % len(names)], jobs.values("workload")[pair // len(names)])
        for pair in pairs.tolist()
    ]
    static = jobs.column("registered") == 0
    columns = {
        "job_id": Names(lambda part: jobs.texts("name", part), str),
        "workload_name": Words(workload, jobs.values("workload"), str),
        "profile": Words(which, complete_names, str),
        **columns_of_run(jobs),
        "consumed_energy": Seconds(np.where(static, -US_PER_S, 0), jobs.having("state", REJECTED)),
        "metadata": Words(np.zeros(len(jobs), dtype=np.int64), [""]),
    }
    return csv_lines(columns, len(jobs))


def schedule_json(jobs: Table[EndedJob], n_nodes: int, node_events: NodeEvents) -> str:
    """Return schedule.json: an object with the totals of the schedule, one field per line."""
    values = totals(jobs, n_nodes, node_events) | {"batsim_version": f'"{VERSION5}"'}
    rows = (f'  "{name}": {value}' for name, value in values.items() if name not in _ONLY_IN_4)
    return "{\n" + ",\n".join(rows) + "\n}\n"
