# SPDX-License-Identifier: Apache-2.0
"""The jobs of a workload as columns, which need about 40 bytes per job instead of 500."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.jobs import Job, Workload

NO_EXTRA: dict[str, Any] = {}
"""The additional fields of all jobs without such fields. One shared object saves memory."""

_NO_WALLTIME = -1


class CompactJobs(Sequence[Job]):
    """The jobs of a workload as columns. A job object is created at each access.

    Jobs with equal additional fields share one dictionary, so callers must not change these
    dictionaries.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._ids, self._id_ends = bytearray(), array("q", [0])
        self._n_nodes, self._submit_us, self._walltime_us = array("i"), array("q"), array("q")
        self._profiles, self._extras = array("i"), array("i")
        self._profile_names: list[str] = []
        self._extra_fields: list[dict[str, Any]] = []
        self._fill(jobs)

    def _fill(self, jobs: Iterable[Job]) -> None:
        profiles: dict[str, int] = {}
        extras: dict[str, int] = {}
        for job in jobs:
            self._ids += job.id.encode()
            self._id_ends.append(len(self._ids))
            self._n_nodes.append(job.n_nodes)
            self._submit_us.append(job.submit_us)
            walltime_us = job.walltime_us
            self._walltime_us.append(_NO_WALLTIME if walltime_us is None else walltime_us)
            self._profiles.append(profiles.setdefault(job.profile, len(profiles)))
            code = extras.setdefault(repr(job.extra) if job.extra else "", len(extras))
            self._extras.append(code)
            if code == len(self._extra_fields):
                self._extra_fields.append(job.extra or NO_EXTRA)
        self._profile_names = list(profiles)

    def changed(self, times: Iterable[tuple[int | None, str]]) -> CompactJobs:
        """Return the jobs with other walltimes (us) and profiles. The other columns are shared."""
        other, profiles = copy(self), dict[str, int]()
        other._walltime_us, other._profiles = array("q"), array("i")
        for walltime_us, profile in times:
            other._walltime_us.append(_NO_WALLTIME if walltime_us is None else walltime_us)
            other._profiles.append(profiles.setdefault(profile, len(profiles)))
        assert len(other._profiles) == len(self)
        other._profile_names = list(profiles)
        return other

    # ---- columns (faster to read than jobs)

    def submit_us(self) -> npt.NDArray[np.int64]:
        """Return the submission times in microseconds."""
        return np.array(self._submit_us, dtype=np.int64)

    def columns(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return number of nodes, submission, walltime (us, -1: none), profile and extra fields.

        The last two columns are positions in `profile_names` and `extra_fields`.
        """
        values = (self._n_nodes, self._submit_us, self._walltime_us, self._profiles, self._extras)
        return tuple(np.array(column, dtype=np.int64) for column in values)

    @property
    def profile_names(self) -> list[str]:
        """The names of the profiles, by position."""
        return self._profile_names

    @property
    def extra_fields(self) -> list[dict[str, Any]]:
        """The distinct additional fields of jobs, by position."""
        return self._extra_fields

    def ids(self) -> Iterator[str]:
        """Yield the ids of the jobs."""
        return map(self.id_at, range(len(self)))

    def profile_uses(self) -> dict[str, int]:
        """Return the number of jobs of each profile, in the order of its first job."""
        uses = np.bincount(self._profiles, minlength=len(self._profile_names))
        return dict(zip(self._profile_names, uses.tolist(), strict=True))

    def sized_profiles(self) -> Iterator[tuple[str, int, int]]:
        """Yield (profile, number of nodes, number of jobs) for each pair that occurs."""
        sizes = np.array(self._n_nodes, dtype=np.int64)
        base = int(sizes.max(initial=0)) + 1
        codes = np.array(self._profiles, dtype=np.int64)
        pairs, counts = np.unique(codes * base + sizes, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            profile, size = divmod(pair, base)
            yield self._profile_names[profile], size, count

    def with_extra(self) -> Iterator[Job]:
        """Yield the jobs with additional fields."""
        extra = np.array([bool(fields) for fields in self._extra_fields], dtype=bool)
        return map(self.at, np.flatnonzero(extra[np.array(self._extras)]).tolist())

    # ---- jobs

    def __len__(self) -> int:
        return len(self._n_nodes)

    def __iter__(self) -> Iterator[Job]:
        return map(self.at, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Job, ...]: ...
    def __getitem__(self, place: int | slice) -> Job | tuple[Job, ...]:
        """Return a job, or the jobs of a slice."""
        if isinstance(place, slice):
            return tuple(map(self.at, range(*place.indices(len(self)))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self.at(place % len(self))

    def id_at(self, place: int) -> str:
        """Return the id of a job. ``place`` is not checked."""
        return self._ids[self._id_ends[place] : self._id_ends[place + 1]].decode()

    def at(self, place: int) -> Job:
        """Return a job. ``place`` must be from 0 to n - 1; it is not checked."""
        walltime_us = self._walltime_us[place]
        return Job(
            self.id_at(place),
            self._n_nodes[place],
            self._submit_us[place],
            None if walltime_us == _NO_WALLTIME else walltime_us,
            self._profile_names[self._profiles[place]],
            self._extra_fields[self._extras[place]],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(map(Job.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} jobs>"


def compact(jobs: Sequence[Job]) -> CompactJobs:
    """Return jobs as columns. If they are already `CompactJobs`, return them unchanged."""
    return jobs if isinstance(jobs, CompactJobs) else CompactJobs(jobs)


def with_times(
    workload: Workload,
    times: Iterable[tuple[int | None, str]],
    profiles: dict[str, dict[str, Any]],
) -> Workload:
    """Return the workload with another walltime (us) and profile of each job.

    The iterable ``times`` may add entries to ``profiles`` while the function reads it.
    """
    jobs = compact(workload.jobs).changed(times)
    return msgspec.structs.replace(workload, jobs=jobs, profiles=profiles)
