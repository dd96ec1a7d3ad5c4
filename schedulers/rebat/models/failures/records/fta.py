# SPDX-License-Identifier: Apache-2.0
"""Tables of the Failure Trace Archive: ``event_trace.tab``.

Source: Kondo, Javadi, Iosup, Epema, "The Failure Trace Archive: enabling comparative analysis of
failures in diverse distributed systems", CCGrid 2010, and the format's own description. Columns,
separated by tabs: event_id, component_id, node_id, platform_id, node_name, event_type,
event_start_time, event_stop_time, event_end_reason. Times are seconds since the Unix epoch. Event
type 0 is unavailability, 1 availability. Lines that begin with ``#`` are comments. A line with
the names of the columns is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_us
from rebat.models.failures.records.record import Lines, Record, opened
from rebat.models.failures.spans import Span
from rebat.records.detect import FTA_FIELDS
from rebat.records.problems import Problems

UNAVAILABLE, AVAILABLE = "0", "1"
_NODE, _PLATFORM, _NAME, _TYPE, _START, _STOP = 2, 3, 4, 5, 6, 7


class _Event(NamedTuple):
    node: int
    platform: int
    name: str
    kind: str
    start_s: float
    stop_s: float | None


def read_fta(path: Path, platform: int | None = None, strict: bool = False) -> Record:
    """Read the outages of nodes. Time 0 is the start time in the first line.

    A node is down while any of its components is unavailable. All nodes in the table are numbered
    from 0 in the order of their node_id, even if they never fail.

    Parameters
    ----------
    path : Path
        The table, plain, .gz or .xz.
    platform : int, optional
        The platform_id. It is required if the table has several platforms.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.

    Raises
    ------
    InputError
        If more than a tenth of the rows is invalid (the error names the first), if the table has
        several platforms and ``platform`` is not set, or if it has no outages.
    """
    lines, problems = Lines(), Problems(str(path), strict)
    with opened(path) as text:
        events = list(_of_platform(_events(text, problems), platform, lines, str(path)))
    problems.check(len(events) + lines.dropped.total())
    lines.dropped += problems.reasons()
    spans = list(_down(events, lines))
    if not spans:
        raise InputError("contains no failure", str(path), f"lines of event type {UNAVAILABLE}")
    first_s = min(event.start_s for event in events)
    named = {event.node: event.name or str(event.node) for event in events}
    ids = {node: number for number, node in enumerate(sorted(named))}
    return lines.record(
        [Span(ids[event.node], *_times_us(event, first_s)) for event in spans],
        datetime.fromtimestamp(first_s, UTC).replace(tzinfo=None),
        len(ids),
        tuple(named[node] for node in ids),
    )


def _of_platform(
    events: Iterable[_Event], platform: int | None, lines: Lines, where: str
) -> Iterator[_Event]:
    seen: set[int] = set()
    for event in events:
        seen.add(event.platform)
        if platform is None and len(seen) > 1:
            numbers = " and ".join(map(str, sorted(seen)))
            raise InputError(f"contains platforms {numbers}", where, "--platform with one of them")
        if platform in (None, event.platform):
            yield event
        else:
            lines.dropped["of other platforms"] += 1
    if platform is not None and platform not in seen:
        numbers = " or ".join(map(str, sorted(seen)))
        raise InputError(
            f"contains no events of platform {platform}", where, f"--platform {numbers}"
        )


def _down(events: Iterable[_Event], lines: Lines) -> Iterator[_Event]:
    for event in events:
        if event.kind == AVAILABLE:
            lines.dropped["available"] += 1
        elif event.kind != UNAVAILABLE:
            lines.dropped[f"event type {event.kind}"] += 1
        elif event.stop_s == event.start_s:
            lines.dropped["zero duration"] += 1
        else:
            lines.taken["node"] += 1
            yield event


def _times_us(event: _Event, first_s: float) -> tuple[int, int]:
    stop_us = FOREVER_US if event.stop_s is None else to_us(event.stop_s - first_s)
    return to_us(event.start_s - first_s), stop_us


def _events(text: Iterable[str], problems: Problems) -> Iterator[_Event]:
    for number, line in enumerate(text, 1):
        fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
        if line.startswith("#") or not line.strip() or "node_id" in map(str.lower, fields):
            continue
        try:
            event = _event(fields)
        except InputError as error:
            problems.add(number, error.problem, error.expected, error.expected or "")
            continue
        yield event


def _event(fields: list[str]) -> _Event:
    if len(fields) < FTA_FIELDS:
        expected = (
            "event_id, component_id, node_id, platform_id, node_name, event_type, "
            "event_start_time, event_stop_time, event_end_reason, separated by tabs"
        )
        raise InputError(f"has {len(fields)} fields", expected=expected)
    start_s = _seconds(fields[_START], "event_start_time")
    stop = fields[_STOP]
    stop_s = None if stop in ("", "NULL") else _seconds(stop, "event_stop_time")
    if stop_s is not None and stop_s < start_s:
        raise InputError(
            "the event ends before it starts", expected="event_stop_time after event_start_time"
        )
    node, platform = (
        _id(fields[at], name) for at, name in ((_NODE, "node_id"), (_PLATFORM, "platform_id"))
    )
    return _Event(node, platform, fields[_NAME], fields[_TYPE], start_s, stop_s)


def _id(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise InputError(f"{name} is {text[:40]!r}", expected="a whole number")
    return int(text)


def _seconds(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MAX_SECONDS:
        raise InputError(f"{name} is {text[:40]!r}", expected="seconds since the Unix epoch")
    return value
