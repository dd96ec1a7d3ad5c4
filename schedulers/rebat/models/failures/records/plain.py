# SPDX-License-Identifier: Apache-2.0
"""Failures as a plain table, ``node,down,up``: read, and written.

Dates are seconds, or ISO dates (``2024-03-01T12:30``), all in one way. An empty ``up`` stands for
a node that never came back. Nodes are numbers from 0, or names.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.csv_text import csv_line
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.models.failures.events import MAX_NODE, MachineEvent
from rebat.models.failures.records.record import Lines, Record, midnight, opened, us_between
from rebat.models.failures.spans import Span, spans_of

COLUMNS = ("node", "down", "up")

Date = int | datetime
"""Microseconds from date 0, or a date; one that has a zone is told in UTC."""


class _Row(NamedTuple):
    node: str
    down: Date
    up: Date | None


def read_plain(path: Path) -> Record:
    """Failures of a table with the columns ``node``, ``down`` and ``up``, and any others.

    Seconds count from date 0 of the events. Of ISO dates, date 0 is midnight of the day of the
    first failure. Where a node is no number, all are names, numbered as they appear.

    Parameters
    ----------
    path : Path
        Plain, .gz or .xz.

    Raises
    ------
    InputError
        With file and line: columns that miss, dates that cannot be read, in two ways, or in the
        wrong order. For a table without a failure.
    """
    lines = Lines()
    with opened(path) as text:
        try:
            found = list(_rows(csv.DictReader(text), str(path), lines))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path)) from None
    if not found:
        raise InputError("nothing fails", str(path), "a failure on a line: node,down,up")
    zero = _zero(found)
    names = _names(found)
    ids = {name: number for number, name in enumerate(names)}
    return lines.record(
        [
            Span(ids[row.node] if names else int(row.node), _us(row.down, zero), _us(row.up, zero))
            for row in found
        ],
        zero.replace(tzinfo=None) if zero else None,
        len(names) or None,
        names,
    )


def _rows(rows: csv.DictReader[str], where: str, lines: Lines) -> Iterator[_Row]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        expected = f"the columns {', '.join(COLUMNS)} in the first line"
        raise InputError(f"no column {missing[0]!r}", f"{where}:1", expected)
    kind = ""
    for raw in rows:
        try:
            row = _row(raw)
            if kind not in ("", _way(row.down)):
                raise _two_ways()
        except InputError as error:
            raise error.at(f"{where}:{rows.line_num}") from None
        kind = _way(row.down)
        if row.up == row.down:
            lines.dropped["back at once"] += 1
        else:
            lines.taken["node"] += 1
            yield row


def _row(raw: dict[str, Any]) -> _Row:
    node, down, up = ((raw[name] or "").strip() for name in COLUMNS)
    if not node:
        raise InputError("node is empty", expected="a number or a name")
    row = _Row(node, _date(down, "down"), _date(up, "up") if up else None)
    if row.up is not None:
        if _way(row.up) != _way(row.down):
            raise _two_ways()
        if row.up < row.down:  # type: ignore[operator]
            raise InputError("is up before it is down", expected="node,down,up")
    return row


def _two_ways() -> InputError:
    expected = "all seconds, all dates without a zone, or all with one"
    return InputError("dates are told in two ways", expected=expected)


def _way(date: Date) -> str:
    """How a date is told."""
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


def _zero(found: Iterable[_Row]) -> datetime | None:
    dates = [row.down for row in found if isinstance(row.down, datetime)]
    return midnight(min(dates)) if dates else None


def _us(date: Date | None, zero: datetime | None) -> int:
    if date is None:
        return FOREVER_US
    if isinstance(date, int):
        return date
    assert zero is not None
    return us_between(zero, date)


def _names(found: Iterable[_Row]) -> tuple[str, ...]:
    """The nodes as they appear; none where all are numbers."""
    nodes = dict.fromkeys(row.node for row in found)
    if all(name.isascii() and name.isdecimal() for name in nodes):
        longest = max(len(name.lstrip("0")) for name in nodes)
        largest = max(nodes, key=int) if longest < 20 else max(nodes, key=len)
        if longest >= 20 or int(largest) > MAX_NODE:
            raise InputError(f"node {largest[:20]} is too large", expected=f"0 to {MAX_NODE}")
        return ()
    return tuple(nodes)


def write_plain(events: Iterable[MachineEvent], path: Path) -> int:
    """Write events as such a table, an outage of a node on a line, dates in seconds.

    Returns
    -------
    int
        How many lines.
    """
    spans = sorted(spans_of(events), key=lambda span: (span.down_us, span.node))
    lines = [f"{s.node},{_text(s.down_us)},{_text(s.up_us)}\n" for s in spans]
    write_text(path, "node,down,up\n" + "".join(lines))
    return len(lines)


def _text(at_us: int) -> str:
    return "" if at_us == FOREVER_US else repr(to_s(at_us)).removesuffix(".0")


def write_names(names: Iterable[str], path: Path) -> None:
    """Write which number stands for which name: ``node,name``."""
    rows = [("node", "name"), *enumerate(names)]
    write_text(path, "".join(map(csv_line, rows)))
