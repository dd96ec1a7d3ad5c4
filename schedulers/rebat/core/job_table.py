# SPDX-License-Identifier: Apache-2.0
"""The jobs of a workload as a table of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from rebat.core.jobs import Job
from rebat.core.table import Column, Texts, by_first_row

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
T = TypeVar("T")

NO_EXTRA: dict[str, Any] = {}
"""The additional fields of all jobs without such fields. One shared object saves memory."""

NO_WALLTIME = -1

_BLOCK = 4096
"""Number of jobs that are converted at a time, to save memory."""


class ExtraTable:
    """The distinct additional fields of jobs. The attribute ``fields`` is the list of them."""

    def __init__(self) -> None:
        self.fields = [NO_EXTRA]
        self._codes = {"": 0}

    def code(self, extra: dict[str, Any]) -> int:
        """Return the position of equal fields in the list, after adding them if there are none."""
        code = self._codes.setdefault(repr(extra) if extra else "", len(self.fields))
        if code == len(self.fields):
            self.fields.append(extra)
        return code


class Jobs(Sequence[Job]):
    """The jobs of a workload as columns of about 45 bytes per job.

    A `Job` is created at each access. Jobs with equal additional fields share one dictionary, so
    callers must not change these dictionaries. All columns have shape (n,).

    Attributes
    ----------
    ids : Texts
        Ids without Batsim's ``w0!`` prefix.
    n_nodes : int64 array
        Requested numbers of nodes.
    submit_us : int64 array
        Times of submission in microseconds.
    walltime_us : int64 array
        Walltimes in microseconds. -1 means no walltime.
    profile_codes, extra_codes : int32 array
        Positions in ``profile_names`` and ``extra_fields``.
    profile_names : list of str
        The names of the profiles, in the order of their first jobs.
    extra_fields : list of dict
        The distinct additional fields, in the order of their first jobs.
    """

    def __init__(
        self,
        ids: Texts,
        columns: Sequence[Column],
        profile_names: Sequence[str],
        extra_fields: Sequence[dict[str, Any]],
    ) -> None:
        """Create a table. ``columns`` are the five columns of numbers, in the order above."""
        self.ids = ids
        *numbers, profile_codes, extra_codes = columns
        self.n_nodes, self.submit_us, self.walltime_us = (np.asarray(n, np.int64) for n in numbers)
        self.profile_codes, self.profile_names = _used(profile_codes, profile_names)
        self.extra_codes, self.extra_fields = _used(extra_codes, extra_fields)

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> Jobs:
        """Return jobs as a table. If they are already a table, return them unchanged."""
        if isinstance(jobs, Jobs):
            return jobs
        jobs, names, extras = [*jobs], dict[str, int](), ExtraTable()
        rows = [
            (
                job.n_nodes,
                job.submit_us,
                NO_WALLTIME if job.walltime_us is None else job.walltime_us,
                names.setdefault(job.profile, len(names)),
                extras.code(job.extra),
            )
            for job in jobs
        ]
        columns = np.array(rows, np.int64).reshape(-1, 5).T.copy()
        return cls(Texts.of(job.id for job in jobs), [*columns], [*names], extras.fields)

    def changed(self, walltime_us: Ints, profile_codes: Column, names: Sequence[str]) -> Jobs:
        """Return the jobs with other walltimes and profiles. The other columns are shared."""
        other = copy(self)
        other.walltime_us = np.asarray(walltime_us, np.int64)
        other.profile_codes, other.profile_names = _used(profile_codes, names)
        return other

    def at_load(self, load: float) -> Jobs:
        """Return the jobs with their submission times divided by ``load``."""
        other = copy(self)
        other.submit_us = np.rint(self.submit_us / load).astype(np.int64)
        return other

    def profile_uses(self) -> dict[str, int]:
        """Return the number of jobs of each profile, in the order of its first job."""
        uses = np.bincount(self.profile_codes, minlength=len(self.profile_names))
        return dict(zip(self.profile_names, uses.tolist(), strict=True))

    def first_of(self, profile: str) -> Job:
        """Return the first job with this profile."""
        return self.at(int(np.argmax(self.profile_codes == self.profile_names.index(profile))))

    # ---- jobs

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Job]:
        ids, names, fields = iter(self.ids), self.profile_names, self.extra_fields
        for first in range(0, len(self), _BLOCK):
            block = slice(first, first + _BLOCK)
            for n_nodes, submit_us, walltime_us, profile, extra, job_id in zip(
                self.n_nodes[block].tolist(),
                self.submit_us[block].tolist(),
                self.walltime_us[block].tolist(),
                self.profile_codes[block].tolist(),
                self.extra_codes[block].tolist(),
                ids,  # last: a block of the other columns ends first
                strict=False,
            ):
                wall_us = None if walltime_us == NO_WALLTIME else walltime_us
                yield Job(job_id, n_nodes, submit_us, wall_us, names[profile], fields[extra])

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

    def at(self, row: int) -> Job:
        """Return a job. ``row`` must be from 0 to n - 1; it is not checked."""
        walltime_us = self.walltime_us.item(row)
        return Job(
            self.ids[row],
            self.n_nodes.item(row),
            self.submit_us.item(row),
            None if walltime_us == NO_WALLTIME else walltime_us,
            self.profile_names[self.profile_codes.item(row)],
            self.extra_fields[self.extra_codes.item(row)],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(map(Job.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} jobs>"


def _used(codes: Column, values: Sequence[T]) -> tuple[Codes, list[T]]:
    """Return the codes and values without unused values, in the order of the first jobs."""
    rows, new = by_first_row(codes, len(values))
    return new.astype(np.int32), [values[code] for code in codes[rows].tolist()]


def submission_order(tables: Sequence[tuple[str, Jobs]]) -> Ints:
    """Return the jobs of several workloads in the order in which Batsim submits them.

    Jobs that are submitted at the same time are ordered by their complete ids as text.

    Parameters
    ----------
    tables : sequence of (str, Jobs)
        The name and the jobs of each workload.

    Returns
    -------
    int64 array, shape (n,)
        Positions in the concatenation of the tables.
    """
    submit_us = np.concatenate([np.empty(0, np.int64), *(jobs.submit_us for _, jobs in tables)])
    order = np.argsort(submit_us, kind="stable")
    edges = np.diff(submit_us[order], prepend=-1, append=-1) != 0
    tied = ~(edges[1:] & edges[:-1])
    if not tied.any():
        return order
    rows = np.sort(order[tied])
    starts = np.cumsum([0, *(len(jobs) for _, jobs in tables)])
    ids = [
        f"{name}!{jobs.ids[row]}"
        for (name, jobs), (first, last) in zip(tables, pairwise(starts), strict=True)
        for row in (rows[(first <= rows) & (rows < last)] - first).tolist()
    ]
    by_id = rows[np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)]
    order[tied] = by_id[np.argsort(submit_us[by_id], kind="stable")]
    return order
