# SPDX-License-Identifier: Apache-2.0
"""A parsed trace: a column per field, and notes on changes of the trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """A parsed trace.

    Columns have an entry per record. Times are in seconds; unknown times are NaN.
    """

    name: str
    where: str
    n_nodes: int | None
    dated: bool
    """Whether ``submit_s`` and ``start_s`` count from the Unix epoch."""
    lines: npt.NDArray[np.int64]
    ids: npt.NDArray[np.object_]
    submit_s: Floats
    start_s: Floats
    requested: Floats
    allocated: Floats
    run_s: Floats
    walltime_s: Floats
    why_not: npt.NDArray[np.int64]
    """Reason why a record is excluded: a position in ``reasons``, from 1. A job has 0."""
    users: npt.NDArray[np.object_]
    """Names of the users, empty if unknown."""
    queues: npt.NDArray[np.object_]
    """Names of the queues, empty if unknown."""
    extras: npt.NDArray[np.object_] | None = None
    """Further fields of the JSON of each job, a dict per job."""
    states: npt.NDArray[np.object_] | None = None
    """Final states, with the names that Slurm uses. A state is empty if it is unknown."""
    submitted_s: Floats | None = None
    """Submissions by the users. ``submit_s`` is later for jobs that were not eligible at first."""
    unclear_size: str = ""
    """Problem of the number of nodes in the trace."""
    machine: dict[str, Any] | None = None
    """Description of the recorded machine, see `rebat.core.jobs.Workload`."""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, which: npt.NDArray[Any]) -> TraceColumns:
        """Return the records that a mask or an array of positions selects."""
        columns = {name: getattr(self, name)[which] for name in _COLUMNS}
        optional = {name: getattr(self, name) for name in ("extras", "states", "submitted_s")}
        columns |= {name: None if of is None else of[which] for name, of in optional.items()}
        return replace(self, **columns)

    def keep(self, mask: Mask, reason: str) -> TraceColumns:
        """Return the records that a mask selects, with a note on the number of other records."""
        n_dropped = int(len(mask) - mask.sum())
        if not n_dropped:
            return self
        return self.take(mask).noting(f"{counted(n_dropped)} dropped: {reason}")

    @property
    def jobs(self) -> TraceColumns:
        """The trace without the records marked for exclusion."""
        return self.take(self.is_job)

    @property
    def is_job(self) -> Mask:
        """Mask of the records that are not marked for exclusion."""
        return np.equal(self.why_not, 0)

    def marking(self, mask: Mask, reason: str) -> TraceColumns:
        """Return the trace, in which the jobs that a mask selects are marked for exclusion."""
        reasons = (*self.reasons, reason)
        marked = np.where(mask & self.is_job, len(reasons), self.why_not)
        return replace(self, why_not=marked, reasons=reasons)

    def without_marked(self) -> TraceColumns:
        """Remove the marked records, with a note for each reason."""
        trace = self
        for number, reason in enumerate(self.reasons, 1):
            trace = trace.keep(trace.why_not != number, reason)
        return trace

    def noting(self, note: str) -> TraceColumns:
        """Return the trace with an additional note."""
        return replace(self, notes=(*self.notes, note))


_COLUMNS = (
    "lines",
    "ids",
    "submit_s",
    "start_s",
    "requested",
    "allocated",
    "run_s",
    "walltime_s",
    "why_not",
    "users",
    "queues",
)


def counted(count: Any) -> str:
    """Return a number of jobs in words.

    >>> counted(1), counted(12)
    ('1 job', '12 jobs')
    """
    return f"{int(count)} job" + ("s" if count != 1 else "")
