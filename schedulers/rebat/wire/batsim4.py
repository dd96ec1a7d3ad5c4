# SPDX-License-Identifier: Apache-2.0
"""The JSON messages of Batsim 4 (as observed with version 4.2.1), in both directions.

Unknown fields are ignored. Unknown events are accepted and become ``Notified``. If a message cannot
be decoded, an InputError names the event and the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError, short
from rebat.core.jobs import batsim_number
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.wire.declared import (
    NOTIFY,
    Constant,
    Data,
    Field,
    WireRow,
    WireTable,
    date,
    date_us,
    lenient,
    nodes,
    table,
    text,
    texts,
)

# ---- simulator to scheduler


def _node_count(data: Data, key: str) -> int:
    count = data.get(key, data.get("nb_resources"))
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_NODES:
        expected = f"a whole number, 1 to {MAX_NODES:,}"
        raise InputError(f"{key} is {short(count)}", expected=expected)
    return count


def _profiles(data: Data, key: str) -> dict[str, dict[str, dict[str, Any]]]:
    value = data.get(key)
    if not isinstance(value, dict):
        return {}
    for workload, profiles in value.items():
        if not isinstance(profiles, dict) or not all(
            isinstance(p, dict) for p in profiles.values()
        ):
            raise InputError(f"profiles of workload {workload!r} are not objects")
    return value


class _OtherNotice(WireRow[e.Notified]):
    """A notification of any other type, with all its data, including the type."""

    def decode(self, at_us: int, data: Data) -> e.Notified:
        return e.Notified(at_us=at_us, kind=text(data, "type"), data=data)

    def encode(self, item: e.Notified) -> Data:
        return {"type": item.kind, **item.data}


_JOB_ID = Field("job_id", "job_id", text)
_JOB = Field("job", "job", table)
_JOB_IDS = Field("job_ids", "job_ids", texts)
_ALLOC = Field("alloc", "nodes", nodes)
_RESOURCES = Field("resources", "nodes", nodes)

EVENTS: WireTable[e.Event] = WireTable(
    WireRow(
        "SIMULATION_BEGINS",
        e.SimulationBegan,
        Field("nb_resources", "n_nodes"),
        Field("nb_compute_resources", "n_nodes", _node_count),
        Constant("nb_storage_resources", 0),
        Constant("allow_compute_sharing", False),
        Constant("allow_storage_sharing", True),
        Field("config", "config", lenient(dict, dict)),
        Field("compute_resources", "resources", lenient(list, list)),
        Constant("storage_resources", []),
        Field("workloads", "workloads", lenient(dict, dict)),
        Field("profiles", "profiles", _profiles),
    ),
    WireRow(
        "JOB_SUBMITTED",
        e.JobSubmitted,
        _JOB_ID,
        _JOB,
        Field("profile", "profile", lenient(dict, lambda: None), optional=True),
    ),
    WireRow(
        "JOB_COMPLETED",
        e.JobCompleted,
        _JOB_ID,
        Field("job_state", "state", text),
        Field("return_code", "return_code", lenient(int, int)),
        _ALLOC,
    ),
    WireRow(
        "JOB_KILLED",
        e.JobsKilled,
        _JOB_IDS,
        Field("job_progress", "progress", lenient(dict, dict)),
    ),
    WireRow(
        NOTIFY,
        e.NodesFailed,
        _RESOURCES,
        Field("cause", "cause", lenient(str, lambda: None), optional=True),
        notice="event_machine_unavailable",
    ),
    WireRow(NOTIFY, e.NodesRejuvenated, _RESOURCES, notice="event_machine_available"),
    WireRow(NOTIFY, e.NoMoreStaticJobs, notice="no_more_static_job_to_submit"),
    WireRow(NOTIFY, e.NoMoreExternalEvents, notice="no_more_external_event_to_occur"),
    _OtherNotice(NOTIFY, e.Notified),
    WireRow("REQUESTED_CALL", e.CallRequested),
    WireRow("SIMULATION_ENDS", e.SimulationEnded),
)
"""Events of the simulator. Other types of events become `Notified`."""


def decode_message(data: bytes) -> e.Message:
    """Decode a message of the simulator. If the bytes are not a message, raise InputError."""
    now, raw = _opened(data)
    events = []
    for position, event in enumerate(raw):
        try:
            at = min(date_us(event.timestamp, "timestamp"), now)
            events.append(_event(at, event))
        except InputError as error:
            raise error.at(_place(position, event)) from None
    return e.Message(now, tuple(events))


def _event(at: int, raw: _Raw) -> e.Event:
    if raw.type not in EVENTS.types:
        data = raw.data if isinstance(raw.data, dict) else {"data": raw.data}
        return e.Notified(at_us=at, kind=raw.type, data=data)
    return EVENTS.decode(raw.type, at, raw.data)


def encode_message(message: e.Message) -> bytes:
    """Encode a message as Batsim would send it."""
    return _enclosed(message.now_us, message.events, EVENTS)


# ---- scheduler to simulator


def _plain(metadata: str) -> str:
    """Replace double quotes, which Batsim does not accept in metadata."""
    return metadata.replace('"', "'")


DECISIONS: WireTable[d.Decision] = WireTable(
    WireRow("EXECUTE_JOB", d.ExecuteJob, _JOB_ID, _ALLOC),
    WireRow("REJECT_JOB", d.RejectJob, _JOB_ID),
    WireRow("KILL_JOB", d.KillJobs, _JOB_IDS),
    WireRow("CALL_ME_LATER", d.CallMeLater, Field("timestamp", "when_us", date, batsim_number)),
    WireRow(
        "REGISTER_PROFILE",
        d.RegisterProfile,
        Field("workload_name", "workload", text),
        Field("profile_name", "name", text),
        Field("profile", "profile", table),
    ),
    WireRow("REGISTER_JOB", d.RegisterJob, _JOB_ID, _JOB),
    WireRow(NOTIFY, d.FinishRegistration, notice="registration_finished"),
    WireRow(NOTIFY, d.ContinueRegistration, notice="continue_registration"),
    WireRow(
        "SET_JOB_METADATA", d.SetMetadata, _JOB_ID, Field("metadata", "metadata", text, _plain)
    ),
)
"""Decisions of a scheduler. Batsim aborts if a decision has another type."""


def decode_reply(data: bytes) -> d.Reply:
    """Decode a reply of a scheduler. If Batsim would abort on it, raise InputError."""
    now, raw = _opened(data)
    decisions = []
    for position, event in enumerate(raw):
        try:
            decisions.append(_decision(now, event))
        except InputError as error:
            raise error.at(_place(position, event)) from None
    return d.Reply(now, tuple(decisions))


def _decision(now: int, raw: _Raw) -> d.Decision:
    if raw.type not in DECISIONS.types:
        raise InputError("unknown type", expected=", ".join(DECISIONS.types))
    at = date_us(raw.timestamp, "timestamp")
    if at > now:
        raise InputError(f"timestamp {raw.timestamp} is later than now ({to_s(now)})")
    return DECISIONS.decode(raw.type, at, raw.data)


def encode_reply(reply: d.Reply) -> bytes:
    """Encode a reply for Batsim. Its decisions must be in ascending order of time."""
    return _enclosed(reply.now_us, reply.decisions, DECISIONS)

    # ---- the envelope of messages and replies


class _Raw(msgspec.Struct):
    timestamp: float
    type: str
    data: Any


class _Envelope(msgspec.Struct):
    now: float
    events: list[_Raw]


def _nodes_as_text(value: Any) -> str:
    if isinstance(value, NodeSet):
        return str(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder(enc_hook=_nodes_as_text)


def _opened(data: bytes) -> tuple[int, list[_Raw]]:
    try:
        envelope = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the data is not a Batsim message: {error}") from None
    return date_us(envelope.now, "now"), envelope.events


def _enclosed(now_us: int, items: Sequence[Any], rows: WireTable[Any]) -> bytes:
    events = []
    for item in items:
        row = rows.by_class[type(item)]
        events.append(_Raw(to_s(item.at_us), row.type, row.encode(item)))
    return _encoder.encode(_Envelope(to_s(now_us), events))


def _place(position: int, event: _Raw) -> str:
    return f"event {position} ({event.type[:40]})"
