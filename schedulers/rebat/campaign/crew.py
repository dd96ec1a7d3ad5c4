# SPDX-License-Identifier: Apache-2.0
"""The jobs of a batch system that hold a Dask cluster's workers: begun, watched, replaced."""

from __future__ import annotations

import re
import time
from typing import Any

from rebat.campaign.resources import Resources
from rebat.campaign.systems import System, queued
from rebat.core.errors import InputError, RebatError

LOOK_S = 10.0
"""Between two looks at the queue: sites do not like to be asked all the time."""
STILLBORN = 3
"""So many jobs may end before a worker of theirs reports; the next are not replaced."""


class Crew:
    """Jobs of ``per_job`` workers each; those that reach their walltime or die are replaced."""

    def __init__(self, cluster: Any, system: System, per_job: int, resources: Resources) -> None:
        self.cluster, self.system, self.per_job = cluster, system, per_job
        self.folder, self.on_crew = resources.folder, resources.on_crew
        self.n_wanted, self.told = 0, (0, "")
        self.reported: set[str] = set()
        self.unlisted: set[str] = set()
        self.stillborn, self.next_look = 0, 0.0

    def begin(self, n_jobs: int) -> None:
        """Submit the jobs.

        Raises
        ------
        InputError
            With what the batch system says when it takes none.
        """
        self.n_wanted = n_jobs * self.per_job
        self.cluster.scale(jobs=n_jobs)
        try:
            self._settle()
        except RuntimeError as error:
            where = f"executor {self.system.name}"
            raise InputError(f"{self.system.submit}: {refusal(error)}", where) from None
        self._tell(0, f"{n_jobs} jobs submitted")

    def watch(self) -> None:
        """See who is there; look into the queue for who is not, and replace what has ended.

        Raises
        ------
        RebatError
            When all jobs ended before their workers reported.
        """
        names = {str(worker.name) for worker in list(self.cluster.scheduler.workers.values())}
        self._note_reported(names)
        if len(names) >= self.n_wanted:
            self._tell(len(names), "")
        elif time.monotonic() >= self.next_look:
            self.next_look = time.monotonic() + LOOK_S
            self._look(len(names))
        else:
            self._tell(len(names), self.told[1])

    def _note_reported(self, workers: set[str]) -> None:
        """Dask calls a job's workers by the job's name and, if they are many, a number each."""
        jobs = set(self.cluster.workers)
        new = (jobs & (workers | {name.rpartition("-")[0] for name in workers})) - self.reported
        if new:
            self.reported |= new
            self.stillborn = 0

    def _look(self, n_workers: int) -> None:
        jobs = dict(self.cluster.workers)
        queue = queued(self.system)
        if queue is None:
            self._tell(n_workers, f"{self.system.listing[0]} does not answer")
            return
        missing = {name for name, job in jobs.items() if job.job_id not in queue}
        self._replace(missing & self.unlisted, n_workers)
        self.unlisted = missing  # once is no proof: a queue may be slow to list what is new
        waiting = [state for state in self._states(queue) if state != self.system.runs]
        self._tell(n_workers, f"{len(waiting)} jobs pending" if waiting else "")

    def _states(self, queue: dict[str, str]) -> list[str]:
        return [queue[j.job_id] for j in list(self.cluster.workers.values()) if j.job_id in queue]

    def _replace(self, ended: set[str], n_workers: int) -> None:
        """Submit jobs in the place of those that ended, if those before them came to life."""
        for name in ended:
            self.stillborn += name not in self.reported
            self.reported.discard(name)
            del self.cluster.workers[name]
            if self.stillborn >= STILLBORN:
                del self.cluster.worker_spec[name]
        if not self.cluster.worker_spec:
            raise RebatError(
                f"{self.stillborn} jobs ended before their workers reported; see {self.folder}/jobs"
            )
        if ended:
            self._submit_again(n_workers)

    def _submit_again(self, n_workers: int) -> None:
        try:
            self._settle()
        except RuntimeError as error:
            if not n_workers:
                raise RebatError(f"{self.system.submit}: {refusal(error)}") from None

    def _settle(self) -> None:
        """Have Dask submit the jobs that it lacks, and wait until it has."""

        async def settled() -> None:
            await self.cluster

        self.cluster.sync(settled)

    def _tell(self, n_workers: int, note: str) -> None:
        if (n_workers, note) != self.told:
            self.told = (n_workers, note)
            where = f"; Dask listens at {self.cluster.scheduler_address}"
            self.on_crew(n_workers, f"waiting for the cluster: {note}{where}" if note else "")


def refusal(error: BaseException) -> str:
    """What a batch system's command said, of all that dask-jobqueue says of it.

    >>> refusal(RuntimeError("Command exited\\nstderr:\\nsbatch: error: invalid partition\\n\\n"))
    'sbatch: error: invalid partition'
    """
    text = str(error)
    said = re.search(r"stderr:\n(.*?)\s*$", text, re.DOTALL)
    return " ".join((said[1] if said and said[1] else text).split())
