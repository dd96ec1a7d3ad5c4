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

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.streams import stream
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.spans import Span, events_of_spans, spans_of

WAYS = ("rank", "share", "rate")


class MappedRecord(NamedTuple):
    """A record to map.

    Attributes
    ----------
    events : sequence of MachineEvent
        Failures and repairs.
    spans : sequence of Span
        The same events as outages of single nodes.
    n_nodes : int
        Size of the recorded machine.
    length_us : int
        Length of the record.
    """

    events: Sequence[MachineEvent]
    spans: Sequence[Span]
    n_nodes: int
    length_us: int


def source_of(events: Sequence[MachineEvent], n_nodes: int | None = None) -> MappedRecord:
    """Return the record with these events.

    By default, ``n_nodes`` is the largest number of a failed node, plus 1.

    Raises
    ------
    InputError
        If the number of a node is too large for the machine, or no node fails.
    """
    spans = spans_of(events)
    if not spans:
        raise InputError("contains no failures", expected="a record with failures")
    largest = max(span.node for span in spans)
    if n_nodes is not None and largest >= n_nodes:
        raise InputError(
            f"node {largest} is not on the machine", expected=f"nodes 0 to {n_nodes - 1}"
        )
    return MappedRecord(events, spans, n_nodes or largest + 1, max(events[-1].at_us, 1))


def mapped(
    source: MappedRecord, n_nodes: int, way: str = "rank", seed: int = 0, turn: bool = False
) -> list[MachineEvent]:
    """Return the record mapped onto ``n_nodes`` nodes. Afterwards, no node fails while it is down.

    Parameters
    ----------
    source : MappedRecord
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

    Raises
    ------
    InputError
        If the way is unknown, or the size is below 1.
    """
    if way not in WAYS:
        raise unknown_name("way to map", way, WAYS)
    if n_nodes < 1:
        raise InputError(f"number of nodes is {n_nodes}", expected="at least 1")
    if n_nodes == source.n_nodes and not turn:
        return list(source.events)
    if way == "rate":
        return events_of_spans(_copies(source, n_nodes, seed, turn))
    spans = _rotated(source, _offset_us(source, seed, 0)) if turn else source.spans
    return events_of_spans(_placed(spans, source.n_nodes, n_nodes, way))


def _placed(spans: Sequence[Span], n_from: int, n_to: int, way: str) -> Iterator[Span]:
    for span in spans:
        first = span.node * n_to // n_from
        after = (span.node + 1) * n_to // n_from if way == "share" else 0
        for node in range(first, max(after, first + 1)):
            yield span._replace(node=node)


def _copies(source: MappedRecord, n_nodes: int, seed: int, turn: bool) -> Iterator[Span]:
    """Yield the outages of all copies of the record. The last copy may have fewer nodes."""
    n_complete, n_left = divmod(n_nodes, source.n_nodes)
    for number in range(n_complete + (n_left > 0)):
        rotated = number > 0 or turn
        spans = _rotated(source, _offset_us(source, seed, number)) if rotated else source.spans
        nodes = np.arange(source.n_nodes)
        if number == n_complete:
            rng = stream(seed, "failures", "mapping", "nodes")
            nodes = np.sort(rng.choice(source.n_nodes, n_left, replace=False))
        place = {node: number * source.n_nodes + at for at, node in enumerate(nodes.tolist())}
        yield from (s._replace(node=place[s.node]) for s in spans if s.node in place)


def _offset_us(source: MappedRecord, seed: int, number: int) -> int:
    rng = stream(seed, "failures", "mapping", "turn", number)
    return int(rng.integers(source.length_us))


def _rotated(source: MappedRecord, offset_us: int) -> list[Span]:
    """Return the record delayed by an offset. The part beyond its end moves to its beginning."""
    return [
        part for span in source.spans for part in _rotated_span(span, offset_us, source.length_us)
    ]


def _rotated_span(span: Span, offset_us: int, length_us: int) -> Iterator[Span]:
    """Yield a rotated outage.

    An outage without an end is assumed to last to the end of the record.
    """
    lasts_us = min(span.up_us, max(length_us, span.down_us + 1)) - span.down_us
    down_us = (span.down_us + offset_us) % length_us
    over_us = down_us + lasts_us - length_us
    yield Span(span.node, down_us, down_us + lasts_us - max(over_us, 0))
    if over_us > 0:
        yield Span(span.node, 0, over_us)
