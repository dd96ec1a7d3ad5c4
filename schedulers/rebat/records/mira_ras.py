# SPDX-License-Identifier: Apache-2.0
"""Mira's fatal events of 2013 to 2018, and its maintenance periods.

Source: the filtered log of fatal RAS events that LogAider (UChicago Argonne) publishes. Its
locations name a rack, a midplane, a node board or a compute card of a Blue Gene/Q.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rebat.core.errors import InputError
from rebat.core.numbers import exactly
from rebat.records.mapping import CsvLayout, Fields, TextColumn, TimeColumn, ValueColumn
from rebat.records.outages import read_outages
from rebat.records.sources import blocks_of, csv_blocks, opened
from rebat.records.table import Problems, Rows

COMPUTE = re.compile(
    r"R(?P<rack>[0-2][0-9A-F])"
    r"(?:-M(?P<midplane>[01])"
    r"(?:-N(?P<board>0\d|1[0-5])"
    r"(?:-J(?P<card>[0-2]\d|3[01])(?:-C\d\d)?|-[DOU]\d\d)?"  # cores of a card; power and links
    r"|-S)?"  # a midplane's service card
    r"|-[KL]|-B\d(?:-P\d)?)?\Z"  # a rack's clock card, coolant monitor, power supplies
)
"""A location in a rack of compute nodes."""

PARTS = ("card", "board", "midplane", "rack")
"""The parts of the machine, from small to large."""

_IO = re.compile(r"Q[0-9A-Z]{2}(?:-[A-Z]\d*)*\Z")
_FIELDS = 12
_SEVERITY, _START, _END, _LOCATION = 4, 7, 8, 11


def _kind(location: str) -> str:
    """Return the part that an event takes down, or why it takes down no compute node."""
    if location in ("", "NULL"):
        return "no location"
    if _IO.match(location):
        return "I/O drawers"
    match = COMPUTE.match(location)
    if not match:
        expected = "Rrc[-Mm[-Nnn[-Jjj]]], Q.., or none"
        raise InputError(f"invalid location {location[:40]!r}", expected=expected)
    return next((part for part in PARTS[:-1] if match[part] is not None), "rack")


FIELDS: Fields = {
    "kind": (ValueColumn(column="LOCATION", convert=_kind, default=""),),
    "location": (TextColumn(column="PLACE"),),
    "down": (TimeColumn(column="START"),),
    "up": (TimeColumn(column="END"),),
}

PERIODS: Fields = {"down": (TimeColumn(column="START"),), "up": (TimeColumn(column="END"),)}


def read_mira_ras(path: Path, strict: bool = False) -> Rows:
    """Read fatal events. Indented lines are messages of the previous event and are ignored.

    Parameters
    ----------
    path : Path
        The log, plain, .gz or .xz.
    strict : bool
        Whether the first invalid event is an error. Otherwise invalid events are dropped and
        counted.
    """
    problems = Problems(str(path), strict)
    with opened(path) as text:
        return read_outages(blocks_of(_events(text, problems)), FIELDS, problems, ends=True)


def _events(lines: Iterable[str], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the fields of each event.

    Raise InputError if their number differs from the number in line 1.
    """
    stated, number, count = -1, 0, 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            stated = _stated_count(line, f"{problems.where}:1")
        elif line.strip() and not line[0].isspace():
            count += 1
            fields = line.rstrip("\r\n").split(" ")
            if fields[0] != "event" or len(fields) < _FIELDS or fields[_SEVERITY] != "FATAL":
                expected = "event ID MSGID BLOCK FATAL COMPONENT CATEGORY START END ..."
                problems.add(
                    number, f"is {line.strip()[:40]!r}", f"a line like: {expected}", "event"
                )
                continue
            start, end = (fields[at].replace(";", "T") for at in (_START, _END))
            place = fields[_LOCATION]
            yield number, {"START": start, "END": end, "LOCATION": place, "PLACE": place}
    if stated != count:
        problem = f"contains {exactly(count, 'event')}" if number else "is empty"
        expected = f"{stated}, as stated in line 1" if number else "#count=..."
        raise InputError(problem, problems.where, expected)


def _stated_count(line: str, where: str) -> int:
    match = re.fullmatch(r"#count=(\d{1,9})\s*", line, re.ASCII)
    if not match:
        raise InputError(f"begins with {line.strip()[:40]!r}", where, "#count=NUMBER")
    return int(match[1])


def read_periods(path: Path) -> Rows:
    """Read maintenance periods in ALCF's format: lines ``START,END`` with dates."""
    problems = Problems(str(path), strict=True)
    blocks = csv_blocks(path, lambda header, _: header, problems, CsvLayout(names=("START", "END")))
    rows = read_outages(blocks, PERIODS, problems, ends=True)
    if not len(rows):
        raise InputError("is empty", str(path), "lines START,END")
    if "zoned" in rows.clock.kinds:
        raise InputError("has a time zone", str(path), "dates without a time zone")
    return rows
