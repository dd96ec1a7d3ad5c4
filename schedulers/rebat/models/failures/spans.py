# SPDX-License-Identifier: Apache-2.0
"""Outages of nodes as records tell them: lines overlap, Batsim's events must alternate."""

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
    """One node, down from one date (us) until another; FOREVER_US: it never comes back."""

    node: int
    down_us: int
    up_us: int


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The outages by node and date; those of a node that overlap, or touch, are one.

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
    """The outages of nodes that events tell of."""
    return [
        Span(node, down_us, FOREVER_US if up_us is None else up_us)
        for node, down_us, up_us in down_intervals(list(events))
    ]


def single(spans: Iterable[Span]) -> Iterator[Outage]:
    """Each as an outage."""
    for node, down_us, up_us in spans:
        yield Outage(down_us, up_us, NodeSet.of([node]))


def together(outages: Iterable[Outage]) -> Iterator[Outage]:
    """Nodes that go down and come back at the same dates, as one outage; by date."""
    members: defaultdict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for outage in outages:
        members[outage.down_us, outage.up_us] += outage.nodes.intervals.tolist()
    for (down_us, up_us), pairs in sorted(members.items()):
        yield Outage(down_us, up_us, NodeSet.from_intervals((a, b) for a, b in pairs))


def one_a_date(events: Iterable[MachineEvent]) -> Iterator[MachineEvent]:
    """All that fails at a date as one event, and all that is repaired.

    Batsim plays the events of one date in an order that need not be the file's (`batsim_order`):
    where there is only one, a file that is read and written again is the same.
    """
    for (at_us, available), some in itertools.groupby(events, _date):
        pairs = itertools.chain.from_iterable(event.nodes.intervals.tolist() for event in some)
        yield MachineEvent(at_us, available, NodeSet.from_intervals((a, b) for a, b in pairs))


def _date(event: MachineEvent) -> tuple[int, bool]:
    return event.at_us, event.available


def events_of_spans(spans: Iterable[Span]) -> list[MachineEvent]:
    """Spans that need not be joined yet, as the events of a file."""
    return list(one_a_date(events_of(together(single(joined(spans))))))


def outages_of(events: Iterable[MachineEvent]) -> list[Outage]:
    """What fails and comes back together, by date."""
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
    """What befalls nodes from one date to another, counted from the first.

    Nodes that are down at the first fail at 0; what fails before the second is repaired when it
    was.
    """
    kept = [
        outage._replace(
            down_us=max(outage.down_us - begin_us, 0),
            up_us=outage.up_us - (begin_us if outage.up_us < FOREVER_US else 0),
        )
        for outage in outages_of(events)
        if outage.down_us < end_us and outage.up_us > begin_us
    ]
    return list(one_a_date(events_of(kept)))
