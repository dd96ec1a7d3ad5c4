# SPDX-License-Identifier: Apache-2.0
"""The failures of all nodes of a machine as one series of arrays, sorted by time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, US_PER_S, to_us
from rebat.models.failures.per_node_laws import PerNodeLaw

MAX_FAILURES = 50_000_000
"""Maximum length of a series (600 MB)."""


class FailureSeries:
    """The failures of `PerNodeLaw.failures` as arrays.

    More failures are drawn when they are needed.

    Source: Vardas et al. 2022, section 2.1, steps 2 and 3. Failure times are the cumulative sums of
    the times to failure of each node. Repairs do not delay them.

    Attributes
    ----------
    at_us : int64 array, shape (n,)
        Failure times, ascending. At equal times, the lower node comes first.
    node : int32 array, shape (n,)
        The node that fails.
    until_us : int
        The series contains all failures before this time.
    """

    def __init__(self, law: PerNodeLaw, n_nodes: int, seed: int) -> None:
        self._law, self._n_nodes, self._seed = law, n_nodes, seed
        self._chunk = 0
        self._last_us = np.zeros((n_nodes, 1), dtype=np.int64)
        self._later: _Failures = (np.empty(0, np.int64), np.empty(0, np.int32))
        self.at_us, self.node = self._later
        self.until_us = 0

    def reach(self, time_us: int) -> None:
        """Draw all failures up to a time, and at least one later failure."""
        while self.until_us <= time_us or self.at_us[-1] <= time_us:
            self._draw()

    def _draw(self) -> None:
        """Draw more failures of every node.

        Afterwards, the series is complete up to the earliest of the nodes' last drawn failures.
        Each call increases the number of chunks by a quarter, so that the time to copy arrays stays
        proportional to the time to draw failures.
        """
        if len(self.at_us) + len(self._later[0]) > MAX_FAILURES:
            raise InputError(
                f"draws more than {MAX_FAILURES:,} failures in {self.until_us / US_PER_S:.3g} s",
                "failure law",
                "nodes that fail less often",
            )
        drawn = [self._later, *(self._next_chunk() for _ in range(self._chunk // 4 + 1))]
        at_us, node = (np.concatenate(column) for column in zip(*drawn, strict=True))
        self.until_us = int(self._last_us.min())
        complete = at_us < self.until_us
        order = np.lexsort((node[complete], at_us[complete]))
        self.at_us = np.concatenate([self.at_us, at_us[complete][order]])
        self.node = np.concatenate([self.node, node[complete][order]])
        self._later = at_us[~complete], node[~complete]

    def _next_chunk(self) -> _Failures:
        gaps_us = self._law.gaps_us(self._n_nodes, self._seed, self._chunk)
        times_us = np.minimum(self._last_us + np.cumsum(gaps_us, axis=1), FOREVER_US)
        nodes = np.broadcast_to(np.arange(self._n_nodes, dtype=np.int32)[:, None], times_us.shape)
        self._chunk, self._last_us = self._chunk + 1, times_us[:, -1:]
        return times_us.ravel(), nodes.ravel()


_Failures = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


@lru_cache(maxsize=2)
def series_of(law: PerNodeLaw, n_nodes: int, seed: int) -> FailureSeries:
    """Return the failure series of a law and a seed.

    The two most recent series are cached and shared by all callers.
    """
    return FailureSeries(law, n_nodes, seed)


def system_mttf_s(law: PerNodeLaw, n_nodes: int, seed: int, horizon_s: float) -> float:
    """Return the machine's mean time between failures: horizon / number of failures (Table 1)."""
    series = series_of(law, n_nodes, seed)
    series.reach(to_us(horizon_s))
    count = int(np.searchsorted(series.at_us, to_us(horizon_s)))
    if not count:
        raise InputError(f"no failure occurs within {horizon_s:g} s", "horizon", "a later horizon")
    return horizon_s / count
