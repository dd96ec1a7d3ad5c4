# SPDX-License-Identifier: Apache-2.0
"""The jobs of the workloads, in the order in which Batsim submits them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from rebat.core.compact_jobs import CompactJobs
from rebat.core.id_set import IdSet
from rebat.core.jobs import Job

Placed = tuple[str, Job]
"""The name of a workload, and one of its jobs."""

_CHUNK = 4096


class StaticJobs:
    """The jobs of all workloads. There may be millions, so job objects are created on access.

    The attribute ``n`` is the number of jobs.
    """

    def __init__(self) -> None:
        self._workloads: list[tuple[str, CompactJobs]] = []
        self._ids: IdSet | None = None
        self.n = 0

    def add(self, workload: str, jobs: CompactJobs) -> None:
        """Add the jobs of a workload with this name."""
        self._workloads.append((workload, jobs))
        self._ids = None
        self.n += len(jobs)

    def groups(self) -> Iterator[list[Placed]]:
        """Yield the jobs of each submission time, ordered by id as text."""
        jobs = map(self._at, _integers(self._order()))
        for _, same in groupby(jobs, lambda placed: placed[1].submit_us):
            group = list(same)
            if len(group) > 1:
                group.sort(key=lambda placed: f"{placed[0]}!{placed[1].id}")
            yield group

    def _order(self) -> npt.NDArray[np.int32]:
        """Return the positions of the jobs, sorted by submission."""
        columns = [jobs.submit_us() for _, jobs in self._workloads]
        submit_us = np.concatenate([np.empty(0, dtype=np.int64), *columns])
        return np.argsort(submit_us, kind="stable").astype(np.int32)

    def find(self, job_id: str) -> Placed | None:
        """Return the job with an id such as ``w0!12``, or None if there is none.

        The first call, and each call that finds a job, takes time proportional to the number of
        jobs.
        """
        if self._ids is None:
            self._ids = IdSet(
                f"{name}!{job}" for name, jobs in self._workloads for job in jobs.ids()
            )
        if job_id not in self._ids:
            return None
        return next(placed for placed in self._all() if f"{placed[0]}!{placed[1].id}" == job_id)

    def _all(self) -> Iterator[Placed]:
        return ((workload, job) for workload, jobs in self._workloads for job in jobs)

    def _at(self, place: int) -> Placed:
        for workload, jobs in self._workloads:
            if place < len(jobs):
                return workload, jobs.at(place)
            place -= len(jobs)
        raise IndexError(place)


def _integers(values: npt.NDArray[np.int32]) -> Iterator[int]:
    """Yield the values as Python integers, converted in chunks to save memory."""
    for first in range(0, len(values), _CHUNK):
        yield from values[first : first + _CHUNK].tolist()
