# SPDX-License-Identifier: Apache-2.0
"""Slow, simple fragmentation, from the queue and the free nodes between events."""

from __future__ import annotations

from itertools import pairwise

from rebat.results.measures.platform import Window
from rebat.state.ledger import Ledger


def blocked(ledger: Ledger, n_nodes: int, window: Window) -> tuple[int, int]:
    """Return how long the head of the queue waited although enough nodes were free.

    The two numbers are microseconds, and the node-microseconds of the nodes free meanwhile.
    """
    first, last = window
    dates = {first, last, *(at for at, _, _ in ledger.node_events)}
    for record in ledger.attempts:
        dates |= {record.attempt.queued_us, record.start_us, record.end_us}
    time_us = node_us = 0
    for date, following in pairwise(sorted(date for date in dates if first <= date <= last)):
        waiting = [r.attempt for r in ledger.attempts if r.attempt.queued_us <= date < r.start_us]
        free = free_at(ledger, n_nodes, date)
        if waiting:
            head = min(waiting, key=lambda a: (-a.priority, a.queued_us, a.serial))
            if head.n_nodes <= free:
                time_us += following - date
                node_us += (following - date) * free
    return time_us, node_us


def free_at(ledger: Ledger, n_nodes: int, date: int) -> int:
    """Return the number of nodes that are up and run nothing."""
    busy: set[int] = set()
    for at, up, nodes in ledger.node_events:
        if at <= date:
            busy = busy - set(nodes) if up else busy | set(nodes)
    n_running = sum(r.attempt.n_nodes for r in ledger.attempts if r.start_us <= date < r.end_us)
    return n_nodes - len(busy) - n_running
