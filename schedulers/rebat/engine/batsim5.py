# SPDX-License-Identifier: Apache-2.0
"""Differences between Batsim 5.0.0-rc2 and Batsim 4.2.1 for delay profiles.

- Batsim 5 checks neither the size of an allocation nor whether its nodes are free. It has no
  failures: an external event is a text.
- Jobs may be registered at any time. A feature decides whether the simulation waits for them.
- Unless the features ``dynamic_registration`` and ``profile_reuse`` are both on, Batsim removes a
  profile that no job uses. Names of profiles cannot be used again.
- Sequences that the scheduler registers can run. Their parts may be from other workloads.
- If a call is requested for a time in the past, it is sent immediately. Calls may be periodic.

All profiles are stored under complete ids, like ``w0!d10``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.batsim5 import complete
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload, duration_us
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.engine.engine import Engine, EngineOptions, Scheduler, used_profiles
from rebat.engine.jobs import KILLED, EngineJob, Placed, Profiles
from rebat.models.failures.events import GenericEvent

PARALLEL = ("parallel", "parallel_homogeneous", "parallel_homogeneous_total")

_HOST = {
    "pstate": 0,
    "pstate_count": 1,
    "state": "IDLE",
    "properties": [],
    "zone_properties": [],
    "core_count": 1,
}


class Engine5(Engine):
    """A simulation according to the rules of Batsim 5.

    The ``workloads`` are named w0, w1, and so on. The default of ``n_nodes`` is the size of the
    largest one. Each event file in ``files`` is in order of time. The data of an event consists of
    its ``id`` and its text ``data``. The first message contains the ``paths`` of the workloads and
    the ``arguments``. Features that the scheduler requested are options.
    """

    protocol = 5
    finishes = "FinishRegistrationEvent"

    def __init__(
        self,
        workloads: Sequence[Workload],
        *,
        n_nodes: int | None = None,
        files: Sequence[Sequence[GenericEvent]] = (),
        options: EngineOptions | None = None,
        paths: Sequence[str] = (),
        arguments: dict[str, Any] | None = None,
    ) -> None:
        self._workloads, self._paths, self._arguments = workloads, paths, arguments or {}
        self._all: Profiles = {}
        self._taken: set[str] = set()
        self._periodic: dict[str, tuple[d.PeriodicCall, int, int]] = {}
        """Periodic calls by name, with the time of the next call and the number of calls so far."""
        self._forced = False
        largest = max(workload.n_nodes for workload in workloads)
        super().__init__(workloads[0], n_nodes=n_nodes or largest, options=options)
        self._keeps_profiles = self.options.dynamic_jobs and self.options.profile_reuse
        self._await_files(*((lines, True) for lines in files))
        self._joined = len(workloads) + len(files) > 1
        """Whether the first message also contains the events at time 0."""
        self._begins = True

    # ---- set-up

    def _add_workloads(self, workload: Workload) -> None:
        for number, each in enumerate(self._workloads):
            name = f"w{number}"
            self._taken |= {f"{name}!{profile}" for profile in each.profiles}
            for profile, fields in used_profiles(each).items():
                self._all[f"{name}!{profile}"] = _with_complete_parts(fields, name)
            self._add_static_jobs(name, Jobs.of(each.jobs))

    def _full_name(self, workload: str, profile: str) -> str:
        return f"{workload}!{profile}"

    def _profiles_of(self, workload: str) -> Profiles:
        return self._all

    def began(self) -> e.SimulationBegan:
        paths = dict(enumerate(self._paths))
        profiles: dict[str, Profiles] = {}
        if self._arguments.get("forward_profiles_on_simulation_begins"):
            for name, fields in sorted(self._all.items()):
                workload, _, own = name.partition("!")
                profiles.setdefault(workload, {})[own] = fields
        return e.SimulationBegan(
            at_us=0,
            n_nodes=self.n_nodes,
            config=self._arguments,
            profiles=profiles,
            workloads={f"w{n}": paths.get(n, "") for n in range(len(self._workloads))},
            resources=self._hosts({**_HOST, "computation_speed": [self.options.speed_flops]}),
        )

    # ---- the loop

    def _exchange(self, scheduler: Scheduler, events: tuple[e.Event, ...]) -> None:
        if self._begins and self._joined:
            self._begins = False
            if self._heap and self._heap[0][0] == 0:
                super()._advance(0)
                events, self._outbox = (*events, *self._outbox), []
        super()._exchange(scheduler, events)

    def _advance(self, until_us: int, single: bool = False) -> None:
        super()._advance(until_us, single)
        self._begins = False

    def _pass(self, until_us: int) -> None:
        self._outbox += self._take_notices()
        super()._pass(until_us)
        self._outbox += self._take_notices()

    def _check_times(self, reply: d.Reply) -> None:
        """Accept all times, because the decoder has checked them."""

    def _on_decision(self, decision: d.Decision) -> None:
        """Carry out a decision at its time. A job that ends at the same time is not killed."""
        if isinstance(decision, d.KillJobs):
            self._push(self.now_us, super()._on_decision, decision)
        else:
            super()._on_decision(decision)

    def _on_submissions(self, jobs: list[Placed]) -> None:
        super()._on_submissions(jobs)
        if self._begins:  # the same message contains the notice
            self._outbox += self._take_notices()

    def _over(self) -> bool:
        return self._forced or super()._over()

    def _on_line(self, event: Any) -> None:
        self._outbox.append(e.Notified(at_us=self.now_us, kind="generic", data=event.data))

    # ---- jobs

    def _vacate(self, nodes: NodeSet) -> None:
        """Do nothing: Batsim 5 does not record which nodes are free."""

    def _execute(self, decision: d.ExecuteJob) -> None:
        job = self._waiting_job(decision.job_id)
        last = int(decision.nodes.intervals[-1, 1])
        if last >= self.n_nodes:
            raise self._abort("node outside the machine", f"job {job.id}, node {last}")
        self._start(job, decision.nodes, self._legs(job))

    def _legs(self, job: EngineJob) -> Iterator[int]:
        """Yield the delays of a job, up to and including the first part that fails."""
        for name in _atoms(job.profiles, job.profile):
            yield duration_us(job.profiles, name, self.options.speed_flops)
            code = int(job.profiles[name].get("ret", 0))
            if code:
                job.return_code = code
                return

    def _kill(self, decision: d.KillJobs) -> None:
        ids = tuple(dict.fromkeys(decision.job_ids))
        jobs = [self._job(job_id) for job_id in ids]
        if all(job.state == KILLED and not self._end_was_sent(job) for job in jobs):
            raise self._abort("kill of jobs that are already being killed", ", ".join(ids))
        super()._kill(msgspec.structs.replace(decision, job_ids=ids))
        event = self._outbox.pop()
        assert isinstance(event, e.JobsKilled)
        progress = dict(sorted(event.progress.items()))  # Batsim sorts by the text of the ids
        self._outbox.append(msgspec.structs.replace(event, progress=progress))

    def _killed_code(self, job: EngineJob) -> int:
        return -2 if job.profiles[job.profile].get("type") in PARALLEL else -1

    # ---- registration

    def _register_profile(self, decision: d.RegisterProfile) -> None:
        name = f"{decision.workload}!{decision.name}" if decision.workload else decision.name
        if name in self._taken:
            raise self._abort("duplicate name", f"profile {name}")
        profile = _with_complete_parts(decision.profile, decision.workload)
        for part in profile.get("seq", ()):
            if part not in self._all:
                raise self._abort("unknown profile", f"{part}, a part of {name}")
        self._taken.add(name)
        self._all[name] = profile

    def _register_job(self, decision: d.RegisterJob) -> None:
        if self._exists(decision.job_id):
            raise self._abort("duplicate name", f"job {decision.job_id}")
        workload, _, own = decision.job_id.partition("!")
        fields = {**decision.job, "id": decision.job_id}
        profile = complete(fields["profile"], workload)
        if not workload or not own:
            raise self._abort("malformed job", f"id {decision.job_id}")
        if profile not in self._all:
            raise self._abort("unknown profile", f"{profile} of job {decision.job_id}")
        walltime_us = to_us(fields["walltime"]) if "walltime" in fields else None
        if walltime_us == 0:  # Batsim reports no walltime, but kills the job at its start
            del fields["walltime"]
        fields["subtime"] = to_s(self.now_us)
        job = EngineJob(
            decision.job_id,
            fields["res"],
            self.now_us,
            walltime_us,
            profile,
            workload,
            submission=fields,
            registered=True,
        )
        self._add_registered(job)

    # ---- periodic calls

    def _call_periodically(self, call: d.PeriodicCall) -> None:
        others = [other.period_us for other, _, _ in self._periodic.values()]
        pairs = [sorted((call.period_us, period_us)) for period_us in others]
        if call.offset_us:
            problem = "an offset"
        elif not call.period_us or call.n_periods == 0:
            problem = "no period"
        elif call.name in self._periodic:
            problem = f"{call.name} is in use"
        elif any(longer % shorter for shorter, longer in pairs):
            problem = "no multiple of the other periods"
        else:
            self._calls += 1
            self._await_tick(call, 0)
            return
        raise self._abort("periodic call that does not fit", problem)

    def _await_tick(self, call: d.PeriodicCall, n_done: int) -> None:
        at_us = (self.now_us // call.period_us + 1) * call.period_us
        self._periodic[call.name] = call, at_us, n_done
        self._push(at_us, self._on_tick, None)

    def _on_tick(self, _: None) -> None:
        """Send all periodic calls of the current time, in the order of their requests."""
        for name, (call, at_us, n_done) in list(self._periodic.items()):
            if at_us != self.now_us:
                continue
            last = n_done + 1 == call.n_periods
            self._outbox.append(e.CallRequested(at_us=at_us, name=name, last=last))
            if last:
                self._stop_call(d.StopCall(at_us=at_us, name=name))
            else:
                self._await_tick(call, n_done + 1)

    def _stop_call(self, decision: d.StopCall) -> None:
        if self._periodic.pop(decision.name, None):
            self._calls -= 1

    # ---- other decisions

    def _stop_simulation(self, _: d.StopSimulation) -> None:
        self._forced = True
        self._outbox.clear()
        self._notices.clear()

    def _change_power_state(self, decision: d.ChangePowerState) -> None:
        if decision.state:
            detail = f"{decision.state}; the engine has only 0"
            raise self._abort("unknown power state", detail)
        kind = "HostsPStateChangedEvent"
        data = {"event_type": kind, "host_ids": str(decision.nodes), "pstate": 0}
        self._outbox.append(e.Notified(at_us=self.now_us, kind=kind, data=data))

    def _switch_nodes(self, decision: d.SwitchNodes) -> None:
        raise InputError(f"nodes {decision.nodes} cannot be switched on or off; use a real Batsim")

    _decide: ClassVar[dict[type[d.Decision], Callable[..., None]]] = {
        d.ExecuteJob: _execute,
        d.RejectJob: Engine._reject,
        d.KillJobs: _kill,
        d.CallMeLater: Engine._call_me_later,
        d.RegisterProfile: _register_profile,
        d.RegisterJob: _register_job,
        d.FinishRegistration: Engine._finish_registration,
        d.PeriodicCall: _call_periodically,
        d.StopCall: _stop_call,
        d.StopSimulation: _stop_simulation,
        d.ChangePowerState: _change_power_state,
        d.SwitchNodes: _switch_nodes,
    }


def _with_complete_parts(profile: dict[str, Any], workload: str) -> dict[str, Any]:
    if profile.get("type") != "composed":
        return profile
    return {**profile, "seq": [complete(part, workload) for part in profile["seq"]]}


def _atoms(profiles: Profiles, name: str) -> Iterator[str]:
    """Yield the names of the profiles that a profile executes, in order."""
    profile = profiles[name]
    if profile.get("type") != "composed":
        yield name
        return
    for _ in range(profile.get("repeat", 1)):
        for part in profile["seq"]:
            yield from _atoms(profiles, part)
