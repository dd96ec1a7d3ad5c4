# SPDX-License-Identifier: Apache-2.0
"""The large tables of a run, as CSV or Parquet files with the same columns and values."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rebat.core.errors import unknown_name
from rebat.core.files import arrow, atomic_path, open_text, opened, write_bytes
from rebat.core.table import Texts
from rebat.results.files.columns import (
    Column,
    Columns,
    Reals,
    Seconds,
    Whole,
    csv_parts,
    plain_columns,
)

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
