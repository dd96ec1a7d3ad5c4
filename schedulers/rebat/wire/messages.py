# SPDX-License-Identifier: Apache-2.0
"""How messages of both protocols are declared, decoded and encoded.

The data of each message is a struct (`Body`). ``core`` converts it to an event or a decision, and
``of`` converts an event or a decision to it. Most bodies have the fields of the event or decision
under other names (`body`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_us

BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors for bytes that are not the expected JSON."""

Fields = dict[str, Any]
T = TypeVar("T")


class Body(msgspec.Struct):
    """The data of a message. By default, it has the fields of the event or decision."""

    message: ClassVar[str] = ""
    """Name of the message (default: the name of the class)."""
    kinds: ClassVar[tuple[type[Any], ...]] = ()
    """Classes of the events or decisions."""

    def core(self, at_us: int) -> Any:
        """Return the event or decision."""
        fields = msgspec.structs.asdict(self)
        return self.kinds[0](at_us=at_us, **{k: v for k, v in fields.items() if v is not UNSET})

    @classmethod
    def of(cls, item: Any) -> Any:
        """Return the body for an event or decision. Optional fields are omitted if None."""
        values = [getattr(item, name) for name in cls.__struct_fields__]
        return cls(*[UNSET if value is None else value for value in values])


def body(
    message: str,
    kind: type[Any],
    keys: Mapping[str, str] | None = None,
    *,
    base: type[Body] = Body,
    subtype: str | None = None,
    omit: tuple[str, ...] = (),
) -> type[Body]:
    """Return a body with the fields of an event or decision, except those to ``omit``.

    ``keys`` contains the fields that have another name in the message. The key ``type`` of the data
    contains the ``subtype``.
    """
    fields = []
    for field in msgspec.structs.fields(kind):
        if field.name not in ("at_us", *omit):
            optional = field.default is None
            key = msgspec.field(  # type: ignore[call-overload]
                default=UNSET if optional else field.default,
                default_factory=field.default_factory,
                name=(keys or {}).get(field.name),
            )
            fields.append((field.name, field.type | UnsetType if optional else field.type, key))
    made: Any = msgspec.defstruct(
        message,
        fields,
        bases=(base,),
        namespace={"kinds": (kind,)},
        tag=subtype,
        tag_field="type" if subtype else None,
    )
    return cast(type[Body], made)


class Bodies:
    """The messages of one direction, by name (or subtype), and by class of event or decision."""

    def __init__(self, *bodies: type[Body]) -> None:
        self.by_name = {str(b.__struct_config__.tag or b.message or b.__name__): b for b in bodies}
        self.by_class = {kind: b for b in bodies for kind in b.kinds}
        self.readers = {
            name: msgspec.json.Decoder(b, dec_hook=nodes_from) for name, b in self.by_name.items()
        }

    def decode(self, name: str, data: msgspec.Raw, at_us: int) -> Any:
        """Return the event or decision in the data of a message with this name."""
        empty = bytes(data) == b"null"
        return self.readers[name].decode(b"{}" if empty else data).core(at_us)

    def written(self, item: Any) -> tuple[str, Any]:
        """Return the name of the message for an event or decision, and its data."""
        kind = self.by_class[type(item)]
        return kind.message or kind.__name__, kind.of(item)


def nodes_from(kind: type[Any], value: Any) -> NodeSet:
    """Convert a text in Batsim's notation to a set of nodes (a hook of msgspec)."""
    try:
        if not isinstance(value, str):
            raise InputError(f"is {short(value)}", expected="text like '0-3 5'")
        return NodeSet.parse(value)
    except InputError as error:
        raise ValueError(str(error)) from None  # msgspec adds the place


def nodes_text(value: Any) -> str:
    """Convert a set of nodes to a text in Batsim's notation (a hook of msgspec)."""
    if isinstance(value, NodeSet):
        return str(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def each(items: Iterable[Any], decode: Callable[[Any], T]) -> tuple[T, ...]:
    """Decode the items of a message. An InputError names the position and type of the item."""
    decoded = []
    for item in items:
        try:
            decoded.append(decode(item))
        except (*BROKEN, InputError) as error:
            name = item.type[:40] if item.type.isprintable() else short(item.type[:40])
            problem = error if isinstance(error, InputError) else InputError(str(error))
            raise problem.at(f"event {len(decoded)} ({name})") from None
    return tuple(decoded)


def time_us(seconds: float, name: str) -> int:
    """Convert seconds to microseconds. Batsim's clock may be slightly below 0."""
    if not -1e-6 < seconds <= MAX_SECONDS:
        raise InputError(f"{name} is {seconds!r}", expected=f"seconds, 0 to {MAX_SECONDS:g}")
    return max(0, to_us(seconds))
