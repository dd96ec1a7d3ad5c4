# SPDX-License-Identifier: Apache-2.0
"""List scheduling by the rules (`rebat.rules.plan`), which start attempts themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rebat.contract import Changes, PlannedStarts, Proposal, View
from rebat.contract.proposals import PlanByRules
from rebat.policies.composition import Planning


class RulePlanning(Planning):
    """The list scheduling of a `Point`. Its queue and its plan are tables of the simulation."""

    def __init__(self, point: Any) -> None:
        self.point = point

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Start the attempts that are due, and reject those that can never start."""
        return [PlanByRules(self.point, changes)]

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts of the queued attempts in the most recent plan."""
        planned: PlannedStarts = view._by_rules.planned()
        return planned

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the limits that bar attempts."""
        reasons: dict[str, str] = view._by_rules.reasons()
        return reasons
