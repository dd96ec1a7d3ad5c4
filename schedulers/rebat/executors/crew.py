# SPDX-License-Identifier: Apache-2.0
"""The jobs of a batch system that hold a Dask scheduler's workers: begun, watched, replaced."""

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
"""Between two looks at the queue: sites do not like to be asked all the time."""
STILLBORN = 3
"""So many jobs may end one after the other without a worker; later ones are not replaced."""


class Crew:
    """Jobs of ``per_job`` workers each; those that reach their walltime or die are replaced.

    ``new_job`` makes a job of dask-jobqueue of a name, ``cluster`` holds its scheduler.
    """

    def __init__(
        self, cluster: Any, new_job: Callable[[str], Any], system: System, per_job: int,
        resources: Resources,
    ) -> None:  # fmt: skip
        self.cluster, self.new_job, self.system, self.per_job = cluster, new_job, system, per_job
        self.folder, self.on_crew = resources.folder, resources.on_crew
        self.jobs: dict[str, Any] = {}
        self.numbers = itertools.count()
        self.reported: set[str] = set()
        self.unlisted: set[str] = set()
        self.stillborn, self.n_lacking, self.next_look = 0, 0, 0.0
        self.told = (0, "")

    def begin(self, n_jobs: int) -> None:
        """Submit the jobs.

        Raises
        ------
        InputError
            With what the batch system says when it takes one of them not.
        """
        self.n_lacking = n_jobs
        if refused := self._submit():
            raise InputError(refused, f"executor {self.system.name}")
        self._tell(0, f"{n_jobs} submitted")

    def end(self) -> None:
        """Cancel the jobs, also those that are just being submitted."""

        async def cancelled(job: Any) -> None:
            async with job.lock:
                await job.close()

        async def all_cancelled() -> None:
            await asyncio.gather(*map(cancelled, self.jobs.values()))

        self.cluster.sync(all_cancelled)

    def watch(self) -> None:
        """See who is there; look into the queue for who is not, and replace what has ended.

        Raises
        ------
        RebatError
            When all jobs ended before their workers reported.
        """
        names = {str(worker.name) for worker in list(self.cluster.scheduler.workers.values())}
        self._note_reported(names)
        if len(names) >= self.per_job * (len(self.jobs) + self.n_lacking):
            self.unlisted = set()
            self._tell(len(names), "")
        elif time.monotonic() >= self.next_look:
            self._look(len(names))
            self.next_look = time.monotonic() + LOOK_S
        else:
            self._tell(len(names), self.told[1])

    def _note_reported(self, workers: set[str]) -> None:
        """Dask calls a job's workers by the job's name and, if they are many, a number each."""
        jobs = workers | {name.rpartition("-")[0] for name in workers}
        new = (jobs & self.jobs.keys()) - self.reported
        if new:
            self.reported |= new
            self.stillborn = 0

    def _look(self, n_workers: int) -> None:
        queue = queued(self.system)
        if queue is None:
            self._tell(n_workers, f"{self.system.listing[0]} does not answer")
            return
        missing = {name for name, job in self.jobs.items() if job.job_id not in queue}
        self._bury(missing & self.unlisted)
        self.unlisted = missing  # once is no proof: a queue may be slow to list what is new
        refused = self._submit()
        if refused and not n_workers:
            raise RebatError(f"executor {self.system.name}: {refused}")
        states = [queue[job.job_id] for job in self.jobs.values() if job.job_id in queue]
        n_pending = len(states) - states.count(self.system.runs)
        self._tell(n_workers, refused or (f"{n_pending} pending" if n_pending else ""))

    def _bury(self, ended: set[str]) -> None:
        """Forget jobs that ended; others take their places if those before came to life."""
        for name in ended:
            del self.jobs[name]
            self.stillborn += name not in self.reported
            self.n_lacking += self.stillborn < STILLBORN
        if not self.jobs and not self.n_lacking:
            what = f"{self.stillborn} jobs ended before their workers reported"
            raise RebatError(f"executor {self.system.name}: {what}; see {self.folder}/jobs")

    def _submit(self) -> str:
        """Submit what is lacking; what the batch system says against it."""
        new = {name: self.new_job(name) for name in self._names(self.n_lacking)}
        self.jobs |= new  # before it happens: one that interrupts it wants to cancel them

        async def submitted() -> list[Any]:
            return await asyncio.gather(*new.values(), return_exceptions=True)

        answers = zip(new, self.cluster.sync(submitted), strict=True)
        refused = {name: str(a) for name, a in answers if isinstance(a, BaseException)}
        for name in refused:
            del self.jobs[name]
        self.n_lacking = len(refused)
        return next(map(_said, refused.values()), "")

    def _names(self, n: int) -> list[str]:
        return [f"rebat{number}" for number in itertools.islice(self.numbers, n)]

    def _tell(self, n_workers: int, note: str) -> None:
        if (n_workers, note) != self.told:
            self.told = (n_workers, note)
            where = f"Dask listens at {self.cluster.scheduler_address}"
            what = f"waiting for jobs of {self.system.name}: {note}; {where}"
            self.on_crew(n_workers, what if note else "")


def _said(text: str) -> str:
    r"""What a batch system's command said, of all that dask-jobqueue says of it.

    >>> _said("Command exited\nstderr:\nsbatch: error: invalid partition\n\n")
    'sbatch: error: invalid partition'
    """
    said = re.search(r"stderr:\n(.+?)\s*$", text, re.DOTALL)
    return " ".join((said[1] if said else text).split())
