# SPDX-License-Identifier: Apache-2.0
"""How a message type is declared, once: reading it and writing it follow from the same row."""

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
"""(data, key) -> the attribute's value; an InputError for what it cannot be."""
Write = Callable[[Any], Any]

NOTIFY = "NOTIFY"
"""The one type of message that has types of its own, under the key ``type``."""


class Field(NamedTuple):
    """A key of a message's data and the attribute that holds it.

    ``read`` None: the key is written but not read. ``write`` None: the value as it is. An
    ``optional`` one is left out where the value is None.
    """

    key: str
    name: str
    read: Read | None = None
    write: Write | None = None
    optional: bool = False

    def said(self, item: Any) -> Any:
        """What is written of an item."""
        value = getattr(item, self.name)
        return value if self.write is None else self.write(value)


class Constant(NamedTuple):
    """A key that is always written with the same value, and not read."""

    key: str
    value: Any

    def said(self, item: Any) -> Any:
        """The value."""
        return self.value


class WireRow(Generic[T]):
    """A type of message: its name on the wire, its class, its fields in the order written.

    ``notice`` is the notification's own type where ``type`` is NOTIFY. Fields that are optional
    come last.
    """

    def __init__(
        self,
        type: str,
        made: Callable[..., T],
        *fields: Field | Constant,
        notice: str | None = None,
    ) -> None:
        self.type, self.made, self.notice = type, made, notice
        stored = [field for field in fields if isinstance(field, Field)]
        self._read = [(field.name, field.key, field.read) for field in stored if field.read]
        self._values = _values(fields)
        self._form = _form(fields, notice)

    def decode(self, at_us: int, data: Data) -> T:
        """The message that these data of the wire say."""
        fields = {}
        for name, key, read in self._read:
            fields[name] = read(data, key)
        return self.made(at_us=at_us, **fields)

    def encode(self, item: T) -> Any:
        """A message's data as the wire has them."""
        return self._form(*self._values(item))


def _form(fields: Sequence[Field | Constant], notice: str | None) -> Callable[..., Any]:
    """A struct of what is written: JSON is made of one sooner than of a dictionary."""
    tag = None if notice is None else "type"
    keys = [
        (field.key, Any, None) if isinstance(field, Field) and field.optional else (field.key, Any)
        for field in fields
    ]
    return msgspec.defstruct("Data", keys, tag_field=tag, tag=notice, omit_defaults=True)


def _values(fields: Sequence[Field | Constant]) -> Callable[[Any], tuple[Any, ...]]:
    """What is written of an item; at once, where that is attributes as they are."""
    names = [field.name for field in fields if isinstance(field, Field) and not field.write]
    if len(names) == len(fields) > 1:
        return attrgetter(*names)
    return lambda item: tuple([field.said(item) for field in fields])


class WireTable(Generic[T]):
    """The rows of one side of the wire."""

    def __init__(self, *rows: WireRow[Any]) -> None:
        self.types = dict.fromkeys(row.type for row in rows)
        self.by_class = {row.made: row for row in rows}
        self._by_type = {row.type: row for row in rows if row.notice is None}
        self._notices = {row.notice: row for row in rows if row.notice is not None}

    def decode(self, type: str, at_us: int, data: Any) -> T:
        """The message of a known type that these data say; a notification's own type counts."""
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


# ---- what fields hold


def _reader(kind: type, called: str) -> Read:
    def read(data: Data, key: str) -> Any:
        value = data.get(key)
        if not isinstance(value, kind):
            raise InputError(f"field {key!r} is {short(value)}", expected=called)
        return value

    return read


text = _reader(str, "a text")
table = _reader(dict, "an object")
_list = _reader(list, "a list")


def lenient(kind: type, otherwise: Callable[[], Any]) -> Read:
    """A reader of what is not worth refusing a message for: of this type, or else that."""

    def read(data: Data, key: str) -> Any:
        value = data.get(key)
        return value if isinstance(value, kind) else otherwise()

    return read


def texts(data: Data, key: str) -> tuple[str, ...]:
    """A list of texts."""
    values = _list(data, key)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"field {key!r} is {short(values)}", expected="a list of texts")
    return tuple(values)


def nodes(data: Data, key: str) -> NodeSet:
    """A set of nodes in Batsim's notation."""
    return NodeSet.parse(text(data, key))


def date(data: Data, key: str) -> int:
    """A date in seconds, to microseconds."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key} is {value!r}", expected="seconds")
    return date_us(value, key)


def date_us(seconds: float, name: str) -> int:
    """Seconds to microseconds; ``name`` is what to call them in an error."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise InputError(f"{name} is {seconds!r}", expected=f"seconds, 0 to {MAX_SECONDS:g}")
    return to_us(seconds)
