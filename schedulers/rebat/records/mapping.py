# SPDX-License-Identifier: Apache-2.0
"""A mapping: for each field of a job, the column in a table and its unit. Its form is TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from rebat.core.declared import declared, without_none
from rebat.core.errors import InputError, check_keys, short
from rebat.core.files import located, names, read_text
from rebat.records.clock import zone_of

TimeUnit = Literal["date", "any", "d", "h", "min", "s", "ms", "us", "ns"]
SpanUnit = Literal["d", "h", "min", "s", "ms", "us", "ns", "hms"]
MemoryUnit = Literal["B", "KB", "MB", "GB", "TB"]

SECONDS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Length of each unit of time in seconds."""

MEGABYTES = {"B": 2.0**-20, "KB": 2.0**-10, "MB": 1.0, "GB": 2.0**10, "TB": 2.0**20}
"""Size of each unit of memory, as in Slurm."""

Positive = Annotated[float, Meta(gt=0)]
Name = Annotated[str, Meta(min_length=1)]
Nodes = Annotated[int, Meta(ge=1)]


class TextColumn(Struct, frozen=True, kw_only=True):
    """A column of texts.

    Attributes
    ----------
    column : str
        Name in the table. In JSON, a path: see `rebat.records.sources`.
    unset : tuple of str
        Values that mean "unknown", in addition to empty values.
    optional : bool
        Whether the column may be missing in a table.
    """

    column: Name
    unset: tuple[str, ...] = ()
    optional: bool = False


class TimeColumn(TextColumn, frozen=True, kw_only=True):
    """A column of times.

    Attributes
    ----------
    unit : {"date", "any", "d", "h", "min", "s", "ms", "us", "ns"}
        ``date`` means calendar dates in ISO 8601, or timestamps of Parquet. ``any`` means seconds
        since the Unix epoch or dates in ISO 8601. Other units mean numbers since the Unix epoch, or
        since the start of the trace.
    format : str
        Format of dates other than ISO 8601, with the codes of `datetime.strptime`.
    zone : str
        Time zone of dates without a zone (default: the option ``tz``).
    """

    unit: TimeUnit = "date"
    format: str = ""
    zone: str = ""


class SpanColumn(TextColumn, frozen=True, kw_only=True):
    """A column of durations. The unit ``hms`` means Slurm's form ``[D-]HH:MM:SS``."""

    unit: SpanUnit = "s"


class CountColumn(TextColumn, frozen=True, kw_only=True):
    """A column of numbers of nodes, GPUs or cores.

    A node consists of ``per_node`` of these units. The number of nodes is rounded up.
    """

    per_node: Positive = 1.0


class MemoryColumn(TextColumn, frozen=True, kw_only=True):
    """A column of requested memory. 1 GB is 1024 MB."""

    unit: MemoryUnit = "MB"


class StateColumn(TextColumn, frozen=True, kw_only=True):
    """A column of the states of jobs.

    Attributes
    ----------
    never_ran : tuple of str
        States of jobs that never started.
    running : tuple of str
        States of jobs that have no end yet, or only an expected end.
    """

    never_ran: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


class ValueColumn(TextColumn, frozen=True, kw_only=True):
    """A column with its own conversion.

    Attributes
    ----------
    convert : callable
        Return the value of a text, or raise InputError.
    default : float or str
        Value of invalid rows. A text states that the column contains texts.
    """

    convert: Callable[[str], Any]
    default: float | str = float("nan")


Fields = Mapping[str, tuple[TextColumn, ...]]
"""For each field of a job, the columns that can contain it, in order of preference."""


class JobColumns(Struct, frozen=True, kw_only=True):
    """The columns of the fields of a job.

    The size requires ``requested`` or ``allocated``. The run time requires ``run``, or ``end`` and
    ``start``. Instead of ``start``, a table may have ``submit`` and ``wait``.
    """

    submit: TimeColumn
    id: TextColumn | None = None
    eligible: TimeColumn | None = None
    start: TimeColumn | None = None
    end: TimeColumn | None = None
    wait: SpanColumn | None = None
    run: SpanColumn | None = None
    walltime: SpanColumn | None = None
    requested: CountColumn | None = None
    allocated: CountColumn | None = None
    user: TextColumn | None = None
    queue: TextColumn | None = None
    account: TextColumn | None = None
    qos: TextColumn | None = None
    memory: MemoryColumn | None = None
    state: StateColumn | None = None

    def items(self) -> Iterator[tuple[str, TextColumn]]:
        """Yield the fields that are set, with their columns."""
        for field in self.__struct_fields__:
            column = getattr(self, field)
            if column is not None:
                yield field, column


class RecordedMachine(Struct, frozen=True, kw_only=True):
    """The machine of a data set: number of nodes and cores per node."""

    nodes: Nodes | None = None
    cores_per_node: Nodes | None = None


class CsvLayout(Struct, frozen=True, kw_only=True):
    """Layout of CSV files.

    Attributes
    ----------
    delimiter : str
    names : tuple of str
        Names of the columns if the file has no header.
    comment : str
        Begin of lines that are not rows.
    """

    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    names: tuple[str, ...] = ()
    comment: str = ""


class TableMapping(Struct, frozen=True, kw_only=True):
    """A mapping of a data set.

    Attributes
    ----------
    title : str
        Name of the data set.
    source : str
        Address of the description of the data set.
    licence : str
        Terms of use.
    columns : JobColumns
    where : dict of str to str or tuple of str
        Required values by column. Only rows with this value, or with one of these values, are read.
    machine : RecordedMachine
    csv : CsvLayout
    detect : tuple of str
        Further columns that identify the data set.
    """

    title: str
    columns: JobColumns
    source: str = ""
    licence: str = ""
    where: dict[str, str | tuple[str, ...]] = {}
    machine: RecordedMachine = RecordedMachine()
    csv: CsvLayout = CsvLayout()
    detect: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        columns = (c.column for _, c in self.columns.items() if not c.optional)
        return tuple(dict.fromkeys((*columns, *self.where)))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns to read, including optional columns."""
        columns = (c.column for _, c in self.columns.items())
        return tuple(dict.fromkeys((*columns, *self.where)))

    def present(self, header: Sequence[str], where: str) -> list[str]:
        """Return the columns to read from a table with this header."""
        return required_columns(header, where, self.required, self.read)


def required_columns(
    header: Sequence[str], where: str, required: Sequence[str], optional: Sequence[str] = ()
) -> list[str]:
    """Return the columns to read from a table with this header."""
    missing = [name for name in required if name not in header]
    if missing:
        if len(header) == 1 and (separator := next((d for d in ";\t|" if d in header[0]), "")):
            problem = f"has a single column, whose parts are separated by {separator!r}"
            raise InputError(problem, where, "commas, or delimiter in [csv] of the mapping")
        lower = {name.lower(): name for name in header}
        other = [lower[name.lower()] for name in missing if name.lower() in lower]
        if len(other) == len(missing):
            problem = f"has columns {', '.join(other)}, but no column {', '.join(missing)}"
            raise InputError(problem, where, "the same capital letters")
        expected = f"the columns {', '.join(required)}"
        raise InputError(f"has no column {', '.join(missing)}", where, expected)
    columns = [name for name in dict.fromkeys((*required, *optional)) if name in header]
    for name in columns:
        if header.count(name) > 1:
            raise InputError(f"has {header.count(name)} columns {name}", where, "one")
    return columns


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
    """Read a mapping. ``name`` is the name of an included mapping, or a TOML file."""
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
    """
    present = set(header)
    fits = [name for name in shipped_mappings() if identifying(name) <= present]
    if len(fits) > 1:
        raise InputError(f"several mappings fit: {', '.join(fits)}", expected="--mapping NAME")
    return fits[0] if fits else None


def identifying(name: str) -> set[str]:
    """Return the columns by which a mapping that rebat includes is detected."""
    mapping = open_mapping(name)
    return {column.split(".")[0] for column in (*mapping.required, *mapping.detect)}


def mapping_of(table: dict[str, Any]) -> TableMapping:
    """Return the mapping in a mapping file. If a key is unknown, the error lists the valid keys."""
    check_keys(table, TableMapping.__struct_fields__, "")
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


def _check_table(value: Any, valid: Sequence[str], where: str) -> None:
    if not isinstance(value, dict):
        raise InputError(f"is {short(value)}", where, "a table")
    check_keys(value, valid, where)


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
