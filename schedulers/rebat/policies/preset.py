# SPDX-License-Identifier: Apache-2.0
"""A scheduler by name: a point in the product of the axes (see ``axes``)."""

from __future__ import annotations

import msgspec

from rebat.core.options import SessionOptions
from rebat.models.power import NodePower, read_power
from rebat.models.units import Allotment
from rebat.policies.axes import own_sources, policy_of, session_options_of
from rebat.policies.base import Policy
from rebat.policies.choosing import effective
from rebat.policies.own import OwnCode
from rebat.policies.partitions import Partition, partitions_on
from rebat.policies.placement.boxes import Hazards
from rebat.policies.placement.table import PLACEMENTS, allotment, believed
from rebat.policies.point import Axes


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: what it is, where it comes from, and its point in the product."""

    name: str
    summary: str
    source: str
    axes: Axes
    told: Hazards | None = None

    def make(self) -> Policy:
        """A fresh policy."""
        return policy_of(self.axes, self.told)

    @property
    def draws_places(self) -> bool:
        """Whether its placement draws at random."""
        placement = PLACEMENTS.get(self.axes.placement)
        return placement is not None and "seed" in placement.axes

    @property
    def foresees(self) -> bool:
        """Whether it goes by how nodes fail."""
        return "foresight" in effective(self.axes)

    @property
    def foresight(self) -> str:
        """What it goes by, without how it is misjudged: 'law', 'fit', or something else."""
        return believed(self.axes.foresight)[0]

    def reseeded(self, seed: int) -> Preset:
        """The same with another seed, which depends on its own and on this one."""
        mixed = (self.axes.seed + seed) % 2**63
        return msgspec.structs.replace(self, axes=msgspec.structs.replace(self.axes, seed=mixed))

    def knowing(self, told: Hazards | None) -> Preset:
        """The same, told how nodes fail."""
        return msgspec.structs.replace(self, told=told)

    def allotted(self, n_nodes: int) -> Allotment | None:
        """How many nodes of a machine are taken for an attempt that asks for so many; None: as
        many."""
        return allotment(self.axes, n_nodes) if "torus" in effective(self.axes) else None

    def carrying_out(self) -> Preset:
        """The same, which carries operations out unless it is told otherwise."""
        if self.axes.drain != "auto":
            return self
        return msgspec.structs.replace(
            self, axes=msgspec.structs.replace(self.axes, drain="migrate")
        )

    def partitions(self, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
        """The partitions of a machine, where it has some."""
        told = self.axes.partitions if "partitions" in effective(self.axes) else ""
        return partitions_on(told, n_nodes, cores_per_node)

    @property
    def power(self) -> NodePower | None:
        """What its nodes take, where that is given."""
        return read_power(self.axes.power) if self.axes.power else None

    @property
    def session(self) -> SessionOptions:
        """The options of the session that it runs in."""
        return session_options_of(self.axes)

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """The files with rules of one's own, for the records."""
        return tuple(own_sources(self.axes).values())
