# SPDX-License-Identifier: Apache-2.0
"""Conversion of recorded times to seconds since the Unix epoch: one clock for all formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.records.values import is_unset

Floats = npt.NDArray[np.float64]

EARLIEST_EPOCH_S = 5e8
"""Times above this value (1985) are Unix times. Smaller times count from the start of a record."""

MAX_EPOCH_S = 2.0**33
"""Latest time of a record: the year 2242."""

TimeKind = Literal["epoch", "local", "zoned"]

_EPOCH = datetime(1970, 1, 1)
_STEP_S = 900
"""Time zones change their offset only at multiples of this time: a quarter of an hour."""


def zone_of(name: str | None, where: str | None = None) -> tzinfo:
    """Return the time zone with this name. None means UTC."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        expected = "for example UTC or America/Chicago"
        raise InputError(f"unknown time zone {name!r}", where, expected) from None


class Clock:
    """The times of a file.

    Local times are in ``zone``. When clocks go back in autumn, one hour occurs twice. A time in
    this hour is assumed to belong to its first occurrence.

    Attributes
    ----------
    kinds : set of {"epoch", "local", "zoned"}
        The kinds of times in the file: Unix times, local times, dates with a zone.
    second : dict
        For each local time in the hour that occurs twice: its first and its second occurrence, in
        seconds since the Unix epoch.
    """

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.kinds: set[TimeKind] = set()
        self.second: dict[float, float] = {}

    def parsed(self, text: str) -> float:
        """Return a Unix time, or a date in ISO 8601, in seconds since the Unix epoch.

        Unset times and the Unix time 0 are NaN.
        """
        if is_unset(text):
            return math.nan
        if text.isdecimal():
            self.kinds.add("epoch")
            value = float(text[:20]) or math.nan
        else:
            value = self._date_s(text)
        if not (math.isnan(value) or 0 < value <= MAX_EPOCH_S):
            expected = "a date after 1970, or seconds since 1970"
            raise InputError(f"invalid time {text[:40]!r}", expected=expected)
        return value

    def _date_s(self, text: str) -> float:
        try:
            date = datetime.fromisoformat(text)
            if date.tzinfo:
                self.kinds.add("zoned")
                return date.timestamp()
            self.kinds.add("local")
            local = date.replace(tzinfo=self.zone)
            value = local.timestamp()
            if (second := local.replace(fold=1).timestamp()) > value:
                self.second[value] = second
            return value
        except (ValueError, OverflowError):
            expected = "YYYY-MM-DDTHH:MM:SS, or seconds since the Unix epoch"
            raise InputError(f"invalid time {text[:40]!r}", expected=expected) from None


def to_utc(local_s: Floats, zone: tzinfo) -> tuple[Floats, int]:
    """Return local times (in seconds since 1970) in UTC, and the number of times in repeated hours.

    >>> to_utc(np.array([3600.0]), ZoneInfo("Europe/Paris"))
    (array([0.]), 0)
    """
    if zone is UTC or getattr(zone, "key", "") == "UTC":
        return local_s, 0
    steps = np.floor(local_s / _STEP_S)
    distinct, which = np.unique(steps, return_inverse=True)
    first, second = np.array([_offsets_s(step, zone) for step in distinct.tolist()]).T
    return local_s - first[which], int((second < first)[which].sum())


def _offsets_s(step: float, zone: tzinfo) -> tuple[float, float]:
    """Return the offsets of the zone at the first and at the second occurrence of a local time."""
    if math.isnan(step):
        return (np.nan, np.nan)
    try:
        local = (_EPOCH + timedelta(seconds=step * _STEP_S)).replace(tzinfo=zone)
    except OverflowError:
        return (0.0, 0.0)  # times out of range are rejected by a later check
    offsets = (local.replace(fold=fold).utcoffset() for fold in (0, 1))
    first, second = (0.0 if o is None else o.total_seconds() for o in offsets)
    return first, second


def since_epoch_s(date: datetime) -> float:
    """Return a date in seconds since 1970: in UTC if it has a zone, otherwise in local time."""
    return date.timestamp() if date.tzinfo else (date - _EPOCH).total_seconds()


def midnight_s(at_s: float, zone: tzinfo) -> float:
    """Return midnight at the start of the day of a time, in seconds since the Unix epoch."""
    date = datetime.fromtimestamp(at_s, zone)
    return date.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def check_same_clock(files: Sequence[tuple[str, set[TimeKind]]], zone: str | None) -> None:
    """Check that the times of several files can be compared.

    Parameters
    ----------
    files : sequence of (str, set)
        Path of each file, and the kinds of its times.
    zone : str, optional
        Time zone that the user chose for local times.
    """
    if zone is not None:
        return
    local = [path for path, kinds in files if "local" in kinds]
    absolute = [path for path, kinds in files if kinds and "local" not in kinds]
    if local and absolute:
        raise InputError(
            f"contains local times, but {absolute[0]} contains times since 1970",
            local[0],
            "the time zone of the local times with --zone, for example --zone Europe/Paris",
        )
