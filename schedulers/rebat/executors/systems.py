# SPDX-License-Identifier: Apache-2.0
"""Batch systems: what to ask for a job in each one's words, and how to read its queue.

The words are those of dask-jobqueue 0.9; the listings those of the systems' manuals.
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
"""Of each worker, where nobody says."""
PATIENCE_S = 30.0
_ENDED = {"C", "DONE", "EXIT", "F", "X", "Z"}
"""States of jobs that some queues still list."""


def _clock(seconds: float) -> str:
    """A walltime for Slurm, PBS and SGE.

    >>> _clock(90061)
    '25:01:01'
    """
    whole = math.ceil(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _minutes(seconds: float) -> str:
    """A walltime for LSF, which knows no seconds.

    >>> _minutes(90061)
    '25:02'
    """
    whole = math.ceil(seconds / 60)
    return f"{whole // 60:02}:{whole % 60:02}"


class System(NamedTuple):
    """A batch system.

    ``listing`` prints a line per job that begins with its number, and has its state in a column;
    ``runs`` is the state of one that runs. ``account`` is what Dask calls an account.
    """

    name: str
    cluster: str
    submit: str
    listing: tuple[str, ...]
    column: int
    runs: str
    account: str = "account"
    walltime: Callable[[float], str] = _clock

    @property
    def section(self) -> str:
        """Where it stands in Dask's configuration."""
        return f"jobqueue.{self.name}"


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "slurm", "SLURMCluster", "sbatch",
            ("squeue", "--me", "--noheader", "--format=%i %T"), 1, "RUNNING",
        ),
        System("pbs", "PBSCluster", "qsub", ("qstat",), 4, "R"),
        System("sge", "SGECluster", "qsub", ("qstat",), 4, "r", "project"),
        System("lsf", "LSFCluster", "bsub", ("bjobs", "-a"), 2, "RUN", "project", _minutes),
    )
}  # fmt: skip


def listed(system: System, text: str) -> dict[str, str]:
    """Number -> state of the jobs in a listing that have not ended."""
    lines = [line.split() for line in text.splitlines()]
    found = {
        number[0]: words[system.column]
        for words in lines
        if len(words) > system.column and (number := re.match(r"\d+", words[0]))
    }
    return {number: state for number, state in found.items() if state not in _ENDED}


def queued(system: System) -> dict[str, str] | None:
    """Number -> state of the jobs in the queue; None when it does not answer."""
    try:
        done = subprocess.run(
            system.listing, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return listed(system, done.stdout)


def jobqueue() -> Any:
    """dask-jobqueue, which takes Ctrl-C for its own when it is imported: it is given back.

    Raises
    ------
    ImportError
        When it is not installed.
    """
    before = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
    return dask_jobqueue


def cores_per_job(system: System, jobs: Jobs) -> int:
    """How many workers a job has room for: as asked, as Dask's configuration says, or one."""
    import dask

    jobqueue()  # it adds its own to the configuration
    return jobs.cores or dask.config.get(f"{system.section}.cores", None) or 1


def job_options(system: System, jobs: Jobs) -> dict[str, Any]:
    """What dask-jobqueue is told of a job: what is asked for, beside its configuration."""
    from dask import config

    def also(name: str, more: tuple[str, ...]) -> list[str]:
        return [*(config.get(f"{system.section}.{name}", None) or ()), *more]

    cores = cores_per_job(system, jobs)
    memory = jobs.memory or config.get(f"{system.section}.memory", None)
    asked = {
        "queue": jobs.queue,
        system.account: jobs.account,
        "walltime": None if jobs.walltime_s is None else system.walltime(jobs.walltime_s),
        "interface": jobs.interface,
        "local_directory": None if jobs.local_directory is None else str(jobs.local_directory),
    }
    return {
        "job_name": "rebat",
        "cores": cores,
        "processes": cores,  # runs are Python: a process each
        "memory": memory or f"{MEMORY_GIB * cores} GiB",
        "job_extra_directives": also("job-extra-directives", jobs.extra),
        "job_script_prologue": also("job-script-prologue", jobs.prologue),
        # Pages for browsers are not encrypted: they stay on the node.
        "worker_extra_args": [*also("worker-extra-args", ()), "--dashboard-address", "127.0.0.1:0"],
        **{name: value for name, value in asked.items() if value is not None},
    }
