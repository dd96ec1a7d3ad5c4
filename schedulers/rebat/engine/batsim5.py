# SPDX-License-Identifier: Apache-2.0
"""Differences between Batsim 5.0.0-rc2 and Batsim 4.2.1 for delay profiles.

- Batsim 5 checks neither the size of an allocation nor whether its nodes are free. It has no
  failures: an external event is a text.
- Jobs may be registered at any time. A feature decides whether the simulation waits for them.
- Unless the features ``dynamic_registration`` and ``profile_reuse`` are both on, Batsim removes a
  profile and its parts when the first job of the profile ends. Their names cannot be used again.
- Sequences that the scheduler registers can run. Their parts may be from other workloads.
- If a call is requested for a time in the past, it is sent immediately. Calls may be periodic.

All profiles are stored under complete ids, like ``w0!d10``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from rebat.core import decisions as d
from rebat.core import decisions5 as d5
from rebat.core.batsim5 import complete
from rebat.core.errors import InputError
from rebat.core.events import JobCompleted, JobsKilled, Notified, SimulationBegan
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload, duration_us, with_parts
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.engine.aborts import AbortRule
from rebat.engine.calls5 import PeriodicCalls
from rebat.engine.engine import Engine, External, used_profiles
from rebat.engine.jobs import KILLED, REJECTED, EngineJob, sequence_progress
from rebat.engine.options import EngineOptions
from rebat.engine.static_jobs import Placed
from rebat.models.failures.events import GenericEvent

PARALLEL = ("parallel", "parallel_homogeneous", "parallel_homogeneous_total")


class Engine5(PeriodicCalls, Engine):
    """A simulation according to the rules of Batsim 5.

    Parameters
    ----------
    workloads : sequence of Workload
        The workloads, which are named w0, w1, and so on.
    n_nodes : int, optional
        Number of nodes of the machine (default: of the largest workload).
    files : sequence of sequences of GenericEvent
        Event files, each in order of time. The data of an event consists of its ``id`` and its text
        ``data``.
    options : EngineOptions
        ``dynamic_jobs``, ``profile_reuse``, ``acknowledge_dynamic_jobs`` and ``forward_profiles``
        are the features that the scheduler requested.
    arguments : dict
        Further fields of the first message.
    """

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
        self._all: dict[str, dict[str, Any]] = {}
        self._as_read: dict[str, dict[str, Any]] = {}
        self._taken: set[str] = set()
        self._periodic = {}
        self._ended_since: list[EngineJob] = []
        self._forced = False
        largest = max(workload.n_nodes for workload in workloads)
        super().__init__(workloads[0], n_nodes=n_nodes or largest, options=options)
        self._files = [External(self._by_time(lines, "at_us"), True) for lines in files]
        for file in self._files:
            self._await_events(file)
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
            self._as_read |= self._all
            self._add_static_jobs(name, Jobs.of(each.jobs))

    def _full_name(self, workload: str, profile: str) -> str:
        return f"{workload}!{profile}"

    def _static_profiles(self, workload: str) -> dict[str, dict[str, Any]]:
        return self._as_read

    def _runnable(self, workload: str, profile: str) -> dict[str, dict[str, Any]]:
        profiles = with_parts(self._all, profile)
        duration_us(profiles, profile, self.options.speed_flops)
        return profiles

    def _forwarded(self, job: EngineJob) -> dict[str, Any]:
        return job.profiles[job.profile]

    def _began(self) -> SimulationBegan:
        paths = dict(enumerate(self._paths))
        profiles: dict[str, dict[str, Any]] = {}
        if self._arguments.get("forward_profiles_on_simulation_begins"):
            for name, fields in sorted(self._all.items()):
                workload, _, own = name.partition("!")
                profiles.setdefault(workload, {})[own] = fields
        return SimulationBegan(
            at_us=0,
            n_nodes=self.n_nodes,
            config=self._arguments,
            profiles=profiles,
            workloads={f"w{n}": paths.get(n, "") for n in range(len(self._workloads))},
            resources=[_host(node, self.options.speed_flops) for node in range(self.n_nodes)],
        )

    # ---- the loop

    def _exchange(self, scheduler: Any, events: tuple[Any, ...]) -> None:
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
        """Accept all times, because the decoder has checked them. Delete unused profiles."""
        ended, self._ended_since = self._ended_since, []
        for job in ended:
            self._forget_profile(job)

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
        self._outbox.append(Notified(at_us=self.now_us, kind="generic", data=event.data))

    # ---- jobs

    def _vacate(self, nodes: NodeSet) -> None:
        """Do nothing: Batsim 5 does not record which nodes are free."""

    def _is_forgotten(self, job: EngineJob) -> bool:
        """Return whether the scheduler knows that a job ended. Batsim then deletes the job."""
        if not job.state:
            return False
        unsent = (event for event in self._outbox if isinstance(event, JobCompleted))
        return all(event.job_id != job.id for event in unsent)

    def _waiting_job(self, job_id: str) -> EngineJob:
        job = self._job(job_id)
        if self._is_forgotten(job):
            raise self._abort(AbortRule.UNKNOWN_JOB, f"{job_id} has ended")
        return super()._waiting_job(job_id)

    def _execute(self, decision: d.ExecuteJob) -> None:
        job = self._waiting_job(decision.job_id)
        last = int(decision.nodes.intervals[-1, 1])
        if last >= self.n_nodes:
            raise self._abort(AbortRule.OUTSIDE, f"job {job.id}, node {last}")
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
        jobs = {job_id: self._job(job_id) for job_id in decision.job_ids}
        for job in jobs.values():
            if self._is_forgotten(job):
                raise self._abort(AbortRule.KILLED_ENDED, job.id)
            if job.start_us < 0:
                raise self._abort(AbortRule.KILLED_PENDING, job.id)
        if all(job.state == KILLED for job in jobs.values()):
            raise self._abort(AbortRule.KILLED_TWICE, ", ".join(jobs))
        killed = {}
        for job in jobs.values():
            if job.running:
                elapsed_us = self.now_us - job.start_us
                killed[job.id] = sequence_progress(job.profiles, job.profile, elapsed_us)
                parallel = job.profiles[job.profile].get("type") in PARALLEL
                self._end(job, KILLED, -2 if parallel else -1)
        progress = dict(sorted(killed.items()))  # Batsim's table is ordered by the text of the ids
        self._outbox.append(JobsKilled(at_us=self.now_us, job_ids=tuple(jobs), progress=progress))

    def _collect(self, job: EngineJob) -> None:
        """Delete a job's profile when the scheduler knows that the job ended or was rejected."""
        if self.options.dynamic_jobs and self.options.profile_reuse:
            return
        if job.state == REJECTED:
            self._forget_profile(job)
        else:
            self._ended_since.append(job)

    def _forget_profile(self, job: EngineJob) -> None:
        names = [job.profile]
        while names:
            name = names.pop()
            workload = name.partition("!")[0]
            profile = self._all.pop(name, None)
            parts = profile.get("seq", ()) if profile else ()
            for part in parts:
                if part.partition("!")[0] != workload:
                    raise self._abort(AbortRule.COLLECTED, f"job {job.id}, part {part}")
            names += parts

    # ---- registration

    def _register_profile(self, decision: d.RegisterProfile) -> None:
        name = f"{decision.workload}!{decision.name}" if decision.workload else decision.name
        if name in self._taken:
            raise self._abort(AbortRule.DUPLICATE, f"profile {name}")
        profile = _with_complete_parts(decision.profile, decision.workload)
        for part in profile.get("seq", ()):
            if part not in self._all:
                raise self._abort(AbortRule.UNKNOWN_PROFILE, f"{part}, a part of {name}")
        self._taken.add(name)
        self._all[name] = profile

    def _register_job(self, decision: d.RegisterJob) -> None:
        if self._exists(decision.job_id):
            raise self._abort(AbortRule.DUPLICATE, f"job {decision.job_id}")
        workload, _, own = decision.job_id.partition("!")
        fields = {**decision.job, "id": decision.job_id}
        profile = complete(fields["profile"], workload)
        if not workload or not own:
            raise self._abort(AbortRule.BAD_JOB, f"id {decision.job_id}")
        if profile not in self._all:
            raise self._abort(AbortRule.UNKNOWN_PROFILE, f"{profile} of job {decision.job_id}")
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
        self._add_registered(job, self._runnable(workload, profile))
        job.submitted = True
        if self.options.acknowledge_dynamic_jobs:
            self._send_submission(job)

    # ---- other decisions

    def _stop_simulation(self, _: d5.StopSimulation) -> None:
        self._forced = True
        self._outbox.clear()
        self._notices.clear()

    def _change_power_state(self, decision: d5.ChangePowerState) -> None:
        if decision.state:
            raise self._abort(AbortRule.POWER_STATE, f"{decision.state}; the engine has only 0")
        kind = "HostsPStateChangedEvent"
        data = {"event_type": kind, "host_ids": str(decision.nodes), "pstate": 0}
        self._outbox.append(Notified(at_us=self.now_us, kind=kind, data=data))

    def _switch_nodes(self, decision: d5.SwitchNodes) -> None:
        raise InputError(f"nodes {decision.nodes} cannot be switched on or off; use a real Batsim")

    _decide: ClassVar[dict[type[d.Decision], Callable[..., None]]] = {
        d.ExecuteJob: _execute,
        d.RejectJob: Engine._reject,
        d.KillJobs: _kill,
        d.CallMeLater: PeriodicCalls._call_me_later,
        d.RegisterProfile: _register_profile,
        d.RegisterJob: _register_job,
        d.FinishRegistration: Engine._finish_registration,
        d5.PeriodicCall: PeriodicCalls._call_periodically,
        d5.StopCall: PeriodicCalls._stop_call,
        d5.StopSimulation: _stop_simulation,
        d5.ChangePowerState: _change_power_state,
        d5.SwitchNodes: _switch_nodes,
    }


def _with_complete_parts(profile: dict[str, Any], workload: str) -> dict[str, Any]:
    if profile.get("type") != "composed":
        return profile
    return {**profile, "seq": [complete(part, workload) for part in profile["seq"]]}


def _atoms(profiles: dict[str, dict[str, Any]], name: str) -> Iterator[str]:
    """Yield the names of the profiles that a profile executes, in order."""
    profile = profiles[name]
    if profile.get("type") != "composed":
        yield name
        return
    for _ in range(profile.get("repeat", 1)):
        for part in profile["seq"]:
            yield from _atoms(profiles, part)


def _host(node: int, speed_flops: float) -> dict[str, Any]:
    """Return a host in the form that Batsim 5 uses."""
    return {
        "id": node,
        "name": f"host{node}",
        "pstate": 0,
        "pstate_count": 1,
        "state": "IDLE",
        "properties": [],
        "zone_properties": [],
        "core_count": 1,
        "computation_speed": [speed_flops],
    }
