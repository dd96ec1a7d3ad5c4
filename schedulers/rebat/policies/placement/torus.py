# SPDX-License-Identifier: Apache-2.0
"""Placements on a torus and their options: blocks in a line, and boxes.

Source: Vardas et al. 2022, section 2.2.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from rebat.kernels.box_free import LINEAR, LOWEST, RANDOM
from rebat.models.boxes import LISTS, Allotment, TorusBlocks
from rebat.policies.placement.boxed import BoxPlan
from rebat.policies.placement.boxes import BoxChooser, LeastHazard, Picker, Site, most_contact
from rebat.policies.placement.hazards import ForesightOption, Hazards, assumed, believed
from rebat.policies.placement.plans import Placement, PlacementOptions
from rebat.policies.variants import choice, text

PICKS: dict[str, Picker | None] = {"corner": None, "surface": most_contact}
"""Rules that choose the box of an attempt that starts now. FAPS uses them for equal hazards."""

Extents = Annotated[
    str,
    text(
        str,
        "Size of the torus in each dimension, like 8x12x16x16x2. auto: by the number of nodes "
        "(Mira, Intrepid and 8x8x8x8).",
        ("auto",),
    ),
]
Unit = Annotated[
    str,
    text(
        str,
        "Size of a block in each dimension, like 4x4x4x4x2. Blocks are allocated as a whole. "
        "auto: midplanes if the machine has midplanes, otherwise nodes.",
        ("auto",),
    ),
]
BoxList = Annotated[
    str,
    choice(
        LISTS,
        "Boxes to choose from: all boxes (all), aligned boxes (aligned), or aligned boxes with the "
        "smallest surface (16).",
    ),
]
Pick = Annotated[
    str,
    choice(
        PICKS,
        "Box for an attempt that starts now: the box with the lowest corner (corner), or with the "
        "most busy neighbours (surface). faps uses this rule among equally safe boxes.",
    ),
]


class LinearOptions(PlacementOptions, frozen=True, tag="slurm-linear"):
    """Choose the first free blocks in a line of nodes, like Slurm's linear plugin."""

    torus: Extents = "auto"
    unit: Unit = "auto"

    @property
    def site(self) -> Site:
        """The division of the torus."""
        return Site(self.torus, self.unit)

    def check(self) -> None:
        """Raise InputError for invalid or inconsistent extents."""
        self.site.check()

    def blocks(self, n_nodes: int) -> TorusBlocks:
        return self.site.blocks(n_nodes)

    def allotted(self, n_nodes: int) -> Allotment:
        """Return a function from a requested number of nodes to the size of a line of blocks."""
        blocks = self.blocks(n_nodes)
        return lambda request: blocks.in_line_for(request) * blocks.size

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return boxed(BoxChooser(self.site, LINEAR))


class _BoxOptions(LinearOptions, frozen=True):
    """Boxes of a torus."""

    boxes: BoxList = "all"

    @property
    def site(self) -> Site:
        """The division of the torus."""
        return Site(self.torus, self.unit, self.boxes)

    def allotted(self, n_nodes: int) -> Allotment:
        """Return a function from a requested number of nodes to the size of the box."""
        blocks = self.blocks(n_nodes)
        return lambda request: blocks.count_for(request) * blocks.size


class TorusFirstOptions(_BoxOptions, frozen=True, tag="torus-first"):
    """Choose the free box with the lowest corner."""

    pack: Pick = "corner"

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return boxed(BoxChooser(self.site, LOWEST, PICKS[self.pack]))


class RandomOptions(_BoxOptions, frozen=True, tag="rps"):
    """Choose a random free box; the option seed determines the choices."""

    random: ClassVar[bool] = True

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return boxed(BoxChooser(self.site, RANDOM, seed=seed))


class FapsOptions(_BoxOptions, frozen=True, tag="faps"):
    """Choose the box with the lowest failure probability (failure-aware partition selection)."""

    pack: Pick = "corner"
    foresight: ForesightOption = "law"

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        from_failure = believed(self.foresight)[0] == "law"
        pick = LeastHazard(assumed(self.foresight, hazards), self.pack == "surface", from_failure)
        return boxed(BoxChooser(self.site, LOWEST, pick))


def boxed(choose: BoxChooser) -> Placement:
    """Return a placement that chooses boxes on a torus."""
    return Placement(choose, lambda machine, inside: BoxPlan(machine, choose))
