# SPDX-License-Identifier: Apache-2.0
"""What can become of a job, as a table, and the one place where it changes.

::

    QUEUED -> RUNNING -> STOPPING -> QUEUED | WAITING | MOVING -> RUNNING ... -> ENDED

Of every job one attempt is alive at a time; when it ends for good, so does the job.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rebat.contract import Stop
from rebat.core.attempts import Attempt, Running
from rebat.core.errors import InputError
from rebat.models.remaining import Remaining


class State(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    """Its kill was sent and not acknowledged yet: it still holds its nodes."""
    WAITING = "waiting"
    """Stopped; nodes are held for it."""
    MOVING = "moving"
    """Stopped; it goes on on the nodes claimed for it within the instant."""
    ENDED = "ended"


NEXT: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.ENDED}),
    State.RUNNING: frozenset({State.STOPPING, State.ENDED, State.QUEUED}),
    State.STOPPING: frozenset({State.QUEUED, State.WAITING, State.MOVING, State.ENDED}),
    State.WAITING: frozenset({State.QUEUED, State.ENDED}),
    State.MOVING: frozenset({State.RUNNING, State.QUEUED, State.ENDED}),
    State.ENDED: frozenset(),
}
"""From each state the next ones. RUNNING -> QUEUED: an attempt ended with a silent error;
STOPPING -> ENDED: it ended by itself at the very instant of its kill, or was given up, as jobs that
wait or move may be."""


class Stopping(msgspec.Struct):
    """A stop under way since ``sent_us``; ``claims`` are nodes held for its move."""

    stop: Stop
    remaining: Remaining
    running: Running
    sent_us: int
    claims: list[Running] = []


class Scheduled(msgspec.Struct):
    """A stop that waits for a checkpoint, and what will remain then.

    ``due_us`` is when the checkpoint is done, ``at_us`` when the stop is carried out (the same, or
    as near as six digits say). ``if_hit``: what would have remained when the stop was decided.
    """

    stop: Stop
    remaining: Remaining
    due_us: int
    at_us: int
    if_hit: Remaining
    claims: list[Running] = []

    def due(self, now_us: int) -> bool:
        """Whether its time has come."""
        return self.at_us <= now_us


class Waiting(msgspec.Struct):
    """A stopped job and the nodes held for it (None: none is left), ``n_held`` of them alive.

    ``over``: it waits for no more than the second pass of the instant; ``shrinks``: its hold is to
    be taken anew then, on the nodes that are left.
    """

    stopping: Stopping
    held: Running | None
    n_held: int
    on: str
    until_us: int
    over: bool = False
    shrinks: bool = False

    def due(self, now_us: int) -> bool:
        """Whether its time has come, and it does not end in the second pass anyway."""
        return self.until_us <= now_us and not self.over

    @property
    def n_lost(self) -> int:
        """How many of the job's nodes are not held, as they failed or had been drained."""
        return self.stopping.running.attempt.n_nodes - self.n_held


class Lifecycle:
    """Every job's state; the only writer of all this.

    Attributes
    ----------
    queue, running : dict
        Attempts by id, in the order in which they came; those being stopped still run.
    stopping, scheduled : dict
        Stops under way, and stops to come, by the attempt's id.
    waiting, moving : dict
        Stopped jobs by the job's id.
    """

    def __init__(self) -> None:
        self.queue: dict[str, Attempt] = {}
        self.running: dict[str, Running] = {}
        self.stopping: dict[str, Stopping] = {}
        self.scheduled: dict[str, Scheduled] = {}
        self.waiting: dict[str, Waiting] = {}
        self.moving: dict[str, Stopping] = {}
        self._gone: list[str] = []
        self._state: dict[str, State] = {}

    @property
    def idle(self) -> bool:
        """Nothing is alive."""
        return not (self.queue or self.running or self.stopping or self.waiting or self.moving)

    def _go(self, job_id: str, state: State) -> None:
        """Change a job's state; InputError when a peer tells what cannot follow."""
        before = self._state.get(job_id)
        if before is not None and state not in NEXT[before]:
            raise InputError(f"is {before} and cannot become {state}", f"job {job_id}")
        self._state[job_id] = state
        if state is State.ENDED:
            self._gone.append(job_id)

    def take_gone(self) -> list[str]:
        """The jobs that have ended for good since this was asked last, for others to forget."""
        gone, self._gone = self._gone, []
        return gone

    def alive(self, attempt_id: str) -> bool:
        """Whether an attempt waits or runs."""
        return attempt_id in self.queue or attempt_id in self.running

    def state(self, job_id: str) -> State:
        """Where a job is; KeyError: there is no such job."""
        return self._state[job_id]

    def knows(self, job_id: str) -> bool:
        """Whether there is, or was, such a job."""
        return job_id in self._state

    def enqueue(self, attempt: Attempt) -> None:
        """A job's first attempt arrives, or a further one is queued."""
        self.moving.pop(attempt.job_id, None)
        self._go(attempt.job_id, State.QUEUED)
        self.queue[attempt.id] = attempt

    def start(self, running: Running) -> None:
        """An attempt holds its nodes from now on; out of the queue, or on the move."""
        self.queue.pop(running.attempt.id, None)
        self.moving.pop(running.attempt.job_id, None)
        self._go(running.attempt.job_id, State.RUNNING)
        self.running[running.attempt.id] = running

    def replace(self, queued: Attempt, other: Attempt) -> None:
        """A queued attempt is known by another id from now on."""
        del self.queue[queued.id]
        self.queue[other.id] = other

    def reject(self, attempt_id: str) -> Attempt:
        """A queued job is refused for good."""
        attempt = self.queue.pop(attempt_id)
        self._go(attempt.job_id, State.ENDED)
        return attempt

    def schedule(self, scheduled: Scheduled) -> None:
        """A stop is to come; the attempt runs on."""
        self.scheduled[scheduled.stop.attempt_id] = scheduled

    def stop(self, stopping: Stopping) -> None:
        """The kill of a running attempt is sent."""
        self._go(stopping.running.attempt.job_id, State.STOPPING)
        self.stopping[stopping.stop.attempt_id] = stopping

    def end(self, attempt_id: str) -> Running | None:
        """An attempt gave its nodes back; None if it did not run."""
        return self.running.pop(attempt_id, None)

    def over(self, job_id: str) -> None:
        """A job ended for good."""
        self._go(job_id, State.ENDED)

    def give_up(self, job_id: str) -> None:
        """A stopped job does not go on."""
        self.moving.pop(job_id, None)
        self._go(job_id, State.ENDED)

    def wait(self, waiting: Waiting) -> None:
        """A stopped job waits."""
        job_id = waiting.stopping.running.attempt.job_id
        self._go(job_id, State.WAITING)
        self.waiting[job_id] = waiting

    def move(self, stopping: Stopping) -> None:
        """A stopped job is to go on elsewhere within the instant."""
        job_id = stopping.running.attempt.job_id
        self._go(job_id, State.MOVING)
        self.moving[job_id] = stopping
