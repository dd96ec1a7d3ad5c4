# SPDX-License-Identifier: Apache-2.0
"""A placement is a chooser, and the plan that reserves what it chooses."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebat.policies.base import Machine
from rebat.policies.placement.boxes import BoxChooser
from rebat.policies.placement.choosers import Chooser, lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.planning.boxed import BoxPlan
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.list_scheduling import AvailabilityPlan
from rebat.policies.planning.named import NamedPlan


class Placement(msgspec.Struct, frozen=True):
    """A chooser; ``fused`` makes a plan on a machine that does the same, faster; ``backwards``
    is the same chooser from the last node on."""

    choose: Chooser
    fused: Callable[[Machine], AvailabilityPlan] | None = None
    backwards: Chooser | None = None

    def plan_on(self, machine: Machine) -> AvailabilityPlan:
        """An empty plan."""
        return self.fused(machine) if self.fused else ChosenPlan(machine, self.choose)


COUNTED = Placement(lowest, lambda machine: CountedPlan(machine.n_nodes))
NAMED = Placement(lowest, lambda machine: NamedPlan(machine.n_nodes))


def boxed(choose: BoxChooser) -> Placement:
    """Boxes on a torus."""
    return Placement(choose, lambda machine: BoxPlan(machine, choose))
