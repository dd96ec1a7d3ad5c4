# SPDX-License-Identifier: Apache-2.0
"""Preemption: stop jobs that are later in the queue order, after a grace time.

On RSC (Kokolis et al., HPCA 2025), priority rises with size, and a job can be preempted after it
has run for two hours. The queue order ``largest`` together with this reaction models RSC.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from rebat.contract import News, Proposal, Requeue, Stop, View, When
from rebat.core.attempts import SECOND_ORDER, Attempt, Cause, Priority
from rebat.core.units import FOREVER_US, to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.queue_order import Key
from rebat.policies.reactions.periodic import Period, Periodic
from rebat.policies.variants import number


class Preemption(Periodic):
    """A reaction that stops running jobs until the head of the queue fits.

    The last job in queue order is stopped first. The planning may start other jobs than the head on
    the released nodes, for example jobs of a higher tier. To avoid endless stops, each job is
    stopped only once for the same head.
    """

    def __init__(self, options: PreemptionOptions, context: Context) -> None:
        super().__init__(to_us(options.period), "preempt")
        self._grace_us = to_us(options.grace)
        self._order_on = context.order_on
        self._stopped_for: dict[str, set[str]] = {}  # the stopped jobs, by waiting attempt

    def ripe_us(self, view: View, news: News) -> int:
        """Return when the next job has run for the grace time.

        Return the present time if the message is more than a wake-up of this reaction: for example,
        a job can return to the queue, or a node to service.
        """
        if news.woken != [self._name]:
            return view.now_us
        if not view.queue:
            return FOREVER_US
        ends_us = (job.start_us + self._grace_us for job in view.running.values())
        return min((at_us for at_us in ends_us if at_us > self._last_us), default=FOREVER_US)

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Preempt jobs for the head of the queue, if enough later jobs may be preempted."""
        if not view.queue or view.stopping or view.scheduled or view.waiting:
            return
        order = self._order_on(view)
        head = min(view.queue.values(), key=order)

        def place(attempt: Attempt) -> Key:
            if attempt.priority != Priority.REGULAR:
                attempt = msgspec.structs.replace(attempt, priority=Priority.REGULAR)
            return order(attempt)

        short, chosen, first = head.n_nodes - view.n_free, [], place(head)
        hit = {running.attempt.id for running in news.hit}
        stopped = self._stopped_for_head(view, head)
        places = [
            (place(job.attempt), job)
            for job in view.running.values()
            if job.attempt.job_id not in stopped
            and job.attempt.id not in hit
            and view.now_us - job.start_us >= self._grace_us
        ]
        later = sorted((row for row in places if row[0] > first), key=itemgetter(0), reverse=True)
        if sum(job.attempt.n_nodes for _, job in later) < short:
            return  # most rounds end here, so masks of all nodes come later
        usable = ~(view.machine.down | view.machine.drained)
        for _, job in later:
            if short <= 0:
                break
            chosen.append(job)
            short -= int(np.count_nonzero(job.nodes.of_each(usable)))
        if short <= 0:
            why = SECOND_ORDER if head.priority >= Priority.FAILED else f"for {head.job_id}"
            stopped.update(job.attempt.job_id for job in chosen)
            for job in chosen:
                then = Requeue(Priority.REGULAR)
                yield Stop(job.attempt.id, Cause.PREEMPTED, When.NOW, then, why)

    def _stopped_for_head(self, view: View, head: Attempt) -> set[str]:
        """Return the jobs that were stopped for the head.

        Delete the entries of attempts that left the queue.
        """
        waiting = {name: jobs for name, jobs in self._stopped_for.items() if name in view.queue}
        self._stopped_for = waiting
        return waiting.setdefault(head.id, set())


class PreemptionOptions(ReactionOptions, frozen=True, tag="preempt"):
    """Preempt jobs that are later in the queue order, for the first job of the queue."""

    serves_queue: ClassVar[bool] = True

    kind = Preemption
    boxless: ClassVar[str] = "free nodes may form no box"
    uncustom: ClassVar[bool] = True

    period: Period = 60.0
    grace: Annotated[
        float, number(0, 1e9, "seconds", "Time for which a job runs before it can be preempted.")
    ] = 7200.0
