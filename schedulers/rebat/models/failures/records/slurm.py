# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes from Slurm's node events (sacctmgr), from attempts (sacct), or from both.

Slurm writes no event if a node is up again before Slurm notices the failure. The jobs on this node
then end with NODE_FAIL. The two records are merged for each node, so that a failure in both records
counts once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.core.node_events import Outages
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import events_of_outages
from rebat.models.failures.records.record import Lines, Record
from rebat.records.attempts import AttemptsOfNodes, Indices, jobs_of, merged_downs
from rebat.records.clock import TimeKind, check_same_clock, zone_of
from rebat.records.hosts import expanded, names_of, sorted_names
from rebat.records.judge import of_cluster, open_note, stale_note
from rebat.records.node_events import DownRow, NodeEvents, read_node_events
from rebat.records.open_records import end_stale, open_nodes, stale_events
from rebat.records.sacct import read_sacct
from rebat.records.table import Rows


class EventOptions(NamedTuple):
    """Options of records of Slurm: see `rebat.models.failures.records.formats.ReaderOptions`."""

    strict: bool = False
    cluster: str | None = None
    stale: str = "next"
    absent: tuple[DownRow, ...] = ()


DEFAULTS = EventOptions()


def read_sacctmgr(
    path: Path,
    zone: str | None = None,
    names: Sequence[str] = (),
    origin_s: float | None = None,
    options: EventOptions = DEFAULTS,
) -> Record:
    """Read the output of ``sacctmgr -P show event``.

    Parameters
    ----------
    path : Path
        Plain or .gz.
    zone : str, optional
        Time zone of local times (default: UTC).
    names : sequence of str, optional
        Names of nodes 0, 1, ... (default: the names in the file, in natural order).
    origin_s : float, optional
        Time 0, in seconds since the Unix epoch (default: the first failure).
    """
    lines = Lines()
    events = counted_events(path, zone, lines, options)
    check_clocks([(str(path), events.kinds)], zone, origin_s)
    names = names or events.names
    rows = without_stale(events, None, lines, options.stale)
    used = used_downs([*rows, *absent_rows(options, lines)], names, origin_s, lines)
    return record_of_downs(used, names, zone, lines, str(path))


def check_clocks(
    files: list[tuple[str, set[TimeKind]]], zone: str | None, origin_s: float | None
) -> None:
    """Check that times of files, and of a workload with time 0 ``origin_s``, can be compared."""
    workload: list[tuple[str, set[TimeKind]]] = [("the workload", {"epoch"})]
    check_same_clock(files + (workload if origin_s is not None else []), zone)


def absent_rows(options: EventOptions, lines: Lines) -> tuple[DownRow, ...]:
    """Return the times in which nodes were not in service, and count them as used."""
    lines.taken += Counter(row.kind for row in options.absent)
    return options.absent


def without_stale(
    events: NodeEvents, of_nodes: AttemptsOfNodes | None, lines: Lines, how: str
) -> list[DownRow]:
    """Return the down intervals after a change of stale events, with a finding about them."""
    stale = stale_events(events.rows, of_nodes)
    if stale:
        nodes = [event.node for event in stale.values()]
        lines.notes.append(stale_note(nodes, len(stale), how))
    if how == "drop":
        _drop([events.rows[at] for at in stale], "stale events (--stale drop)", lines)
    rows = end_stale(events.rows, stale, how)
    others = (row for at, row in enumerate(events.rows) if at not in stale)
    if open_ := [row.node for row in others if math.isinf(row.up_s)]:
        lines.notes.append(open_note(open_, of_nodes is not None))
    return rows


def counted_events(
    path: Path, zone: str | None, lines: Lines, options: EventOptions = DEFAULTS
) -> NodeEvents:
    """Read Slurm's node events, and count the used and the dropped rows."""
    tz = zone_of(zone, "--zone")
    events = read_node_events(path, tz, options.strict, options.cluster)
    lines.dropped += events.dropped
    lines.dropped += events.invalid
    lines.taken += Counter(row.kind for row in events.rows)
    return events


def machine_events(
    downs: Iterable[DownRow], names: Sequence[str], origin_s: float
) -> list[MachineEvent]:
    """Return down intervals as failures and repairs of a machine of named nodes.

    The result contains the same events as that of `read_sacctmgr`. Intervals of nodes that are not
    in ``names``, and intervals that end before time 0, are left out.
    """
    numbers = {name: number for number, name in enumerate(names)}
    rows = (_row(down, numbers, origin_s) for down in downs if down.node in numbers)
    return events_of_outages(Outages.of(row for row in rows if row[2] > row[1]).joined())


def _row(row: DownRow, numbers: Mapping[str, int], zero_s: float) -> tuple[int, int, int]:
    """Return the node, the start and the end (us) of a down interval.

    If it ended before time 0, its length is 0.
    """
    down_us = max(_us(row.down_s, zero_s), 0)
    return numbers[row.node], down_us, max(_us(row.up_s, zero_s), down_us)


class UsedDowns(NamedTuple):
    """Down intervals of the nodes of a machine.

    ``rows`` are in seconds since the Unix epoch. ``outages`` begin at time 0, which is ``zero_s``.
    """

    zero_s: float
    rows: list[DownRow]
    outages: list[tuple[int, int, int]]


def used_downs(
    downs: Iterable[DownRow], names: Sequence[str], origin_s: float | None, lines: Lines
) -> UsedDowns:
    """Return down intervals on a machine of named nodes as outages.

    Intervals of nodes that are not in ``names`` are counted as dropped. Time 0 is ``origin_s``, or
    the beginning of the first interval.
    """
    numbers = {name: number for number, name in enumerate(names)}
    by_name: defaultdict[bool, list[DownRow]] = defaultdict(list)
    for row in downs:
        by_name[row.node in numbers].append(row)
    _drop(by_name[False], "of nodes that the workload does not have", lines)
    begin_s = min((row.down_s for row in by_name[True]), default=0.0)
    zero_s = begin_s if origin_s is None else origin_s
    outages = [(row, _row(row, numbers, zero_s)) for row in by_name[True]]
    used = [(row, outage) for row, outage in outages if outage[2] > outage[1]]
    empty = [row for row, outage in outages if outage[2] == outage[1]]
    _drop(empty, "zero duration, or before time 0", lines)
    lines.taken = +lines.taken
    return UsedDowns(zero_s, [row for row, _ in used], [outage for _, outage in used])


def _drop(rows: Sequence[DownRow], reason: str, lines: Lines) -> None:
    if rows:
        lines.dropped[reason] += len(rows)
        lines.taken.subtract(row.kind for row in rows)


def record_of_downs(
    used: UsedDowns, names: Sequence[str], zone: str | None, lines: Lines, where: str
) -> Record:
    """Return the record with these down intervals. Its time 0 is stated in the zone ``zone``."""
    if not used.outages:
        raise lines.without_failures(where, "a node that is down")
    origin = datetime.fromtimestamp(0, UTC) + timedelta(seconds=used.zero_s)
    local = origin.astimezone(zone_of(zone, "--zone")).replace(tzinfo=None)
    return lines.record(Outages.of(used.outages), local, len(names), tuple(names))


def record_on(
    rows: Rows,
    names: Sequence[str],
    origin_s: float,
    zone: str | None,
    absent: Sequence[DownRow] = (),
) -> Record:
    """Return a table of outages as a record on a workload's machine of named nodes.

    Seconds that are no Unix times count from time 0 of the workload, ``origin_s``. Numbers of nodes
    are those of the workload, unless they are names of its nodes.
    """
    lines = Lines()
    lines.dropped += rows.problems.reasons() + rows.dropped
    check_clocks([(rows.where, rows.clock.kinds)], zone, origin_s)
    shift_s = 0.0 if "zero_s" in rows.facts else origin_s
    columns = (rows.column(name) + shift_s for name in ("down", "up"))
    downs = [
        DownRow(_name_of(node, names), down_s, up_s, "node", "")
        for hosts, down_s, up_s in zip(rows.text("hosts"), *columns, strict=True)
        for node in expanded(hosts)
    ]
    lines.taken += Counter(row.kind for row in (*downs, *absent))
    used = used_downs([*downs, *absent], names, origin_s, lines)
    return record_of_downs(used, names, zone, lines, rows.where)


def _name_of(node: str, names: Sequence[str]) -> str:
    numbered = node not in names and node.isdecimal() and int(node) < len(names)
    return names[int(node)] if numbered else node


def _us(at_s: float, zero_s: float) -> int:
    return FOREVER_US if math.isinf(at_s) else round((at_s - zero_s) * US_PER_S)


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
    return record_of_downs(used_downs(downs, names, origin_s, lines), names, zone, lines, str(path))


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
    used = used_downs([*rows, *added, *absent], names, origin_s, lines)
    record = record_of_downs(used, names, zone, lines, str(events))
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
