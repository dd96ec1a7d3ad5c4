# SPDX-License-Identifier: Apache-2.0
"""The states of jobs in a session.

States of a job and their transitions::

    BLOCKED -> QUEUED -> RUNNING -> STOPPING -> QUEUED | WAITING | MOVING -> RUNNING ... -> ENDED

A job without unmet dependencies begins in the state QUEUED (see `rules.links`). At any
time, a job has at most one attempt. When its last attempt ends, the job ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
import numpy as np

from rebat.contract import Stop
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.errors import InputError
from rebat.drive.invariants import BrokenInvariant
from rebat.drive.machine import Nodes
from rebat.drive.messages import Messages
from rebat.kernels.pool import FREE
from rebat.models.remaining import Remaining


class JobState(StrEnum):
    """State of a job."""

    BLOCKED = "blocked"
    """The job waits for other jobs, or for a place in its array, before it enters the queue."""
    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    """The kill has been sent but is not yet acknowledged. The attempt still holds its nodes."""
    WAITING = "waiting"
    """The job is stopped and waits, and nodes are held for it."""
    MOVING = "moving"
    """The job is stopped, and continues on held nodes at the same time."""
    ENDED = "ended"


BLOCKED, QUEUED, RUNNING, STOPPING, WAITING, MOVING, ENDED = JobState

NEXT: dict[JobState, frozenset[JobState]] = {
    BLOCKED: frozenset({QUEUED, ENDED}),
    QUEUED: frozenset({RUNNING, ENDED}),
    RUNNING: frozenset({STOPPING, ENDED, QUEUED}),
    STOPPING: frozenset({QUEUED, WAITING, MOVING, ENDED}),
    WAITING: frozenset({QUEUED, ENDED}),
    MOVING: frozenset({RUNNING, QUEUED, ENDED}),
    ENDED: frozenset(),
}
"""Possible next states of each state.

RUNNING -> QUEUED: an attempt ended with a silent error. STOPPING -> ENDED: the attempt completed at
the time of its kill, or failures interrupted too many attempts of the job. Because of too many
interruptions, a job can also end while it waits or moves.
"""


class Stopped(msgspec.Struct):
    """A stop that is scheduled or sent, or whose job waits or moves. The tables contain its times.

    ``failed`` is True if the attempt had failed, and completed in the simulator before its kill.
    Then its job runs again.
    """

    stop: Stop
    remaining: Remaining
    """The work that remains after the stop."""
    running: Running
    if_hit: Remaining | None = None
    """The work that would remain if a failure had hit the attempt when the stop was decided."""
    sent_us: int = 0
    """Time at which the kill was sent."""
    failed: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """A stopped job and the nodes held for it."""

    on: str
    """Id of the attempt for whose stop the job waits; empty if there is none."""
    held: Running | None
    """The held nodes, or None if no node is left."""
    n_held: int
    """Number of held nodes that are up."""
    n_lost: int
    """Number of nodes of the job that are not held, because they failed or were drained."""


class Lifecycle:
    """The states of all jobs. Only this class changes them.

    Attributes
    ----------
    blocked : dict
        First attempts of blocked jobs, by job id.
    queue : dict
        Queued attempts by attempt id, in order of their entry into the queue.
    running : dict
        Running attempts by attempt id, in order of their starts. They include the attempts that are
        being stopped.
    stops : dict
        Stops of attempts, by attempt id.
    holds : dict
        Held sets of nodes, represented as running attempts, by row.
    moving : dict
        Stopped jobs that continue on other nodes at the same time, by job id.
    """

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self.blocked: dict[str, Attempt] = {}
        self.queue: dict[str, Attempt] = {}
        self.running: dict[str, Running] = {}
        self.stops: dict[str, Stopped] = {}
        self.holds: dict[int, Running] = {}
        self.moving: dict[str, Stopped] = {}
        self._gone: list[str] = []
        self._state: dict[str, JobState] = {}
        self._ended: set[str] = set()

    @property
    def n_stopping(self) -> int:
        """Number of attempts whose kill is not acknowledged."""
        return int(self._messages.state.n.n_kills)

    @property
    def stopping(self) -> dict[str, Stopped]:
        """Stops whose kill was sent, by attempt id."""
        tables = self._messages.state
        names = [self._messages.names[tables.kills[i].attempt] for i in range(tables.n.n_kills)]
        return {name: self.stops[name] for name in names}

    @property
    def scheduled(self) -> dict[str, Stopped]:
        """Stops that wait for a checkpoint or for the end of a hang, by attempt id."""
        tables = self._messages.state
        names = [self._messages.names[tables.stops[i].victim] for i in range(tables.n.n_stops)]
        return {name: self.stops[name] for name in names}

    @property
    def waiting(self) -> dict[str, Waiting]:
        """Stopped jobs that wait, and the nodes held for them, by job id."""
        waiting, tables = {}, self._messages.state
        for i in range(tables.n.n_waits):
            row = tables.waits[i]
            attempt = self.stops[self._messages.names[row.attempt]].running.attempt
            on = self._messages.names[row.victim] if row.victim >= 0 else ""
            held = self.holds[row.hold] if row.hold >= 0 else None
            waiting[attempt.job_id] = Waiting(on, held, row.n_held, attempt.n_nodes - row.n_held)
        return waiting

    @property
    def idle(self) -> bool:
        """Whether no job is blocked, queued, running or stopped."""
        return not (
            self.blocked
            or self.queue
            or self.running
            or self._messages.state.n.n_kills
            or self._messages.state.n.n_waits
            or self.moving
        )

    def _go(self, job_id: str, state: JobState) -> None:
        """Change the state of a job. If the transition is impossible, raise InputError."""
        before = self._state.get(job_id) or (ENDED if job_id in self._ended else None)
        if before is not None and state not in NEXT[before]:
            raise InputError(f"is {before} and cannot become {state}", f"job {job_id}")
        if state is ENDED:
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

    def state(self, job_id: str) -> JobState:
        """Return the state of a job. If the job is unknown, raise KeyError."""
        return ENDED if job_id in self._ended else self._state[job_id]

    def block(self, attempt: Attempt) -> None:
        """Add a submitted job that must not enter the queue yet."""
        self._go(attempt.job_id, BLOCKED)
        self.blocked[attempt.job_id] = attempt

    def enqueue(self, attempt: Attempt) -> None:
        """Add an attempt to the queue."""
        self.blocked.pop(attempt.job_id, None)
        self.moving.pop(attempt.job_id, None)
        self._go(attempt.job_id, QUEUED)
        self.queue[attempt.id] = attempt

    def start(self, running: Running) -> None:
        """Start an attempt that is queued or moving."""
        self.queue.pop(running.attempt.id, None)
        self.moving.pop(running.attempt.job_id, None)
        self._go(running.attempt.job_id, RUNNING)
        self.running[running.attempt.id] = running

    def replace(self, queued: Attempt, other: Attempt) -> None:
        """Replace a queued attempt by an attempt that has another id."""
        del self.queue[queued.id]
        self.queue[other.id] = other

    def reject(self, attempt: Attempt) -> None:
        """Reject a blocked or queued job permanently."""
        self.blocked.pop(attempt.job_id, None)
        self.queue.pop(attempt.id, None)
        self._go(attempt.job_id, ENDED)

    def stop(self, stopped: Stopped) -> None:
        """Record that the kill of a running attempt has been sent."""
        self._go(stopped.running.attempt.job_id, STOPPING)
        self.stops[stopped.stop.attempt_id] = stopped

    def end(self, attempt_id: str) -> Running | None:
        """Remove and return a running attempt (None if it does not run). Its nodes become free."""
        return self.running.pop(attempt_id, None)

    def over(self, job_id: str) -> None:
        """End a job."""
        self._go(job_id, ENDED)

    def give_up(self, job_id: str) -> None:
        """End a stopped job, because failures interrupted too many of its attempts."""
        self.moving.pop(job_id, None)
        self._go(job_id, ENDED)

    def wait(self, job_id: str) -> None:
        """Record that a stopped job waits."""
        self._go(job_id, WAITING)

    def move(self, stopped: Stopped) -> None:
        """Record that a stopped job continues on other nodes at the same time."""
        job_id = stopped.running.attempt.job_id
        self._go(job_id, MOVING)
        self.moving[job_id] = stopped


def check_jobs(jobs: Lifecycle) -> None:
    """Check that every attempt is in one table, and that its job is in the matching state."""
    for name in jobs.queue.keys() & jobs.running.keys():
        raise BrokenInvariant(f"attempt {name} is queued and running")
    for name in (jobs.stopping.keys() | jobs.scheduled.keys()) - jobs.running.keys():
        raise BrokenInvariant(f"attempt {name} is being stopped, but does not run")
    for name in jobs.stopping.keys() & jobs.scheduled.keys():
        raise BrokenInvariant(f"attempt {name} is being stopped twice")
    stopping = {jobs.running[name].attempt.job_id for name in jobs.stopping}
    running = {running.attempt.job_id for running in jobs.running.values()}
    for state, job_ids in (
        (BLOCKED, jobs.blocked.keys()),
        (QUEUED, {attempt.job_id for attempt in jobs.queue.values()}),
        (RUNNING, running - stopping),
        (STOPPING, stopping),
        (WAITING, jobs.waiting.keys()),
        (MOVING, jobs.moving.keys()),
    ):
        for job_id in job_ids:
            if jobs.state(job_id) is not state:
                raise BrokenInvariant(f"job {job_id} is {jobs.state(job_id)}, not {state}")


def check_nodes(jobs: Lifecycle, nodes: Nodes) -> None:
    """Check that every node has at most one holder, and that it has the tag of this holder."""
    tags = np.full(nodes.n_nodes, FREE, dtype=np.int32)
    for holder in holders(jobs):
        attempt, held = holder.attempt, holder.nodes
        if held.size != attempt.n_nodes:
            text = f"{attempt.id} is on {held.size} nodes, expected {attempt.n_nodes}"
            raise BrokenInvariant(text)
        taken = held.ids[tags[held.ids] != FREE]
        if len(taken):
            raise BrokenInvariant(f"node {taken[0]} is held by {attempt.id} and by another")
        tags[held.ids] = attempt.serial
    wrong = np.flatnonzero(tags != nodes.all_tags)
    if len(wrong):
        raise BrokenInvariant(f"node {wrong[0]} has the wrong tag {nodes.tag(int(wrong[0]))}")
    n_free = int(np.count_nonzero((tags == FREE) & ~(nodes.down | nodes.drained)))
    if n_free != nodes.n_free or nodes.n_down != np.count_nonzero(nodes.down):
        raise BrokenInvariant(f"{n_free} nodes are free, not {nodes.n_free}")
    scheduled, stopping = jobs.scheduled, jobs.stopping
    for name, running in jobs.running.items():
        hangs = name in scheduled and scheduled[name].stop.cause == Cause.NODE_FAILURE
        if not hangs and name not in stopping and running.nodes.of_each(nodes.down).any():
            raise BrokenInvariant(f"attempt {name} runs on a failed node")


def holders(jobs: Lifecycle) -> Iterator[Running]:
    """Yield every holder: running attempts, and records of nodes held for waits and moves."""
    yield from jobs.running.values()
    yield from jobs.holds.values()
