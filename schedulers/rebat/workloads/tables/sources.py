# SPDX-License-Identifier: Apache-2.0
"""Reader of table files in batches. The content of the file determines the format."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.workloads.tables.cells import Cells
from rebat.workloads.tables.json_source import json_batches, json_header
from rebat.workloads.tables.mapping import CsvLayout, TableMapping
from rebat.workloads.tables.parquet_source import parquet_batches, parquet_header

BATCH_ROWS = 65_536

PARQUET, JSON, CSV = "Parquet", "JSON", "CSV"


class RowBatch(NamedTuple):
    """A batch of rows as columns, with the line number (or row number) of each row."""

    lines: list[int]
    columns: dict[str, Cells]


def kind_of(path: Path) -> str:
    """Return the kind of a table, detected from its first bytes.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            start = file.read(4096)
    except (OSError, EOFError, zlib.error) as error:
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


def batches(path: Path, mapping: TableMapping) -> Iterator[RowBatch]:
    """Yield the rows of a table in batches, with only the columns of the mapping.

    Raises
    ------
    InputError
        If the file is broken, or a column is missing.
    """
    kind = kind_of(path)
    if kind == PARQUET:
        rows = parquet_batches(path, mapping, BATCH_ROWS)
    elif kind == JSON:
        rows = json_batches(path, mapping, BATCH_ROWS)
    else:
        rows = _csv_batches(path, mapping)
    for lines, columns in rows:
        yield RowBatch(lines, columns)


def _csv_header(path: Path) -> list[str]:
    try:
        with open_text(path, newline="") as text:
            return [name.strip() for name in next(csv.reader(text), [])]
    except csv.Error as error:
        raise InputError(f"broken CSV: {error}", str(path)) from None


def _csv_batches(path: Path, mapping: TableMapping) -> Iterator[tuple[list[int], dict[str, Cells]]]:
    with open_text(path, newline="") as text:
        reader = csv.reader(text, delimiter=mapping.csv.delimiter)
        try:
            header = _names(reader, mapping.csv)
            columns = mapping.present(header, f"{path}:1")
            positions = [header.index(name) for name in columns]
            for lines, rows in _row_groups(reader, len(header), positions, str(path)):
                yield (
                    lines,
                    {n: list(c) for n, c in zip(columns, zip(*rows, strict=True), strict=True)},
                )
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", f"{path}:{reader.line_num}") from None


def _names(reader: Iterator[list[str]], layout: CsvLayout) -> list[str]:
    return list(layout.names) or [name.strip() for name in next(reader, [])]


def _row_groups(
    reader: Any, width: int, positions: list[int], where: str
) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Yield line numbers, and the fields at the positions, in groups of rows."""
    pick = itemgetter(*positions, positions[0])  # with two or more positions, the result is a tuple
    lines: list[int] = []
    rows: list[tuple[str, ...]] = []
    for fields in reader:
        if len(fields) != width:
            if not fields:
                continue
            place = f"{where}:{reader.line_num}"
            raise InputError(f"has {len(fields)} fields", place, f"{width} as in the header")
        lines.append(reader.line_num)
        rows.append(pick(fields)[:-1])
        if len(rows) == BATCH_ROWS:
            yield lines, rows
            lines, rows = [], []
    if rows:
        yield lines, rows
