# SPDX-License-Identifier: Apache-2.0
"""Submitted jobs that wait for other jobs, or for a place in their array, before they are queued.

Policies do not see these jobs. The conditions concern jobs, not attempts: an attempt that is
interrupted and requeued has no effect. When the last condition of a job holds, the job enters the
queue at that time. If a condition can never hold, the job is rejected, as Slurm does with
``kill_invalid_depend``.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter

import msgspec

from rebat.core.attempts import Attempt, job_name, workload_name
from rebat.core.dependencies import Condition, array_limit, check_dependencies, conditions_of
from rebat.core.traits import Traits
from rebat.session.registry import Registry
from rebat.session.state import State
from rebat.session.transactions import Transactions

_SERIAL = attrgetter("serial")


class _Array(msgspec.Struct):
    """An array: the maximum number of its tasks in the queue or running, and this number now."""

    limit: int
    n_active: int = 0
    ready: list[Attempt] = []
    """Tasks without unmet conditions, which wait for a place."""


class Dependencies:
    """The part of the session that blocks and releases jobs."""

    def __init__(self, state: State, registry: Registry, transactions: Transactions) -> None:
        self._state, self._jobs = state, state.jobs
        self._registry, self._transactions = registry, transactions
        self._new: list[Attempt] = []
        self._conditions: dict[str, list[Condition]] = {}
        """Conditions that do not hold yet. The ids of the jobs contain the workload's name."""
        self._dependents: defaultdict[str, list[str]] = defaultdict(list)
        self._arrays: dict[str, _Array] = {}
        self._array_of: dict[str, _Array] = {}
        self._is_checked = False

    def block(self, attempt: Attempt, traits: Traits) -> None:
        """Block a submitted job. `release` queues it when all its conditions hold."""
        job_id, workload = attempt.job_id, workload_name(attempt.job_id)
        conditions = [
            Condition(kind, f"{workload}!{job}") for kind, job in conditions_of(traits.dependency)
        ]
        self._conditions[job_id] = conditions
        for condition in conditions:
            self._dependents[condition.job].append(job_id)
        if traits.array:
            array = self._arrays.setdefault(
                f"{workload}!{traits.array}", _Array(array_limit(traits.array))
            )
            self._array_of[job_id] = array
        self._jobs.block(attempt)
        self._new.append(attempt)

    def release(self) -> bool:
        """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

        Return whether there are any. The result does not depend on the order of the events of an
        instant.
        """
        jobs, state = self._jobs, self._state
        if state.statics_over and not self._is_checked:
            self._check()
        released: list[Attempt] = []
        changed = False
        new, self._new = self._new, []
        names = [attempt.job_id for attempt in new]
        while names or jobs.progressed:
            progressed, jobs.progressed = jobs.progressed, []
            for job_id in progressed:
                names += self._dependents.get(job_id, ())
                if jobs.has_ended(job_id):
                    self._dependents.pop(job_id, None)
                    if array := self._array_of.pop(job_id, None):
                        array.n_active -= 1
            for job_id in dict.fromkeys(names):
                changed |= self._examine(job_id, released)
            names = []
        for array in self._arrays.values():
            n_places = array.limit - array.n_active
            if n_places > 0 and array.ready:
                array.ready.sort(key=_SERIAL)
                released += array.ready[:n_places]
                array.n_active += len(array.ready[:n_places])
                del array.ready[:n_places]
        if released:
            self._enqueue(sorted(released, key=_SERIAL))
        return changed or bool(released)

    def _examine(self, job_id: str, released: list[Attempt]) -> bool:
        """Update the conditions of a blocked job. Return whether it is rejected."""
        if job_id not in self._conditions:
            return False
        jobs = self._jobs
        left = [condition for condition in self._conditions[job_id] if not self._holds(condition)]
        attempt = jobs.blocked[job_id]
        for kind, other in left:
            if jobs.has_ended(other):
                del self._conditions[job_id]
                self._array_of.pop(job_id, None)
                reason = f"its dependency {kind}:{job_name(other)} can never hold"
                self._transactions.reject_job(attempt, reason)
                return True
        if left:
            self._conditions[job_id] = left
            return False
        del self._conditions[job_id]
        if array := self._array_of.get(job_id):
            array.ready.append(attempt)
        else:
            released.append(attempt)
        return False

    def _holds(self, condition: Condition) -> bool:
        jobs, (kind, job) = self._jobs, condition
        if not jobs.has_ended(job):
            return kind == "after" and jobs.has_started(job)
        return kind in ("after", "afterany") or jobs.succeeded(job) == (kind == "afterok")

    def _enqueue(self, released: list[Attempt]) -> None:
        """Queue jobs in the order of their submission, as arrivals."""
        state = self._state
        for blocked in released:
            attempt = msgspec.structs.replace(blocked, queued_us=state.now_us)
            self._registry.work[attempt.id].attempt = attempt
            self._transactions.enter(attempt)
            for arrived in (state.changes.arrived, state.news.arrived):
                arrived.append(attempt)
                arrived.sort(key=_SERIAL)

    def _check(self) -> None:
        """Check that the jobs on which blocked jobs depend exist, and that there is no cycle."""
        self._is_checked = True
        needed = {condition.job for of in self._conditions.values() for condition in of}
        check_dependencies(self._conditions, {job for job in needed if self._jobs.knows(job)})
