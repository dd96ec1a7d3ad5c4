# SPDX-License-Identifier: Apache-2.0
"""The use of the spare nodes that a policy reserves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from rebat.core.attempts import SPARE, Cause
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.results.measures.platform import Window
from rebat.results.measures.recoveries import Span
from rebat.session.ledger import AttemptRecord, Ledger


class Spares(msgspec.Struct, frozen=True):
    """Use of spare nodes within the window. Node time is in node-seconds.

    A spare node begins to replace a failed node when it leaves the reserve for the job that lost
    the failed node. The replacement ends when the failed node is up again, or when the job releases
    the spare node.

    Attributes
    ----------
    utilisation
        ``replacing / (replacing + ready)``, or 0 if both are 0.
    ready
        Time of nodes that are reserved as spare nodes and up.
    replacing
        Time of spare nodes that replace a failed node.
    """

    utilisation: float
    ready: float
    replacing: float


Outages = Mapping[int, Sequence[Span]]
"""The outages of each node."""


def spares(ledger: Ledger, window: Window) -> Spares | None:
    """Return the use of spare nodes, or None if the policy reserves no nodes.

    While a job that lost nodes waits, the policy releases all spare nodes to the queue. If this job
    starts on a released node at the time of the release, the node counts as `replacing`. The time
    of the other released nodes counts neither as `ready` nor as `replacing`.
    """
    reserved = [drain for drain in ledger.drained if drain.why == SPARE]
    if not reserved:
        return None
    outages: dict[int, list[Span]] = defaultdict(list)
    for node, down_us, up_us in ledger.node_events.outages(FOREVER_US).rows():
        outages[node].append((down_us, up_us))
    ready_us = 0
    for drain in reserved:
        span = drain.since_us, FOREVER_US if drain.until_us is None else drain.until_us
        down = [_common(outage, span) for node in drain.nodes for outage in outages.get(node, ())]
        ready_us += drain.nodes.size * _within([span], window) - _within(down, window)
    replacing_us = _within(_replacing(ledger, outages), window)
    total_us = ready_us + replacing_us
    return Spares(
        utilisation=replacing_us / total_us if total_us else 0.0,
        ready=ready_us / US_PER_S,
        replacing=replacing_us / US_PER_S,
    )


def _replacing(ledger: Ledger, outages: Outages) -> Iterator[Span]:
    """Yield the times in which a spare node replaces a failed node."""
    released: dict[int, set[int]] = defaultdict(set)
    for at_us, back, nodes, why in ledger.drain_events:
        if back and why == SPARE:
            released[at_us].update(nodes)
    jobs: dict[str, list[AttemptRecord]] = defaultdict(list)
    for record in sorted(ledger.attempts, key=lambda r: r.start_us):
        if record.nodes is not None:
            jobs[record.attempt.job_id].append(record)
    for attempts in jobs.values():
        for number, (failed, record) in enumerate(pairwise(attempts), start=1):
            at_us = record.start_us
            taken = released.get(at_us, set()).intersection(record.nodes or ())
            if failed.cause != Cause.NODE_FAILURE or not taken:
                continue
            in_use = (_released_us(attempts[number:], node) for node in taken)
            down = (up for node in failed.nodes or () for up in _up_again(outages, node, at_us))
            # A spare node replaces a failed node until the first of release and repair. Pair the
            # latest releases with the latest repairs.
            pairs = zip(sorted(in_use, reverse=True), sorted(down, reverse=True), strict=False)
            yield from ((at_us, min(pair)) for pair in pairs)


def _released_us(attempts: Sequence[AttemptRecord], node: int) -> int:
    """Return the time at which a job releases a node on which ``attempts[0]`` starts.

    The job keeps the node if its next attempt starts on this node when the previous attempt ends.
    """
    until_us = attempts[0].start_us
    for record in attempts:
        if record.start_us != until_us or record.nodes is None or node not in record.nodes:
            break
        until_us = record.end_us
    return until_us


def _up_again(outages: Outages, node: int, at_us: int) -> Iterator[int]:
    """Yield the end of a node's outage at ``at_us``. Yield nothing if the node is up."""
    return (up_us for down_us, up_us in outages.get(node, ()) if down_us <= at_us < up_us)


def _common(first: Span, second: Span) -> Span:
    return max(first[0], second[0]), min(first[1], second[1])


def _within(spans: Iterable[Span], window: Window) -> int:
    """Return the sum of the lengths of spans within a window."""
    parts = (_common(span, window) for span in spans)
    return sum(max(0, last - first) for first, last in parts)
