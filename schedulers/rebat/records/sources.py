# SPDX-License-Identifier: Apache-2.0
"""Readers of files in blocks of columns: CSV, JSON, Parquet, and columns of words.

A column of a JSON file is a path in the object of a job: names and positions, separated by dots.
``-1`` means the last element, ``*`` means all elements, and ``#`` at the end counts elements.
Example: ``attempts.-1.detail.*.gpus.#`` is the number of GPUs of the last attempt.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import compress, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.files import OPENERS, open_parquet, open_text
from rebat.records.cells import Cells, Lengths, Timestamps
from rebat.records.mapping import CsvLayout, TableMapping
from rebat.records.table import Problems

BLOCK_ROWS = 65_536

COMMAS = CsvLayout()

PARQUET, JSON, CSV = "Parquet", "JSON", "CSV"


class Block(NamedTuple):
    """A block of rows as columns, with the line number (or row number) of each row."""

    lines: list[int]
    columns: dict[str, Cells]


def opened(path: Path) -> AbstractContextManager[IO[str]]:
    """Open a text file, plain, .gz or .xz, without conversion of line ends.

    Bytes that are not UTF-8 are replaced.
    """
    return open_text(path, newline="\n", errors="replace")


def without(
    blocks: Iterable[Block], reasons: Callable[[Block], Sequence[str]], dropped: Counter[str]
) -> Iterator[Block]:
    """Leave out rows.

    Parameters
    ----------
    reasons : callable
        Return for each row of a block the reason why it is left out, or an empty text.
    dropped : Counter
        Receives the number of rows by reason.
    """
    for block in blocks:
        why = reasons(block)
        dropped.update(filter(None, why))
        mask = np.array([not reason for reason in why], dtype=np.bool_)
        if mask.any():
            yield block if mask.all() else chosen_rows(block, mask)


def chosen_rows(block: Block, mask: Any) -> Block:
    """Return the rows of a block that a mask selects."""
    taken = {name: _chosen(cells, mask) for name, cells in block.columns.items()}
    return Block(list(compress(block.lines, mask)), taken)


def _chosen(cells: Cells, mask: Any) -> Cells:
    if isinstance(cells, list):
        return list(compress(cells, mask))
    if isinstance(cells, Timestamps):
        return Timestamps(cells.seconds[mask], cells.zoned)
    return Lengths(cells.seconds[mask]) if isinstance(cells, Lengths) else cells[mask]


def blocks_of(
    rows: Iterable[tuple[int, Mapping[str, Any]]], names: Sequence[str] = ()
) -> Iterator[Block]:
    """Yield rows, each with its line number and its values by column, in blocks of columns.

    The default of ``names`` are the columns of the first row.
    """
    rows = iter(rows)
    while part := list(islice(rows, BLOCK_ROWS)):
        names = names or list(part[0][1])
        columns: dict[str, Cells] = {n: [row.get(n, "") for _, row in part] for n in names}
        yield Block([line for line, _ in part], columns)


@contextmanager
def regular(path: Path) -> Iterator[Path]:
    """Yield a path that can be read several times. A pipe is copied to a temporary file first.

    Errors name the pipe, not the temporary file.
    """
    if not path.exists() or path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / (path.name or "pipe")
        try:
            with path.open("rb") as source:
                start = source.read(2)
                copy = copy.with_suffix(".gz") if start == b"\x1f\x8b" else copy
                with copy.open("wb") as sink:
                    sink.write(start)
                    shutil.copyfileobj(source, sink)
        except OSError as error:
            raise InputError(f"cannot read the file: {error.strerror}", str(path)) from None
        try:
            yield copy
        except InputError as error:
            where = (error.where or "").replace(str(copy), str(path)) or None
            raise InputError(error.problem, where, error.expected) from None


def kind_of(path: Path) -> str:
    """Return the kind of a table, detected from its first bytes."""
    try:
        opener = OPENERS.get(path.suffix, open)
        with opener(path, "rb") as file:
            start = file.read(4096)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read the file: {reason}", str(path)) from None
    if start.startswith(b"PAR1"):
        return PARQUET
    return JSON if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{") else CSV


def header_of(path: Path) -> list[str]:
    """Return the column names of a table.

    For CSV, these are the texts in the first line between commas.
    """
    kind = kind_of(path)
    if kind == PARQUET:
        return parquet_header(path)
    return json_header(path) if kind == JSON else _csv_header(path)


def table_blocks(path: Path, mapping: TableMapping, problems: Problems) -> Iterator[Block]:
    """Yield the rows of a table in blocks, with only the columns of the mapping."""
    kind = kind_of(path)
    if kind == CSV:
        yield from csv_blocks(path, mapping.present, problems, mapping.csv)
        return
    read = parquet_batches if kind == PARQUET else json_batches
    for lines, columns in read(path, mapping, BLOCK_ROWS):
        yield Block(lines, columns)


def _csv_header(path: Path) -> list[str]:
    try:
        with open_text(path, newline="") as text:
            return [name.strip() for name in next(csv.reader(text), [])]
    except csv.Error as error:
        raise InputError(f"broken CSV: {error}", str(path)) from None


def csv_blocks(
    path: Path,
    chosen: Callable[[Sequence[str], str], Sequence[str]],
    problems: Problems,
    layout: CsvLayout = COMMAS,
) -> Iterator[Block]:
    """Yield the rows of a CSV file in blocks.

    Parameters
    ----------
    path : Path
        Plain, .gz or .xz.
    chosen : callable
        Return the columns to read, from the header and its place. Raise InputError if a column is
        missing.
    problems : Problems
        Receives rows with too few or too many fields.
    """
    with open_text(path, newline="") as text:
        reader = csv.reader(text, delimiter=layout.delimiter)
        try:
            header = list(layout.names) or [name.strip() for name in next(reader, [])]
            columns = chosen(header, f"{path}:1")
            for lines, rows in _row_groups(reader, header, columns, layout, problems):
                cells = zip(columns, zip(*rows, strict=True), strict=True)
                yield Block(lines, {name: list(column) for name, column in cells})
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", f"{path}:{reader.line_num}") from None


def _row_groups(
    reader: Any, header: list[str], columns: Sequence[str], layout: CsvLayout, problems: Problems
) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Yield line numbers, and the fields of the columns, in groups of rows."""
    positions, width = [header.index(name) for name in columns], len(header)
    names = [name.lower() for name in header]
    pick = itemgetter(*positions, positions[0])  # with two or more positions, the result is a tuple
    lines: list[int] = []
    rows: list[tuple[str, ...]] = []
    for fields in reader:
        if layout.comment and fields and fields[0].startswith(layout.comment):
            continue
        if len(fields) != width:
            if fields:
                expected = ": " + ", ".join(header) if layout.names else " as in the header"
                problem = f"has {len(fields)} fields"
                kind = "more fields" if len(fields) > width else "fewer fields"
                problems.add(reader.line_num, problem, f"{width}{expected}", kind)
            continue
        if fields[0].strip().lower() == names[0] and [f.strip().lower() for f in fields] == names:
            continue
        lines.append(reader.line_num)
        rows.append(pick(fields)[:-1])
        if len(rows) == BLOCK_ROWS:
            yield lines, rows
            lines, rows = [], []
    if rows:
        yield lines, rows


def word_blocks(
    path: Path, names: Sequence[str], comment: str, problems: Problems, comments: list[str]
) -> Iterator[Block]:
    """Yield rows of numbers between spaces in blocks, with a column for each name.

    Parameters
    ----------
    names : sequence of str
        Names of the columns. Rows may have further columns.
    comment : str
        Begin of lines that are not rows. These lines are added to ``comments``.
    problems : Problems
        Receives rows with too few fields, or with fields that are not numbers.
    """
    with open_text(path, errors="replace") as text:  # old traces have comments in Latin-1
        numbered = enumerate(text, 1)
        while part := list(islice(numbered, BLOCK_ROWS)):
            lines, rows = [], []
            for number, line in part:
                row = line.strip()
                if row.startswith(comment):
                    comments.append(row)
                elif row:
                    lines.append(number)
                    rows.append(row)
            if rows and "\0" in part[0][1]:
                raise InputError("is not a text file", str(path), "a trace, plain or .gz")
            if rows:
                lines, table = _number_table(lines, rows, len(names), problems)
                yield Block(lines, {n: table[:, at] for at, n in enumerate(names)})


def _number_table(
    lines: list[int], rows: list[str], width: int, problems: Problems
) -> tuple[list[int], Any]:
    """Return the numbers of valid rows, with the lines of these rows."""
    import pandas as pd

    text = "\n".join(rows)
    try:
        if "." in text or "e" in text or "E" in text:  # pandas 2 rounds some fractions
            table = np.loadtxt(rows, usecols=range(width), ndmin=2, comments=None)
        else:
            frame = pd.read_csv(
                io.StringIO(text),
                sep=r"\s+",
                header=None,
                dtype=np.float64,
                quoting=csv.QUOTE_NONE,
                na_filter=False,
                index_col=False,
            )
            table = frame.to_numpy()[:, :width]
        if table.shape == (len(rows), width) and np.isfinite(table).all():
            return lines, table
    except (ValueError, OverflowError):
        pass
    valid, numbers = [], []
    for line, row in zip(lines, rows, strict=True):
        try:
            numbers.append(_numbers_of(row, width))
            valid.append(line)
        except InputError as error:
            problems.add(line, error.problem, error.expected, error.where or "fields")
    return valid, np.array(numbers, dtype=np.float64).reshape(len(numbers), width)


def _numbers_of(row: str, width: int) -> list[float]:
    fields = row.split()
    if len(fields) < width:
        raise InputError(f"has {len(fields)} fields", expected=f"{width} fields in every line")
    numbers = []
    for position, field in enumerate(fields[:width], 1):
        try:
            value = float(field)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            problem = f"field {position} is {field[:40]!r}"
            raise InputError(problem, f"field {position}", "a number")
        numbers.append(value)
    return numbers


ALL, COUNT = "*", "#"


def json_header(path: Path) -> list[str]:
    """Return the names in the objects, in order of first use."""
    return _names(_objects(path))


def json_batches(
    path: Path, mapping: TableMapping, size: int
) -> Iterator[tuple[list[int], dict[str, Cells]]]:
    """Yield the positions of jobs (from 1) and the columns of the mapping, in batches."""
    objects = _objects(path)
    header = set(_names(objects))
    heads = {name: name.split(".")[0] for name in mapping.read}
    reached = [name for name, head in heads.items() if head in header or name in header]
    names = mapping.present(reached, str(path))
    for start in range(0, len(objects), size):
        part = objects[start : start + size]
        columns: dict[str, Cells] = {name: _column(part, name) for name in names}
        yield list(range(start + 1, start + len(part) + 1)), columns


def _objects(path: Path) -> list[dict[str, Any]]:
    data = _read(path)
    try:
        rows = msgspec.json.decode(data)
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(path), "UTF-8 text, plain or .gz") from None
    except msgspec.DecodeError:
        rows = _lines(data, str(path))
    except RecursionError:
        raise InputError("is nested too deeply", str(path), "a list of jobs") from None
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise InputError("is not a table", str(path), "a list of objects, or an object per line")
    for position, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError("is not an object", f"{path}:{position}", "a job")
    return rows


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).removeprefix(
            b"\xef\xbb\xbf"
        )
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read the file: {error}", str(path)) from None


def _lines(data: bytes, where: str) -> list[Any]:
    """Parse an object per line. If the first line is invalid, the error lists the valid formats."""
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                expected = "a list of objects, or an object per line"
                raise InputError(f"broken JSON: {error}", f"{where}:{number}", expected) from None
    return rows


def _names(objects: list[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for row in objects:
        names.update(dict.fromkeys(row))
    return list(names)


def _column(rows: list[dict[str, Any]], name: str) -> list[str]:
    if any(name in row for row in rows):
        return [_text(row.get(name)) for row in rows]
    steps = name.split(".")
    return [_text(value_at(row, steps)) for row in rows]


def value_at(row: Any, steps: list[str]) -> Any:
    """Return the value at a path. Return None if the object has no value there.

    >>> value_at({"a": [{"b": [1, 2]}, {"b": [3]}]}, ["a", "*", "b", "#"])
    3
    >>> value_at({"a": [{"b": "x"}, {"b": "y"}]}, ["a", "-1", "b"])
    'y'
    """
    values = [row]
    for step in steps:
        if step == COUNT:
            return sum(len(value) for value in values if isinstance(value, list | dict))
        values = [inner for value in values for inner in _inside(value, step)]
    return values[0] if values else None


def _inside(value: Any, step: str) -> list[Any]:
    if isinstance(value, dict):
        return [value[step]] if step in value else []
    if not isinstance(value, list):
        return []
    if step == ALL:
        return value
    if step.lstrip("-").isdecimal():
        position = int(step)
        return [value[position]] if -len(value) <= position < len(value) else []
    return []


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def parquet_header(path: Path) -> list[str]:
    """Return the names of the columns."""
    with open_parquet(path) as file:
        return list(file.schema_arrow.names)


def parquet_batches(
    path: Path, mapping: TableMapping, size: int
) -> Iterator[tuple[list[int], dict[str, Cells]]]:
    """Yield row numbers (from 1) and the columns of the mapping, in batches of ``size`` rows."""
    where, first = str(path), 1
    with open_parquet(path) as file:
        names = mapping.present(list(file.schema_arrow.names), where)
        for batch in file.iter_batches(batch_size=size, columns=names):
            columns = {
                name: _cells(batch.column(batch.schema.get_field_index(name)), name, where)
                for name in names
            }
            yield list(range(first, first + batch.num_rows)), columns
            first += batch.num_rows


def _cells(array: Any, name: str, where: str) -> Cells:
    """Return an Arrow array as cells."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_date(kind):
        return Timestamps(_seconds(array.cast("timestamp[s]"), "s"), zoned=False)
    if types.is_timestamp(kind):
        return Timestamps(_seconds(array, kind.unit), zoned=kind.tz is not None)
    if types.is_duration(kind):
        return Lengths(_seconds(array, kind.unit))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers: Cells = _numbers(array, whole=types.is_integer(kind))
        return numbers
    if types.is_boolean(kind):
        array = array.cast("string")
    elif types.is_null(kind):
        return [""] * len(array)
    elif not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        expected = "a column of texts, numbers, dates or durations"
        raise InputError(f"the column {name} has the type {str(kind)[:60]}", where, expected)
    return ["" if text is None else text for text in array.to_pylist()]


def _numbers(array: Any, whole: bool) -> Any:
    """Return integers without missing values as int64, and other numbers as float64."""
    if whole and not array.null_count and str(array.type) != "uint64":
        return array.cast("int64").to_numpy(zero_copy_only=False)
    return array.cast("float64", safe=False).to_numpy(zero_copy_only=False)


def _seconds(array: Any, unit: str) -> Any:
    """Return times or durations in seconds. Missing values are NaN."""
    missing = array.is_null().to_numpy(zero_copy_only=False)
    counts = array.cast("int64").fill_null(0).to_numpy(zero_copy_only=False)
    whole, rest = np.divmod(counts, _PER_SECOND[unit])
    return np.where(missing, np.nan, whole + rest / _PER_SECOND[unit])
