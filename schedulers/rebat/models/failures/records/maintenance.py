# SPDX-License-Identifier: Apache-2.0
"""Maintenance periods of a machine in ALCF's format: lines ``START,END``."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.models.failures.records.record import opened


class Period(NamedTuple):
    """A period between two dates."""

    start: datetime
    end: datetime


def read_periods(path: Path) -> list[Period]:
    """Return the periods sorted by date. Overlapping or adjacent periods are joined.

    Raises
    ------
    InputError
        If a period is invalid (the error names file and line), or the file has no periods.
    """
    periods = []
    with opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                periods.append(_period(line, f"{path}:{number}"))
    if not periods:
        raise InputError("is empty", str(path), "lines START,END")
    return _joined(sorted(periods))


def _period(line: str, where: str) -> Period:
    try:
        start, end = map(datetime.fromisoformat, map(str.strip, line.split(",")))
    except ValueError:
        expected = "START,END, like 2018-09-10 14:00:12,2018-09-10 22:42:49"
        raise InputError(f"is {line.strip()[:60]!r}", where, expected) from None
    if start.tzinfo or end.tzinfo:
        raise InputError("has a time zone", where, "dates without a time zone")
    if end <= start:
        raise InputError("ends before it starts", where, "END after START")
    return Period(start, end)


def _joined(periods: list[Period]) -> list[Period]:
    merged: list[Period] = []
    for period in periods:
        if merged and period.start <= merged[-1].end:
            merged[-1] = Period(merged[-1].start, max(merged[-1].end, period.end))
        else:
            merged.append(period)
    return merged


def within(date: datetime, periods: list[Period]) -> bool:
    """Return whether a date is in one of the periods.

    The end of a period is not part of the period.
    """
    place = bisect_right(periods, date, key=lambda period: period.start)
    return place > 0 and date < periods[place - 1].end
