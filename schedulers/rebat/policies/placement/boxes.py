# SPDX-License-Identifier: Apache-2.0
"""Placements on a torus: boxes of allocation blocks, or blocks in a line.

Source: Vardas et al. 2022, section 2.2: Slurm-linear, the random partition selector (RPS) and
failure-aware partition selection (FAPS). In the paper, jobs run one at a time. Here, a plan
reserves boxes for many jobs. If an attempt starts now, FAPS chooses the box that is least likely to
fail during the attempt. If an attempt starts later, FAPS reserves the box with the lowest corner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Machine
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.kernels.box_free import LINEAR, LOWEST, line
from rebat.kernels.box_sums import first_box, random_box
from rebat.models.boxes import MIDPLANES, TIE, Boxes, TorusBlocks
from rebat.models.topology import INTREPID, MIRA, Torus, parse_extents, parse_torus
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.placement.hazards import Hazards

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KNOWN = {torus.n_nodes: torus for torus in (MIRA, INTREPID, Torus((8, 8, 8, 8)))}
"""Tori of known machines by number of nodes."""


class Site(msgspec.Struct, frozen=True):
    """Options of a torus: its extents, its division into blocks, and its list of boxes."""

    torus: str = "auto"
    """Extents or name of the torus. ``auto``: the known torus with this number of nodes."""
    block: str = "auto"
    """Extents of a block. ``auto``: a midplane if the machine has midplanes, otherwise a node."""
    boxes: str = "all"
    """Which boxes to choose from; see `models.box_list`."""

    def check(self) -> None:
        """Raise InputError for invalid or inconsistent extents."""
        if self.torus != "auto":
            self.blocks(parse_torus(self.torus).n_nodes)
        elif self.block != "auto":
            parse_extents(self.block)

    def blocks(self, n_nodes: int) -> TorusBlocks:
        """Return the blocks of a machine with ``n_nodes`` nodes."""
        if self.torus == "auto":
            if n_nodes not in KNOWN:
                names = ", ".join(f"{torus} ({n})" for n, torus in KNOWN.items())
                raise InputError(
                    f"no torus is known for {exactly(n_nodes, 'node')}",
                    "axis torus",
                    f"its extents, like torus=4x4x2, or one of {names}",
                )
            torus = KNOWN[n_nodes]
        else:
            torus = parse_torus(self.torus)
        if torus.n_nodes != n_nodes:
            raise InputError(
                f"{torus} has {torus.n_nodes} nodes", "axis torus", f"the machine's {n_nodes}"
            )
        block = MIDPLANES.get(torus) if self.block == "auto" else parse_extents(self.block)
        return TorusBlocks(torus, block)


class Division:
    """The blocks of a machine and its boxes. The boxes of a size are computed at first use."""

    def __init__(self, site: Site, n_nodes: int) -> None:
        self.blocks, self._which = site.blocks(n_nodes), site.boxes
        self._boxes: dict[int, Boxes] = {}

    def boxes(self, volume: int) -> Boxes:
        """Return the boxes of ``volume`` blocks."""
        if volume not in self._boxes:
            self._boxes[volume] = Boxes(self.blocks.torus, volume, self._which)
        return self._boxes[volume]

    @cached_property
    def neighbours(self) -> Ints:
        """Neighbours of each block, shape (blocks, neighbours)."""
        torus = self.blocks.torus
        near = [torus.neighbours(block) for block in range(torus.n_nodes)]
        return np.array(near, dtype=np.int64).reshape(torus.n_nodes, -1)

    def contacts(self, free: Mask) -> Floats:
        """Return the number of busy neighbours of each block, shape (blocks,)."""
        busy: Floats = np.count_nonzero(~free[self.neighbours], axis=1).astype(np.float64)
        return busy

    def nodes(self, taken: Mask) -> NodeSet:
        """Return the nodes of the blocks that are set in a mask."""
        members = self.blocks.members[taken].ravel()
        if self.blocks.size > 1:
            members = np.sort(members)
        return NodeSet.of_sorted(members)


Picker = Callable[[Division, Boxes, Mask, Request, Machine], int]
"""Function that returns the index of the box for an attempt that starts now.

It returns -1 if no box is free.
"""


def lowest_box(
    division: Division, boxes: Boxes, free: Mask, request: Request, machine: Machine
) -> int:
    """Return the free box with the lowest corner."""
    sums = boxes.raw_sums((~free).astype(np.int32))
    return int(first_box(sums, boxes.chosen))


class RandomBox(msgspec.Struct, frozen=True):
    """A rule that chooses a random free box. All free boxes have the same probability.

    The draws depend only on the seed and the attempt.
    """

    seed: int = 0

    def __call__(
        self, division: Division, boxes: Boxes, free: Mask, request: Request, machine: Machine
    ) -> int:
        sums = boxes.raw_sums((~free).astype(np.int32))
        return int(random_box(sums, boxes.chosen, self.seed, request.serial))


def most_contact(
    division: Division, boxes: Boxes, free: Mask, request: Request, machine: Machine
) -> int:
    """Return the free box with the most busy neighbours.

    This choice keeps other free blocks together.
    """
    return _best(boxes, np.where(free, -division.contacts(free), math.inf), None)


class LeastHazard(msgspec.Struct, frozen=True):
    """A rule that chooses the box that is least likely to fail during the attempt's walltime.

    This is equation 2 of the paper, with the sign of equation 1 corrected. Among equal boxes, the
    rule chooses the box with the lowest corner, or with ``by_contact`` the box with the most busy
    neighbours. Hazards depend on the time since the last repair, or with ``from_failure`` on the
    time since the last failure. The laws that draw the failures of a run use the time since the
    last failure.
    """

    hazards: Hazards
    by_contact: bool = False
    from_failure: bool = False

    def __call__(
        self, division: Division, boxes: Boxes, free: Mask, request: Request, machine: Machine
    ) -> int:
        nodes = division.blocks.members[free]  # an infinite cost excludes boxes with busy blocks
        uptime_us = machine.age_us if self.from_failure else machine.uptime_us
        uptime_s = uptime_us[nodes.ravel()] / 1e6
        hazard = self.hazards.of(nodes.ravel()).hazard(uptime_s, request.length_us / 1e6)
        cost = np.full(len(free), math.inf)
        cost[free] = hazard.reshape(nodes.shape).sum(axis=1)
        return _best(boxes, cost, -division.contacts(free) if self.by_contact else None)

    def check(self, n_nodes: int) -> None:
        """Raise InputError if the hazards are those of a machine of another size."""
        if isinstance(self.hazards, Sized) and len(self.hazards) != n_nodes:
            error = f"has laws for {exactly(len(self.hazards), 'node')}"
            raise InputError(error, "axis foresight", f"laws for the machine's {n_nodes}")


def _best(boxes: Boxes, cost: Floats, second: Floats | None) -> int:
    """Return the index of the box with the lowest cost.

    If several boxes have this cost, return the one with the lowest sum of ``second``.
    """
    if second is None:
        return boxes.least(cost)
    sums = boxes.sums(cost)
    least = sums.min()
    ties = np.flatnonzero(sums <= least + TIE * abs(least))
    return -1 if math.isinf(least) else int(ties[np.argmin(boxes.sums(second)[ties])])


class BoxChooser:
    """A chooser (see ``choosers``) of boxes on a torus, or of blocks in a line.

    Parameters
    ----------
    site : Site
    rule : int
        Rule of `kernels.box_free` for attempts that start later.
    pick : Picker, optional
        Rule for an attempt that starts now (default: ``rule``).
    seed : int
        Seed of the rule RANDOM.
    """

    def __init__(
        self, site: Site, rule: int = LOWEST, pick: Picker | None = None, seed: int = 0
    ) -> None:
        self.site, self.rule, self.pick, self.seed = site, rule, pick, seed
        self._division: Division | None = None
        self._later: Picker = lowest_box if rule == LOWEST else RandomBox(seed)

    def division(self, n_nodes: int) -> Division:
        """Return the division of a machine with ``n_nodes`` nodes."""
        if self._division is None or self._division.blocks.of_nodes.n_nodes != n_nodes:
            self._division = Division(self.site, n_nodes)
            if isinstance(self.pick, LeastHazard):
                self.pick.check(n_nodes)
        return self._division

    def without_place(self, busy: Mask, n_nodes: int, sizes: set[int]) -> list[int]:
        """Return the sizes (numbers of nodes) for which no box, or no line of blocks, is free.

        ``busy`` states for each block whether it is in use, shape (blocks,).
        """
        division = self.division(n_nodes)
        blocks = division.blocks
        if self.rule == LINEAR:
            taken = np.zeros(len(busy), dtype=np.uint8)
            counts = {size: blocks.in_line_for(size) for size in sorted(sizes)}
            return [size for size, n in counts.items() if not line(busy.view(np.uint8), n, taken)]
        boxes = {size: division.boxes(blocks.count_for(size)) for size in sorted(sizes)}
        counted = busy.astype(np.int32)
        return [
            size for size, of in boxes.items() if first_box(of.raw_sums(counted), of.chosen) < 0
        ]

    def __call__(self, free: Mask, request: Request, machine: Machine) -> NodeSet | None:
        """Return the nodes of a free box, or of free blocks in a line.

        Return None if there are none.
        """
        division = self.division(machine.n_nodes)
        blocks = division.blocks
        free_blocks = blocks.whole(free)
        if self.rule == LINEAR:
            taken = np.zeros(len(free_blocks), dtype=np.uint8)
            count = blocks.in_line_for(request.n_nodes)
            fits = bool(line((~free_blocks).view(np.uint8), count, taken))
            return division.nodes(taken.view(np.bool_)) if fits else None
        boxes = division.boxes(blocks.count_for(request.n_nodes))
        pick = self.pick if self.pick and request.wait_us == 0 else self._later
        index = pick(division, boxes, free_blocks, request, machine)
        return None if index < 0 else NodeSet.of_sorted(blocks.nodes(boxes.box(index)))
