"""Placements by name: a chooser, and the plan that reserves what it chooses."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebat.policies.base import Machine
from rebat.policies.placement.choosers import Chooser, lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.list_scheduling import AvailabilityPlan
from rebat.policies.planning.named import NamedPlan


class Placement(msgspec.Struct, frozen=True):
    """A chooser; ``fused`` makes a plan for a number of nodes that does the same, faster."""

    choose: Chooser
    fused: Callable[[int], AvailabilityPlan] | None = None

    def plan_on(self, machine: Machine) -> AvailabilityPlan:
        """An empty plan."""
        return self.fused(machine.n_nodes) if self.fused else ChosenPlan(machine, self.choose)


PLACEMENTS: dict[str, Placement] = {
    "any": Placement(lowest, CountedPlan),
    "named": Placement(lowest, NamedPlan),
}
"""What a plan reserves: numbers of nodes, which get the lowest ids when they start; or nodes by
name, the lowest that stay free long enough."""
