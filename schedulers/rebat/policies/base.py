"""The contract between session and policy: a view to read, proposals to answer with.

A policy has no I/O, reads no clock and draws from no global random stream. The session checks each
proposal and refuses, with a reason, what a real Batsim would abort on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing, Remaining


class View(Protocol):
    """What is true now. Times in microseconds."""

    @property
    def now_us(self) -> int:
        """The date."""

    @property
    def n_nodes(self) -> int:
        """Nodes of the machine, up or down."""

    @property
    def n_up(self) -> int:
        """Nodes that are up."""

    @property
    def n_free(self) -> int:
        """Nodes that are up and hold no attempt."""

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Waiting attempts by id, in order of entry."""

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start."""

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        """How an attempt checkpoints; None if it does not."""

    def obstacle(self, nodes: NodeSet) -> int:
        """The first of these nodes that is not up and free; -1 if all are."""


class Changes(msgspec.Struct):
    """What happened since the policy was last asked to plan.

    ``failed_nodes`` are down now and were up then, ``rejuvenated_nodes`` the other way round;
    ``failures`` and ``repairs`` count the events, also those that took each other back. ``held``
    are nodes kept free for a job that waits for a stolen one, as if an attempt ran there;
    when they are given back they are among the ``ended``. ``failed_under`` names, for each failed
    node that an attempt still holds, that attempt. ``refused`` are proposals that the session did
    not carry out, with its reason: an attempt whose start was refused is in the queue still.
    """

    arrived: list[Attempt] = []
    resubmitted: list[Attempt] = []
    ended: list[Running] = []
    killed: list[Running] = []
    held: list[Running] = []
    failed_nodes: list[int] = []
    failed_under: list[str] = []
    rejuvenated_nodes: list[int] = []
    failures: int = 0
    repairs: int = 0
    refused: list[tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(
            self.arrived or self.resubmitted or self.ended or self.killed
            or self.held or self.failures or self.repairs or self.refused
        )  # fmt: skip

    def returned(self, view: View) -> list[Attempt]:
        """Attempts in the queue whose start was refused: who planned on it has to undo that."""
        names = dict.fromkeys(attempt_id for attempt_id, _ in self.refused)
        return [view.queue[attempt_id] for attempt_id in names if attempt_id in view.queue]


class Failure(msgspec.Struct, frozen=True):
    """Nodes that failed, and the running attempts that must die with them.

    ``held_hit`` are the jobs for which nodes were held that failed, each with how many it lost and
    how many are still held.
    """

    nodes: tuple[int, ...]
    hit: tuple[Running, ...]
    held_hit: tuple[tuple[str, int, int], ...] = ()


class Start(msgspec.Struct, frozen=True):
    """Start a queued attempt; without ``nodes`` it gets the lowest-numbered free ones."""

    attempt_id: str
    nodes: NodeSet | None = None


class Reject(msgspec.Struct, frozen=True):
    """Refuse a job for good."""

    attempt_id: str
    reason: str


class Interrupt(msgspec.Struct, frozen=True):
    """Kill a running attempt and put what remains of it back into the queue.

    With ``hold_us`` above 0 the job is parked instead: its surviving nodes are held for it, for so
    long as far as plans can know, until a ``Resume`` puts it into the queue.
    """

    attempt_id: str
    cause: Cause
    priority: int
    remaining: Remaining
    hold_us: int = 0


class Resume(msgspec.Struct, frozen=True):
    """Give back the nodes held for a parked job and put it into the queue."""

    job_id: str


Action = Interrupt | Resume


class Policy(Protocol):
    """A scheduler. ``plan`` is all that a policy of one's own needs; see CONTRIBUTING."""

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which queued attempts to start, or to reject, now."""

    def recover(self, view: View, failure: Failure) -> Iterable[Action]:
        """What to interrupt when nodes fail; attempts hit and not named are requeued whole."""

    def review(self, view: View) -> Iterable[Action]:
        """Asked at every message: what has come due or fallen through since ``recover``."""


class Requeue:
    """Mixed into a policy that has no opinion on failures: what is hit goes first in the queue."""

    def recover(self, view: View, failure: Failure) -> Iterable[Action]:
        """Leave it to the session: each attempt hit is requeued from its last checkpoint."""
        return ()

    def review(self, view: View) -> Iterable[Action]:
        """Nothing is ever pending."""
        return ()


__all__ = [
    "Action", "Attempt", "Cause", "Changes", "Failure", "Interrupt", "NodeSet", "Policy",
    "Priority", "Reject", "Requeue", "Resume", "Running", "Start", "View",
]  # fmt: skip
