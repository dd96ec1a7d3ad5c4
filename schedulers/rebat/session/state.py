# SPDX-License-Identifier: Apache-2.0
"""The state of a session: the states of jobs and nodes, and what is reported and decided.

States of a job and their transitions::

    BLOCKED -> QUEUED -> RUNNING -> STOPPING -> QUEUED | WAITING | MOVING -> RUNNING ... -> ENDED

A job without unmet dependencies begins in the state QUEUED (see `session.dependencies`). At any
time, a job has at most one attempt. When its last attempt ends, the job ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Changes, News, Refusal, Stop
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.decisions import Decision
from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.core.events import SimulationBegan
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.units import to_s
from rebat.kernels.pool import FREE
from rebat.models.node_pool import NodePool
from rebat.models.remaining import Remaining
from rebat.session.ledger import Ledger


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


class Stopping(msgspec.Struct):
    """A stop whose kill was sent at ``sent_us``.

    ``targets`` are the held target nodes of the move of the job. ``failed`` is True if the attempt
    had failed, and completed in the simulator before its kill: its job runs again.
    """

    stop: Stop
    remaining: Remaining
    running: Running
    sent_us: int
    targets: list[Running] = []
    failed: bool = False


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
    targets: list[Running] = []

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
    blocked : dict
        First attempts of blocked jobs, by job id.
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
    progressed : list of str
        Jobs that started for the first time or ended, in this order.
    """

    def __init__(self) -> None:
        self.blocked: dict[str, Attempt] = {}
        self.queue: dict[str, Attempt] = {}
        self.running: dict[str, Running] = {}
        self.stopping: dict[str, Stopping] = {}
        self.scheduled: dict[str, Scheduled] = {}
        self.waiting: dict[str, Waiting] = {}
        self.moving: dict[str, Stopping] = {}
        self.progressed: list[str] = []
        self._gone: list[str] = []
        self._state: dict[str, JobState] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._failed: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether no job is blocked, queued, running or stopped."""
        return not (
            self.blocked
            or self.queue
            or self.running
            or self.stopping
            or self.waiting
            or self.moving
        )

    def _go(self, job_id: str, state: JobState, succeeded: bool = False) -> None:
        """Change the state of a job. If the transition is impossible, raise InputError."""
        before = self._state.get(job_id) or (ENDED if job_id in self._ended else None)
        if before is not None and state not in NEXT[before]:
            raise InputError(f"is {before} and cannot become {state}", f"job {job_id}")
        if state is ENDED:
            del self._state[job_id]
            self._ended.add(job_id)
            self._started.discard(job_id)
            self._gone.append(job_id)
            self.progressed.append(job_id)
            if not succeeded:
                self._failed.add(job_id)
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

    def knows(self, job_id: str) -> bool:
        """Return whether a job exists or existed."""
        return job_id in self._state or job_id in self._ended

    def has_started(self, job_id: str) -> bool:
        """Return whether a job that has not ended has ever started."""
        return job_id in self._started

    def has_ended(self, job_id: str) -> bool:
        """Return whether a job has ended."""
        return job_id in self._ended

    def succeeded(self, job_id: str) -> bool:
        """Return whether a job has completed successfully."""
        return job_id in self._ended and job_id not in self._failed

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
        if running.attempt.job_id not in self._started:
            self._started.add(running.attempt.job_id)
            self.progressed.append(running.attempt.job_id)
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

    def schedule(self, scheduled: Scheduled) -> None:
        """Schedule a stop. The attempt continues to run until then."""
        self.scheduled[scheduled.stop.attempt_id] = scheduled

    def stop(self, stopping: Stopping) -> None:
        """Record that the kill of a running attempt has been sent."""
        self._go(stopping.running.attempt.job_id, STOPPING)
        self.stopping[stopping.stop.attempt_id] = stopping

    def end(self, attempt_id: str) -> Running | None:
        """Remove and return a running attempt (None if it does not run). Its nodes become free."""
        return self.running.pop(attempt_id, None)

    def over(self, job_id: str, succeeded: bool = False) -> None:
        """End a job."""
        self._go(job_id, ENDED, succeeded)

    def give_up(self, job_id: str) -> None:
        """End a stopped job, because failures interrupted too many of its attempts."""
        self.moving.pop(job_id, None)
        self._go(job_id, ENDED)

    def wait(self, waiting: Waiting) -> None:
        """Record that a stopped job waits."""
        job_id = waiting.stopping.running.attempt.job_id
        self._go(job_id, WAITING)
        self.waiting[job_id] = waiting

    def move(self, stopping: Stopping) -> None:
        """Record that a stopped job continues on other nodes at the same time."""
        job_id = stopping.running.attempt.job_id
        self._go(job_id, MOVING)
        self.moving[job_id] = stopping


class Nodes:
    """The nodes of a machine. Each is up, down or drained, and free or held.

    A held node has a tag: the serial number of an attempt, or of a hold (nodes held for a job). If
    the node fails or is drained, it keeps the tag until the holder releases it. A node is *usable*
    if it is up and not drained.

    Attributes
    ----------
    down, drained : bool arrays, shape (n,)
    up_since_us : int64 array, shape (n,)
        Time at which each node last came up, in microseconds. It is negative if this was before the
        simulation.
    failed_us : int64 array, shape (n,)
        Time at which each node last failed, in microseconds. If a node has not failed in the
        simulation, its entry is that of ``up_since_us``.
    """

    def __init__(self, n_nodes: int) -> None:
        self._pool = NodePool(n_nodes)  # ``down`` of the pool means unusable
        self.down: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self.drained: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)
        self._drained_for: dict[str, npt.NDArray[np.bool_]] = {}
        self.up_since_us: npt.NDArray[np.int64] = np.zeros(n_nodes, dtype=np.int64)
        self.failed_us: npt.NDArray[np.int64] = self.up_since_us.copy()
        self.n_nodes = n_nodes
        self.n_down = 0
        self._changed: dict[int, None] = {}
        self._reported_unusable: set[int] = set()

    def begin(self, uptime_us: npt.NDArray[np.int64]) -> None:
        """Set the uptime of each node at time 0, in microseconds."""
        if len(uptime_us) != self.n_nodes:
            expected = f"{self.n_nodes}, one per node"
            raise InputError(f"there are {len(uptime_us)} uptimes", expected=expected)
        self.up_since_us, self.failed_us = -uptime_us, -uptime_us

    @property
    def n_free(self) -> int:
        """Number of nodes that are usable and not held."""
        return self._pool.n_free

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that are usable and not held, as a new array."""
        free: npt.NDArray[np.bool_] = (self._pool.owner == FREE) & ~self._pool.down
        return free

    def tag(self, node: int) -> int:
        """Return the tag of a node, or -1 if it is not held."""
        return int(self._pool.owner[node])

    @property
    def all_tags(self) -> npt.NDArray[np.int32]:
        """The tag of each node, or -1 if it is not held, as a new array."""
        return self._pool.owner.copy()

    def tags(self, nodes: NodeSet) -> npt.NDArray[np.int32]:
        """Return the tags of these nodes in ascending order of nodes. Unheld nodes have -1."""
        return nodes.of_each(self._pool.owner)

    def obstacle(self, nodes: NodeSet) -> int:
        """Return the first of these nodes that is unusable or held, or -1 if there is none."""
        return self._pool.obstacle(nodes)

    def lowest(self, count: int) -> NodeSet:
        """Return the lowest-numbered free nodes."""
        return self._pool.lowest(count)

    def up(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are up. It includes drained nodes."""
        return NodeSet.of_sorted(nodes.ids[~nodes.of_each(self.down)])

    def usable(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are usable."""
        return self._pool.usable(nodes)

    def usable_and_free(self, nodes: NodeSet) -> NodeSet:
        """Return the subset of these nodes that are usable and not held."""
        return self._pool.usable(nodes, unheld=True)

    # ---- holders

    def take(self, nodes: NodeSet, tag: int) -> None:
        """Mark free nodes as held by a tag."""
        obstacle = self._pool.take(nodes, tag)
        assert obstacle < 0, f"node {obstacle} is not up and free"

    def release(self, nodes: NodeSet) -> None:
        """Mark nodes as no longer held."""
        self._pool.release(nodes)

    # ---- states

    def fail(self, nodes: NodeSet, now_us: int) -> list[int]:
        """Mark nodes as down. Return the tags of their holders, ascending and unique."""
        tags = {self.tag(node) for node in nodes} - {FREE}
        for node in nodes:
            self.down[node] = True
            self.failed_us[node] = now_us
        self.n_down += nodes.size
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))
        return sorted(tags)

    def repair(self, nodes: NodeSet, now_us: int) -> None:
        """Mark nodes as up."""
        for node in nodes:
            self.down[node] = False
            self.up_since_us[node] = now_us
        self.n_down -= nodes.size
        self._use(nodes)

    def drained_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that are drained for a reason. The mask is not a copy."""
        if why not in self._drained_for:
            self._drained_for[why] = np.zeros(self.n_nodes, dtype=np.bool_)
        return self._drained_for[why]

    def drained_only_for(self, why: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that are drained only for this reason, as a new array."""
        only = self.drained_for(why).copy()
        for other, mask in self._drained_for.items():
            if other != why:
                only &= ~mask
        return only

    def drain(self, nodes: NodeSet, why: str = "") -> None:
        """Drain nodes: no attempt starts on them."""
        nodes.put(self.drained_for(why), True)
        nodes.put(self.drained, True)
        self._pool.fail(nodes)
        self._changed.update(dict.fromkeys(nodes))

    def undrain(self, nodes: NodeSet, why: str = "") -> None:
        """Remove a reason for drains. A node that is up and has no other reason becomes usable."""
        nodes.put(self.drained_for(why), False)
        nodes.put(self.drained, False)
        for mask in self._drained_for.values():
            self.drained |= mask
        self._use(nodes)

    def _use(self, nodes: NodeSet) -> None:
        self._pool.repair(
            NodeSet.of(node for node in nodes if not (self.down[node] or self.drained[node]))
        )
        self._changed.update(dict.fromkeys(nodes))

    def news(self) -> Iterator[tuple[int, bool, bool]]:
        """Yield each changed node, whether it is usable, and whether this is new to the policy.

        For example, a node that was repaired and failed again since the last report is not new.
        """
        for node in self._changed:
            unusable, reported = bool(self._pool.down[node]), self._reported_unusable
            yield node, not unusable, unusable != (node in reported)
            (reported.add if unusable else reported.discard)(node)
        self._changed.clear()


class State(msgspec.Struct):
    """The state that all parts of a session share: jobs, nodes, time, news and decisions."""

    options: SessionOptions
    ledger: Ledger
    nodes: Nodes
    jobs: Lifecycle = msgspec.field(default_factory=Lifecycle)
    began: SimulationBegan | None = None
    ended: bool = False
    now_us: int = 0
    serial: int = 0
    statics_over: bool = False
    """Whether every job of the workload has been submitted."""
    registering: bool = False
    """Whether Batsim accepts new jobs."""
    changes: Changes = msgspec.field(default_factory=Changes)
    news: News = msgspec.field(default_factory=News)
    out: list[Decision] = []
    """Decisions for the next reply."""
    kills: list[str] = []
    """Ids of the attempts that the next reply kills."""
    by_tag: dict[int, str] = {}
    """Ids of running attempts by serial number."""
    by_hold: dict[int, str] = {}
    """Ids of held sets of nodes (see `session.transactions`) by serial number."""
    planning: bool = False
    """Whether the policy is currently planning."""

    def next_serial(self) -> int:
        """Return the next serial number, for an entry into the queue or for held nodes."""
        self.serial += 1
        return self.serial

    def refuse(self, refusal: Refusal) -> None:
        """Record the refusal of a proposal."""
        if self.options.strict:
            text = f"{refusal.subject} {refusal.reason}"
            raise PolicyError(f"at {to_s(self.now_us)} s the policy's {text}")
        self.note(refusal)

    def note(self, refusal: Refusal) -> None:
        """Record that an accepted proposal was cancelled. This is not an error of the policy."""
        self.ledger.refusals.append((self.now_us, refusal.subject, refusal.reason))
        self.changes.refused.append(refusal)
        self.news.refused.append(refusal)


class BrokenInvariant(RebatError):
    """Error: the state of a session is impossible. This is a bug in rebat."""


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
    for name, running in jobs.running.items():
        hangs = name in jobs.scheduled and jobs.scheduled[name].stop.cause == Cause.NODE_FAILURE
        if not hangs and name not in jobs.stopping and running.nodes.of_each(nodes.down).any():
            raise BrokenInvariant(f"attempt {name} runs on a failed node")


def holders(jobs: Lifecycle) -> Iterator[Running]:
    """Yield every holder: running attempts, and records of nodes held for waits and moves."""
    yield from jobs.running.values()
    yield from (waiting.held for waiting in jobs.waiting.values() if waiting.held)
    for stops in (jobs.scheduled, jobs.stopping, jobs.moving):
        for stop in stops.values():
            yield from stop.targets
