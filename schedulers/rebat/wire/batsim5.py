# SPDX-License-Identifier: Apache-2.0
"""The JSON messages of Batsim 5 (as observed with version 5.0.0-rc2), in both directions.

Messages of Batsim may contain unknown fields and unknown events. Unknown events become
``Notified``. Replies are read as strictly as by Batsim 5: it refuses unknown, duplicate and missing
fields, fractions instead of whole numbers, and times that are not in ascending order.

Batsim's clock has a higher resolution than a microsecond. If the time of a reply is later than the
clock, Batsim delays the reply. Therefore, a reply repeats the time of the message exactly as Batsim
printed it.

A conversation begins with a handshake. Batsim sends the length of a text (32 bits) and the text of
its option ``-s``. The scheduler replies with flags (32 bits) and a *hello*, a JSON object that
requests features of the simulation.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.batsim5 import complete, local, object_in
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_MS, US_PER_S, to_s, to_us
from rebat.core.version import rebat_version
from rebat.wire.messages import (
    BROKEN,
    Bodies,
    Body,
    Fields,
    body,
    each,
    nodes_from,
    nodes_text,
    time_us,
)
from rebat.wire.profiles5 import NewJob, NewProfile, SentJob, SentProfile, Whole32, checked_id

Whole64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
HostCount = Annotated[int, Meta(ge=1, le=MAX_NODES)]

# ---- events

FAILURE, REPAIR = "machine_unavailable", "machine_available"
"""Types of failures and repairs in ``data``. Batsim 5 itself has no failures."""

DECIMALS = 12
"""Number of decimals that Batsim 5 prints."""


class _Workload(msgspec.Struct):
    name: str
    filename: str = ""


class SimulationBeginsEvent(Body, kw_only=True):
    """The first event. It does not contain the features that the scheduler requested."""

    kinds = (e.SimulationBegan,)
    host_number: Whole32 = 0
    computation_host_number: HostCount
    computation_hosts: list[Fields] = field(default_factory=list)
    storage_host_number: Whole32 = 0
    storage_hosts: list[Fields] = field(default_factory=list)
    batsim_arguments: list[str] = field(default_factory=list)
    batsim_execution_context_json: str = ""
    workloads: list[_Workload] = field(default_factory=list)
    profiles: list[SentProfile] = field(default_factory=list)

    def core(self, at_us: int) -> e.SimulationBegan:
        ids = [host.get("id") for host in self.computation_hosts]
        if ids and ids != list(range(self.computation_host_number)):
            expected = f"0 to {self.computation_host_number - 1}, in this order"
            raise InputError("the ids of the hosts are not consecutive", expected=expected)
        profiles: dict[str, dict[str, Fields]] = {}
        for profile in self.profiles:
            workload, name, fields = profile.core()
            profiles.setdefault(workload, {})[name] = fields
        return e.SimulationBegan(
            at_us=at_us,
            n_nodes=self.computation_host_number,
            config={
                "batsim_arguments": self.batsim_arguments,
                "batsim_execution_context_json": self.batsim_execution_context_json,
            },
            profiles=profiles,
            workloads={workload.name: workload.filename for workload in self.workloads},
            resources=self.computation_hosts,
        )

    @classmethod
    def of(cls, event: e.SimulationBegan) -> SimulationBeginsEvent:
        return cls(
            host_number=event.n_nodes,
            computation_host_number=event.n_nodes,
            computation_hosts=event.resources,
            batsim_arguments=event.config.get("batsim_arguments", []),
            batsim_execution_context_json=event.config.get("batsim_execution_context_json", ""),
            workloads=[_Workload(*names) for names in event.workloads.items()],
            profiles=[
                SentProfile.of(workload, name, fields)
                for workload, profiles in event.profiles.items()
                for name, fields in profiles.items()
            ],
        )


class JobSubmittedEvent(Body):
    """A static job, or the acknowledgement of a registered job."""

    kinds = (e.JobSubmitted,)
    job_id: str
    job: SentJob
    submission_time: float = 0.0
    profile: SentProfile | UnsetType | None = UNSET

    def core(self, at_us: int) -> e.JobSubmitted:
        profile = self.profile.core()[2] if isinstance(self.profile, SentProfile) else None
        fields = self.job.core(self.job_id, self.submission_time)
        return e.JobSubmitted(at_us=at_us, job_id=self.job_id, job=fields, profile=profile)

    @classmethod
    def of(cls, event: e.JobSubmitted) -> JobSubmittedEvent:
        job = SentJob.of(event.job_id, event.job)
        profile: SentProfile | UnsetType = UNSET
        if event.profile is not None:
            workload, _, name = job.profile_id.partition("!")
            profile = SentProfile.of(workload, name, event.profile)
        return cls(event.job_id, job, float(event.job.get("subtime", to_s(event.at_us))), profile)


class JobCompletedEvent(Body):
    """An execution of a job ended. The message does not contain its nodes.

    Batsim writes the return code as an unsigned number of 32 bits.
    """

    kinds = (e.JobCompleted,)
    job_id: str
    state: str
    return_code: int = 0

    def core(self, at_us: int) -> e.JobCompleted:
        return e.JobCompleted(
            at_us=at_us,
            job_id=self.job_id,
            state=self.state,
            return_code=(self.return_code + 2**31) % 2**32 - 2**31,
            nodes=NodeSet.of(()),
        )

    @classmethod
    def of(cls, event: e.JobCompleted) -> JobCompletedEvent:
        return cls(event.job_id, event.state, event.return_code % 2**32)


class _Progress(msgspec.Struct):
    """The progress of a profile. Sequences contain that of their current part."""

    kill_progress_type: str
    kill_progress: Fields

    def core(self, workload: str) -> Fields:
        """Return the progress with Batsim 4's names."""
        fields = self.kill_progress
        result: Fields = {"profile_name": local(str(fields.get("profile_id")), workload)}
        if self.kill_progress_type != _SEQUENCE:
            return result | {"progress": fields.get("progress", 0.0)}
        part = msgspec.convert(fields.get("current_task_progress"), _Progress)
        return result | {
            "current_repetition": fields.get("current_repetition", 0),
            "current_task_index": fields.get("current_task_index", 0),
            "current_task": part.core(workload),
        }

    @classmethod
    def of(cls, progress: Fields, workload: str) -> _Progress:
        """Return the progress, given its fields with Batsim 4's names."""
        fields: Fields = {"profile_id": complete(progress["profile_name"], workload)}
        if "current_task" not in progress:
            fields["progress"] = round(progress["progress"], DECIMALS)
            return cls(_ATOMIC, fields)
        fields["current_repetition"] = progress.get("current_repetition", 0)
        fields["current_task_index"] = progress["current_task_index"]
        part = progress["current_task"]
        fields["current_task_progress"] = cls.of(part, workload) if part else {}
        return cls(_SEQUENCE, fields)


_ATOMIC, _SEQUENCE = "KillProgressAtomicProfile", "KillProgressSequentialProfile"


class _Killed(msgspec.Struct):
    job_id: str
    wrapper: _Progress | None = None


class JobsKilledEvent(Body):
    """Batsim killed jobs.

    The message contains no progress for jobs that ended before the kill.
    """

    kinds = (e.JobsKilled,)
    job_ids: list[str]
    progresses: list[_Killed] = field(default_factory=list)
    profiles: list[Fields] = field(default_factory=list)

    def core(self, at_us: int) -> e.JobsKilled:
        progress = {
            item.job_id: item.wrapper.core(item.job_id.partition("!")[0]) if item.wrapper else {}
            for item in self.progresses
        }
        return e.JobsKilled(at_us=at_us, job_ids=tuple(self.job_ids), progress=progress)

    @classmethod
    def of(cls, event: e.JobsKilled) -> JobsKilledEvent:
        progresses = [
            _Killed(job_id, _Progress.of(fields, job_id.partition("!")[0]) if fields else None)
            for job_id, fields in event.progress.items()
        ]
        return cls(list(event.job_ids), progresses)


class ExternalEventOccurredEvent(Body):
    """A line of an event file: a failure, a repair, or another event."""

    kinds = (e.NodesFailed, e.NodesRejuvenated, e.Notified)
    id: str = ""
    external_event_type: str = "GenericExternalEvent"
    external_event: Fields = field(default_factory=dict)

    def core(self, at_us: int) -> e.Event:
        where = f"external event {self.id}"
        text = self.external_event.get("data", "")
        if not isinstance(text, str):
            raise InputError(f"data is {short(text)}", where, "text")
        data = object_in(text)
        kind = data.get("type") if data else None
        if data is None or not isinstance(kind, str):
            content = {"type": "generic", "id": self.id, "data": text}
            return e.Notified(at_us=at_us, line=self.id, kind="generic", data=content)
        if kind not in (FAILURE, REPAIR):
            return e.Notified(at_us=at_us, line=self.id, kind=kind, data=data)
        resources, cause = data.get("resources"), data.get("cause")
        try:
            nodes = nodes_from(NodeSet, resources)
        except ValueError as error:
            raise InputError(f"resources: {error}", where) from None
        if kind == REPAIR:
            return e.NodesRejuvenated(at_us=at_us, line=self.id, nodes=nodes)
        stated = cause if isinstance(cause, str) else None
        return e.NodesFailed(at_us=at_us, line=self.id, nodes=nodes, cause=stated)

    @classmethod
    def of(cls, event: e.NodesFailed | e.NodesRejuvenated | e.Notified) -> Body:
        if isinstance(event, e.Notified):
            data = event.data
            if event.kind == "generic" and isinstance(data.get("data"), str):
                line = event.line or str(data.get("id", ""))  # the engine states it in the data
                return cls(line, external_event={"data": data["data"]})
        else:
            failed = isinstance(event, e.NodesFailed)
            data = {"type": FAILURE if failed else REPAIR, "resources": str(event.nodes)}
            if isinstance(event, e.NodesFailed) and event.cause:
                data["cause"] = event.cause
        return cls(event.line, external_event={"data": msgspec.json.encode(data).decode()})


EVENTS = Bodies(
    SimulationBeginsEvent,
    JobSubmittedEvent,
    JobCompletedEvent,
    JobsKilledEvent,
    body(
        "RequestedCallEvent",
        e.CallRequested,
        {"name": "call_me_later_id", "last": "last_periodic_call"},
    ),
    ExternalEventOccurredEvent,
    body("AllStaticJobsHaveBeenSubmittedEvent", e.NoMoreStaticJobs),
    body("AllStaticExternalEventsHaveBeenInjectedEvent", e.NoMoreExternalEvents),
    body("SimulationEndsEvent", e.SimulationEnded),
)
"""Events of the simulator. Other types of events become `Notified`."""

POWER = frozenset({"HostsPStateChangedEvent", "HostsTurnedOnOffEvent"})
"""Events about the power of hosts. rebat only forwards them."""

STALE = POWER | {"JobsKilledEvent", "ExternalEventOccurredEvent"}
"""Events to which Batsim gives the timestamp of the previous event.

They happened at the time of the message.
"""

# ---- decisions


class Strict(Body, forbid_unknown_fields=True, omit_defaults=True):
    """The data of a decision. Unknown fields are an error, and defaults are omitted."""


class _Allocation(msgspec.Struct, forbid_unknown_fields=True):
    host_allocation: NodeSet
    executor_placement_type: str
    executor_placement: Fields


class ExecuteJobEvent(Strict):
    """Start a job on these hosts."""

    kinds = (d.ExecuteJob,)
    job_id: str
    allocation: _Allocation
    profile_allocation_override: list[Any] | None = None
    storage_placement: list[Any] | None = None

    def core(self, at_us: int) -> d.ExecuteJob:
        for key in ("profile_allocation_override", "storage_placement"):
            if getattr(self, key):
                raise InputError("is not supported by rebat", key, "a job without this field")
        nodes = self.allocation.host_allocation
        return d.ExecuteJob(at_us=at_us, job_id=self.job_id, nodes=nodes)

    @classmethod
    def of(cls, decision: d.ExecuteJob) -> ExecuteJobEvent:
        placement = "PredefinedExecutorPlacementStrategyWrapper"
        strategy = {"strategy": "SpreadOverHostsFirst"}
        return cls(decision.job_id, _Allocation(decision.nodes, placement, strategy))


class KillJobsEvent(Strict):
    """Kill running jobs."""

    kinds = (d.KillJobs,)
    job_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.job_ids:
            raise InputError("is empty", "job_ids", "at least one job")


class RegisterProfileEvent(Strict):
    """Register a profile under a new name."""

    kinds = (d.RegisterProfile,)
    profile: NewProfile

    def core(self, at_us: int) -> d.RegisterProfile:
        workload, name, fields = self.profile.core()
        return d.RegisterProfile(at_us=at_us, workload=workload, name=name, profile=fields)

    @classmethod
    def of(cls, decision: d.RegisterProfile) -> RegisterProfileEvent:
        profile = NewProfile.of(decision.workload, decision.name, decision.profile)
        if decision.workload:
            checked_id(profile.id)
        return cls(profile)


class RegisterJobEvent(Strict):
    """Submit a new job. Its submission time is the time of the decision."""

    kinds = (d.RegisterJob,)
    job_id: str
    job: NewJob

    def core(self, at_us: int) -> d.RegisterJob:
        fields = self.job.core(self.job_id, at_us / US_PER_S)
        return d.RegisterJob(at_us=at_us, job_id=self.job_id, job=fields)

    @classmethod
    def of(cls, decision: d.RegisterJob) -> RegisterJobEvent:
        job = NewJob.of(decision.job_id, decision.job)
        checked_id(job.profile_id)
        return cls(decision.job_id, job)


_UNITS = {"Second": US_PER_S, "Millisecond": US_PER_MS}
_ONCE, _PERIODIC = "OneShot", "Periodic"
_ENDLESS, _FINITE = "Infinite", "FinitePeriodNumber"


class _OneShot(Strict):
    time: Whole64 = 0
    time_unit: str = "Second"


class _Mode(Strict):
    nb_periods: Whole32 | None = None


class _Periodic(Strict):
    period: Whole64 = 0
    offset: Whole64 = 0
    time_unit: str = "Second"
    mode_type: str = ""
    mode: _Mode = field(default_factory=_Mode)


class CallMeLaterEvent(Strict):
    """Request a call once, or periodically. Times are whole milliseconds, rounded up."""

    kinds = (d.CallMeLater, d.PeriodicCall)
    call_me_later_id: str
    when_type: str
    when: Fields

    def core(self, at_us: int) -> d.CallMeLater | d.PeriodicCall:
        try:
            if _chosen(self.when_type, "when_type", _ONCE, _PERIODIC) == _ONCE:
                once = msgspec.convert(self.when, _OneShot, strict=False)
                when_us = once.time * _unit_us(once.time_unit)
                return d.CallMeLater(at_us=at_us, when_us=when_us, name=self.call_me_later_id)
            periodic = msgspec.convert(self.when, _Periodic, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(str(error), "when") from None
        unit_us = _unit_us(periodic.time_unit)
        finite = _chosen(periodic.mode_type, "mode_type", _ENDLESS, _FINITE) == _FINITE
        return d.PeriodicCall(
            at_us=at_us,
            name=self.call_me_later_id,
            period_us=periodic.period * unit_us,
            offset_us=periodic.offset * unit_us,
            n_periods=(periodic.mode.nb_periods or 0) if finite else None,
        )

    @classmethod
    def of(cls, decision: d.CallMeLater | d.PeriodicCall) -> CallMeLaterEvent:
        if isinstance(decision, d.CallMeLater):
            time_ms = max(0, -(-decision.when_us // US_PER_MS))
            when: Fields = {"time": time_ms, "time_unit": "Millisecond"}
            return cls(decision.name or f"{time_ms} ms", _ONCE, when)
        finite = decision.n_periods is not None
        when = {
            "period": decision.period_us // US_PER_MS,
            "offset": decision.offset_us // US_PER_MS,
            "time_unit": "Millisecond",
            "mode_type": _FINITE if finite else _ENDLESS,
            "mode": {"nb_periods": decision.n_periods} if finite else {},
        }
        return cls(decision.name, _PERIODIC, when)


def _chosen(value: str, key: str, *choices: str) -> str:
    if value not in choices:
        raise InputError(f"is {short(value)}", key, " or ".join(choices))
    return value


def _unit_us(name: str) -> int:
    return _UNITS[_chosen(name, "time_unit", *_UNITS)]


DECISIONS = Bodies(
    ExecuteJobEvent,
    body("RejectJobEvent", d.RejectJob, base=Strict),
    KillJobsEvent,
    RegisterProfileEvent,
    RegisterJobEvent,
    CallMeLaterEvent,
    body("StopCallMeLaterEvent", d.StopCall, {"name": "call_me_later_id"}, base=Strict),
    body("FinishRegistrationEvent", d.FinishRegistration, base=Strict),
    body("ForceSimulationStopEvent", d.StopSimulation, base=Strict),
    body(
        "ChangeHostsPStateEvent",
        d.ChangePowerState,
        {"nodes": "host_ids", "state": "pstate"},
        base=Strict,
    ),
    body("TurnOnOffHostsEvent", d.SwitchNodes, {"nodes": "host_ids"}, base=Strict),
)
"""Decisions of a scheduler."""

WITHOUT = frozenset({d.ContinueRegistration, d.SetMetadata})
"""Decisions without a message: Batsim 5 always accepts registrations, and has no metadata."""

PROBES = frozenset({"CreateProbeEvent", "StopProbeEvent", "ResetProbeEvent", "TriggerProbeEvent"})
"""Messages about probes of energy and power. rebat's engine does not have such probes."""

# ---- messages of the simulator

NUL = b"\0"
"""The last byte of each of Batsim's messages."""


_KEYS = {"type": "event_type", "data": "event"}


class _SentItem(msgspec.Struct, rename=_KEYS):
    timestamp: float = 0.0
    type: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Message(msgspec.Struct):
    events: list[_SentItem]
    now: float = 0.0


_decoder = msgspec.json.Decoder(_Message)


def decode_message(data: bytes) -> e.Message:
    """Decode a message of Batsim 5. If the bytes are not a message, raise InputError."""
    return decode_timed(data)[0]


def decode_timed(data: bytes) -> tuple[e.Message, float]:
    """Decode a message of Batsim 5. Return it and its time in seconds, as printed by Batsim."""
    try:
        envelope = _decoder.decode(data.rstrip(NUL))
    except BROKEN as error:
        raise InputError(f"the data is not a message of Batsim 5: {error}") from None
    now_us = time_us(envelope.now, "now")

    def event(item: _SentItem) -> e.Event:
        declared = item.type in EVENTS.readers
        stale = not declared or item.type in STALE
        at_us = now_us if stale else min(time_us(item.timestamp, "timestamp"), now_us)
        if declared:
            result: e.Event = EVENTS.decode(item.type, item.data, at_us)
            return result
        fields = msgspec.json.decode(item.data)
        data = {"event_type": item.type, **(fields if isinstance(fields, dict) else {})}
        return e.Notified(at_us=at_us, kind=item.type, data=data)

    return e.Message(now_us, each(envelope.events, event)), envelope.now


def encode_message(message: e.Message) -> bytes:
    """Encode a message as Batsim 5 would send it, with a NUL byte at the end."""
    rows = []
    for event in message.events:
        if isinstance(event, e.Notified) and event.data.get("event_type") == event.kind:
            name = event.kind
            data: Any = {key: v for key, v in event.data.items() if key != "event_type"}
        else:
            name, data = EVENTS.written(event)
        rows.append({"timestamp": to_s(event.at_us), "event_type": name, "event": data})
    return msgspec.json.encode({"now": to_s(message.now_us), "events": rows}) + NUL


# ---- replies of the scheduler


class _Decided(msgspec.Struct, rename=_KEYS, forbid_unknown_fields=True):
    type: str
    timestamp: float = 0.0
    data: Fields | None = None


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    events: list[_Decided]
    now: float = 0.0


def decode_reply(data: bytes) -> d.Reply:
    """Decode a reply of a scheduler. If Batsim 5 would abort on it, raise InputError."""
    reply, last_s = _opened(data), 0.0

    def decision(row: _Decided) -> d.Decision:
        nonlocal last_s
        kind = DECISIONS.by_name.get(row.type)
        if row.type in PROBES:
            raise InputError("probes need Batsim's models of energy and power")
        if kind is None:
            expected = ", ".join(DECISIONS.by_name)
            raise InputError("is not a decision for Batsim 5", expected=expected)
        if row.timestamp > reply.now:
            raise InputError(f"timestamp {row.timestamp} is later than now ({reply.now})")
        if row.timestamp < last_s:
            problem = f"timestamp {row.timestamp} follows {last_s}"
            raise InputError(problem, expected="ascending times")
        last_s = max(last_s, row.timestamp)
        body = msgspec.convert(row.data or {}, kind, strict=False, dec_hook=_hosts)
        result: d.Decision = body.core(time_us(row.timestamp, "timestamp"))
        return result

    decisions = each(reply.events, decision)
    return d.Reply(time_us(reply.now, "now"), decisions)


def _opened(data: bytes) -> _Reply:
    """Return a reply with the data of its decisions, which are not decoded."""
    try:
        text = data.removesuffix(NUL).decode()
        raw = json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_no_constant)
        return msgspec.convert(raw, _Reply, strict=False)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"is not a reply for Batsim 5: {error}") from None


def _unambiguous(pairs: list[tuple[str, Any]]) -> Fields:
    """Return a JSON object, given its pairs.

    If a key is a duplicate, or if the key of a type comes after that of its value, raise
    InputError.
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


def _hosts(kind: type[Any], value: Any) -> NodeSet:
    nodes = nodes_from(kind, value)
    if not nodes.size:
        raise ValueError("is empty (expected at least one host, like '0-4 6')")
    return nodes


def encode_reply(reply: d.Reply, now_s: float | None = None) -> bytes:
    """Encode a reply for Batsim 5. If Batsim 5 would abort on a decision, raise InputError.

    The decisions are in ascending order of time. ``now_s`` is the time of the message as printed by
    Batsim. Decisions at this time repeat it exactly.
    """
    exact_s = to_s(reply.now_us)
    if now_s is not None and to_us(now_s) == reply.now_us:
        exact_s = now_s
    rows, last_us = [], 0
    for decision in reply.decisions:
        if not last_us <= decision.at_us <= reply.now_us:
            expected = "ascending times up to the time of the reply"
            raise InputError(f"a decision has the time {to_s(decision.at_us)} s", expected=expected)
        last_us = decision.at_us
        if type(decision) in WITHOUT:
            continue
        for job_id in getattr(decision, "job_ids", (getattr(decision, "job_id", "w!j"),)):
            checked_id(job_id)
        nodes = getattr(decision, "nodes", None)
        if nodes is not None and not nodes.size:
            raise InputError("the set of hosts is empty", expected="at least one host")
        name, data = DECISIONS.written(decision)
        at_s = exact_s if decision.at_us == reply.now_us else to_s(decision.at_us)
        rows.append({"timestamp": at_s, "event_type": name, "event": data})
    return msgspec.json.encode({"now": exact_s, "events": rows}, enc_hook=nodes_text)


# ---- the handshake

HELLO = "EDCHelloEvent"
BATPROTOCOL = "1.0.0"
"""Version of the protocol library. Batsim 5.0.0-rc2 does not check it."""

_JSON = 2
"""Flag of a hello in JSON."""

_WORD = struct.Struct("=I")


class Features(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Features of the simulation that a scheduler requests."""

    dynamic_registration: bool = False
    profile_reuse: bool = False
    acknowledge_dynamic_jobs: bool = False
    forward_profiles_on_job_submission: bool = False
    forward_profiles_on_jobs_killed: bool = False
    forward_profiles_on_simulation_begins: bool = False


OURS = Features(
    dynamic_registration=True, profile_reuse=True, forward_profiles_on_job_submission=True
)
"""The features that ``rebat serve`` requests.

Acknowledgements are not needed, because a registered job can be started immediately. Profiles in
the first message are not requested, because Batsim then crashes if a workload has unused profiles.
"""


class Hello(msgspec.Struct, forbid_unknown_fields=True):
    """The first message of the scheduler. Batsim crashes if a field is missing."""

    batprotocol_version: str
    decision_component_commit: str
    requested_simulation_features: Features
    decision_component_name: str = ""
    decision_component_version: str = ""


def is_init(data: bytes) -> bool:
    """Return whether a frame is the first frame that Batsim 5 sends."""
    return len(data) >= _WORD.size and _WORD.unpack_from(data)[0] == len(data) - _WORD.size


def encode_init(text: str) -> bytes:
    """Return the first frame of Batsim with this text."""
    data = text.encode()
    return _WORD.pack(len(data)) + data


def decode_init(data: bytes) -> str:
    """Return the text of Batsim's first frame. If it is another frame, raise InputError."""
    if not is_init(data):
        expected = "a length in 4 bytes and a text of this length"
        raise InputError("the data is not the first frame of Batsim 5", expected=expected)
    return data[_WORD.size :].decode(errors="replace")


def encode_hello(features: Features = OURS) -> bytes:
    """Return the scheduler's first frame."""
    hello = {
        "batprotocol_version": BATPROTOCOL,
        "decision_component_name": "rebat",
        "decision_component_version": rebat_version(),
        "decision_component_commit": "",
        "requested_simulation_features": features,
    }
    event = {"timestamp": 0.0, "event_type": HELLO, "event": hello}
    return _WORD.pack(_JSON) + msgspec.json.encode({"now": 0.0, "events": [event]})


def decode_hello(data: bytes) -> Features:
    """Return the features that a scheduler's first frame requests.

    If Batsim 5 would not accept the frame, raise InputError.
    """
    if len(data) < _WORD.size:
        expected = "4 bytes of flags and a hello"
        raise InputError(f"the frame has {len(data)} bytes", expected=expected)
    flags, content = _WORD.unpack_from(data)[0], data[_WORD.size :]
    if not flags & _JSON:
        expected = f"{_JSON}: JSON; rebat does not read binary messages"
        raise InputError(f"the flags are {flags}", expected=expected)
    events = _opened(content).events
    if [event.type for event in events] != [HELLO]:
        names = ", ".join(short(event.type) for event in events) or "no event"
        raise InputError(names, expected=f"exactly one event, {HELLO}")
    try:
        hello = msgspec.convert(events[0].data or {}, Hello, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error), HELLO) from None
    return hello.requested_simulation_features
