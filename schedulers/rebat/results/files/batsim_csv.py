# SPDX-License-Identifier: Apache-2.0
"""Batsim's output files from the engine's record: jobs.csv, schedule.csv and schedule.json.

Names are those of Batsim, because the files are compared with Batsim's files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.batsim5 import complete
from rebat.core.formatting import csv_field
from rebat.core.node_events import NodeEvents
from rebat.core.table import Table
from rebat.core.units import US_PER_S, to_s
from rebat.engine.jobs import REJECTED, SUCCESS, EndedJob, ended_jobs
from rebat.results.files.batsim_files import NULL_RUN_US
from rebat.results.files.tables import Column, Names, Nodes, Reals, Seconds, Whole, Words, csv_lines
from rebat.results.measures.nodetime import dot


def jobs_csv(jobs: Iterable[EndedJob]) -> Iterator[str]:
    """Yield the lines of jobs.csv. It has a row per Batsim job or resubmission, sorted by end."""
    table = jobs if isinstance(jobs, Table) else ended_jobs(jobs)
    return csv_lines(jobs_columns(table), len(table))


def jobs_columns(jobs: Table[EndedJob]) -> dict[str, Column]:
    """Return the columns of jobs.csv."""
    rejected = jobs.having("state", REJECTED)
    return {
        "job_id": Names(lambda part: jobs.texts("name", part), csv_field),
        "workload_name": Words(jobs.column("workload"), jobs.values("workload"), csv_field),
        "profile": Words(jobs.column("profile"), jobs.values("profile"), csv_field),
        **columns_of_run(jobs),
        "consumed_energy": Seconds(np.full(len(jobs), -US_PER_S), rejected),
        "metadata": Words(jobs.column("metadata"), jobs.values("metadata"), _quoted),
    }


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def columns_of_run(jobs: Table[EndedJob]) -> dict[str, Column]:
    """Return the columns from ``submission_time`` to ``allocated_resources``."""
    start_us, submit_us, walltime_us = map(jobs.column, ("start_us", "submit_us", "walltime_us"))
    rejected = jobs.having("state", REJECTED)
    finish_us = _finish_us(start_us, jobs.column("end_us"))
    run_us, turnaround_us = finish_us - start_us, finish_us - submit_us
    stretch = (turnaround_us / US_PER_S) / (run_us / US_PER_S)
    return {
        "submission_time": Seconds(submit_us),
        "requested_number_of_resources": Whole(jobs.column("n_nodes")),
        "requested_time": Seconds(np.where(walltime_us < 0, -US_PER_S, walltime_us)),
        "success": Whole(jobs.having("state", SUCCESS)),
        "final_state": Words(jobs.column("state"), jobs.values("state")),
        "starting_time": Seconds(start_us, rejected),
        "execution_time": Seconds(run_us, rejected),
        "finish_time": Seconds(finish_us, rejected),
        "waiting_time": Seconds(start_us - submit_us, rejected),
        "turnaround_time": Seconds(turnaround_us, rejected),
        "stretch": Reals(np.where(rejected, np.nan, stretch)),
        "allocated_resources": Nodes(jobs.nodes()),
    }


def _finish_us(start_us: Ints, end_us: Ints) -> Ints:
    """Return the ends of jobs. As in Batsim, add `NULL_RUN_US` if the run time is 0."""
    return np.where(end_us > start_us, end_us, start_us + NULL_RUN_US)


def schedule_csv(
    jobs: Table[EndedJob], n_nodes: int, node_events: NodeEvents, uncounted_us: int = 0
) -> str:
    """Return schedule.csv, which has a single row (see `totals`)."""
    values = totals(jobs, n_nodes, node_events, uncounted_us)
    return ",".join(values) + "\n" + ",".join(values.values()) + "\n"


def totals(
    jobs: Table[EndedJob], n_nodes: int, node_events: NodeEvents, uncounted_us: int = 0
) -> dict[str, str]:
    """Return the totals of a schedule by name. As in Batsim, every resubmission counts as a job.

    ``uncounted_us`` is the node time in a sum over jobs that does not count as computing. It is
    subtracted. The node was down, or several jobs shared it (see `measures.nodetime`).

    Unavailable nodes are counted up to the makespan. Batsim counts them up to the last machine
    event. The two columns of wall-clock time are 0, so that equal runs produce equal files.
    """
    ran = ~jobs.having("state", REJECTED)
    start_us, end_us, submit_us = (jobs.column(f"{n}_us")[ran] for n in ("start", "end", "submit"))
    finish_us = _finish_us(start_us, end_us)
    makespan = int(finish_us.max(initial=0))
    computing = dot(end_us - start_us, jobs.column("n_nodes")[ran]) - uncounted_us
    outages = node_events.outages(makespan).rows()
    down = sum(min(up, makespan) - down for _, down, up in outages if down < makespan)
    waits = (start_us - submit_us) / US_PER_S
    turnarounds = (finish_us - submit_us) / US_PER_S
    slowdowns = turnarounds / ((finish_us - start_us) / US_PER_S)
    success, n_ran = int(jobs.having("state", SUCCESS).sum()), len(start_us)

    def mean(values: npt.NDArray[np.float64]) -> str:
        """Return the mean over all jobs. As in Batsim, the value of a rejected job counts as 0."""
        return f"{math.fsum(values) / len(jobs) if jobs else 0:.6f}"

    return {
        "batsim_version": "4.2.1-rebat",
        "consumed_joules": "0.000000",
        "makespan": f"{to_s(makespan):.6f}",
        "max_slowdown": f"{slowdowns.max(initial=0):.6f}",
        "max_turnaround_time": f"{turnarounds.max(initial=0):.6f}",
        "max_waiting_time": f"{waits.max(initial=0):.6f}",
        "mean_slowdown": mean(slowdowns),
        "mean_turnaround_time": mean(turnarounds),
        "mean_waiting_time": mean(waits),
        "nb_computing_machines": str(n_nodes),
        "nb_grouped_switches": "0",
        "nb_jobs": str(len(jobs)),
        "nb_jobs_finished": str(n_ran),
        "nb_jobs_killed": str(n_ran - success),
        "nb_jobs_rejected": str(len(jobs) - n_ran),
        "nb_jobs_success": str(success),
        "nb_machine_switches": "0",
        "scheduling_time": "0.000000",
        "simulation_time": "0.000000",
        "success_rate": f"{success / len(jobs) if jobs else 0:.6f}",
        "time_computing": f"{to_s(computing):.6f}",
        "time_idle": f"{to_s(max(0, n_nodes * makespan - computing - down)):.6f}",
        "time_sleeping": "0.000000",
        "time_switching_off": "0.000000",
        "time_switching_on": "0.000000",
        "time_unavailable": f"{to_s(down):.6f}",
    }


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
