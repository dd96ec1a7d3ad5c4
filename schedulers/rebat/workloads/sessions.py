# SPDX-License-Identifier: Apache-2.0
"""Sessions of similar jobs in a generated month, fitted to Mira, September to December 2018.

A session is a series of jobs of similar size and run time that one user submits. A few sessions are
open at the same time. Each job continues the session of the previous job with probability
`CONTINUES`. Otherwise it belongs to a random open session. When a session ends, a new session
opens.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
