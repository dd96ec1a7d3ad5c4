"""Batsim's own output files, jobs.csv and schedule.csv, from the engine's record."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rebat.core.units import to_s
from rebat.engine.jobs import REJECTED, SUCCESS, EngineJob

JOB_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,"
    "success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,"
    "stretch,allocated_resources,consumed_energy,metadata"
)


def jobs_csv(jobs: Sequence[EngineJob]) -> str:
    """One row per Batsim job (each resubmission is one), in the order of their ends."""
    return "\n".join([JOB_COLUMNS, *(_row(job) for job in jobs)]) + "\n"


def _row(job: EngineJob) -> str:
    name = job.id.partition("!")[2]
    walltime = -1.0 if job.walltime_us is None else to_s(job.walltime_us)
    head = (
        f"{name},{job.workload},{job.profile},{to_s(job.submit_us):.6f},{job.n_nodes},"
        f"{walltime:.6f},{int(job.state == SUCCESS)},{job.state}"
    )
    if job.state == REJECTED:
        return f'{head},,,,,,,,-1.000000,"{job.metadata}"'
    run, turnaround = _times(job)
    return (
        f"{head},{to_s(job.start_us):.6f},{run:.6f},{to_s(job.end_us):.6f},"
        f"{to_s(job.start_us - job.submit_us):.6f},{turnaround:.6f},{_stretch(job):.6f},"
        f'{job.nodes},-1.000000,"{job.metadata}"'
    )


def _times(job: EngineJob) -> tuple[float, float]:
    return to_s(job.end_us - job.start_us), to_s(job.end_us - job.submit_us)


def _stretch(job: EngineJob) -> float:
    run, turnaround = _times(job)
    return turnaround / run if run else -1.0


def schedule_csv(jobs: Sequence[EngineJob], n_nodes: int, down_us: int) -> str:
    """One row of totals, every resubmission counted as a job, as Batsim does.

    ``down_us`` is the machine events' node-time. The two columns of wall-clock time are 0: the
    same run gives the same bytes.
    """
    ran = [job for job in jobs if job.state != REJECTED]
    makespan = max((job.end_us for job in ran), default=0)
    computing = sum((job.end_us - job.start_us) * job.n_nodes for job in ran)
    waits = [to_s(job.start_us - job.submit_us) for job in ran] or [0.0]
    turnarounds = [_times(job)[1] for job in ran] or [0.0]
    slowdowns = [_stretch(job) for job in ran] or [0.0]
    success = sum(job.state == SUCCESS for job in ran)
    values: dict[str, str] = {
        "batsim_version": "4.2.1-rebat",
        "consumed_joules": "0.000000",
        "makespan": f"{to_s(makespan):.6f}",
        "max_slowdown": f"{max(slowdowns):.6f}",
        "max_turnaround_time": f"{max(turnarounds):.6f}",
        "max_waiting_time": f"{max(waits):.6f}",
        "mean_slowdown": f"{statistics.fmean(slowdowns):.6f}",
        "mean_turnaround_time": f"{statistics.fmean(turnarounds):.6f}",
        "mean_waiting_time": f"{statistics.fmean(waits):.6f}",
        "nb_computing_machines": str(n_nodes),
        "nb_grouped_switches": "0",
        "nb_jobs": str(len(jobs)),
        "nb_jobs_finished": str(len(ran)),
        "nb_jobs_killed": str(sum(job.state != SUCCESS for job in ran)),
        "nb_jobs_rejected": str(len(jobs) - len(ran)),
        "nb_jobs_success": str(success),
        "nb_machine_switches": "0",
        "scheduling_time": "0.000000",
        "simulation_time": "0.000000",
        "success_rate": f"{success / len(jobs) if jobs else 0:.6f}",
        "time_computing": f"{to_s(computing):.6f}",
        "time_idle": f"{to_s(max(0, n_nodes * makespan - computing - down_us)):.6f}",
        "time_sleeping": "0.000000",
        "time_switching_off": "0.000000",
        "time_switching_on": "0.000000",
        "time_unavailable": f"{to_s(down_us):.6f}",
    }
    return ",".join(values) + "\n" + ",".join(values.values()) + "\n"
