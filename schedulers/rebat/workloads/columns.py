"""A parsed trace: a column per field, and notes on what was done to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trace:
    """A parsed trace, one entry per job in every column; times in seconds, NaN = not known.

    ``dated`` says whether ``submit_s`` and ``start_s`` count from the Unix epoch.
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
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, which: npt.NDArray[Any]) -> Trace:
        """The jobs under a mask or at these positions."""
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})

    def keep(self, mask: Mask, reason: str) -> Trace:
        """The jobs under a mask, with a note when that leaves some out."""
        n_dropped = int(len(mask) - mask.sum())
        if not n_dropped:
            return self
        return self.take(mask).noting(f"{counted(n_dropped)} dropped: {reason}")

    def noting(self, note: str) -> Trace:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))


_COLUMNS = (
    "lines", "ids", "submit_s", "start_s", "requested", "allocated", "run_s", "walltime_s",
)  # fmt: skip


def counted(count: Any) -> str:
    """A number of jobs in words.

    >>> counted(1), counted(12)
    ('1 job', '12 jobs')
    """
    return f"{int(count)} job" + ("s" if count != 1 else "")
