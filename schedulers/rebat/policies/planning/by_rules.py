# SPDX-License-Identifier: Apache-2.0
"""The planning of all schedulers: the rules plan and start attempts (`rebat.rules.plan`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rebat.contract import Changes, PlannedStarts, Proposal, View
from rebat.contract.proposals import PlanByRules
from rebat.policies.composition import Planning
from rebat.policies.placement.plans import Placement
from rebat.policies.windows import Announced


class RulePlanning(Planning):
    """The planning of a `Point`. Its queues and its plans are tables of the simulation.

    Parameters
    ----------
    point : Point
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
        placement: Placement,
        announced: Announced | None = None,
        decide: Callable[..., Iterable[Proposal]] | None = None,
    ) -> None:
        self.point, self._placement = point, placement
        self._announced, self._decide = announced, decide

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the proposal to plan by the rules after these changes."""
        decide = partial(self._decide, view) if self._decide else None
        announced = self._announced.rows if self._announced else ()
        return [PlanByRules(self.point, changes, self._placement, announced, decide=decide)]

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts of the queued attempts in the most recent plan, or why they wait."""
        planned: PlannedStarts = view._by_rules.planned()
        return planned

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return why attempts wait: limits that bar them, or the next shelf."""
        reasons: dict[str, str] = view._by_rules.reasons()
        return reasons
