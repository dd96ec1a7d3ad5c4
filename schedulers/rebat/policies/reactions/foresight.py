"""Proactive migration: jobs leave nodes that are likely to fail soon, and nothing starts there.

The law is that of failure-aware partitions (Vardas et al. 2022, section 2.2): a node whose
probability to survive the time ahead falls below a threshold is drained, and what runs there is
moved by checkpoint and restart (Rodríguez-Pascual et al. 2019) while there is somewhere to go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rebat.core.attempts import Cause, Running
from rebat.core.nodes import NodeSet
from rebat.core.proposals import Drain, Move, Proposal, Stop, Undrain, When
from rebat.policies.base import News, View
from rebat.policies.placement.boxes import Hazards
from rebat.policies.placement.choosers import Chooser, Mask, Request
from rebat.policies.reactions.images import worth_moving
from rebat.policies.reactions.periodic import Periodic

WHY = "foresee"


class Foresight(Periodic):
    """Empties nodes before they fail.

    Parameters
    ----------
    period_us : int
    hazards : Hazards
        What is known of how nodes fail.
    from_failure : bool
        Ages count from the last failure, else from the last repair.
    ahead_us : int
        How far to look ahead.
    survival : float
        The least probability to survive that long with which a node is used.
    choose : Chooser
        The placement.
    """

    def __init__(
        self,
        period_us: int,
        hazards: Hazards,
        from_failure: bool,
        ahead_us: int,
        survival: float,
        choose: Chooser,
    ) -> None:
        super().__init__(period_us, WHY, restless=True)
        self._hazards, self._from_failure = hazards, from_failure
        self._ahead_s, self._limit = ahead_us / 1e6, -math.log(survival)
        self._choose = choose
        self._drained: set[int] = set()

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Take back what is safe again, drain what is not any more, move what runs there."""
        machine = view.machine
        ages_us = machine.age_us if self._from_failure else machine.uptime_us
        bad = self._hazards.hazard(ages_us / 1e6, self._ahead_s) > self._limit
        ours = np.zeros(view.n_nodes, dtype=np.bool_)
        ours[list(self._drained)] = True
        back = np.flatnonzero(ours & machine.drained & ~bad)
        new = np.flatnonzero(bad & ~machine.drained & ~machine.down)
        self._drained = (self._drained - set(back.tolist())) | set(new.tolist())
        if len(back):
            yield Undrain(NodeSet.of_sorted(back))
        if len(new):
            yield Drain(NodeSet.of_sorted(new), WHY)
        yield from self._move(view, news, bad)

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
        safe = free.copy()
        for node in one.nodes.where(~(bad | view.machine.drained)):
            safe[node] = True
        request = Request(attempt.n_nodes, attempt.walltime_us, 0, attempt.serial)
        found = self._choose(safe, request, view.machine)
        return None if found is None else found.first(attempt.n_nodes)
