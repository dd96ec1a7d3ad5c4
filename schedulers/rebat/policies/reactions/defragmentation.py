# SPDX-License-Identifier: Apache-2.0
"""Defragmentation: a job is moved when that makes room for the head of the queue.

On a torus the head may wait although enough nodes are free: no box of them is. Of the jobs whose
move would free one, and that have somewhere else to go, the smallest is moved, by checkpoint and
restart. Beyond Rodríguez-Pascual et al. 2019, whose section 3.3.4 moves jobs "to make the
infrastructure available for parallel tasks".
"""

from __future__ import annotations

from collections.abc import Iterator

from rebat.contract import Move, News, Proposal, Stop, View, When
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.queue_order import bound
from rebat.policies.reactions.periodic import Period, Periodic, worth_moving

MOST_TRIED = 64
"""So many of the smallest jobs are tried at each date."""


class Defragmentation(Periodic):
    """Moves one job at a time out of the way of the head of the queue."""

    def __init__(self, options: DefragmentationOptions, context: Context) -> None:
        super().__init__(to_us(options.period), "defragment")
        self._choose = context.placement.choose
        self._order, self._seed = context.order, context.seed

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Move the smallest job whose nodes and those that are free hold a place for the head."""
        if not view.queue or view.stopping or view.scheduled or view.waiting:
            return
        head = min(view.queue.values(), key=bound(self._order, view.n_nodes, 0, self._seed))
        free = view.machine.free
        if head.n_nodes > view.n_free or self._place(view, free, head) is not None:
            return
        usable = ~(view.machine.down | view.machine.drained)
        smallest = sorted(
            view.running.values(), key=lambda one: (one.attempt.n_nodes, one.attempt.serial)
        )
        for one in smallest[:MOST_TRIED]:
            nodes = self._elsewhere(view, one, head, free, usable)
            if nodes is not None and worth_moving(view, one):
                then = Move(nodes, one.attempt.priority)
                yield Stop(one.attempt.id, Cause.MOVED, When.IMAGE, then, "defragment")
                return

    def _place(self, view: View, free: Mask, attempt: Attempt) -> NodeSet | None:
        """All nodes that an attempt would get now."""
        request = Request.now(attempt)
        return self._choose(free, request, view.machine)

    def _elsewhere(
        self, view: View, one: Running, head: Attempt, free: Mask, usable: Mask
    ) -> NodeSet | None:
        """Where a job can go that has to leave room for the head; None: that would not help."""
        vacated = free.copy()
        one.nodes.put(vacated, True)
        vacated &= usable
        for_head = self._place(view, vacated, head)
        if for_head is None:
            return None
        for_head.put(vacated, False)
        found = self._place(view, vacated, one.attempt)
        return None if found is None else found.first(one.attempt.n_nodes)


class DefragmentationOptions(ReactionOptions, frozen=True, tag="defragment"):
    """A job is moved when that makes room for the head of the queue."""

    kind = Defragmentation

    period: Period = 60.0
