# SPDX-License-Identifier: Apache-2.0
"""Proactive migration: move jobs off nodes that are likely to fail soon, and drain these nodes.

The criterion is that of failure-aware partition selection (Vardas et al. 2022, section 2.2). A node
is drained if its probability of surviving the next ``ahead`` seconds is below a threshold. Its jobs
are moved by checkpoint and restart (Rodríguez-Pascual et al. 2019) if there is room elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np

from rebat.contract import (
    Drain,
    Move,
    News,
    Proposal,
    Stop,
    Undrain,
    View,
    When,
)
from rebat.core.attempts import Cause, Running
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.partitions import places_of
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.placement.hazards import FORESIGHTS, ForesightOption, assumed, believed
from rebat.policies.reactions.periodic import Period, Periodic, worth_moving
from rebat.policies.variants import number

WHY = "foresee"


class Foresight(Periodic):
    """A reaction that empties nodes before they fail. Jobs stay in their partitions.

    If the foresight is the law of the run, the age of a node counts from its last failure.
    Otherwise it counts from its last repair.
    """

    def __init__(self, options: ForesightOptions, context: Context) -> None:
        super().__init__(to_us(options.period), WHY)
        self._hazards = assumed(options.foresight, context.hazards)
        self._from_failure = believed(options.foresight)[0] == "law"
        self._ahead_s, self._limit = to_us(options.ahead) / 1e6, -math.log(options.survival)
        self._choose, self._partitions = context.placement.choose, context.partitions

    def ripe_us(self, view: View, news: News) -> int:
        """Return the present time: the ages of nodes always change."""
        return view.now_us

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Undrain nodes that are safe again, drain unsafe nodes, and move their jobs."""
        bad = self._suspect(view)
        ours = view.machine.drained_for(WHY)
        back, new = np.flatnonzero(ours & ~bad), np.flatnonzero(bad & ~ours)
        if len(back):
            yield Undrain(NodeSet.of_sorted(back), WHY)
        if len(new):
            yield Drain(NodeSet.of_sorted(new), WHY)
        yield from self._move(view, news, bad)

    def _suspect(self, view: View) -> Mask:
        """Return a mask of the nodes to avoid: those that are most likely to fail.

        The mask leaves enough nodes for the largest queued job, which could otherwise wait forever.
        If jobs wait and no job runs, the mask is empty.
        """
        machine = view.machine
        ages_us = machine.age_us if self._from_failure else machine.uptime_us
        hazard = self._hazards.hazard(ages_us / 1e6, self._ahead_s)
        bad = (hazard > self._limit) & ~machine.down
        if view.queue and not view.running:
            return np.zeros_like(bad)
        widest = max((attempt.n_nodes for attempt in view.queue.values()), default=0)
        spare = max(0, view.n_up - widest)
        if np.count_nonzero(bad) > spare:
            order = np.argsort(-np.where(bad, hazard, -np.inf), kind="stable")
            bad[order[spare:]] = False
        return bad

    def _move(self, view: View, news: News, bad: Mask) -> Iterator[Proposal]:
        if view.stopping or view.scheduled:
            return
        hit = {job.attempt.id for job in news.hit}
        free = view.machine.free & ~bad
        for job in list(view.running.values()):
            attempt = job.attempt
            if attempt.id in hit or not job.nodes.of_each(bad).any():
                continue
            nodes = self._target(view, job, free, bad)
            if nodes is not None and worth_moving(view, job):
                nodes.put(free, False)
                then = Move(nodes, attempt.priority)
                yield Stop(attempt.id, Cause.MOVED, When.IMAGE, then, WHY)

    def _target(self, view: View, job: Running, free: Mask, bad: Mask) -> NodeSet | None:
        """Return safe nodes for a job, which may include some of its own.

        Return None if there are too few.
        """
        attempt = job.attempt
        safe = free | (job.nodes.mask(view.n_nodes) & ~(bad | view.machine.drained))
        request = Request.now(attempt)
        for place in places_of(view, self._partitions, attempt.job_id):
            nodes = self._choose(safe & place, request, view.machine)
            if nodes is not None:
                return nodes.first(attempt.n_nodes)
        return None


class ForesightOptions(ReactionOptions, frozen=True, tag="foresee"):
    """Move jobs off nodes that are likely to fail soon, and start no jobs on these nodes."""

    moves_jobs: ClassVar[bool] = True
    kind = Foresight

    period: Period = 60.0
    foresight: ForesightOption = "law"
    ahead: Annotated[
        float, number(1e-3, 1e9, "seconds", "How far to look ahead for failures, in seconds.")
    ] = 3600.0
    survival: Annotated[
        float,
        number(
            1e-9,
            1 - 1e-9,
            "a probability",
            "Drain a node if it survives the next 'ahead' seconds with a lower probability.",
        ),
    ] = 0.9

    def check(self) -> None:
        """Raise InputError if the foresight has no probabilities of failure."""
        if self.foresight in FORESIGHTS:
            error = f"foresight {self.foresight!r} has no probabilities"
            raise InputError(error, "react foresee", "law, fit or FILE.csv")
