# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes, from attempts of jobs under Slurm (sacct) that ended with NODE_FAIL."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from rebat.models.failures.records.record import Lines, Record
from rebat.models.failures.records.slurm import (
    DEFAULTS,
    EventOptions,
    absent_rows,
    check_clocks,
    record_of,
    spans_on,
)
from rebat.records.attempts import Indices, jobs_of
from rebat.records.clock import zone_of
from rebat.records.clusters import of_cluster
from rebat.records.hosts import names_of, sorted_names
from rebat.records.node_events import DownRow
from rebat.records.sacct import read_sacct
from rebat.records.table import Rows

NODE_FAIL = "NODE_FAIL"

TOGETHER_S = 5.0
"""Attempts that end with NODE_FAIL within this time (seconds) can have the same cause."""

SHORTEST_S = 1.0
"""Duration of an outage in seconds if the next attempt on the node starts in the same second."""

AMBIGUOUS = "NODE_FAIL attempts without a single common node"
USED = "NODE_FAIL attempt"


class FailedAttempt(NamedTuple):
    """An attempt that a failed node ended. Times are in seconds since the Unix epoch."""

    start_s: float
    end_s: float
    nodes: frozenset[str]


class AttemptRecords(NamedTuple):
    """Output of sacct: the attempts that started, and the attempts that a failed node ended."""

    table: Rows
    attempts: Indices
    failed: list[FailedAttempt]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all nodes in the output, in natural order."""
        return sorted_names(set(self.table.text("hosts").tolist()))


def read_node_fail(
    path: Path,
    zone: str | None = None,
    names: Sequence[str] = (),
    origin_s: float | None = None,
    options: EventOptions = DEFAULTS,
) -> Record:
    """Read failures from the output of sacct, using the attempts that ended with NODE_FAIL.

    The time of a failure is the end of the attempts, when Slurm noticed the failure. If attempts
    that end within `TOGETHER_S` have exactly one node in common, this node failed. Other attempts
    are dropped. A failed node is up again when the next attempt starts on it. For the parameters
    see `read_sacctmgr`.
    """
    lines = Lines()
    records = read_attempts(path, zone, lines, options)
    check_clocks([(str(path), records.table.clock.kinds)], zone, origin_s)
    names = names or records.names
    downs = downs_of(records.failed, records, lines)
    downs += absent_rows(options, lines)
    return record_of(spans_on(downs, names, origin_s, lines), names, zone, lines, str(path))


def read_attempts(
    path: Path, zone: str | None, lines: Lines, options: EventOptions = DEFAULTS
) -> AttemptRecords:
    """Return the attempts in the output of sacct.

    Count the attempts without NODE_FAIL as dropped.
    """
    table = of_cluster(read_sacct(path, zone_of(zone, "--zone"), options.strict), options.cluster)
    table.problems.check(len(table))
    attempts = jobs_of(table).attempts
    start_s, end_s = table.column("start"), table.column("end")
    states, hosts = table.text("state"), table.text("hosts")
    rows = [row for row in attempts.tolist() if states[row] == NODE_FAIL]
    lines.dropped["attempts that no node ended"] += len(attempts) - len(rows)
    failed = [
        FailedAttempt(float(start_s[row]), float(end_s[row]), names_of(hosts[row]))
        for row in rows
        if end_s[row] > 0
    ]
    if len(failed) < len(rows):
        lines.dropped["NODE_FAIL attempts without an end"] += len(rows) - len(failed)
    return AttemptRecords(table, attempts, failed)


def downs_of(
    failed: Iterable[FailedAttempt], records: AttemptRecords, lines: Lines, used: str = USED
) -> list[DownRow]:
    """Return the down intervals inferred from failed attempts, sorted by time.

    Attempts whose failed node is unknown are counted as dropped. The other attempts are counted as
    used. ``used`` is the name of this count.
    """
    identified = []
    for node, at_s, count in _culprits(failed):
        if node is None:
            lines.dropped[AMBIGUOUS] += count
        else:
            lines.taken[used] += count
            identified.append((node, at_s))
    starts_s = _starts_s(records, {node for node, _ in identified})
    downs = []
    for node, at_s in identified:
        up_s = min((start_s for start_s in starts_s[node] if start_s >= at_s), default=math.inf)
        downs.append(DownRow(node, at_s, max(up_s, at_s + SHORTEST_S), used, ""))
    return downs


def _culprits(failed: Iterable[FailedAttempt]) -> list[tuple[str | None, float, int]]:
    """Return the failed node, the time and the number of attempts of each failure.

    The node is None if it is unknown.
    """
    groups: list[list[FailedAttempt]] = []
    for attempt in sorted(failed, key=lambda attempt: attempt.end_s):
        if groups and attempt.end_s - groups[-1][0].end_s <= TOGETHER_S:
            groups[-1].append(attempt)
        else:
            groups.append([attempt])
    culprits: list[tuple[str | None, float, int]] = []
    for group in groups:
        common = reduce(frozenset.__and__, (attempt.nodes for attempt in group))
        node = next(iter(common)) if len(common) == 1 else None
        culprits.append((node, group[0].end_s, len(group)))
    return culprits


def _starts_s(records: AttemptRecords, nodes: AbstractSet[str]) -> defaultdict[str, list[float]]:
    start_s, hosts = records.table.column("start"), records.table.text("hosts")
    starts: defaultdict[str, list[float]] = defaultdict(list)
    for row in records.attempts.tolist():
        for node in names_of(hosts[row]) & nodes:
            starts[node].append(float(start_s[row]))
    return starts
