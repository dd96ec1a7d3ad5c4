# SPDX-License-Identifier: Apache-2.0
"""A failure law like one of a user: other parameters, random repairs."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.core.units import to_us
from rebat.models.failures.law import Law, Outage


class Paired(Law, frozen=True):
    """Nodes that each live for a Weibull time, two by two, and are repaired within an hour.

    Parameters
    ----------
    scale_s : float
        Of the lives.
    shape : float
        Below 1: the longer a node is up, the less likely it fails.
    """

    scale_s: float
    shape: float

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Pairs of neighbours fail together."""
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
        """What is left of the distribution, given what has passed of it."""
        before, after = uptime_s / self.scale_s, (uptime_s + duration_s) / self.scale_s
        return math.exp(before**self.shape - after**self.shape)
