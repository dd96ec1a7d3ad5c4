# SPDX-License-Identifier: Apache-2.0
"""Independent exponential failures of each node, with a fixed repair time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.core.units import to_us
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import NodeLaws, alike


class Poisson(Law, frozen=True):
    """Nodes with independent exponential times from the repair to the next failure.

    Source: the model of Du et al. 2024, section 5.2. The failure rate of the machine is
    proportional to the number of nodes that are up, because a node that is down cannot fail. (Under
    ``authors`` this rate is constant.)

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the machine while all nodes are up. The mean of a single node
        is this value times the number of nodes.
    downtime_s : float
        How long a failed node stays down.
    """

    mtbf_s: float
    downtime_s: float = 3600.0

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages.

        The first lifetimes of all nodes are drawn together. At each repair, the next lifetime of
        the repaired node is drawn.
        """
        rng = stream(seed, "failures", "poisson")
        mean_us, downtime_us = self.mtbf_s * n_nodes * 1e6, to_us(self.downtime_s)
        lives_us = rng.exponential(mean_us, n_nodes)
        pending = [(round(life_us), node) for node, life_us in enumerate(lives_us.tolist())]
        heapq.heapify(pending)
        while True:
            at_us, node = pending[0]
            yield Outage(at_us, at_us + downtime_us, NodeSet.of([node]))
            # add 1 us, so that a repair and the next failure are never at the same time
            next_us = at_us + downtime_us + 1 + round(rng.exponential(mean_us))
            heapq.heapreplace(pending, (next_us, node))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / mean lifetime), independent of the uptime."""
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))
