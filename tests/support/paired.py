# SPDX-License-Identifier: Apache-2.0
"""A failure law as a user may write it: custom parameters and random repair times."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from rebat.core.durations import stream
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.failures.law import Law, Outage


class Paired(Law, frozen=True):
    """Pairs of neighbours that fail together after a Weibull time and are repaired within an hour.

    Parameters
    ----------
    scale_s : float
        Scale of the time to failure.
    shape : float
        Shape of the time to failure. Below 1, a node is less likely to fail the longer it is up.
    """

    scale_s: float
    shape: float

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield the failures of pairs of neighbours, by time."""
        rng = stream(seed, "failures", "paired")

        def life_us() -> int:
            return 1 + to_us(self.scale_s * rng.weibull(self.shape))

        pending = [(life_us(), pair) for pair in range((n_nodes + 1) // 2)]
        heapq.heapify(pending)
        while True:
            at_us, pair = pending[0]
            up_us = at_us + to_us(rng.uniform(1, 3600))
            nodes = NodeSet.of(node for node in (2 * pair, 2 * pair + 1) if node < n_nodes)
            yield Outage(at_us, up_us, nodes)
            heapq.heapreplace(pending, (up_us + life_us(), pair))

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return the probability that a node up for ``uptime_s`` survives ``duration_s`` more."""
        before, after = uptime_s / self.scale_s, (uptime_s + duration_s) / self.scale_s
        return math.exp(before**self.shape - after**self.shape)
