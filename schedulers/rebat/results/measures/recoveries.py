# SPDX-License-Identifier: Apache-2.0
"""Recoveries of failed jobs: nodes that are down while the job hangs on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.session.ledger import Ledger

Span = tuple[int, int]
"""Start and end in microseconds."""


def hung_on_dead(ledger: Ledger) -> list[Span]:
    """Return the times in which a node is down and an attempt hangs on it, one per outage.

    These node-seconds count as downtime, not as recovery.
    """
    hung = [record for record in ledger.attempts if record.hung_us]
    if not hung:
        return []
    outages = sorted(down_intervals(ledger.node_events, FOREVER_US), key=lambda o: o[1])
    starts, spans = [down for _, down, _ in outages], []
    for record in hung:
        failed_us, nodes = record.end_us - record.hung_us, record.nodes
        first = bisect_left(starts, failed_us)
        for node, down, up in outages[first : bisect_left(starts, record.end_us)]:
            if nodes is not None and node in nodes:
                spans.append((down, min(up, record.end_us)))
    return spans


def down_intervals(
    events: Sequence[tuple[int, bool, NodeSet]], horizon_us: int
) -> list[tuple[int, int, int]]:
    """Return (node, start, end) of every outage; an outage without end lasts to the horizon."""
    since: dict[int, int] = {}
    intervals = []
    for at, up, nodes in events:
        for node in nodes:
            if up and node in since:
                intervals.append((node, since.pop(node), at))
            elif not up:
                since.setdefault(node, at)
    intervals += [(node, start, max(start, horizon_us)) for node, start in since.items()]
    return intervals
