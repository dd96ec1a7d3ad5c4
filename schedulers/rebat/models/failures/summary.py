# SPDX-License-Identifier: Apache-2.0
"""A summary of machine events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rebat.core.units import FOREVER_US, to_s, to_us
from rebat.models.failures.events import MachineEvent, check_alternation
from rebat.models.failures.outages import outages_of


def describe_events(
    events: Sequence[MachineEvent],
    n_nodes: int,
    window_s: tuple[float, float] | None = None,
    n_busiest: int = 5,
) -> dict[str, Any]:
    """Return a summary of a failure scenario.

    Parameters
    ----------
    events : sequence of MachineEvent
        Events sorted by time. For each node, failures and repairs alternate.
    n_nodes : int
        Size of the machine.
    window_s : (float, float), optional
        Start and end of the window in seconds. Down intervals are clipped to it. Default: from 0 to
        the last event.
    n_busiest : int
        Number of nodes in the list of the nodes that fail most often.

    Returns
    -------
    dict
        ``failures``: number of failures of single nodes in the window.
        ``dates``: number of different failure times.
        ``mtbf_s``: MTBF of the machine, window / dates.
        ``node_mtbf_s``: window / failures.
        ``mean_downtime_s``: mean over the failures in the window that are repaired.
        ``downtime_share``: down node-seconds, divided by all node-seconds of the window.
        ``nodes_hit``: number of nodes that fail.
        ``busiest_nodes``: pairs of node and number of failures.
        ``window_s``: start and end of the window.
    """
    check_alternation(events, n_nodes)
    end_us = events[-1].at_us if events else 0
    low, high = (to_us(window_s[0]), to_us(window_s[1])) if window_s else (0, end_us)
    intervals = outages_of(events).rows()
    last = high - 1 if window_s else high  # only the default window includes its end
    failures = [(node, a, b) for node, a, b in intervals if low <= a <= last]
    repaired = [b - a for _, a, b in failures if b < FOREVER_US]
    down_us = sum(max(0, min(b, high) - max(a, low)) for _, a, b in intervals)
    counts = Counter(node for node, _, _ in failures)
    dates = len({a for _, a, _ in failures})
    return {
        "failures": len(failures),
        "dates": dates,
        "mtbf_s": to_s(high - low) / dates if failures else None,
        "node_mtbf_s": to_s(high - low) / len(failures) if failures else None,
        "mean_downtime_s": to_s(sum(repaired)) / len(repaired) if repaired else None,
        "downtime_share": down_us / (n_nodes * (high - low)) if high > low else 0.0,
        "nodes_hit": len(counts),
        "busiest_nodes": sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:n_busiest],
        "window_s": (to_s(low), to_s(high)),
    }
