# SPDX-License-Identifier: Apache-2.0
"""The cells of a column, and their conversion to texts, numbers, durations and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short
from rebat.records.clock import (
    MAX_EPOCH_S,
    Clock,
    Floats,
    since_epoch_s,
    to_utc,
    zone_of,
)
from rebat.records.mapping import SECONDS, SpanColumn, TextColumn, TimeColumn, ValueColumn
from rebat.records.table import Problems
from rebat.records.values import NO_VALUES, duration_s, is_unset

UNSET = frozenset(("", "nan", "NaN", "NaT", "None", "null", "NULL", "N/A", "NA", "<NA>", "Unknown"))
"""Texts that mean "unknown" in columns of numbers and times."""


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


class Place:
    """The file and the lines of a block of cells, and the cells that are invalid.

    Attributes
    ----------
    invalid : dict
        For each position of an invalid row: the problem of its first invalid cell, and the expected
        value.
    """

    def __init__(self, where: str, lines: Sequence[int]) -> None:
        self.where, self.lines = where, lines
        self.invalid: dict[int, tuple[str, str, str]] = {}

    def error(self, column: str, position: int, value: Any, expected: str) -> InputError:
        """Return the error for a column that has the wrong type in the entire file."""
        problem = f"{column} is {short(value)}"
        return InputError(problem, f"{self.where}:{self.lines[position]}", expected)

    def reject(self, column: str, position: int, value: Any, expected: str) -> None:
        """Mark a row as invalid, because of the value of a cell."""
        problem = f"{column} is {short(value)}"
        self.invalid.setdefault(position, (problem, expected, f"{column}: {expected}"))

    def reject_as(self, position: int, error: InputError, column: str = "") -> None:
        """Mark a row as invalid with this error, which is about a cell of ``column``."""
        kind = f"{column}: {error.problem if error.expected is None else error.expected}"
        self.invalid.setdefault(position, (error.problem, error.expected or "", kind))

    def count(self, problems: Problems) -> npt.NDArray[np.bool_]:
        """Count the invalid rows, and return a mask of the valid rows."""
        valid = np.ones(len(self.lines), dtype=np.bool_)
        for position in sorted(self.invalid):
            problem, expected, kind = self.invalid[position]
            problems.add(int(self.lines[position]), problem, expected or None, kind)
            valid[position] = False
        return valid


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
    """Return cells as numbers. Unknown values are NaN. Rows with other texts are invalid.

    Unlimited values are unknown: words such as UNLIMITED, and Slurm's numbers INFINITE and NO_VAL.
    """
    if isinstance(cells, Timestamps | Lengths):
        raise place.error(column.column, 0, "a time", "a number")
    values = _parsed(cells, column, place) if isinstance(cells, list) else cells
    if (unknown := np.isin(values, [*NO_VALUES])).any():
        values = np.where(unknown, np.nan, values)
    for text in column.unset:
        if (number := _number(text)) is not None:
            values = np.where(values == number, np.nan, values)
    for position in np.flatnonzero(np.isinf(values)).tolist():
        place.reject(column.column, position, float(values[position]), "a number")
    return values


def _parsed(cells: list[str], column: TextColumn, place: Place) -> Numbers:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        unset = UNSET.union(column.unset)
    values = np.empty(len(cells))
    for position, cell in enumerate(cells):
        text = cell.strip()
        number = np.nan if text in unset or is_unset(text) else _number(text)
        if number is None:
            place.reject(column.column, position, cell, "a number")
        values[position] = np.nan if number is None else number
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
    values = np.full(len(place.lines), np.nan)
    for position, text in enumerate(texts(cells, column, place)):
        try:
            values[position] = np.nan if text in UNSET else duration_s(text)
        except InputError as error:
            place.reject(column.column, position, text, error.expected or "")
    return values


def objects(values: Iterable[Any]) -> npt.NDArray[np.object_]:
    """Return texts as an array."""
    return np.array([*values], dtype=object)


def converted(cells: Cells, column: ValueColumn, place: Place, shared: dict[Any, Any]) -> Any:
    """Return the values of a column that has its own conversion, which is called once per text.

    Equal texts in ``shared`` are the same object.
    """
    plain = cells if isinstance(cells, list) else texts(cells, column, place)
    values: dict[str, Any] = dict.fromkeys(plain)
    wrong: dict[str, InputError] = {}
    for text in values:
        try:
            values[text] = column.convert(text)
        except InputError as error:
            values[text] = column.default
            wrong[text] = error
    for position in [at for at, text in enumerate(plain) if text in wrong] if wrong else ():
        place.reject_as(position, wrong[plain[position]], column.column)
    if isinstance(column.default, str):
        values = {text: shared.setdefault(value, value) for text, value in values.items()}
        return objects(map(values.__getitem__, plain))
    return np.fromiter(map(values.__getitem__, plain), np.float64, len(plain))


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
    clock : Clock
        The clock of the file. Its zone is the zone of dates without a zone, if the column has none.

    Attributes
    ----------
    repeated : int
        Number of local times in the hour that occurs twice when clocks change in autumn.
    """

    def __init__(self, column: TimeColumn, clock: Clock) -> None:
        self.column, self.repeated = column, 0
        self._clock = clock
        self._zone = zone_of(column.zone) if column.zone else clock.zone
        self._zoned: bool | None = None
        self._unset = UNSET.union(column.unset)

    def seconds(self, cells: Cells, place: Place) -> Floats:
        """Return times in seconds. Unknown times, and 1970-01-01T00:00:00Z, become NaN.

        A row is invalid if its time is no time, or if only some dates of the column have a zone.
        """
        if self.column.unit == "any":
            return self._any(cells, place)
        if isinstance(cells, Timestamps):
            local_s, zoned = cells
        elif self.column.unit != "date":
            return self._counted(cells, place)
        elif isinstance(cells, list):
            local_s, zoned = self._dates(cells, place)
        else:
            raise place.error(self.column.column, 0, _first(cells), "dates, or another unit")
        self._clock.kinds.add("zoned" if zoned else "local")
        utc_s = local_s if zoned else self._utc(local_s)
        utc_s = np.where(utc_s == 0, np.nan, utc_s)
        self._check_range(utc_s, utc_s, place)
        return utc_s

    def _any(self, cells: Cells, place: Place) -> Floats:
        """Return Unix times or dates in ISO 8601, as Slurm writes them."""
        if not isinstance(cells, list):
            cells = [str(value) for value in np.asarray(cells).tolist()]
        if cells and "".join(cells).isdecimal() and all(cells):
            values = np.fromiter(map(float, cells), np.float64, len(cells))
            if values.min() > 0 and values.max() <= MAX_EPOCH_S:
                self._clock.kinds.add("epoch")
                return values
        column = ValueColumn(column=self.column.column, convert=self._parsed)
        times: Floats = converted(cells, column, place, {})
        return times

    def _parsed(self, text: str) -> float:
        return self._clock.parsed(text)

    def _counted(self, cells: Cells, place: Place) -> Floats:
        values = numbers(cells, self.column, place)
        since_s = scaled(values, SECONDS[self.column.unit])
        self._check_range(since_s, values, place)
        return since_s

    def _check_range(self, seconds: Floats, shown: Numbers, place: Place) -> None:
        wrong = (seconds < 0) | (seconds > MAX_EPOCH_S)
        unit = "seconds since 1970" if self.column.unit == "date" else self.column.unit
        expected = "a time of at least 0, before the year 2242; check the unit"
        for position in np.flatnonzero(wrong).tolist():
            problem = f"{self.column.column} is {float(shown[position]):.15g} {unit}"
            place.reject_as(position, InputError(problem, expected=expected), self.column.column)

    def _dates(self, cells: list[str], place: Place) -> Timestamps:
        """Parse dates. Only dates with a zone are converted to UTC."""
        seconds = dict.fromkeys(cells, np.nan)
        wrong: dict[str, str] = {}
        for cell in seconds:
            text = cell.strip()
            if text in self._unset:
                continue
            try:
                date = self._date(text)
            except (ValueError, OverflowError):
                wrong[cell] = self.column.format or "YYYY-MM-DD HH:MM:SS"
                continue
            zoned = date.tzinfo is not None
            if self._zoned is None:
                self._zoned = zoned
            if zoned != self._zoned and not self.column.zone:
                others = "dates without a zone" if zoned else "dates with a zone"
                wrong[cell] = f"all dates like the {others} above, or a zone in the mapping"
                continue
            local_s = since_epoch_s(date)
            # dates with a zone are allowed if the column has a zone: convert both kinds to UTC
            as_utc = self.column.zone and not zoned
            seconds[cell] = float(self._utc(np.array([local_s]))[0]) if as_utc else local_s
        for position in [at for at, cell in enumerate(cells) if cell in wrong] if wrong else ():
            cell = cells[position]
            place.reject(self.column.column, position, cell.strip(), wrong[cell])
        values = np.fromiter(map(seconds.__getitem__, cells), np.float64, len(cells))
        return Timestamps(values, zoned=bool(self._zoned) or bool(self.column.zone))

    def _date(self, text: str) -> datetime:
        if self.column.format:
            return datetime.strptime(text, self.column.format)
        return datetime.fromisoformat(text)

    def _utc(self, local_s: Floats) -> Floats:
        utc_s, repeated = to_utc(local_s, self._zone)
        self.repeated += repeated
        return utc_s


def _first(cells: Any) -> Any:
    return cells[0].item() if isinstance(cells, np.ndarray) else "a duration"
