"""What every attempt really does, and what remains of it: the only place that works that out.

Attempts after the first are registered here, from the last checkpoint on, scaled when the number of
nodes changes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.attempts import Attempt, Priority
from rebat.core.decisions import RegisterJob, RegisterProfile
from rebat.core.errors import InputError
from rebat.core.events import JobSubmitted, SimulationBegan
from rebat.core.jobs import batsim_number
from rebat.core.proposals import When
from rebat.core.shapes import shape_of
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.models.checkpoint import (
    STOP_RULES,
    Checkpointing,
    Remaining,
    checkpointing_of,
    derived_checkpointing,
    remaining_after,
    resumed,
    resumed_length_us,
    with_checkpoints_us,
    work_in_us,
)
from rebat.models.silent_errors import retried_profile
from rebat.models.speedup import run_us, speedup_of
from rebat.policies.base import Submission
from rebat.session.board import Board


class Work(msgspec.Struct, gc=False):
    """What the session knows of an attempt and the policy must not: what it really does."""

    attempt: Attempt
    workload: str
    profile: str
    checkpointing: Checkpointing | None


class Registry:
    """Profiles, submissions and the work of every attempt."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._profiles: dict[str, dict[str, dict[str, Any]]] = {}
        self.submissions: dict[str, Submission] = {}
        self.work: dict[str, Work] = {}
        self.registered: set[str] = set()

    # ---- as submitted

    def begin(self, event: SimulationBegan) -> None:
        """Take the profiles of the static workloads."""
        self._profiles = {name: dict(profiles) for name, profiles in event.profiles.items()}

    def original(self, event: JobSubmitted, machine_nodes: int) -> Attempt:
        """The first attempt of a job; InputError for what is no job."""
        if event.job_id in self.work:
            raise InputError("is submitted twice", f"job {event.job_id}")
        workload = event.job_id.partition("!")[0]
        profile = str(event.job.get("profile"))
        if event.profile is not None:
            self._profiles.setdefault(workload, {})[profile] = event.profile
        attempt = self._first_attempt(event)
        content = self._profiles.get(workload, {}).get(profile, {})
        try:
            checkpointing = checkpointing_of(content)
            self.submissions[event.job_id] = Submission(
                event.job_id, attempt.n_nodes, attempt.walltime_us, attempt.submit_us,
                shape_of(event.job), speedup_of(content), event.job,
            )  # fmt: skip
        except InputError as error:
            raise error.at(f"job {event.job_id}") from None
        if content.get("type", "delay") != "delay":
            checkpointing = None  # only delays can be shortened: what is lost is lost whole
        elif checkpointing is None:
            young_daly = self._board.options.young_daly
            checkpointing = derived_checkpointing(attempt.n_nodes, machine_nodes, young_daly)
        self.work[attempt.id] = Work(attempt, workload, profile, checkpointing)
        return attempt

    def _first_attempt(self, event: JobSubmitted) -> Attempt:
        fields, where = event.job, f"job {event.job_id}"
        n_nodes = fields.get("res")
        if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
            raise InputError(f"res is {n_nodes!r}", where, "a whole number, 1 or more")
        walltime = fields.get("walltime", -1)
        if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
            raise InputError(f"walltime is {walltime!r}", where, "seconds above 0, or -1")
        endless = walltime == -1 or walltime > MAX_SECONDS
        serial = self._board.next_serial()
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

    # ---- what would remain

    def after_stop(self, attempt_id: str, ran_us: int, when: When) -> Remaining:
        """What an attempt keeps that is stopped after having run so long."""
        checkpointing = self.work[attempt_id].checkpointing
        return remaining_after(
            checkpointing, ran_us, STOP_RULES[when], self._board.options.semantics
        )

    def walltime_after_us(self, attempt_id: str, remaining: Remaining) -> int:
        """The walltime of what remains, on as many nodes."""
        work = self.work[attempt_id]
        return resumed_length_us(work.attempt.walltime_us, work.checkpointing, remaining)

    def can_resize(self, attempt_id: str) -> bool:
        """Whether the length of an attempt on other numbers of nodes is known: that of a delay."""
        return self._content(self.work[attempt_id]).get("type") == "delay"

    def _content(self, work: Work) -> dict[str, Any]:
        profile = self._profiles.get(work.workload, {}).get(work.profile)
        if profile is None:
            raise InputError(f"has the unknown profile {work.profile!r}", f"job {work.attempt.id}")
        return profile

    # ---- as resubmitted

    def why_not_again(self, attempt_id: str) -> str:
        """Why Batsim could not run what remains of an attempt; an empty text if it can."""
        work, began = self.work[attempt_id], self._board.began
        if not self._board.registering:
            return "Batsim takes no new jobs"
        reusing = began is not None and began.config.get("profile-reuse-enabled")
        if self._content(work).get("type") == "composed" and not reusing:
            return f"Batsim forgets its composed profile {work.profile}"
        return ""

    def need_registration(self, attempt_id: str) -> None:
        """A resubmission is coming; InputError when Batsim does not take it."""
        reason = self.why_not_again(attempt_id)
        if reason:
            raise InputError(
                f"must run again, but {reason}",
                f"job {attempt_id}",
                "Batsim started with --enable-dynamic-jobs --enable-profile-reuse",
            )

    def again(
        self, attempt_id: str, remaining: Remaining, priority: int, n_nodes: int | None = None
    ) -> Attempt:
        """Register what remains of a stopped attempt, on demand on another number of nodes."""
        old = self.work[attempt_id]
        size = n_nodes or old.attempt.n_nodes
        profile = self._profile_after(old, remaining, size)
        walltime_us = self._walltime_us(old, remaining, size, profile)
        attempt = self._next(old.attempt, walltime_us, priority, size)
        self._register(attempt, old, profile, resumed(old.checkpointing, remaining))
        return attempt

    def retry(self, attempt_id: str) -> Attempt:
        """Register a job anew, whole, after an error was detected when it ended."""
        failed = self.work[attempt_id]
        self.need_registration(attempt_id)
        first = self.work[failed.attempt.job_id]
        attempt = self._next(
            failed.attempt, first.attempt.walltime_us, Priority.REGULAR, first.attempt.n_nodes
        )
        profile = retried_profile(self._content(first), self._content(failed))
        self._register(attempt, first, profile, first.checkpointing)
        return attempt

    def _left_us(self, old: Work, length_us: int, remaining: Remaining, size: int) -> int:
        """What remains of a length or walltime, with its recovery (eq. 4), on ``size`` nodes.

        Only the work is scaled: periods, checkpoints and the recovery last as long on any number.
        """
        left_us, before = resumed_length_us(length_us, old.checkpointing, remaining), old.attempt
        if size == before.n_nodes:
            return left_us
        checkpointing, recovery = resumed(old.checkpointing, remaining), remaining.first_recovery_us
        speedup = self.submissions[before.job_id].speedup
        work_us = work_in_us(checkpointing, left_us - recovery)
        scaled_us = run_us(speedup, work_us, before.n_nodes, size)
        return recovery + with_checkpoints_us(checkpointing, scaled_us)

    def _walltime_us(
        self, old: Work, remaining: Remaining, size: int, profile: dict[str, Any]
    ) -> int:
        """The walltime of what remains; one that was long enough for a resized job still is.

        Walltime and length may end within one checkpoint, and then hold the same work.
        """
        walltime_us = old.attempt.walltime_us
        if not old.attempt.has_walltime:
            return FOREVER_US
        left_us = max(1, self._left_us(old, walltime_us, remaining, size))
        if size != old.attempt.n_nodes and walltime_us > to_us(self._content(old)["delay"]):
            return max(left_us, to_us(profile["delay"]) + 1)
        return left_us

    def _profile_after(self, old: Work, remaining: Remaining, size: int) -> dict[str, Any]:
        """What remains to be run; only delays can be shortened, other profiles start over."""
        profile = self._content(old)
        if profile.get("type") != "delay":
            return profile
        if old.checkpointing is None:
            if size == old.attempt.n_nodes:
                return profile
            whole = self._left_us(old, to_us(profile["delay"]), remaining, size)
            return {**profile, "delay": to_s(whole)}
        return {
            **profile,
            "delay": to_s(self._left_us(old, to_us(profile["delay"]), remaining, size)),
            "Tfirst": to_s(remaining.first_period_us),
            "Rfirst": to_s(remaining.first_recovery_us),
        }

    def _next(self, last: Attempt, walltime_us: int, priority: int, n_nodes: int) -> Attempt:
        return msgspec.structs.replace(
            last,
            id=f"{last.job_id}#{last.number + 1}",
            serial=self._board.next_serial(),
            number=last.number + 1,
            n_nodes=n_nodes,
            walltime_us=walltime_us,
            queued_us=self._board.now_us,
            priority=priority,
        )

    def _register(
        self, attempt: Attempt, old: Work, profile: dict[str, Any],
        checkpointing: Checkpointing | None,
    ) -> None:  # fmt: skip
        """Register an attempt and its profile."""
        now, out = self._board.now_us, self._board.out
        if profile.get("type") == "composed":
            name = self._loaded(old, profile)
        else:
            name = f"{attempt.id.partition('!')[2]}:{old.profile.partition(':')[2] or old.profile}"
            self._profiles[old.workload][name] = profile
            out.append(
                RegisterProfile(at_us=now, workload=old.workload, name=name, profile=profile)
            )
        fields: dict[str, Any] = {
            "id": attempt.id,
            "subtime": batsim_number(now),
            "res": attempt.n_nodes,
            "profile": name,
        }
        if attempt.has_walltime:
            fields["walltime"] = batsim_number(attempt.walltime_us)
        out.append(RegisterJob(at_us=now, job_id=attempt.id, job=fields))
        self.registered.add(attempt.id)
        self.work[attempt.id] = Work(attempt, old.workload, name, checkpointing)

    def _loaded(self, old: Work, profile: dict[str, Any]) -> str:
        """The name under which Batsim has loaded a composed profile.

        A composed profile that is registered kills Batsim when a job of it starts.
        """
        if profile != self._content(old):
            raise InputError(
                "cannot run again in another form: Batsim takes no new composed profiles",
                f"job {old.attempt.id}", "a delay profile",
            )  # fmt: skip
        return old.profile
