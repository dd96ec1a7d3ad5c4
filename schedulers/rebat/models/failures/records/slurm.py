# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes from Slurm's node events (sacctmgr), and records of down intervals."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.core.node_events import Outages
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import events_of_outages
from rebat.models.failures.records.record import Lines, Record
from rebat.records.attempts import AttemptsOfNodes
from rebat.records.clock import TimeKind, check_same_clock, zone_of
from rebat.records.judge import open_note, stale_note
from rebat.records.node_events import DownRow, NodeEvents, read_node_events
from rebat.records.open_records import end_stale, stale_events


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
    used = spans_on([*rows, *absent_rows(options, lines)], names, origin_s, lines)
    return record_of(used, names, zone, lines, str(path))


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
    open_ends = [at not in stale and math.isinf(row.up_s) for at, row in enumerate(events.rows)]
    if open_ := [row.node for row, is_open in zip(events.rows, open_ends, strict=True) if is_open]:
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


class DownSpans(NamedTuple):
    """Down intervals of the nodes of a machine.

    ``rows`` are in seconds since the Unix epoch. ``outages`` begin at time 0, which is ``zero_s``.
    """

    zero_s: float
    rows: list[DownRow]
    outages: list[tuple[int, int, int]]


def spans_on(
    downs: Iterable[DownRow], names: Sequence[str], origin_s: float | None, lines: Lines
) -> DownSpans:
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
    return DownSpans(zero_s, [row for row, _ in used], [outage for _, outage in used])


def _drop(rows: Sequence[DownRow], reason: str, lines: Lines) -> None:
    if rows:
        lines.dropped[reason] += len(rows)
        lines.taken.subtract(row.kind for row in rows)


def record_of(
    used: DownSpans, names: Sequence[str], zone: str | None, lines: Lines, where: str
) -> Record:
    """Return the record with these down intervals. Its time 0 is stated in the zone ``zone``."""
    if not used.outages:
        raise InputError("contains no failures", where, "a node that is down")
    origin = datetime.fromtimestamp(0, UTC) + timedelta(seconds=used.zero_s)
    local = origin.astimezone(zone_of(zone, "--zone")).replace(tzinfo=None)
    return lines.record(Outages.of(used.outages), local, len(names), tuple(names))


def _us(at_s: float, zero_s: float) -> int:
    return FOREVER_US if math.isinf(at_s) else round((at_s - zero_s) * US_PER_S)
