# SPDX-License-Identifier: Apache-2.0
"""Shared inputs of the parts of a scheduler, and base classes of their options."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from rebat.contract import View
from rebat.core.numbers import exactly
from rebat.core.options import PAPER, Dialect
from rebat.policies.composition import Reaction
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.members import Members
from rebat.policies.malleable.rules import SizeRule, as_asked
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.plans import Placement
from rebat.policies.queue_order import QueueOrder, bound
from rebat.policies.variants import Options

RIGID = as_asked(MANAGERS["fpsma"])
"""The rule under which malleable jobs are treated as rigid jobs."""


class SizeLimit(msgspec.Struct, frozen=True):
    """Maximum size of jobs on a machine or partition of ``n_nodes`` nodes.

    ``n_spares`` of these nodes are spare nodes.
    """

    n_nodes: int
    n_spares: int = 0

    @property
    def most(self) -> int:
        """Largest number of nodes on which a job can start."""
        return self.n_nodes - self.n_spares

    def exceeded(self, n_nodes: int) -> str | None:
        """Return the reason why a job that requires ``n_nodes`` nodes can never start.

        Return None if the job can start.
        """
        if n_nodes <= self.most:
            return None
        reason = f"requires {exactly(n_nodes, 'node')}, but the maximum is {self.most}"
        if not self.n_spares:
            return reason
        return (
            f"{reason}: {self.n_spares} of {self.n_nodes} nodes are spare nodes; reserve fewer "
            "(spares=N), or add nodes (--nodes)"
        )


class Context(msgspec.Struct, frozen=True):
    """Inputs of a planning and of the reactions, in addition to their options.

    Attributes
    ----------
    order
        Queue order.
    seed
        Seed of random choices.
    margin_us : int
        Microseconds that the planning adds to every walltime.
    placement : Placement
    partitions : str
        See `partitions.read_partitions`.
    reserves : bool
        Whether nodes may be reserved.
    hazards : Hazards, optional
        The failure law of the run, if there is one.
    dialect : Dialect
    flexible : bool
        Whether the planning changes the sizes of jobs.
    rule : SizeRule
        Rule that decides when malleable jobs grow and shrink.
    members : Members
        State of the malleable jobs, shared by the planning and the reactions.
    n_spares : int
        Number of nodes reserved by reactions.
    hit_first : bool
        Whether idle nodes are reserved for queued attempts that lost a node.
    """

    order: QueueOrder
    seed: int
    placement: Placement
    partitions: str = ""
    reserves: bool = False
    hazards: Hazards | None = None
    dialect: Dialect = PAPER
    flexible: bool = False
    rule: SizeRule = RIGID
    members: Members = msgspec.field(default_factory=Members)
    n_spares: int = 0
    hit_first: bool = False
    margin_us: int = 0

    def order_on(self, view: View) -> QueueOrder:
        """Return the queue order of the planning on a machine."""
        return bound(self.order, view, self.margin_us, self.seed)

    def limit_on(self, n_nodes: int) -> SizeLimit:
        """Return the size limit of jobs on a machine of this size."""
        return SizeLimit(n_nodes, min(self.n_spares, n_nodes))


class PlanningOptions(Options, frozen=True):
    """Options of a planning, which decides on starts."""

    places: ClassVar[bool] = False
    """Whether a placement chooses the nodes of attempts."""

    @property
    def malleability(self) -> SizeRule | None:
        """The rule by which malleable jobs grow and shrink.

        None if malleable jobs are treated as rigid jobs.
        """
        return None

    @property
    def margin_us(self) -> int:
        """Microseconds that the planning adds to every walltime."""
        return 0


class ReactionOptions(Options, frozen=True):
    """Options of a reaction, which decides on running jobs."""

    in_each: ClassVar[str] = ""
    """Where the reaction acts separately: in each partition, or in each group of partitions with
    equal nodes. If the text is empty, it acts on the entire machine."""

    moves_jobs: ClassVar[bool] = False
    """Whether the reaction moves running jobs to other nodes."""

    serves_queue: ClassVar[bool] = False
    """Whether the reaction frees nodes for the first attempt of the queue."""

    @property
    def n_spares(self) -> int:
        """Number of nodes that the reaction reserves."""
        return 0

    @property
    def hit_first(self) -> bool:
        """Whether idle nodes are reserved for queued attempts that lost a node."""
        return False

    kind: ClassVar[Any]
    """Class of the reaction, called with the options and a context."""

    def make(self, context: Context) -> Reaction:
        """Return the reaction."""
        reaction: Reaction = self.kind(self, context)
        return reaction
