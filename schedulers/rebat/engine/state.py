# SPDX-License-Identifier: Apache-2.0
"""State of a simulation: time, nodes, jobs and pending events."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from rebat.core.events import CallRequested, Event, JobCompleted, JobSubmitted
from rebat.core.formatting import counted
from rebat.core.jobs import Job, duration_us, job_fields, with_parts
from rebat.core.nodes import NodeSet
from rebat.core.table import Table
from rebat.core.units import to_s
from rebat.engine.aborts import Abort, AbortRule
from rebat.engine.jobs import (
    FAILED,
    NO_LEGS,
    SUCCESS,
    WALLTIME,
    EndedJob,
    EngineJob,
    ended,
    ended_jobs,
)
from rebat.engine.options import EngineOptions
from rebat.engine.static_jobs import StaticJobs
from rebat.kernels.pool import FREE
from rebat.models.node_pool import NodePool

HELD = 0
"""Tag of all nodes in use. The engine does not record which job uses a node."""

Happening = Callable[[Any], None]
"""Function that handles a pending event."""


class EngineState:
    """State of a simulation, and the changes of state that need no decision."""

    def __init__(self, n_nodes: int, options: EngineOptions) -> None:
        self.options = options
        self.n_nodes = n_nodes
        self.now_us = 0
        self.ended: Table[EndedJob] = ended_jobs()
        self.profiles: dict[str, dict[str, dict[str, Any]]] = {}
        self._uses: dict[str, dict[str, int]] = {}
        self._pool = NodePool(n_nodes)
        self.dead_us = 0
        """Node time of jobs on nodes that are down. Batsim counts these nodes as unavailable."""
        self._dead: dict[int, int] = {}
        """Nodes that failed while a job runs on them, with the time of the failure."""
        self._static = StaticJobs()
        self._jobs: dict[str, EngineJob] = {}
        """Jobs that have not ended, jobs whose end the scheduler does not know, and registered
        ones."""
        self._gone: list[str] = []
        """Static jobs that ended since the last message."""
        self._n_registered = 0
        self._heap: list[tuple[int, int, Happening, Any]] = []
        self._sequence = 0
        self._outbox: list[Event] = []
        self._calls = 0
        self._unfinished = 0
        self._running = 0
        self._registration_open = options.dynamic_jobs
        self._composed_late: set[tuple[str, str]] = set()

    def _push(self, at_us: int, happening: Happening, argument: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at_us, self._sequence, happening, argument))

    def _abort(self, rule: AbortRule, detail: str) -> Abort:
        return Abort(rule, detail, to_s(self.now_us))

    def _left(self) -> str:
        """Describe the jobs that wait, for an error message."""
        waiting = [j for j in self._jobs.values() if j.submitted and j.start_us < 0 and not j.state]
        large = [job for job in waiting if job.n_nodes > self.n_nodes]
        text = f"jobs that have not ended: {self._unfinished}"
        if waiting:
            text += f"; waiting: {_sizes(waiting)}; the machine has {counted(self.n_nodes, 'node')}"
        if large:
            text += f"; can never start, so the policy must reject: {_sizes(large)}"
        return text

    # ---- jobs

    def _runnable(self, workload: str, profile: str) -> dict[str, dict[str, Any]]:
        """Return a profile and its parts. If it needs a network model, raise InputError."""
        profiles = with_parts(self.profiles[workload], profile)
        duration_us(profiles, profile, self.options.speed_flops)
        return profiles

    def _add_registered(self, job: EngineJob, profiles: dict[str, dict[str, Any]]) -> None:
        self._hold(job, profiles)
        self._n_registered += 1
        self._unfinished += 1
        self._use(job.workload, job.profile)

    def _use(self, workload: str, profile: str, n_jobs: int = 1) -> None:
        """Increase the count of jobs that use this profile by ``n_jobs``."""
        uses = self._uses.setdefault(workload, {})
        uses[profile] = uses.get(profile, 0) + n_jobs

    def _hold(self, job: EngineJob, profiles: dict[str, dict[str, Any]]) -> None:
        job.profiles = profiles
        job.return_code = int(profiles[job.profile].get("ret", 0))
        self._jobs[job.id] = job

    def _send_submission(self, job: EngineJob) -> None:
        job.submitted = True
        profile = self._forwarded(job) if self.options.forward_profiles else None
        submission, job.submission = job.submission, None
        assert submission is not None
        fields = job_fields(submission, job.id) if isinstance(submission, Job) else submission
        self._outbox.append(
            JobSubmitted(at_us=self.now_us, job_id=job.id, job=fields, profile=profile)
        )

    def _forwarded(self, job: EngineJob) -> dict[str, Any]:
        """Return the profile that the submission of a job contains."""
        return self.profiles[job.workload][job.profile]

    def _begin_leg(self, job: EngineJob) -> bool:
        """Start the next delay of a job. Return whether there was a next delay."""
        leg_us = next(job.legs, None)
        if leg_us is None:
            return False
        end_us = self.now_us + leg_us
        if job.walltime_us is not None:
            end_us = min(end_us, job.start_us + job.walltime_us)
        self._push(end_us, self._on_leg_end, job)
        return True

    def _on_leg_end(self, job: EngineJob) -> None:
        if not job.running:
            return
        if job.walltime_us is not None and self.now_us >= job.start_us + job.walltime_us:
            self._end(job, WALLTIME, -1)
        elif self._begin_leg(job):
            return
        elif job.return_code:
            self._end(job, FAILED, job.return_code)
        else:
            self._end(job, SUCCESS, 0)

    def _end(self, job: EngineJob, state: str, return_code: int) -> None:
        assert job.nodes is not None
        job.state, job.end_us = state, self.now_us
        self._running -= 1
        self._vacate(job.nodes)
        self._outbox.append(
            JobCompleted(
                at_us=self.now_us,
                job_id=job.id,
                state=state,
                return_code=return_code,
                nodes=job.nodes,
            )
        )
        self._finish(job)

    def _finish(self, job: EngineJob) -> None:
        job.place = len(self.ended)
        self.ended.append(ended(job))
        job.legs, job.submission = NO_LEGS, None
        if not job.registered:
            self._gone.append(job.id)
        self._unfinished -= 1
        self._collect(job)

    def _vacate(self, nodes: NodeSet) -> None:
        """Release the nodes of a job that ended."""
        self._count_dead(nodes)
        self._pool.release(nodes)

    def _fail(self, nodes: NodeSet) -> None:
        """Mark nodes as down. Jobs on these nodes continue."""
        owner = self._pool.owner
        self._dead |= {node: self.now_us for node in nodes if owner[node] != FREE}
        self._pool.fail(nodes)

    def _repair(self, nodes: NodeSet) -> None:
        """Mark nodes as up."""
        self._count_dead(nodes)
        self._pool.repair(nodes)

    def _count_dead(self, nodes: NodeSet) -> None:
        """Count the time for which a job ran on those of these nodes that are down."""
        for node in [node for node in self._dead if node in nodes]:
            self.dead_us += self.now_us - self._dead.pop(node)

    def _collect(self, job: EngineJob) -> None:
        """If a job ended and no other job uses its profile, delete the profile."""
        uses = self._uses[job.workload]
        uses[job.profile] -= 1
        if not uses[job.profile] and not self.options.profile_reuse:
            del self.profiles[job.workload][job.profile]

    def _on_call(self, name: str) -> None:
        self._calls -= 1
        self._outbox.append(CallRequested(at_us=self.now_us, name=name))


def _sizes(jobs: list[EngineJob]) -> str:
    """Return the ids and sizes of the first jobs."""
    texts = [f"{job.id} ({counted(job.n_nodes, 'node')})" for job in jobs[:3]]
    return ", ".join(texts + ["..."] * (len(jobs) > 3))
