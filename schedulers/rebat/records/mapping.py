# SPDX-License-Identifier: Apache-2.0
"""A mapping: for each field of a job, the column in a table and its unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rebat.core.errors import InputError

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
        Name in the table. In JSON, a path: see `rebat.records.json_source`.
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
    """Return the columns to read from a table with this header.

    Raises
    ------
    InputError
        If a required column is missing, or if the header contains a column several times.
    """
    missing = [name for name in required if name not in header]
    if missing:
        expected = f"the columns {', '.join(required)}"
        raise InputError(f"has no column {', '.join(missing)}", where, expected)
    columns = [name for name in dict.fromkeys((*required, *optional)) if name in header]
    for name in columns:
        if header.count(name) > 1:
            raise InputError(f"has {header.count(name)} columns {name}", where, "one")
    return columns
