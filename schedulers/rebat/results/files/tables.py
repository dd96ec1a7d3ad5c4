# SPDX-License-Identifier: Apache-2.0
"""The large tables of a run, as CSV or Parquet files with the same columns and values."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rebat.core.csv_text import original
from rebat.core.errors import unknown_name
from rebat.core.files import atomic_path, open_text, write_lines
from rebat.core.parquet import arrow, opened

FORMATS = ("csv", "parquet")

LONGEST_FIELD = 2**27
"""Maximum length of a field in characters. Python's default (2**17) is too short for node sets."""

UNGUARDED = ("jobs",)
"""Tables in Batsim's format. Their texts are not protected from evaluation in spreadsheets."""

_TEXTS = (
    "job_id",
    "workload_name",
    "profile",
    "final_state",
    "allocated_resources",
    "metadata",
    "cause",
    "why",
    "nodes",
)
_COUNTS = (
    "attempt",
    "attempts",
    "size",
    "failures",
    "stolen",
    "success",
    "requested_number_of_resources",
)


def check_format(form: str, where: str) -> None:
    """Raise InputError if the format is unknown, or if it is Parquet and pyarrow is missing."""
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS).at(where)
    if form == "parquet":
        arrow(Path(where))


def write_table(folder: Path, name: str, lines: Iterable[str], form: str = "csv") -> None:
    """Write a table from the lines of a CSV file with a header."""
    if form == "csv":
        write_lines(folder / f"{name}.csv", lines)
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", suffix=".csv") as text:
        text.writelines(f"{line}\n" for line in lines)
        text.flush()
        _convert(Path(text.name), folder / f"{name}.parquet", name not in UNGUARDED)


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
    """Open a table. Numbers in Parquet files become the same texts as in CSV files.

    Raises
    ------
    InputError
        If the file cannot be read.
    csv.Error
        If the CSV file is invalid.
    """
    if is_parquet(path):
        with opened(path) as file:
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


def _convert(source: Path, path: Path, guarded: bool) -> None:
    """Convert a CSV file to Parquet, batch by batch."""
    pa, pq = arrow(path)
    with _batches(pa, source) as batches, atomic_path(path) as temporary:
        schema = batches.schema
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for batch in batches:
                columns = [_plain(pa, column, guarded) for column in batch.columns]
                writer.write_batch(pa.record_batch(columns, schema=schema))


def _batches(pa: Any, path: Path) -> Any:
    """Open a CSV file as a stream of Arrow batches. Columns are texts, whole numbers or seconds."""
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8") as text:
        header = text.readline().rstrip("\n").split(",")
    kinds = {name: pa.float64() for name in header}
    kinds |= {name: pa.string() for name in header if name in _TEXTS}
    kinds |= {name: pa.int64() for name in header if name in _COUNTS}
    return arrow_csv.open_csv(
        path,
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(column_types=kinds),
    )


def _plain(pa: Any, column: Any, guarded: bool) -> Any:
    """Return a column, without the characters that protect texts in spreadsheets."""
    if not guarded or str(column.type) != "string":
        return column
    return pa.array([original(text) for text in column.to_pylist()], column.type)
