# SPDX-License-Identifier: Apache-2.0
"""Placements: a chooser (`choosers`), and the plan that reserves the chosen nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from rebat.contract import Machine
from rebat.models.boxes import Allotment, TorusBlocks
from rebat.policies.own import own_rule
from rebat.policies.placement.choosers import Chooser, OwnChooser, lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.placement.hazards import Hazards
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.queue import AvailabilityPlan
from rebat.policies.variants import Options


class Placement(msgspec.Struct, frozen=True):
    """A chooser, and the plan that works with it."""

    choose: Chooser
    fused: Callable[[Machine], AvailabilityPlan] | None = None
    """Function that creates a plan with the same results as `ChosenPlan`, but faster."""
    counted: bool = False
    """Whether the session may choose the nodes, because any free nodes are suitable."""
    alike: bool = False
    """Whether all free nodes are equally suitable."""

    def plan_on(self, machine: Machine) -> AvailabilityPlan:
        """Return an empty plan."""
        return self.fused(machine) if self.fused else ChosenPlan(machine, self.choose)


class PlacementOptions(Options, frozen=True):
    """Options of a placement, which chooses the nodes of attempts."""

    random: ClassVar[bool] = False
    """Whether the choice is random."""

    backwards: ClassVar[bool] = False
    """Whether the placement can choose nodes in descending order, for reversed partitions."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        """Return the placement. ``hazards`` is the failure law of the run, if there is one."""
        raise NotImplementedError

    def blocks(self, n_nodes: int) -> TorusBlocks | None:
        """Return the blocks that the placement allocates on a torus.

        Return None if it allocates nodes.
        """
        return None

    def allotted(self, n_nodes: int) -> Allotment | None:
        """Return a function from the requested to the allocated number of nodes.

        Return None if both numbers are always equal.
        """
        return None


class AnyOptions(PlacementOptions, frozen=True, tag="any"):
    """Plan only the number of nodes; an attempt gets the lowest free nodes when it starts."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(
            lowest, lambda machine: CountedPlan(machine.n_nodes), counted=True, alike=True
        )


class NamedOptions(PlacementOptions, frozen=True, tag="named"):
    """Plan particular nodes: the lowest-numbered nodes that stay free long enough."""

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(lowest, alike=True)


class CustomOptions(PlacementOptions, frozen=True):
    """Choose nodes with a function in a file, FILE.py:FUNCTION."""

    file: str

    @property
    def name(self) -> str:
        """The file and its function."""
        return self.file

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(own_rule("placement", self.file, OwnChooser))
