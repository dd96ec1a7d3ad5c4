# SPDX-License-Identifier: Apache-2.0
"""The contract between session and policy: a view to read, proposals to answer with.

A policy has no I/O, reads no clock and draws from no global random stream. The session checks each
proposal and refuses, with a reason, what a real Batsim would abort on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.nodes import NodeSet
from rebat.core.proposals import (
    Drain,
    End,
    Move,
    Note,
    Proposal,
    Reject,
    Release,
    Requeue,
    Start,
    Stop,
    Undrain,
    Wait,
    Wake,
    When,
)
from rebat.core.shapes import Shape
from rebat.core.traits import USUAL, Traits
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.models.speedup import Speedup


class Machine(Protocol):
    """The nodes, for policies that choose among them; masks are copies, shape (n,)."""

    @property
    def n_nodes(self) -> int:
        """Nodes, up or down."""

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Usable, and not held."""

    @property
    def cores_per_node(self) -> int:
        """So many of these nodes, which are cores then, make up a node: k of c is kc to kc+c-1."""

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        """Who holds each node, shape (n,): the serial of an attempt that runs; -1: nobody."""

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """Failed."""

    @property
    def drained(self) -> npt.NDArray[np.bool_]:
        """Taken out of service by a Drain."""

    def drained_for(self, why: str, only: bool = False) -> npt.NDArray[np.bool_]:
        """Taken out of service by a Drain for this; with ``only`` for nothing else."""

    @property
    def uptime_us(self) -> npt.NDArray[np.int64]:
        """Since when each node is up, as a duration; 0 for a node that is down."""

    @property
    def age_us(self) -> npt.NDArray[np.int64]:
        """How long ago each node failed last, its repair included; as ``uptime_us`` for a node that
        has not failed since the simulation began."""


class Submission(msgspec.Struct, frozen=True, gc=False):
    """What the user said of a job; ``fields`` is all of its JSON, ``speedup`` its profile's,
    ``traits`` what the JSON says beside size and times."""

    id: str
    n_nodes: int
    walltime_us: int
    submit_us: int
    shape: Shape
    speedup: Speedup
    fields: Mapping[str, Any]
    traits: Traits = USUAL


class WaitingJob(Protocol):
    """A stopped job for which nodes are held."""

    @property
    def on(self) -> str:
        """The attempt whose stop it waits for; empty: none."""

    @property
    def held(self) -> Running | None:
        """The nodes held for it, as of something that runs; None: none is left."""

    @property
    def n_held(self) -> int:
        """How many of them are alive."""

    @property
    def n_lost(self) -> int:
        """How many of its nodes must be replaced: those that could not be used any more when it was
        stopped (failed, or drained), and those that have failed since."""


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
        """Nodes that are usable and hold no attempt."""

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Waiting attempts by id, in order of entry."""

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start; also those that are being stopped."""

    @property
    def stopping(self) -> Mapping[str, object]:
        """Running attempts whose kill is under way, by id."""

    @property
    def scheduled(self) -> Mapping[str, object]:
        """Running attempts that will be stopped at a checkpoint, by id."""

    @property
    def waiting(self) -> Mapping[str, WaitingJob]:
        """Stopped jobs for which nodes are held, by the job's id."""

    @property
    def all_submitted(self) -> bool:
        """Whether every job of the workload has been submitted."""

    @property
    def machine(self) -> Machine:
        """The nodes one by one."""

    def job(self, job_id: str) -> Submission:
        """What the user said of a job that is alive, or whose end is news; KeyError: of others."""

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        """How an attempt checkpoints; None if it does not."""

    def after_stop(self, attempt_id: str, when: When = When.NOW) -> Remaining:
        """What a running attempt would keep, and how long the stop would wait."""

    def walltime_after_us(
        self, attempt_id: str, remaining: Remaining, n_nodes: int | None = None
    ) -> int:
        """The walltime of what remains of a running attempt, on as many or on so many nodes."""

    def walltime_on_us(self, attempt_id: str, n_nodes: int) -> int:
        """The walltime of a queued attempt that starts on so many nodes; or of a running moldable
        job that starts over on them."""

    def image_us(self, attempt_id: str) -> int:
        """What a checkpoint and restart of an attempt costs (``When.IMAGE``)."""

    def why_not_image(self, attempt_id: str) -> str:
        """Why a running attempt cannot be checkpointed now; an empty text if it can."""

    def of_tag(self, tag: int) -> Running | None:
        """What runs and holds nodes by a tag, see ``machine.tags``; None: nodes are held for it."""

    def obstacle(self, nodes: NodeSet) -> int:
        """The first of these nodes that is not usable and free; -1 if all are."""


class News(msgspec.Struct):
    """What one message told: a policy reacts to it before anything is planned.

    ``failed`` nodes, and the running attempts ``hit`` by that: they are stopped and queued again,
    unless a proposal says otherwise. ``called_off``: those of them whose stop was to come for
    another reason. ``held_hit``: jobs that wait and lost nodes held for them. ``woken``: the tags
    of the wakes that are due. ``notices``: (kind, data) of Batsim's other events. ``refused``:
    what was not carried out, with its reason, or fell through.
    """

    arrived: list[Attempt] = []
    started: list[Running] = []
    ended: list[Running] = []
    failed: list[int] = []
    rejuvenated: list[int] = []
    hit: list[Running] = []
    called_off: list[str] = []
    held_hit: list[str] = []
    woken: list[str] = []
    notices: list[tuple[str, dict[str, Any]]] = []
    refused: list[tuple[str, str]] = []


class Changes(msgspec.Struct):
    """What happened since the policy was last asked to plan.

    ``started`` is what it had proposed itself and was accepted (what was not is ``refused``, and in
    the queue still). ``withdrawn`` names the jobs that were queued when it was last asked, and
    were rejected or started by a reaction. ``stopped`` gave their nodes back before their end;
    ``moved`` run somewhere without ever having been planned: a stop or a reaction put them there.
    ``held`` are nodes kept free for a job, as if an attempt ran there; when they are given back
    they are among the ``ended``. ``failed_nodes`` cannot be used any more (they failed, or were
    drained) and could when it was last asked, ``rejuvenated_nodes`` the other way round;
    ``failures`` and ``repairs`` count the events, also those that took each other back.
    ``failed_under`` names, for each failed node that an attempt still holds, that attempt, and
    ``rejuvenated_under`` for each rejuvenated one. ``woken`` are the tags of wakes that are
    due.
    """

    arrived: list[Attempt] = []
    resubmitted: list[Attempt] = []
    started: list[Running] = []
    ended: list[Running] = []
    stopped: list[Running] = []
    moved: list[Running] = []
    held: list[Running] = []
    failed_nodes: list[int] = []
    failed_under: list[str] = []
    rejuvenated_nodes: list[int] = []
    rejuvenated_under: list[str] = []
    failures: int = 0
    repairs: int = 0
    refused: list[tuple[str, str]] = []
    withdrawn: list[str] = []
    woken: list[str] = []

    def withdraw(self, attempt: Attempt) -> None:
        """A reaction took an attempt out of the queue; plans never told of it need not know."""
        for unheard in (self.arrived, self.resubmitted):
            if attempt in unheard:
                unheard.remove(attempt)
                return
        self.withdrawn.append(attempt.job_id)

    def leave(self, running: Running, how: list[Running]) -> None:
        """Something gave its nodes back; plans that were never told of it need not know."""
        if self.moved or self.held:
            for unplanned in (self.moved, self.held):
                if running in unplanned:
                    unplanned.remove(running)
                    return
        how.append(running)

    def __bool__(self) -> bool:
        return bool(
            self.arrived or self.resubmitted or self.ended or self.stopped or self.moved
            or self.held or self.failures or self.repairs or self.refused or self.withdrawn
            or self.woken
        )  # fmt: skip


class Policy:
    """A scheduler: ``plan`` is all that one of one's own needs."""

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """What is to become of what runs; asked at every message with news, before ``plan``.

        A message that only acknowledges has no news.

        Each proposal is carried out before the next one is asked for. By default nothing: the
        session stops what runs on failed nodes and queues it first, from its last checkpoint.
        """
        return ()

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        raise NotImplementedError


__all__ = [
    "Attempt", "Cause", "Changes", "Drain", "End", "Machine", "Move", "News", "NodeSet", "Note",
    "Policy", "Priority", "Proposal", "Reject", "Release", "Requeue", "Running", "Start", "Stop",
    "Submission", "Undrain", "View", "Wait", "Wake", "When",
]  # fmt: skip
