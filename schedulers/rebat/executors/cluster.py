# SPDX-License-Identifier: Apache-2.0
"""Tasks in jobs of a batch system (Slurm, PBS, SGE or LSF), through Dask.

This process runs the Dask scheduler, which listens on the network. Connections need TLS keys in
both directions. Each start creates new keys in the results folder. The jobs are cancelled when the
process ends. If the process is killed, connected workers end immediately. Jobs that start later end
after Dask's death timeout.

The options of jobs are those of dask-jobqueue 0.9. The formats of queue listings are from the
manuals of the systems.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError, RebatError, not_installed, one_line
from rebat.executors.on_dask import SILENT, out_of_reach, outcomes, without_pages
from rebat.executors.resources import Jobs, Lost, R, Resources, T, Work

KEYS = ".keys"
ROLES = ("client", "scheduler", "worker")
LOGS = "jobs"


def on_cluster(
    system: System, tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Yield outcomes as they complete, from workers in the jobs of a batch system."""
    _check(system, resources)
    from distributed import Client

    per_job = cores_per_job(system, resources.jobs)
    n_jobs = -(-min(resources.workers or per_job, len(tasks)) // per_job)
    with _keys(resources.folder) as keys, _scheduler(system, resources, keys) as cluster:
        new_job = partial(_new_job, system, resources, keys, cluster.scheduler_address)
        crew = Crew(cluster, new_job, system, per_job, resources)
        try:
            crew.begin(n_jobs)
            with Client(cluster, set_as_default=False) as client:
                yield from outcomes(client, tasks, work, lost, crew.watch)
        finally:
            crew.end()


def _check(system: System, resources: Resources) -> None:
    where = f"executor {system.name}"
    try:
        jobqueue()
        import cryptography  # noqa: F401
        from dask.utils import parse_bytes
    except ImportError as error:
        raise not_installed(str(error.name), where, "cluster") from None
    for program in (system.submit, system.listing[0]):
        if shutil.which(program) is None:
            raise InputError(f"{program} is not on the PATH of this machine", where)
    if shlex.quote(str(resources.folder)) != str(resources.folder):
        problem = "job scripts cannot use a folder with spaces or quotes in its name"
        raise InputError(problem, str(resources.folder), "another --results")
    try:
        parse_bytes(resources.jobs.memory or 0)
    except ValueError as error:
        raise InputError(str(error), "--job-memory", "a size like '4 GiB'") from None


@contextmanager
def _keys(folder: Path) -> Iterator[Any]:
    """Yield new keys in a private folder. Remove keys of earlier processes that were killed."""
    from distributed.security import Security

    keys = folder / KEYS
    shutil.rmtree(keys, ignore_errors=True)
    keys.mkdir(mode=0o700)
    try:
        security = Security.temporary()
        parts = ("ca_file", "worker_cert", "worker_key")
        ca, cert, key = (_written(keys / part, getattr(security, f"tls_{part}")) for part in parts)
        yield Security(
            require_encryption=True,
            tls_ca_file=ca,
            **{f"tls_{role}_cert": cert for role in ROLES},
            **{f"tls_{role}_key": key for role in ROLES},
        )
    finally:
        shutil.rmtree(keys, ignore_errors=True)


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@contextmanager
def _scheduler(system: System, resources: Resources, keys: Any) -> Iterator[Any]:
    """Run a Dask scheduler in this process, at an address that nodes can reach."""
    from dask import config
    from distributed import Scheduler, SpecCluster

    options = {
        "protocol": "tls",
        "security": keys,
        "host": _address(system, resources.jobs.interface),
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
        **config.get(f"{system.section}.scheduler-options", {}),
    }
    with out_of_reach(), without_pages():
        try:
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": options},
                security=keys,
                silence_logs=SILENT,
            )
        except RuntimeError as error:
            raise InputError(one_line(error), f"executor {system.name}") from None
    with cluster:
        yield cluster


def _address(system: System, interface: str | None) -> str:
    from dask import config
    from distributed.utils import get_ip, get_ip_interface

    name = interface or config.get(f"{system.section}.interface", None)
    try:
        return str(get_ip() if name is None else get_ip_interface(name))
    except ValueError as error:
        raise InputError(str(error), "--interface") from None


def _new_job(system: System, resources: Resources, keys: Any, address: str, name: str) -> Any:
    """Return a job of the batch system. It is not submitted yet."""
    from dask import config

    options = job_options(system, resources.jobs)
    if config.get(f"{system.section}.log-directory", None) is None:
        options["log_directory"] = str(resources.folder / LOGS)
    job = getattr(jobqueue(), system.cluster).job_cls
    return job(address, name, security=keys, protocol="tls", **options)


LOOK_S = 10.0
"""Time between queries of the queue, in seconds. Shorter times would burden the batch system."""
STILLBORN = 3
"""If this many consecutive jobs end without a worker, ended jobs are not replaced."""


class Crew:
    """The batch jobs that run workers, ``per_job`` workers in each job.

    Jobs that end (at their walltime or by a failure) are replaced. ``new_job`` creates a
    dask-jobqueue job with a given name. ``cluster`` contains the Dask scheduler.
    """

    def __init__(
        self,
        cluster: Any,
        new_job: Callable[[str], Any],
        system: System,
        per_job: int,
        resources: Resources,
    ) -> None:
        self.cluster, self.new_job, self.system, self.per_job = cluster, new_job, system, per_job
        self.folder, self.on_crew = resources.folder, resources.on_crew
        self.jobs: dict[str, Any] = {}
        self.numbers = itertools.count()
        self.reported: set[str] = set()
        self.unlisted: set[str] = set()
        self.stillborn, self.n_lacking, self.next_look = 0, 0, 0.0
        self.reported_status = (0, "")

    def begin(self, n_jobs: int) -> None:
        """Submit the jobs."""
        self.n_lacking = n_jobs
        if refused := self._submit():
            raise InputError(refused, f"executor {self.system.name}")
        self._report(0, f"{n_jobs} submitted")

    def end(self) -> None:
        """Cancel all jobs, including jobs that are being submitted."""

        async def cancelled(job: Any) -> None:
            async with job.lock:
                await job.close()

        async def all_cancelled() -> None:
            await asyncio.gather(*map(cancelled, self.jobs.values()))

        self.cluster.sync(all_cancelled)

    def watch(self) -> None:
        """Check the workers, look for missing jobs in the queue, and replace ended jobs."""
        names = {str(worker.name) for worker in list(self.cluster.scheduler.workers.values())}
        self._note_reported(names)
        if len(names) >= self.per_job * (len(self.jobs) + self.n_lacking):
            self.unlisted = set()
            self._report(len(names), "")
        elif time.monotonic() >= self.next_look:
            self._look(len(names))
            self.next_look = time.monotonic() + LOOK_S
        else:
            self._report(len(names), self.reported_status[1])

    def _note_reported(self, workers: set[str]) -> None:
        """Record the jobs whose workers are connected. Workers are named JOB or JOB-NUMBER."""
        jobs = workers | {name.rpartition("-")[0] for name in workers}
        new = (jobs & self.jobs.keys()) - self.reported
        if new:
            self.reported |= new
            self.stillborn = 0

    def _look(self, n_workers: int) -> None:
        queue = queued(self.system)
        if queue is None:
            self._report(n_workers, f"{self.system.listing[0]} does not answer")
            return
        missing = {name for name, job in self.jobs.items() if job.job_id not in queue}
        self._drop_ended(missing & self.unlisted)
        self.unlisted = missing  # ended if missing twice: queues may list new jobs late
        refused = self._submit()
        if refused and not n_workers:
            raise RebatError(f"executor {self.system.name}: {refused}")
        states = [queue[job.job_id] for job in self.jobs.values() if job.job_id in queue]
        n_pending = len(states) - states.count(self.system.runs)
        self._report(n_workers, refused or (f"{n_pending} pending" if n_pending else ""))

    def _drop_ended(self, ended: set[str]) -> None:
        """Delete ended jobs. Replace them, unless too many jobs ended without a worker."""
        for name in ended:
            del self.jobs[name]
            self.stillborn += name not in self.reported
            self.n_lacking += self.stillborn < STILLBORN
        if not self.jobs and not self.n_lacking:
            problem = f"{self.stillborn} jobs ended before their workers connected"
            raise RebatError(f"executor {self.system.name}: {problem}; see {self.folder}/jobs")

    def _submit(self) -> str:
        """Submit the missing jobs. If the batch system rejects a job, return its message."""
        new = {name: self.new_job(name) for name in self._names(self.n_lacking)}
        self.jobs |= new  # before the submission, so that an interrupt cancels the jobs

        async def submitted() -> list[Any]:
            return await asyncio.gather(*new.values(), return_exceptions=True)

        answers = zip(new, self.cluster.sync(submitted), strict=True)
        refused = {name: str(a) for name, a in answers if isinstance(a, BaseException)}
        for name in refused:
            del self.jobs[name]
        self.n_lacking = len(refused)
        return next(map(_message, refused.values()), "")

    def _names(self, n: int) -> list[str]:
        return [f"rebat{number}" for number in itertools.islice(self.numbers, n)]

    def _report(self, n_workers: int, note: str) -> None:
        if (n_workers, note) != self.reported_status:
            self.reported_status = (n_workers, note)
            where = f"Dask listens at {self.cluster.scheduler_address}"
            message = f"waiting for jobs of {self.system.name}: {note}; {where}"
            self.on_crew(n_workers, message if note else "")


def _message(text: str) -> str:
    r"""Extract the message of the batch system from an error text of dask-jobqueue.

    >>> _message("Command exited\nstderr:\nsbatch: error: invalid partition\n\n")
    'sbatch: error: invalid partition'
    """
    stderr = re.search(r"stderr:\n(.+?)\s*$", text, re.DOTALL)
    return " ".join((stderr[1] if stderr else text).split())


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
