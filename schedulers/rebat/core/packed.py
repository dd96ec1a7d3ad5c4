# SPDX-License-Identifier: Apache-2.0
"""Long sequences of structs in little memory. Items are packed in blocks, numbers in columns.

A run of millions of jobs appends millions of records, which are read a few times after the run.
`Packed` stores the last block of items as objects, and earlier blocks as bytes (MessagePack) in a
temporary file. Up to a size of `MOST_BYTES`, the file is in memory. If it is larger, it is in the
folder TMPDIR.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet

T = TypeVar("T", bound=msgspec.Struct)
Ints = npt.NDArray[np.int64]

BLOCK = 16384
"""Number of items in a block. It is so large that runs of a month are not packed at all."""

MOST_BYTES = 2**22
"""Maximum size in bytes of a temporary file in memory."""


class Packing(Generic[T]):
    """A way to pack items: their struct, and the fields that can be read as columns.

    Parameters
    ----------
    struct : type
    numbers : sequence of str
        Integer fields, as dotted names.
    names : sequence of str
        Fields with few distinct values, such as texts, as dotted names. A column contains integer
        codes of the values.
    text : str, optional
        Field with texts that can be read without the items.
    """

    def __init__(
        self, struct: type[T], numbers: Sequence[str], names: Sequence[str] = (), text: str = ""
    ) -> None:
        self.getters = {name: attrgetter(name) for name in (*numbers, *names)}
        self.names = names
        self.text = attrgetter(text) if text else None
        self.numbers = {name: number for number, name in enumerate(self.getters)}
        self.encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
        self.decode: Callable[[bytes], list[T]] = msgspec.msgpack.Decoder(
            list[struct],  # type: ignore[valid-type]
            dec_hook=_object,
        ).decode


class Packed(Sequence[T]):
    """A growing sequence of structs of one `Packing`.

    Each access to a packed item unpacks its entire block. Therefore, iterate or use `where` instead
    of reading items in random order. Items that are read from packed blocks are copies.
    """

    def __init__(self, packing: Packing[T], items: Iterable[T] = ()) -> None:
        self._packing = packing
        self._codes: dict[str, dict[Any, int]] = {name: {} for name in packing.names}
        self._file = tempfile.SpooledTemporaryFile(max_size=MOST_BYTES)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._blocks: list[tuple[int, int, int]] = []
        self._last: list[T] = []
        self._read: dict[str, Ints] = {}
        self._changes: dict[int, dict[str, Any]] = {}
        self._open: tuple[int, list[T]] = -1, []
        for item in items:
            self.append(item)

    # ---- growing

    def append(self, item: T) -> None:
        """Add an item. If the temporary file cannot be written, raise InputError."""
        self._last.append(item)
        if len(self._last) == BLOCK:
            self._pack()

    def amend(self, place: int, **changes: Any) -> None:
        """Change fields of an item, except `texts` and the fields with few distinct values."""
        block, offset = divmod(place, BLOCK)
        if block == len(self._blocks):
            for name, value in changes.items():
                setattr(self._last[offset], name, value)
            self._read.clear()
            return
        self._changes.setdefault(place, {}).update(changes)
        self._open = -1, []
        for name in changes.keys() & self._packing.getters.keys():
            self._file.seek(self._blocks[block][0] + self._start(name) + offset * 8)
            self._file.write(np.int64(changes[name]).tobytes())

    def _pack(self) -> None:
        columns = np.stack([self._column(name) for name in self._packing.getters])
        items = self._packing.encode(self._last)
        texts = _encoded(list(map(self._packing.text, self._last))) if self._packing.text else b""
        try:
            start = self._file.seek(0, 2)
            self._file.write(columns.tobytes() + items + texts)
        except OSError as error:
            problem = f"cannot store the records of the run: {error.strerror}"
            expected = "a TMPDIR with more space"
            raise InputError(problem, tempfile.gettempdir(), expected) from None
        self._blocks.append((start, len(items), len(texts)))
        self._last = []
        self._read.clear()

    def _column(self, name: str) -> Ints:
        """Return a column of the last block, which is cached until the block changes."""
        column = self._read.get(name)
        if column is None or len(column) != len(self._last):
            column = self._read[name] = self._extracted(name)
        return column

    def _extracted(self, name: str) -> Ints:
        values: Iterable[Any] = map(self._packing.getters[name], self._last)
        if name in self._codes:
            codes = self._codes[name]
            values = [codes.setdefault(value, len(codes)) for value in values]
        return np.fromiter(values, dtype=np.int64, count=len(self._last))

    # ---- reading

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._last)

    def __iter__(self) -> Iterator[T]:
        for block in range(len(self._blocks) + 1):
            yield from self._items(block)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Packed) or len(self) != len(other):
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
        block, offset = divmod(at, BLOCK)
        if block == len(self._blocks):
            return self._last[offset]
        if self._open[0] != block:
            self._open = block, self._items(block)
        return self._open[1][offset]

    def column(self, name: str) -> Ints:
        """Return a field of all items. If it has few distinct values, return their codes.

        The codes are indices in the list that `values` returns.
        """
        parts = []
        for start, _, _ in self._blocks:
            self._file.seek(start + self._start(name))
            parts.append(np.frombuffer(self._file.read(BLOCK * 8), dtype=np.int64))
        return np.concatenate([*parts, self._column(name)])

    @property
    def _items_start(self) -> int:
        """The position, in bytes, at which the items begin in a block."""
        return len(self._packing.getters) * BLOCK * 8

    def _start(self, name: str) -> int:
        """Return the position, in bytes, at which a column begins in a block."""
        return self._packing.numbers[name] * BLOCK * 8

    def values(self, name: str) -> list[Any]:
        """Return the distinct values of a field, in the order of their codes."""
        self._column(name)  # the last block may have new values
        return list(self._codes[name])

    def having(self, name: str, *values: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the items whose field has one of these values."""
        column, all_values = self.column(name), self.values(name)
        codes = [code for code, value in enumerate(all_values) if value in values]
        return np.isin(column, codes)

    def texts(self) -> Iterator[str]:
        """Yield the text of each item (see `Packing`)."""
        assert self._packing.text is not None
        for start, n_items, n_texts in self._blocks:
            self._file.seek(start + self._items_start + n_items)
            yield from msgspec.msgpack.decode(self._file.read(n_texts), type=list[str])
        yield from map(self._packing.text, self._last)

    def where(self, mask: npt.NDArray[np.bool_]) -> Iterator[T]:
        """Yield the items that a mask selects, in order."""
        for block in range(len(self._blocks) + 1):
            offsets = np.flatnonzero(mask[block * BLOCK : (block + 1) * BLOCK]).tolist()
            if offsets:
                yield from map(self._items(block).__getitem__, offsets)

    def _items(self, block: int) -> list[T]:
        """Return the items of a block. The last block is not packed."""
        if block == len(self._blocks):
            return self._last
        start, size, _ = self._blocks[block]
        self._file.seek(start + self._items_start)
        items = self._packing.decode(self._file.read(size))
        for place in self._changes.keys() & range(block * BLOCK, (block + 1) * BLOCK):
            for name, value in self._changes[place].items():
                setattr(items[place % BLOCK], name, value)
        return items


_encoded = msgspec.msgpack.Encoder().encode


def _plain(value: Any) -> Any:
    """Convert an object that MessagePack does not support to plain values."""
    if isinstance(value, NodeSet):
        return value.size, value.packed
    raise NotImplementedError(type(value))


def _object(kind: type, value: Any) -> Any:
    """Return the object that `_plain` converted."""
    assert kind is NodeSet
    return NodeSet.unpacked(*value)
