# SPDX-License-Identifier: Apache-2.0
"""Mira's fatal events of 2013 to 2018, as machine events.

Source: the filtered log of fatal RAS events that LogAider (UChicago Argonne) publishes. Its
locations name a rack, a midplane, a node board or a compute card of a Blue Gene/Q.

Of racks, the record says the row and the column, not how cables join their midplanes to a torus.
Midplane M of rack r (rows of 16) is here allocation unit 2 r + M, and card J of its board N the
member 32 N + J of the unit: outages are as large as they were, and those of a midplane lie in one,
but which midplanes are neighbours on the torus is this numbering's, not Mira's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.boxes import Ints
from rebat.models.failures.law import Outage, check_span, events_of
from rebat.models.failures.records.maintenance import Period, within
from rebat.models.failures.records.record import Lines, Record, midnight, opened, us_between
from rebat.models.failures.spans import Span, joined, merged_events, single, spans_of, together
from rebat.models.topology import MIRA
from rebat.models.units import MIDPLANES, Units

DATE = "%Y-%m-%d;%H:%M:%S"
BOARD = 32
"""Compute cards, of one node each, on a node board."""

_FIELDS = 12
_SEVERITY, _START, _END, _LOCATION = 4, 7, 8, 11
_COMPUTE = re.compile(
    r"R(?P<rack>[0-2][0-9A-F])"
    r"(?:-M(?P<midplane>[01])"
    r"(?:-N(?P<board>0\d|1[0-5])"
    r"(?:-J(?P<card>[0-2]\d|3[01])(?:-C\d\d)?|-[DOU]\d\d)?"  # its cores; a board's power and links
    r"|-S)?"  # a midplane's service card
    r"|-[KL]|-B\d(?:-P\d)?)?\Z"  # a rack's clock card, coolant monitor, power supplies
)
_IO = re.compile(r"Q[0-9A-Z]{2}(?:-[A-Z]\d*)*\Z")
_UNITS = Units(MIRA, MIDPLANES[MIRA])


class _Fatal(NamedTuple):
    down: datetime
    up: datetime
    kind: str
    nodes: Ints | None


Maintained = Literal["leave-out", "down"]
MAINTAINED: tuple[Maintained, ...] = get_args(Maintained)


def read_mira_ras(
    path: Path,
    downtime_s: float = 3600.0,
    periods: Sequence[Period] = (),
    maintained: Maintained = "leave-out",
) -> Record:
    """Fatal events of Mira's compute nodes; date 0 is midnight of the day of the first event.

    A card takes down its node, a node board 32, a midplane 512, a rack 1,024; a part of one of them
    (a link chip, a service card, a coolant monitor) as much as it is a part of. I/O drawers and
    events without a location take no compute node, and are dropped. Indented lines are messages
    that go with the event above, and are passed over. Outages of a node that overlap are one.

    Parameters
    ----------
    path : Path
        The log, plain or .gz.
    downtime_s : float
        Seconds that an outage lasts at least. The record has an event's first and last message,
        most often the same, and no repairs: how long nodes were out of service is not known.
    periods : sequence of Period
        Maintenance, by date.
    maintained : {'leave-out', 'down'}
        What becomes of them. 'leave-out': events that begin within one are dropped, as no job was
        there to be hit, and the machine is up. 'down': the whole machine is down for their length,
        as if they were failures.

    Raises
    ------
    InputError
        With file and line: dates, locations and counts that cannot be. For a record in which no
        compute node fails.
    """
    check_span(downtime_s, "downtime")
    lines = Lines()
    with opened(path) as text:
        found = list(_fatal_events(text, str(path)))
    left_out = list(periods) if maintained == "leave-out" else []
    taken = list(_taken(found, left_out, lines))
    if not taken:
        raise InputError("no compute node fails", str(path), "an event in a rack (R..)")
    zero = midnight(min(event.down for event in found))
    spans = list(itertools.chain.from_iterable(_spans(e, zero, to_us(downtime_s)) for e in taken))
    record = lines.record(spans, zero, MIRA.n_nodes)
    if maintained == "leave-out" or not periods:
        return record
    return _maintained(
        record, [_Whole(us_between(zero, a), us_between(zero, b)) for a, b in periods]
    )


def _taken(found: Iterable[_Fatal], left_out: list[Period], lines: Lines) -> Iterator[_Fatal]:
    """The events that take nodes down while jobs may be there; counts them all."""
    for event in found:
        if event.nodes is None:
            lines.dropped[event.kind] += 1
        elif within(event.down, left_out):
            lines.dropped["during maintenance"] += 1
        else:
            lines.taken[event.kind] += 1
            yield event


class _Whole(NamedTuple):
    """The whole machine, from one date (us) until another."""

    down_us: int
    up_us: int


def _maintained(record: Record, whole: list[_Whole]) -> Record:
    """The record with the whole machine down now and then; what begins before date 0 begins at it.

    Only the nodes whose outages meet a period are looked at one by one.
    """
    spans = spans_of(record.events)
    down: list[Outage] = []
    for at_us, until_us in ((max(down_us, 0), up_us) for down_us, up_us in whole if up_us > 0):
        meeting = {s.node for s in spans if s.down_us <= until_us and s.up_us >= at_us}
        spans += [Span(node, at_us, until_us) for node in meeting]
        others = np.setdiff1d(np.arange(MIRA.n_nodes), list(meeting))
        down.append(Outage(at_us, until_us, NodeSet.of_sorted(others)))
    kept = list(joined(spans))
    outages = together([*single(kept), *down])
    record.taken["maintenance"] += len(down)
    return msgspec.structs.replace(
        record,
        events=list(merged_events(events_of(outages))),
        n_joined=record.n_joined + len(spans) - len(kept),
    )


def _spans(event: _Fatal, zero: datetime, shortest_us: int) -> Iterator[Span]:
    down_us, up_us = us_between(zero, event.down), us_between(zero, event.up)
    assert event.nodes is not None
    for node in event.nodes.tolist():
        yield Span(node, down_us, max(up_us, down_us + shortest_us))


def _fatal_events(lines: Iterable[str], where: str) -> Iterator[_Fatal]:
    """The lines that are events, as many as the first line says: else the file is cut."""
    told, number, count = -1, 0, 0
    for number, line in enumerate(lines, 1):
        try:
            if number == 1:
                told = _told(line)
            elif line.strip() and not line[0].isspace():
                count += 1
                yield _fatal(line.rstrip("\r\n").split(" "))
        except InputError as error:
            raise error.at(f"{where}:{number}") from None
    if told != count:
        what = f"{count} events" if number else "is empty"
        raise InputError(what, where, f"{told}, as line 1 says" if number else "#count=...")


def _told(line: str) -> int:
    match = re.fullmatch(r"#count=(\d{1,9})\s*", line, re.ASCII)
    if not match:
        raise InputError(f"begins with {line.strip()[:40]!r}", expected="#count=, then a number")
    return int(match[1])


def _fatal(fields: list[str]) -> _Fatal:
    if fields[0] != "event" or len(fields) < _FIELDS or fields[_SEVERITY] != "FATAL":
        text = " ".join(fields)[:40]
        raise InputError(
            f"is {text!r}", expected="event ID MSGID BLOCK FATAL COMPONENT CATEGORY START END ..."
        )
    down, up = _date(fields[_START], "start"), _date(fields[_END], "end")
    if up < down:
        raise InputError("ends before it starts", expected="START, then END")
    return _Fatal(down, up, *_place(fields[_LOCATION]))


def _date(text: str, name: str) -> datetime:
    try:
        return datetime.strptime(text, f"{DATE}.%f" if "." in text else DATE)
    except ValueError:
        expected = "like 2013-04-02;22:40:36.223930"
        raise InputError(f"{name} is {text[:40]!r}", expected=expected) from None


@cache
def _place(location: str) -> tuple[str, Ints | None]:
    """What an event takes down and its nodes; or why it takes none."""
    if location in ("", "NULL"):
        return "no location", None
    if _IO.match(location):
        return "I/O drawers", None
    match = _COMPUTE.match(location)
    if not match:
        expected = "Rrc[-Mm[-Nnn[-Jjj]]], Q.., or none"
        raise InputError(f"location {location[:40]!r}", expected=expected)
    return _nodes(match)


def _nodes(match: re.Match[str]) -> tuple[str, Ints]:
    first = 2 * int(match["rack"], 16)
    if match["midplane"] is None:
        return "rack", np.sort(_UNITS.members[first : first + 2].ravel())
    members = _UNITS.members[first + int(match["midplane"])]
    if match["board"] is None:
        return "midplane", members
    board = members[int(match["board"]) * BOARD :][:BOARD]
    if match["card"] is None:
        return "board", board
    card = int(match["card"])
    return "card", board[card : card + 1]
