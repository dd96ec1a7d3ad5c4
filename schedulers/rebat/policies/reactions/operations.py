# SPDX-License-Identifier: Apache-2.0
"""What an administrator asks for is carried out: nodes are drained, jobs moved off them.

The seven steps of smigrate, section 3.3.1 of Rodríguez-Pascual et al., "Job migration in HPC
clusters by means of checkpoint/restart", 2019; or, as before it, a drained node empties as its jobs
end. Whatever a scheduler reacts to, it carries operations out first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from rebat.models.operations import DRAIN, KINDS, MIGRATE, Operation, operation_of
from rebat.policies.partitions import places_of
from rebat.policies.placement.choosers import Request, lowest

DRAINS = {"ignore": None, "migrate": True, "wait": False}
"""How drained nodes get empty: their jobs are checkpointed and go first in the queue, or end; or
events of these types are nothing to the scheduler, as they may be somebody else's."""

EVERYBODY = "all"

ORDER = "operation"
"""What nodes are drained for that an administrator drains."""


class Operations:
    """Carries operations out, or notes why not.

    Parameters
    ----------
    migrates : bool
        Checkpoint what runs on drained nodes.
    operators : sequence of str
        Who may ask, beside the administrator; 'all': everybody. A job's own user may move it.
    partitions : str
        See `partitions.read_partitions`: jobs do not leave those in which they may run.
    """

    def __init__(
        self,
        migrates: bool = True,
        operators: Sequence[str] = (EVERYBODY,),
        partitions: str = "",
    ) -> None:
        self._migrates, self._operators = migrates, frozenset(operators)
        self._partitions = partitions
        self._emptying: set[int] = set()

    def has_work(self, news: News) -> bool:
        """Whether something was asked for, or nodes are still to be emptied."""
        return bool(news.notices or self._emptying)

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Carry out what was asked for, and empty nodes on."""
        for kind, data in news.notices:
            if kind in KINDS:
                try:
                    operation = operation_of({"type": kind} | data)
                    self._check(view, operation)
                except InputError as error:
                    raise error.at(f"event {kind}") from None
                yield from self._carry_out(view, news, operation)
        if self._emptying:
            yield from self._empty(view, news)

    def _check(self, view: View, operation: Operation) -> None:
        count = view.n_nodes // view.machine.cores_per_node
        if operation.nodes is not None and int(operation.nodes.intervals[-1, 1]) >= count:
            node = int(operation.nodes.intervals[-1, 1])
            raise InputError(f"node {node} is not on the machine", expected=f"0 to {count - 1}")

    def _carry_out(self, view: View, news: News, operation: Operation) -> Iterator[Proposal]:
        if operation.kind == MIGRATE:
            yield from self._migrate(view, operation)
        elif not self._may(operation.user):  # step 1
            yield Note(f"{operation.kind} of {operation.nodes}", f"{operation.user} may not")
        elif operation.kind == DRAIN:
            yield from self._drain(view, news, operation)
        else:
            yield from self._undrain(view, operation)

    def _may(self, user: str) -> bool:
        return not user or EVERYBODY in self._operators or user in self._operators

    # ---- nodes

    def _drain(self, view: View, news: News, operation: Operation) -> Iterator[Proposal]:
        """Steps 2 to 5: all nodes of an operation are emptied, or none."""
        cores = self._cores(view, operation)
        new = cores.where(~view.machine.drained_for(ORDER))
        if not new.size:
            yield Note(f"drain of {operation.nodes}", "is drained already")
            return
        yield Drain(new, ORDER)  # step 2: at once, so that nothing starts there meanwhile
        if not self._migrates:
            return
        reasons = (self._why_not(view, one, operation) for one in self._on(view, news, new))
        reason = next(filter(None, reasons), "")
        if reason:  # steps 3 and 4
            yield Undrain(new, ORDER)
            yield Note(f"drain of {operation.nodes}", reason)
        else:
            self._emptying.update(new)

    def _cores(self, view: View, operation: Operation) -> NodeSet:
        assert operation.nodes is not None
        return processors_of(operation.nodes, view.machine.cores_per_node)

    def _on(self, view: View, news: News, nodes: NodeSet) -> list[Running]:
        """What runs on some of the nodes and is not gone in this instant anyway."""
        hit = {one.attempt.id for one in news.hit}
        return [
            one
            for name, one in view.running.items()
            if one.nodes.meets(nodes) and name not in view.stopping and name not in hit
        ]

    def _why_not(self, view: View, one: Running, operation: Operation) -> str:
        """Why a job cannot be moved off its nodes."""
        attempt = one.attempt
        refusal = view.why_not_image(attempt.id)
        if refusal:
            return f"job {attempt.job_id} {refusal.reason}"
        spans = len(np.unique(one.nodes.ids // view.machine.cores_per_node)) > 1
        if spans and not operation.spanning:
            return f"job {attempt.job_id} runs on several nodes"
        return ""

    def _empty(self, view: View, news: News) -> Iterator[Proposal]:
        """Step 5: checkpoint what runs there; it goes first in the queue.

        What is to be stopped at its next checkpoint anyway is left until then.
        """
        left = NodeSet.of(self._emptying)
        found = self._on(view, news, left)
        for one in found:
            if one.attempt.id not in view.scheduled and not view.why_not_image(one.attempt.id):
                then = Requeue(Priority.FAILED)
                yield Stop(one.attempt.id, Cause.MOVED, When.IMAGE, then, "drain")
        if not found:
            self._emptying.clear()  # step 6

    def _undrain(self, view: View, operation: Operation) -> Iterator[Proposal]:
        """Step 7: nodes are available again."""
        back = self._cores(view, operation).where(view.machine.drained_for(ORDER))
        self._emptying.difference_update(back)
        if back.size:
            yield Undrain(back, ORDER)
        else:
            yield Note(f"undrain of {operation.nodes}", "is not drained")

    # ---- jobs

    def _migrate(self, view: View, operation: Operation) -> Iterator[Proposal]:
        """One job is checkpointed, and goes to some nodes or first in the queue."""
        what = f"migration of job {operation.job}"
        one = self._running(view, operation.job)
        if one is None:
            yield Note(what, "it does not run, or is being moved already")
            return
        attempt = one.attempt
        own = operation.user and operation.user == view.job(attempt.job_id).traits.user
        if not (own or self._may(operation.user)):
            yield Note(what, f"{operation.user} may not")
            return
        reason = self._why_not(view, one, operation)
        then: Then | None = Requeue(Priority.FAILED)
        if operation.nodes is not None and not reason:
            then = self._target(view, one, operation)
            reason = "" if then else f"{operation.nodes} has too few free nodes that it may use"
            if isinstance(then, Move) and then.nodes == one.nodes:
                reason = "it runs there"
        if reason or then is None:
            yield Note(what, reason)
        else:
            yield Stop(attempt.id, Cause.MOVED, When.IMAGE, then, "migrate")

    def _running(self, view: View, job: str) -> Running | None:
        """The attempt of a job that runs on, by the job's id with or without its workload's."""
        for name, one in view.running.items():
            known = one.attempt.job_id
            if job in (known, job_name(known)):
                calm = name not in view.stopping and name not in view.scheduled
                return one if calm else None
        return None

    def _target(self, view: View, one: Running, operation: Operation) -> Move | None:
        """The lowest cores of the nodes that were asked for; the job's own count as free."""
        free = self._cores(view, operation).mask(view.n_nodes)
        vacant = view.machine.free
        one.nodes.put(vacant, True)
        free &= vacant & ~(view.machine.down | view.machine.drained)
        for place in places_of(view, self._partitions, one.attempt.job_id):
            nodes = lowest(free & place, Request.later(one.attempt), view.machine)
            if nodes is not None:
                return Move(nodes, Priority.FAILED)
        return None
