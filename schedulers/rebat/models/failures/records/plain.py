# SPDX-License-Identifier: Apache-2.0
"""Failures as a plain table, ``node,down,up``: reader and writer.

Times are either all in seconds (from time 0, or Unix times) or all ISO dates
(``2024-03-01T12:30``). If ``up`` is empty, the node stayed down. Nodes are numbers from 0,
names, or lists of names.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.csv_text import csv_line
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.core.units import FOREVER_US, MAX_SECONDS, US_PER_S, to_s, to_us
from rebat.models.failures.events import MAX_NODE, MachineEvent
from rebat.models.failures.records.record import Lines, Record, midnight, opened, us_between
from rebat.models.failures.spans import Span, spans_of
from rebat.records.clock import EARLIEST_EPOCH_S, zone_of
from rebat.records.detect import PLAIN_COLUMNS
from rebat.records.hosts import check_list, expanded
from rebat.records.problems import Problems

COLUMNS = PLAIN_COLUMNS

Date = int | datetime
"""Microseconds since time 0, or a date. Dates with a zone are converted to UTC."""


class _Row(NamedTuple):
    node: str
    down: Date
    up: Date | None


def read_plain(path: Path, strict: bool = False, zone: str | None = None) -> Record:
    """Read failures from a table with the columns ``node``, ``down`` and ``up``.

    Seconds count from time 0 of the events. Seconds after 1985 count from the Unix epoch. With Unix
    times or ISO dates, time 0 is midnight of the day of the first failure. If any node is not a
    number, all nodes are names or lists of names. Names are numbered in order of appearance.

    Parameters
    ----------
    path : Path
        Plain, .gz or .xz.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.
    zone : str, optional
        Time zone of the midnight that is time 0 for Unix times (default: UTC).

    Raises
    ------
    InputError
        If columns are missing, if more than a tenth of the rows is invalid (the error names the
        first), or if the table has no failures.
    """
    lines, problems = Lines(), Problems(str(path), strict)
    with opened(path) as text:
        try:
            rows = list(_rows(csv.DictReader(text), lines, problems))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path)) from None
    problems.check(lines.taken.total() + lines.dropped.total())
    lines.dropped += problems.reasons()
    if not rows:
        raise InputError("contains no failures", str(path), "one failure per line: node,down,up")
    rows, zero = _from_zero(rows, zone)
    names = _names(rows)
    ids = {name: number for number, name in enumerate(names)}
    nodes = [expanded(row.node) if names else [row.node] for row in rows]
    return lines.record(
        [
            Span(ids[node] if names else int(node), _us(row.down, zero), _us(row.up, zero))
            for row, members in zip(rows, nodes, strict=True)
            for node in members
        ],
        zero.replace(tzinfo=None) if zero else None,
        len(names) or None,
        names,
    )


def _rows(rows: csv.DictReader[str], lines: Lines, problems: Problems) -> Iterator[_Row]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        expected = f"the columns {', '.join(COLUMNS)} in the first line"
        raise InputError(f"has no column {missing[0]!r}", f"{problems.where}:1", expected)
    kind = ""
    for raw in rows:
        try:
            row = _row(raw)
            if kind not in ("", _date_format(row.down)):
                raise _mixed_formats()
        except InputError as error:
            problems.add(rows.line_num, error.problem, error.expected, error.expected or "")
            continue
        kind = _date_format(row.down)
        if row.up == row.down:
            lines.dropped["zero duration"] += 1
        else:
            lines.taken["node"] += 1
            yield row


def _row(raw: dict[str, Any]) -> _Row:
    node, down, up = ((raw[name] or "").strip() for name in COLUMNS)
    if not node:
        raise InputError("node is empty", expected="a number or a name")
    if "[" in node or "," in node:
        check_list(node)
    row = _Row(node, _date(down, "down"), _date(up, "up") if up else None)
    if row.up is not None:
        if _date_format(row.up) != _date_format(row.down):
            raise _mixed_formats()
        if row.up < row.down:  # type: ignore[operator]
            raise InputError("the node is up before it is down", expected="up after down")
    return row


def _from_zero(rows: list[_Row], zone: str | None) -> tuple[list[_Row], datetime | None]:
    """Return the rows and time 0. Unix times become dates in a time zone."""
    first = min(row.down for row in rows)
    if isinstance(first, datetime):
        return rows, midnight(first)
    if first < EARLIEST_EPOCH_S * US_PER_S:
        return rows, None
    tz = zone_of(zone, "--zone")
    epoch = datetime.fromtimestamp(0, UTC)
    zero = midnight((epoch + timedelta(microseconds=first)).astimezone(tz))
    zero_us = us_between(epoch, zero.astimezone(UTC))
    shifted = [
        row._replace(
            down=int(row.down) - zero_us,  # type: ignore[arg-type]
            up=None if row.up is None else int(row.up) - zero_us,  # type: ignore[arg-type]
        )
        for row in rows
    ]
    return shifted, zero


def _mixed_formats() -> InputError:
    expected = "only seconds, only dates without a zone, or only dates with one"
    return InputError("dates have mixed formats", expected=expected)


def _date_format(date: Date) -> str:
    if isinstance(date, int):
        return "seconds"
    return "zone" if date.tzinfo else "date"


def _date(text: str, name: str) -> Date:
    try:
        return _seconds(float(text), name, text)
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
        return date.astimezone(UTC) if date.tzinfo else date
    except (ValueError, OverflowError):
        expected = "seconds, or a date like 2024-03-01T12:30"
        raise InputError(f"{name} is {text[:40]!r}", expected=expected) from None


def _seconds(value: float, name: str, text: str) -> int:
    if not (math.isfinite(value) and 0 <= value <= MAX_SECONDS):
        raise InputError(f"{name} is {text[:40]!r}", expected=f"seconds, 0 to {MAX_SECONDS:.0e}")
    return to_us(value)


def _us(date: Date | None, zero: datetime | None) -> int:
    if date is None:
        return FOREVER_US
    if isinstance(date, int):
        return date
    assert zero is not None
    return us_between(zero, date)


def _names(rows: Iterable[_Row]) -> tuple[str, ...]:
    """Return the node names in order of appearance; no names if all nodes are numbers."""
    nodes = dict.fromkeys(row.node for row in rows)
    if all(name.isascii() and name.isdecimal() for name in nodes):
        longest = max(len(name.lstrip("0")) for name in nodes)
        largest = max(nodes, key=int) if longest < 20 else max(nodes, key=len)
        if longest >= 20 or int(largest) > MAX_NODE:
            raise InputError(f"node {largest[:20]} is too large", expected=f"0 to {MAX_NODE}")
        return ()
    return tuple(dict.fromkeys(name for node in nodes for name in expanded(node)))


def write_plain(events: Iterable[MachineEvent], path: Path) -> int:
    """Write events as a table, one line per outage of a node, with times in seconds.

    Returns
    -------
    int
        Number of lines.
    """
    spans = sorted(spans_of(events), key=lambda span: (span.down_us, span.node))
    lines = [f"{s.node},{_text(s.down_us)},{_text(s.up_us)}\n" for s in spans]
    write_text(path, "node,down,up\n" + "".join(lines))
    return len(lines)


def _text(at_us: int) -> str:
    return "" if at_us == FOREVER_US else repr(to_s(at_us)).removesuffix(".0")


def write_names(names: Iterable[str], path: Path) -> None:
    """Write the table of node numbers and names: ``node,name``."""
    rows = [("node", "name"), *enumerate(names)]
    write_text(path, "".join(map(csv_line, rows)))
