# SPDX-License-Identifier: Apache-2.0
"""Tables: long sequences of structs that are stored as columns.

A run of millions of jobs appends millions of records, which metrics and files read as columns. A
person's code reads them as structs, which are created on access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet
from rebat.core.texts import Texts

T = TypeVar("T", bound=msgspec.Struct)
Ints = npt.NDArray[np.int64]

Value = str | Callable[[Any], Any]

BLOCK = 16384
"""Number of structs that are appended before they are converted to columns."""

STEP = 4096
"""Number of structs that are created together when a table is read."""


def fields(*paths: str) -> dict[str, Value]:
    """Return fields as columns. The name of a column is the last part of the dotted name."""
    return {path.rpartition(".")[2]: path for path in paths}


class Schema(Generic[T]):
    """The columns of a table.

    Parameters
    ----------
    struct : type
    numbers : dict
        Columns of integers. For each, the value of a struct: the dotted name of a field, or a
        function. None becomes -1.
    codes : dict
        Values with few distinct ones. A column contains positions in the list of distinct values.
    texts : dict
        Texts with many distinct values.
    rare : dict
        Values that are empty in almost all structs. They are stored as objects.
    rows : callable
        Creates the structs from the values of each column.
    """

    def __init__(
        self,
        struct: type[T],
        numbers: Mapping[str, Value],
        codes: Mapping[str, Value],
        texts: Mapping[str, Value],
        rare: Mapping[str, Value],
        rows: Callable[[Mapping[str, Sequence[Any]]], Iterator[T]],
    ) -> None:
        self.struct, self.rows = struct, rows
        self.numbers, self.codes, self.texts, self.rare = (
            {
                name: attrgetter(value) if isinstance(value, str) else value
                for name, value in of.items()
            }
            for of in (numbers, codes, texts, rare)
        )


class Ragged(NamedTuple):
    """The nodes of each row.

    Attributes
    ----------
    intervals : int array, shape (m, 2)
    first, number : int arrays, shape (n,)
        The intervals of a row are ``intervals[first:first + number]``. Without nodes, number is 0.
    """

    intervals: npt.NDArray[Any]
    first: npt.NDArray[Any]
    number: npt.NDArray[Any]

    def at(self, rows: Any) -> Ragged:
        """Return the nodes of the selected rows."""
        return Ragged(self.intervals, self.first[rows], self.number[rows])

    @staticmethod
    def of(sets: Sequence[NodeSet | None]) -> Ragged:
        """Return sets of nodes in this form."""
        parts = [nodes.intervals if nodes else _NONE for nodes in sets]
        number = np.fromiter(map(len, parts), dtype=np.int32, count=len(parts))
        intervals = np.concatenate([_NONE, *parts])
        if intervals.max(initial=0) < 2**31:
            intervals = intervals.astype(np.int32)
        return Ragged(intervals, np.cumsum(number, dtype=np.int64) - number, number)

    def pairs(self) -> Ints:
        """Return the intervals of all rows, one after the other."""
        number = np.asarray(self.number, dtype=np.int64)
        shifts = np.repeat(self.first - (np.cumsum(number) - number), number)
        return self.intervals[shifts + np.arange(len(shifts))].astype(np.int64)

    def sizes(self) -> Ints:
        """Return the number of nodes of each row."""
        lengths = self.intervals[:, 1].astype(np.int64) - self.intervals[:, 0] + 1
        total = np.concatenate([[0], np.cumsum(lengths)])
        return np.asarray(total[self.first + self.number] - total[self.first])

    def sets(self) -> Iterator[NodeSet | None]:
        """Yield the nodes of each row."""
        columns = (self.first.tolist(), self.number.tolist(), self.sizes().tolist())
        for first, number, size in zip(*columns, strict=True):
            intervals = self.intervals[first : first + number].astype(np.int64)
            yield NodeSet(intervals, size) if number else None


_NONE = np.empty((0, 2), dtype=np.int64)


class Chosen(NamedTuple):
    """For each row of a table, a text at a position in ``texts``."""

    texts: Texts
    places: Ints

    def take(self, rows: Ints) -> Texts:
        """Return the texts of an array of rows."""
        return self.texts.take(self.places[rows])


class Block(msgspec.Struct):
    """Rows of a table as columns.

    ``columns`` has the numbers and the codes, in the narrowest type that holds them. ``rare`` has
    the values by column and row.
    """

    n: int
    columns: dict[str, npt.NDArray[Any]]
    texts: Mapping[str, Texts | Chosen]
    nodes: Ragged
    rare: dict[str, dict[int, Any]] = {}


class Table(Sequence[T]):
    """A growing sequence of structs of one `Schema`. Structs that are read are copies."""

    def __init__(self, schema: Schema[T], items: Iterable[T] = ()) -> None:
        self._schema = schema
        self._values: dict[str, dict[Any, int]] = {name: {} for name in schema.codes}
        self._blocks: list[Block] = []
        self._starts = [0]
        self._last: list[T] = []
        self._read: Block | None = None
        for item in items:
            self.append(item)

    @classmethod
    def of_columns(
        cls,
        schema: Schema[T],
        columns: Mapping[str, Any],
        values: Mapping[str, Mapping[Any, int]],
        texts: Mapping[str, Texts | Chosen],
        nodes: Ragged,
    ) -> Table[T]:
        """Return a table with these columns.

        Parameters
        ----------
        columns : dict
            For each number and code, an array of shape (n,) or one value for all rows.
        values : dict
            The code of each distinct value, for each column of codes, in ascending order of codes.
        texts : dict
            The columns of texts.
        """
        table, n = cls(schema), len(nodes.first)
        table._values = {name: dict(values[name]) for name in schema.codes}
        arrays = {name: narrow(column) for name, column in columns.items()}
        narrowed = {name: a if a.ndim else np.broadcast_to(a, n) for name, a in arrays.items()}
        table._add(Block(n, narrowed, dict(texts), nodes))
        return table

    # ---- growing

    def append(self, item: T) -> None:
        """Add an item."""
        self._last.append(item)
        if len(self._last) == BLOCK:
            block = self._block()
            self._last = []
            self._add(block)

    def amend(self, place: int, **changes: Any) -> None:
        """Change fields of an item, except texts."""
        at = place - self._starts[-1]
        if at >= 0:
            for name, value in changes.items():
                setattr(self._last[at], name, value)
            self._read = None
            return
        number = int(np.searchsorted(self._starts, place, "right")) - 1
        block, at = self._blocks[number], place - self._starts[number]
        for name, value in changes.items():
            if name in self._schema.rare:
                block.rare.setdefault(name, {})[at] = value
                continue
            codes = self._values.get(name)
            column = block.columns[name].astype(np.int64)
            column[at] = _number(value) if codes is None else codes.setdefault(value, len(codes))
            block.columns[name] = narrow(column)

    def _add(self, block: Block) -> None:
        self._blocks.append(block)
        self._starts.append(self._starts[-1] + block.n)
        self._read = None

    def _block(self) -> Block:
        """Return the last items as columns."""
        if self._read is None or self._read.n != len(self._last):
            schema, items = self._schema, self._last
            columns = {
                name: narrow([_number(get(item)) for item in items])
                for name, get in schema.numbers.items()
            }
            for name, get in schema.codes.items():
                codes = self._values[name]
                columns[name] = narrow([codes.setdefault(get(x), len(codes)) for x in items])
            texts = {name: Texts.of(map(get, items)) for name, get in schema.texts.items()}
            rare = {
                name: {at: value for at, item in enumerate(items) if (value := get(item))}
                for name, get in schema.rare.items()
            }
            nodes = Ragged.of([item.nodes for item in items])  # type: ignore[attr-defined]
            self._read = Block(len(items), columns, texts, nodes, rare)
        return self._read

    # ---- columns

    def _all(self) -> list[Block]:
        return [*self._blocks, self._block()] if self._last or not self._blocks else self._blocks

    def column(self, name: str) -> Ints:
        """Return a field of all items. If it has few distinct values, return their codes.

        The codes are indices in the list that `values` returns.
        """
        parts = [block.columns[name] for block in self._all()]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(np.int64)

    def values(self, name: str) -> list[Any]:
        """Return the distinct values of a field, in the order of their codes."""
        self._all()  # the last block may have new values
        return list(self._values[name])

    def having(self, name: str, *values: Any) -> npt.NDArray[np.bool_]:
        """Return a mask of the items whose field has one of these values."""
        parts = [block.columns[name] for block in self._all()]
        codes = [code for value, code in self._values[name].items() if value in values]
        nothing = [np.zeros(len(part), dtype=np.bool_) for part in parts]
        masks = [
            sum((part == code for code in codes), mask)
            for part, mask in zip(parts, nothing, strict=True)
        ]
        return masks[0] if len(masks) == 1 else np.concatenate(masks)

    def texts(self, name: str, rows: Ints | slice = slice(None)) -> Texts:
        """Return the texts of a column. ``rows`` is a slice or an array of ascending positions."""
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        parts = [block.texts[name].take(places) for block, places in self._parts(rows)]
        return parts[0] if len(parts) == 1 else Texts.joined(parts)

    def nodes(self) -> Ragged:
        """Return the nodes of all items."""
        parts = [block.nodes for block in self._all()]
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.intervals) for part in parts)])
        return Ragged(
            np.concatenate([part.intervals for part in parts]),
            np.concatenate([part.first + s for part, s in zip(parts, shifts, strict=False)]),
            np.concatenate([part.number for part in parts]),
        )

    def _parts(self, rows: Ints) -> Iterator[tuple[Block, Ints]]:
        """Yield each block that has selected rows, with the positions of these rows in it."""
        for start, block in zip(self._starts, self._all(), strict=False):
            low, high = np.searchsorted(rows, (start, start + block.n))
            if low < high:
                yield block, rows[low:high] - start

    # ---- items

    def __len__(self) -> int:
        return self._starts[-1] + len(self._last)

    def __iter__(self) -> Iterator[T]:
        for block in self._blocks:
            yield from self._items(block, np.arange(block.n))
        yield from self._last

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or len(self) != len(other):
            return False
        return all(mine == others for mine, others in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        """Return an item, or the list of the items in a slice."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError(place)
        if at >= self._starts[-1]:
            return self._last[at - self._starts[-1]]
        return next(self.take(np.array([at])))

    def where(self, mask: npt.NDArray[np.bool_]) -> Iterator[T]:
        """Yield the items that a mask selects, in order."""
        return self.take(np.flatnonzero(mask))

    def take(self, rows: Ints) -> Iterator[T]:
        """Yield the items at these ascending positions."""
        for block, places in self._parts(rows):
            yield from self._items(block, places)

    def _items(self, block: Block, rows: Ints) -> Iterator[T]:
        values = {name: list(codes) for name, codes in self._values.items()}
        for first in range(0, len(rows), STEP):
            part = rows[first : first + STEP]
            columns = {name: column[part].tolist() for name, column in block.columns.items()}
            for name, distinct in values.items():
                columns[name] = [distinct[code] for code in columns[name]]
            for name, texts in block.texts.items():
                columns[name] = [*texts.take(part)]
            for name in self._schema.rare:
                held = block.rare.get(name, {})
                columns[name] = [held.get(at) for at in part.tolist()]
            columns["nodes"] = list(block.nodes.at(part).sets())
            yield from self._schema.rows(columns)


def _number(value: int | None) -> int:
    return -1 if value is None else value


def narrow(values: Any) -> npt.NDArray[Any]:
    """Return integers in the narrowest type that holds them."""
    column = np.asarray(values)
    if column.dtype.itemsize < 8 and column.ndim:
        return column.astype(np.int8) if column.dtype == np.bool_ else column
    column = column.astype(np.int64, copy=False)
    if not column.size:
        return column
    low, high = int(column.min()), int(column.max())
    for kind, most in _LIMITS:
        if -most <= low and high < most:
            return column.astype(kind)
    return column


_LIMITS = ((np.int8, 2**7), (np.int16, 2**15), (np.int32, 2**31))
"""Types of integers. The numbers of a type are below the limit, and at least its negative."""
