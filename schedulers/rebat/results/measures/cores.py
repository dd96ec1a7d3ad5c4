# SPDX-License-Identifier: Apache-2.0
"""Nodes of several cores: how full they were, and what power they took.

Section 4.4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019, counts nodes that are empty, mixed and full every 5 s; here each of them
is integrated exactly.
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
"""What nodes are drained for that save energy; those that boot take what empty ones do."""


class NodeStates(msgspec.Struct, frozen=True):
    """Shares of node time: none of the node's cores used, some, all."""

    empty: float
    mixed: float
    full: float


class Usage(msgspec.Struct, frozen=True):
    """Stretches of time on a node, each with a number of its cores in use: shape (n,) each."""

    node: Ints
    begin_us: Ints
    end_us: Ints
    used: Ints

    @property
    def length_us(self) -> Ints:
        """How long each lasts."""
        return self.end_us - self.begin_us


def usage(ledger: Ledger, n_nodes: int, cores: int, window: Window) -> Usage:
    """How many cores of each node attempts held, over a window: it is covered without a gap."""
    first, last = window
    changes = [(node, first, 0) for node in range(n_nodes)]
    for record in ledger.attempts:
        if record.nodes is None or record.end_us <= first or record.start_us >= last:
            continue
        begin, end = max(record.start_us, first), min(record.end_us, last)
        for on, count in _by_node(record.nodes, cores):
            changes += [(on, begin, count), (on, end, -count)]
    table = np.array(changes, dtype=np.int64).reshape(-1, 3)
    node, date, delta = table[np.lexsort((table[:, 1], table[:, 0]))].T
    used = np.cumsum(delta)  # the deltas of a node add up to 0
    ends = np.append(date[1:], last)
    ends[np.append(node[1:] != node[:-1], True)] = last
    return Usage(node, date, ends, used)


def _by_node(nodes: NodeSet, cores: int) -> list[tuple[int, int]]:
    """(node, cores of it) of some cores."""
    counts: dict[int, int] = {}
    for low, high in nodes.intervals.tolist():
        for node in range(low // cores, high // cores + 1):
            within = min(high, (node + 1) * cores - 1) - max(low, node * cores) + 1
            counts[node] = counts.get(node, 0) + within
    return list(counts.items())


def node_states(of: Usage, cores: int, nodes: Ints | None = None) -> NodeStates:
    """Shares of the time of all nodes, or of some."""
    lengths = of.length_us if nodes is None else np.where(np.isin(of.node, nodes), of.length_us, 0)
    total = int(lengths.sum())
    if not total:
        return NodeStates(0.0, 0.0, 0.0)
    empty = int(lengths[of.used == 0].sum())
    full = int(lengths[of.used == cores].sum())
    return NodeStates(empty / total, (total - empty - full) / total, full / total)


class Energy(msgspec.Struct, frozen=True):
    """What the nodes took in a window, in kWh, if the power of a node is given; ``asleep`` is the
    share of node time spent asleep."""

    kwh: float | None
    asleep: float


def energy(
    of: Usage, ledger: Ledger, cores: int, window: Window, power: NodePower | None
) -> Energy:
    """Watts of every node and its cores in use, less where nodes sleep (they are empty then)."""
    lengths_s = of.length_us / US_PER_S
    asleep_s, total_s = _drained_s(ledger, cores, window, ASLEEP), float(lengths_s.sum())
    asleep = asleep_s / total_s if total_s else 0.0
    if power is None:
        return Energy(None, asleep)
    watts = power.empty_w + (power.full_w - power.empty_w) * of.used / cores
    joules = float(lengths_s @ watts) - asleep_s * (power.empty_w - power.asleep_w)
    return Energy(joules / 3.6e6, asleep)


def _drained_s(ledger: Ledger, cores: int, window: Window, why: str) -> float:
    """Node-seconds that nodes were drained for a reason."""
    first, last = window
    total_us = 0
    for one in ledger.drained:
        until = last if one.until_us is None else min(one.until_us, last)
        if one.why == why:
            total_us += max(0, until - max(one.since_us, first)) * one.nodes.size // cores
    return total_us / US_PER_S


def states_by_name(
    of: Usage, cores: int, partitions: Mapping[str, NodeSet]
) -> dict[str, NodeStates]:
    """The same for each partition."""
    return {
        name: node_states(of, cores, np.unique(nodes.ids // cores))
        for name, nodes in partitions.items()
    }
