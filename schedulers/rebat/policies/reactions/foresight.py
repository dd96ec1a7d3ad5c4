# SPDX-License-Identifier: Apache-2.0
"""Proactive migration: jobs leave nodes that are likely to fail soon, and nothing starts there.

The law is that of failure-aware partitions (Vardas et al. 2022, section 2.2): a node whose
probability to survive the time ahead falls below a threshold is drained, and what runs there is
moved by checkpoint and restart (Rodríguez-Pascual et al. 2019) while there is somewhere to go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import numpy as np

from rebat.contract import Drain, Move, News, Proposal, Stop, Undrain, View, When
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
    """Empties nodes before they fail; jobs stay in their partitions.

    Ages count from the last failure with the law of the run, else from the last repair.
    """

    def __init__(self, options: ForesightOptions, context: Context) -> None:
        super().__init__(to_us(options.period), WHY, restless=True)
        self._hazards = assumed(options.foresight, context.hazards)
        self._from_failure = believed(options.foresight)[0] == "law"
        self._ahead_s, self._limit = to_us(options.ahead) / 1e6, -math.log(options.survival)
        self._choose, self._partitions = context.placement.choose, context.partitions

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Take back what is safe again, drain what is not any more, move what runs there."""
        bad = self._suspect(view)
        ours = view.machine.drained_for(WHY)
        back, new = np.flatnonzero(ours & ~bad), np.flatnonzero(bad & ~ours)
        if len(back):
            yield Undrain(NodeSet.of_sorted(back), WHY)
        if len(new):
            yield Drain(NodeSet.of_sorted(new), WHY)
        yield from self._move(view, news, bad)

    def _suspect(self, view: View) -> Mask:
        """The nodes that are not to be used, the likeliest to fail: no more than leave enough for
        the widest job that waits, which else might wait for ever; and none where jobs wait and
        nothing runs."""
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
        hit = {one.attempt.id for one in news.hit}
        free = view.machine.free & ~bad
        for one in list(view.running.values()):
            attempt = one.attempt
            if attempt.id in hit or not one.nodes.of_each(bad).any():
                continue
            nodes = self._target(view, one, free, bad)
            if nodes is not None and worth_moving(view, one):
                nodes.put(free, False)
                then = Move(nodes, attempt.priority)
                yield Stop(attempt.id, Cause.MOVED, When.IMAGE, then, WHY)

    def _target(self, view: View, one: Running, free: Mask, bad: Mask) -> NodeSet | None:
        """As many nodes that are safe; its own where the placement has it so."""
        attempt = one.attempt
        safe = free | (one.nodes.mask(view.n_nodes) & ~(bad | view.machine.drained))
        request = Request.now(attempt)
        for place in places_of(view, self._partitions, attempt.job_id):
            found = self._choose(safe & place, request, view.machine)
            if found is not None:
                return found.first(attempt.n_nodes)
        return None


class ForesightOptions(ReactionOptions, frozen=True, tag="foresee"):
    """Jobs leave nodes that are likely to fail soon, and nothing starts there."""

    kind = Foresight

    period: Period = 60.0
    foresight: ForesightOption = "law"
    ahead: Annotated[float, number(1e-3, 1e9, "seconds", "Seconds to look ahead.")] = 3600.0
    survival: Annotated[
        float,
        number(
            1e-9, 1 - 1e-9, "a probability",
            "Least probability that a node survives this time, with which it is used.",
        ),
    ] = 0.9  # fmt: skip

    def check(self) -> None:
        """Raise InputError for a foresight without probabilities."""
        if self.foresight in FORESIGHTS:
            what = f"foresight {self.foresight!r} knows no probabilities"
            raise InputError(what, "react foresee", "law, fit or FILE.csv")
