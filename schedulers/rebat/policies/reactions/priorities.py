# SPDX-License-Identifier: Apache-2.0
"""Priorities: move jobs into better partitions (earlier in the list), to fill the nodes there.

Algorithm 2, section 3.3.4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019. The image with the listing is lost. Here, each round moves the largest
job that fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rebat.contract import Move, News, Proposal, Stop, View, When
from rebat.core.attempts import Cause, Running
from rebat.core.errors import InputError
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.partitions import (
    Partition,
    PartitionsOption,
    open_to,
    partitions_on,
    read_partitions,
)
from rebat.policies.placement.choosers import Request
from rebat.policies.reactions.periodic import Period, Periodic, worth_moving


class Priorities(Periodic):
    """A reaction that moves jobs, one at a time, to a better partition of the same tier.

    It acts only while no job waits. Better partitions are earlier in the list.
    """

    def __init__(self, options: PrioritiesOptions, context: Context) -> None:
        super().__init__(to_us(options.period), "priorities")
        self._partitions, self._choose = options.partitions, context.placement.choose

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Move the largest job that fits in a better partition and whose move is worth the cost."""
        if view.queue or view.stopping or view.scheduled or view.waiting:
            return
        machine = view.machine
        places = partitions_on(self._partitions, machine.n_nodes, machine.cores_per_node)
        vacant = machine.free
        for i, better in enumerate(places[:-1]):
            room = int(np.count_nonzero(better.nodes.of_each(vacant)))
            small = [job for job in view.running.values() if job.attempt.n_nodes <= room]
            free = vacant & better.nodes.mask(view.n_nodes)
            for job in sorted(small, key=lambda job: (-job.attempt.n_nodes, job.nodes.lowest)):
                if not self._may_rise(view, job, better, places[i:]):
                    continue
                attempt = job.attempt
                request = Request.now(attempt)
                nodes = self._choose(free, request, machine)
                if nodes is not None:
                    then = Move(nodes, attempt.priority)
                    yield Stop(attempt.id, Cause.MOVED, When.IMAGE, then, "promote")
                    return

    def _may_rise(
        self, view: View, job: Running, better: Partition, places: tuple[Partition, ...]
    ) -> bool:
        """Return whether a job may run in ``better``, and now runs only in worse partitions."""
        inside = [
            place
            for place in places[1:]
            if place.tier == better.tier and place.nodes.meets(job.nodes)
        ]
        if not inside or better.nodes.meets(job.nodes):
            return False
        traits = view.job(job.attempt.job_id).traits
        return better in open_to(places, traits) and worth_moving(view, job)


class PrioritiesOptions(ReactionOptions, frozen=True, tag="priorities"):
    """While no job waits, move jobs into better partitions (those earlier in the list)."""

    moves_jobs: ClassVar[bool] = True
    kind = Priorities

    period: Period = 60.0
    partitions: PartitionsOption = ""

    def check(self) -> None:
        """Raise InputError if there are fewer than two partitions."""
        if len(read_partitions(self.partitions)) < 2:
            expected = "two or more partitions for react=priorities: high:0%-25%+low:25%-100%"
            raise InputError(f"is {self.partitions!r}", "axis partitions", expected)
