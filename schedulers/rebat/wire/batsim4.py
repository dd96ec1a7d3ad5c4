# SPDX-License-Identifier: Apache-2.0
"""The JSON messages of Batsim 4 (as observed with version 4.2.1), in both directions.

Unknown fields are ignored. Unknown events are accepted and become ``Notified``. If a message cannot
be decoded, an InputError names the event and the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError, short
from rebat.core.jobs import batsim_number
from rebat.core.units import to_s
from rebat.wire.messages import (
    BROKEN,
    Bodies,
    Body,
    Fields,
    body,
    each,
    nodes_text,
    time_us,
)

NOTIFY = "NOTIFY"
"""The message type that has subtypes."""

HostCount = Annotated[int, Meta(ge=1, le=MAX_NODES)]


class SimulationBegins(Body, kw_only=True):
    """The first event. Older versions only have ``nb_resources``."""

    message = "SIMULATION_BEGINS"
    kinds = (e.SimulationBegan,)
    nb_resources: HostCount | UnsetType = UNSET
    nb_compute_resources: HostCount | UnsetType = UNSET
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    config: Fields = field(default_factory=dict)
    compute_resources: list[Fields] = field(default_factory=list)
    storage_resources: list[Fields] = field(default_factory=list)
    workloads: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, dict[str, Fields]] = field(default_factory=dict)

    def core(self, at_us: int) -> e.SimulationBegan:
        n_nodes = (
            self.nb_resources if self.nb_compute_resources is UNSET else self.nb_compute_resources
        )
        if n_nodes is UNSET:
            raise InputError("nb_compute_resources is missing", expected="the number of hosts")
        return e.SimulationBegan(
            at_us=at_us,
            n_nodes=n_nodes,
            config=self.config,
            profiles=self.profiles,
            workloads=self.workloads,
            resources=self.compute_resources,
        )

    @classmethod
    def of(cls, event: e.SimulationBegan) -> SimulationBegins:
        return cls(
            nb_resources=event.n_nodes,
            nb_compute_resources=event.n_nodes,
            config=event.config,
            compute_resources=event.resources,
            workloads=event.workloads,
            profiles=event.profiles,
        )


EVENTS = Bodies(
    SimulationBegins,
    body("JOB_SUBMITTED", e.JobSubmitted),
    body("JOB_COMPLETED", e.JobCompleted, {"state": "job_state", "nodes": "alloc"}),
    body("JOB_KILLED", e.JobsKilled, {"progress": "job_progress"}),
    body(
        NOTIFY,
        e.NodesFailed,
        {"nodes": "resources"},
        subtype="event_machine_unavailable",
        omit=("line",),
    ),
    body(
        NOTIFY,
        e.NodesRejuvenated,
        {"nodes": "resources"},
        subtype="event_machine_available",
        omit=("line",),
    ),
    body(NOTIFY, e.NoMoreStaticJobs, subtype="no_more_static_job_to_submit"),
    body(NOTIFY, e.NoMoreExternalEvents, subtype="no_more_external_event_to_occur"),
    body("REQUESTED_CALL", e.CallRequested, omit=("name", "last")),
    body("SIMULATION_ENDS", e.SimulationEnded),
)
"""Events of the simulator. Other types of events become `Notified`."""


class CallLater(Body):
    """Request a message at a later time, in seconds."""

    message = "CALL_ME_LATER"
    kinds = (d.CallMeLater,)
    timestamp: float

    def core(self, at_us: int) -> d.CallMeLater:
        return d.CallMeLater(at_us=at_us, when_us=time_us(self.timestamp, "timestamp"))

    @classmethod
    def of(cls, decision: d.CallMeLater) -> CallLater:
        return cls(batsim_number(decision.when_us))


class Metadata(Body):
    """Attach text to a job. Batsim does not accept double quotes in the text."""

    message = "SET_JOB_METADATA"
    kinds = (d.SetMetadata,)
    job_id: str
    metadata: str

    @classmethod
    def of(cls, decision: d.SetMetadata) -> Metadata:
        return cls(decision.job_id, decision.metadata.replace('"', "'"))


DECISIONS = Bodies(
    body("EXECUTE_JOB", d.ExecuteJob, {"nodes": "alloc"}),
    body("REJECT_JOB", d.RejectJob),
    body("KILL_JOB", d.KillJobs),
    CallLater,
    body(
        "REGISTER_PROFILE",
        d.RegisterProfile,
        {"workload": "workload_name", "name": "profile_name"},
    ),
    body("REGISTER_JOB", d.RegisterJob),
    body(NOTIFY, d.FinishRegistration, subtype="registration_finished"),
    body(NOTIFY, d.ContinueRegistration, subtype="continue_registration"),
    Metadata,
)
"""Decisions of a scheduler. Batsim aborts if a decision has another type."""


# ---- messages and replies


class _Item(msgspec.Struct):
    timestamp: float
    type: str
    data: msgspec.Raw


class _Envelope(msgspec.Struct):
    now: float
    events: list[_Item]


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder(enc_hook=nodes_text)


def decode_message(data: bytes) -> e.Message:
    """Decode a message of the simulator. If the bytes are not a message, raise InputError."""
    now_us, items = _opened(data)

    def event(item: _Item) -> e.Event:
        at_us = min(time_us(item.timestamp, "timestamp"), now_us)
        name = _name(item)
        if name in EVENTS.readers:
            result: e.Event = EVENTS.decode(name, item.data, at_us)
            return result
        fields = msgspec.json.decode(item.data)
        return e.Notified(
            at_us=at_us, kind=name, data=fields if isinstance(fields, dict) else {"data": fields}
        )

    return e.Message(now_us, each(items, event))


def encode_message(message: e.Message) -> bytes:
    """Encode a message as Batsim would send it."""
    return _enclosed(message.now_us, message.events, EVENTS)


def decode_reply(data: bytes) -> d.Reply:
    """Decode a reply of a scheduler. If Batsim would abort on it, raise InputError."""
    now_us, items = _opened(data)

    def decision(item: _Item) -> d.Decision:
        name, at_us = _name(item), time_us(item.timestamp, "timestamp")
        if name not in DECISIONS.readers:
            kind = "notification" if item.type == NOTIFY else "type"
            expected = ", ".join(DECISIONS.by_name)
            raise InputError(f"unknown {kind} {short(name)}", expected=expected)
        if at_us > now_us:
            raise InputError(f"timestamp {item.timestamp} is later than now ({to_s(now_us)})")
        result: d.Decision = DECISIONS.decode(name, item.data, at_us)
        return result

    return d.Reply(now_us, each(items, decision))


def encode_reply(reply: d.Reply) -> bytes:
    """Encode a reply for Batsim. Its decisions must be in ascending order of time."""
    return _enclosed(reply.now_us, reply.decisions, DECISIONS)


def _opened(data: bytes) -> tuple[int, list[_Item]]:
    try:
        envelope = _decoder.decode(data)
    except BROKEN as error:
        raise InputError(f"the data is not a Batsim message: {error}") from None
    return time_us(envelope.now, "now"), envelope.events


class _Subtype(msgspec.Struct):
    type: str


def _name(item: _Item) -> str:
    """Return the subtype of a notification, or the type of another item."""
    return msgspec.json.decode(item.data, type=_Subtype).type if item.type == NOTIFY else item.type


def _enclosed(now_us: int, items: Sequence[Any], bodies: Bodies) -> bytes:
    rows = []
    for item in items:
        if isinstance(item, e.Notified):
            name, data = NOTIFY, {"type": item.kind, **item.data}
        else:
            name, data = bodies.written(item)
        rows.append({"timestamp": to_s(item.at_us), "type": name, "data": data})
    return _encoder.encode({"now": to_s(now_us), "events": rows})
