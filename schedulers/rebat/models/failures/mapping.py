# SPDX-License-Identifier: Apache-2.0
"""A record of one machine's failures as those of a machine of another size.

There are three ways, and none of them is the truth:

rank
    Node i of M becomes node i * N // M of N. The machine fails as often as it did, neighbours stay
    neighbours; nodes that fall on one are down while any of them is.
share
    The same, but the whole block of nodes from i * N // M to (i + 1) * N // M is down: as large a
    share of the machine is lost as was. On a smaller machine it is the same as rank.
rate
    Nodes fail as often as they did, and the machine N / M times as often. A smaller machine is made
    of nodes drawn at random; a larger one of copies of the whole record, the last of them of as
    many nodes, drawn at random, as are missing. Every copy after the first is turned in time: it
    begins at a random date of the record and goes on with its beginning after its end. So each
    keeps how unevenly its nodes fail, how long repairs last and what fails together, and copies do
    not fail at the same dates. (To compress time instead would shorten repairs, and days.)
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
    """A record to be mapped: events, the same as outages, of so many nodes; length (us)."""

    events: Sequence[MachineEvent]
    spans: Sequence[Span]
    n_nodes: int
    length_us: int


def source_of(events: Sequence[MachineEvent], n_nodes: int | None = None) -> MappedRecord:
    """The record that events are, to the last of them; without a size, of the largest that fails.

    Raises
    ------
    InputError
        For a node beyond the size, and for a record without a failure.
    """
    spans = spans_of(events)
    if not spans:
        raise InputError("nothing fails", expected="a record with failures")
    largest = max(span.node for span in spans)
    if n_nodes is not None and largest >= n_nodes:
        raise InputError(f"node {largest} fails", expected=f"nodes 0 to {n_nodes - 1}")
    return MappedRecord(events, spans, n_nodes or largest + 1, max(events[-1].at_us, 1))


def mapped(
    source: MappedRecord, n_nodes: int, way: str = "rank", seed: int = 0, turn: bool = False
) -> list[MachineEvent]:
    """The record as that of so many nodes; none fails while it is down.

    Parameters
    ----------
    source : MappedRecord
    n_nodes : int
        Size of the machine asked for.
    way : {'rank', 'share', 'rate'}
        See the module. Of a machine of the same size all are the record itself.
    seed : int
        Of what 'rate' draws, and of the turn.
    turn : bool
        Turn the record in time as 'rate' does its copies, also the first: each seed begins at
        another date of it.

    Raises
    ------
    InputError
        For an unknown way, and a size below 1.
    """
    if way not in WAYS:
        raise unknown_name("way to map", way, WAYS)
    if n_nodes < 1:
        raise InputError(f"number of nodes is {n_nodes}", expected="at least 1")
    if n_nodes == source.n_nodes and not turn:
        return list(source.events)
    if way == "rate":
        return events_of_spans(_copies(source, n_nodes, seed, turn))
    spans = _turned(source, _offset_us(source, seed, 0)) if turn else source.spans
    return events_of_spans(_placed(spans, source.n_nodes, n_nodes, way))


def _placed(spans: Sequence[Span], n_from: int, n_to: int, way: str) -> Iterator[Span]:
    for span in spans:
        first = span.node * n_to // n_from
        after = (span.node + 1) * n_to // n_from if way == "share" else 0
        for node in range(first, max(after, first + 1)):
            yield span._replace(node=node)


def _copies(source: MappedRecord, n_nodes: int, seed: int, turn: bool) -> Iterator[Span]:
    """Copies of the record side by side, the last one of fewer nodes."""
    whole, rest = divmod(n_nodes, source.n_nodes)
    for number in range(whole + (rest > 0)):
        turned = number > 0 or turn
        spans = _turned(source, _offset_us(source, seed, number)) if turned else source.spans
        kept = np.arange(source.n_nodes)
        if number == whole:
            chosen = stream(seed, "failures", "mapping", "nodes")
            kept = np.sort(chosen.choice(source.n_nodes, rest, replace=False))
        place = {node: number * source.n_nodes + at for at, node in enumerate(kept.tolist())}
        yield from (s._replace(node=place[s.node]) for s in spans if s.node in place)


def _offset_us(source: MappedRecord, seed: int, number: int) -> int:
    rng = stream(seed, "failures", "mapping", "turn", number)
    return int(rng.integers(source.length_us))


def _turned(source: MappedRecord, offset_us: int) -> list[Span]:
    """The record so much later, what would end after its end going on at its beginning."""
    return [
        part for span in source.spans for part in _turned_span(span, offset_us, source.length_us)
    ]


def _turned_span(span: Span, offset_us: int, length_us: int) -> Iterator[Span]:
    """One outage so; one that never ended lasts to the end of the record."""
    lasts_us = min(span.up_us, max(length_us, span.down_us + 1)) - span.down_us
    down_us = (span.down_us + offset_us) % length_us
    over_us = down_us + lasts_us - length_us
    yield Span(span.node, down_us, down_us + lasts_us - max(over_us, 0))
    if over_us > 0:
        yield Span(span.node, 0, over_us)
