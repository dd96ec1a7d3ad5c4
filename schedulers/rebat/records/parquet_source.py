# SPDX-License-Identifier: Apache-2.0
"""Parquet files as batches of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.errors import InputError
from rebat.core.parquet import opened
from rebat.records.cells import Cells, Lengths, Timestamps
from rebat.records.mapping import TableMapping

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def parquet_header(path: Path) -> list[str]:
    """Return the names of the columns."""
    with opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_batches(
    path: Path, mapping: TableMapping, size: int
) -> Iterator[tuple[list[int], dict[str, Cells]]]:
    """Yield row numbers (from 1) and the columns of the mapping, in batches of ``size`` rows.

    Raises
    ------
    InputError
        If pyarrow is not installed, the file is broken, or a column is missing or has a nested
        type.
    """
    where, first = str(path), 1
    with opened(path) as file:
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
