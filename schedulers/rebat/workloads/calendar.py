# SPDX-License-Identifier: Apache-2.0
"""Calendar months in a time zone, for dates in seconds since the Unix epoch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.records.clock import zone_of

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])\Z")


def month_bounds_s(month: str, tz: str) -> tuple[float, float]:
    """Return the start of a month and of the next month, in seconds since the Unix epoch.

    >>> month_bounds_s("1970-01", "UTC")
    (0.0, 2678400.0)
    """
    match = _MONTH.match(month)
    if not match or match[1] in {"0000", "9999"}:
        raise InputError(f"invalid month {month!r}", expected="YYYY-MM, for example 2018-11")
    year, number = int(match[1]), int(match[2])
    first = datetime(year, number, 1, tzinfo=zone_of(tz))
    after = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=zone_of(tz))
    return first.timestamp(), after.timestamp()


def month_start_s(date_s: float, tz: str) -> float:
    """Return midnight of the first day of the month that contains a date."""
    date = datetime.fromtimestamp(date_s, zone_of(tz))
    return datetime(date.year, date.month, 1, tzinfo=zone_of(tz)).timestamp()


def in_months(
    dates_s: npt.NDArray[np.float64], months: Sequence[str], tz: str
) -> npt.NDArray[np.bool_]:
    """Return a mask of the dates in any of the months."""
    inside = np.zeros(len(dates_s), dtype=np.bool_)
    for month in months:
        first_s, after_s = month_bounds_s(month, tz)
        inside |= (dates_s >= first_s) & (dates_s < after_s)
    return inside
