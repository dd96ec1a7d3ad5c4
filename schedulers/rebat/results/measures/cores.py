# SPDX-License-Identifier: Apache-2.0
"""Occupation and energy of nodes with several cores.

Section 4.4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019, counts empty, mixed and full nodes every 5 s. rebat does not sample: it
integrates over time exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import Intervals, NodeSet
from rebat.core.units import US_PER_S
from rebat.models.power import NodePower
from rebat.results.measures.platform import Window
from rebat.session.ledger import Ledger

Ints = npt.NDArray[np.int64]

ASLEEP = "sleep"
"""The reason of drains that save energy.

While a drained node boots, it needs the power of an empty node.
"""


class NodeStates(msgspec.Struct, frozen=True):
    """Shares of node time in which none, some or all cores of a node are in use."""

    empty: float
    mixed: float
    full: float


class Usage(msgspec.Struct, frozen=True):
    """Intervals of time on nodes, with the numbers of used cores. Each array has shape (n,)."""

    node: Ints
    begin_us: Ints
    end_us: Ints
    used: Ints

    @property
    def length_us(self) -> Ints:
        """The length of each interval in microseconds."""
        return self.end_us - self.begin_us


def usage(ledger: Ledger, n_nodes: int, cores: int, window: Window) -> Usage:
    """Return the number of used cores over time. The intervals of each node cover the window."""
    first, last = window
    taken = [
        (record.nodes.intervals, max(record.start_us, first), min(record.end_us, last))
        for record in ledger.attempts
        if record.nodes is not None and record.end_us > first and record.start_us < last
    ]
    on, count, number = _by_node([intervals for intervals, _, _ in taken], cores)
    begin = np.array([begin for _, begin, _ in taken], dtype=np.int64)[number]
    end = np.array([end for _, _, end in taken], dtype=np.int64)[number]
    nodes = np.arange(n_nodes)
    node = np.concatenate([nodes, np.repeat(on, 2)])
    time_us = np.concatenate([np.full(n_nodes, first), np.stack([begin, end], axis=1).ravel()])
    delta = np.concatenate([np.zeros_like(nodes), np.stack([count, -count], axis=1).ravel()])
    order = np.lexsort((time_us, node))
    node, begin_us = node[order], time_us[order]
    used = np.cumsum(delta[order])  # the changes of a node add up to 0
    ends = np.append(begin_us[1:], last)
    ends[np.append(node[1:] != node[:-1], True)] = last
    return Usage(node, begin_us, ends, used)


def _by_node(sets: list[Intervals], cores: int) -> tuple[Ints, Ints, Ints]:
    """Return the nodes to which sets of cores belong.

    The three arrays have an entry for each pair of a set and a node: the node, the number of its
    cores in the set, and the index of the set.
    """
    rows = np.concatenate([np.empty((0, 2), dtype=np.int64), *sets])
    first = rows[:, 0] // cores
    spans = rows[:, 1] // cores - first + 1
    row = np.repeat(np.arange(len(rows)), spans)
    node = np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans - first, spans)
    low = np.maximum(rows[row, 0], node * cores)
    high = np.minimum(rows[row, 1], node * cores + cores - 1)
    number = np.repeat(np.arange(len(sets)), [len(intervals) for intervals in sets])[row]
    new = np.ones(len(row), dtype=np.bool_)  # a node can belong to two intervals
    new[1:] = (node[1:] != node[:-1]) | (number[1:] != number[:-1])
    n_cores = np.add.reduceat(high - low + 1, np.flatnonzero(new)) if len(row) else row
    return node[new], n_cores, number[new]


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

    ``kwh`` is None if the power of a node is unknown. ``asleep`` is the share of node time in which
    nodes sleep, from 0 to 1.
    """

    kwh: float | None
    asleep: float


def energy(
    of: Usage, ledger: Ledger, cores: int, window: Window, power: NodePower | None
) -> Energy:
    """Return the energy of the machine. The power of a node depends on its number of used cores."""
    lengths_s = of.length_us / US_PER_S
    asleep_s, total_s = _drained_s(ledger, cores, window, ASLEEP), float(lengths_s.sum())
    asleep = asleep_s / total_s if total_s else 0.0
    if power is None:
        return Energy(None, asleep)
    watts = power.empty_w + (power.full_w - power.empty_w) * of.used / cores
    joules = float(lengths_s @ watts) - asleep_s * (power.empty_w - power.asleep_w)
    return Energy(joules / 3.6e6, asleep)


def _drained_s(ledger: Ledger, cores: int, window: Window, why: str) -> float:
    """Return the node-seconds within a window of all drains with the reason ``why``."""
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
