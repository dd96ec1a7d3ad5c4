# SPDX-License-Identifier: Apache-2.0
"""Outages of single nodes, which may overlap in records, but not in Batsim's event files."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.models.failures.events import MachineEvent, down_intervals
from rebat.models.failures.law import Outage, events_of


class Span(NamedTuple):
    """The outage of a node between two times (us). Without a repair, the end is FOREVER_US."""

    node: int
    down_us: int
    up_us: int


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield outages sorted by node and time; overlapping or adjacent outages of a node are joined.

    >>> list(joined([Span(1, 5, 8), Span(1, 0, 5), Span(0, 1, 2)]))
    [Span(node=0, down_us=1, up_us=2), Span(node=1, down_us=0, up_us=8)]
    """
    last: Span | None = None
    for span in sorted(spans):
        if last and last.node == span.node and span.down_us <= last.up_us:
            last = last._replace(up_us=max(last.up_us, span.up_us))
            continue
        if last:
            yield last
        last = span
    if last:
        yield last


def spans_of(events: Iterable[MachineEvent]) -> list[Span]:
    """Return the outages of single nodes that events describe."""
    return [
        Span(node, down_us, FOREVER_US if up_us is None else up_us)
        for node, down_us, up_us in down_intervals(list(events))
    ]


def single(spans: Iterable[Span]) -> Iterator[Outage]:
    """Yield each span as an outage."""
    for node, down_us, up_us in spans:
        yield Outage(down_us, up_us, NodeSet.of([node]))


def together(outages: Iterable[Outage]) -> Iterator[Outage]:
    """Join outages with equal times into one outage of several nodes. Yield them sorted by time."""
    members: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for outage in outages:
        members[outage.down_us, outage.up_us] += outage.nodes.intervals.tolist()
    for (down_us, up_us), pairs in sorted(members.items()):
        yield Outage(down_us, up_us, NodeSet.from_intervals((a, b) for a, b in pairs))


def merged_events(events: Iterable[MachineEvent]) -> Iterator[MachineEvent]:
    """Merge all failures at the same time into one event, and likewise all repairs.

    Batsim may reorder events at the same time (`batsim_order`). With merged events, a file does not
    change when it is read and written again.
    """
    for (at_us, available), group in itertools.groupby(events, _time_and_kind):
        pairs = itertools.chain.from_iterable(event.nodes.intervals.tolist() for event in group)
        yield MachineEvent(at_us, available, NodeSet.from_intervals((a, b) for a, b in pairs))


def _time_and_kind(event: MachineEvent) -> tuple[int, bool]:
    return event.at_us, event.available


def events_of_spans(spans: Iterable[Span]) -> list[MachineEvent]:
    """Return the events of an event file for these spans, which may overlap."""
    return list(merged_events(events_of(together(single(joined(spans))))))


def outages_of(events: Iterable[MachineEvent]) -> list[Outage]:
    """Return the outages in events, sorted by time.

    Nodes that fail and return at the same times are one outage.
    """
    since: dict[int, tuple[int, int]] = {}
    members: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        for node in event.nodes:
            if event.available:
                members[(*since.pop(node), event.at_us)].append(node)
            else:
                since[node] = number, event.at_us
    for node, failed in since.items():
        members[(*failed, FOREVER_US)].append(node)
    return [Outage(at, up, NodeSet.of(nodes)) for (_, at, up), nodes in sorted(members.items())]


def window(
    events: Iterable[MachineEvent], begin_us: int, end_us: int = FOREVER_US
) -> list[MachineEvent]:
    """Return the events from ``begin_us`` to ``end_us``, with times relative to ``begin_us``.

    Nodes that are down at ``begin_us`` fail at time 0. A repair after ``end_us`` is kept if its
    failure is before ``end_us``.
    """
    outages = [
        outage._replace(
            down_us=max(outage.down_us - begin_us, 0),
            up_us=outage.up_us - (begin_us if outage.up_us < FOREVER_US else 0),
        )
        for outage in outages_of(events)
        if outage.down_us < end_us and outage.up_us > begin_us
    ]
    return list(merged_events(events_of(outages)))
