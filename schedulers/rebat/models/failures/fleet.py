# SPDX-License-Identifier: Apache-2.0
"""Failures of a training cluster: a rate per node, causes, repairs, lemon nodes and racks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
from numpy.random import Generator

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.recovery import StageDurations, parse_stage
from rebat.core.streams import stream
from rebat.core.units import US_PER_S, to_us
from rebat.models.ettr import DAY_S, failure_rate
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import ExponentialNodes, Floats, NodeLaws


class Fleet(Law, frozen=True, dict=True):
    """Independent failures of the nodes of a training cluster, with causes.

    'rebat failures models' lists training clusters with published parameters: ``--law rsc-1``. The
    time to failure of a node is exponential. A software failure keeps its node: the node is down
    for a microsecond. After another failure the node is repaired.

    Parameters
    ----------
    rate : float
        Failures per 1,000 node-days.
    causes : str
        Causes with their weights: gpu=148+software=54.
    software : str
        The causes that keep the node, joined by +.
    repair : str
        Random duration of a repair, also by cause: nic=1h/90%*uniform:1h:3h+10%*uniform:1d:3d.
    lemons : float
        Share of the nodes that fail more often; the mean rate of all nodes stays the same.
    lemon_factor : float
        Rate of these nodes, divided by the rate of the others.
    rack : int
        Number of nodes of a rack: consecutive nodes.
    rack_share : float
        Share of the failures that hit all nodes of a rack.
    machine : str
        Name of the training cluster, for tables.
    """

    rate: float
    causes: str = "hardware=1"
    software: str = "software"
    repair: str = "3h"
    lemons: float = 0.0
    lemon_factor: float = 20.0
    rack: int = 1
    rack_share: float = 0.0
    machine: str = ""

    def __post_init__(self) -> None:
        ranges = (
            ("rate", 0 < self.rate < math.inf, "a number above 0"),
            ("lemons", 0 <= self.lemons < 1, "a share, 0 or more and below 1"),
            ("lemon_factor", 1 <= self.lemon_factor < math.inf, "a number, at least 1"),
            ("rack", self.rack >= 1, "at least 1"),
            ("rack_share", 0 <= self.rack_share <= 1, "a share, 0 to 1"),
        )
        for name, good, expected in ranges:
            if not good:
                raise InputError(f"is {getattr(self, name):g}", name, expected)
        for cause in (*self._harmless, *(cause for cause, _ in self._repair.by_cause)):
            if cause and cause not in self.weights and cause != "software":
                raise InputError(
                    f"{cause!r} is no cause", "software, repair", ", ".join(self.weights)
                )

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weight of each cause."""
        return _weights(self.causes)

    @cached_property
    def _harmless(self) -> frozenset[str]:
        return frozenset(part for part in self.software.split("+") if part)

    @cached_property
    def _repair(self) -> StageDurations:
        try:
            return parse_stage(self.repair)
        except InputError as error:
            raise error.at("repair") from None

    @property
    def hardware_share(self) -> float:
        """Share of the failures that need a repair."""
        harmless = sum(weight for cause, weight in self.weights.items() if cause in self._harmless)
        return 1 - harmless / sum(self.weights.values())

    def survived_share(self, survives: str | None) -> float:
        """Return the share of the failures that checkpoints of a tier survive (`models.tiers`)."""
        single = 1 - self.rack_share if self.rack > 1 else 1.0
        shares = {"process": 1 - self.hardware_share, "node": single, None: 1.0}
        return shares[survives]

    @property
    def mean_repair_s(self) -> float:
        """Mean repair time of failures that need a repair, in seconds."""
        needs = {cause: w for cause, w in self.weights.items() if cause not in self._harmless}
        total = sum(needs.values())
        means = (w * self._repair.of(cause).mean_s for cause, w in needs.items())
        return sum(means) / total if total else 0.0

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the MTBF (s) of a machine with this number of nodes; of one node if it is None."""
        return 1 / failure_rate(n_nodes or 1, self.rate)

    def node_rates(self, n_nodes: int, seed: int) -> Floats:
        """Return the failures per second of each node, with the lemons of this seed."""
        rates = np.ones(n_nodes)
        n_lemons = round(self.lemons * n_nodes)
        if n_lemons:
            rng = stream(seed, "failures", "fleet", "lemons")
            rates[rng.choice(n_nodes, n_lemons, replace=False)] = self.lemon_factor
        scaled: Floats = rates * (self.rate / (1000 * DAY_S) / rates.mean())
        return scaled

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Draw the failures of the machine in order, without failures of nodes that are down."""
        rng = stream(seed, "failures", "fleet")
        bounds = np.cumsum(self.node_rates(n_nodes, seed))
        mean_us = US_PER_S / bounds[-1]
        names = list(self.weights)
        causes = np.cumsum(list(self.weights.values()))
        up_us, at_us = np.full(n_nodes, -1, dtype=np.int64), 0
        while True:
            at_us += 1 + round(rng.exponential(mean_us))
            node = min(int(np.searchsorted(bounds, rng.random() * bounds[-1])), n_nodes - 1)
            cause = names[int(np.searchsorted(causes, rng.random() * causes[-1], side="right"))]
            first, last = node, node + 1
            if self.rack_share and rng.random() < self.rack_share:
                first = node - node % self.rack
                last = min(first + self.rack, n_nodes)
            repair_us = self._repair_us(cause, rng)
            nodes = [n for n in range(first, last) if up_us[n] < at_us]
            if nodes:
                up_us[nodes] = at_us + repair_us
                yield Outage(at_us, at_us + repair_us, NodeSet.of(nodes), cause)

    def _repair_us(self, cause: str, rng: Generator) -> int:
        if cause in self._harmless:
            return 1
        return max(1, to_us(self._repair.of(cause).draw_s(rng)))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return the memoryless law of each node, without failures of its rack."""
        return ExponentialNodes(1 / self.node_rates(n_nodes, seed), np.ones(n_nodes))

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return exp(-duration x mean rate); the uptime does not matter."""
        return math.exp(-duration_s * failure_rate(1, self.rate))


@lru_cache
def _weights(causes: str) -> dict[str, float]:
    """Return the weight of each cause of ``gpu=148+nic=7``; raise InputError for another form."""
    weights: dict[str, float] = {}
    for part in causes.split("+"):
        cause, _, text = part.partition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not cause or cause in weights or not 0 < weight < math.inf:
            expected = "CAUSE=WEIGHT joined by +, each cause once, weights above 0: gpu=148+nic=7"
            raise InputError(f"{part!r} is no weight of a cause", "causes", expected)
        weights[cause] = weight
    return weights
