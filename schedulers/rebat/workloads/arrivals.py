# SPDX-License-Identifier: Apache-2.0
"""Arrivals of the jobs of a generated workload, and sessions of similar jobs.

A session is a series of jobs of similar size and run time that one user submits. Sessions are
fitted to Mira, September to December 2018. A few sessions are open at the same time. Each job
continues the session of the previous job with probability `CONTINUES`. Otherwise it belongs to a
random open session. When a session ends, a new session opens.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats, Ints
from rebat.core.errors import InputError
from rebat.core.jobs import rounded_us
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.workloads.load import READERS, load_workload

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
        times_us: list[int] = rounded_us(times_s).tolist()
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


CONTINUES, OPEN_SESSIONS, MEAN_LENGTH = 0.35, 3, 5.0
"""Parameters of the sessions, fitted by a grid search to Mira, September to December 2018.

With these parameters, the probability that two jobs with a distance of k submissions belong to the
same session is close to the correlation of log sizes and log run times at lag k (lag 1: 0.45, 2:
0.32, 5: 0.17, 10: 0.10).
"""

BURST_GAP_S = 10
"""Assumption: gap in seconds between two consecutive jobs of the same session. On Mira, September
to December 2018, the medians are 6 to 19 s within a session, and 217 to 328 s between sessions.
"""

ACCURACY: dict[int, tuple[float, ...]] = {
    1: (0.001, 0.069, 0.276, 0.498, 0.532, 0.637, 0.818, 0.864, 1.0, 1.0, 1.0),
    1024: (0.002, 0.159, 0.297, 0.372, 0.552, 0.636, 0.77, 0.856, 0.957, 1.0, 1.0),
    4096: (0.001, 0.012, 0.1, 0.215, 0.367, 0.636, 0.786, 0.853, 0.976, 1.0, 1.0),
}
"""Deciles of run time / walltime on Mira, September to December 2018, by minimum number of nodes.
If the run time exceeds the walltime, the ratio is 1.
"""


class Sessions(NamedTuple):
    """The order of jobs, and the session of each job.

    Attributes
    ----------
    order : int array of shape (n,)
        Indices of the jobs by submission.
    of : int array of shape (n,)
        Session of each job, in the order of submission.
    """

    order: Ints
    of: Ints

    @property
    def continues(self) -> npt.NDArray[np.bool_]:
        """Whether each job belongs to the session of the previous job: shape (n,)."""
        return np.concatenate([[False], self.of[1:] == self.of[:-1]])


def apart(n: int) -> Sessions:
    """Return n jobs in their given order. Each job is in a separate session."""
    return Sessions(np.arange(n), np.arange(n))


def drawn(sizes: Ints, run_s: Ints, rng: np.random.Generator) -> Sessions:
    """Draw sessions of jobs of similar size and run time, in random order."""
    chunks = _chunks(np.lexsort((run_s, sizes)), rng)
    return _interleaved(chunks, rng)


def accuracies(sizes: Ints, of: Ints, rng: np.random.Generator) -> Floats:
    """Return ratios of run time to walltime as on Mira in 2018.

    Jobs of a session have the same quantile.

    Parameters
    ----------
    sizes : int array of shape (n,)
        Number of nodes of each job.
    of : int array of shape (n,)
        Session of each job.
    """
    quantile = rng.random(int(of.max()) + 1)[of]
    ratios = np.empty(len(sizes))
    for least, deciles in ACCURACY.items():
        jobs = sizes >= least
        ratios[jobs] = np.interp(quantile[jobs], np.linspace(0, 1, len(deciles)), deciles)
    return ratios


def _chunks(jobs: npt.NDArray[np.intp], rng: np.random.Generator) -> list[list[int]]:
    """Return sessions of similar jobs in random order. Their lengths are geometric."""
    ends = np.cumsum(rng.geometric(1 / MEAN_LENGTH, len(jobs)))
    chunks = [part.tolist() for part in np.split(jobs, ends[ends < len(jobs)]) if len(part)]
    return [chunks[i] for i in rng.permutation(len(chunks))]


def _interleaved(chunks: list[list[int]], rng: np.random.Generator) -> Sessions:
    """Return the jobs in the order of submission, and the session of each."""
    sessions = [list(rng.permutation(chunk)) for chunk in chunks]
    waiting = iter(range(len(sessions)))
    open_sessions = [*islice(waiting, OPEN_SESSIONS)]
    place, order, of = 0, [], []
    while open_sessions:
        if rng.random() >= CONTINUES or place >= len(open_sessions):
            place = int(rng.integers(len(open_sessions)))
        session = open_sessions[place]
        order.append(sessions[session].pop())
        of.append(session)
        if not sessions[session]:
            following = next(waiting, None)
            open_sessions[place : place + 1] = [] if following is None else [following]
    return Sessions(np.array(order, np.int64), np.array(of, np.int64))
