# SPDX-License-Identifier: Apache-2.0
"""Failures of the entire machine as a renewal process, with repairs of random length."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.core.units import MAX_SECONDS, to_us
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import NodeLaws, alike

SHAPES = (0.1, 1000.0)
"""Minimum and maximum shape. Microseconds cannot represent the gaps of other shapes."""

MAX_SIGMA = 10.0


class Renewal(Law, frozen=True):
    """A renewal process for the entire machine: Weibull gaps, log-normal repairs.

    Source: Prabhakaran et al., "Efficient fault tolerance through dynamic node replacement", 2018,
    section IV-C. The means of 1 h between failures and of 2.8 h to repair follow Schroeder and
    Gibson, "A large-scale study of failures in high-performance computing systems", 2006.
    Prabhakaran et al. do not publish shape and sigma. The defaults are based on values of Schroeder
    and Gibson: shapes of 0.7 to 0.8, and repairs with a mean of 355 min and a median of 54 min. A
    failure hits each node that is up with equal probability. While all nodes are down, no failure
    occurs.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the entire machine.
    repair_s : float
        Mean time to repair a node.
    shape : float
        Weibull shape of the gaps between failures. Below 1, failures come in bursts.
    sigma : float
        Standard deviation of the logarithm of the repair times.
    """

    mtbf_s: float
    repair_s: float = 10_080.0
    shape: float = 0.7
    sigma: float = 1.9407

    def __post_init__(self) -> None:
        Law.__post_init__(self)
        for name, least, most in (("shape", *SHAPES), ("sigma", 0.0, MAX_SIGMA)):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"is {value:g}", name, f"{least:g} to {most:g}")

    @property
    def scale_s(self) -> float:
        """The Weibull scale in seconds for which the mean gap is the MTBF.

        >>> round(Renewal(3600.0, shape=0.8).scale_s / 3600, 6)
        0.88261
        """
        return self.mtbf_s / math.gamma(1 + 1 / self.shape)

    @property
    def repair_median_s(self) -> float:
        """Median repair time in seconds."""
        return self.repair_s * math.exp(-(self.sigma**2) / 2)

    def times_us(self, seed: int) -> Iterator[int]:
        """Yield the times of failures in microseconds. The sequence is infinite."""
        rng, at_us = stream(seed, "failures", "renewal", "gaps"), 0
        while True:
            at_us += to_us(min(self.scale_s * rng.weibull(self.shape), MAX_SECONDS))
            yield at_us

    def repairs_us(self, seed: int) -> Iterator[int]:
        """Yield repair times in microseconds, at least 1. The sequence is infinite."""
        rng, mu = stream(seed, "failures", "renewal", "repairs"), math.log(self.repair_median_s)
        while True:
            yield max(to_us(min(rng.lognormal(mu, self.sigma), MAX_SECONDS)), 1)

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages.

        Gaps, repair times and failing nodes are drawn from separate random streams.
        """
        victims = stream(seed, "failures", "renewal", "victims")
        down: set[int] = set()
        repairs: list[tuple[int, int]] = []
        for at_us, repair_us in zip(self.times_us(seed), self.repairs_us(seed), strict=False):
            # a node that is repaired at this time cannot fail at the same time
            while repairs and repairs[0][0] < at_us:
                down.remove(heapq.heappop(repairs)[1])
            if len(down) == n_nodes:
                continue
            node = _random_node(victims, n_nodes, down)
            down.add(node)
            heapq.heappush(repairs, (at_us + repair_us, node))
            yield Outage(at_us, at_us + repair_us, NodeSet.of([node]))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes. See `survival` for the reason."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / (MTBF * n_nodes)), independent of the uptime.

        Each failure hits a given node with probability 1 / n_nodes. Most failures therefore hit
        other nodes, and the failures of one node are close to a Poisson process (Rényi 1956).
        """
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))


def _random_node(rng: np.random.Generator, n_nodes: int, excluded: set[int]) -> int:
    while (node := int(rng.integers(n_nodes))) in excluded:
        pass
    return node
