# SPDX-License-Identifier: Apache-2.0
"""Placements: which free nodes an attempt gets.

A *chooser* is a function that returns nodes for an attempt, or None if the attempt does not fit.
Its arguments are a mask of the nodes that are free for the required time, a request, and the
machine. If a chooser returns more nodes than requested, the additional nodes stay empty.
`chosen.ChosenPlan` plans with any chooser.
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
"""A Boolean for each node, shape (n,)."""


class Request(msgspec.Struct, frozen=True):
    """A request for nodes."""

    n_nodes: int
    length_us: int
    """Duration for which the nodes are needed, in microseconds."""
    wait_us: int = 0
    """Time until the start, in microseconds. 0 means that the attempt starts now."""
    serial: int = 0
    """Serial of the attempt."""

    @classmethod
    def now(cls, attempt: Attempt) -> Request:
        """Return the request of an attempt that starts immediately."""
        return cls(attempt.n_nodes, attempt.walltime_us, 0, attempt.serial)

    @classmethod
    def later(cls, attempt: Attempt) -> Request:
        """Return the request of an attempt for a later start, to check whether it ever fits."""
        return cls(attempt.n_nodes, attempt.walltime_us, 1, attempt.serial)


Chooser = Callable[[Mask, Request, Machine], NodeSet | None]


def lowest(free: Mask, request: Request, machine: Machine) -> NodeSet | None:
    """Return the free nodes with the lowest numbers. Return None if too few nodes are free."""
    if np.count_nonzero(free) < request.n_nodes:
        return None
    out = np.empty((len(free) // 2 + 1, 2), dtype=np.int64)
    k = lowest_of(free, request.n_nodes, out)
    return NodeSet(out[:k].copy(), request.n_nodes)


class OwnChooser(msgspec.Struct, frozen=True):
    """A user-defined placement: a function with the arguments of a chooser."""

    rule: Rule

    def __call__(self, free: Mask, request: Request, machine: Machine) -> NodeSet | None:
        """Check the nodes that the function chooses, and return them."""
        nodes = self.rule(free.copy(), request, machine)
        if nodes is None:
            return None
        if not isinstance(nodes, NodeSet) or nodes.size < request.n_nodes:
            raise UnfitAnswer(self.rule, nodes, f"a NodeSet of {request.n_nodes} nodes, or None")
        if not all(node < len(free) and free[node] for node in nodes):
            raise UnfitAnswer(self.rule, nodes, "free nodes")
        return nodes
