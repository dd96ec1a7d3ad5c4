# SPDX-License-Identifier: Apache-2.0
"""The failure scenarios of the node-stealing paper, reproduced exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import NodeLaws, alike


class Authors(Law, frozen=True):
    """The failures of the node-stealing paper: a Poisson process for the entire machine.

    Source: Du et al., "Improving batch schedulers with node stealing for failed jobs", 2024,
    section 6.1, and the failure script of its public program. As in the program, Python's random
    generator draws the failures, and times are rounded to 0.01 s. The paper uses seeds 0 to 4.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the entire machine.
    downtime_s : float
        How long a failed node stays down.

    Examples
    --------
    >>> first = next(Authors(mtbf_s=3600, downtime_s=3600).outages(n_nodes=49152, seed=0))
    >>> first.down_us / 1e6, str(first.nodes)
    (6698.19, '27562')
    """

    mtbf_s: float
    downtime_s: float = 3600.0

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield failures drawn as the authors' script draws them."""
        rng = random.Random(seed)
        nodes = range(n_nodes)
        up_again_s: dict[int, float] = {}
        t_s = 0.0
        while True:
            t_s += round(rng.expovariate(1 / self.mtbf_s), 2)
            up_again_s = {node: up_s for node, up_s in up_again_s.items() if up_s > t_s}
            if len(up_again_s) == n_nodes:
                which = "the only node is" if n_nodes == 1 else f"all {n_nodes} nodes are"
                raise InputError(f"a failure at {t_s:.2f} s, when {which} down", expected=_HINT)
            node = rng.choice(nodes)
            while node in up_again_s:
                node = rng.choice(nodes)
            up_again_s[node] = t_s + self.downtime_s
            at_us = to_us(t_s)
            yield Outage(at_us, at_us + to_us(self.downtime_s), NodeSet.of([node]))

    def until(self, outages: Iterator[Outage], horizon_s: float) -> Iterator[Outage]:
        """Yield outages, up to and including the first one that begins at or after the horizon.

        The authors' program ends its failure files in this way, with a horizon of 5e6 s.
        """
        for outage in outages:
            yield outage
            if outage.down_us >= to_us(horizon_s):
                return

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / (MTBF * n_nodes)), because failures hit random nodes
        that are up.
        """
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))


_HINT = (
    "a downtime much shorter than the MTBF times the number of nodes, or a law like "
    "renewal:mtbf=1h, under which no node fails while all are down"
)
