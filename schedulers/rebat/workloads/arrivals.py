# SPDX-License-Identifier: Apache-2.0
"""When the jobs of a generated workload arrive."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.workloads.load import READERS, load_workload

Floats = npt.NDArray[np.float64]
_KNOWN = "zero, poisson, or a trace (.swf, .csv) or workload (.json)"


class Arrivals(msgspec.Struct, frozen=True):
    """How jobs arrive: ``zero``, all at date 0; ``poisson``; or as the first jobs of a trace did.

    Parameters
    ----------
    kind : str
        ``zero``, ``poisson``, or a trace's file.
    gap_s : float, optional
        Mean time between arrivals.
    load : float, optional
        What the jobs ask for, in percent of the processors from the first arrival to the last: the
        gaps are all scaled to it. A trace with neither keeps its own.

    Raises
    ------
    InputError
        For a kind, gap or load that cannot be, both, or a Poisson process with none of them.
    """

    kind: str = "zero"
    gap_s: float | None = None
    load: float | None = None

    def __post_init__(self) -> None:
        told = {"gap_s": self.gap_s, "load": self.load}
        given = {name: value for name, value in told.items() if value is not None}
        for name, value in given.items():
            if not 0 < value <= MAX_SECONDS:
                raise InputError(f"is {value:g}", name, f"above 0, up to {MAX_SECONDS:.0e}")
        if given and self.kind == "zero":
            raise InputError("has no effect", next(iter(given)), "arrivals that are not zero")
        if len(given) > 1 or (self.kind == "poisson" and not given):
            raise InputError("is not one thing", "arrivals", "either gap_s or load beside it")
        ending = Path(self.kind.removesuffix(".gz")).suffix.lower()
        if self.kind not in ("zero", "poisson") and ending not in READERS:
            raise InputError(f"is {self.kind!r}", "arrivals", _KNOWN)

    def dates_us(
        self, rng: np.random.Generator, n_jobs: int, work: float, processors: int
    ) -> list[int]:
        """The dates of so many jobs, ascending from 0, in microseconds.

        Parameters
        ----------
        rng : Generator
            Of the Poisson process.
        n_jobs : int
        work : float
            Processor-seconds that all jobs ask for.
        processors : int
            Those of the machine.

        Raises
        ------
        InputError
            For a trace with fewer jobs, or whose jobs all arrive at once.
        """
        gaps_s = self._gaps_s(rng, n_jobs, processors)
        if self.load is not None and n_jobs > 1:
            span_s = work / (processors * self.load / 100)
            gaps_s *= span_s / float(gaps_s.sum())
        elif self.gap_s is not None and self.kind != "poisson" and n_jobs > 1:
            gaps_s *= self.gap_s / float(gaps_s.mean())
        dates_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
        dates_us: list[int] = np.rint(dates_s * US_PER_S).astype(np.int64).tolist()
        return dates_us

    def _gaps_s(self, rng: np.random.Generator, n_jobs: int, processors: int) -> Floats:
        if self.kind == "zero":
            return np.zeros(n_jobs - 1)
        if self.kind == "poisson":
            return rng.exponential(self.gap_s or 1.0, n_jobs - 1)
        file = Path(self.kind)
        options = {} if ".json" in file.suffixes else {"n_nodes": processors}
        recorded = [job.submit_us for job in load_workload(file, **options).jobs]
        if len(recorded) < n_jobs:
            raise InputError(f"holds {len(recorded)} jobs", str(file), f"{n_jobs} arrivals or more")
        gaps_s = np.diff(np.sort(recorded)[:n_jobs]) / US_PER_S
        if n_jobs > 1 and not gaps_s.any() and (self.load or self.gap_s):
            raise InputError(f"its first {n_jobs} jobs arrive at once", str(file), "gaps to scale")
        return gaps_s
