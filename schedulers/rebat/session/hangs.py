# SPDX-License-Identifier: Apache-2.0
"""Attempts that hang while their failure is detected and diagnosed and their job is rescheduled.

During a hang, the attempt keeps its nodes. Policies cannot stop it, because the end of the hang is
already scheduled as a stop. At the end of the hang, the session reports the failure to the policy
as if it had just occurred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from rebat.contract import Stop, Wait, When
from rebat.core.attempts import Cause, Running
from rebat.core.recovery import HUNG, Recovery
from rebat.models.light import Failure
from rebat.models.remaining import Remaining
from rebat.session.board import Board
from rebat.session.lifecycle import Lifecycle, Scheduled, Stopping
from rebat.session.resubmission import Registry
from rebat.session.waits import Waits

CallOff = Callable[..., Scheduled | None]
"""Function that cancels the scheduled stop of an attempt (see `Transactions.call_off`)."""


class Hang(msgspec.Struct):
    """A failure of an attempt.

    Attributes
    ----------
    cause : str
        Cause of the failure. Empty if it is unknown.
    at_us : int
        Time of the failure.
    stages : dict
        Duration in microseconds of each stage.
    victim : Scheduled, optional
        The stop that was scheduled for the attempt before the failure.
    """

    cause: str
    at_us: int
    stages: dict[str, int]
    victim: Scheduled | None = None

    @property
    def due_us(self) -> int:
        """The time at which the failure is reported to the policy."""
        return self.at_us + sum(self.stages.get(name, 0) for name in HUNG)


class Hangs:
    """Begins and ends the hangs of attempts."""

    def __init__(
        self, board: Board, jobs: Lifecycle, registry: Registry, waits: Waits, call_off: CallOff
    ) -> None:
        self._board, self._jobs, self._registry = board, jobs, registry
        self._waits, self._call_off = waits, call_off
        self._recovery = board.options.recovery or Recovery()
        self._stages = self._recovery.stages
        self.hanging: dict[str, Hang] = {}
        """Failed attempts by id. They stay here after their hang until they are stopped."""
        self._completed: list[Stopping] = []

    def report(
        self, hit: Mapping[str, Failure]
    ) -> tuple[list[Running], dict[str, Scheduled | None]]:
        """Return the failed attempts that the policy must know now, and their cancelled stops.

        ``hit`` contains new failures by attempt. If recoveries have stages, these attempts first
        hang. They are reported later.
        """
        if not (hit or self.hanging):
            return [], {}
        jobs, later = self._jobs, self._board.options.dialect.two_passes
        stages = self._stages or self._registry.has_light
        if not stages and not any(failure.cause for failure in hit.values()):
            running = [jobs.running[name] for name in hit]
            scheduled = [name for name in jobs.scheduled if name in hit]
            return running, {name: self._call_off(name, "hit", later) for name in scheduled}
        for name, failure in hit.items():
            if name not in self.hanging:
                self._begin(jobs.running[name], failure, self._call_off(name, "hit", later))
        due = self._due()
        victims = {name: self.hanging[name].victim for name in due}
        return [jobs.running[name] for name in due], {n: v for n, v in victims.items() if v}

    def _begin(self, running: Running, failure: Failure, victim: Scheduled | None) -> None:
        attempt, now_us = running.attempt, self._board.now_us
        stages = self._recovery.drawn_us(self._stages, failure.cause, attempt.job_id, now_us)
        hang = Hang(failure.cause, now_us, stages, victim)
        self.hanging[attempt.id] = hang
        ran_us = now_us - running.start_us
        self._registry.failures[attempt.id] = msgspec.structs.replace(failure, ran_us=ran_us)
        remaining = self._registry.after_stop(attempt.id, ran_us, When.NOW)
        stop = Stop(attempt.id, Cause.NODE_FAILURE)
        self._jobs.schedule(Scheduled(stop, remaining, hang.due_us, hang.due_us, remaining))

    def _due(self) -> list[str]:
        """End the hangs that are due. Return their attempts in the order of the failures."""
        due = []
        for name, scheduled in list(self._jobs.scheduled.items()):
            if name in self.hanging and scheduled.due(self._board.now_us):
                del self._jobs.scheduled[name]
                self._waits.end_all(scheduled)
                due.append(name)
        return due

    def hangs(self, attempt_id: str) -> bool:
        """Return whether an attempt has a failure that was not yet reported to the policy."""
        return attempt_id in self.hanging and attempt_id in self._jobs.scheduled

    def after_init(self, attempt_id: str, remaining: Remaining) -> Remaining:
        """Return ``remaining``, plus the time to initialise the next attempt of the failed job."""
        hang = self.hanging.get(attempt_id)
        init_us = hang.stages.get("init", 0) if hang else 0
        if not init_us:
            return remaining
        checkpointing = self._registry.work[attempt_id].checkpointing
        perfect = checkpointing is not None and checkpointing.perfect
        load_us = 0 if perfect else remaining.first_recovery_us
        return msgspec.structs.replace(remaining, first_recovery_us=load_us + init_us, written=None)

    def completed(self, running: Running) -> Stopping | None:
        """Return the stop of an attempt that completed in the simulator while it hangs.

        The nodes of the attempt are held until the end of the hang. If the attempt does not hang,
        the result is None.
        """
        attempt_id = running.attempt.id
        if not self.hangs(attempt_id):
            return None
        hang, scheduled = self.hanging[attempt_id], self._jobs.scheduled.pop(attempt_id)
        stop = Stop(attempt_id, Cause.NODE_FAILURE, When.NOW, Wait(until_us=hang.due_us))
        remaining = self.after_init(attempt_id, scheduled.remaining)
        return Stopping(stop, remaining, running, self._board.now_us)

    def wait(self, stopping: Stopping) -> None:
        """Hold the nodes of an attempt that completed while it hung, then requeue its job.

        The hold begins in `begin_waits`.
        """
        self._registry.need_registration(stopping.stop.attempt_id)
        self._jobs.stop(stopping)
        del self._jobs.stopping[stopping.stop.attempt_id]
        self._completed.append(stopping)

    def begin_waits(self) -> None:
        """Begin the holds after the last event of a message.

        The nodes are those that are up then. Their failures and repairs can come before or after
        the end of the attempt.
        """
        completed, self._completed = self._completed, []
        for stopping in sorted(completed, key=lambda stopping: stopping.running.attempt.serial):
            assert isinstance(stopping.stop.then, Wait)
            self._waits.begin(stopping, stopping.stop.then)
