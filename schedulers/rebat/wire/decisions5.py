# SPDX-License-Identifier: Apache-2.0
"""Decisions for Batsim 5. Each is declared once, with its fields and its conversions.

The declarations are strict in both directions, because Batsim 5 would abort on invalid data.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core import decisions as d
from rebat.core.errors import InputError, short
from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_MS, US_PER_S
from rebat.wire.tables5 import Fields, NewJob, NewProfile, Strict, Whole32, Whole64, checked_id

_UNITS = {"Second": US_PER_S, "Millisecond": US_PER_MS}
_ONCE, _PERIODIC = "OneShot", "Periodic"
_ENDLESS, _FINITE = "Infinite", "FinitePeriodNumber"
_STRATEGY = "SpreadOverHostsFirst"
_PREDEFINED = "PredefinedExecutorPlacementStrategyWrapper"


class Unsupported(InputError):
    """Error: a message that Batsim 5 may accept, but rebat does not support."""


def _hosts(value: str, key: str) -> NodeSet:
    nodes = NodeSet.parse(value)
    if not nodes.size:
        raise InputError("is empty", key, "at least one host, like '0-4 6'")
    return nodes


def _host_text(nodes: NodeSet, key: str) -> str:
    if not nodes.size:
        raise InputError("is empty", key, "at least one host")
    return str(nodes)


class _Allocation(Strict):
    host_allocation: str
    executor_placement_type: str
    executor_placement: Fields


_PLACEMENT: Fields = {"strategy": _STRATEGY}


class ExecuteJobEvent(Strict):
    """Start a job on these hosts."""

    job_id: str
    allocation: _Allocation
    profile_allocation_override: list[Any] | None = None
    storage_placement: list[Any] | None = None

    def core(self, at_us: int) -> d.ExecuteJob:
        for key in ("profile_allocation_override", "storage_placement"):
            if getattr(self, key):
                raise Unsupported("is not supported by rebat", key, "a job without this field")
        nodes = _hosts(self.allocation.host_allocation, "host_allocation")
        return d.ExecuteJob(at_us=at_us, job_id=self.job_id, nodes=nodes)

    @classmethod
    def of(cls, decision: d.ExecuteJob) -> ExecuteJobEvent:
        allocation = _Allocation(
            host_allocation=_host_text(decision.nodes, "host_allocation"),
            executor_placement_type=_PREDEFINED,
            executor_placement=_PLACEMENT,
        )
        return cls(job_id=checked_id(decision.job_id), allocation=allocation)


class RejectJobEvent(Strict):
    """Reject a job permanently."""

    job_id: str

    def core(self, at_us: int) -> d.RejectJob:
        return d.RejectJob(at_us=at_us, job_id=self.job_id)

    @classmethod
    def of(cls, decision: d.RejectJob) -> RejectJobEvent:
        return cls(job_id=checked_id(decision.job_id))


class KillJobsEvent(Strict):
    """Kill running jobs."""

    job_ids: list[str]

    def __post_init__(self) -> None:
        if not self.job_ids:
            raise InputError("is empty", "job_ids", "at least one job")

    def core(self, at_us: int) -> d.KillJobs:
        return d.KillJobs(at_us=at_us, job_ids=tuple(self.job_ids))

    @classmethod
    def of(cls, decision: d.KillJobs) -> KillJobsEvent:
        return cls(job_ids=[checked_id(job_id) for job_id in decision.job_ids])


class RegisterProfileEvent(Strict):
    """Register a profile under a new name."""

    profile: NewProfile

    def core(self, at_us: int) -> d.RegisterProfile:
        workload, name, fields = self.profile.core()
        return d.RegisterProfile(at_us=at_us, workload=workload, name=name, profile=fields)

    @classmethod
    def of(cls, decision: d.RegisterProfile) -> RegisterProfileEvent:
        profile = NewProfile.of(decision.workload, decision.name, decision.profile)
        if decision.workload:
            checked_id(profile.id)
        return cls(profile=profile)


class RegisterJobEvent(Strict):
    """Submit a new job. Its submission time is the time of the decision."""

    job_id: str
    job: NewJob

    def core(self, at_us: int) -> d.RegisterJob:
        fields = self.job.core(self.job_id, at_us / US_PER_S)
        return d.RegisterJob(at_us=at_us, job_id=self.job_id, job=fields)

    @classmethod
    def of(cls, decision: d.RegisterJob) -> RegisterJobEvent:
        job = NewJob.of(decision.job_id, decision.job)
        checked_id(job.profile_id)
        return cls(job_id=checked_id(decision.job_id), job=job)


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
    mode: _Mode = msgspec.field(default_factory=_Mode)


class CallMeLaterEvent(Strict):
    """Request a call once, or periodically. Times are whole milliseconds, rounded up."""

    call_me_later_id: str
    when_type: str
    when: Fields

    def core(self, at_us: int) -> d.CallMeLater | d.PeriodicCall:
        if self.when_type == _ONCE:
            once = _converted(self.when, _OneShot)
            when_us = once.time * _unit_us(once.time_unit)
            return d.CallMeLater(at_us=at_us, when_us=when_us, name=self.call_me_later_id)
        if self.when_type != _PERIODIC:
            expected = f"{_ONCE} or {_PERIODIC}"
            raise InputError(f"is {short(self.when_type)}", "when_type", expected)
        periodic = _converted(self.when, _Periodic)
        if periodic.mode_type not in (_ENDLESS, _FINITE):
            expected = f"{_ENDLESS} or {_FINITE}"
            raise InputError(f"is {short(periodic.mode_type)}", "mode_type", expected)
        unit_us = _unit_us(periodic.time_unit)
        n_periods = (periodic.mode.nb_periods or 0) if periodic.mode_type == _FINITE else None
        return d.PeriodicCall(
            at_us=at_us,
            name=self.call_me_later_id,
            period_us=periodic.period * unit_us,
            offset_us=periodic.offset * unit_us,
            n_periods=n_periods,
        )

    @classmethod
    def of(cls, decision: d.CallMeLater | d.PeriodicCall) -> CallMeLaterEvent:
        if isinstance(decision, d.CallMeLater):
            time_ms = max(0, -(-decision.when_us // US_PER_MS))
            name = decision.name or f"{time_ms} ms"
            when: Fields = {"time": time_ms, "time_unit": "Millisecond"}
            return cls(call_me_later_id=name, when_type=_ONCE, when=when)
        finite = decision.n_periods is not None
        when = {
            "period": decision.period_us // US_PER_MS,
            "offset": decision.offset_us // US_PER_MS,
            "time_unit": "Millisecond",
            "mode_type": _FINITE if finite else _ENDLESS,
            "mode": {"nb_periods": decision.n_periods} if finite else {},
        }
        return cls(call_me_later_id=decision.name, when_type=_PERIODIC, when=when)


def _converted(value: Fields, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(str(error), "when") from None


def _unit_us(name: str) -> int:
    if name not in _UNITS:
        raise InputError(f"is {short(name)}", "time_unit", " or ".join(_UNITS))
    return _UNITS[name]


class StopCallMeLaterEvent(Strict):
    """End a periodic call."""

    call_me_later_id: str

    def core(self, at_us: int) -> d.StopCall:
        return d.StopCall(at_us=at_us, name=self.call_me_later_id)

    @classmethod
    def of(cls, decision: d.StopCall) -> StopCallMeLaterEvent:
        return cls(call_me_later_id=decision.name)


class FinishRegistrationEvent(Strict):
    """End the registration of jobs."""

    def core(self, at_us: int) -> d.FinishRegistration:
        return d.FinishRegistration(at_us=at_us)

    @classmethod
    def of(cls, _: d.FinishRegistration) -> FinishRegistrationEvent:
        return cls()


class ForceSimulationStopEvent(Strict):
    """End the simulation immediately."""

    def core(self, at_us: int) -> d.StopSimulation:
        return d.StopSimulation(at_us=at_us)

    @classmethod
    def of(cls, _: d.StopSimulation) -> ForceSimulationStopEvent:
        return cls()


class ChangeHostsPStateEvent(Strict):
    """Change the power state of hosts."""

    host_ids: str
    pstate: Whole32 = 0

    def core(self, at_us: int) -> d.ChangePowerState:
        nodes = _hosts(self.host_ids, "host_ids")
        return d.ChangePowerState(at_us=at_us, nodes=nodes, state=self.pstate)

    @classmethod
    def of(cls, decision: d.ChangePowerState) -> ChangeHostsPStateEvent:
        return cls(host_ids=_host_text(decision.nodes, "host_ids"), pstate=decision.state)


class TurnOnOffHostsEvent(Strict):
    """Turn hosts on or off."""

    host_ids: str
    state: str = ""

    def core(self, at_us: int) -> d.SwitchNodes:
        nodes = _hosts(self.host_ids, "host_ids")
        return d.SwitchNodes(at_us=at_us, nodes=nodes, state=self.state)

    @classmethod
    def of(cls, decision: d.SwitchNodes) -> TurnOnOffHostsEvent:
        return cls(host_ids=_host_text(decision.nodes, "host_ids"), state=decision.state)


DECISIONS5: dict[type[d.Decision], type[Any]] = {
    d.ExecuteJob: ExecuteJobEvent,
    d.RejectJob: RejectJobEvent,
    d.KillJobs: KillJobsEvent,
    d.RegisterProfile: RegisterProfileEvent,
    d.RegisterJob: RegisterJobEvent,
    d.CallMeLater: CallMeLaterEvent,
    d.PeriodicCall: CallMeLaterEvent,
    d.StopCall: StopCallMeLaterEvent,
    d.FinishRegistration: FinishRegistrationEvent,
    d.StopSimulation: ForceSimulationStopEvent,
    d.ChangePowerState: ChangeHostsPStateEvent,
    d.SwitchNodes: TurnOnOffHostsEvent,
}
"""The message for each class of decisions."""

WITHOUT = frozenset({d.ContinueRegistration, d.SetMetadata})
"""Decisions without a message: Batsim 5 always accepts registrations, and has no metadata."""

PROBES5 = frozenset({"CreateProbeEvent", "StopProbeEvent", "ResetProbeEvent", "TriggerProbeEvent"})
"""Messages about probes of energy and power. rebat's engine does not have such probes."""
