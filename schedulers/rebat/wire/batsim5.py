# SPDX-License-Identifier: Apache-2.0
"""The JSON messages of Batsim 5 (as observed with version 5.0.0-rc2), in both directions.

`events5` and `decisions5` declare the events and decisions. This module reads and writes the
envelope that contains them. Messages of Batsim may contain unknown fields and unknown events.
Unknown events become ``Notified``. Replies are read as strictly as by Batsim 5: it aborts on
unknown, duplicate and missing fields, on fractions instead of whole numbers, and on times that are
not in ascending order.

Batsim's clock has a higher resolution than a microsecond. If the time of a reply is later than the
clock, Batsim delays the reply. Therefore, a reply repeats the time of the message exactly as Batsim
printed it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError, short
from rebat.core.units import MAX_SECONDS, to_s, to_us
from rebat.wire.decisions5 import DECISIONS5, PROBES5, WITHOUT, Unsupported
from rebat.wire.events5 import EVENTS5
from rebat.wire.tables5 import Strict

NUL = b"\0"
"""The last byte of each of Batsim's messages."""


class NoEvents(InputError):
    """Error: a reply has no list of events, which makes Batsim 5 crash."""


# ---- simulator to scheduler


class _Event(msgspec.Struct):
    timestamp: float = 0.0
    event_type: str = ""
    event: msgspec.Raw = msgspec.Raw(b"{}")


class _Message(msgspec.Struct):
    events: list[_Event]
    now: float = 0.0


_decoder = msgspec.json.Decoder(_Message)
_readers = {kind.__name__: msgspec.json.Decoder(kind) for kind in EVENTS5.values()}
_stale = frozenset(kind.__name__ for kind in EVENTS5.values() if getattr(kind, "stale", False)) | {
    "HostsPStateChangedEvent",
    "HostsTurnedOnOffEvent",
}
"""Events to which Batsim gives the timestamp of the previous event.

They happened at the time of the message.
"""

_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_message(data: bytes) -> e.Message:
    """Decode a message of Batsim 5. If the bytes are not a message, raise InputError."""
    return decode_timed(data)[0]


def decode_timed(data: bytes) -> tuple[e.Message, float]:
    """Decode a message of Batsim 5. Return it and its time in seconds, as printed by Batsim."""
    try:
        envelope = _decoder.decode(data.rstrip(NUL))
    except _BROKEN as error:
        raise InputError(f"the data is not a message of Batsim 5: {error}") from None
    now_us = _time_us(envelope.now, "now")
    events = []
    for position, raw in enumerate(envelope.events):
        try:
            events.append(_event(raw, now_us))
        except InputError as error:
            raise error.at(_place(position, raw.event_type)) from None
    return e.Message(now_us, tuple(events)), envelope.now


def _event(raw: _Event, now_us: int) -> e.Event:
    reader = _readers.get(raw.event_type)
    stale = reader is None or raw.event_type in _stale
    at_us = now_us if stale else min(_time_us(raw.timestamp, "timestamp"), now_us)
    try:
        if reader is None:
            fields = msgspec.json.decode(raw.event)
            data = {"event_type": raw.event_type, **(fields if isinstance(fields, dict) else {})}
            return e.Notified(at_us=at_us, kind=raw.event_type, data=data)
        event: e.Event = reader.decode(raw.event).core(at_us)
        return event
    except _BROKEN as error:
        raise InputError(str(error)) from None


def encode_message(message: e.Message) -> bytes:
    """Encode a message as Batsim 5 would send it, with a NUL byte at the end."""
    rows = []
    for event in message.events:
        if isinstance(event, e.Notified) and event.data.get("event_type") == event.kind:
            fields: Any = {key: v for key, v in event.data.items() if key != "event_type"}
            kind = event.kind
        else:
            fields = EVENTS5[type(event)].of(event)
            kind = type(fields).__name__
        rows.append({"timestamp": to_s(event.at_us), "event_type": kind, "event": fields})
    return msgspec.json.encode({"now": to_s(message.now_us), "events": rows}) + NUL


# ---- scheduler to simulator


class Decided(Strict):
    """A decision in the envelope of a reply."""

    event_type: str
    timestamp: float = 0.0
    event: dict[str, Any] | None = None


class _Reply(Strict, kw_only=True):
    now: float = 0.0
    events: list[Decided]


_classes = {kind.__name__: kind for kind in DECISIONS5.values()}


def decode_reply(data: bytes) -> d.Reply:
    """Decode a reply of a scheduler. If Batsim 5 would abort on it, raise InputError."""
    now_s, rows = opened(data)
    decisions: list[d.Decision] = []
    last_s = 0.0
    for position, row in enumerate(rows):
        try:
            decisions.append(_decision(row, now_s, last_s))
        except Unsupported:
            raise
        except InputError as error:
            raise error.at(_place(position, row.event_type)) from None
        last_s = max(last_s, row.timestamp)
    return d.Reply(_time_us(now_s, "now"), tuple(decisions))


def opened(data: bytes) -> tuple[float, list[Decided]]:
    """Return the time and the decisions in a reply. The decisions are not decoded."""
    try:
        text = data.removesuffix(NUL).decode()
        raw = json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_no_constant)
        if isinstance(raw, dict) and "events" not in raw:
            raise NoEvents("has no list of events")
        reply = msgspec.convert(raw, _Reply, strict=False)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not a reply for Batsim 5: {error}") from None
    return reply.now, reply.events


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, given its pairs.

    If a key occurs twice, or if the key of a type comes after that of its value, raise InputError.
    """
    result = dict(pairs)
    if len(result) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"key {key!r} occurs twice", expected="each key once")
    places = {key: place for place, key in enumerate(result)}
    for key, place in places.items():
        if places.get(f"{key}_type", 0) > place + 1:
            raise InputError(f"{key}_type follows {key}", expected=f"{key}_type before {key}")
    return result


def _no_constant(name: str) -> None:
    raise InputError(f"{name} is not JSON")


def _decision(row: Decided, now_s: float, last_s: float) -> d.Decision:
    kind = _classes.get(row.event_type)
    if row.event_type in PROBES5:
        problem = "probes need Batsim's models of energy and power"
        raise Unsupported(problem, row.event_type, "decisions without probes")
    if kind is None:
        raise InputError("is not a decision for Batsim 5", expected=", ".join(_classes))
    if row.timestamp > now_s:
        raise InputError(f"timestamp {row.timestamp} is later than now ({now_s})")
    if row.timestamp < last_s:
        raise InputError(f"timestamp {row.timestamp} follows {last_s}", expected="ascending times")
    try:
        decision: d.Decision = msgspec.convert(row.event or {}, kind, strict=False).core(
            _time_us(row.timestamp, "timestamp")
        )
        return decision
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(str(error)) from None


def encode_reply(reply: d.Reply, now_s: float | None = None) -> bytes:
    """Encode a reply for Batsim 5.

    Parameters
    ----------
    reply : Reply
        Its decisions are in ascending order of time.
    now_s : float, optional
        The time of the message as printed by Batsim. Decisions at this time repeat it exactly.

    Raises
    ------
    InputError
        If Batsim 5 would abort on a decision.
    """
    whole_s = to_s(reply.now_us)
    exact_s = whole_s if now_s is None or to_us(now_s) != reply.now_us else now_s
    rows, last_us = [], 0
    for decision in reply.decisions:
        if not last_us <= decision.at_us <= reply.now_us:
            expected = "ascending times up to the time of the reply"
            raise InputError(f"a decision has the time {to_s(decision.at_us)} s", expected=expected)
        last_us = decision.at_us
        if type(decision) in WITHOUT:
            continue
        table = DECISIONS5[type(decision)].of(decision)
        at_s = exact_s if decision.at_us == reply.now_us else to_s(decision.at_us)
        rows.append({"timestamp": at_s, "event_type": type(table).__name__, "event": table})
    return msgspec.json.encode({"now": exact_s, "events": rows})


def _time_us(seconds: float, name: str) -> int:
    """Convert seconds to microseconds. Batsim's clock may be slightly below 0."""
    if not -1e-6 < seconds <= MAX_SECONDS:
        raise InputError(f"{name} is {seconds!r}", expected=f"seconds, 0 to {MAX_SECONDS:g}")
    return max(0, to_us(seconds))


def _place(position: int, kind: str) -> str:
    return f"event {position} ({short(kind[:40]) if not kind.isprintable() else kind[:40]})"
