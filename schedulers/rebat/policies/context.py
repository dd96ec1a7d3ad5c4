# SPDX-License-Identifier: Apache-2.0
"""What the parts of one scheduler share, and the options of plannings and reactions."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from rebat.core.dialect import PAPER, Dialect
from rebat.policies.composition import Planning, Reaction
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.members import Members
from rebat.policies.malleable.rules import SizeRule, as_asked
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.plans import Placement
from rebat.policies.queue_order import QueueOrder
from rebat.policies.variants import Options

RIGID = as_asked(MANAGERS["fpsma"])
"""How malleable jobs are treated by a planning that knows no others than rigid ones."""


class Context(msgspec.Struct, frozen=True):
    """What a planning and the reactions are made from, in addition to their own options.

    Attributes
    ----------
    order, seed
        The queue order, and the seed of what is drawn.
    placement : Placement
    partitions : str
        See `partitions.read_partitions`.
    hazards : Hazards, optional
        The law of the run, where there is one.
    dialect : Dialect
    flexible : bool
        Whether the planning changes the sizes of jobs.
    rule : SizeRule
        How malleable jobs are treated.
    members : Members
        What is known of malleable jobs.
    n_spares : int
        Nodes that a reaction keeps for itself.
    hit_first : bool
        Whether idle nodes are for attempts that were hit and wait.
    """

    order: QueueOrder
    seed: int
    placement: Placement
    partitions: str = ""
    hazards: Hazards | None = None
    dialect: Dialect = PAPER
    flexible: bool = False
    rule: SizeRule = RIGID
    members: Members = msgspec.field(default_factory=Members)
    n_spares: int = 0
    hit_first: bool = False


class PlanningOptions(Options, frozen=True):
    """How starts are decided."""

    places: ClassVar[bool] = False
    """Whether attempts get the nodes that a placement chooses."""

    @property
    def malleability(self) -> SizeRule | None:
        """How malleable jobs are treated; None: as rigid ones."""
        return None

    kind: ClassVar[Any]
    """What it makes, from the options and a context."""

    def make(self, context: Context) -> Planning:
        """Return the planning."""
        planning: Planning = self.kind(self, context)
        return planning


class ReactionOptions(Options, frozen=True):
    """What to do with what runs."""

    @property
    def n_spares(self) -> int:
        """Nodes that it keeps for itself."""
        return 0

    @property
    def hit_first(self) -> bool:
        """Whether idle nodes are for attempts that were hit and wait."""
        return False

    kind: ClassVar[Any]
    """What it makes, from the options and a context."""

    def make(self, context: Context) -> Reaction:
        """Return the reaction."""
        reaction: Reaction = self.kind(self, context)
        return reaction
