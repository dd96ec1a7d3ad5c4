# SPDX-License-Identifier: Apache-2.0
"""Batch systems: the options of a job, and the format of queue listings.

The options are those of dask-jobqueue 0.9. The formats are from the manuals of the systems.
"""

from __future__ import annotations

import math
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rebat.executors.resources import Jobs

MEMORY_GIB = 2
"""Default memory of a worker in GiB."""
PATIENCE_S = 30.0
_ENDED = {"C", "DONE", "EXIT", "F", "X", "Z"}
"""States of ended jobs. Some systems still list ended jobs."""


def _clock(seconds: float) -> str:
    """Return a walltime for Slurm, PBS and SGE.

    >>> _clock(90061)
    '25:01:01'
    """
    total = math.ceil(seconds)
    return f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"


def _minutes(seconds: float) -> str:
    """Return a walltime for LSF, in hours and minutes.

    >>> _minutes(90061)
    '25:02'
    """
    total = math.ceil(seconds / 60)
    return f"{total // 60:02}:{total % 60:02}"


class System(NamedTuple):
    """A batch system."""

    name: str
    cluster: str
    submit: str
    listing: tuple[str, ...]
    """Command that prints one line per job, beginning with the number of the job."""
    column: int
    """Index of the column that contains the state."""
    runs: str
    """State of a running job."""
    account: str = "account"
    """Name of Dask's option for the account."""
    walltime: Callable[[float], str] = _clock

    @property
    def section(self) -> str:
        """Name of the section of Dask's configuration for this batch system."""
        return f"jobqueue.{self.name}"


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "slurm",
            "SLURMCluster",
            "sbatch",
            ("squeue", "--me", "--noheader", "--format=%i %T"),
            1,
            "RUNNING",
        ),
        System("pbs", "PBSCluster", "qsub", ("qstat",), 4, "R"),
        System("sge", "SGECluster", "qsub", ("qstat",), 4, "r", "project"),
        System("lsf", "LSFCluster", "bsub", ("bjobs", "-a"), 2, "RUN", "project", _minutes),
    )
}


def listed(system: System, text: str) -> dict[str, str]:
    """Return the state of each job in a listing, by job number. Omit ended jobs."""
    lines = [line.split() for line in text.splitlines()]
    states = {
        number[0]: words[system.column]
        for words in lines
        if len(words) > system.column and (number := re.match(r"\d+", words[0]))
    }
    return {number: state for number, state in states.items() if state not in _ENDED}


def queued(system: System) -> dict[str, str] | None:
    """Return the state of each queued job by its number, or None if the queue does not answer."""
    try:
        done = subprocess.run(
            system.listing, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return listed(system, done.stdout)


def jobqueue() -> Any:
    """Import dask-jobqueue. Restore the handler of Ctrl-C, because the import replaces it."""
    before = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return dask_jobqueue


def cores_per_job(system: System, jobs: Jobs) -> int:
    """Return the number of workers per job, from the options or from Dask's configuration.

    The default is 1.
    """
    import dask

    jobqueue()  # the import loads the configuration
    return jobs.cores or dask.config.get(f"{system.section}.cores", None) or 1


def job_options(system: System, jobs: Jobs) -> dict[str, Any]:
    """Return the options of a job that are passed to dask-jobqueue besides its configuration."""
    from dask import config

    def also(name: str, more: tuple[str, ...]) -> list[str]:
        return [*(config.get(f"{system.section}.{name}", None) or ()), *more]

    cores = cores_per_job(system, jobs)
    memory = jobs.memory or config.get(f"{system.section}.memory", None)
    options = {
        "queue": jobs.queue,
        system.account: jobs.account,
        "walltime": None if jobs.walltime_s is None else system.walltime(jobs.walltime_s),
        "interface": jobs.interface,
        "local_directory": None if jobs.local_directory is None else str(jobs.local_directory),
    }
    return {
        "job_name": "rebat",
        "cores": cores,
        "processes": cores,  # each run needs its own Python process
        "memory": memory or f"{MEMORY_GIB * cores} GiB",
        "job_extra_directives": also("job-extra-directives", jobs.extra),
        "job_script_prologue": also("job-script-prologue", jobs.prologue),
        # The dashboard is not encrypted. Therefore, it can be reached only on its node.
        "worker_extra_args": [*also("worker-extra-args", ()), "--dashboard-address", "127.0.0.1:0"],
        **{name: value for name, value in options.items() if value is not None},
    }
