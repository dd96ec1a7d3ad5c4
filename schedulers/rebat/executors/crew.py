# SPDX-License-Identifier: Apache-2.0
"""Submission, supervision and replacement of the batch jobs that run Dask workers."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable
from typing import Any

from rebat.core.errors import InputError, RebatError
from rebat.executors.resources import Resources
from rebat.executors.systems import System, queued

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
