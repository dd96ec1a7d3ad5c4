# SPDX-License-Identifier: Apache-2.0
"""States of a job and their transitions. No other module changes the state of a job.

::

    QUEUED -> RUNNING -> STOPPING -> QUEUED | WAITING | MOVING -> RUNNING ... -> ENDED

At any time, a job has at most one attempt. When its last attempt ends, the job ends.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rebat.contract import Stop
from rebat.core.attempts import Attempt, Running
from rebat.core.errors import InputError
from rebat.models.remaining import Remaining


class State(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    """The kill has been sent but is not yet acknowledged. The attempt still holds its nodes."""
    WAITING = "waiting"
    """The job is stopped and waits, and nodes are held for it."""
    MOVING = "moving"
    """The job is stopped, and continues on held nodes at the same time."""
    ENDED = "ended"


NEXT: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.ENDED}),
    State.RUNNING: frozenset({State.STOPPING, State.ENDED, State.QUEUED}),
    State.STOPPING: frozenset({State.QUEUED, State.WAITING, State.MOVING, State.ENDED}),
    State.WAITING: frozenset({State.QUEUED, State.ENDED}),
    State.MOVING: frozenset({State.RUNNING, State.QUEUED, State.ENDED}),
    State.ENDED: frozenset(),
}
"""Possible next states of each state.

RUNNING -> QUEUED: an attempt ended with a silent error. STOPPING -> ENDED: the attempt completed at
the time of its kill, or failures interrupted too many attempts of the job. Because of too many
interruptions, a job can also end while it waits or moves.
"""


class Stopping(msgspec.Struct):
    """A stop whose kill was sent at ``sent_us``.

    ``claims`` are records of nodes held for the move of the job.
    """

    stop: Stop
    remaining: Remaining
    running: Running
    sent_us: int
    claims: list[Running] = []


class Scheduled(msgspec.Struct):
    """A stop that is carried out later, usually when a checkpoint is complete."""

    stop: Stop
    remaining: Remaining
    """The work that remains after the stop."""
    due_us: int
    """Time at which the checkpoint is complete."""
    at_us: int
    """Time at which the stop is carried out: ``due_us``, possibly rounded to six digits."""
    if_hit: Remaining
    """The work that would remain if a failure had hit the attempt when the stop was decided."""
    claims: list[Running] = []

    def due(self, now_us: int) -> bool:
        """Return whether the stop is due."""
        return self.at_us <= now_us


class Waiting(msgspec.Struct):
    """A stopped job and the nodes held for it."""

    stopping: Stopping
    held: Running | None
    """The held nodes, or None if no node is left."""
    n_held: int
    """Number of held nodes that are up."""
    on: str
    """Id of the attempt for whose stop the job waits; empty if there is none."""
    until_us: int
    """Time at which the wait ends at the latest."""
    over: bool = False
    """Whether the wait ends in the second planning pass of the instant."""
    shrinks: bool = False
    """Whether the second pass replaces the held nodes by the same number of lowest free nodes."""

    def due(self, now_us: int) -> bool:
        """Return whether the wait ends now, in the first planning pass."""
        return self.until_us <= now_us and not self.over

    @property
    def n_lost(self) -> int:
        """Number of nodes of the job that are not held, because they failed or were drained."""
        return self.stopping.running.attempt.n_nodes - self.n_held


class Lifecycle:
    """The states of all jobs. Only this class changes them.

    Attributes
    ----------
    queue : dict
        Queued attempts by attempt id, in order of their entry into the queue.
    running : dict
        Running attempts by attempt id, in order of their starts. They include the attempts that are
        being stopped.
    stopping : dict
        Stops whose kill was sent, by attempt id.
    scheduled : dict
        Stops that wait for a checkpoint, by attempt id.
    waiting : dict
        Stopped jobs that wait, and the nodes held for them, by job id.
    moving : dict
        Stopped jobs that continue on other nodes at the same time, by job id.
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
        self._ended: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether no job is queued, running or stopped."""
        return not (self.queue or self.running or self.stopping or self.waiting or self.moving)

    def _go(self, job_id: str, state: State) -> None:
        """Change the state of a job. If the transition is impossible, raise InputError."""
        before = self._state.get(job_id) or (State.ENDED if job_id in self._ended else None)
        if before is not None and state not in NEXT[before]:
            raise InputError(f"is {before} and cannot become {state}", f"job {job_id}")
        if state is State.ENDED:
            del self._state[job_id]
            self._ended.add(job_id)
            self._gone.append(job_id)
        else:
            self._state[job_id] = state

    def take_gone(self) -> list[str]:
        """Return the jobs that have ended since the last call."""
        gone, self._gone = self._gone, []
        return gone

    def alive(self, attempt_id: str) -> bool:
        """Return whether an attempt is queued or running."""
        return attempt_id in self.queue or attempt_id in self.running

    def state(self, job_id: str) -> State:
        """Return the state of a job. If the job is unknown, raise KeyError."""
        return State.ENDED if job_id in self._ended else self._state[job_id]

    def knows(self, job_id: str) -> bool:
        """Return whether a job exists or existed."""
        return job_id in self._state or job_id in self._ended

    def enqueue(self, attempt: Attempt) -> None:
        """Add an attempt to the queue."""
        self.moving.pop(attempt.job_id, None)
        self._go(attempt.job_id, State.QUEUED)
        self.queue[attempt.id] = attempt

    def start(self, running: Running) -> None:
        """Start an attempt that is queued or moving."""
        self.queue.pop(running.attempt.id, None)
        self.moving.pop(running.attempt.job_id, None)
        self._go(running.attempt.job_id, State.RUNNING)
        self.running[running.attempt.id] = running

    def replace(self, queued: Attempt, other: Attempt) -> None:
        """Replace a queued attempt by an attempt that has another id."""
        del self.queue[queued.id]
        self.queue[other.id] = other

    def reject(self, attempt_id: str) -> Attempt:
        """Reject a queued job permanently."""
        attempt = self.queue.pop(attempt_id)
        self._go(attempt.job_id, State.ENDED)
        return attempt

    def schedule(self, scheduled: Scheduled) -> None:
        """Schedule a stop. The attempt continues to run until then."""
        self.scheduled[scheduled.stop.attempt_id] = scheduled

    def stop(self, stopping: Stopping) -> None:
        """Record that the kill of a running attempt has been sent."""
        self._go(stopping.running.attempt.job_id, State.STOPPING)
        self.stopping[stopping.stop.attempt_id] = stopping

    def end(self, attempt_id: str) -> Running | None:
        """Remove and return a running attempt (None if it does not run). Its nodes become free."""
        return self.running.pop(attempt_id, None)

    def over(self, job_id: str) -> None:
        """End a job."""
        self._go(job_id, State.ENDED)

    def give_up(self, job_id: str) -> None:
        """End a stopped job, because failures interrupted too many of its attempts."""
        self.moving.pop(job_id, None)
        self._go(job_id, State.ENDED)

    def wait(self, waiting: Waiting) -> None:
        """Record that a stopped job waits."""
        job_id = waiting.stopping.running.attempt.job_id
        self._go(job_id, State.WAITING)
        self.waiting[job_id] = waiting

    def move(self, stopping: Stopping) -> None:
        """Record that a stopped job continues on other nodes at the same time."""
        job_id = stopping.running.attempt.job_id
        self._go(job_id, State.MOVING)
        self.moving[job_id] = stopping
