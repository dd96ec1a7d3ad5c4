# SPDX-License-Identifier: Apache-2.0
"""The planning of all schedulers: the rules plan and start attempts (`rebat.rules.plan`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rebat.contract import Changes, PlannedStarts, Proposal, View
from rebat.contract.proposals import PlanByRules
from rebat.core.attempts import Attempt
from rebat.policies.composition import Planning
from rebat.policies.parted import Parts
from rebat.policies.placement.plans import Placement
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.queue_order import Key, QueueOrder, at_its_place, bound
from rebat.policies.windows import Announced


class RulePlanning(Planning):
    """The planning of a `Point`. Its queues and its plans are tables of the simulation.

    Parameters
    ----------
    point : Point
    orders : dict
        Queue orders that the rules do not have, for example a function in a file. The keys are the
        names that partitions have. The empty name is that of the scheduler.
    parts : Parts
    placement : Placement
    announced : Announced, optional
        The reservations that administrators announce during the run.
    decide : callable, optional
        Function that decides which attempts start, instead of the rules: the field of
        `PlanByRules`, with the view as its first argument.
    """

    def __init__(
        self,
        point: Any,
        orders: Mapping[str, QueueOrder],
        parts: Parts,
        placement: Placement,
        announced: Announced | None = None,
        decide: Callable[..., Iterable[Proposal]] | None = None,
    ) -> None:
        self.point, self._orders, self._is_bound = point, orders, False
        self._parts, self._announced, self._placement = parts, announced, placement
        self._decide = decide

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the proposal to plan by the rules after these changes."""
        if self._orders and not self._is_bound:
            margin_us, seed = self.point.planning.margin_us, self.point.common.seed
            self._orders = {
                name: bound(order, view, margin_us, seed) for name, order in self._orders.items()
            }
            self._is_bound = True
        key = partial(self._key, view) if self._orders else None
        decide = partial(self._decide, view) if self._decide else None
        announced = self._announced.rows if self._announced else ()
        return [PlanByRules(self.point, changes, self._placement, key, announced, decide=decide)]

    def _key(self, view: View, attempt: Attempt) -> tuple[str, Key] | None:
        """Return the order of an attempt's partition and its key, if Python computes it."""
        name = ""
        if self.point.parted:
            partition = self._parts.open(view).partition_of(view, attempt.job_id)
            name, attempt = partition.order, partition.adapted(attempt)
        if isinstance(self.point.planning, FifoOptions):
            attempt = at_its_place(attempt)
        return (name, self._orders[name](attempt)) if name in self._orders else None

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts of the queued attempts in the most recent plan, or why they wait."""
        planned: PlannedStarts = view._by_rules.planned()
        return planned

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return why attempts wait: limits that bar them, or the next shelf."""
        reasons: dict[str, str] = view._by_rules.reasons()
        return reasons
