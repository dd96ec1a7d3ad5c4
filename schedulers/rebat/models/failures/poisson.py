# SPDX-License-Identifier: Apache-2.0
"""Independent exponential failures of every machine, with a fixed repair time."""

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
    """Nodes that each live for an exponential time after every repair.

    Source: the model of Du et al. 2024, section 5.2. Unlike in the authors' process for the whole
    machine a node that is down cannot fail, so that nothing has to be redrawn, and the rate of the
    machine falls with the number of its nodes that are up.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the machine with all nodes up: a node's own is this times the
        number of nodes.
    downtime_s : float
        How long a failed node stays down.
    """

    mtbf_s: float
    downtime_s: float = 3600.0

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Lives are drawn for all nodes at first, then for each node that is repaired."""
        rng = stream(seed, "failures", "poisson")
        mean_us, downtime_us = self.mtbf_s * n_nodes * 1e6, to_us(self.downtime_s)
        lives_us = rng.exponential(mean_us, n_nodes)
        pending = [(round(life_us), node) for node, life_us in enumerate(lives_us.tolist())]
        heapq.heapify(pending)
        while True:
            at_us, node = pending[0]
            yield Outage(at_us, at_us + downtime_us, NodeSet.of([node]))
            # one unit more, so that a repair and the next failure never share an instant
            next_us = at_us + downtime_us + 1 + round(rng.exponential(mean_us))
            heapq.heapreplace(pending, (next_us, node))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Memoryless, and all alike."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Memoryless, by the law itself."""
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))
