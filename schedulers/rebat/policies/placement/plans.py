# SPDX-License-Identifier: Apache-2.0
"""Placements: a chooser (`choosers`), and the plan that reserves the chosen nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from rebat.contract import Machine
from rebat.models.boxes import Allotment, TorusBlocks
from rebat.policies.own import own_rule
from rebat.policies.placement.choosers import Chooser, Mask, OwnChooser, lowest
from rebat.policies.placement.chosen import ChosenPlan
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.places import Places
from rebat.policies.variants import Options


class Placement(msgspec.Struct, frozen=True):
    """A chooser, and the plan that works with it."""

    choose: Chooser
    fused: Callable[[Machine, Mask], Places] | None = None
    """Function that creates a plan with the same results as `ChosenPlan`, but faster."""
    alike: bool = False
    """Whether all free nodes are equally suitable. Then the rules plan without a chooser."""
    is_own: bool = False
    """Whether the chooser is user-defined, so that it may have state."""

    def plan_on(self, machine: Machine, inside: Mask) -> Places:
        """Return an empty plan of some nodes of a machine."""
        if self.fused:
            return self.fused(machine, inside)
        return ChosenPlan(machine, self.choose, inside, self.is_own)


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
        return Placement(lowest, alike=True)


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
        return Placement(own_rule("placement", self.file, OwnChooser), is_own=True)
