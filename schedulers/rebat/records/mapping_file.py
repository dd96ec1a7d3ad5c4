# SPDX-License-Identifier: Apache-2.0
"""Reader of mapping files (TOML), including the mappings in rebat, with checks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.declared import declared, without_none
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.files import read_text
from rebat.core.shipped import located, names
from rebat.records.clock import zone_of
from rebat.records.mapping import (
    CsvLayout,
    JobColumns,
    RecordedMachine,
    StateColumn,
    TableMapping,
    TextColumn,
    TimeColumn,
)

KIND, ENDING = "workloads/mappings", ".toml"
AUTO = "auto"

_TABLES: dict[str, type[Any]] = {"machine": RecordedMachine, "csv": CsvLayout}
_FIELDS: dict[str, type[TextColumn]] = {
    field.name: without_none(field.type) for field in msgspec.structs.fields(JobColumns)
}


def shipped_mappings() -> dict[str, Path]:
    """Return the file of each mapping that rebat includes, by name."""
    return names(KIND, ENDING)


def open_mapping(name: str | Path) -> TableMapping:
    """Read a mapping. ``name`` is the name of an included mapping, or a TOML file.

    Raises
    ------
    InputError
        If the mapping does not exist or is invalid; the message names the file and the key.
    """
    path = located(Path(name), KIND, ENDING)
    try:
        return mapping_of(_toml(path))
    except InputError as error:
        where = str(path)
        raise (error if error.where == where else error.at(where)) from None


def detected_mapping(header: Sequence[str]) -> str | None:
    """Return the name of the included mapping that fits a header.

    A mapping fits if the header has its required columns and the columns of ``detect``. Return None
    if no mapping fits.

    Raises
    ------
    InputError
        If several mappings fit.
    """
    present = set(header)
    fits = [name for name in shipped_mappings() if _identifying(name) <= present]
    if len(fits) > 1:
        raise InputError(f"several mappings fit: {', '.join(fits)}", expected="--mapping NAME")
    return fits[0] if fits else None


def _identifying(name: str) -> set[str]:
    mapping = open_mapping(name)
    return {column.split(".")[0] for column in (*mapping.required, *mapping.detect)}


def mapping_of(table: dict[str, Any]) -> TableMapping:
    """Return the mapping in a mapping file. If a key is unknown, the error lists the valid keys."""
    _check_keys(table, TableMapping.__struct_fields__, "")
    content = dict(table)
    for key, kind in _TABLES.items():
        _check_table(content.get(key, {}), kind.__struct_fields__, key)
    if "columns" in content:
        _check_table(content["columns"], tuple(_FIELDS), "columns")
        content["columns"] = {k: _column(k, v) for k, v in content["columns"].items()}
    try:
        mapping = msgspec.convert(content, TableMapping)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        where = place.strip("`").removeprefix("$").lstrip(".")
        raise InputError(problem, where or None, _choices(where)) from None
    _check(mapping)
    return mapping


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}") from None
    except RecursionError:
        raise InputError("is not TOML: it is nested too deeply") from None


def _check_keys(table: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for key in table:
        if key not in valid:
            error = unknown_name("key", key, valid)
            raise error.at(where) if where else error


def _check_table(value: Any, valid: Sequence[str], where: str) -> None:
    if not isinstance(value, dict):
        raise InputError(f"is {short(value)}", where, "a table")
    _check_keys(value, valid, where)


def _column(field: str, value: Any) -> Any:
    """Return the column that a value describes.

    A text is the name of a column with default options.
    """
    if isinstance(value, str):
        return {"column": value}
    _check_table(value, _FIELDS[field].__struct_fields__, f"columns.{field}")
    return value


def _choices(where: str) -> str | None:
    """Return the valid values of an option of a column, such as ``columns.submit.unit``."""
    _, field, option, *_ = *where.split("."), "", ""
    if field not in _FIELDS or option not in declared(_FIELDS[field]):
        return None
    return ", ".join(declared(_FIELDS[field])[option].choices) or None


def _check(mapping: TableMapping) -> None:
    """Raise InputError if a mapping lacks the size or the run time, or has invalid options."""
    columns = mapping.columns
    for field, column in columns.items():
        if isinstance(column, TimeColumn):
            _check_time(column, f"columns.{field}")
        if isinstance(column, StateColumn) and not (column.never_ran or column.running):
            raise InputError("has no effect", f"columns.{field}", "never_ran or running")
    if columns.requested is None and columns.allocated is None:
        raise InputError("contain no number of nodes", "columns", "requested or allocated")
    starts = columns.start is not None or columns.wait is not None
    if columns.run is None and (columns.end is None or not starts):
        raise InputError("contain no run time", "columns", "run, or end with start or wait")


def _check_time(column: TimeColumn, where: str) -> None:
    if column.unit != "date" and (column.format or column.zone):
        raise InputError("format and zone have no effect", where, 'unit = "date"')
    if column.zone:
        try:
            zone_of(column.zone)
        except InputError as error:
            raise error.at(f"{where}.zone") from None
    if column.format and not re.search(r"%[a-zA-Z]", column.format):
        raise InputError(f"is {short(column.format)}", f"{where}.format", "such as %d/%m/%Y %H:%M")
