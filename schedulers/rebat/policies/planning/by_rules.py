# SPDX-License-Identifier: Apache-2.0
"""List scheduling by the rules (`rebat.rules.plan`), which start attempts themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rebat.contract import Changes, PlannedStarts, Proposal, View
from rebat.contract.proposals import PlanByRules
from rebat.policies.composition import Planning
from rebat.policies.queue_order import Key, QueueOrder, bound
from rebat.policies.windows import Windows


class RulePlanning(Planning):
    """The list scheduling of a `Point`. Its queue and its plan are tables of the simulation.

    ``order`` is a queue order that the rules do not have, for example a function in a file.
    ``windows`` contains the reservations, if there are any.
    """

    def __init__(
        self, point: Any, order: QueueOrder | None, windows: Windows | None = None
    ) -> None:
        self.point, self._order, self._is_bound = point, order, False
        self._windows = windows

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Start the attempts that are due, and reject those that can never start."""
        keys: list[Key] = []
        if self._order is not None:
            if not self._is_bound:
                margin_us, seed = self.point.planning.margin_us, self.point.common.seed
                self._order, self._is_bound = bound(self._order, view, margin_us, seed), True
            keys = [*map(self._order, (*changes.arrived, *changes.resubmitted))]
        announced = self._windows.announced if self._windows else ()
        return [PlanByRules(self.point, changes, keys, announced)]

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts of the queued attempts in the most recent plan."""
        planned: PlannedStarts = view._by_rules.planned()
        return planned

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the limits that bar attempts."""
        reasons: dict[str, str] = view._by_rules.reasons()
        return reasons
