# SPDX-License-Identifier: Apache-2.0
"""The table of jobs: their profiles, submissions and attempts, and checks of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.contract import Refusal, Submission
from rebat.core.attempts import Attempt, resubmission_id, split_attempt, taken_id
from rebat.core.counted import counted
from rebat.core.errors import InputError
from rebat.core.events import JobSubmitted, SimulationBegan
from rebat.core.shapes import RIGID, Malleable, Moldable, shape_of
from rebat.core.traits import traits_of
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.models.checkpoint import (
    NEVER,
    Checkpointing,
    checkpointing_of,
    derived_checkpointing,
)
from rebat.models.light import Failure
from rebat.models.migration import cost_us
from rebat.models.remaining import AtRisk
from rebat.models.six_digits import period_as_forwarded_s
from rebat.models.speedup import speedup_of
from rebat.session.board import Board


class Work(msgspec.Struct, gc=False):
    """The session's record of an attempt. It includes data that the policy must not know."""

    attempt: Attempt
    workload: str
    profile: str
    checkpointing: Checkpointing | None
    at_risk: AtRisk = ()
    """Work at risk: kept work that no checkpoint of a storage tier contains yet, for each tier.

    Resizes or light checkpoints kept it. Unit: microseconds at the speed of this attempt.
    """
    period_s: float = 0.0
    """Checkpoint period in seconds, if it is not a whole number of microseconds. Otherwise 0."""


class JobTable:
    """The profiles, and the submission and attempts of each job that has not ended."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._profiles: dict[str, dict[str, dict[str, Any]]] = {}
        self.submissions: dict[str, Submission] = {}
        self.work: dict[str, Work] = {}
        self._like_resubmissions: dict[str, str] = {}
        self.failures: dict[str, Failure] = {}
        """Failures of attempts by id. Work after a failure does not count."""
        self.has_light = False
        """Whether any job writes light checkpoints."""

    # ---- submissions

    def begin(self, event: SimulationBegan) -> None:
        """Store the profiles of the static workloads."""
        self._profiles = {name: dict(profiles) for name, profiles in event.profiles.items()}

    def original(self, event: JobSubmitted, machine_nodes: int) -> Attempt:
        """Return the first attempt of a job. If the job is invalid, raise InputError."""
        workload = event.job_id.partition("!")[0]
        profile = str(event.job.get("profile"))
        if event.profile is not None:
            self._profiles.setdefault(workload, {})[profile] = event.profile
        if self._board.registering:
            self._check_id(event.job_id)
        attempt = first_attempt(event, self._board.next_serial())
        content = self._profiles.get(workload, {}).get(profile, {})
        try:
            checkpointing = checkpointing_of(content)
            scalable = content.get("type", "delay") == "delay"
            shape = shape_of(event.job) if scalable else RIGID
            self.submissions[event.job_id] = Submission(
                event.job_id,
                attempt.n_nodes,
                attempt.walltime_us,
                attempt.submit_us,
                shape,
                speedup_of(content),
                event.job,
                traits_of(event.job),
            )
        except InputError as error:
            raise error.at(f"job {event.job_id}") from None
        if priority_class := self.submissions[event.job_id].traits.priority_class:
            attempt = msgspec.structs.replace(attempt, priority_class=priority_class)
        if not scalable:
            checkpointing = None  # only delays can be shortened; other jobs lose all work
        elif checkpointing is None:
            young_daly = self._board.options.young_daly
            checkpointing = derived_checkpointing(attempt.n_nodes, machine_nodes, young_daly)
            if checkpointing is None and self._board.options.starts_cost:
                checkpointing = NEVER  # later attempts have a cost
        self.has_light |= checkpointing is not None and checkpointing.light is not None
        period_s = 0.0
        if checkpointing and self._board.options.dialect.digits == "six":
            period_s, checkpointing = _as_forwarded(checkpointing, attempt.n_nodes)
        self.work[attempt.id] = Work(attempt, workload, profile, checkpointing, period_s=period_s)
        return attempt

    def _check_id(self, job_id: str) -> None:
        """Raise InputError if a resubmission of one job could have the id of another job.

        Ids are never reused. If the id of a job has the form of a resubmission, it is stored, so
        that later jobs can be checked.
        """
        base, number = split_attempt(job_id)
        if number:
            self._like_resubmissions[base] = job_id
            if base in self.submissions:
                raise taken_id(job_id, base)
        if job_id in self._like_resubmissions:
            raise taken_id(self._like_resubmissions[job_id], job_id)

    def forget(self, job_id: str, alive: Callable[[str], bool]) -> None:
        """If a job has ended and no attempt is left, delete its data to save memory."""
        attempts = [job_id]
        while self._is_of(job_id, following := resubmission_id(job_id, len(attempts))):
            attempts.append(following)
        if not any(map(alive, attempts)):
            del self.submissions[job_id]
            for attempt_id in attempts:
                del self.work[attempt_id]
                self.failures.pop(attempt_id, None)

    def _is_of(self, job_id: str, attempt_id: str) -> bool:
        """Return whether an attempt belongs to a job. The attempt's id alone does not show this."""
        work = self.work.get(attempt_id)
        return work is not None and work.attempt.job_id == job_id

    # ---- checks

    def why_not_again(self, attempt_id: str) -> Refusal | None:
        """Return why Batsim cannot run the remaining work of an attempt, or None if it can."""
        work, began = self.work[attempt_id], self._board.began
        if not self._board.registering:
            return Refusal(attempt_id, "Batsim accepts no new jobs")
        reusing = began is not None and began.config.get("profile-reuse-enabled")
        if self._content(work).get("type") == "composed" and not reusing:
            return Refusal(attempt_id, f"Batsim has deleted its composed profile {work.profile}")
        return None

    def why_not_size(self, attempt_id: str, n_nodes: int) -> Refusal | None:
        """Return why an attempt cannot run on a number of nodes, or None if it can."""
        work, reason = self.work[attempt_id], ""
        if n_nodes == work.attempt.n_nodes:
            return None
        job = self.submissions[work.attempt.job_id]
        if not job.shape.allows(n_nodes, job.n_nodes):
            shape = f"it requested {job.n_nodes}, and its shape is {job.shape}"
            reason = f"cannot run on {counted(n_nodes, 'node')}: {shape}"
        elif self._content(work).get("type") != "delay":
            reason = "cannot change its number of nodes: its profile is not a delay"
        return Refusal(attempt_id, reason) if reason else None

    def why_not_seamless(self, attempt_id: str) -> Refusal | None:
        """Return why an attempt cannot be resized without losing work, or None if it can."""
        shape = self.submissions[self.work[attempt_id].attempt.job_id].shape
        if isinstance(shape, Malleable):
            return None
        return Refusal(attempt_id, f"cannot be resized: its shape is {shape}")

    def why_not_image(self, attempt_id: str) -> Refusal | None:
        """Return why the batch system cannot checkpoint an attempt, or None if it can."""
        work, reason = self.work[attempt_id], ""
        if not self.submissions[work.attempt.job_id].traits.checkpointable:
            reason = "cannot be checkpointed: its user set checkpointable to false"
        elif self._content(work).get("type", "delay") != "delay":
            reason = "cannot be checkpointed: its profile is not a delay"
        return Refusal(attempt_id, reason) if reason else None

    def starts_over(self, attempt_id: str, n_nodes: int) -> bool:
        """Return whether an attempt would start from the beginning on this number of nodes.

        This is the case for a moldable job on another number of nodes (section III of Prabhakaran
        et al. 2018), unless it can continue from its checkpoint (section V-C).
        """
        if self._board.options.resumes_moldable:
            return False
        attempt = self.work[attempt_id].attempt
        shape = self.submissions[attempt.job_id].shape
        return isinstance(shape, Moldable) and n_nodes != attempt.n_nodes

    # ---- costs

    def image_us(self, attempt_id: str) -> int:
        """Return the cost (us) of a checkpoint and restart by the batch system.

        Each of Batsim's hosts counts as a task.
        """
        return self.price_us(self._board.options.migration_cost, self.work[attempt_id].attempt)

    def price_us(self, cost: str, attempt: Attempt) -> int:
        """Return a cost for an attempt in microseconds (see `models.migration.cost_us`)."""
        memory_mb = self.submissions[attempt.job_id].traits.memory_mb
        return cost_us(cost, attempt.n_nodes, memory_mb, self._board.options.purge_s)

    def _content(self, work: Work) -> dict[str, Any]:
        profile = self._profiles.get(work.workload, {}).get(work.profile)
        if profile is None:
            raise InputError(f"unknown profile {work.profile!r}", f"job {work.attempt.id}")
        return profile


def _as_forwarded(c: Checkpointing, n_nodes: int) -> tuple[float, Checkpointing]:
    """Return the checkpoint period (s) and checkpointing of a job, rounded as by Batsim.

    Batsim writes the numbers of a profile with six decimals.
    """
    if c.never or c.perfect:
        return 0.0, c
    period_s = period_as_forwarded_s(to_s(c.period_us), to_s(c.cost_us), n_nodes)
    first_us = c.first_period_us
    if first_us == c.period_us:
        first_us = to_us(period_s)
    new = msgspec.structs.replace(c, period_us=to_us(period_s), first_period_us=first_us)
    return period_s, new


def first_attempt(event: JobSubmitted, serial: int) -> Attempt:
    """Return the first attempt of a job. If the job is invalid, raise InputError."""
    fields, where = event.job, f"job {event.job_id}"
    n_nodes = fields.get("res")
    if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise InputError(f"res is {n_nodes!r}", where, "a whole number of at least 1")
    walltime = fields.get("walltime", -1)
    if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
        raise InputError(f"walltime is {walltime!r}", where, "seconds above 0, or -1")
    endless = walltime == -1 or walltime > MAX_SECONDS
    return Attempt(
        id=event.job_id,
        job_id=event.job_id,
        serial=serial,
        job_serial=serial,
        number=0,
        n_nodes=n_nodes,
        walltime_us=FOREVER_US if endless else to_us(walltime),
        submit_us=event.at_us,
        queued_us=event.at_us,
    )
