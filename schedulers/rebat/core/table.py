# SPDX-License-Identifier: Apache-2.0
"""Tables: long sequences of structs that are stored as columns.

A run of millions of jobs appends millions of records, which metrics and files read as columns. A
person's code reads them as structs, which are created on access. Texts, such as ids, are arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet

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
        rare: Mapping[str, dict[int, Any]] | None = None,
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
        rare : dict, optional
            The rare values by column and row.
        """
        table, n = cls(schema), len(nodes.first)
        table._values = {name: dict(values[name]) for name in schema.codes}
        arrays = {name: narrow(column) for name, column in columns.items()}
        narrowed = {name: a if a.ndim else np.broadcast_to(a, n) for name, a in arrays.items()}
        table._add(Block(n, narrowed, dict(texts), nodes, dict(rare or {})))
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


_BLOCK = 2**16
"""Number of texts that are converted at a time, to save memory."""

SHORT = 12
"""Maximum length of a text, in bytes, in an array of fixed width."""

_FACTOR, _BITS = 0x9E3779B97F4A7C15, 2**64
_POWERS = [1]
"""Powers of the factor of the hash, modulo 2**64, as many as the longest text needed so far."""


class Texts(Sequence[str]):
    """Texts as UTF-8, which need 8 bytes per text in addition to their characters.

    Attributes
    ----------
    data : bytes
        All texts, one after the other.
    bounds : int64 array, shape (n + 1,)
        Text ``i`` is ``data[bounds[i] : bounds[i + 1]]``.
    """

    def __init__(self, data: bytes, bounds: Ints) -> None:
        self.data, self.bounds = data, bounds

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Return texts as an array."""
        texts = [*texts]
        joined = "".join(texts)
        data = joined.encode()
        sized = texts if len(data) == len(joined) else map(str.encode, texts)
        return cls(data, _bounds([np.fromiter(map(len, sized), np.int64, len(texts))]))

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """Return the texts of all parts."""
        lengths = [np.diff(part.bounds) for part in parts]
        return cls(b"".join([part.data for part in parts]), _bounds(lengths))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(map(self._decoded, range(0, len(self), _BLOCK)))

    def _decoded(self, first: int) -> list[str]:
        """Return a block of texts."""
        bounds = self.bounds[first : first + _BLOCK + 1]
        block = self.data[bounds[0] : bounds[-1]]
        places = pairwise((bounds - bounds[0]).tolist())
        if not block.isascii():
            return [block[low:high].decode() for low, high in places]
        text = block.decode()
        return [text[low:high] for low, high in places]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a text, or the texts of a slice."""
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        return self.data[self.bounds[place] : self.bounds[place + 1]].decode()

    def take(self, rows: Ints) -> Texts:
        """Return the texts of an array of rows."""
        bounds = _bounds([np.diff(self.bounds)[rows]])
        places = np.repeat(self.bounds[rows] - bounds[:-1], np.diff(bounds))
        places += np.arange(len(places))
        return Texts(np.frombuffer(self.data, np.uint8)[places].tobytes(), bounds)

    def array(self) -> npt.NDArray[Any]:
        """Return an array of texts. Short texts have a fixed width, which takes less memory."""
        lengths = np.diff(self.bounds)
        width = int(lengths.max(initial=1))
        if width > SHORT or not self.data.isascii():
            return np.array([*self, ""], dtype=object)[:-1]
        codes = np.zeros((len(self), max(width, 1)), dtype=np.uint32)
        codes[np.arange(codes.shape[1]) < lengths[:, None]] = np.frombuffer(self.data, np.uint8)
        return codes.view(f"U{codes.shape[1]}")[:, 0]

    def first_repeat(self) -> int | None:
        """Return the position of the first text that equals an earlier text, or None."""
        hashes = np.sort(self._hashes())
        seen: set[str] = set()
        for row, text in enumerate(self if (hashes[1:] == hashes[:-1]).any() else ()):
            if text in seen:
                return row
            seen.add(text)
        return None

    def position(self, text: str) -> int | None:
        """Return the position of the first text that equals ``text``, or None.

        The first call takes time proportional to the number of texts.
        """
        hashes, rows = self._index
        wanted = np.uint64(_hash(text.encode()))
        for at in range(int(np.searchsorted(hashes, wanted)), len(hashes)):
            if hashes[at] != wanted:
                break
            if self[rows[at]] == text:
                return int(rows[at])
        return None

    @cached_property
    def _index(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        """The hashes in ascending order, and the positions of their texts."""
        hashes = self._hashes()
        rows = np.argsort(hashes, kind="stable")
        return hashes[rows], rows

    def _hashes(self) -> npt.NDArray[np.uint64]:
        """Return the sum of character times power of the factor of each text, modulo 2**64."""
        lengths, data = np.diff(self.bounds), np.frombuffer(self.data, np.uint8)
        powers = np.array(_powers(int(lengths.max(initial=0))), np.uint64)
        hashes = np.empty(len(self), np.uint64)
        for first in range(0, len(self), _BLOCK):
            bounds = self.bounds[first : first + _BLOCK + 1]
            low, high = bounds[0], bounds[-1]
            places = np.arange(low, high) - np.repeat(bounds[:-1], lengths[first : first + _BLOCK])
            sums = np.zeros(high - low + 1, np.uint64)
            np.cumsum(
                (data[low:high].astype(np.uint64) + np.uint64(1)) * powers[places], out=sums[1:]
            )
            hashes[first : first + _BLOCK] = np.diff(sums[bounds - low])
        return hashes


def _bounds(lengths: Sequence[Ints]) -> Ints:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))


def _powers(count: int) -> list[int]:
    while len(_POWERS) < count:
        _POWERS.append(_POWERS[-1] * _FACTOR % _BITS)
    return _POWERS


def _hash(data: bytes) -> int:
    return (
        sum((byte + 1) * power for byte, power in zip(data, _powers(len(data)), strict=False))
        % _BITS
    )


Column = npt.NDArray[np.integer[Any]]


def distinct(*columns: Column) -> tuple[Ints, Ints]:
    """Return the distinct rows of columns of equal length.

    Returns
    -------
    rows : int64 array, shape (n_distinct,)
        For each distinct row, the number of the first row with its values, in ascending order.
    codes : int64 array, shape (n,)
        For each row, the position of its distinct row in ``rows``.

    Examples
    --------
    >>> rows, codes = distinct(np.array([7, 5, 7, 7]), np.array([1, 1, 1, 2]))
    >>> rows.tolist(), codes.tolist()
    ([0, 1, 3], [0, 1, 0, 2])
    """
    keys, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values, places = _numbered(column)
        keys, count = keys * values + places, count * values
        if count > 2**31:  # the next product must fit into 64 bits
            count, keys = _numbered(keys)
    count, keys = _numbered(keys)
    return by_first_row(keys, count)


def first_rows(codes: Column, count: int) -> Ints:
    """Return the first row of each number below ``count``.

    If a number does not occur, it is the number of rows.
    """
    first = np.full(count, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several rows, the first is assigned last
    return first


def by_first_row(codes: Column, count: int) -> tuple[Ints, Ints]:
    """Return the first row of each code that occurs, in ascending order, and the new codes.

    ``codes`` contains numbers below ``count``. A new code is the position in the first rows.
    """
    first = first_rows(codes, count)
    order = np.argsort(first, kind="stable")
    new = np.empty(count, np.int64)
    new[order] = np.arange(count)
    return first[order][: np.count_nonzero(first < len(codes))], new[codes]


def _numbered(column: Column) -> tuple[int, Ints]:
    """Return a number above all numbers of the values, and the number of each value."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if high - low < 2 * len(column):
        return high - low + 1, column.astype(np.int64) - low
    values, places = np.unique(column, return_inverse=True)
    return len(values), places
