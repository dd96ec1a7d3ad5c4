# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes from both records of Slurm: node events, and attempts that ended by NODE_FAIL.

Slurm writes no event if a node is up again before Slurm notices the failure. The jobs on this node
then end with NODE_FAIL. The two records are merged for each node, so that a failure in both records
counts once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rebat.models.failures.records.node_fail import (
    TOGETHER_S,
    FailedAttempt,
    downs_of,
    read_attempts,
)
from rebat.models.failures.records.record import Lines, Record
from rebat.models.failures.records.slurm import (
    DEFAULTS,
    EventOptions,
    absent_rows,
    check_clocks,
    counted_events,
    record_of,
    spans_on,
    without_stale,
)
from rebat.records.attempts import AttemptsOfNodes, merged_downs
from rebat.records.hosts import sorted_names
from rebat.records.node_events import DownRow
from rebat.records.open_records import open_nodes

SLURMD_TIMEOUT_S = 300.0
"""Slurm's default of SlurmdTimeout, in seconds."""

WITH_EVENT, WITHOUT_EVENT = "NODE_FAIL attempt with an event", "NODE_FAIL attempt without an event"
SOURCES = ONLY_EVENTS, BOTH, ONLY_ATTEMPTS = "only in events", "in both", "only in attempts"
"""The records that contain an outage: the node events, the attempts, or both."""


def cuts(down: DownRow, attempt: FailedAttempt) -> bool:
    """Return whether a down interval explains why an attempt failed.

    The interval must overlap the attempt, or begin soon after the attempt ends.
    """
    return attempt.start_s < down.up_s and down.down_s <= attempt.end_s + TOGETHER_S


class DownTimes:
    """The down intervals of each node, sorted by time; overlapping intervals are joined."""

    def __init__(self, rows: Iterable[DownRow]) -> None:
        self._rows: defaultdict[str, list[DownRow]] = defaultdict(list)
        for row in merged_downs(rows):
            self._rows[row.node].append(row)

    def explain(self, attempt: FailedAttempt) -> bool:
        """Return whether a node of an attempt was down during it, or soon after its end."""
        return any(self._cuts(node, attempt) for node in attempt.nodes)

    def _cuts(self, node: str, attempt: FailedAttempt) -> bool:
        rows = self._rows.get(node, [])
        first = bisect_right(rows, attempt.start_s, key=lambda row: row.up_s)
        return first < len(rows) and cuts(rows[first], attempt)


def read_merged(
    events: Path,
    attempts: Path,
    zone: str | None = None,
    names: Sequence[str] = (),
    origin_s: float | None = None,
    slurmd_timeout_s: float = SLURMD_TIMEOUT_S,
    options: EventOptions = DEFAULTS,
) -> Record:
    """Read Slurm's node events, and add failures that only attempts show.

    An event explains an attempt that ended with NODE_FAIL if a node of the attempt was down during
    the attempt or within `TOGETHER_S` after its end. Failures are inferred from the other attempts
    as in `node_fail.read_node_fail`. A node that failed in this way is up again when the next
    attempt starts on it, and at the latest after ``slurmd_timeout_s``, because a longer outage
    would have an event.

    Parameters
    ----------
    events : Path
        Output of ``sacctmgr -P show event``.
    attempts : Path
        Output of ``sacct -P -X -D``.
    zone, names, origin_s
        See `slurm.read_sacctmgr`.
    slurmd_timeout_s : float
        SlurmdTimeout of the cluster in seconds.
    """
    lines = Lines()
    node_events = counted_events(events, zone, lines, options)
    records = read_attempts(attempts, zone, lines, options)
    clocks = [(str(events), node_events.kinds), (str(attempts), records.table.clock.kinds)]
    check_clocks(clocks, zone, origin_s)
    of_nodes = AttemptsOfNodes(records.table, records.attempts, open_nodes(node_events.rows))
    rows = without_stale(node_events, of_nodes, lines, options.stale)
    down = DownTimes(rows)
    unexplained = [attempt for attempt in records.failed if not down.explain(attempt)]
    n_explained = len(records.failed) - len(unexplained)
    lines.taken += Counter({WITH_EVENT: n_explained})
    added = [
        row._replace(up_s=min(row.up_s, row.down_s + slurmd_timeout_s))
        for row in downs_of(unexplained, records, lines, WITHOUT_EVENT)
    ]
    names = names or sorted_names([*node_events.names, *records.names])
    absent = absent_rows(options, lines)
    used = spans_on([*rows, *added, *absent], names, origin_s, lines)
    record = record_of(used, names, zone, lines, str(events))
    return msgspec.structs.replace(record, sources=_sources(used.rows, records.failed))


def _sources(rows: Iterable[DownRow], failed: Iterable[FailedAttempt]) -> Counter[str]:
    """Return the number of outages for each combination of records that contain them."""
    rows_of: defaultdict[str, list[DownRow]] = defaultdict(list)
    for row in rows:
        rows_of[row.node].append(row)
    attempts_of: defaultdict[str, list[FailedAttempt]] = defaultdict(list)
    for attempt in failed:
        for node in attempt.nodes & rows_of.keys():
            attempts_of[node].append(attempt)
    counts = Counter(
        _source(outage, node_rows, attempts_of[node])
        for node, node_rows in rows_of.items()
        for outage in merged_downs(node_rows)
    )
    return Counter({source: counts[source] for source in SOURCES})


def _source(outage: DownRow, rows: list[DownRow], attempts: list[FailedAttempt]) -> str:
    """Return which records contain an outage: one of `SOURCES`.

    ``rows`` contains the down intervals of the node. Intervals that begin during the outage are
    part of the outage.
    """
    kinds = {row.kind for row in rows if outage.down_s <= row.down_s <= outage.up_s}
    if kinds == {WITHOUT_EVENT}:
        return ONLY_ATTEMPTS
    return BOTH if any(cuts(outage, attempt) for attempt in attempts) else ONLY_EVENTS
