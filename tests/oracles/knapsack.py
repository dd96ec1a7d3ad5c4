# SPDX-License-Identifier: Apache-2.0
"""Slow solutions of equation (3) of Prabhakaran et al. 2018: all choices tried, and a solver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

Row = tuple[int, int, int]
"""Cost, nodes that are freed, job."""


def by_trying(rows: Sequence[Row], need: int) -> tuple[int, list[int]] | None:
    """Return least cost and rows of the best choice, or None if no choice frees enough nodes.

    Among choices of the same cost the one with the fewest rows is best, then that with the lowest.
    """
    of_job: dict[int, list[int | None]] = {}
    for at, (_, _, job) in enumerate(rows):
        of_job.setdefault(job, [None]).append(at)
    choices = ([at for at in one if at is not None] for one in itertools.product(*of_job.values()))
    enough = (one for one in choices if sum(rows[at][1] for at in one) >= need)
    ranked = ((sum(rows[at][0] for at in one), len(one), one) for one in enough)
    best = min(ranked, default=None)
    return None if best is None else (best[0], best[2])


def by_solver(rows: Sequence[Row], need: int) -> int | None:
    """Return the least cost, from an exact mixed-integer linear program."""
    cost, freed, job = (np.array(column) for column in zip(*rows, strict=True))
    jobs = sorted(set(job.tolist()))
    once = np.array([job == one for one in jobs], dtype=float)
    constraints = [LinearConstraint(freed[None, :], lb=need), LinearConstraint(once, ub=1)]
    found = milp(
        cost, constraints=constraints, integrality=np.ones(len(rows)), bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )  # fmt: skip
    return round(found.fun) if found.success else None
