# SPDX-License-Identifier: Apache-2.0
"""Mira's fatal events of 2013 to 2018, as machine events.

Source: the filtered log of fatal RAS events that LogAider (UChicago Argonne) publishes. Its
locations name a rack, a midplane, a node board or a compute card of a Blue Gene/Q.

The record contains the row and the column of a rack, but not how cables connect the midplanes to a
torus. This module numbers the racks row by row (16 racks per row). It maps midplane M of rack r to
block 2 r + M, and card J of board N of this midplane to member 32 N + J of the block. Outages keep
their size, and an outage of a midplane is in a single block. The neighbours of a midplane in rebat
follow from this numbering. They differ from its neighbours on the real torus of Mira.
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

from rebat.core.counted import counted
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.blocks import MIDPLANES, TorusBlocks
from rebat.models.boxes import Ints
from rebat.models.failures.law import Outage, check_span, events_of
from rebat.models.failures.records.maintenance import Period, within
from rebat.models.failures.records.record import Lines, Record, midnight, opened, us_between
from rebat.models.failures.spans import Span, joined, merged_events, single, spans_of, together
from rebat.models.topology import MIRA
from rebat.records.problems import Problems

DATE = "%Y-%m-%d;%H:%M:%S"
BOARD = 32
"""Number of compute cards on a node board. A card is a node."""

_FIELDS = 12
_SEVERITY, _START, _END, _LOCATION = 4, 7, 8, 11
_COMPUTE = re.compile(
    r"R(?P<rack>[0-2][0-9A-F])"
    r"(?:-M(?P<midplane>[01])"
    r"(?:-N(?P<board>0\d|1[0-5])"
    r"(?:-J(?P<card>[0-2]\d|3[01])(?:-C\d\d)?|-[DOU]\d\d)?"  # cores of a card; power and links
    r"|-S)?"  # a midplane's service card
    r"|-[KL]|-B\d(?:-P\d)?)?\Z"  # a rack's clock card, coolant monitor, power supplies
)
_IO = re.compile(r"Q[0-9A-Z]{2}(?:-[A-Z]\d*)*\Z")
_BLOCKS = TorusBlocks(MIRA, MIDPLANES[MIRA])


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
    strict: bool = False,
) -> Record:
    """Read fatal events of Mira's compute nodes. Time 0 is midnight of the day of the first event.

    An event of a card takes down a node. An event of a node board takes down 32 nodes, an event of
    a midplane 512 nodes, and an event of a rack 1,024 nodes. An event of a component (a link chip,
    a service card, a coolant monitor) takes down the part of the machine to which the component
    belongs. Events of I/O drawers and events without a location affect no compute node and are
    dropped. Indented lines are messages of the previous event and are ignored. Overlapping outages
    of a node are joined.

    Parameters
    ----------
    path : Path
        The log, plain or .gz.
    downtime_s : float
        Minimum duration of an outage in seconds. The record contains the times of the first and the
        last message of an event, which are usually equal. It contains no repairs, so the real
        downtimes are unknown.
    periods : sequence of Period
        Maintenance, sorted by date.
    maintained : {'leave-out', 'down'}
        How to treat maintenance. 'leave-out': the machine is up, and events that begin during
        maintenance are dropped, because they affected no job. 'down': the entire machine is down
        during maintenance, as after a failure.
    strict : bool
        Whether the first invalid event is an error. Otherwise invalid events are dropped and
        counted.

    Raises
    ------
    InputError
        If the number of events differs from line 1, if more than a tenth of the events is invalid
        (the error names the first), or if no compute node fails.
    """
    check_span(downtime_s, "downtime")
    lines, problems = Lines(), Problems(str(path), strict)
    with opened(path) as text:
        events = list(_fatal_events(text, problems))
    problems.check(len(events))
    lines.dropped += problems.reasons()
    left_out = list(periods) if maintained == "leave-out" else []
    counted = list(_taken(events, left_out, lines))
    if not counted:
        raise InputError(
            "contains no failure of a compute node", str(path), "an event in a rack (R..)"
        )
    zero = midnight(min(event.down for event in events))
    spans = list(itertools.chain.from_iterable(_spans(e, zero, to_us(downtime_s)) for e in counted))
    record = lines.record(spans, zero, MIRA.n_nodes)
    if maintained == "leave-out" or not periods:
        return record
    return _maintained(
        record, [_Maintenance(us_between(zero, a), us_between(zero, b)) for a, b in periods]
    )


def _taken(events: Iterable[_Fatal], left_out: list[Period], lines: Lines) -> Iterator[_Fatal]:
    """Yield the events that take down compute nodes, except during maintenance.

    Count all events.
    """
    for event in events:
        if event.nodes is None:
            lines.dropped[event.kind] += 1
        elif within(event.down, left_out):
            lines.dropped["during maintenance"] += 1
        else:
            lines.taken[event.kind] += 1
            yield event


class _Maintenance(NamedTuple):
    """A period (us) in which the entire machine is down."""

    down_us: int
    up_us: int


def _maintained(record: Record, periods: list[_Maintenance]) -> Record:
    """Return the record with the entire machine down in all periods, from time 0 on.

    For speed, only nodes whose outages overlap a period are processed one by one.
    """
    spans = spans_of(record.events)
    down: list[Outage] = []
    for at_us, until_us in ((max(down_us, 0), up_us) for down_us, up_us in periods if up_us > 0):
        overlapping = {s.node for s in spans if s.down_us <= until_us and s.up_us >= at_us}
        spans += [Span(node, at_us, until_us) for node in overlapping]
        others = np.setdiff1d(np.arange(MIRA.n_nodes), list(overlapping))
        down.append(Outage(at_us, until_us, NodeSet.of_sorted(others)))
    outages = list(joined(spans))
    with_maintenance = together([*single(outages), *down])
    record.taken["maintenance"] += len(down)
    return msgspec.structs.replace(
        record,
        events=list(merged_events(events_of(with_maintenance))),
        n_joined=record.n_joined + len(spans) - len(outages),
    )


def _spans(event: _Fatal, zero: datetime, shortest_us: int) -> Iterator[Span]:
    down_us, up_us = us_between(zero, event.down), us_between(zero, event.up)
    assert event.nodes is not None
    for node in event.nodes.tolist():
        yield Span(node, down_us, max(up_us, down_us + shortest_us))


def _fatal_events(lines: Iterable[str], problems: Problems) -> Iterator[_Fatal]:
    """Yield the events of the log.

    Raise InputError if their number differs from the number in line 1.
    """
    stated, number, count = -1, 0, 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            stated = _stated_count(line, f"{problems.where}:1")
        elif line.strip() and not line[0].isspace():
            count += 1
            try:
                event = _fatal(line.rstrip("\r\n").split(" "))
            except InputError as error:
                problems.add(number, error.problem, error.expected, error.expected or "")
                continue
            yield event
    if stated != count:
        problem = f"contains {counted(count, 'event')}" if number else "is empty"
        raise InputError(
            problem, problems.where, f"{stated}, as stated in line 1" if number else "#count=..."
        )


def _stated_count(line: str, where: str) -> int:
    match = re.fullmatch(r"#count=(\d{1,9})\s*", line, re.ASCII)
    if not match:
        raise InputError(f"begins with {line.strip()[:40]!r}", where, "#count=NUMBER")
    return int(match[1])


def _fatal(fields: list[str]) -> _Fatal:
    if fields[0] != "event" or len(fields) < _FIELDS or fields[_SEVERITY] != "FATAL":
        text = " ".join(fields)[:40]
        raise InputError(
            f"is {text!r}",
            expected="a line like: event ID MSGID BLOCK FATAL COMPONENT CATEGORY START END ...",
        )
    down, up = _date(fields[_START], "start"), _date(fields[_END], "end")
    if up < down:
        raise InputError("ends before it starts", expected="END after START")
    return _Fatal(down, up, *_place(fields[_LOCATION]))


def _date(text: str, name: str) -> datetime:
    try:
        return datetime.strptime(text, f"{DATE}.%f" if "." in text else DATE)
    except ValueError:
        expected = "like 2013-04-02;22:40:36.223930"
        raise InputError(f"{name} is {text[:40]!r}", expected=expected) from None


@cache
def _place(location: str) -> tuple[str, Ints | None]:
    """Return the kind of the part that an event takes down, and the nodes of this part.

    If the event takes down no node, return the reason and None.
    """
    if location in ("", "NULL"):
        return "no location", None
    if _IO.match(location):
        return "I/O drawers", None
    match = _COMPUTE.match(location)
    if not match:
        expected = "Rrc[-Mm[-Nnn[-Jjj]]], Q.., or none"
        raise InputError(f"invalid location {location[:40]!r}", expected=expected)
    return _nodes(match)


def _nodes(match: re.Match[str]) -> tuple[str, Ints]:
    first = 2 * int(match["rack"], 16)
    if match["midplane"] is None:
        return "rack", np.sort(_BLOCKS.members[first : first + 2].ravel())
    members = _BLOCKS.members[first + int(match["midplane"])]
    if match["board"] is None:
        return "midplane", members
    board = members[int(match["board"]) * BOARD :][:BOARD]
    if match["card"] is None:
        return "board", board
    card = int(match["card"])
    return "card", board[card : card + 1]
