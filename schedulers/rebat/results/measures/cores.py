# SPDX-License-Identifier: Apache-2.0
"""Occupation and energy of nodes with several cores.

Section 4.4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019, counts empty, mixed and full nodes every 5 s. rebat integrates exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_S
from rebat.models.power import NodePower
from rebat.results.measures.platform import Window
from rebat.session.ledger import Ledger

Ints = npt.NDArray[np.int64]

ASLEEP = "sleep"
"""The reason of drains that save energy. Nodes that boot use the power of empty nodes."""


class NodeStates(msgspec.Struct, frozen=True):
    """Shares of node time with none, some or all cores of the node in use."""

    empty: float
    mixed: float
    full: float


class Usage(msgspec.Struct, frozen=True):
    """Intervals of time on nodes, each with its number of cores in use; arrays of shape (n,)."""

    node: Ints
    begin_us: Ints
    end_us: Ints
    used: Ints

    @property
    def length_us(self) -> Ints:
        """The length of each interval."""
        return self.end_us - self.begin_us


def usage(ledger: Ledger, n_nodes: int, cores: int, window: Window) -> Usage:
    """Return the number of cores in use per node; the intervals cover the window without gaps."""
    first, last = window
    changes = [(node, first, 0) for node in range(n_nodes)]
    for record in ledger.attempts:
        if record.nodes is None or record.end_us <= first or record.start_us >= last:
            continue
        begin, end = max(record.start_us, first), min(record.end_us, last)
        for on, count in _by_node(record.nodes, cores):
            changes += [(on, begin, count), (on, end, -count)]
    table = np.array(changes, dtype=np.int64).reshape(-1, 3)
    node, begin_us, delta = table[np.lexsort((table[:, 1], table[:, 0]))].T
    used = np.cumsum(delta)  # the deltas of a node add up to 0
    ends = np.append(begin_us[1:], last)
    ends[np.append(node[1:] != node[:-1], True)] = last
    return Usage(node, begin_us, ends, used)


def _by_node(nodes: NodeSet, cores: int) -> list[tuple[int, int]]:
    """Return each node of a set of cores, with the number of its cores in the set."""
    counts: dict[int, int] = {}
    for low, high in nodes.intervals.tolist():
        for node in range(low // cores, high // cores + 1):
            within = min(high, (node + 1) * cores - 1) - max(low, node * cores) + 1
            counts[node] = counts.get(node, 0) + within
    return list(counts.items())


def node_states(of: Usage, cores: int, nodes: Ints | None = None) -> NodeStates:
    """Return the shares of node time by state, over all nodes or over ``nodes``."""
    lengths = of.length_us if nodes is None else np.where(np.isin(of.node, nodes), of.length_us, 0)
    total = int(lengths.sum())
    if not total:
        return NodeStates(0.0, 0.0, 0.0)
    empty = int(lengths[of.used == 0].sum())
    full = int(lengths[of.used == cores].sum())
    return NodeStates(empty / total, (total - empty - full) / total, full / total)


class Energy(msgspec.Struct, frozen=True):
    """Energy of the nodes in a window.

    ``kwh`` is None if the power of a node is unknown. ``asleep`` is the share of node time asleep.
    """

    kwh: float | None
    asleep: float


def energy(
    of: Usage, ledger: Ledger, cores: int, window: Window, power: NodePower | None
) -> Energy:
    """Return the energy from the power of empty, partly used and sleeping nodes."""
    lengths_s = of.length_us / US_PER_S
    asleep_s, total_s = _drained_s(ledger, cores, window, ASLEEP), float(lengths_s.sum())
    asleep = asleep_s / total_s if total_s else 0.0
    if power is None:
        return Energy(None, asleep)
    watts = power.empty_w + (power.full_w - power.empty_w) * of.used / cores
    joules = float(lengths_s @ watts) - asleep_s * (power.empty_w - power.asleep_w)
    return Energy(joules / 3.6e6, asleep)


def _drained_s(ledger: Ledger, cores: int, window: Window, why: str) -> float:
    """Return the node-seconds of drains with a reason."""
    first, last = window
    total_us = 0
    for drain in ledger.drained:
        until = last if drain.until_us is None else min(drain.until_us, last)
        if drain.why == why:
            total_us += max(0, until - max(drain.since_us, first)) * drain.nodes.size // cores
    return total_us / US_PER_S


def states_by_name(
    of: Usage, cores: int, partitions: Mapping[str, NodeSet]
) -> dict[str, NodeStates]:
    """Return the shares of node time by state, for each partition."""
    return {
        name: node_states(of, cores, np.unique(nodes.ids // cores))
        for name, nodes in partitions.items()
    }
