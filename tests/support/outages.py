# SPDX-License-Identifier: Apache-2.0
"""Plain loops over events and outages. The package has columns instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rebat.core.node_events import Outages
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import events_of_outages


class Span(NamedTuple):
    """The outage of a node between two times (us). Without a repair, the end is FOREVER_US."""

    node: int
    down_us: int
    up_us: int


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield outages sorted by node and time; overlapping or adjacent outages are joined."""
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


def events_of_spans(spans: Iterable[Span]) -> list[MachineEvent]:
    """Return the events of an event file for outages, which may overlap."""
    return events_of_outages(Outages.of(spans).joined())


def down_intervals(events: Sequence[MachineEvent]) -> list[tuple[int, int, int | None]]:
    """Return the node, start and end of every outage. Without a repair, the end is None."""
    since: dict[int, int] = {}
    intervals: list[tuple[int, int, int | None]] = []
    for event in events:
        for node in event.nodes:
            if event.available:
                intervals.append((node, since.pop(node), event.at_us))
            else:
                since[node] = event.at_us
    return intervals + [(node, at_us, None) for node, at_us in since.items()]
