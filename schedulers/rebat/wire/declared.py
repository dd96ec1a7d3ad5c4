# SPDX-License-Identifier: Apache-2.0
"""Declarations of message types. Each row (`WireRow`) defines both decoding and encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us

T = TypeVar("T")
Data = dict[str, Any]
Read = Callable[[Data, str], Any]
"""Function of data and key. It returns the value, or raises InputError if the value is invalid."""
Write = Callable[[Any], Any]

NOTIFY = "NOTIFY"
"""The message type that has subtypes. The key ``type`` contains the subtype."""


class Field(NamedTuple):
    """A key in the data of a message, and the attribute that stores its value."""

    key: str
    name: str
    read: Read | None = None
    """Decoder. If None, the key is written, but not read."""
    write: Write | None = None
    """Encoder. If None, the value is written unchanged."""
    optional: bool = False
    """Whether the key is omitted if the value is None."""

    def encoded(self, item: Any) -> Any:
        """Return the value to write for an item."""
        value = getattr(item, self.name)
        return value if self.write is None else self.write(value)


class Constant(NamedTuple):
    """A key that is always written with the same value and is not read."""

    key: str
    value: Any

    def encoded(self, item: Any) -> Any:
        """Return the constant value."""
        return self.value


class WireRow(Generic[T]):
    """A type of message: its name, its class, and its fields in the order in the message.

    If ``type`` is NOTIFY, ``notice`` is the subtype. Optional fields come last.
    """

    def __init__(
        self,
        type: str,
        create: Callable[..., T],
        *fields: Field | Constant,
        notice: str | None = None,
    ) -> None:
        self.type, self.create, self.notice = type, create, notice
        stored = [field for field in fields if isinstance(field, Field)]
        self._read = [(field.name, field.key, field.read) for field in stored if field.read]
        self._values = _values(fields)
        self._form = _form(fields, notice)

    def decode(self, at_us: int, data: Data) -> T:
        """Return the message with these data."""
        fields = {}
        for name, key, read in self._read:
            fields[name] = read(data, key)
        return self.create(at_us=at_us, **fields)

    def encode(self, item: T) -> Any:
        """Return the data of a message."""
        return self._form(*self._values(item))


def _form(fields: Sequence[Field | Constant], notice: str | None) -> Callable[..., Any]:
    """Return a constructor of structs with these fields. Structs are encoded faster than dicts."""
    tag = None if notice is None else "type"
    keys = [
        (field.key, Any, None) if isinstance(field, Field) and field.optional else (field.key, Any)
        for field in fields
    ]
    return msgspec.defstruct("Data", keys, tag_field=tag, tag=notice, omit_defaults=True)


def _values(fields: Sequence[Field | Constant]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that maps an item to the values that are written for it."""
    names = [field.name for field in fields if isinstance(field, Field) and not field.write]
    if len(names) == len(fields) > 1:
        return attrgetter(*names)
    return lambda item: tuple([field.encoded(item) for field in fields])


class WireTable(Generic[T]):
    """The rows of one direction (simulator to scheduler, or scheduler to simulator)."""

    def __init__(self, *rows: WireRow[Any]) -> None:
        self.types = dict.fromkeys(row.type for row in rows)
        self.by_class = {row.create: row for row in rows}
        self._by_type = {row.type: row for row in rows if row.notice is None}
        self._notices = {row.notice: row for row in rows if row.notice is not None}

    def decode(self, type: str, at_us: int, data: Any) -> T:
        """Return the message with these data. Its type (and its subtype) must be known."""
        if data is None:
            data = {}
        elif not isinstance(data, dict):
            raise InputError(f"data is {short(data)}", expected="an object")
        row = self._notice(data) if type == NOTIFY else self._by_type[type]
        return row.decode(at_us, data)

    def _notice(self, data: Data) -> WireRow[T]:
        notice: str = text(data, "type")
        row = self._notices.get(notice) or self._by_type.get(NOTIFY)
        if row is None:
            expected = " or ".join(self._notices)
            raise InputError(f"unknown notification {notice!r}", expected=expected)
        return row

    # ---- field values


def _reader(kind: type, noun: str) -> Read:
    def read(data: Data, key: str) -> Any:
        value = data.get(key)
        if not isinstance(value, kind):
            raise InputError(f"field {key!r} is {short(value)}", expected=noun)
        return value

    return read


text = _reader(str, "text")
table = _reader(dict, "an object")
_list = _reader(list, "a list")


def lenient(kind: type, default: Callable[[], Any]) -> Read:
    """Return a reader that replaces a value of a wrong type by a default."""

    def read(data: Data, key: str) -> Any:
        value = data.get(key)
        return value if isinstance(value, kind) else default()

    return read


def texts(data: Data, key: str) -> tuple[str, ...]:
    """Read a list of texts."""
    values = _list(data, key)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"field {key!r} is {short(values)}", expected="a list of texts")
    return tuple(values)


def nodes(data: Data, key: str) -> NodeSet:
    """Read a set of nodes in Batsim's notation."""
    return NodeSet.parse(text(data, key))


def date(data: Data, key: str) -> int:
    """Read a time in seconds, and return it in microseconds."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key} is {value!r}", expected="seconds")
    return date_us(value, key)


def date_us(seconds: float, name: str) -> int:
    """Convert seconds to microseconds. An error contains ``name``, the name of the value."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise InputError(f"{name} is {seconds!r}", expected=f"seconds, 0 to {MAX_SECONDS:g}")
    return to_us(seconds)
