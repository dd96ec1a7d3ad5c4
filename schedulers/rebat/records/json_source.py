# SPDX-License-Identifier: Apache-2.0
"""JSON files as batches of cells: a list of objects, or an object per line.

A column of a mapping is a path in the object of a job: names and positions, separated by dots.
``-1`` means the last element, ``*`` means all elements, and ``#`` at the end counts elements.
Example: ``attempts.-1.detail.*.gpus.#`` is the number of GPUs of the last attempt.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.records.cells import Cells
from rebat.records.mapping import TableMapping

ALL, COUNT = "*", "#"


def json_header(path: Path) -> list[str]:
    """Return the names in the objects, in order of first use."""
    return _names(_objects(path))


def json_batches(
    path: Path, mapping: TableMapping, size: int
) -> Iterator[tuple[list[int], dict[str, Cells]]]:
    """Yield the positions of jobs (from 1) and the columns of the mapping, in batches.

    Raises
    ------
    InputError
        If the file is not JSON, an element is not an object, or a name is missing in all objects.
    """
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
