# SPDX-License-Identifier: Apache-2.0
"""The failures of all nodes of a machine in one series by date, as arrays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, US_PER_S, to_us
from rebat.models.failures.per_node_laws import PerNodeLaw

MAX_FAILURES = 50_000_000
"""A series of more is given up: 600 MB."""


class FailureSeries:
    """The failures that `PerNodeLaw.failures` tells one by one, as far as they are asked for.

    Source: Vardas et al. 2022, section 2.1, steps 2 and 3: the cumulative sums of every node's
    times to failure, merged and sorted; repairs do not put them off.

    Attributes
    ----------
    at_us : int64 array, shape (n,)
        Dates; at one date the lower node comes first.
    node : int32 array, shape (n,)
    until_us : int
        No failure before this date is missing.
    """

    def __init__(self, law: PerNodeLaw, n_nodes: int, seed: int) -> None:
        self._law, self._n_nodes, self._seed = law, n_nodes, seed
        self._chunk = 0
        self._last_us = np.zeros((n_nodes, 1), dtype=np.int64)
        self._later: _Failures = (np.empty(0, np.int64), np.empty(0, np.int32))
        self.at_us, self.node = self._later
        self.until_us = 0

    def reach(self, date_us: int) -> None:
        """Draw all failures up to a date, and at least one after it.

        Raises
        ------
        InputError
            When they are more than MAX_FAILURES.
        """
        while self.until_us <= date_us or self.at_us[-1] <= date_us:
            self._draw()

    def _draw(self) -> None:
        """More of every node: what lies before all nodes' last dates is complete.

        A quarter more chunks than there are, so that what is copied stays in proportion to what is
        drawn.
        """
        if len(self.at_us) + len(self._later[0]) > MAX_FAILURES:
            raise InputError(
                f"more than {MAX_FAILURES:,} failures in {self.until_us / US_PER_S:.3g} s",
                "failure law", "nodes that fail less often",
            )  # fmt: skip
        drawn = [self._later, *(self._next_chunk() for _ in range(self._chunk // 4 + 1))]
        at_us, node = (np.concatenate(column) for column in zip(*drawn, strict=True))
        self.until_us = int(self._last_us.min())
        known = at_us < self.until_us
        order = np.lexsort((node[known], at_us[known]))
        self.at_us = np.concatenate([self.at_us, at_us[known][order]])
        self.node = np.concatenate([self.node, node[known][order]])
        self._later = at_us[~known], node[~known]

    def _next_chunk(self) -> _Failures:
        gaps_us = self._law.gaps_us(self._n_nodes, self._seed, self._chunk)
        dates_us = np.minimum(self._last_us + np.cumsum(gaps_us, axis=1), FOREVER_US)
        nodes = np.broadcast_to(np.arange(self._n_nodes, dtype=np.int32)[:, None], dates_us.shape)
        self._chunk, self._last_us = self._chunk + 1, dates_us[:, -1:]
        return dates_us.ravel(), nodes.ravel()


_Failures = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


@lru_cache(maxsize=2)
def series_of(law: PerNodeLaw, n_nodes: int, seed: int) -> FailureSeries:
    """The series of a law and seed, shared by all who ask for the last ones again."""
    return FailureSeries(law, n_nodes, seed)


def system_mttf_s(law: PerNodeLaw, n_nodes: int, seed: int, horizon_s: float) -> float:
    """Mean time between failures of the machine: a horizon over the failures before it (Table 1).

    Raises
    ------
    InputError
        When nothing fails before it.
    """
    series = series_of(law, n_nodes, seed)
    series.reach(to_us(horizon_s))
    count = int(np.searchsorted(series.at_us, to_us(horizon_s)))
    if not count:
        raise InputError(f"no failure in {horizon_s:g} s", "horizon", "a later one")
    return horizon_s / count
