# SPDX-License-Identifier: Apache-2.0
"""A parsed trace: a column per field, and notes on what was done to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """A parsed trace, one entry per record in every column; times in seconds, NaN = not known.

    ``dated`` says whether ``submit_s`` and ``start_s`` count from the Unix epoch; ``why_not`` why a
    record is to be left out: the number of one of ``reasons``, from 1; 0 for a job. ``users`` and
    ``queues`` are names, empty where there is none.
    """

    name: str
    where: str
    n_nodes: int | None
    dated: bool
    lines: npt.NDArray[np.int64]
    ids: npt.NDArray[np.object_]
    submit_s: Floats
    start_s: Floats
    requested: Floats
    allocated: Floats
    run_s: Floats
    walltime_s: Floats
    why_not: npt.NDArray[np.int64]
    users: npt.NDArray[np.object_]
    queues: npt.NDArray[np.object_]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, which: npt.NDArray[Any]) -> TraceColumns:
        """The jobs under a mask or at these positions."""
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})

    def keep(self, mask: Mask, reason: str) -> TraceColumns:
        """The jobs under a mask, with a note when that leaves some out."""
        n_dropped = int(len(mask) - mask.sum())
        if not n_dropped:
            return self
        return self.take(mask).noting(f"{counted(n_dropped)} dropped: {reason}")

    @property
    def jobs(self) -> TraceColumns:
        """Without the records that are to be left out."""
        return self.take(self.is_job)

    @property
    def is_job(self) -> Mask:
        """Which records are not to be left out."""
        return np.equal(self.why_not, 0)

    def marking(self, mask: Mask, reason: str) -> TraceColumns:
        """The same, the jobs under a mask to be left out."""
        reasons = (*self.reasons, reason)
        marked = np.where(mask & self.is_job, len(reasons), self.why_not)
        return replace(self, why_not=marked, reasons=reasons)

    def without_marked(self) -> TraceColumns:
        """What is to be left out is, with a note for each reason."""
        trace = self
        for number, reason in enumerate(self.reasons, 1):
            trace = trace.keep(trace.why_not != number, reason)
        return trace

    def noting(self, note: str) -> TraceColumns:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))


_COLUMNS = (
    "lines", "ids", "submit_s", "start_s", "requested", "allocated", "run_s", "walltime_s",
    "why_not", "users", "queues",
)  # fmt: skip


def counted(count: Any) -> str:
    """A number of jobs in words.

    >>> counted(1), counted(12)
    ('1 job', '12 jobs')
    """
    return f"{int(count)} job" + ("s" if count != 1 else "")
