# SPDX-License-Identifier: Apache-2.0
"""Placement ``cluster``: cores on few nodes for each attempt.

Section 4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019, uses nodes of 16 cores under Slurm. It does not define how jobs fill the
nodes. This placement reproduces the published shares of mixed nodes (neither full nor empty).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from rebat.contract import Machine
from rebat.core.nodes import NodeSet
from rebat.kernels.cores import fit
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.plans import Placement, PlacementOptions
from rebat.policies.variants import choice

FITS = {"best": True, "first": False}
"""Values of the option ``fit``.

True: an attempt that fits on one node gets the fullest node with enough free cores. A larger
attempt gets all cores of the emptiest nodes. False: every attempt gets the first suitable nodes.
"""


class CoresOfNodes(msgspec.Struct, frozen=True):
    """A chooser of cores on few nodes.

    ``best`` is a value of `FITS`. Equally suitable nodes are chosen in ascending order.
    """

    best: bool = True

    def __call__(self, free: Mask, request: Request, machine: Machine) -> NodeSet | None:
        out = np.empty((len(free) // 2 + 1, 2), dtype=np.int64)
        cores = machine.cores_per_node
        scratch = np.empty((2, len(free) // cores), dtype=np.int64)
        k = fit(free, cores, request.n_nodes, self.best, False, scratch, out)
        return NodeSet(out[:k].copy()) if k >= 0 else None


Fit = Annotated[
    str,
    choice(
        FITS,
        "Node for an attempt that fits on one node: the fullest node with enough free cores "
        "(best), or the first (first).",
    ),
]


class ClusterOptions(PlacementOptions, frozen=True, tag="cluster"):
    """Choose cores of as few nodes as possible."""

    backwards: ClassVar[bool] = True

    fit: Fit = "best"

    def make(self, hazards: Hazards | None, seed: int) -> Placement:
        return Placement(CoresOfNodes(FITS[self.fit]))
