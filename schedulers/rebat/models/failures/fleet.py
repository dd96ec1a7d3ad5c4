# SPDX-License-Identifier: Apache-2.0
"""Failures of a training cluster: a rate per node, causes, repairs, lemons, racks, switches."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from rebat.core.declared import weights_of
from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.options import StageDurations, parse_stage
from rebat.core.units import US_PER_S, to_s, to_us
from rebat.models.ettr import DAY_S, failure_rate
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import ExponentialNodes, Floats, NodeLaws, WeibullNodes

_Hit = tuple[int, int, int, str, int]
"""A failure: time (us), first node, number of nodes, cause, repair time (us)."""

SWITCH = "switch"
"""Cause of failures of switches."""

SHAPES = (0.1, 100.0)
"""Smallest and largest Weibull shape."""


class Fleet(Law, frozen=True, dict=True):
    """Independent failures of the nodes of a training cluster, with causes.

    'rebat failures models' lists training clusters with published parameters: ``--law rsc-1``. The
    time to failure of a node is exponential, or Weibull if ``shape`` is not 1. After a software
    failure the node is down for a microsecond, so the job can use it again. After any other failure
    the node is repaired.

    Parameters
    ----------
    rate : float
        Failures per 1,000 node-days.
    causes : str
        Causes with their weights: gpu=148+software=54.
    software : str
        Causes of software failures, joined by +.
    repair : str
        Duration of a repair: fixed, random, or different for each cause. Example:
        nic=1h/90%*uniform:1h:3h+10%*3d.
    lemons : float
        Share of the nodes that fail more often; the mean rate of all nodes stays the same.
    lemon_factor : float
        Failure rate of a lemon node, divided by the failure rate of the other nodes.
    rack : int
        Number of consecutive nodes that form a rack.
    rack_share : float
        Share of the failures that hit all nodes of a rack.
    machine : str
        Name of the training cluster, for tables.
    shape : float
        Weibull shape of the time from the repair of a node to its next failure. The shape does not
        change the mean rate. Below 1, failures of a node come in bursts. At time 0 the nodes have
        random ages, so that the failure rate is constant from the beginning. A failure of an entire
        rack does not change when each of its nodes fails next.
    switch : int
        Number of consecutive nodes that are connected to a switch.
    switch_rate : float
        Failures of a switch per 1,000 days. A failure takes down all nodes of the switch. Its cause
        is 'switch', which determines the repair time.
    new_factor : float
        Failure rate of a new node, divided by the rate after the burn-in (``rate``). The failure
        rate falls with the age of the node: rate x (1 + (new_factor - 1) e^(-age / burn_in)).
    burn_in_s : float
        Age at which the excess of the failure rate over ``rate`` has fallen to 1 / e.
    age_s : float
        Age of all nodes at time 0. A repair does not change the age.
    """

    later: ClassVar[tuple[str, ...]] = (
        "shape",
        "switch",
        "switch_rate",
        "new_factor",
        "burn_in_s",
        "age_s",
    )

    rate: float
    causes: str = "hardware=1"
    software: str = "software"
    repair: str = "3h"
    lemons: float = 0.0
    lemon_factor: float = 20.0
    rack: int = 1
    rack_share: float = 0.0
    machine: str = ""
    shape: float = 1.0
    switch: int = 1
    switch_rate: float = 0.0
    new_factor: float = 1.0
    burn_in_s: float = 30 * DAY_S
    age_s: float = 0.0

    def __post_init__(self) -> None:
        ranges = (
            ("rate", 0 < self.rate < math.inf, "a number above 0"),
            ("lemons", 0 <= self.lemons < 1, "a share, 0 or more and below 1"),
            ("lemon_factor", 1 <= self.lemon_factor < math.inf, "a number, at least 1"),
            ("rack", self.rack >= 1, "at least 1"),
            ("shape", SHAPES[0] <= self.shape <= SHAPES[1], "{:g} to {:g}".format(*SHAPES)),
            ("rack_share", 0 <= self.rack_share <= 1, "a share, 0 to 1"),
            ("switch", self.switch >= 1, "at least 1"),
            ("switch_rate", 0 <= self.switch_rate < math.inf, "a number, 0 or more"),
            ("new_factor", 1 <= self.new_factor < math.inf, "a number, at least 1"),
        )
        for name, good, expected in ranges:
            if not good:
                raise InputError(f"is {getattr(self, name):g}", name, expected)
        if self.new_factor > 1 and self.shape != 1:
            raise InputError(f"is {self.shape:g}", "shape", "1, because new_factor is above 1")
        for cause in (*self._harmless, *(cause for cause, _ in self._repair.by_cause)):
            if cause and cause not in self.cause_shares and cause != "software":
                raise InputError(
                    f"unknown cause {cause!r}", "software, repair", ", ".join(self.cause_shares)
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
    def switch_share(self) -> float:
        """Share of switch failures among all failures of a large machine."""
        per_node = self.switch_rate / self.switch
        return per_node / (self.rate + per_node)

    @cached_property
    def cause_shares(self) -> dict[str, float]:
        """Share of each cause among all failures of a large machine."""
        total, nodes = sum(self.weights.values()), 1 - self.switch_share
        shares = {cause: weight / total * nodes for cause, weight in self.weights.items()}
        if self.switch_rate:
            shares[SWITCH] = shares.get(SWITCH, 0.0) + self.switch_share
        return shares

    @property
    def hardware_share(self) -> float:
        """Share of the node failures that need a repair."""
        harmless = sum(weight for cause, weight in self.weights.items() if cause in self._harmless)
        return 1 - harmless / sum(self.weights.values())

    def survived_share(self, survives: str | None) -> float:
        """Return the share of the failures that checkpoints of a tier survive (`models.tiers`)."""
        single = 1 - self.rack_share if self.rack > 1 else 1.0
        shares = {"process": 1 - self.hardware_share, "node": single}
        return shares[survives] * (1 - self.switch_share) if survives in shares else 1.0

    @property
    def group(self) -> int:
        """Number of consecutive nodes of the largest group that fails together."""
        rack, switch = self.rack if self.rack_share else 1, self.switch if self.switch_rate else 1
        return max(rack, switch)

    @property
    def mean_repair_s(self) -> float:
        """Mean repair time in seconds, of node failures that need a repair."""
        needs = {cause: w for cause, w in self.weights.items() if cause not in self._harmless}
        total = sum(needs.values())
        means = (w * self._repair.of(cause).mean_s for cause, w in needs.items())
        return sum(means) / total if total else 0.0

    def mean_in_repair(self, n_nodes: int) -> float:
        """Return the mean number of nodes in repair.

        Nodes in repair are assumed to fail as well.
        """
        rack = 1 + self.rack_share * (self.rack - 1)
        nodes = self.hardware_share * rack * self.mean_repair_s / self._mtbf_of_nodes_s(n_nodes)
        if SWITCH in self._harmless or not self.switch_rate:
            return nodes
        rate = failure_rate(n_nodes, self.switch_rate)  # node failures caused by switches
        return nodes + rate * self._repair.of(SWITCH).mean_s

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the MTBF (s) of a machine with ``n_nodes`` nodes; None means one node.

        The MTBF includes failures of switches, and is valid after the burn-in.
        """
        count = n_nodes or 1
        of_nodes_s = self._mtbf_of_nodes_s(count)
        if not self.switch_rate:
            return of_nodes_s
        return 1 / (1 / of_nodes_s + failure_rate(-(-count // self.switch), self.switch_rate))

    def _mtbf_of_nodes_s(self, n_nodes: int) -> float:
        return 1 / failure_rate(n_nodes, self.rate)

    def node_rates(self, n_nodes: int, seed: int) -> Floats:
        """Return the failures per second of each node. The seed selects the lemons."""
        rates = np.ones(n_nodes)
        n_lemons = round(self.lemons * n_nodes)
        if n_lemons:
            rng = stream(seed, "failures", "fleet", "lemons")
            rates[rng.choice(n_nodes, n_lemons, replace=False)] = self.lemon_factor
        scaled: Floats = rates * (self.rate / (1000 * DAY_S) / rates.mean())
        return scaled

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Draw the failures of the machine, sorted by time. Nodes that are down do not fail."""
        up_us = np.full(n_nodes, -1, dtype=np.int64)
        hits = self._node_hits(n_nodes, seed, up_us)
        if self.switch_rate:
            hits = heapq.merge(hits, self._switch_hits(n_nodes, seed))
        for at_us, first, size, cause, repair_us in hits:
            last = min(first + size, n_nodes)
            nodes = [n for n in range(first, last) if up_us[n] < at_us]
            if nodes:
                up_us[nodes] = at_us + repair_us
                yield Outage(at_us, at_us + repair_us, NodeSet.of(nodes), cause)

    def _node_hits(self, n_nodes: int, seed: int, up_us: npt.NDArray[np.int64]) -> Iterator[_Hit]:
        """Yield the failures of nodes and racks, including failures of nodes that are down."""
        rng, rates = stream(seed, "failures", "fleet"), self.node_rates(n_nodes, seed)
        weibull = self.shape != 1
        hits = self._weibull_hits(rates, seed, up_us) if weibull else self._poisson_hits(rates, rng)
        for at_us, node in hits:
            cause, size, repair_us = self.draw_failure(rng)
            yield at_us, node - node % size, size, cause, repair_us

    def draw_failure(self, rng: Generator) -> tuple[str, int, int]:
        """Draw the cause of a failure, the number of nodes in its group, and the repair (us)."""
        names, causes = list(self.weights), np.cumsum(list(self.weights.values()))
        cause = names[int(np.searchsorted(causes, rng.random() * causes[-1], side="right"))]
        rack = self.rack if self.rack_share and rng.random() < self.rack_share else 1
        return cause, rack, self._repair_us(cause, rng)

    def _switch_hits(self, n_nodes: int, seed: int) -> Iterator[_Hit]:
        rng = stream(seed, "failures", "fleet", "switches")
        rates = np.full(-(-n_nodes // self.switch), failure_rate(1, self.switch_rate))
        for at_us, number in _exponential_hits(rates, rng):
            yield at_us, number * self.switch, self.switch, SWITCH, self._repair_us(SWITCH, rng)

    def _poisson_hits(self, rates: Floats, rng: Generator) -> Iterator[tuple[int, int]]:
        """Yield time (us) and node of failures with a rate that falls with the age of the nodes.

        Failures are drawn at the initial rate. Then some are dropped at random, so that the rate of
        the remaining failures falls as required.
        """
        if self.new_factor == 1:
            yield from _exponential_hits(rates, rng)
        most = self._excess(0.0)
        for at_us, node in _exponential_hits(rates * most, rng):
            if rng.random() * most < self._excess(to_s(at_us)):
                yield at_us, node

    def _excess(self, time_s: float) -> float:
        """Return the failure rate of nodes at a time, divided by the rate after the burn-in."""
        return 1 + (self.new_factor - 1) * math.exp(-(self.age_s + time_s) / self.burn_in_s)

    def _weibull_hits(
        self, rates: Floats, seed: int, up_us: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield time (us) and node of failures with Weibull times to failure.

        A time to failure begins at ``up_us``, the end of the repair of the node. The time to the
        first failure is the residual life in a stationary renewal process. To draw it, a life is
        drawn with a probability proportional to its length. The result is multiplied by a uniform
        random number.
        """
        rng = stream(seed, "failures", "fleet", "lives")
        scale_us = self._scale_s(rates) * US_PER_S
        lives_us = scale_us * rng.gamma(1 + 1 / self.shape, size=len(rates)) ** (1 / self.shape)
        first_us = (lives_us * rng.random(len(rates))).tolist()
        following = [(1 + round(at_us), node) for node, at_us in enumerate(first_us)]
        heapq.heapify(following)
        while True:
            at_us, node = following[0]
            yield at_us, node
            life_us = 1 + round(scale_us[node] * rng.weibull(self.shape))
            heapq.heapreplace(following, (max(at_us, int(up_us[node])) + life_us, node))

    def _scale_s(self, rates: Floats) -> Floats:
        scales: Floats = 1 / (rates * math.gamma(1 + 1 / self.shape))
        return scales

    def _repair_us(self, cause: str, rng: Generator) -> int:
        if cause in self._harmless:
            return 1
        return max(1, to_us(self._repair.of(cause).draw_s(rng)))

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """Return the law of each node after the burn-in, without failures of racks and switches."""
        rates, shapes = self.node_rates(n_nodes, seed), np.full(n_nodes, self.shape)
        if self.shape == 1:
            return ExponentialNodes(1 / rates, shapes)
        return WeibullNodes(self._scale_s(rates), shapes)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return the survival probability of a node with the mean rate, after the burn-in.

        If the shape is 1, this is exp(-duration x mean rate); the uptime does not matter.
        """
        rate = failure_rate(1, self.rate)
        if self.shape == 1:
            return math.exp(-duration_s * rate)
        law = WeibullNodes(self._scale_s(np.array([rate])), np.array([self.shape]))
        return math.exp(-law.hazard(uptime_s, duration_s)[0])


def _exponential_hits(rates: Floats, rng: Generator) -> Iterator[tuple[int, int]]:
    """Yield time (us) and node of failures with these rates (1/s)."""
    bounds = np.cumsum(rates)
    mean_us, at_us = US_PER_S / bounds[-1], 0
    while True:
        at_us += 1 + round(rng.exponential(mean_us))
        yield at_us, min(int(np.searchsorted(bounds, rng.random() * bounds[-1])), len(rates) - 1)


@lru_cache
def _weights(causes: str) -> dict[str, float]:
    """Return the weight of each cause in ``gpu=148+nic=7``, or raise InputError."""
    try:
        return weights_of(causes, "=")
    except InputError as error:
        raise InputError(f"{error.problem} of a cause", "causes", "such as gpu=148+nic=7") from None
