# SPDX-License-Identifier: Apache-2.0
"""Los Alamos National Laboratory's failure records of 1996 to 2005, as machine events.

Source: LA-UR-05-7318, "Failure data" (credit: Los Alamos National Laboratory). A line is a failure
of one node of one system, with the dates at which the problem started and was fixed, to the minute.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_S
from rebat.models.failures.events import MAX_NODE, MachineEvent
from rebat.models.failures.law import Outage, events_of
from rebat.models.failures.spans import Span, joined

COLUMNS = ("System", "nodenumz", "Prob Started", "Prob Fixed")
DATE = "%m/%d/%Y %H:%M"
SHORTEST_S = 60
"""Dates are known to the minute: what was fixed within the same one lasted a minute."""


class Record(NamedTuple):
    """Failures of one system: events, their number before outages were joined, the first date."""

    events: list[MachineEvent]
    n_lines: int
    first: datetime


class _Failure(NamedTuple):
    node: int
    down: datetime
    up: datetime


def read_lanl(path: Path, system: int) -> Record:
    """Failures of one system; time zero is the start of its first one.

    Nodes are numbered from zero (column ``nodenumz``). Outages of a node that overlap, or touch,
    are one.

    Parameters
    ----------
    path : Path
        The CSV file, plain, .gz or .xz.
    system : int
        Its number, from 2 to 24.

    Raises
    ------
    InputError
        With file and line: columns that miss, numbers and dates that cannot be read. For a system
        without failures.
    """
    with _opened(path) as text:
        try:
            found = list(_failures(csv.DictReader(text), str(path), system))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path)) from None
    if not found:
        raise InputError(f"system {system} has no failures", str(path), "one of those in the file")
    first = min(failure.down for failure in found)
    spans = sorted(joined(_span(f, first) for f in found), key=lambda s: (s.down_us, s.node))
    outages = (Outage(s.down_us, s.up_us, NodeSet.of([s.node])) for s in spans)
    return Record(list(events_of(outages)), len(found), first)


def _opened(path: Path) -> Any:
    if path.suffix != ".xz":
        return open_text(path, newline="")
    import lzma

    return lzma.open(path, "rt", newline="", encoding="utf-8")


def _failures(rows: csv.DictReader[str], where: str, system: int) -> Iterator[_Failure]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        expected = f"the columns {', '.join(COLUMNS)}"
        raise InputError(f"no column {missing[0]!r}", f"{where}:1", expected)
    for row in rows:
        if (row["System"] or "").strip() == str(system):
            try:
                yield _failure(row)
            except InputError as error:
                raise error.at(f"{where}:{rows.line_num}") from None


def _failure(row: dict[str, Any]) -> _Failure:
    text = (row["nodenumz"] or "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) <= MAX_NODE):
        raise InputError(f"nodenumz is {text[:40]!r}", expected=f"0 to {MAX_NODE}")
    down, up = (_date(row, name) for name in ("Prob Started", "Prob Fixed"))
    if up < down:
        raise InputError("is fixed before it started", expected="Prob Started, then Prob Fixed")
    return _Failure(int(text), down, up)


def _date(row: dict[str, Any], name: str) -> datetime:
    text = (row[name] or "").strip()
    try:
        return datetime.strptime(text, DATE)
    except ValueError:
        raise InputError(f"{name} is {text[:40]!r}", expected="like 6/21/2005 10:54") from None


def _span(failure: _Failure, first: datetime) -> Span:
    down_s = round((failure.down - first).total_seconds())
    up_s = max(round((failure.up - first).total_seconds()), down_s + SHORTEST_S)
    return Span(failure.node, down_s * US_PER_S, up_s * US_PER_S)
