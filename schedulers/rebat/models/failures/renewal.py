# SPDX-License-Identifier: Apache-2.0
"""Failures of the entire machine or of single nodes as renewal processes.

``renewal`` has repairs of random length. ``poisson`` has exponential failures of each node, and a
fixed repair time. ``scaled`` is a renewal process that was fitted to a recorded machine, scaled to
a machine of any size. ``authors`` reproduces the failure scenarios of the node-stealing paper.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator

import numpy as np

from rebat.core.declared import weights_of
from rebat.core.durations import stream
from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us
from rebat.models.failures.correlated import joined_events
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import AnyOutage, Law, Outage, Row
from rebat.models.failures.per_node import NodeLaws, alike

SHAPES = (0.1, 1000.0)
"""Minimum and maximum shape. Microseconds cannot represent the gaps of other shapes."""

MAX_SIGMA = 10.0

DRAWN = 256
"""How many random numbers are drawn together. The numbers are those of single draws."""


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
        scale_s = self.scale_s
        rng, at_us = stream(seed, "failures", "renewal", "gaps"), 0
        while True:
            for gap in rng.weibull(self.shape, DRAWN).tolist():
                at_us += to_us(min(scale_s * gap, MAX_SECONDS))
                yield at_us

    def repairs_us(self, seed: int) -> Iterator[int]:
        """Yield repair times in microseconds, at least 1. The sequence is infinite."""
        rng, mu = stream(seed, "failures", "renewal", "repairs"), math.log(self.repair_median_s)
        while True:
            for repair_s in rng.lognormal(mu, self.sigma, DRAWN).tolist():
                yield max(to_us(min(repair_s, MAX_SECONDS)), 1)

    def rows(self, n_nodes: int, seed: int) -> Iterator[Row]:
        """Yield outages.

        Gaps, repair times and failing nodes are drawn from separate random streams.
        """
        victims = _random_nodes(stream(seed, "failures", "renewal", "victims"), n_nodes)
        down: set[int] = set()
        repairs: list[tuple[int, int]] = []
        for at_us, repair_us in zip(self.times_us(seed), self.repairs_us(seed), strict=False):
            # a node that is repaired at this time cannot fail at the same time
            while repairs and repairs[0][0] < at_us:
                down.remove(heapq.heappop(repairs)[1])
            if len(down) == n_nodes:
                continue
            while (node := next(victims)) in down:
                pass
            down.add(node)
            heapq.heappush(repairs, (at_us + repair_us, node))
            yield at_us, at_us + repair_us, node

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes. See `survival` for the reason."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / (MTBF * n_nodes)), independent of the uptime.

        Each failure hits a given node with probability 1 / n_nodes. Most failures therefore hit
        other nodes, and the failures of one node are close to a Poisson process (Rényi 1956).
        """
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))


def _random_nodes(rng: np.random.Generator, n_nodes: int) -> Iterator[int]:
    while True:
        yield from rng.integers(n_nodes, size=DRAWN).tolist()


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

    def rows(self, n_nodes: int, seed: int) -> Iterator[Row]:
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
            for life_us in rng.exponential(mean_us, DRAWN).tolist():
                at_us, node = pending[0]
                up_us = at_us + downtime_us
                yield at_us, up_us, node
                # add 1 us, so that a repair and the next failure are never at the same time
                heapq.heapreplace(pending, (up_us + 1 + round(life_us), node))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes."""
        return alike(n_nodes, self.mtbf_s * n_nodes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / mean lifetime), independent of the uptime."""
        return math.exp(-duration_s / (self.mtbf_s * n_nodes))


class Scaled(Law, frozen=True):
    """Like renewal, but with a failure rate that is proportional to the number of nodes.

    'rebat failures models' lists machines with fitted parameters, for example ``lanl-20``. The name
    of a machine is also the name of its law. A failure hits a random node, or the aligned group
    that contains this node.

    Parameters
    ----------
    node_mtbf_s : float
        Mean time between failures of the machine, times its number of nodes.
    repair_s : float
        Mean time to repair nodes.
    shape : float
        Weibull shape of the gaps between failures of the machine. Below 1, failures come in bursts.
    sigma : float
        Standard deviation of the logarithm of the repair times.
    groups : str
        Sizes of the groups of nodes that fail together, with weights. Example: 1:50+32:45+512:5.
    machine : str
        Name of the fitted machine, for tables.
    """

    node_mtbf_s: float
    repair_s: float = 10_080.0
    shape: float = 1.0
    sigma: float = 1.0
    groups: str = "1:1"
    machine: str = ""

    def __post_init__(self) -> None:
        Law.__post_init__(self)
        self.renewal(1)
        _weights(self.groups)

    def renewal(self, n_nodes: int) -> Renewal:
        """Return the law of the failures on a machine of this size, without groups."""
        return Renewal(self.mtbf_on(n_nodes), self.repair_s, self.shape, self.sigma)

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the MTBF (s) of a machine with ``n_nodes`` nodes; None means one node."""
        return self.node_mtbf_s / (n_nodes or 1)

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages. Failures and group sizes are drawn from separate random streams."""
        sizes, weights = _weights(self.groups)
        outages = self.renewal(n_nodes).outages(n_nodes, seed)
        if sizes == [1]:
            return outages
        return _grouped(outages, _drawn(seed, sizes, weights), n_nodes)

    def machine_events(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """Yield failures and repairs.

        If outages overlap, the node is repaired when the last one ends.
        """
        return joined_events(outages)

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return identical memoryless laws for all nodes, as in `survival`."""
        return alike(n_nodes, self._node_lifetime_s)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration / mean lifetime of a node), independent of the uptime."""
        return math.exp(-duration_s / self._node_lifetime_s)

    def label(self) -> str | None:
        """Return the parameters in command-line syntax.

        Return None if the law has the name of a machine.
        """
        return None if self.machine else Law.label(self)

    @property
    def _node_lifetime_s(self) -> float:
        """Mean time between failures that hit a node, in seconds."""
        sizes, weights = _weights(self.groups)
        return self.node_mtbf_s / float(np.dot(sizes, weights))


def _weights(text: str) -> tuple[list[int], list[float]]:
    """Return the sizes of groups, and the share of all failures that hit groups of each size.

    >>> _weights("1:3+32:1")
    ([1, 32], [0.75, 0.25])
    """
    try:
        weights = {int(size): weight for size, weight in weights_of(text, ":").items()}
    except (ValueError, InputError):
        weights = {}
    if not weights or min(weights) < 1:
        expected = "SIZE:WEIGHT+SIZE:WEIGHT..., like 1:50+32:45"
        raise InputError(f"is {short(text)}", "groups", expected)
    return [*weights], [weight / sum(weights.values()) for weight in weights.values()]


def _drawn(seed: int, sizes: list[int], weights: list[float]) -> Iterator[int]:
    rng = stream(seed, "failures", "scaled", "groups")
    while True:
        yield from rng.choice(sizes, 256, p=weights).tolist()


def _grouped(outages: Iterator[Outage], sizes: Iterator[int], n_nodes: int) -> Iterator[Outage]:
    """Yield each outage with all nodes of the aligned group that contains its node."""
    for outage, size in zip(outages, sizes, strict=False):
        first = outage.nodes.lowest // size * size
        last = min(first + size, n_nodes) - 1
        yield outage._replace(nodes=NodeSet.from_intervals([(first, last)]))


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

    def rows(self, n_nodes: int, seed: int) -> Iterator[Row]:
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
            yield at_us, at_us + to_us(self.downtime_s), node

    def until(self, outages: Iterator[AnyOutage], horizon_s: float) -> Iterator[AnyOutage]:
        """Yield outages, up to and including the first one that begins at or after the horizon.

        The authors' program ends its failure files in this way, with a horizon of 5e6 s.
        """
        for outage in outages:
            yield outage
            if outage[0] >= to_us(horizon_s):
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
