# SPDX-License-Identifier: Apache-2.0
"""The options --begin and --end of ``rebat failures import``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import FOREVER_US, format_duration, parse_duration, to_s, to_us

if TYPE_CHECKING:
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.records.record import Record


def windowed(record: Record, begin: str | None, end: str | None) -> list[MachineEvent]:
    """Return the events of the record between two times."""
    from rebat.models.failures.outages import window

    if begin is None and end is None:
        return record.events
    begin_us = 0 if begin is None else _date_us(begin, record.origin, "--begin")
    end_us = FOREVER_US if end is None else _date_us(end, record.origin, "--end")
    if end_us <= begin_us:
        raise InputError("is not after --begin", "--end", "a later time")
    events = window(record.events, begin_us, end_us)
    if not events and record.events:
        options = "--begin and --end" if begin and end else "--begin" if begin else "--end"
        last = time_of(record, record.events[-1].at_us)
        expected = f"a period with failures; the record is from {time_of(record, 0)} to {last}"
        raise InputError("no failure is in this period", options, expected)
    return events


def left_out(record: Record, events: list[MachineEvent]) -> list[str]:
    """Describe how many node outages are outside the period of ``events``."""
    from rebat.models.failures.outages import outages_of

    n = record.n_outages - record.n_joined - len(outages_of(events).node)
    return [f"  {counted(n, 'node outage')} dropped: outside --begin and --end"] if n else []


def time_zero(record: Record, begin: str | None) -> str:
    """Return the date of time 0 of the event file, as text."""
    if record.origin is None:
        return "time 0" if begin is None else f"{begin} after its start"
    return time_of(record, 0 if begin is None else _date_us(begin, record.origin, "--begin"))


def time_of(record: Record, at_us: int) -> str:
    """Return a time of the record as a date, or as a duration if the record has no dates."""
    if record.origin is None:
        return format_duration(to_s(at_us))
    return str(record.origin + timedelta(microseconds=at_us))


def _date_us(text: str, origin: datetime | None, option: str) -> int:
    """Convert a date, or a time since the start of the record, to microseconds since its start."""
    try:
        return to_us(parse_duration(text))
    except InputError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        expected = "a date like 2018-09-01, or a duration like 400d"
        raise InputError(f"is {text[:40]!r}", option, expected) from None
    if origin is None or date.tzinfo is not None:
        expected = "a duration like 400d" if origin is None else "a date without a time zone"
        raise InputError(f"is {text[:40]!r}", option, expected)
    if date < origin:
        raise InputError(f"is before the record, which begins at {origin}", option, "a later date")
    return to_us((date - origin).total_seconds())
