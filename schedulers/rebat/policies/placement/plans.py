# SPDX-License-Identifier: Apache-2.0
"""A placement is a chooser, and the plan that reserves what it chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from rebat.contract import Machine
from rebat.models.units import Allotment, Units
from rebat.policies.own import own_rule
from rebat.policies.placement.choosers import Chooser, OwnChooser, lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.placement.hazards import Hazards
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.named import NamedPlan
from rebat.policies.planning.queue import AvailabilityPlan
from rebat.policies.variants import Options


class Placement(msgspec.Struct, frozen=True):
    """A chooser; ``fused`` makes a plan on a machine that does the same, faster; ``backwards``
    is the same chooser from the last node on; ``counted``: the session may choose as well."""

    choose: Chooser
    fused: Callable[[Machine], AvailabilityPlan] | None = None
    backwards: Chooser | None = None
    counted: bool = False

    def plan_on(self, machine: Machine) -> AvailabilityPlan:
        """Return an empty plan."""
        return self.fused(machine) if self.fused else ChosenPlan(machine, self.choose)


class PlacementOptions(Options, frozen=True):
    """Which nodes an attempt gets."""

    random: ClassVar[bool] = False
    """Whether it draws nodes at random."""

    backwards: ClassVar[bool] = False
    """Whether it can choose from the last node on, for reversed partitions."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        """Return the placement; ``hazards`` is the law of the run, where there is one."""
        raise NotImplementedError

    def units(self, n_nodes: int) -> Units | None:
        """Return the units of a torus that are allocated as a whole; None: nodes are."""
        return None

    def allotted(self, n_nodes: int) -> Allotment | None:
        """Return how many nodes an attempt takes that asks for a number; None: as many."""
        return None


class AnyOptions(PlacementOptions, frozen=True, tag="any"):
    """Numbers of nodes are planned; what starts gets the lowest free ones."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(lowest, lambda machine: CountedPlan(machine.n_nodes), counted=True)


class NamedOptions(PlacementOptions, frozen=True, tag="named"):
    """Nodes are planned by name: the lowest that stay free long enough."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(lowest, lambda machine: NamedPlan(machine.n_nodes))


class CustomOptions(PlacementOptions, frozen=True):
    """A chooser from the user's file, FILE.py:FUNCTION."""

    file: str

    @property
    def name(self) -> str:
        """The file and its function."""
        return self.file

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(own_rule("placement", self.file, OwnChooser))
