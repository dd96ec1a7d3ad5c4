# SPDX-License-Identifier: Apache-2.0
"""Periods in which a machine is maintained, as ALCF's are kept: ``START,END`` on a line."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.models.failures.records.record import opened


class Period(NamedTuple):
    """From one date until another."""

    start: datetime
    end: datetime


def read_periods(path: Path) -> list[Period]:
    """The periods by date; those that overlap, or touch, are one.

    Raises
    ------
    InputError
        With file and line: what is no period. For a file without one.
    """
    found = []
    with opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                found.append(_period(line, f"{path}:{number}"))
    if not found:
        raise InputError("is empty", str(path), "START,END on a line")
    return _joined(sorted(found))


def _period(line: str, where: str) -> Period:
    try:
        start, end = map(datetime.fromisoformat, map(str.strip, line.split(",")))
    except ValueError:
        expected = "START,END, like 2018-09-10 14:00:12,2018-09-10 22:42:49"
        raise InputError(f"is {line.strip()[:60]!r}", where, expected) from None
    if start.tzinfo or end.tzinfo:
        raise InputError("has a time zone", where, "dates like those of the record, without one")
    if end <= start:
        raise InputError("ends before it starts", where, "START, then END")
    return Period(start, end)


def _joined(periods: list[Period]) -> list[Period]:
    kept: list[Period] = []
    for period in periods:
        if kept and period.start <= kept[-1].end:
            kept[-1] = Period(kept[-1].start, max(kept[-1].end, period.end))
        else:
            kept.append(period)
    return kept


def within(date: datetime, periods: list[Period]) -> bool:
    """Whether a date lies in one of them, their ends apart."""
    place = bisect_right(periods, date, key=lambda period: period.start)
    return place > 0 and date < periods[place - 1].end
