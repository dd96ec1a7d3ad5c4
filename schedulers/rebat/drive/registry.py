# SPDX-License-Identifier: Apache-2.0
"""The registry of jobs: their profiles and submissions, and the remaining work of their attempts.

Each attempt after the first starts from the last checkpoint. If its number of nodes changes, its
work is scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.contract import Refusal, Submission, When
from rebat.core.attempts import (
    Attempt,
    Cause,
    Priority,
    Running,
    resubmission_id,
    workload_name,
)
from rebat.core.errors import InputError
from rebat.core.events import JobSubmitted
from rebat.core.jobs import duration_us
from rebat.core.numbers import exactly
from rebat.core.traits import RIGID, USUAL, Malleable, Moldable, shape_of, traits_of
from rebat.core.units import FOREVER_US, to_s, to_us
from rebat.drive.ask_state import AskState
from rebat.drive.messages import LEAST_DELAY_S, remaining_profile, unknown_run
from rebat.models.checkpoint import (
    NEVER,
    Checkpointing,
    Failure,
    checkpointing_of,
    derived_checkpointing,
    with_checkpoints_us,
    work_in_us,
)
from rebat.models.migration import cost_us
from rebat.models.remaining import (
    INTERRUPTIONS,
    AtRisk,
    Remaining,
    Written,
    after_light_failure,
    imaged,
    in_seconds,
    period_as_forwarded_s,
    remaining_after,
    resubmission,
    resumed,
    resumed_length_us,
    untouched,
)
from rebat.models.silent_errors import retried_profile, with_errors_left
from rebat.models.speedup import run_us, speedup_of
from rebat.policies.reactions.operations import WHY_NOT_MOVE
from rebat.rules.operations import why_not_move
from rebat.state import codes


class Work(msgspec.Struct, gc=False):
    """The session's record of an attempt. It includes data that the policy must not know."""

    attempt: Attempt
    profile: str
    checkpointing: Checkpointing | None
    at_risk: AtRisk = ()
    """Work at risk: kept work that no checkpoint of a storage tier contains yet, for each tier.

    Resizes or light checkpoints kept it. Unit: microseconds at the speed of this attempt.
    """
    period_s: float = 0.0
    """Checkpoint period in seconds, if it is not a whole number of microseconds. Otherwise 0."""


class Registry:
    """The jobs that have not ended, and all their attempts.

    Attributes
    ----------
    submissions : dict
        Jobs by id.
    work : dict
        The work of attempts by id.
    failures : dict
        Failures of attempts by id. Work after a failure does not count.
    has_light : bool
        Whether any job writes light checkpoints.
    """

    def __init__(self, session: AskState) -> None:
        self._session = session
        self.submissions: dict[str, Submission] = {}
        self.work: dict[str, Work] = {}
        self.failures: dict[str, Failure] = {}
        self.has_light = False

    # ---- submissions, checks and costs

    def original(self, attempt: Attempt, event: JobSubmitted, content: dict[str, Any]) -> Attempt:
        """Return the first attempt of a job. If the job is invalid, raise InputError."""
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
        traits = self.submissions[event.job_id].traits
        if traits != USUAL:
            classed = {"priority_class": traits.priority_class, "traits": traits}
            attempt = msgspec.structs.replace(attempt, **classed)
        options = self._session.options
        if not scalable:
            checkpointing = None  # only delays can be shortened; other jobs lose all work
        elif checkpointing is None:
            n_nodes, young_daly = self._session.n_nodes, options.young_daly
            checkpointing = derived_checkpointing(attempt.n_nodes, n_nodes, young_daly)
            if checkpointing is None and options.starts_cost:
                checkpointing = NEVER  # later attempts have a cost
        self.has_light |= checkpointing is not None and checkpointing.light is not None
        period_s = 0.0
        if checkpointing and options.dialect.digits == "six":
            period_s, checkpointing = _as_forwarded(checkpointing, attempt.n_nodes)
        profile = str(event.job.get("profile"))
        self.work[attempt.id] = Work(attempt, profile, checkpointing, period_s=period_s)
        return attempt

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

    def why_not_again(self, attempt_id: str) -> Refusal | None:
        """Return why Batsim cannot run the remaining work of an attempt, or None if it can."""
        reason = self._session.why_not_again(attempt_id, self.work[attempt_id].profile)
        return Refusal(attempt_id, reason) if reason else None

    def why_not_size(self, attempt_id: str, n_nodes: int) -> Refusal | None:
        """Return why an attempt cannot run on a number of nodes, or None if it can."""
        work, reason = self.work[attempt_id], ""
        if n_nodes == work.attempt.n_nodes:
            return None
        job = self.submissions[work.attempt.job_id]
        if not job.shape.allows(n_nodes, job.n_nodes):
            shape = f"it requested {job.n_nodes}, and its shape is {job.shape}"
            reason = f"cannot run on {exactly(n_nodes, 'node')}: {shape}"
        elif self._content(work).get("type") != "delay":
            reason = "cannot change its number of nodes: its profile is not a delay"
        return Refusal(attempt_id, reason) if reason else None

    def why_not_seamless(self, attempt_id: str) -> Refusal | None:
        """Return why an attempt cannot be resized without losing work, or None if it can."""
        shape = self.submissions[self.work[attempt_id].attempt.job_id].shape
        if isinstance(shape, Malleable):
            return None
        return Refusal(attempt_id, f"cannot be resized: its shape is {shape}")

    def why_not_image(self, running: Running) -> Refusal | None:
        """Return why the batch system cannot checkpoint an attempt, or None if it can."""
        work, image = self.work[running.attempt.id], 0
        if not self.submissions[work.attempt.job_id].traits.checkpointable:
            image = codes.UNWILLING
        elif self._content(work).get("type", "delay") != "delay":
            image = codes.NO_DELAY
        is_down = bool(running.nodes.of_each(self._session.nodes.down).any())
        why = why_not_move(image, is_down, False, True)
        return Refusal(running.attempt.id, WHY_NOT_MOVE[why]) if why else None

    def starts_over(self, attempt_id: str, n_nodes: int) -> bool:
        """Return whether an attempt would start from the beginning on this number of nodes.

        This is the case for a moldable job on another number of nodes (section III of Prabhakaran
        et al. 2018), unless it can continue from its checkpoint (section V-C).
        """
        if self._session.options.resumes_moldable:
            return False
        attempt = self.work[attempt_id].attempt
        shape = self.submissions[attempt.job_id].shape
        return isinstance(shape, Moldable) and n_nodes != attempt.n_nodes

    def image_us(self, attempt_id: str) -> int:
        """Return the cost (us) of a checkpoint and restart by the batch system.

        Each of Batsim's hosts counts as a task.
        """
        return self.price_us(self._session.options.migration_cost, self.work[attempt_id].attempt)

    def price_us(self, cost: str, attempt: Attempt) -> int:
        """Return a cost for an attempt in microseconds (see `models.migration.cost_us`)."""
        memory_mb = self.submissions[attempt.job_id].traits.memory_mb
        return cost_us(cost, attempt.n_nodes, memory_mb, self._session.options.purge_s)

    def _content(self, work: Work) -> dict[str, Any]:
        return self._session.content(work.attempt.id, work.profile)

    # ---- run times

    def recent_runs_us(self, attempt: Attempt) -> list[int]:
        """Return the run times (us) of the last two jobs of a user (see `View.recent_runs_us`)."""
        rows = self._session.state
        runs_us: list[int] = []
        user = rows.jobs[rows.attempts[attempt.serial - 1].job].user
        a = rows.lists[user].ended_last - 1 if user else -1
        while a >= 0 and len(runs_us) < 2:
            row = rows.attempts[a]
            if row.end < attempt.queued_us:
                runs_us.append(row.end - row.start)
            a = row.ended_before - 1
        return runs_us[::-1]

    def true_run_us(self, attempt_id: str) -> int:
        """Return the run time (us) of an attempt without failures, or raise InputError."""
        work = self.work[attempt_id]
        try:
            profiles = self._session.profiles.get(workload_name(attempt_id), {})
            return duration_us(profiles, work.profile, None)
        except InputError as error:
            raise unknown_run(attempt_id, error) from None

    # ---- remaining work and registrations

    def after_stop(self, attempt_id: str, ran_us: int, when: When) -> Remaining:
        """Return the remaining work of an attempt that is stopped after it ran for ``ran_us``."""
        work, dialect = self.work[attempt_id], self._session.options.dialect
        if failure := self.failures.get(attempt_id):
            ran_us, when, c = failure.ran_us, When.NOW, work.checkpointing
            if c and c.light and (tier := c.light.surviving(failure)):
                return after_light_failure(c, ran_us, work.at_risk, tier)
        if when == When.IMAGE:
            return imaged(work.checkpointing, ran_us, self.image_us(attempt_id))
        remaining = remaining_after(
            work.checkpointing, ran_us, when, dialect.semantics, work.at_risk
        )
        if dialect.digits == "six" and when in INTERRUPTIONS:
            written = self._written(work, ran_us, when)
            remaining = msgspec.structs.replace(remaining, written=written)
        return remaining

    def _written(self, work: Work, ran_us: int, when: When) -> Written | None:
        """Return the numbers of a resubmission as the authors' program computes them.

        If the program cannot represent the attempt, return None.
        """
        c, now_us = work.checkpointing, self._session.now_us
        if c is None or c.never or c.perfect or c.image_us or any(work.at_risk):
            return None
        return resubmission(
            in_seconds(c, work.period_s or to_s(c.period_us)),
            to_s(to_us(self._content(work)["delay"])),
            to_s(work.attempt.walltime_us),
            to_s(now_us) - to_s(now_us - ran_us),
            when,
            self._session.options.dialect.semantics,
        )

    def walltime_after_us(
        self, attempt_id: str, remaining: Remaining, n_nodes: int | None = None
    ) -> int:
        """Return the walltime (us) of the remaining work on ``n_nodes`` (default: unchanged)."""
        work = self.work[attempt_id]
        if n_nodes in (None, work.attempt.n_nodes):
            return resumed_length_us(work.attempt.walltime_us, work.checkpointing, remaining)
        return self._in_size(work, self._with_cost(work, remaining), n_nodes)[1]

    def walltime_on_us(self, attempt_id: str, n_nodes: int) -> int:
        """Return the walltime (us) of an attempt that starts or restarts on ``n_nodes`` nodes."""
        work = self._origin(attempt_id, n_nodes)
        if n_nodes == work.attempt.n_nodes:
            return work.attempt.walltime_us
        return self._in_size(work, self._before_mold(work, attempt_id, n_nodes), n_nodes)[1]

    def _before_mold(self, old: Work, attempt_id: str, n_nodes: int) -> Remaining:
        """Return the work of a queued attempt that starts on ``n_nodes`` nodes.

        This is the entire work of the attempt. If the job has run before, the cost of a resize is
        added.
        """
        remaining = untouched(old.checkpointing)
        resumes = self.work[attempt_id].attempt.number and not self.starts_over(attempt_id, n_nodes)
        return self._with_cost(old, remaining) if resumes else remaining

    def _origin(self, attempt_id: str, n_nodes: int) -> Work:
        """Return the record of the work with which an attempt on ``n_nodes`` nodes starts.

        Normally, this is the record of the attempt itself. If the job starts from the beginning, it
        is the record of the job's first attempt.
        """
        work = self.work[attempt_id]
        return self.work[work.attempt.job_id] if self.starts_over(attempt_id, n_nodes) else work

    def _with_cost(self, work: Work, remaining: Remaining) -> Remaining:
        """Return the remaining work, plus the cost of a resize."""
        paid_us = self.price_us(self._session.options.resize_cost, work.attempt)
        recovery_us = remaining.first_recovery_us + paid_us
        return msgspec.structs.replace(remaining, first_recovery_us=recovery_us)

    def need_registration(self, attempt_id: str) -> None:
        """Raise InputError if Batsim does not accept resubmissions (dynamic jobs)."""
        self._session.check_again(attempt_id, self.work[attempt_id].profile)

    def again(
        self, attempt_id: str, remaining: Remaining, priority: int, n_nodes: int | None = None
    ) -> Attempt:
        """Register the remaining work of a stopped attempt, optionally on another number of nodes.

        If the job starts from the beginning, it loses the progress of its earlier attempts.
        """
        last = self.work[attempt_id].attempt
        size = n_nodes or last.n_nodes
        old = self._origin(attempt_id, size)
        if self.starts_over(attempt_id, size):
            remaining = untouched(old.checkpointing)
            self._session.records.lose(last.job_id, Cause.MOVED)
        elif size != last.n_nodes:
            remaining = self._with_cost(old, remaining)
        checkpointing = resumed(old.checkpointing, remaining)
        if remaining.written and size == last.n_nodes:
            profile, walltime_us = self._as_written(old, remaining.written)
            checkpointing = checkpointing_of(profile)
        else:
            profile, walltime_us = self._in_size(old, remaining, size)
        attempt = self._next(last, walltime_us, priority, size)
        profile = with_errors_left(profile, self._content(self.work[attempt_id]))
        self._register(attempt, old, profile, checkpointing)
        self._set_at_risk(attempt, last, remaining.at_risk)
        return attempt

    def _set_at_risk(self, attempt: Attempt, before: Attempt, at_risk: AtRisk) -> None:
        """Set the work at risk of an attempt. ``at_risk`` is given at the speed of ``before``."""
        scaled = (self._scaled_us(before, us, attempt.n_nodes) for us in at_risk)
        self.work[attempt.id].at_risk = tuple(scaled)

    def molded(self, attempt: Attempt, n_nodes: int) -> Attempt:
        """Register a queued attempt on another number of nodes. It keeps its place in the queue."""
        old, at_risk = self._origin(attempt.id, n_nodes), self.work[attempt.id].at_risk
        if self.starts_over(attempt.id, n_nodes):
            self._session.records.lose(attempt.job_id, Cause.MOVED)
            at_risk = ()
        remaining = self._before_mold(old, attempt.id, n_nodes)
        profile, walltime_us = self._in_size(old, remaining, n_nodes)
        new = msgspec.structs.replace(
            attempt,
            id=resubmission_id(attempt.job_id, attempt.number + 1),
            number=attempt.number + 1,
            n_nodes=n_nodes,
            walltime_us=walltime_us,
        )
        profile = with_errors_left(profile, self._content(self.work[attempt.id]))
        self._register(new, old, profile, resumed(old.checkpointing, remaining))
        self._set_at_risk(new, attempt, at_risk)
        return new

    def retry(self, attempt_id: str) -> Attempt:
        """Register all work of a job again, on its last number of nodes, after a silent error."""
        failed = self.work[attempt_id]
        self.need_registration(attempt_id)
        first = self.work[failed.attempt.job_id]
        size, whole = failed.attempt.n_nodes, self._content(first)
        if size != first.attempt.n_nodes:
            whole = self._profile_after(first, untouched(first.checkpointing), size)
        walltime_us = self._walltime_us(first, untouched(first.checkpointing), size, whole)
        attempt = self._next(failed.attempt, walltime_us, Priority.REGULAR, size)
        profile = retried_profile(whole, self._content(failed))
        self._register(attempt, first, profile, first.checkpointing)
        return attempt

    def _as_written(self, old: Work, it: Written) -> tuple[dict[str, Any], int]:
        """Return the profile and walltime (us) that the authors' program writes."""
        first = it.first_period_s, it.first_recovery_s
        pattern = it.period_s, it.cost_s, it.recovery_s
        profile = remaining_profile(self._content(old), it.delay_s, first, pattern)
        has_walltime = old.attempt.has_walltime
        return profile, max(1, to_us(it.walltime_s)) if has_walltime else FOREVER_US

    def _in_size(self, old: Work, remaining: Remaining, size: int) -> tuple[dict[str, Any], int]:
        """Return the profile and walltime (us) of the remaining work on ``size`` nodes."""
        profile = self._profile_after(old, remaining, size)
        return profile, self._walltime_us(old, remaining, size, profile)

    def _left_us(self, old: Work, length_us: int, remaining: Remaining, size: int) -> int:
        """Return what remains of a run time or walltime (us), including the recovery (eq. 4).

        Only the work is scaled to ``size`` nodes. Periods, checkpoints and the recovery are not
        scaled.
        """
        left_us, before = resumed_length_us(length_us, old.checkpointing, remaining), old.attempt
        if size == before.n_nodes:
            return left_us
        checkpointing, recovery = resumed(old.checkpointing, remaining), remaining.first_recovery_us
        work_us = work_in_us(checkpointing, left_us - recovery)
        scaled_us = self._scaled_us(before, work_us, size)
        return recovery + with_checkpoints_us(checkpointing, scaled_us)

    def _left_s(self, old: Work, profile: dict[str, Any], remaining: Remaining, size: int) -> float:
        """Return what remains of a profile's delay, in seconds: at least `LEAST_DELAY_S`."""
        left_us = self._left_us(old, to_us(profile["delay"]), remaining, size)
        return max(LEAST_DELAY_S, to_s(left_us))

    def _scaled_us(self, before: Attempt, work_us: int, size: int) -> int:
        """Return the run time (us) that work of another attempt needs on ``size`` nodes.

        This work takes ``work_us`` on the nodes of the attempt ``before``.
        """
        return run_us(self.submissions[before.job_id].speedup, work_us, before.n_nodes, size)

    def _walltime_us(
        self, old: Work, remaining: Remaining, size: int, profile: dict[str, Any]
    ) -> int:
        """Return the walltime of the remaining work, in microseconds.

        If the walltime exceeds the run time before a resize, it must also do so after the resize.
        Walltime and run time may end during the same checkpoint, so that both contain the same
        work. Therefore, the walltime after a resize is at least 1 us longer than the run time.
        """
        walltime_us = old.attempt.walltime_us
        if not old.attempt.has_walltime:
            return FOREVER_US
        left_us = max(1, self._left_us(old, walltime_us, remaining, size))
        if size != old.attempt.n_nodes and walltime_us > to_us(self._content(old)["delay"]):
            return max(left_us, to_us(profile["delay"]) + 1)
        return left_us

    def _profile_after(self, old: Work, remaining: Remaining, size: int) -> dict[str, Any]:
        """Return the profile of the remaining work. Only delay profiles are shortened."""
        profile = self._content(old)
        if profile.get("type") != "delay":
            return profile
        if old.checkpointing is None:
            if size == old.attempt.n_nodes and not (
                remaining.useful_us or remaining.first_recovery_us
            ):
                return profile
            return {**profile, "delay": self._left_s(old, profile, remaining, size)}
        first = to_s(remaining.first_period_us), to_s(remaining.first_recovery_us)
        return remaining_profile(profile, self._left_s(old, profile, remaining, size), first)

    def _next(self, last: Attempt, walltime_us: int, priority: int, n_nodes: int) -> Attempt:
        return msgspec.structs.replace(
            last,
            id=resubmission_id(last.job_id, last.number + 1),
            serial=self._session.serial,
            number=last.number + 1,
            n_nodes=n_nodes,
            walltime_us=walltime_us,
            queued_us=self._session.now_us,
            priority=priority,
        )

    def _register(
        self,
        attempt: Attempt,
        old: Work,
        profile: dict[str, Any],
        checkpointing: Checkpointing | None,
    ) -> None:
        """Register an attempt and its profile in Batsim."""
        if profile.get("type") == "composed" and profile != self._content(old):
            raise InputError(
                "cannot run again with another profile: Batsim accepts no new composed profiles",
                f"job {old.attempt.id}",
                "a delay profile",
            )
        name, decisions = self._session.register(
            attempt.job_id, attempt.number, attempt.n_nodes, attempt.walltime_us, old.profile,
            profile,
        )  # fmt: skip
        self._session.out += decisions
        self.work[attempt.id] = Work(attempt, name, checkpointing)


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
