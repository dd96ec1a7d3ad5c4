# SPDX-License-Identifier: Apache-2.0
"""Batsim's output files, jobs.csv and schedule.csv, from the engine's record.

Names are those of Batsim, because the files are compared with Batsim's files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import job_name
from rebat.core.csv_text import csv_field
from rebat.core.nodes import NodeSet
from rebat.core.packed import Packed
from rebat.core.units import US_PER_S, to_s
from rebat.engine.jobs import REJECTED, SUCCESS, EndedJob
from rebat.results.files.batsim_files import NULL_RUN_US
from rebat.results.measures.recoveries import down_intervals
from rebat.results.measures.sharing import dot

JOB_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,"
    "success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,"
    "stretch,allocated_resources,consumed_energy,metadata"
)


def jobs_csv(jobs: Iterable[EndedJob]) -> Iterator[str]:
    """Yield the lines of jobs.csv. It has a row per Batsim job or resubmission, sorted by end."""
    yield JOB_COLUMNS
    yield from map(_row, jobs)


def _row(job: EndedJob) -> str:
    names = ",".join(map(csv_field, (job_name(job.id), job.workload, job.profile)))
    metadata = job.metadata.replace('"', '""')
    energy = "" if job.state == REJECTED else "-1.000000"
    return f'{names},{columns_of_run(job)},{energy},"{metadata}"'


def columns_of_run(job: EndedJob) -> str:
    """Return the values from ``submission_time`` to ``allocated_resources``, joined by commas."""
    walltime = -1.0 if job.walltime_us is None else to_s(job.walltime_us)
    head = (
        f"{to_s(job.submit_us):.6f},{job.n_nodes},{walltime:.6f},"
        f"{int(job.state == SUCCESS)},{job.state}"
    )
    if job.state == REJECTED:
        return f"{head},,,,,,,"
    finish_us = _finish_us(job)
    run, turnaround = to_s(finish_us - job.start_us), to_s(finish_us - job.submit_us)
    return (
        f"{head},{to_s(job.start_us):.6f},{run:.6f},{to_s(finish_us):.6f},"
        f"{to_s(job.start_us - job.submit_us):.6f},{turnaround:.6f},{turnaround / run:.6f},"
        f"{job.nodes}"
    )


def _finish_us(job: EndedJob) -> int:
    """Return the end of a job. As in Batsim, add `NULL_RUN_US` if the run time is 0."""
    return job.end_us if job.end_us > job.start_us else job.start_us + NULL_RUN_US


NodeEvents = Sequence[tuple[int, bool, NodeSet]]
"""An event: time, whether the nodes are up after the event, and the nodes."""


def schedule_csv(
    jobs: Packed[EndedJob], n_nodes: int, node_events: NodeEvents, uncounted_us: int = 0
) -> str:
    """Return schedule.csv, which has a single row (see `totals`)."""
    values = totals(jobs, n_nodes, node_events, uncounted_us)
    return ",".join(values) + "\n" + ",".join(values.values()) + "\n"


def totals(
    jobs: Packed[EndedJob], n_nodes: int, node_events: NodeEvents, uncounted_us: int = 0
) -> dict[str, str]:
    """Return the totals of a schedule by name. As in Batsim, every resubmission counts as a job.

    ``uncounted_us`` is the node time in a sum over jobs that does not count as computing. It is
    subtracted. The node was down, or several jobs shared it (see `measures.sharing`).

    Unavailable nodes are counted up to the makespan. Batsim counts them up to the last machine
    event. The two columns of wall-clock time are 0, so that equal runs produce equal files.
    """
    ran = ~jobs.having("state", REJECTED)
    start_us, end_us, submit_us = (jobs.column(f"{n}_us")[ran] for n in ("start", "end", "submit"))
    finish_us = np.where(end_us > start_us, end_us, start_us + NULL_RUN_US)
    makespan = int(finish_us.max(initial=0))
    computing = dot(end_us - start_us, jobs.column("n_nodes")[ran].tolist()) - uncounted_us
    down = _unavailable_us(node_events, makespan)
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


def _unavailable_us(node_events: NodeEvents, until_us: int) -> int:
    outages = down_intervals(node_events, until_us)
    return sum(min(up, until_us) - down for _, down, up in outages if down < until_us)
