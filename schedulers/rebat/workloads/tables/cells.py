# SPDX-License-Identifier: Apache-2.0
"""The cells of a column, and their conversion to texts, numbers, durations and times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.accounting.values import MAX_EPOCH_S, duration_s
from rebat.core.errors import InputError, short
from rebat.workloads.columns import Floats
from rebat.workloads.tables.mapping import SECONDS, SpanColumn, TextColumn, TimeColumn

UNSET = frozenset(("", "nan", "NaN", "NaT", "None", "null", "NULL", "N/A", "NA", "<NA>", "Unknown"))
"""Texts that mean "unknown" in columns of numbers and times."""

_EPOCH = datetime(1970, 1, 1)
_STEP_S = 900
"""Time zones change their offset only at multiples of this time: a quarter of an hour."""


class Timestamps(NamedTuple):
    """Times of a Parquet column in seconds since 1970: UTC if ``zoned``, otherwise local time."""

    seconds: Floats
    zoned: bool


class Lengths(NamedTuple):
    """Durations of a Parquet column, in seconds."""

    seconds: Floats


Numbers = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Cells = list[str] | Numbers | Timestamps | Lengths
"""Cells of a column: texts, or values of a Parquet type. Unknown numbers are NaN."""


class Place(NamedTuple):
    """The file and the lines of cells, for errors."""

    where: str
    lines: Sequence[int]

    def error(self, column: str, position: int, value: Any, expected: str) -> InputError:
        """Return the error for a cell."""
        problem = f"{column} is {short(value)}"
        return InputError(problem, f"{self.where}:{self.lines[position]}", expected)


def texts(cells: Cells, column: TextColumn, place: Place) -> list[str]:
    """Return cells as texts without surrounding spaces. Unknown values are empty."""
    if isinstance(cells, Timestamps | Lengths):
        raise place.error(column.column, 0, "a time", "a text or a number")
    if isinstance(cells, list):
        plain = [cell.strip() for cell in cells]
    elif cells.dtype == np.int64:
        plain = list(map(str, cells.tolist()))
    else:
        plain = [_number_text(value) for value in cells.tolist()]
    if not column.unset:
        return plain
    return ["" if text in column.unset else text for text in plain]


def _number_text(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else str(value)


def numbers(cells: Cells, column: TextColumn, place: Place) -> Numbers:
    """Return cells as numbers. Unknown values are NaN.

    Raises
    ------
    InputError
        If a cell is not a finite number.
    """
    if isinstance(cells, Timestamps | Lengths):
        raise place.error(column.column, 0, "a time", "a number")
    values = _parsed(cells, column, place) if isinstance(cells, list) else cells
    for text in column.unset:
        if (number := _number(text)) is not None:
            values = np.where(values == number, np.nan, values)
    if (infinite := np.flatnonzero(np.isinf(values))).size:
        raise place.error(column.column, infinite[0], float(values[infinite[0]]), "a number")
    return values


def _parsed(cells: list[str], column: TextColumn, place: Place) -> Numbers:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        unset = UNSET.union(column.unset)
    values = np.empty(len(cells))
    for position, cell in enumerate(cells):
        text = cell.strip()
        number = np.nan if text in unset else _number(text)
        if number is None:
            raise place.error(column.column, position, cell, "a number")
        values[position] = number
    return values


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def spans_s(cells: Cells, column: SpanColumn, place: Place) -> Floats:
    """Return durations in seconds. Unknown durations are NaN."""
    if isinstance(cells, Lengths):
        return cells.seconds
    if column.unit == "hms":
        return _clock_spans(cells, column, place)
    return scaled(numbers(cells, column, place), SECONDS[column.unit])


def _clock_spans(cells: Cells, column: SpanColumn, place: Place) -> Floats:
    values = np.empty(len(place.lines))
    for position, text in enumerate(texts(cells, column, place)):
        try:
            values[position] = np.nan if text in UNSET else duration_s(text)
        except InputError as error:
            expected = error.expected or ""
            raise place.error(column.column, position, text, expected) from None
    return values


def scaled(values: Numbers, unit: float) -> Floats:
    """Return values in seconds. Integers in units below a second are exact to 1 us."""
    if values.dtype == np.int64 and unit < 1:
        per_second = round(1 / unit)
        whole, rest = np.divmod(values, per_second)
        return whole + rest / per_second
    return np.asarray(values * unit, dtype=np.float64)


class TimeReader:
    """Conversion of a column of times to seconds since the Unix epoch or the start of the trace.

    Parameters
    ----------
    column : TimeColumn
    zone : tzinfo
        Time zone of dates without a zone, if the column has no zone.

    Attributes
    ----------
    repeated : int
        Number of local times in the hour that occurs twice when clocks change in autumn. These
        times are assumed to belong to its first occurrence.
    """

    def __init__(self, column: TimeColumn, zone: tzinfo) -> None:
        self.column, self.repeated = column, 0
        self._zone = zone
        self._zoned: bool | None = None
        self._unset = UNSET.union(column.unset)
        self._parse = self._format_parser() if column.format else datetime.fromisoformat

    def _format_parser(self) -> Callable[[str], datetime]:
        return lambda text: datetime.strptime(text, self.column.format)

    def seconds(self, cells: Cells, place: Place) -> Floats:
        """Return times in seconds. Unknown times, and 1970-01-01T00:00:00Z, become NaN.

        Raises
        ------
        InputError
            If a cell is not a time, or if only some dates of a column have a zone.
        """
        if isinstance(cells, Timestamps):
            local_s, zoned = cells
        elif self.column.unit != "date":
            return self._counted(cells, place)
        elif isinstance(cells, list):
            local_s, zoned = self._dates(cells, place)
        else:
            raise place.error(self.column.column, 0, _first(cells), "dates, or another unit")
        utc_s = local_s if zoned else self._utc(local_s)
        utc_s = np.where(utc_s == 0, np.nan, utc_s)
        self._check_range(utc_s, utc_s, place)
        return utc_s

    def _counted(self, cells: Cells, place: Place) -> Floats:
        values = numbers(cells, self.column, place)
        since_s = scaled(values, SECONDS[self.column.unit])
        self._check_range(since_s, values, place)
        return since_s

    def _check_range(self, seconds: Floats, shown: Numbers, place: Place) -> None:
        wrong = np.flatnonzero((seconds < 0) | (seconds > MAX_EPOCH_S))
        if wrong.size:
            unit = "seconds since 1970" if self.column.unit == "date" else self.column.unit
            value = f"{float(shown[wrong[0]]):.15g} {unit}"
            raise InputError(
                f"{self.column.column} is {value}",
                f"{place.where}:{place.lines[wrong[0]]}",
                "a time of at least 0, before the year 2242; check the unit",
            )

    def _dates(self, cells: list[str], place: Place) -> Timestamps:
        """Parse dates. Only dates with a zone are converted to UTC."""
        values = np.full(len(cells), np.nan)
        for position, cell in enumerate(cells):
            text = cell.strip()
            if text in self._unset:
                continue
            try:
                date = self._parse(text)
            except (ValueError, OverflowError):
                expected = self.column.format or "YYYY-MM-DD HH:MM:SS"
                raise place.error(self.column.column, position, text, expected) from None
            self._check_zone(date, text, position, place)
            values[position] = self._since_epoch_s(date)
        return Timestamps(values, zoned=bool(self._zoned) or bool(self.column.zone))

    def _check_zone(self, date: datetime, text: str, position: int, place: Place) -> None:
        zoned = date.tzinfo is not None
        if self._zoned is None:
            self._zoned = zoned
        if zoned != self._zoned and not self.column.zone:
            others = "dates without a zone" if zoned else "dates with a zone"
            expected = f"all dates like the {others} above, or a zone in the mapping"
            raise place.error(self.column.column, position, text, expected)

    def _since_epoch_s(self, date: datetime) -> float:
        if date.tzinfo is not None:
            return date.timestamp()
        local_s = (date - _EPOCH).total_seconds()
        # dates with a zone are allowed if the column has a zone: convert both kinds to UTC
        return float(self._utc(np.array([local_s]))[0]) if self.column.zone else local_s

    def _utc(self, local_s: Floats) -> Floats:
        utc_s, repeated = to_utc(local_s, self._zone)
        self.repeated += repeated
        return utc_s


def _first(cells: Any) -> Any:
    return cells[0].item() if isinstance(cells, np.ndarray) else "a duration"


def to_utc(local_s: Floats, zone: tzinfo) -> tuple[Floats, int]:
    """Return local times (in seconds since 1970) in UTC, and the number of times in repeated hours.

    >>> from zoneinfo import ZoneInfo
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
