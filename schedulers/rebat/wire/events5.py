# SPDX-License-Identifier: Apache-2.0
"""Messages of Batsim 5. Each is declared once, with its fields and its conversions.

The method ``core`` converts a message to an event of rebat. The method ``of`` converts an event to
a message. Messages that are not declared become ``Notified``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from rebat.core import events as e
from rebat.core.batsim5 import complete, local, object_in
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.wire.tables5 import (
    Fields,
    Lenient,
    SentJob,
    SentProfile,
    Whole32,
    as_signed,
    as_unsigned,
)

GENERIC = "GenericExternalEvent"
FAILURE, REPAIR = "machine_unavailable", "machine_available"
"""Types of failures and repairs in ``data``. Batsim 5 itself has no failures."""

DECIMALS = 12
"""Number of decimals that Batsim 5 prints."""

_NO_NODES = NodeSet.of(())
HostCount = Annotated[int, Meta(ge=1, le=MAX_NODES)]


class _Workload(Lenient):
    name: str
    filename: str = ""


class SimulationBeginsEvent(Lenient, kw_only=True):
    """The first event. It does not contain the features that the scheduler requested."""

    host_number: Whole32 = 0
    computation_host_number: HostCount
    computation_hosts: list[Fields] = msgspec.field(default_factory=list)
    storage_host_number: Whole32 = 0
    storage_hosts: list[Fields] = msgspec.field(default_factory=list)
    batsim_arguments: list[str] = msgspec.field(default_factory=list)
    batsim_execution_context_json: str = ""
    workloads: list[_Workload] = msgspec.field(default_factory=list)
    profiles: list[SentProfile] = msgspec.field(default_factory=list)

    def core(self, at_us: int) -> e.SimulationBegan:
        ids = [host.get("id") for host in self.computation_hosts]
        if ids and ids != list(range(self.computation_host_number)):
            expected = f"0 to {self.computation_host_number - 1}, in this order"
            raise InputError("the ids of the hosts are not consecutive", expected=expected)
        profiles: dict[str, dict[str, Fields]] = {}
        for profile in self.profiles:
            workload, name, fields = profile.core()
            profiles.setdefault(workload, {})[name] = fields
        config = {
            "batsim_arguments": self.batsim_arguments,
            "batsim_execution_context_json": self.batsim_execution_context_json,
        }
        workloads = {workload.name: workload.filename for workload in self.workloads}
        return e.SimulationBegan(
            at_us=at_us,
            n_nodes=self.computation_host_number,
            config=config,
            profiles=profiles,
            workloads=workloads,
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
            workloads=[_Workload(name=n, filename=f) for n, f in event.workloads.items()],
            profiles=[
                SentProfile.of(workload, name, fields)
                for workload, profiles in event.profiles.items()
                for name, fields in profiles.items()
            ],
        )


class JobSubmittedEvent(Lenient):
    """A static job, or the acknowledgement of a registered job."""

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
        subtime = float(event.job.get("subtime", to_s(event.at_us)))
        return cls(job_id=event.job_id, job=job, submission_time=subtime, profile=profile)


class JobCompletedEvent(Lenient):
    """An execution of a job ended. The message does not contain its nodes."""

    job_id: str
    state: str
    return_code: int = 0

    def core(self, at_us: int) -> e.JobCompleted:
        code = as_signed(self.return_code)
        return e.JobCompleted(
            at_us=at_us, job_id=self.job_id, state=self.state, return_code=code, nodes=_NO_NODES
        )

    @classmethod
    def of(cls, event: e.JobCompleted) -> JobCompletedEvent:
        code = as_unsigned(event.return_code)
        return cls(job_id=event.job_id, state=event.state, return_code=code)


class _Wrapper(Lenient):
    kill_progress_type: str
    kill_progress: Fields


class _Progress(Lenient):
    job_id: str
    wrapper: _Wrapper | None = None


class JobsKilledEvent(Lenient):
    """Batsim killed jobs.

    The message contains no progress for jobs that ended before the kill.
    """

    stale: ClassVar[bool] = True
    job_ids: list[str]
    progresses: list[_Progress] = msgspec.field(default_factory=list)
    profiles: list[Fields] = msgspec.field(default_factory=list)

    def core(self, at_us: int) -> e.JobsKilled:
        progress = {
            item.job_id: _progress(
                item.wrapper.kill_progress_type,
                item.wrapper.kill_progress,
                item.job_id.partition("!")[0],
            )
            if item.wrapper
            else {}
            for item in self.progresses
        }
        return e.JobsKilled(at_us=at_us, job_ids=tuple(self.job_ids), progress=progress)

    @classmethod
    def of(cls, event: e.JobsKilled) -> JobsKilledEvent:
        progresses = [
            _Progress(job_id=job_id, wrapper=_wrapper(progress, job_id.partition("!")[0]))
            for job_id, progress in event.progress.items()
        ]
        return cls(job_ids=list(event.job_ids), progresses=progresses)


_ATOMIC, _SEQUENCE = "KillProgressAtomicProfile", "KillProgressSequentialProfile"


def _progress(kind: Any, fields: Any, workload: str) -> Fields:
    """Return the progress of a killed job with Batsim 4's names."""
    if not isinstance(kind, str) or not isinstance(fields, dict):
        raise InputError(f"progress is {short(fields)}", expected="an object with its type")
    result: Fields = {"profile_name": local(str(fields.get("profile_id")), workload)}
    if kind != _SEQUENCE:
        return result | {"progress": fields.get("progress", 0.0)}
    inner = fields.get("current_task_progress")
    if not isinstance(inner, dict):
        raise InputError(f"current_task_progress is {short(inner)}", expected="an object")
    return result | {
        "current_repetition": fields.get("current_repetition", 0),
        "current_task_index": fields.get("current_task_index", 0),
        "current_task": _progress(
            inner.get("kill_progress_type"), inner.get("kill_progress"), workload
        ),
    }


def _wrapper(progress: Fields, workload: str) -> _Wrapper | None:
    if not progress:
        return None
    fields: Fields = {"profile_id": complete(progress["profile_name"], workload)}
    if "current_task" not in progress:
        fields["progress"] = round(progress["progress"], DECIMALS)
        return _Wrapper(kill_progress_type=_ATOMIC, kill_progress=fields)
    fields["current_repetition"] = progress.get("current_repetition", 0)
    fields["current_task_index"] = progress["current_task_index"]
    inner = _wrapper(progress["current_task"], workload)
    fields["current_task_progress"] = msgspec.structs.asdict(inner) if inner else {}
    return _Wrapper(kill_progress_type=_SEQUENCE, kill_progress=fields)


class RequestedCallEvent(Lenient):
    """The time of a requested call is reached."""

    call_me_later_id: str = ""
    last_periodic_call: bool = False

    def core(self, at_us: int) -> e.CallRequested:
        return e.CallRequested(
            at_us=at_us, name=self.call_me_later_id, last=self.last_periodic_call
        )

    @classmethod
    def of(cls, event: e.CallRequested) -> RequestedCallEvent:
        return cls(call_me_later_id=event.name, last_periodic_call=event.last)


class ExternalEventOccurredEvent(Lenient):
    """A line of an event file, as Batsim sends it. Its timestamp is that of the previous event."""

    stale: ClassVar[bool] = True
    id: str = ""
    external_event_type: str = GENERIC
    external_event: Fields = msgspec.field(default_factory=dict)

    def core(self, at_us: int) -> e.Event:
        """Return a failure, a repair, or the event in ``data``."""
        text = self.external_event.get("data", "")
        if not isinstance(text, str):
            raise InputError(f"data is {short(text)}", f"external event {self.id}", "text")
        data = object_in(text)
        kind = data.get("type") if data else None
        if data is None or not isinstance(kind, str):
            content = {"type": "generic", "id": self.id, "data": text}
            return e.Notified(at_us=at_us, kind="generic", data=content)
        if kind not in (FAILURE, REPAIR):
            return e.Notified(at_us=at_us, kind=kind, data=data)
        resources = data.get("resources")
        try:
            if not isinstance(resources, str):
                raise InputError(f"resources is {short(resources)}", expected="text like '0-3 5'")
            nodes = NodeSet.parse(resources)
        except InputError as error:
            raise error.at(f"external event {self.id}") from None
        if kind == REPAIR:
            return e.NodesRejuvenated(at_us=at_us, nodes=nodes)
        cause = data.get("cause")
        stated = cause if isinstance(cause, str) else None
        return e.NodesFailed(at_us=at_us, nodes=nodes, cause=stated)

    @classmethod
    def of(cls, event: e.NodesFailed | e.NodesRejuvenated | e.Notified) -> Lenient:
        """Return the message for an event. Only text events have the id of their line."""
        if isinstance(event, e.Notified):
            if event.kind == "generic" and isinstance(event.data.get("data"), str):
                return cls(
                    id=str(event.data.get("id", "")), external_event={"data": event.data["data"]}
                )
            data = event.data
        else:
            failed = isinstance(event, e.NodesFailed)
            data = {"type": FAILURE if failed else REPAIR, "resources": str(event.nodes)}
            if isinstance(event, e.NodesFailed) and event.cause:
                data["cause"] = event.cause
        return cls(external_event={"data": msgspec.json.encode(data).decode()})


class _Plain(Lenient):
    """A message without fields."""

    event: ClassVar[type[e.Event]]

    def core(self, at_us: int) -> e.Event:
        return self.event(at_us=at_us)

    @classmethod
    def of(cls, _: e.Event) -> _Plain:
        return cls()


class AllStaticJobsHaveBeenSubmittedEvent(_Plain):
    """Every job of the workload files has been submitted."""

    event = e.NoMoreStaticJobs


class AllStaticExternalEventsHaveBeenInjectedEvent(_Plain):
    """Every event of the event files has occurred."""

    event = e.NoMoreExternalEvents


class SimulationEndsEvent(_Plain):
    """The last message."""

    event = e.SimulationEnded


EVENTS5: dict[type[e.Event], type[Any]] = {
    e.SimulationBegan: SimulationBeginsEvent,
    e.JobSubmitted: JobSubmittedEvent,
    e.JobCompleted: JobCompletedEvent,
    e.JobsKilled: JobsKilledEvent,
    e.CallRequested: RequestedCallEvent,
    e.NodesFailed: ExternalEventOccurredEvent,
    e.NodesRejuvenated: ExternalEventOccurredEvent,
    e.Notified: ExternalEventOccurredEvent,
    e.NoMoreStaticJobs: AllStaticJobsHaveBeenSubmittedEvent,
    e.NoMoreExternalEvents: AllStaticExternalEventsHaveBeenInjectedEvent,
    e.SimulationEnded: SimulationEndsEvent,
}
"""The message for each class of events."""
