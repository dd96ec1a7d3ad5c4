# SPDX-License-Identifier: Apache-2.0
"""Maps a machine's failure record onto a machine of another size.

There are three ways to map a record. None of them is exact.

rank
    Node i of the M recorded nodes becomes node i * N // M of the N nodes of the machine. The number
    of failures of the machine is the same, and neighbours stay neighbours. If several recorded
    nodes become one node, it is down while any of them is down.
share
    Like rank, but a failure of node i takes down all nodes from i * N // M to (i + 1) * N // M, so
    the same share of the machine is down. On a smaller machine, the result is the same as that of
    rank.
rate
    A node has the same failure rate as in the record, so the failure rate of the machine is N / M
    times as large. A smaller machine consists of randomly drawn nodes. A larger machine consists of
    copies of the record. If the last copy is incomplete, its nodes are drawn at random.
    Every copy after the first is rotated in time: it starts at a random time of the record. After
    the end of the record, it continues at the beginning of the record. Therefore, copies do not
    fail at the same times. Each copy keeps the differences between nodes, the repair times and the
    failures that nodes have in common. (Compressing time instead would shorten repairs and daily
    cycles.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.node_events import Outages
from rebat.core.streams import stream
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import events_of_outages, outages_of

WAYS = ("rank", "share", "rate")


class MappedRecord(NamedTuple):
    """A record to map.

    Attributes
    ----------
    events : sequence of MachineEvent
        Failures and repairs.
    outages : Outages
        The same events as outages of single nodes.
    n_nodes : int
        Size of the recorded machine.
    length_us : int
        Length of the record.
    """

    events: Sequence[MachineEvent]
    outages: Outages
    n_nodes: int
    length_us: int


def source_of(events: Sequence[MachineEvent], n_nodes: int | None = None) -> MappedRecord:
    """Return the record with these events.

    By default, ``n_nodes`` is the largest number of a failed node, plus 1.
    """
    outages = outages_of(events)
    if not len(outages.node):
        raise InputError("contains no failures", expected="a record with failures")
    largest = int(outages.node.max())
    if n_nodes is not None and largest >= n_nodes:
        raise InputError(
            f"node {largest} is not on the machine", expected=f"nodes 0 to {n_nodes - 1}"
        )
    return MappedRecord(events, outages, n_nodes or largest + 1, max(events[-1].at_us, 1))


def mapped(
    source: MappedRecord, n_nodes: int, way: str = "rank", seed: int = 0, turn: bool = False
) -> list[MachineEvent]:
    """Return the record mapped onto ``n_nodes`` nodes. Afterwards, no node fails while it is down.

    Parameters
    ----------
    n_nodes : int
        Size of the target machine.
    way : {'rank', 'share', 'rate'}
        See the docstring of the module. If the target machine has the size of the recorded machine,
        the record is not changed.
    seed : int
        Seed of the draws of 'rate' and of the rotation.
    turn : bool
        Whether to rotate the record in time, so that each seed starts at another time of the
        record. With 'rate', the first copy is then rotated too.
    """
    if way not in WAYS:
        raise unknown_name("way to map", way, WAYS)
    if n_nodes < 1:
        raise InputError(f"number of nodes is {n_nodes}", expected="at least 1")
    if n_nodes == source.n_nodes and not turn:
        return list(source.events)
    if way == "rate":
        return events_of_outages(_copies(source, n_nodes, seed, turn).joined())
    outages = _rotated(source, _offset_us(source, seed, 0)) if turn else source.outages
    return events_of_outages(_placed(outages, source.n_nodes, n_nodes, way).joined())


def _placed(outages: Outages, n_from: int, n_to: int, way: str) -> Outages:
    first = outages.node * n_to // n_from
    after = (outages.node + 1) * n_to // n_from if way == "share" else first
    counts = np.maximum(after - first, 1)
    rows = np.repeat(np.arange(len(first)), counts)
    shift = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Outages(first[rows] + shift, outages.down_us[rows], outages.up_us[rows])


def _copies(source: MappedRecord, n_nodes: int, seed: int, turn: bool) -> Outages:
    """Return the outages of all copies of the record. The last copy may have fewer nodes."""
    n_complete, n_left = divmod(n_nodes, source.n_nodes)
    copies = []
    for number in range(n_complete + (n_left > 0)):
        rotated = number > 0 or turn
        outages = source.outages
        if rotated:
            outages = _rotated(source, _offset_us(source, seed, number))
        place = number * source.n_nodes + np.arange(source.n_nodes)
        if number == n_complete:
            rng = stream(seed, "failures", "mapping", "nodes")
            nodes = np.sort(rng.choice(source.n_nodes, n_left, replace=False))
            place = np.full(source.n_nodes, -1)
            place[nodes] = number * source.n_nodes + np.arange(n_left)
        chosen = outages.at(place[outages.node] >= 0)
        copies.append(chosen._replace(node=place[chosen.node]))
    return Outages(*map(np.concatenate, zip(*copies, strict=True)))


def _offset_us(source: MappedRecord, seed: int, number: int) -> int:
    rng = stream(seed, "failures", "mapping", "turn", number)
    return int(rng.integers(source.length_us))


def _rotated(source: MappedRecord, offset_us: int) -> Outages:
    """Return the record delayed by an offset. The part beyond its end moves to its beginning.

    An outage without an end is assumed to last to the end of the record.
    """
    node, down_us, up_us = source.outages
    length_us = source.length_us
    lasts_us = np.minimum(up_us, np.maximum(length_us, down_us + 1)) - down_us
    down_us = (down_us + offset_us) % length_us
    over_us = np.maximum(down_us + lasts_us - length_us, 0)
    over = over_us > 0
    return Outages(
        np.concatenate([node, node[over]]),
        np.concatenate([down_us, np.zeros(int(over.sum()), dtype=np.int64)]),
        np.concatenate([down_us + lasts_us - over_us, over_us[over]]),
    )
