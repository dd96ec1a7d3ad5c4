# SPDX-License-Identifier: Apache-2.0
"""Correlated failures: groups of nodes that fail together, and failures that cause others."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, to_us
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import AnyOutage, Law, Outage, check_span


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    """How failures depend on each other. By default, they are independent.

    Parameters
    ----------
    group : int
        Size of the groups that fail together, for example node boards, midplanes or racks. Group k
        has the nodes k * group to (k + 1) * group - 1.
    cascade : float
        Probability that a failure causes another failure, which may cause more failures. On
        average, each failure leads to cascade / (1 - cascade) further failures, directly or
        indirectly.
    cascade_window_s : float
        Maximum delay of the caused failure, in seconds. The delay is uniformly distributed.
    cascade_within : int
        Number of nodes of an aligned block. A failure causes failures only in its own block. If
        this is 0, the block is the entire machine. The caused failure hits each other group of the
        block with equal probability.
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
            expected = f"a multiple of the failure group above {self.group}, or 0 for the machine"
            raise InputError(f"is {within}", "cascade within", expected)


NONE = Correlation()


def correlated(law: Law, correlation: Correlation) -> Law:
    """Return a law whose failures are those of ``law``, but correlated.

    If the failures are independent, return ``law`` itself.
    """
    if correlation == NONE:
        return law
    if not law.drawn:
        expected = "a law that draws failures, or record:file=..."
        where = "failure group, cascade"
        raise InputError(
            "groups and cascades are not possible with recorded failures", where, expected
        )
    return Correlated(law, correlation)


class Correlated(Law, frozen=True):
    """A law whose failures hit groups of nodes or cause more failures.

    The MTBF is that of the underlying law. Each failure of the underlying law takes down an entire
    group. Caused failures do not count in the MTBF. Overlapping outages of a group are joined.
    """

    of: Law
    correlation: Correlation

    @property
    def mtbf_s(self) -> float | None:
        """The MTBF of the underlying law, or None if this law does not state an MTBF."""
        return getattr(self.of, "mtbf_s", None)

    def mtbf_on(self, n_nodes: int | None) -> float | None:
        """Return the MTBF of the underlying law."""
        return self.of.mtbf_on(n_nodes)

    @property
    def downtime_s(self) -> float | None:
        """The downtime of the underlying law, or None if this law does not state a downtime."""
        return getattr(self.of, "downtime_s", None)

    @property
    def seeded(self) -> bool:
        """Whether different seeds draw different failures."""
        return self.of.seeded or self.correlation.cascade > 0

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages of entire groups, sorted by time.

        The outages may overlap; `machine_events` joins them.
        """
        return self._spread(self.of.outages(n_nodes, seed), n_nodes, seed)

    def until(self, outages: Iterator[AnyOutage], horizon_s: float) -> Iterator[AnyOutage]:
        """Yield the outages before the horizon, as defined by the underlying law."""
        return self.of.until(outages, horizon_s)

    def machine_events(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """Yield failures and repairs.

        If outages overlap, the node is repaired when the last one ends.
        """
        return joined_events(outages)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Raise InputError: nodes are not independent."""
        raise InputError("is unknown for correlated failures", "survival", "a law without groups")

    def identity(self) -> dict[str, Any]:
        """Return the identity of the underlying law, with the correlation."""
        correlation = msgspec.to_builtins(self.correlation)
        return {**self.of.identity(), "correlation": correlation}

    def label(self) -> str | None:
        """Return the label of the underlying law, followed by the options that are set."""
        options, defaults = msgspec.structs.asdict(self.correlation), msgspec.structs.asdict(NONE)
        texts = [self.of.label() or ""]
        for name, value in options.items():
            if value != defaults[name]:
                short, unit = (name.removesuffix("_s"), "s") if name.endswith("_s") else (name, "")
                texts.append(f"{short}={value:.12g}{unit}")
        return ",".join(filter(None, texts))

    def _spread(self, outages: Iterator[Outage], n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield failures of groups, and the failures that these cause, sorted by time."""
        rng = stream(seed, "failures", "cascade")
        groups = _Groups(n_nodes, self.correlation)
        caused: list[tuple[int, int, Outage]] = []
        number = 0
        for outage in _with_end(outages):
            while caused and (outage is None or caused[0][0] <= outage.down_us):
                later = heapq.heappop(caused)[2]
                yield later
                number += self._cause(caused, later, groups, rng, number)
            if outage is not None:
                entire = outage._replace(nodes=groups.entire(outage.nodes))
                yield entire
                number += self._cause(caused, entire, groups, rng, number)

    def _cause(
        self,
        caused: list[tuple[int, int, Outage]],
        outage: Outage,
        groups: _Groups,
        rng: np.random.Generator,
        number: int,
    ) -> int:
        """Draw whether a failure causes another failure, and queue the caused failure.

        Return the number of queued failures: 0 or 1.
        """

        if not self.correlation.cascade or rng.random() >= self.correlation.cascade:
            return 0
        delay_us = 1 + int(rng.integers(to_us(self.correlation.cascade_window_s)))
        nodes = groups.neighbour(outage.nodes.lowest, rng)
        if nodes is None:
            return 0
        up_us = outage.up_us if outage.up_us >= FOREVER_US else outage.up_us + delay_us
        later = Outage(outage.down_us + delay_us, up_us, nodes)
        heapq.heappush(caused, (later.down_us, number, later))
        return 1


class _Groups(NamedTuple):
    """The groups of nodes of a machine. The last group may be smaller."""

    n_nodes: int
    correlation: Correlation

    def entire(self, nodes: NodeSet) -> NodeSet:
        """Return all nodes of the groups to which these nodes belong."""
        size = self.correlation.group
        if size == 1:
            return nodes
        pairs = (nodes.intervals // size).tolist()
        return NodeSet.from_intervals(
            (a * size, min((b + 1) * size, self.n_nodes) - 1) for a, b in pairs
        )

    def neighbour(self, node: int, rng: np.random.Generator) -> NodeSet | None:
        """Return a random group of the node's block, other than the group of the node.

        Return None if the block has no other group.
        """
        size = self.correlation.group
        within = self.correlation.cascade_within or self.n_nodes
        begin = node // within * within
        end = min(begin + within, self.n_nodes)
        first, count = begin // size, -(-(end - begin) // size)
        if count < 2:
            return None
        group = first + int(rng.integers(count - 1))
        group += group >= node // size
        return self.entire(NodeSet.of([group * size]))


def _with_end(outages: Iterable[Outage]) -> Iterator[Outage | None]:
    yield from outages
    yield None


def joined_events(outages: Iterable[Outage]) -> Iterator[MachineEvent]:
    """Yield the failure and the repair of each outage of a node. Overlapping outages are joined.

    The outages are drawn lazily. At equal times, repairs come before failures. Repairs at equal
    times have the order of their failures.
    """
    up_us: dict[int, int] = {}  # end of the last outage of each node that is down
    repairs: list[tuple[int, int, NodeSet]] = []
    for number, outage in enumerate(outages):
        yield from _pop_repairs(repairs, up_us, outage.down_us)
        failed = [node for node in outage.nodes if node not in up_us]
        for node in outage.nodes:
            up_us[node] = max(up_us.get(node, 0), outage.up_us)
        if failed:
            yield MachineEvent(outage.down_us, False, NodeSet.of(failed), outage.cause)
        if outage.up_us < FOREVER_US:
            heapq.heappush(repairs, (outage.up_us, number, outage.nodes))
    yield from _pop_repairs(repairs, up_us, FOREVER_US)


def _pop_repairs(
    repairs: list[tuple[int, int, NodeSet]], up_us: dict[int, int], until_us: int
) -> Iterator[MachineEvent]:
    """Yield the repairs up to a time.

    A node that is still down because of another outage is left out.
    """
    while repairs and repairs[0][0] <= until_us:
        at_us, _, nodes = heapq.heappop(repairs)
        repaired = [node for node in nodes if up_us.get(node) == at_us]
        for node in repaired:
            del up_us[node]
        if repaired:
            yield MachineEvent(at_us, True, NodeSet.of(repaired))
