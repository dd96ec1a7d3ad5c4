"""Batsim 4's JSON messages (as observed with 4.2.1), both sides of the wire.

Unknown event types and fields never fail a decoding: they are kept as ``Notified``. What cannot be
understood at all is an InputError that says which event and which field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError
from rebat.core.jobs import batsim_number
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_s, to_us

T = TypeVar("T")

MAX_NODES = 100_000_000
"""A machine said to be larger than this is taken for a mistake."""


class _RawEvent(msgspec.Struct):
    timestamp: float
    type: str
    data: Any


class _RawMessage(msgspec.Struct):
    now: float
    events: list[_RawEvent]


_decoder = msgspec.json.Decoder(_RawMessage)
_encoder = msgspec.json.Encoder()


# ---- fields


def _date_us(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} is {value!r}", expected="seconds")
    if not 0 <= value <= MAX_SECONDS:
        raise InputError(f"{name} is {value!r}", expected=f"seconds, 0 to {MAX_SECONDS:g}")
    return to_us(value)


def _field(data: Any, name: str, kind: type[T] | tuple[type, ...]) -> T:
    value = data.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"field {name!r} is {_short(value)}", expected=_kind_name(kind))
    return value  # type: ignore[return-value]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind_name(kind: type | tuple[type, ...]) -> str:
    names = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}
    first = kind[0] if isinstance(kind, tuple) else kind
    return names.get(first, first.__name__)


def _nodes(data: Any, name: str) -> NodeSet:
    return NodeSet.parse(_field(data, name, str))


def _texts(data: Any, name: str) -> tuple[str, ...]:
    values: list[Any] = _field(data, name, list)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"field {name!r} is {_short(values)}", expected="a list of texts")
    return tuple(values)


def _object(data: Any) -> dict[str, Any]:
    if data is not None and not isinstance(data, dict):
        raise InputError(f"data is {_short(data)}", expected="an object")
    return data or {}


# ---- simulator to scheduler


def _began(at: int, data: Any) -> e.Event:
    count = data.get("nb_compute_resources", data.get("nb_resources"))
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_NODES:
        expected = f"a whole number, 1 to {MAX_NODES:,}"
        raise InputError(f"nb_compute_resources is {_short(count)}", expected=expected)
    resources = data.get("compute_resources", [])
    return e.SimulationBegan(
        at_us=at,
        n_nodes=count,
        config=data.get("config") if isinstance(data.get("config"), dict) else {},
        profiles=_profile_table(data.get("profiles")),
        workloads=data.get("workloads") if isinstance(data.get("workloads"), dict) else {},
        resources=resources if isinstance(resources, list) else [],
    )


def _profile_table(value: Any) -> dict[str, dict[str, dict[str, Any]]]:
    if not isinstance(value, dict):
        return {}
    for workload, profiles in value.items():
        if not isinstance(profiles, dict) or not all(
            isinstance(p, dict) for p in profiles.values()
        ):
            raise InputError(f"profiles of workload {workload!r} are not objects")
    return value


def _submitted(at: int, data: Any) -> e.Event:
    profile = data.get("profile")
    return e.JobSubmitted(
        at_us=at,
        job_id=_field(data, "job_id", str),
        job=_field(data, "job", dict),
        profile=profile if isinstance(profile, dict) else None,
    )


def _completed(at: int, data: Any) -> e.Event:
    code = data.get("return_code", 0)
    return e.JobCompleted(
        at_us=at,
        job_id=_field(data, "job_id", str),
        state=_field(data, "job_state", str),
        return_code=code if isinstance(code, int) else 0,
        nodes=_nodes(data, "alloc"),
    )


def _killed(at: int, data: Any) -> e.Event:
    progress = data.get("job_progress", {})
    return e.JobsKilled(
        at_us=at,
        job_ids=_texts(data, "job_ids"),
        progress=progress if isinstance(progress, dict) else {},
    )


def _notified(at: int, data: Any) -> e.Event:
    kind = _field(data, "type", str)
    simple = _NOTICES.get(kind)
    if simple:
        return simple(at_us=at)
    with_nodes = _NODE_NOTICES.get(kind)
    if with_nodes:
        return with_nodes(at_us=at, nodes=_nodes(data, "resources"))
    return e.Notified(at_us=at, kind=kind, data=data)  # data says its type again


_NOTICES: dict[str, type[e.Event]] = {
    "no_more_static_job_to_submit": e.NoMoreStaticJobs,
    "no_more_external_event_to_occur": e.NoMoreExternalEvents,
}
_NODE_NOTICES: dict[str, Callable[..., e.Event]] = {
    "event_machine_unavailable": e.NodesFailed,
    "event_machine_available": e.NodesRejuvenated,
}
_FROM_SIMULATOR: dict[str, Callable[[int, Any], e.Event]] = {
    "SIMULATION_BEGINS": _began,
    "JOB_SUBMITTED": _submitted,
    "JOB_COMPLETED": _completed,
    "JOB_KILLED": _killed,
    "NOTIFY": _notified,
    "REQUESTED_CALL": lambda at, data: e.CallRequested(at_us=at),
    "SIMULATION_ENDS": lambda at, data: e.SimulationEnded(at_us=at),
}


def _raw(data: bytes) -> tuple[int, list[_RawEvent]]:
    try:
        message = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a Batsim message: {error}") from None
    return _date_us(message.now, "now"), message.events


def decode_message(data: bytes) -> e.Message:
    """Bytes of the simulator to a message; InputError for what is none."""
    now, raw = _raw(data)
    events = []
    for position, event in enumerate(raw):
        where = f"event {position} ({event.type[:40]})"
        try:
            at = min(_date_us(event.timestamp, "timestamp"), now)
            convert = _FROM_SIMULATOR.get(event.type)
            if convert:
                events.append(convert(at, _object(event.data)))
            else:
                kept = event.data if isinstance(event.data, dict) else {"data": event.data}
                events.append(e.Notified(at_us=at, kind=event.type, data=kept))
        except InputError as error:
            raise error.at(where) from None
    return e.Message(now, tuple(events))


def _begin_data(event: Any) -> dict[str, Any]:
    return {
        "nb_resources": event.n_nodes,
        "nb_compute_resources": event.n_nodes,
        "nb_storage_resources": 0,
        "allow_compute_sharing": False,
        "allow_storage_sharing": True,
        "config": event.config,
        "compute_resources": event.resources,
        "storage_resources": [],
        "workloads": event.workloads,
        "profiles": event.profiles,
    }


def _submit_data(event: Any) -> dict[str, Any]:
    data = {"job_id": event.job_id, "job": event.job}
    return data if event.profile is None else data | {"profile": event.profile}


_TO_SCHEDULER: dict[type[e.Event], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    e.SimulationBegan: ("SIMULATION_BEGINS", _begin_data),
    e.JobSubmitted: ("JOB_SUBMITTED", _submit_data),
    e.JobCompleted: (
        "JOB_COMPLETED",
        lambda x: {
            "job_id": x.job_id,
            "job_state": x.state,
            "return_code": x.return_code,
            "alloc": str(x.nodes),
        },
    ),
    e.JobsKilled: (
        "JOB_KILLED",
        lambda x: {"job_ids": list(x.job_ids), "job_progress": x.progress},
    ),
    e.NodesFailed: (
        "NOTIFY",
        lambda x: {"type": "event_machine_unavailable", "resources": str(x.nodes)},
    ),
    e.NodesRejuvenated: (
        "NOTIFY",
        lambda x: {"type": "event_machine_available", "resources": str(x.nodes)},
    ),
    e.NoMoreStaticJobs: ("NOTIFY", lambda x: {"type": "no_more_static_job_to_submit"}),
    e.NoMoreExternalEvents: ("NOTIFY", lambda x: {"type": "no_more_external_event_to_occur"}),
    e.Notified: ("NOTIFY", lambda x: {"type": x.kind, **x.data}),
    e.CallRequested: ("REQUESTED_CALL", lambda x: {}),
    e.SimulationEnded: ("SIMULATION_ENDS", lambda x: {}),
}


def _encode(now_us: int, items: tuple[Any, ...], table: dict[Any, Any]) -> bytes:
    events = []
    for item in items:
        kind, data = table[type(item)]
        events.append({"timestamp": to_s(item.at_us), "type": kind, "data": data(item)})
    return _encoder.encode({"now": to_s(now_us), "events": events})


def encode_message(message: e.Message) -> bytes:
    """A message as Batsim would send it."""
    return _encode(message.now_us, message.events, _TO_SCHEDULER)


# ---- scheduler to simulator


def _execute(at: int, data: Any) -> d.Decision:
    return d.ExecuteJob(at_us=at, job_id=_field(data, "job_id", str), nodes=_nodes(data, "alloc"))


def _reply_notice(at: int, data: Any) -> d.Decision:
    kind: str = _field(data, "type", str)
    known = {
        "registration_finished": d.FinishRegistration,
        "continue_registration": d.ContinueRegistration,
    }
    if kind not in known:
        raise InputError(f"unknown notification {kind!r}", expected=" or ".join(known))
    return known[kind](at_us=at)


_FROM_SCHEDULER: dict[str, Callable[[int, Any], d.Decision]] = {
    "EXECUTE_JOB": _execute,
    "REJECT_JOB": lambda at, x: d.RejectJob(at_us=at, job_id=_field(x, "job_id", str)),
    "KILL_JOB": lambda at, x: d.KillJobs(at_us=at, job_ids=_texts(x, "job_ids")),
    "CALL_ME_LATER": lambda at, x: d.CallMeLater(
        at_us=at, when_us=_date_us(x.get("timestamp"), "timestamp")
    ),
    "REGISTER_PROFILE": lambda at, x: d.RegisterProfile(
        at_us=at,
        workload=_field(x, "workload_name", str),
        name=_field(x, "profile_name", str),
        profile=_field(x, "profile", dict),
    ),
    "REGISTER_JOB": lambda at, x: d.RegisterJob(
        at_us=at, job_id=_field(x, "job_id", str), job=_field(x, "job", dict)
    ),
    "NOTIFY": _reply_notice,
    "SET_JOB_METADATA": lambda at, x: d.SetMetadata(
        at_us=at, job_id=_field(x, "job_id", str), metadata=_field(x, "metadata", str)
    ),
}


def decode_reply(data: bytes) -> d.Reply:
    """Bytes of a scheduler to a reply; InputError for what Batsim would abort on."""
    now, raw = _raw(data)
    decisions = []
    for position, event in enumerate(raw):
        try:
            convert = _FROM_SCHEDULER.get(event.type)
            if convert is None:
                raise InputError("unknown type", expected=", ".join(_FROM_SCHEDULER))
            at = _date_us(event.timestamp, "timestamp")
            if at > now:
                raise InputError(f"timestamp {event.timestamp} is later than now {to_s(now)}")
            decisions.append(convert(at, _object(event.data)))
        except InputError as error:
            raise error.at(f"event {position} ({event.type[:40]})") from None
    return d.Reply(now, tuple(decisions))


_TO_SIMULATOR: dict[type[d.Decision], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    d.ExecuteJob: ("EXECUTE_JOB", lambda x: {"job_id": x.job_id, "alloc": str(x.nodes)}),
    d.RejectJob: ("REJECT_JOB", lambda x: {"job_id": x.job_id}),
    d.KillJobs: ("KILL_JOB", lambda x: {"job_ids": list(x.job_ids)}),
    d.CallMeLater: ("CALL_ME_LATER", lambda x: {"timestamp": batsim_number(x.when_us)}),
    d.RegisterProfile: (
        "REGISTER_PROFILE",
        lambda x: {
            "workload_name": x.workload, "profile_name": x.name, "profile": x.profile,
        },
    ),
    d.RegisterJob: ("REGISTER_JOB", lambda x: {"job_id": x.job_id, "job": x.job}),
    d.FinishRegistration: ("NOTIFY", lambda x: {"type": "registration_finished"}),
    d.ContinueRegistration: ("NOTIFY", lambda x: {"type": "continue_registration"}),
    d.SetMetadata: (
        "SET_JOB_METADATA",
        lambda x: {"job_id": x.job_id, "metadata": x.metadata.replace('"', "'")},
    ),
}  # fmt: skip


def encode_reply(reply: d.Reply) -> bytes:
    """A reply as Batsim expects it; decisions are in ascending order of date already."""
    return _encode(reply.now_us, reply.decisions, _TO_SIMULATOR)
