# SPDX-License-Identifier: Apache-2.0
"""Machine events as outages of single nodes, and outages as machine events or as a table."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from rebat.core.files import write_text
from rebat.core.formatting import csv_line
from rebat.core.node_events import NodeEvents, Outages
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, to_s
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import Outage


def node_events(events: Iterable[MachineEvent]) -> NodeEvents:
    """Return failures and repairs as columns."""
    return NodeEvents((event.at_us, event.available, event.nodes) for event in events)


def outages_of(events: Iterable[MachineEvent]) -> Outages:
    """Return the outages that events describe. Without a repair, the end is FOREVER_US."""
    return node_events(events).outages(FOREVER_US)


def events_of_outages(outages: Outages) -> list[MachineEvent]:
    """Return the events of an event file for outages that do not overlap.

    All failures at the same time are one event, and likewise all repairs, because Batsim may
    reorder events at the same time (`batsim_order`). Repairs come before failures.
    """
    node, down_us, up_us = outages
    ends = up_us < FOREVER_US
    at_us = np.concatenate([up_us[ends], down_us])
    fails = np.repeat([False, True], [int(ends.sum()), len(node)])
    nodes = np.concatenate([node[ends], node])
    order = np.lexsort((nodes, fails, at_us))
    at_us, fails, nodes = at_us[order], fails[order], nodes[order]
    other = np.ones(len(order), dtype=np.bool_)
    other[1:] = (at_us[1:] != at_us[:-1]) | (fails[1:] != fails[:-1])
    bounds = [*np.flatnonzero(other).tolist(), len(order)]
    return [
        MachineEvent(int(at_us[first]), not fails[first], NodeSet.of_sorted(nodes[first:after]))
        for first, after in itertools.pairwise(bounds)
    ]


def merged_events(events: Iterable[MachineEvent]) -> Iterator[MachineEvent]:
    """Merge all failures at the same time into one event, and likewise all repairs."""
    for (at_us, available), group in itertools.groupby(events, _time_and_kind):
        pairs = itertools.chain.from_iterable(event.nodes.intervals.tolist() for event in group)
        yield MachineEvent(at_us, available, NodeSet.from_intervals((a, b) for a, b in pairs))


def _time_and_kind(event: MachineEvent) -> tuple[int, bool]:
    return event.at_us, event.available


def grouped(events: Iterable[MachineEvent]) -> list[Outage]:
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
    outages = outages_of(events)
    node, down_us, up_us = outages.at((outages.down_us < end_us) & (outages.up_us > begin_us))
    up_us = np.where(up_us < FOREVER_US, up_us - begin_us, up_us)
    return events_of_outages(Outages(node, np.maximum(down_us - begin_us, 0), up_us))


def write_plain(events: Iterable[MachineEvent], path: Path) -> int:
    """Write events as a table, one line per outage of a node, with times in seconds.

    Returns
    -------
    int
        Number of lines.
    """
    rows = sorted((down, node, up) for node, down, up in outages_of(events).rows())
    lines = [f"{node},{_text(down)},{_text(up)}\n" for down, node, up in rows]
    write_text(path, "node,down,up\n" + "".join(lines))
    return len(lines)


def _text(at_us: int) -> str:
    return "" if at_us == FOREVER_US else repr(to_s(at_us)).removesuffix(".0")


def write_names(names: Iterable[str], path: Path) -> None:
    """Write the table of node numbers and names: ``node,name``."""
    rows = [("node", "name"), *enumerate(names)]
    write_text(path, "".join(map(csv_line, rows)))
