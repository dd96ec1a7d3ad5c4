"""Placements: which of the free nodes an attempt gets.

A chooser is a function of the nodes that are free as long as they are needed (a mask), the number
wanted and the machine; it gives the nodes, or None when what is free will not do.
`chosen.ChosenPlan`
plans with any of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet
from rebat.kernels.pool import lowest_of
from rebat.policies.base import Machine

Mask = npt.NDArray[np.bool_]
"""One entry a node, shape (n,)."""

Chooser = Callable[[Mask, int, Machine], NodeSet | None]


def lowest(free: Mask, n_nodes: int, machine: Machine) -> NodeSet | None:
    """The lowest-numbered ones."""
    out = np.empty((len(free) // 2 + 1, 2), dtype=np.int64)
    k = lowest_of(free, n_nodes, out)
    return NodeSet(out[:k].copy()) if k >= 0 else None
