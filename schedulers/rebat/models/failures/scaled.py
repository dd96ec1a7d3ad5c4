# SPDX-License-Identifier: Apache-2.0
"""Failures of a recorded machine as a renewal process, scaled to a machine of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.models.failures.correlated import joined_events
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import NodeLaws, alike
from rebat.models.failures.renewal import Renewal


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
    pairs = [part.partition(":") for part in text.split("+")]
    try:
        sizes, weights = [int(size) for size, _, _ in pairs], [float(of) for *_, of in pairs]
    except ValueError:
        raise _invalid(text) from None
    valid = all(size > 0 for size in sizes) and all(0 < of < math.inf for of in weights)
    if not valid or len(set(sizes)) < len(sizes):
        raise _invalid(text)
    return sizes, [weight / sum(weights) for weight in weights]


def _invalid(text: str) -> InputError:
    return InputError(f"is {short(text)}", "groups", "SIZE:WEIGHT+SIZE:WEIGHT..., like 1:50+32:45")


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
