# SPDX-License-Identifier: Apache-2.0
"""Defragmentation: move a job if the move makes room for the head of the queue.

On a torus, the head may wait although enough nodes are free, because the free nodes form no box.
This reaction moves the smallest job whose move makes room for the head, by checkpoint and restart.
Defragmentation is not in Rodríguez-Pascual et al. 2019. Their section 3.3.4 moves jobs "to make the
infrastructure available for parallel tasks".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rebat.contract import Move, News, Proposal, Stop, View, When
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.reactions.periodic import Period, Periodic, worth_moving

MOST_TRIED = 64
"""Maximum number of jobs to try in one round, smallest first."""


class Defragmentation(Periodic):
    """A reaction that moves one job at a time so that the head of the queue can start."""

    def __init__(self, options: DefragmentationOptions, context: Context) -> None:
        super().__init__(to_us(options.period), "defragment")
        self._choose = context.placement.choose
        self._order_on = context.order_on

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Move the smallest job whose move makes room for the head."""
        if not view.queue or view.stopping or view.scheduled or view.waiting:
            return
        head = min(view.queue.values(), key=self._order_on(view))
        free = view.machine.free
        if head.n_nodes > view.n_free or self._place(view, free, head) is not None:
            return
        usable = ~(view.machine.down | view.machine.drained)
        smallest = sorted(
            view.running.values(), key=lambda job: (job.attempt.n_nodes, job.attempt.serial)
        )
        for job in smallest[:MOST_TRIED]:
            nodes = self._elsewhere(view, job, head, free, usable)
            if nodes is not None and worth_moving(view, job):
                then = Move(nodes, job.attempt.priority)
                yield Stop(job.attempt.id, Cause.MOVED, When.IMAGE, then, "defragment")
                return

    def _place(self, view: View, free: Mask, attempt: Attempt) -> NodeSet | None:
        request = Request.now(attempt)
        return self._choose(free, request, view.machine)

    def _elsewhere(
        self, view: View, job: Running, head: Attempt, free: Mask, usable: Mask
    ) -> NodeSet | None:
        """Return nodes to which a job can move so that the head fits.

        Return None if there are none.
        """
        vacated = free.copy()
        job.nodes.put(vacated, True)
        vacated &= usable
        for_head = self._place(view, vacated, head)
        if for_head is None:
            return None
        for_head.put(vacated, False)
        nodes = self._place(view, vacated, job.attempt)
        return None if nodes is None else nodes.first(job.attempt.n_nodes)


class DefragmentationOptions(ReactionOptions, frozen=True, tag="defragment"):
    """Move a job if this makes room for the first job of the queue."""

    moves_jobs: ClassVar[bool] = True
    serves_queue: ClassVar[bool] = True

    kind = Defragmentation

    period: Period = 60.0
