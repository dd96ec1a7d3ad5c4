# SPDX-License-Identifier: Apache-2.0
"""Failures that come together: whole groups of nodes at once, and failures that bring others."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.core.units import FOREVER_US, to_us
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import Law, Outage, check_span


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    """How failures come together; as it is by default they do not.

    Parameters
    ----------
    group : int
        A failure takes down all of the aligned group of so many nodes that it hits (a node board, a
        midplane, a rack): nodes k * group to (k + 1) * group - 1.
    cascade : float
        The probability that a failure brings another one, which may bring another in its turn: on
        average each brings cascade / (1 - cascade).
    cascade_window_s : float
        It comes so much later at most, each date as likely.
    cascade_within : int
        It hits another group of the same aligned block of so many nodes, each as likely; 0: of the
        whole machine.
    """

    group: int = 1
    cascade: float = 0.0
    cascade_window_s: float = 3600.0
    cascade_within: int = 0

    def __post_init__(self) -> None:
        if self.group < 1:
            raise InputError(f"is {self.group}", "failure group", "1 node or more")
        if not 0 <= self.cascade < 1:
            raise InputError(f"is {self.cascade:g}", "cascade", "0 or more, and below 1")
        check_span(self.cascade_window_s, "cascade window")
        within = self.cascade_within
        if within < 0 or within % self.group or within == self.group:
            expected = f"several times the failure group of {self.group}, or 0: the machine"
            raise InputError(f"is {within}", "cascade within", expected)


NONE = Correlation()


def correlated(law: Law, correlation: Correlation) -> Law:
    """The law, its failures coming together so; the law itself where they do not.

    Raises
    ------
    InputError
        For recorded failures, which are as they are.
    """
    if correlation == NONE:
        return law
    if not law.drawn:
        expected = "a law that failures are drawn from, or record:file=..."
        raise InputError("recorded failures are as they are", "failure group, cascade", expected)
    return Correlated(law, correlation)


class Correlated(Law, frozen=True):
    """A law whose failures take down groups, or bring others.

    An MTBF is then that of the failures of the law behind it, not of nodes: each takes down a whole
    group, and those that it brings are more. Outages of a group that overlap are one.
    """

    of: Law
    correlation: Correlation

    @property
    def mtbf_s(self) -> float | None:
        """That of the law behind it, where it tells one."""
        return getattr(self.of, "mtbf_s", None)

    @property
    def downtime_s(self) -> float | None:
        """That of the law behind it, where it tells one."""
        return getattr(self.of, "downtime_s", None)

    @property
    def seeded(self) -> bool:
        """Cascades are drawn, whatever the law behind them is."""
        return self.of.seeded or self.correlation.cascade > 0

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Outages of whole groups, by date; they may overlap: see `told`."""
        return self._spread(self.of.outages(n_nodes, seed), n_nodes, seed)

    def until(self, outages: Iterator[Outage], horizon_s: float) -> Iterator[Outage]:
        """As the law behind it counts."""
        return self.of.until(outages, horizon_s)

    def told(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """A node is down from the first of its outages that overlap to the last end of them."""
        return _joined_events(outages)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Not known: nodes are not independent."""
        raise InputError("is not known where failures come together", "survival", "none of them")

    def identity(self) -> dict[str, Any]:
        """That of the law behind it, and how its failures come together."""
        together = msgspec.to_builtins(self.correlation)
        return {**self.of.identity(), "correlation": together}

    def label(self) -> str | None:
        """Parameters of the law behind it, then what of the correlation is not as usual."""
        asked, usual = msgspec.structs.asdict(self.correlation), msgspec.structs.asdict(NONE)
        texts = [self.of.label() or ""]
        for name, value in asked.items():
            if value != usual[name]:
                short, unit = (name.removesuffix("_s"), "s") if name.endswith("_s") else (name, "")
                texts.append(f"{short}={value:.12g}{unit}")
        return ",".join(filter(None, texts))

    def _spread(self, outages: Iterator[Outage], n_nodes: int, seed: int) -> Iterator[Outage]:
        """The failures of the law behind it and those that they bring, by date, as groups."""
        rng = stream(seed, "failures", "cascade")
        units = _Units(n_nodes, self.correlation)
        brought: list[tuple[int, int, Outage]] = []
        number = 0
        for outage in _with_end(outages):
            while brought and (outage is None or brought[0][0] <= outage.down_us):
                later = heapq.heappop(brought)[2]
                yield later
                number += self._bring(brought, later, units, rng, number)
            if outage is not None:
                whole = outage._replace(nodes=units.whole(outage.nodes))
                yield whole
                number += self._bring(brought, whole, units, rng, number)

    def _bring(
        self,
        brought: list[tuple[int, int, Outage]],
        outage: Outage,
        units: _Units,
        rng: np.random.Generator,
        number: int,
    ) -> int:
        """Put the failure that another brings, if it does, with those to come; how many."""
        asked = self.correlation
        if not asked.cascade or rng.random() >= asked.cascade:
            return 0
        delay_us = 1 + int(rng.integers(to_us(asked.cascade_window_s)))
        nodes = units.neighbour(outage.nodes.lowest, rng)
        if nodes is None:
            return 0
        up_us = outage.up_us if outage.up_us >= FOREVER_US else outage.up_us + delay_us
        later = Outage(outage.down_us + delay_us, up_us, nodes)
        heapq.heappush(brought, (later.down_us, number, later))
        return 1


class _Units(NamedTuple):
    """The groups of a machine's nodes; the last may be smaller."""

    n_nodes: int
    asked: Correlation

    def whole(self, nodes: NodeSet) -> NodeSet:
        """All of the groups in which nodes lie."""
        size = self.asked.group
        if size == 1:
            return nodes
        pairs = (nodes.intervals // size).tolist()
        return NodeSet.from_intervals(
            (a * size, min((b + 1) * size, self.n_nodes) - 1) for a, b in pairs
        )

    def neighbour(self, node: int, rng: np.random.Generator) -> NodeSet | None:
        """Another group of a node's block, at random; None: there is none."""
        size = self.asked.group
        within = self.asked.cascade_within or self.n_nodes
        begin = node // within * within
        end = min(begin + within, self.n_nodes)
        first, count = begin // size, -(-(end - begin) // size)
        if count < 2:
            return None
        chosen = first + int(rng.integers(count - 1))
        chosen += chosen >= node // size
        return self.whole(NodeSet.of([chosen * size]))


def _with_end(outages: Iterable[Outage]) -> Iterator[Outage | None]:
    yield from outages
    yield None


def _joined_events(outages: Iterable[Outage]) -> Iterator[MachineEvent]:
    """Two events per outage of a node, those that overlap as one; drawn as far as needed.

    At one date repairs come before failures, and both in the order of the failures.
    """
    up_us: dict[int, int] = {}  # nodes that are down, and when they are back
    repairs: list[tuple[int, int, NodeSet]] = []
    for number, outage in enumerate(outages):
        yield from _repaired(repairs, up_us, outage.down_us)
        failed = [node for node in outage.nodes if node not in up_us]
        for node in outage.nodes:
            up_us[node] = max(up_us.get(node, 0), outage.up_us)
        if failed:
            yield MachineEvent(outage.down_us, False, NodeSet.of(failed))
        if outage.up_us < FOREVER_US:
            heapq.heappush(repairs, (outage.up_us, number, outage.nodes))
    yield from _repaired(repairs, up_us, FOREVER_US)


def _repaired(
    repairs: list[tuple[int, int, NodeSet]], up_us: dict[int, int], until_us: int
) -> Iterator[MachineEvent]:
    """The repairs up to a date, of what no later outage keeps down."""
    while repairs and repairs[0][0] <= until_us:
        at_us, _, nodes = heapq.heappop(repairs)
        back = [node for node in nodes if up_us.get(node) == at_us]
        for node in back:
            del up_us[node]
        if back:
            yield MachineEvent(at_us, True, NodeSet.of(back))
