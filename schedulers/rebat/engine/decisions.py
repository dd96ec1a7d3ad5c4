# SPDX-License-Identifier: Apache-2.0
"""Effects of decisions on a simulation, and checks whether Batsim would abort on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from rebat.core.decisions import (
    CallMeLater,
    ContinueRegistration,
    Decision,
    ExecuteJob,
    FinishRegistration,
    KillJobs,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    SetMetadata,
)
from rebat.core.errors import InputError
from rebat.core.events import JobCompleted, JobsKilled
from rebat.core.jobs import Job, delay_us, leg_durations_us, with_parts
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.engine.aborts import AbortRule
from rebat.engine.jobs import KILLED, REJECTED, EngineJob, again, progress, registered_job
from rebat.engine.state import HELD, EngineState


class Decisions(EngineState):
    """The part of the engine that carries out the decisions of a scheduler."""

    def _on_decision(self, decision: Decision) -> None:
        self._decide[type(decision)](self, decision)

    def _job(self, job_id: str) -> EngineJob:
        job = self._jobs.get(job_id) or self._static_job(job_id)
        if job is None:
            raise self._abort(AbortRule.UNKNOWN_JOB, job_id)
        return job

    def _static_job(self, job_id: str) -> EngineJob | None:
        """Return a static job that is not submitted yet or has ended, or None if there is none."""
        placed = self._static.find(job_id)
        if placed is None:
            return None
        for place, job in enumerate(self.ended):
            if job.id == job_id:
                return again(job, place)
        return self._make_static(*placed)

    def _exists(self, job_id: str) -> bool:
        return job_id in self._jobs or self._static.find(job_id) is not None

    def _make_static(self, workload: str, job: Job) -> EngineJob:
        """Create a static job at its submission, and return it."""
        job_id = f"{workload}!{job.id}"
        if job_id in self._jobs:
            return self._jobs[job_id]
        profile = self._full_name(workload, job.profile)
        made = EngineJob(
            job_id,
            job.n_nodes,
            job.submit_us,
            job.walltime_us,
            profile,
            workload,
            submission=job,
        )
        self._hold(made, with_parts(self._static_profiles(workload), profile))
        return made

    def _full_name(self, workload: str, profile: str) -> str:
        """Return the complete name of a workload's profile."""
        return profile

    def _static_profiles(self, workload: str) -> dict[str, dict[str, Any]]:
        """Return the profiles of the static jobs that are not submitted yet."""
        return self.profiles[workload]

    def _waiting_job(self, job_id: str) -> EngineJob:
        job = self._job(job_id)
        if not job.submitted or job.start_us >= 0 or job.state:
            raise self._abort(AbortRule.NOT_SUBMITTED, job_id)
        return job

    def _execute(self, decision: ExecuteJob) -> None:
        job, nodes = self._waiting_job(decision.job_id), decision.nodes
        if nodes.size != job.n_nodes:
            raise self._abort(
                AbortRule.WRONG_SIZE,
                f"job {job.id} requests {job.n_nodes} nodes, but gets {nodes.size}",
            )
        obstacle = self._pool.take(nodes, HELD)
        if obstacle >= self.n_nodes:
            raise self._abort(AbortRule.OUTSIDE, f"job {job.id}, node {obstacle}")
        if obstacle >= 0:
            rule = AbortRule.NODE_DOWN if self._pool.down[obstacle] else AbortRule.NODE_BUSY
            raise self._abort(rule, f"job {job.id}, node {obstacle}")
        if (job.workload, job.profile) in self._composed_late:
            raise self._abort(AbortRule.COMPOSED, f"profile {job.profile} of job {job.id}")
        self._start(
            job, nodes, leg_durations_us(job.profiles, job.profile, self.options.speed_flops)
        )

    def _start(self, job: EngineJob, nodes: NodeSet, legs: Iterator[int]) -> None:
        """Start a job on these nodes. ``legs`` are the delays of its profile, in order."""
        job.nodes, job.start_us = nodes, self.now_us
        self._running += 1
        job.legs = legs
        if not self._begin_leg(job):  # a composed profile has no parts
            self._push(self.now_us, self._on_leg_end, job)

    def _reject(self, decision: RejectJob) -> None:
        job = self._waiting_job(decision.job_id)
        job.state = REJECTED
        self._finish(job)

    def _kill(self, decision: KillJobs) -> None:
        jobs = [self._job(job_id) for job_id in decision.job_ids]
        killed = {}
        for job in jobs:
            if self._end_was_sent(job):
                raise self._abort(AbortRule.KILLED_ENDED, job.id)
            if job.start_us < 0:
                raise self._abort(AbortRule.KILLED_PENDING, job.id)
            if job.running:
                killed[job.id] = progress(job.profiles, job.profile, self.now_us - job.start_us)
                self._end(job, KILLED, -1)
        ids = decision.job_ids
        self._outbox.append(JobsKilled(at_us=self.now_us, job_ids=ids, progress=killed))

    def _end_was_sent(self, job: EngineJob) -> bool:
        """Return whether the scheduler was informed that a job completed without being killed."""
        if job.end_us < 0 or job.state == KILLED:
            return False
        unsent = (event for event in self._outbox if isinstance(event, JobCompleted))
        return all(event.job_id != job.id for event in unsent)

    def _call_me_later(self, decision: CallMeLater) -> None:
        if decision.when_us <= self.now_us:
            raise self._abort(AbortRule.CALL_IN_PAST, f"{to_s(decision.when_us)} s")
        self._calls += 1
        self._push(decision.when_us, self._on_call, decision.name)

    def _need_registration(self) -> None:
        if not self.options.dynamic_jobs:
            raise self._abort(AbortRule.DYNAMIC_OFF, "a job or profile")
        if not self._registration_open:
            raise self._abort(AbortRule.REGISTRATION_OVER, "a job or profile")

    def _register_profile(self, decision: RegisterProfile) -> None:
        self._need_registration()
        profiles = self.profiles.setdefault(decision.workload, {})
        if decision.name in profiles:
            raise self._abort(AbortRule.DUPLICATE, f"profile {decision.name}")
        if decision.profile.get("type") == "delay":
            try:
                delay_us(decision.profile)
            except InputError as error:
                raise self._abort(
                    AbortRule.BAD_PROFILE, f"profile {decision.name}: {error}"
                ) from None
        profiles[decision.name] = decision.profile
        if decision.profile.get("type") == "composed":
            self._composed_late.add((decision.workload, decision.name))

    def _register_job(self, decision: RegisterJob) -> None:
        self._need_registration()
        if self._exists(decision.job_id):
            raise self._abort(AbortRule.DUPLICATE, f"job {decision.job_id}")
        try:
            job = registered_job(decision.job_id, decision.job)
            if job.profile not in self.profiles.get(job.workload, {}):
                raise self._abort(AbortRule.UNKNOWN_PROFILE, f"{job.profile} of job {job.id}")
            self._add_registered(job, self._runnable(job.workload, job.profile))
        except InputError as error:
            raise self._abort(AbortRule.BAD_JOB, str(error)) from None
        job.submitted = True
        if self.options.acknowledge_dynamic_jobs:
            self._send_submission(job)

    def _finish_registration(self, _: FinishRegistration) -> None:
        self._registration_open = False

    def _continue_registration(self, _: ContinueRegistration) -> None:
        self._registration_open = self.options.dynamic_jobs

    def _set_metadata(self, decision: SetMetadata) -> None:
        job = self._job(decision.job_id)
        job.metadata = decision.metadata
        if job.place >= 0:
            self.ended.amend(job.place, metadata=job.metadata)

    _decide: ClassVar[dict[type[Decision], Callable[..., None]]] = {
        ExecuteJob: _execute,
        RejectJob: _reject,
        KillJobs: _kill,
        CallMeLater: _call_me_later,
        RegisterProfile: _register_profile,
        RegisterJob: _register_job,
        FinishRegistration: _finish_registration,
        ContinueRegistration: _continue_registration,
        SetMetadata: _set_metadata,
    }
