# SPDX-License-Identifier: Apache-2.0
"""Placements: which of the free nodes an attempt gets.

A chooser is a function of the nodes that are free as long as they are needed (a mask), the request
and the machine; it gives the nodes, or None when what is free will not do. More nodes than were
asked for are a partition of which some stay empty. `chosen.ChosenPlan` plans with any chooser.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Machine
from rebat.core.attempts import Attempt
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import lowest_of
from rebat.policies.own import Rule, UnfitAnswer

Mask = npt.NDArray[np.bool_]
"""One entry a node, shape (n,)."""


class Request(msgspec.Struct, frozen=True):
    """What nodes are wanted for: how many, from ``wait_us`` from now on (0: it starts now), for
    ``length_us``. ``serial`` tells the attempts apart."""

    n_nodes: int
    length_us: int
    wait_us: int = 0
    serial: int = 0

    @classmethod
    def now(cls, attempt: Attempt) -> Request:
        """For an attempt that is to start on the nodes at once."""
        return cls(attempt.n_nodes, attempt.walltime_us, 0, attempt.serial)

    @classmethod
    def later(cls, attempt: Attempt) -> Request:
        """For a question whether an attempt would fit."""
        return cls(attempt.n_nodes, attempt.walltime_us, 1, attempt.serial)


Chooser = Callable[[Mask, Request, Machine], NodeSet | None]


def lowest(free: Mask, request: Request, machine: Machine) -> NodeSet | None:
    """The lowest-numbered ones."""
    if np.count_nonzero(free) < request.n_nodes:
        return None
    out = np.empty((len(free) // 2 + 1, 2), dtype=np.int64)
    k = lowest_of(free, request.n_nodes, out)
    return NodeSet(out[:k].copy(), request.n_nodes)


class OwnChooser(msgspec.Struct, frozen=True):
    """A placement from a function of a mask of free nodes, a request and the machine."""

    rule: Rule

    def __call__(self, free: Mask, request: Request, machine: Machine) -> NodeSet | None:
        """The function's nodes."""
        nodes = self.rule(free.copy(), request, machine)
        if nodes is None:
            return None
        if not isinstance(nodes, NodeSet) or nodes.size < request.n_nodes:
            raise UnfitAnswer(self.rule, nodes, f"a NodeSet of {request.n_nodes} nodes, or None")
        if not all(node < len(free) and free[node] for node in nodes):
            raise UnfitAnswer(self.rule, nodes, "nodes that are free")
        return nodes
