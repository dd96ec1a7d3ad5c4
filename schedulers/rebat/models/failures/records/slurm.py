# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes in Slurm's records: events of sacctmgr, and attempts that nodes ended."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from zoneinfo import ZoneInfo

from rebat.accounting.attempts import Indices, jobs_of
from rebat.accounting.hosts import names_of, sorted_names
from rebat.accounting.node_events import DownRow, read_node_events
from rebat.accounting.sacct import read_sacct
from rebat.accounting.table import AttemptTable
from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.records.record import Lines, Record
from rebat.models.failures.spans import Span, events_of_spans

TOGETHER_S = 5.0
"""Attempts that end within this time with NODE_FAIL can have the same cause."""


def read_sacctmgr(
    path: Path, zone: str | None = None, names: Sequence[str] = (), origin_s: float | None = None
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

    Raises
    ------
    InputError
        If the file is invalid or has no failure.
    """
    events = read_node_events(path, _zone(zone))
    lines = Lines()
    lines.dropped += events.dropped
    for note in events.notes:
        lines.dropped[note] += 1
    downs = []
    for row in events.rows:
        lines.taken[row.kind] += 1
        downs.append(row)
    return _record(downs, names or events.names, zone, origin_s, lines, str(path))


def read_node_fail(
    path: Path, zone: str | None = None, names: Sequence[str] = (), origin_s: float | None = None
) -> Record:
    """Read failures from the attempts in a dump of sacct that ended with NODE_FAIL.

    A failure is at the end of the attempts, when Slurm noticed it. Attempts that end together and
    have a single common node identify the node; others are dropped. The node is up again when the
    next attempt starts on it. For the parameters see `read_sacctmgr`.
    """
    table = read_sacct(path, _zone(zone))
    attempts = jobs_of(table).attempts
    lines = Lines()
    lines.dropped["attempts that no node ended"] = sum(
        table.texts["state"][row] != "NODE_FAIL" for row in attempts
    )
    failed = [row for row in attempts.tolist() if table.texts["state"][row] == "NODE_FAIL"]
    downs = []
    for node, at_s, count in _culprits(table, failed):
        if node is None:
            lines.dropped["NODE_FAIL attempts without a single common node"] += count
            continue
        lines.taken["NODE_FAIL attempt"] += count
        up_s = _next_start_s(table, attempts, node, at_s)
        downs.append(DownRow(node, at_s, up_s, "NODE_FAIL", ""))
    return _record(downs, names or _all_names(table), zone, origin_s, lines, str(path))


def _all_names(table: AttemptTable) -> tuple[str, ...]:
    return sorted_names({text for text in table.texts["hosts"] if text})


def _culprits(table: AttemptTable, failed: list[int]) -> list[tuple[str | None, float, int]]:
    """Return the node, time and number of attempts of each failure; None: not identified."""
    end_s = table.column("end_s")
    groups: list[list[int]] = []
    for row in sorted((row for row in failed if end_s[row] > 0), key=lambda row: end_s[row]):
        if groups and end_s[row] - end_s[groups[-1][0]] <= TOGETHER_S:
            groups[-1].append(row)
        else:
            groups.append([row])
    culprits: list[tuple[str | None, float, int]] = []
    for group in groups:
        common = reduce(frozenset.__and__, (names_of(table.texts["hosts"][row]) for row in group))
        node = next(iter(common)) if len(common) == 1 else None
        culprits.append((node, float(end_s[group[0]]), len(group)))
    return culprits


def _next_start_s(table: AttemptTable, attempts: Indices, node: str, at_s: float) -> float:
    start_s = table.column("start_s")[attempts]
    later = attempts[start_s >= at_s]
    starts = table.column("start_s")
    for row in sorted(later.tolist(), key=lambda row: starts[row]):
        if node in names_of(table.texts["hosts"][row]):
            return float(starts[row])
    return math.inf


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        expected = "for example UTC or Europe/Paris"
        raise InputError(f"unknown time zone {name!r}", "--zone", expected) from None


def machine_events(
    downs: Iterable[DownRow], names: Sequence[str], origin_s: float
) -> list[MachineEvent]:
    """Return the events of down intervals on a machine of named nodes, from time 0 on.

    The events are those of `read_sacctmgr`. Intervals of other nodes are left out.
    """
    numbers = {name: number for number, name in enumerate(names)}
    spans = (_span(row, numbers, origin_s) for row in downs if row.node in numbers)
    return events_of_spans(span for span in spans if span.up_us > span.down_us)


def _span(row: DownRow, numbers: Mapping[str, int], zero_s: float) -> Span:
    """Return a down interval from time 0 on; empty if it ended before."""
    down_us = max(_us(row.down_s, zero_s), 0)
    return Span(numbers[row.node], down_us, max(_us(row.up_s, zero_s), down_us))


def _record(
    downs: list[DownRow], names: Sequence[str], zone: str | None, origin_s: float | None,
    lines: Lines, where: str,
) -> Record:  # fmt: skip
    numbers = {name: number for number, name in enumerate(names)}
    by_name: defaultdict[bool, list[DownRow]] = defaultdict(list)
    for row in downs:
        by_name[row.node in numbers].append(row)
    if by_name[False]:
        lines.dropped["of nodes that the workload does not have"] += len(by_name[False])
        lines.taken.subtract(row.kind for row in by_name[False])
    begin_s = min((row.down_s for row in by_name[True]), default=0.0)
    zero_s = begin_s if origin_s is None else origin_s
    outages = [(row, _span(row, numbers, zero_s)) for row in by_name[True]]
    spans = [span for _, span in outages if span.up_us > span.down_us]
    empty = [row for row, span in outages if span.up_us == span.down_us]
    if empty:
        lines.dropped["zero duration, or before time 0"] += len(empty)
        lines.taken.subtract(row.kind for row in empty)
    lines.taken = +lines.taken
    if not spans:
        raise InputError("contains no failures", where, "a node that is down")
    origin = datetime.fromtimestamp(0, UTC) + timedelta(seconds=zero_s)
    local = origin.astimezone(_zone(zone)).replace(tzinfo=None)
    return lines.record(spans, local, len(names), tuple(names))


def _us(at_s: float, zero_s: float) -> int:
    return FOREVER_US if math.isinf(at_s) else round((at_s - zero_s) * US_PER_S)
