# SPDX-License-Identifier: Apache-2.0
"""Arrivals of the jobs of a generated workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.workloads.load import READERS, load_workload

Floats = npt.NDArray[np.float64]
_KINDS = "zero, poisson, or a trace (.swf, .csv) or workload (.json)"


class Arrivals(msgspec.Struct, frozen=True):
    """An arrival process.

    Parameters
    ----------
    kind : str
        ``zero`` (all jobs arrive at time 0), ``poisson``, or a trace file. With a file, the arrival
        times of its first jobs are used.
    gap_s : float, optional
        Mean time between arrivals in seconds.
    load : float, optional
        Processor time requested by all jobs, in percent of the processor time between the first and
        the last arrival. All gaps are scaled to reach this load. If neither ``load`` nor ``gap_s``
        is set, the gaps of a trace are not scaled.
    """

    kind: str = "zero"
    gap_s: float | None = None
    load: float | None = None

    def __post_init__(self) -> None:
        options = {"gap_s": self.gap_s, "load": self.load}
        used = {name: value for name, value in options.items() if value is not None}
        for name, value in used.items():
            if not 0 < value <= MAX_SECONDS:
                raise InputError(f"is {value:g}", name, f"above 0, up to {MAX_SECONDS:.0e}")
        if used and self.kind == "zero":
            raise InputError("has no effect", next(iter(used)), "arrivals=poisson or a trace file")
        if len(used) > 1 or (self.kind == "poisson" and not used):
            raise InputError("needs exactly one rate", "arrivals", "either gap_s or load")
        ending = Path(self.kind.removesuffix(".gz")).suffix.lower()
        if self.kind not in ("zero", "poisson") and ending not in READERS:
            raise InputError(f"is {self.kind!r}", "arrivals", _KINDS)

    def times_us(
        self, rng: np.random.Generator, n_jobs: int, work: float, processors: int
    ) -> list[int]:
        """Return the arrival times of ``n_jobs`` jobs in microseconds, ascending from 0.

        Parameters
        ----------
        rng : Generator
            Random numbers of the Poisson process.
        work : float
            Processor-seconds requested by all jobs.
        processors : int
            Processors of the machine.
        """
        gaps_s = self._gaps_s(rng, n_jobs, processors)
        if self.load is not None and n_jobs > 1:
            span_s = work / (processors * self.load / 100)
            gaps_s *= span_s / float(gaps_s.sum())
        elif self.gap_s is not None and self.kind != "poisson" and n_jobs > 1:
            gaps_s *= self.gap_s / float(gaps_s.mean())
        times_s = np.concatenate([[0.0], np.cumsum(gaps_s)])
        times_us: list[int] = np.rint(times_s * US_PER_S).astype(np.int64).tolist()
        return times_us

    def _gaps_s(self, rng: np.random.Generator, n_jobs: int, processors: int) -> Floats:
        if self.kind == "zero":
            return np.zeros(n_jobs - 1)
        if self.kind == "poisson":
            return rng.exponential(self.gap_s or 1.0, n_jobs - 1)
        file = Path(self.kind)
        options: dict[str, Any] = {} if ".json" in file.suffixes else {"n_nodes": processors}
        recorded = [job.submit_us for job in load_workload(file, **options).jobs]
        if len(recorded) < n_jobs:
            raise InputError(f"has {len(recorded)} jobs", str(file), f"at least {n_jobs} jobs")
        gaps_s = np.diff(np.sort(recorded)[:n_jobs]) / US_PER_S
        if n_jobs > 1 and not gaps_s.any() and (self.load or self.gap_s):
            problem = f"the first {n_jobs} jobs arrive at the same time"
            raise InputError(problem, str(file), "arrivals at different times")
        return gaps_s
