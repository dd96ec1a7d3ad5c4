# SPDX-License-Identifier: Apache-2.0
"""The tables of a run: CSV or Parquet files with the same columns and values.

A file of millions of rows is written in parts, without an object per row. Each part is the input of
`rebat.kernels.csv_rows`. Readers return whole columns.
"""

from __future__ import annotations

import csv
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Bools, Ints
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.files import arrow, atomic_path, open_parquet, open_text, write_bytes
from rebat.core.formatting import name_field, original
from rebat.core.table import Ragged, Texts
from rebat.core.units import MAX_SECONDS, US_PER_S, to_s
from rebat.kernels import csv_rows
from rebat.kernels.jit import is_ready

FORMATS = ("csv", "parquet")

LONGEST_FIELD = 2**27
"""Maximum length of a field in characters. Python's default (2**17) is too short for node sets."""


GROUP = 2**17
"""Number of rows in a group of a Parquet file."""


def check_format(form: str, where: str) -> None:
    """Raise InputError if the format is unknown, or if it is Parquet and pyarrow is missing."""
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS).at(where)
    if form == "parquet":
        arrow(Path(where))


def write_table(folder: Path, name: str, columns: Columns, n: int, form: str = "csv") -> None:
    """Write a table with n rows."""
    if form == "csv":
        write_bytes(folder / f"{name}.csv", csv_parts(columns, n))
        return
    path = folder / f"{name}.parquet"
    pa, pq = arrow(path)
    kinds = {column: _arrow_type(pa, values) for column, values in columns.items()}
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, pa.schema(kinds), compression="zstd") as writer,
    ):
        for first in range(0, n, GROUP):
            values = plain_columns(columns, slice(first, min(first + GROUP, n)))
            arrays = [_arrow_array(pa, values[name], kind) for name, kind in kinds.items()]
            writer.write_batch(pa.record_batch(arrays, schema=pa.schema(kinds)))


def _arrow_array(pa: Any, values: Any, kind: Any) -> Any:
    """Return the values of a column as an Arrow array."""
    if not isinstance(values, Texts):
        return pa.array(values, kind, from_pandas=True)
    ends = pa.py_buffer(values.bounds.astype(np.int32).tobytes())
    return pa.Array.from_buffers(kind, len(values), [None, ends, pa.py_buffer(values.data)])


def _arrow_type(pa: Any, column: Column) -> Any:
    """Return the type of a column in a Parquet file."""
    if isinstance(column, Whole):
        return pa.int64()
    return pa.float64() if isinstance(column, Seconds | Reals) else pa.string()


def table_in(folder: Path, name: str) -> Path:
    """Return the file of a table in a folder, or the path of the CSV file if there is none."""
    parquet = folder / f"{name}.parquet"
    return parquet if parquet.is_file() else folder / f"{name}.csv"


class RowReader(Protocol):
    """An iterator over the header and the rows of a table, as texts, like `csv.reader`."""

    @property
    def line_num(self) -> int: ...
    def __next__(self) -> list[str]: ...
    def __iter__(self) -> Iterator[list[str]]: ...


@contextmanager
def row_reader(path: Path) -> Iterator[RowReader]:
    """Open a table. Numbers in Parquet files become the same texts as in CSV files."""
    if is_parquet(path):
        with open_parquet(path) as file:
            yield _ParquetRows(file)
        return
    csv.field_size_limit(LONGEST_FIELD)
    with open_text(path, newline="") as text:
        yield csv.reader(text, strict=True)


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file, judged by its name."""
    return path.suffix == ".parquet"


class _ParquetRows:
    """The rows of a Parquet file as texts. ``line_num`` counts the header and the rows."""

    def __init__(self, file: Any) -> None:
        self.line_num, self._rows = 0, self._texts(file)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        row = next(self._rows)
        self.line_num += 1
        return row

    @staticmethod
    def _texts(file: Any) -> Iterator[list[str]]:
        yield list(file.schema_arrow.names)
        for batch in file.iter_batches():
            columns = [map(_text, column.to_pylist()) for column in batch.columns]
            yield from map(list, zip(*columns, strict=True))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    return "" if value is None else str(value)


ROWS = 2**14
"""Maximum number of rows in a part."""

MOST_BYTES = 2**26
"""Approximate maximum length of a part, in bytes."""

FEW = 500
"""Number of rows up to which the kernel is not compiled, because this takes longer."""

MARKS = [bytes([mark]) for mark in b"'=+-@\t\r\n\","]
"""Characters of texts that change in a CSV file. Other texts are written unchanged."""

SAFE = 2**49
"""Below this number of microseconds, six decimals of a float are computed with integers."""


class Pool:
    """Texts and intervals of nodes that the rows of a part refer to."""

    def __init__(self) -> None:
        self.size, self.n_intervals = 0, 0
        self._texts: list[bytes] = []
        self._intervals: list[Ints] = [np.empty((0, 2), dtype=np.int64)]

    def add(self, texts: Texts) -> tuple[Ints, Ints]:
        """Add texts. Return the first place of each text and the place after its end."""
        places = texts.bounds + self.size
        self._texts.append(texts.data)
        self.size += len(texts.data)
        return places[:-1], places[1:]

    def add_nodes(self, sets: Ragged) -> tuple[Ints, Ints]:
        """Add sets of nodes. Return the first interval of each set and the one after its last."""
        pairs, ends = sets.pairs(), np.cumsum(sets.number, dtype=np.int64) + self.n_intervals
        self._intervals.append(pairs)
        self.n_intervals += len(pairs)
        return ends - sets.number, ends

    def arrays(self) -> tuple[npt.NDArray[np.uint8], Ints]:
        """Return the bytes of all texts, and all intervals."""
        return np.frombuffer(b"".join(self._texts), np.uint8), np.concatenate(self._intervals)


Fields = tuple[int, Any, Any]
"""Form, first and last of a column (see `rebat.kernels.csv_rows`)."""


class Whole(NamedTuple):
    """Whole numbers."""

    values: npt.NDArray[Any]

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        return csv_rows.WHOLE, self.values[part], csv_rows.NUMBER

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return np.asarray(self.values[part], dtype=np.int64)


class Seconds(NamedTuple):
    """Times in microseconds, written in seconds with six decimals, or empty where missing."""

    us: Ints
    missing: Bools | None = None

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        us = self.us[part]
        if np.abs(us).max(initial=0) >= SAFE:
            return Reals(self.plain(part)).fields(slice(None), pool)
        if self.missing is None:
            return csv_rows.SECONDS, us, csv_rows.NUMBER
        return (
            csv_rows.SECONDS,
            us,
            np.where(self.missing[part], csv_rows.NOTHING, csv_rows.NUMBER),
        )

    def plain(self, part: slice) -> Any:
        """Return the values of some rows. Missing values are NaN."""
        us = self.us[part]
        seconds, large = us / US_PER_S, np.abs(us) >= SAFE
        seconds[large] = list(map(to_s, us[large].tolist()))
        return seconds if self.missing is None else np.where(self.missing[part], np.nan, seconds)


class Reals(NamedTuple):
    """Floats with six decimals. NaN is empty."""

    values: npt.NDArray[np.float64]

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        values = self.values[part]
        rounded, unsafe = self._rounded(values)
        first = np.where(np.signbit(values), -rounded, rounded)
        unsafe |= np.signbit(values) & (rounded == 0)  # -0.000000
        last = np.where(np.isnan(values), csv_rows.NOTHING, csv_rows.NUMBER)
        unsafe &= last == csv_rows.NUMBER
        texts = Texts.of(f"{value:.6f}" for value in values[unsafe].tolist())
        first[unsafe], last[unsafe] = pool.add(texts)
        return csv_rows.SECONDS, first, last

    def plain(self, part: slice) -> Any:
        """Return the values of some rows, rounded to six decimals."""
        values = self.values[part]
        rounded, unsafe = self._rounded(values)
        result = np.copysign(rounded / US_PER_S, values)
        result[unsafe] = [float(f"{value:.6f}") for value in values[unsafe].tolist()]
        return np.where(np.isnan(values), np.nan, result)

    @staticmethod
    def _rounded(values: npt.NDArray[np.float64]) -> tuple[Ints, Bools]:
        """Return the magnitude of values in millionths, and a mask of those that may be wrong.

        A product near a tie may be rounded in the wrong direction.
        """
        missing = np.isnan(values)
        seconds = np.minimum(np.where(missing, 0.0, np.abs(values)), SAFE)
        scaled = np.minimum(seconds * US_PER_S, SAFE)
        rounded = np.rint(scaled)
        tie = np.abs(np.abs(scaled - rounded) - 0.5) <= scaled * 2.0**-51
        return rounded.astype(np.int64), (tie | (scaled >= SAFE)) & ~missing


class Words:
    """Texts with few distinct values: for each row, the position of its text in ``distinct``."""

    def __init__(
        self, codes: Ints, distinct: Sequence[str], field: Callable[[str], str] = name_field
    ) -> None:
        self.codes, self.distinct, self._field = codes, distinct, field

    @classmethod
    def of(cls, values: Iterable[str]) -> Words:
        """Return the column of texts."""
        codes: dict[str, int] = {}
        return cls(
            np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64),
            list(codes),
        )

    @cached_property
    def _texts(self) -> Texts:
        return Texts.of(map(self._field, self.distinct))

    @cached_property
    def _unchanged(self) -> Texts:
        return Texts.of(self.distinct)

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        first, last = pool.add(self._texts)
        codes = self.codes[part]
        return csv_rows.WHOLE, first[codes], last[codes]

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return self._unchanged.take(self.codes[part])


class Names(NamedTuple):
    """Texts with many distinct values. ``of`` returns the texts of a slice."""

    of: Callable[[slice], Texts]
    field: Callable[[str], str] = name_field

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        texts = self.of(part)
        if any(mark in texts.data for mark in MARKS):
            texts = Texts.of(map(self.field, texts))
        return csv_rows.WHOLE, *pool.add(texts)

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        return self.of(part)


class Nodes(NamedTuple):
    """Sets of nodes in Batsim's notation, like ``0-3 5``."""

    sets: Ragged

    def fields(self, part: slice, pool: Pool) -> Fields:
        """Return some rows as the kernel reads them."""
        return csv_rows.NODES, *pool.add_nodes(self.sets.at(part))

    def plain(self, part: slice) -> Any:
        """Return the values of some rows."""
        rows = range(len(self.sets.first))[part]
        text, ends = _csv_part({"": self}, slice(rows.start, rows.stop), len(rows) <= FEW)
        line_ends = np.arange(len(rows) + 1)
        return Texts(text.replace(b"\n", b""), np.concatenate([[0], ends]) - line_ends)


Column = Whole | Seconds | Reals | Words | Names | Nodes
Columns = Mapping[str, Column]


def plain_columns(columns: Columns, part: slice) -> dict[str, Any]:
    """Return the values of some rows by column: arrays of numbers, and `Texts`."""
    return {name: column.plain(part) for name, column in columns.items()}


def csv_parts(columns: Columns, n: int) -> Iterator[bytes]:
    """Yield the text of a CSV file with n rows: the header, then parts of rows."""
    yield (",".join(columns) + "\n").encode()
    for text, _ in _parts(columns, n):
        yield text


def csv_lines(columns: Columns, n: int) -> Iterator[str]:
    """Yield the header and the rows of a CSV file with n rows, each without its line end."""
    yield ",".join(columns)
    for text, ends in _parts(columns, n):
        for first, end in itertools.pairwise([0, *ends.tolist()]):
            yield text[first : end - 1].decode()


def _parts(columns: Columns, n: int) -> Iterator[tuple[bytes, Ints]]:
    """Yield parts of the rows of a CSV file, with the end of each row in bytes."""
    first, size = 0, min(ROWS, 1024)
    while first < n:
        text, ends = _csv_part(columns, slice(first, min(first + size, n)), n <= FEW)
        yield text, ends
        first += size
        size = min(ROWS, max(1, size * MOST_BYTES // len(text)))


def _csv_part(columns: Columns, part: slice, few: bool) -> tuple[bytes, Ints]:
    """Return some rows as the text of a CSV file, and the end of each row in bytes."""
    n, pool = part.stop - part.start, Pool()
    forms = np.empty(len(columns), dtype=np.int64)
    first, last = np.empty((2, len(columns), n), dtype=np.int64)
    for at, column in enumerate(columns.values()):
        forms[at], first[at], last[at] = column.fields(part, pool)
    texts, intervals = pool.arrays()
    of_texts = np.where(last >= 0, last - first, 0)[forms != csv_rows.NODES].sum()
    out = np.empty(of_texts + csv_rows.WIDEST * (first.size + len(intervals)), dtype=np.uint8)
    ends, write = np.empty(n, dtype=np.int64), csv_rows.write_rows
    arguments = forms, first, last, texts, intervals, out, ends
    if few and not _is_ready(write, arguments):
        write = inspect.unwrap(write)
    write(*arguments)
    return out[: ends[-1] if n else 0].tobytes(), ends


_READY: set[tuple[Any, ...]] = set()


def _is_ready(write: Callable[..., Any], arguments: tuple[npt.NDArray[Any], ...]) -> bool:
    """Return whether the writer is compiled, without another look at its cache if it is."""
    kinds = tuple((a.dtype, a.ndim, a.flags.writeable, a.flags.c_contiguous) for a in arguments)
    if kinds not in _READY and is_ready(write, arguments):
        _READY.add(kinds)
    return kinds in _READY


Int = npt.NDArray[np.int64]


class Rows:
    """The rows of a CSV or Parquet file, read by column. Errors name file and line."""

    def __init__(self, path: Path, required: Sequence[str]) -> None:
        self.path = path
        header, rows, self._lines = _fields(path)
        missing = [name for name in required if name not in header]
        if missing:
            raise InputError(
                f"has no column {', '.join(missing)}", f"{path}:1", "a file of rebat run"
            )
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        self._columns = dict(zip(header, map(list, columns), strict=False))

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def texts(self, name: str) -> list[str]:
        """Return the unchanged texts of a column."""
        return self._columns[name]

    def names(self, name: str) -> list[str]:
        """Return a column of names, without the prefix that protects texts in spreadsheets."""
        texts = self._columns[name]
        return texts if is_parquet(self.path) else list(map(original, texts))

    def place(self, at: int) -> str:
        """Return file and line of a row."""
        return f"{self.path}:{self._lines[at]}"

    def refuse(
        self, wrong: npt.NDArray[np.bool_], problem: str, expected: str | None = None
    ) -> None:
        """If ``wrong`` is True for a row, raise InputError for the first of these rows."""
        if wrong.any():
            raise InputError(problem, self.place(int(wrong.argmax())), expected)

    def times(self, name: str, empty: int | None = None) -> Int:
        """Read a column of times in seconds, and return it in microseconds.

        ``empty`` is the value of empty fields. If it is None, an empty field is an error.
        """
        texts = self.texts(name)
        if empty is None:
            return np.rint(self._numbers(name, texts) * US_PER_S).astype(np.int64)
        there = np.array([text != "" for text in texts], dtype=np.bool_)
        values = self._numbers(name, [text or "0" for text in texts])
        return np.where(there, np.rint(values * US_PER_S), empty).astype(np.int64)

    def counts(self, name: str) -> Int:
        """Return a column of whole numbers of at least 0."""
        values = self._numbers(name, self.texts(name))
        self.refuse(values != np.floor(values), f"{name} is not a whole number")
        return values.astype(np.int64)

    def _numbers(self, name: str, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        try:
            values = np.array(texts, dtype=float)
        except ValueError:
            values = np.array([_number(text) for text in texts])
        wrong = ~((values >= 0) & (values <= MAX_SECONDS))
        if wrong.any():
            at = int(wrong.argmax())
            problem = f"{name} is {short(texts[at])}"
            raise InputError(problem, self.place(at), "a number of at least 0")
        return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _fields(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the header, the rows, and the line number at which each row ends."""
    with row_reader(path) as reader:
        try:
            header, rows, lines = next(reader, []), [], []
            for fields in reader:
                if len(fields) != len(header):
                    expected = f"{len(header)} fields, as in the header"
                    place = f"{path}:{reader.line_num}"
                    raise InputError(f"has {len(fields)} fields", place, expected)
                rows.append(fields)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise InputError(f"invalid CSV: {error}", f"{path}:{reader.line_num}") from None
    return header, rows, lines
