# SPDX-License-Identifier: Apache-2.0
"""Columns of result files, as CSV text, and as values for Parquet files and DataFrames.

A column yields its *cells*: a matrix of bytes with a row per row of the table, in which `PAD` fills
the space that a value does not need. A file of millions of rows is written in parts without an
object per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.csv_text import csv_field, name_field
from rebat.core.table import Ragged
from rebat.core.texts import Texts
from rebat.core.units import US_PER_S, to_s

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

PAD = 0xFF
"""A byte that does not occur in UTF-8."""

ROWS = 2**14
"""Maximum number of rows in a part."""

MOST_BYTES = 2**26
"""Approximate maximum size of the cells of a part, in bytes."""

SAFE = 2**49
"""Below this number of microseconds, six decimals of a float are computed with integers."""

_ZERO, _MINUS, _POINT, _COMMA, _SPACE, _END = b"0-., \n"
_FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % n for n in range(10_000)), np.uint8).reshape(-1, 4)


class Whole(NamedTuple):
    """Whole numbers."""

    values: npt.NDArray[Any]

    def cells(self, part: slice) -> Bytes:
        """Return the cells of some rows."""
        values = np.asarray(self.values[part], dtype=np.int64)
        return _signed(values < 0, _digits(np.abs(values)))

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return np.asarray(self.values[part], dtype=np.int64)


class Seconds(NamedTuple):
    """Times in microseconds, written in seconds with six decimals, or empty where missing."""

    us: npt.NDArray[np.int64]
    missing: Bools | None = None

    def cells(self, part: slice) -> Bytes:
        """Return the cells of some rows."""
        us = self.us[part]
        if np.abs(us).max(initial=0) >= SAFE:
            return Reals(self.plain(part)).cells(slice(None))
        cells = _signed(us < 0, _six_decimals(np.abs(us)))
        return cells if self.missing is None else _empty(cells, self.missing[part])

    def plain(self, part: slice) -> Any:
        """Return the values of some rows. Missing values are NaN."""
        us = self.us[part]
        seconds, large = us / US_PER_S, np.abs(us) >= SAFE
        seconds[large] = list(map(to_s, us[large].tolist()))
        return seconds if self.missing is None else np.where(self.missing[part], np.nan, seconds)


class Reals(NamedTuple):
    """Floats with six decimals. NaN is empty."""

    values: npt.NDArray[np.float64]

    def cells(self, part: slice) -> Bytes:
        """Return the cells of some rows."""
        values = self.values[part]
        rounded, unsafe = self._rounded(values)
        cells = _signed(np.signbit(values), _six_decimals(rounded))
        if unsafe.any():
            texts = _matrix(Texts.of(f"{value:.6f}" for value in values[unsafe].tolist()))
            cells = _padded(cells, texts.shape[1])
            cells[unsafe] = _padded(texts, cells.shape[1])
        return _empty(cells, np.isnan(values))

    def plain(self, part: slice) -> Any:
        """Return the values of some rows, rounded to six decimals."""
        values = self.values[part]
        rounded, unsafe = self._rounded(values)
        result = np.copysign(rounded / US_PER_S, values)
        result[unsafe] = [float(f"{value:.6f}") for value in values[unsafe].tolist()]
        return np.where(np.isnan(values), np.nan, result)

    @staticmethod
    def _rounded(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], Bools]:
        """Return the magnitude of values in millionths, and a mask of those that may be wrong.

        A product near a tie may be rounded in the wrong direction.
        """
        missing = np.isnan(values)
        seconds = np.minimum(np.where(missing, 0.0, np.abs(values)), SAFE)
        scaled = np.minimum(seconds * US_PER_S, SAFE)
        rounded = np.rint(scaled)
        tie = np.abs(np.abs(scaled - rounded) - 0.5) <= scaled * 2.0**-51
        return rounded.astype(np.int64), (tie | (scaled >= SAFE)) & ~missing


class Words(NamedTuple):
    """Texts with few distinct values: for each row, the position of its text in ``distinct``."""

    codes: npt.NDArray[np.int64]
    distinct: Sequence[str]
    field: Callable[[str], str] = name_field

    def cells(self, part: slice) -> Bytes:
        """Return the cells of some rows."""
        if len(self.distinct) == 1:
            one = _matrix(Texts.of(map(self.field, self.distinct)))
            return np.broadcast_to(one, (len(self.codes[part]), one.shape[1]))
        used, codes = np.unique(self.codes[part], return_inverse=True)
        texts = Texts.of(self.field(self.distinct[code]) for code in used.tolist())
        return _matrix(texts)[codes]

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return [self.distinct[code] for code in self.codes[part].tolist()]


class Names(NamedTuple):
    """Texts with many distinct values. ``of`` returns the texts of a slice."""

    of: Callable[[slice], Texts]
    field: Callable[[str], str] = name_field

    def cells(self, part: slice) -> Bytes:
        """Return the cells of some rows."""
        texts = self.of(part)
        if not texts.data.isalnum():
            texts = Texts.of(map(self.field, texts))
        return _matrix(texts)

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return [*self.of(part)]


class Nodes(NamedTuple):
    """Sets of nodes in Batsim's notation, like ``0-3 5``."""

    sets: Ragged

    def texts(self, part: slice) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """Return the texts of some rows without gaps, and the length of each text."""
        sets = self.sets.at(part)
        number = np.asarray(sets.number, dtype=np.int64)
        ends, pairs = np.cumsum(number), sets.pairs()
        total = len(pairs)
        if not total:
            return np.empty(0, np.uint8), np.zeros(len(number), np.int64)
        first, last = _digits(pairs[:, 0]), _digits(pairs[:, 1])
        single = pairs[:, 0] == pairs[:, 1]
        last[single] = PAD
        cells = np.hstack([first, _column(_MINUS, total), last, _column(_SPACE, total)])
        cells[single, first.shape[1]] = PAD
        cells[ends[number > 0] - 1, -1] = PAD
        kept = cells != PAD
        lengths = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return cells[kept], lengths[ends] - lengths[ends - number]

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        text, lengths = self.texts(part)
        ends = np.cumsum(lengths)
        spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        whole = text.tobytes().decode()
        return [whole[first:end] for first, end in spans]


Column = Whole | Seconds | Reals | Words | Names | Nodes
Columns = Mapping[str, Column]


def plain_columns(columns: Columns, part: slice) -> dict[str, Any]:
    """Return the values of some rows by column: arrays of numbers, and lists of texts."""
    return {name: column.plain(part) for name, column in columns.items()}


def fixed(text: str, n: int, field: Callable[[str], str] = csv_field) -> Words:
    """Return a column with the same text in each of n rows."""
    return Words(np.broadcast_to(np.int64(0), n), [text], field)


def csv_parts(columns: Columns, n: int) -> Iterator[bytes]:
    """Yield the text of a CSV file with n rows: the header, then parts of rows."""
    yield (",".join(columns) + "\n").encode()
    for text, _ in _parts(columns, n):
        yield text


def csv_lines(columns: Columns, n: int) -> Iterator[str]:
    """Yield the header and the rows of a CSV file with n rows, each without its line end."""
    yield ",".join(columns)
    for text, lengths in _parts(columns, n):
        first = 0
        for length in lengths:
            yield text[first : first + length - 1].decode()
            first += length


def _parts(columns: Columns, n: int) -> Iterator[tuple[bytes, list[int]]]:
    """Yield parts of the rows of a CSV file, with the length of each row in bytes."""
    size = ROWS
    first = 0
    while first < n:
        part = slice(first, min(first + size, n))
        text, lengths, width = _text(columns, part)
        yield text, lengths
        first = part.stop
        size = min(ROWS, max(1, MOST_BYTES // max(width, 1)))


def _text(columns: Columns, part: slice) -> tuple[bytes, list[int], int]:
    """Return some rows as text, the length of each row, and the width of all cells."""
    n = part.stop - part.start
    segments: list[tuple[Bytes, npt.NDArray[np.int64]]] = []
    cells: list[Bytes] = []
    width = 0

    def close() -> None:
        matrix = np.hstack(cells)
        kept = matrix != PAD
        segments.append((matrix[kept], kept.sum(axis=1)))
        cells.clear()

    for place, column in enumerate(columns.values()):
        if place:
            cells.append(_column(_COMMA, n))
        if isinstance(column, Nodes):
            if cells:
                close()
            segments.append(column.texts(part))
        else:
            cells.append(column.cells(part))
            width += cells[-1].shape[1] + 1
    cells.append(_column(_END, n))
    close()
    lengths = np.stack([lengths for _, lengths in segments], axis=1)
    if len(segments) == 1:
        return segments[0][0].tobytes(), lengths[:, 0].tolist(), width
    places = np.tile(np.arange(len(segments), dtype=np.int8), n)
    which = np.repeat(places, lengths.ravel())
    text = np.empty(len(which), dtype=np.uint8)
    for place, (part_text, _) in enumerate(segments):
        text[which == place] = part_text
    return text.tobytes(), lengths.sum(axis=1).tolist(), width


def _column(byte: int, n: int) -> Bytes:
    return np.full((n, 1), byte, dtype=np.uint8)


def _digits(values: npt.NDArray[np.int64]) -> Bytes:
    """Return the decimal digits of numbers of at least 0, aligned to the right."""
    n_groups = -(-len(str(int(values.max(initial=0)))) // 4)
    cells = np.empty((len(values), 4 * n_groups), dtype=np.uint8)
    for group in reversed(range(n_groups)):
        values, four = np.divmod(values, 10_000) if group else (values, values)
        cells[:, 4 * group : 4 * group + 4] = _FOUR_DIGITS[four]
    leading = ~np.logical_or.accumulate(cells != _ZERO, axis=1)
    leading[:, -1] = False
    cells[leading] = PAD
    return cells


def _six_decimals(us: npt.NDArray[np.int64]) -> Bytes:
    """Return microseconds of at least 0 as seconds with six decimals."""
    whole, fraction = np.divmod(us, US_PER_S)
    high, low = np.divmod(fraction, 100)
    point = _column(_POINT, len(us))
    return np.hstack([_digits(whole), point, _FOUR_DIGITS[high], _FOUR_DIGITS[low][:, 2:]])


def _signed(negative: Bools, cells: Bytes) -> Bytes:
    if not negative.any():
        return cells
    return np.hstack([np.where(negative, _MINUS, PAD).astype(np.uint8)[:, None], cells])


def _empty(cells: Bytes, missing: Bools) -> Bytes:
    if missing.any():
        cells[missing] = PAD
    return cells


def _matrix(texts: Texts) -> Bytes:
    """Return texts as cells."""
    lengths = np.diff(texts.bounds)
    cells = np.full((len(texts), int(lengths.max(initial=0))), PAD, dtype=np.uint8)
    cells[np.arange(cells.shape[1]) < lengths[:, None]] = np.frombuffer(texts.data, np.uint8)
    return cells


def _padded(cells: Bytes, width: int) -> Bytes:
    """Return cells that are at least ``width`` wide."""
    more = width - cells.shape[1]
    return np.pad(cells, ((0, 0), (max(0, more), 0)), constant_values=PAD)
