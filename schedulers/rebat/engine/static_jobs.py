# SPDX-License-Identifier: Apache-2.0
"""The jobs of the workloads, in the order in which Batsim submits them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rebat.core.job_table import Jobs, submission_order
from rebat.core.jobs import Job

Placed = tuple[str, Job]
"""The name of a workload, and one of its jobs."""

_CHUNK = 4096


class StaticJobs:
    """The jobs of all workloads. There may be millions, so job objects are created on access.

    The attribute ``n`` is the number of jobs.
    """

    def __init__(self) -> None:
        self._workloads: list[tuple[str, Jobs]] = []
        self.n = 0

    def add(self, workload: str, jobs: Jobs) -> None:
        """Add the jobs of a workload with this name."""
        self._workloads.append((workload, jobs))
        self.n += len(jobs)

    def groups(self) -> Iterator[list[Placed]]:
        """Yield the jobs of each submission time, ordered by id as text."""
        for _, same in groupby(self._in_order(), lambda placed: placed[1].submit_us):
            yield [*same]

    def _in_order(self) -> Iterator[Placed]:
        order = submission_order(self._workloads)
        for first in range(0, self.n, _CHUNK):
            yield from map(self._at, order[first : first + _CHUNK].tolist())

    def find(self, job_id: str) -> Placed | None:
        """Return the job with an id such as ``w0!12``, or None if there is none.

        The first call takes time proportional to the number of jobs.
        """
        name, _, own = job_id.partition("!")
        for workload, jobs in self._workloads:
            if workload == name and (row := jobs.ids.position(own)) is not None:
                return workload, jobs.at(row)
        return None

    def _at(self, row: int) -> Placed:
        for workload, jobs in self._workloads:
            if row < len(jobs):
                return workload, jobs.at(row)
            row -= len(jobs)
        raise IndexError(row)
