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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.boxes import Ints
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import Outage, check_span, events_of
from rebat.models.failures.spans import Span, joined
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


class RasRecord(NamedTuple):
    """Fatal events as outages.

    ``hit`` counts the lines by what they take down (``card``, ``board``, ``midplane``, ``rack``),
    ``left_out`` those that name no compute node, by the reason. Date 0 of the events is
    ``midnight``, when the day of the first line began.
    """

    events: list[MachineEvent]
    hit: Counter[str]
    left_out: Counter[str]
    midnight: datetime


class _Fatal(NamedTuple):
    down: datetime
    up: datetime
    kind: str
    nodes: Ints | None


def read_mira_ras(path: Path, downtime_s: float = 3600.0) -> RasRecord:
    """Fatal events of Mira's compute nodes.

    A card takes down its node, a node board 32, a midplane 512, a rack 1,024; a part of one of them
    (a link chip, a service card, a coolant monitor) as much as it is a part of. I/O drawers and
    events without a location take no compute node, and are counted. Indented lines are messages
    that go with the event above, and are passed over. Outages of a node that overlap are one.

    Parameters
    ----------
    path : Path
        The log, plain or .gz.
    downtime_s : float
        Seconds that an outage lasts at least. The record has an event's first and last message,
        most often the same, and no repairs: how long nodes were out of service is not known.

    Raises
    ------
    InputError
        With file and line: dates, locations and counts that cannot be. For a record in which no
        compute node fails.
    """
    check_span(downtime_s, "downtime")
    with open_text(path) as lines:
        found = list(_fatal_events(lines, str(path)))
    taken = [event for event in found if event.nodes is not None]
    if not taken:
        raise InputError("no compute node fails", str(path), "an event in a rack (R..)")
    hit = Counter(event.kind for event in taken)
    first = min(event.down for event in found)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    spans = itertools.chain.from_iterable(_spans(e, midnight, to_us(downtime_s)) for e in taken)
    return RasRecord(
        list(events_of(_together(joined(spans)))),
        hit,
        Counter(event.kind for event in found) - hit,
        midnight,
    )


def _spans(event: _Fatal, midnight: datetime, shortest_us: int) -> Iterator[Span]:
    down_us, up_us = _us(event.down - midnight), _us(event.up - midnight)
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


def _us(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _together(spans: Iterable[Span]) -> Iterator[Outage]:
    """Nodes that go down and come back at the same dates, as one outage; by date."""
    nodes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for node, down_us, up_us in spans:
        nodes[down_us, up_us].append(node)
    for (down_us, up_us), members in sorted(nodes.items()):
        yield Outage(down_us, up_us, NodeSet.of(members))
