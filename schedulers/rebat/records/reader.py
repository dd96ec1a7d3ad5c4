# SPDX-License-Identifier: Apache-2.0
"""The one reader of records: blocks of cells become columns, according to the fields of a format.

A cell that does not fit its column makes its row invalid. Invalid rows are dropped and counted, see
`rebat.records.table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.records.cells import (
    Cells,
    Place,
    TimeReader,
    converted,
    numbers,
    objects,
    spans_s,
    texts,
)
from rebat.records.clock import Clock
from rebat.records.mapping import (
    MEGABYTES,
    CountColumn,
    Fields,
    MemoryColumn,
    SpanColumn,
    TextColumn,
    TimeColumn,
    ValueColumn,
)
from rebat.records.sources import Block, chosen_rows
from rebat.records.table import Problems, Rows

REFUSED = frozenset("(),|}!")
"""Characters that Batsim rejects in ids."""

IDS = ("id", "raw")
"""Fields whose values are hardly ever equal."""

Where = Mapping[str, str | tuple[str, ...]]


def read_rows(
    blocks: Iterable[Block],
    fields: Fields,
    zone: tzinfo,
    problems: Problems,
    where: Where | None = None,
    check_ids: bool = True,
) -> Rows:
    """Return the rows of a record.

    Parameters
    ----------
    blocks : iterable of Block
        The cells of the record.
    fields : dict
        The columns of each field.
    zone : tzinfo
        Time zone of local times.
    problems : Problems
        Receives the invalid rows.
    where : dict, optional
        Required values by column. Other rows are left out, and a note counts them.
    check_ids : bool
        Whether rows with ids that Batsim rejects are invalid.
    """
    builder = _Builder(fields, Clock(zone), problems, where or {}, check_ids)
    for block in blocks:
        builder.add(block)
    return builder.rows()


class _Builder:
    """The columns of a record, which are filled block by block."""

    def __init__(
        self, fields: Fields, clock: Clock, problems: Problems, where: Where, check_ids: bool
    ) -> None:
        self._fields, self._clock, self._problems = fields, clock, problems
        self._where, self._check_ids = where, check_ids
        self._times = {
            column: TimeReader(column, clock)
            for columns in fields.values()
            for column in columns
            if isinstance(column, TimeColumn)
        }
        self._parts: dict[str, list[Any]] = {}
        self._lines: list[npt.NDArray[np.int64]] = []
        self._shared: dict[str, str] = {}
        self._n_read = 0

    def add(self, block: Block) -> None:
        """Convert the cells of a block, and add the valid rows."""
        self._n_read += len(block.lines)
        if block.lines and self._where:
            block = _selected(block, self._where, self._problems.where)
        if not block.lines:
            return
        place = Place(self._problems.where, block.lines)
        self._ids: dict[str, str] = {}
        columns = {}
        for field, choices in self._fields.items():
            for column in choices:
                if column.column in block.columns:
                    cells = block.columns[column.column]
                    columns[field] = self._converted(field, column, cells, place)
                    break
        valid = place.count(self._problems)
        whole = bool(valid.all())
        lines = np.array(block.lines, dtype=np.int64)
        self._lines.append(lines if whole else lines[valid])
        for field, values in columns.items():
            self._parts.setdefault(field, []).append(values if whole else values[valid])

    def _converted(  # noqa: PLR0911  # a return for each kind of column
        self, field: str, column: TextColumn, cells: Cells, place: Place
    ) -> Any:
        if column in self._times:
            return self._times[column].seconds(cells, place)
        if isinstance(column, ValueColumn):
            return converted(cells, column, place, self._shared)
        if isinstance(column, SpanColumn):
            return spans_s(cells, column, place)
        if isinstance(column, CountColumn):
            values = numbers(cells, column, place)
            return values if column.per_node == 1 else np.ceil(values / column.per_node)
        if isinstance(column, MemoryColumn):
            return numbers(cells, column, place) * MEGABYTES[column.unit]
        if field in IDS:
            plain = texts(cells, column, place)
            if self._check_ids:
                _check_ids(plain, column.column, place)
            share_id = self._ids.setdefault  # both ids of a job are often equal
            return objects(share_id(text, text) for text in plain)
        plain = cells if isinstance(cells, list) else texts(cells, column, place)
        distinct = [*dict.fromkeys(plain)]
        share = self._shared.setdefault  # equal texts are the same object, to save memory
        stripped = [share(text, text) for text in texts(distinct, column, place)]
        return objects(map(dict(zip(distinct, stripped, strict=True)).__getitem__, plain))

    def rows(self) -> Rows:
        """Return the rows of all blocks."""
        numbers_of, texts_of = {}, {}
        for field in list(self._parts):
            column = np.concatenate(self._parts.pop(field))
            if column.dtype == object:
                texts_of[field] = column
            else:
                numbers_of[field] = column.astype(np.float64)
        lines = np.concatenate(self._lines) if self._lines else np.empty(0, dtype=np.int64)
        rows = Rows(self._problems.where, lines, numbers_of, texts_of, self._clock, self._problems)
        rows.facts["n_read"] = self._n_read
        rows.facts["repeated_hours"] = sum(reader.repeated for reader in self._times.values())
        return rows


def _selected(block: Block, where: Where, path: str) -> Block:
    """Return the rows that have the required values."""
    mask = np.ones(len(block.lines), dtype=np.bool_)
    place = Place(path, block.lines)
    for name, wanted in where.items():
        values = (wanted,) if isinstance(wanted, str) else wanted
        mask &= np.isin(texts(block.columns[name], TextColumn(column=name), place), values)
    return block if mask.all() else chosen_rows(block, mask)


def _check_ids(ids: list[str], column: str, place: Place) -> None:
    for position, job in enumerate(ids):
        if not job or not job.isprintable() or REFUSED.intersection(job):
            expected = f"a name without the characters {' '.join(sorted(REFUSED))}"
            place.reject(column, position, job, expected)
