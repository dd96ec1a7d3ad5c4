# SPDX-License-Identifier: Apache-2.0
"""Operations of an administrator: drain nodes, and move jobs off them.

Rules carry out operations (`rebat.rules.operations`). If the rules do not cover a run, the session
asks the reaction of this module, which makes the same decisions. A scheduler carries out operations
before it calls its other reactions. With the option ``drain=wait``, the jobs on drained nodes run
to their ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from rebat.contract import (
    Drain,
    Move,
    News,
    Note,
    Proposal,
    Requeue,
    Stop,
    Then,
    Undrain,
    View,
    When,
)
from rebat.core.attempts import Cause, Priority, Running, job_name
from rebat.core.cores import processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.operations import ANNOUNCE, DRAIN, KINDS, MIGRATE, Operation, operation_of
from rebat.policies.partitions import places_of
from rebat.policies.placement.choosers import Request, lowest
from rebat.policies.windows import Announced
from rebat.rules.operations import why_not_migrate, why_not_move
from rebat.state import codes

DRAINS = {"ignore": None, "migrate": True, "wait": False}
"""What happens to jobs on drained nodes. True: they are checkpointed and requeued with the highest
priority. False: they run to their ends. None: the scheduler ignores operations, which may be events
for another program."""

EVERYBODY = "all"

ORDER = "operation"
"""Reason of drains by an administrator."""

BY_DRAIN, BY_MIGRATION = "drain", "migrate"
"""Reasons of stops."""

SORTED = (
    "they are drained at the same time, but later, and stay drained. Batsim does not keep the "
    "order of lines with the same time: write operations and failures into separate --events files"
)

WHY_NOT_MOVE = {
    codes.UNWILLING: "cannot be checkpointed: its user set checkpointable to false",
    codes.NO_DELAY: "cannot be checkpointed: its profile is not a delay",
    codes.ON_DOWN_NODE: "cannot be checkpointed: one of its nodes is down",
    codes.SPANS: "runs on several nodes",
}
"""Why a job cannot be moved off its nodes."""

REFUSED = {
    codes.FORBIDDEN: "user {0.user} may not request operations",
    codes.NOT_ANNOUNCED: "the scheduler has no option reservations=announced",
    codes.DRAINED: "the nodes are already drained",
    codes.NOT_DRAINED: "the nodes are not drained",
    codes.DRAINED_LATER: f"the nodes are not drained; {SORTED}",
    codes.NOT_RUNNING: "the job does not run, or is already being moved",
    codes.TOO_FEW_FREE: "{0.nodes} has too few free nodes for the job",
    codes.RUNS_THERE: "the job already runs there",
    codes.NOT_MOVABLE: "job {1} {2}",
}
"""Why an operation is refused: the operation, and the job that cannot be moved, with the reason."""


def refused(operation: Operation, why: int, job_id: str = "", detail: int | str = "") -> Note:
    """Return the note that an operation is refused. ``detail`` is why the job cannot be moved."""
    subject = f"{operation.kind} of {operation.nodes}"
    if operation.kind == MIGRATE:
        subject = f"migration of job {operation.job}"
    elif why == codes.NOT_ANNOUNCED:
        subject = f"announcement for {operation.nodes}"
    detail = WHY_NOT_MOVE.get(detail, "") if isinstance(detail, int) else detail
    return Note(subject, f"is refused: {REFUSED[why].format(operation, job_id, detail)}")


def may_request(user: str, operators: Collection[str]) -> bool:
    """Return whether a user may request operations. An empty text is the administrator."""
    return not user or EVERYBODY in operators or user in operators


def check_nodes(operation: Operation, count: int) -> None:
    """Raise InputError if a node of an operation is not on the machine, which has ``count``."""
    if operation.nodes is not None and int(operation.nodes.intervals[-1, 1]) >= count:
        node = int(operation.nodes.intervals[-1, 1])
        raise InputError(f"node {node} is not on the machine", expected=f"0 to {count - 1}")


class Operations:
    """A reaction that carries out operations. If an operation is impossible, it records the reason.

    Parameters
    ----------
    migrates : bool
        Whether to checkpoint the jobs on drained nodes.
    operators : sequence of str
        Users who may request operations in addition to the administrator. 'all' means every user.
        Owners may always move their jobs.
    partitions : str
        See `partitions.read_partitions`. Jobs stay in the partitions in which they may run.
    """

    def __init__(
        self,
        migrates: bool = True,
        operators: Sequence[str] = (EVERYBODY,),
        partitions: str = "",
        announced: Announced | None = None,
    ) -> None:
        self._migrates, self._operators = migrates, frozenset(operators)
        self._partitions, self._announced = partitions, announced
        self._emptying: set[int] = set()

    def has_work(self, news: News) -> bool:
        """Return whether there are new events, or nodes to empty."""
        return bool(news.notices or self._emptying)

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Carry out new operations, and continue to empty nodes."""
        operations = [*self._operations(view, news)]
        for number, operation in enumerate(operations, start=1):
            yield from self._carry_out(view, news, operation, operations[number:])
        if self._emptying:
            yield from self._empty(view, news)

    def _operations(self, view: View, news: News) -> Iterator[Operation]:
        for kind, data in news.notices:
            if kind in KINDS:
                try:
                    operation = operation_of({"type": kind} | data)
                    check_nodes(operation, view.n_nodes // view.machine.cores_per_node)
                except InputError as error:
                    raise error.at(f"event {kind}") from None
                yield operation

    def _carry_out(
        self, view: View, news: News, operation: Operation, later: Sequence[Operation]
    ) -> Iterator[Proposal]:
        """Carry out an operation. ``later`` are the other operations of the same time."""
        if operation.kind == MIGRATE:
            yield from self._migrate(view, operation)
        elif not may_request(operation.user, self._operators):  # step 1
            yield refused(operation, codes.FORBIDDEN)
        elif operation.kind == ANNOUNCE:
            yield from self._announce(view, operation)
        elif operation.kind == DRAIN:
            yield from self._drain(view, news, operation)
        else:
            yield from self._undrain(view, operation, later)

    # ---- nodes

    def _drain(self, view: View, news: News, operation: Operation) -> Iterator[Proposal]:
        """Start to empty the nodes of a drain (steps 2 to 5).

        If one of their jobs cannot move, the drain is refused.
        """
        cores = self._cores(view, operation)
        new = cores.where(~view.machine.drained_for(ORDER))
        if not new.size:
            yield refused(operation, codes.DRAINED)
            return
        yield Drain(new, ORDER)  # step 2 comes first, so that no job starts on these nodes
        if not self._migrates:
            return
        for job in self._on(view, news, new):
            if reason := self._why_not(view, job, operation):  # steps 3 and 4
                yield Undrain(new, ORDER)
                yield refused(operation, codes.NOT_MOVABLE, job.attempt.job_id, reason)
                return
        self._emptying.update(new)

    def _announce(self, view: View, operation: Operation) -> Iterator[Note]:
        """Add a reservation, so that no job starts that would run during the maintenance."""
        if self._announced is None:
            yield refused(operation, codes.NOT_ANNOUNCED)
            return
        begin_us, end_us = operation.begin_us, operation.end_us
        self._announced.add(self._cores(view, operation), begin_us, end_us)

    def _cores(self, view: View, operation: Operation) -> NodeSet:
        assert operation.nodes is not None
        return processors_of(operation.nodes, view.machine.cores_per_node)

    def _on(self, view: View, news: News, nodes: NodeSet) -> list[Running]:
        """Return the attempts on these nodes that are not being stopped now."""
        hit = {job.attempt.id for job in news.hit}
        return [
            job
            for name, job in view.running.items()
            if job.nodes.meets(nodes) and name not in view.stopping and name not in hit
        ]

    def _why_not(self, view: View, job: Running, operation: Operation) -> str:
        """Return why a job cannot be moved off its nodes.

        The text is empty if the job can be moved.
        """
        if refusal := view.why_not_image(job.attempt.id):
            return refusal.reason
        spans = len(np.unique(job.nodes.ids // view.machine.cores_per_node)) > 1
        return WHY_NOT_MOVE.get(why_not_move(0, False, spans, operation.spanning), "")

    def _empty(self, view: View, news: News) -> Iterator[Proposal]:
        """Checkpoint the jobs on drained nodes, and requeue them at the head of the queue (step 5).

        If a job is already scheduled to stop at its next checkpoint, it runs until this checkpoint.
        """
        jobs = self._on(view, news, NodeSet.of(self._emptying))
        for job in jobs:
            if job.attempt.id not in view.scheduled and not view.why_not_image(job.attempt.id):
                then = Requeue(Priority.FAILED)
                yield Stop(job.attempt.id, Cause.MOVED, When.IMAGE, then, BY_DRAIN)
        if not jobs:
            self._emptying.clear()  # step 6

    def _undrain(
        self, view: View, operation: Operation, later: Sequence[Operation]
    ) -> Iterator[Proposal]:
        back = self._cores(view, operation).where(view.machine.drained_for(ORDER))
        self._emptying.difference_update(back)
        if back.size:
            yield Undrain(back, ORDER)
        else:
            drains = (other.nodes for other in later if other.kind == DRAIN and other.nodes)
            is_later = operation.nodes and any(map(operation.nodes.meets, drains))
            yield refused(operation, codes.DRAINED_LATER if is_later else codes.NOT_DRAINED)

    # ---- jobs

    def _migrate(self, view: View, operation: Operation) -> Iterator[Proposal]:
        """Checkpoint a job, and move it to given nodes or requeue it at the head of the queue."""
        job, why, may = self._running(view, operation.job), "", False
        then: Then | None = Requeue(Priority.FAILED)
        if job is not None:
            why = self._why_not(view, job, operation)
            user = view.job(job.attempt.job_id).traits.user
            may = may_request(operation.user, self._operators) or operation.user == user
            if operation.nodes is not None and not why:
                then = self._target(view, job, operation)
        is_same = job is not None and isinstance(then, Move) and then.nodes == job.nodes
        refusal = why_not_migrate(job is not None, may, bool(why), then is not None, is_same)
        if job is None or then is None or refusal >= 0:
            job_id = job.attempt.job_id if job else ""
            yield refused(operation, refusal, job_id, why)
        else:
            yield Stop(job.attempt.id, Cause.MOVED, When.IMAGE, then, BY_MIGRATION)

    def _running(self, view: View, job: str) -> Running | None:
        """Return the running attempt of a job. The id of the job may lack the workload name.

        Return None if a stop of the attempt is under way or scheduled.
        """
        for name, running in view.running.items():
            job_id = running.attempt.job_id
            if job in (job_id, job_name(job_id)):
                calm = name not in view.stopping and name not in view.scheduled
                return running if calm else None
        return None

    def _target(self, view: View, job: Running, operation: Operation) -> Move | None:
        """Return a move to the lowest free cores of the operation. Return None if too few are free.

        The current cores of the job count as free.
        """
        free = self._cores(view, operation).mask(view.n_nodes)
        vacant = view.machine.free
        job.nodes.put(vacant, True)
        free &= vacant & ~(view.machine.down | view.machine.drained)
        for place in places_of(view, self._partitions, job.attempt.job_id):
            nodes = lowest(free & place, Request.later(job.attempt), view.machine)
            if nodes is not None:
                return Move(nodes, Priority.FAILED)
        return None
