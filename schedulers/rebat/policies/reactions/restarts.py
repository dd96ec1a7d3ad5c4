# SPDX-License-Identifier: Apache-2.0
"""What a replacement hands out: nodes, and which moldable jobs start over on fewer of them.

The latter is the integer program of equation 3 of Prabhakaran, Neumann and Wolf 2018.

At most one size for each job, so that enough nodes become free at the least sum of delays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Running
from rebat.kernels.knapsack import cheapest_rows
from rebat.policies.malleable.members import Member

Ints = npt.NDArray[np.int64]
Rows = Sequence["Restart"]

LONGEST_US = 2**48
"""Longer delays (8.9 years) are as bad: sums of thousands fit into 64 bits."""


class Restart(msgspec.Struct, frozen=True):
    """A running job on fewer nodes: how much later than first promised it would end (equation 2).

    Only sizes below the present one are of use; others would be bought for their negative terms.
    """

    running: Running
    n_nodes: int
    delay_us: int

    @property
    def freed(self) -> int:
        """How many nodes that gives back."""
        return self.running.attempt.n_nodes - self.n_nodes


class Replacement(msgspec.Struct, frozen=True):
    """What a hit attempt gets: the step that helped it, its nodes, and who starts over for it."""

    step: str
    nodes: list[int]
    restarts: Sequence[Restart] = ()


class RestartRound:
    """The nodes that can still be handed out in one reaction, and who could give some.

    ``hit`` are the attempts that lost nodes; ``free`` are idle nodes, those of the spare pool
    first; ``lenders`` malleable jobs with the nodes that they have; ``moldable`` attempts that
    could start over.
    """

    def __init__(
        self,
        view: View,
        hit: set[str],
        free: list[int],
        lenders: list[Member],
        moldable: list[Running],
    ) -> None:
        self.view, self.hit, self.free, self.lenders = view, hit, free, lenders
        self.moldable = {running.attempt.id: running for running in moldable}
        self.nodes = {
            member.running.attempt.id: list(member.running.nodes)
            for member in lenders
            if member.running
        }

    @property
    def spare(self) -> int:
        """How many nodes the lenders have beyond their minimum."""
        return sum(member.extra for member in self.lenders)

    def take_free(self, n: int) -> list[int]:
        """Hand idle nodes out."""
        taken, self.free = self.free[:n], self.free[n:]
        return taken

    def collect(self) -> list[int]:
        """What the lenders have to give, now that their sizes were changed: their last nodes."""
        given: list[int] = []
        for member in self.lenders:
            nodes = self.nodes[member.attempt.id]
            given += nodes[member.size :]
            del nodes[member.size :]
        return given


Solver = Callable[[Rows, int], tuple[list[Restart], int]]
"""Of the rows, job by job, and how many nodes are wanted: the chosen rows and the sum of their
delays (microseconds); no row where nothing frees enough."""


class Restarts(NamedTuple):
    """The least total cost, and the rows that make it, ascending."""

    total: int
    rows: Ints


def cheapest_restarts(costs: Ints, freed: Ints, job: Ints, need: int) -> Restarts | None:
    """Choose rows, at most one of each job, that free enough nodes at the least total cost.

    Of equal totals the one with the fewest rows is chosen, and of these the one whose lowest row is
    lowest, then the next, and so on.

    Parameters
    ----------
    costs : int64 array, shape (m,)
        What each row costs, in microseconds; may be negative.
    freed : int64 array, shape (m,)
        Nodes that it frees, 0 or more.
    job : int64 array, shape (m,)
        Whose row it is: rows of a job stand together, jobs ascend.
    need : int
        Nodes to be freed.

    Returns
    -------
    Restarts or None
        None: all jobs together do not free so many.

    Raises
    ------
    OverflowError
        For costs whose sum may be beyond 2**62.
    ValueError
        For jobs that do not ascend, or a row that frees less than nothing.

    Examples
    --------
    >>> rows = [(60, 2, 0), (30, 1, 0), (20, 2, 1)]
    >>> found = cheapest_restarts(*np.array(rows).T, need=3)
    >>> found.total, found.rows.tolist()
    (50, [1, 2])
    """
    if not len(job):
        return None if need > 0 else Restarts(0, np.empty(0, np.int64))
    firsts = np.flatnonzero(np.diff(job, prepend=job[0] - 1))
    if (np.diff(job) < 0).any() or freed.min() < 0:
        raise ValueError("jobs do not ascend, or a row frees less than nothing")
    if float(np.abs(costs.astype(float)).max()) * len(firsts) >= 2**62:
        raise OverflowError("the sum of the costs is not an int64")
    if need > np.maximum.reduceat(freed, firsts).sum():
        return None
    ends = np.append(firsts, len(job))
    total, rows = cheapest_rows(costs, freed, ends, max(need, 0))
    return Restarts(int(total), rows)


def cheapest(rows: Rows, wanted: int) -> tuple[list[Restart], int]:
    """By dynamic programming over the nodes freed: exact, and fast enough for a scheduler."""
    found = cheapest_restarts(*_arrays(rows), wanted)
    return ([rows[i] for i in found.rows.tolist()], found.total) if found else ([], 0)


def by_milp(rows: Rows, wanted: int) -> tuple[list[Restart], int]:
    """By scipy's branch and bound (HiGHS), as the authors' GLPK did; slower."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not rows:
        return [], 0
    delay, freed, job = _arrays(rows)
    once = (job[None, :] == np.unique(job)[:, None]).astype(float)
    found = milp(
        delay.astype(float),
        integrality=np.ones(len(rows)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(freed.astype(float), lb=wanted),
            LinearConstraint(once, ub=1),
        ],
        options={"mip_rel_gap": 0.0},
    )
    if not found.success:
        return [], 0
    chosen = [row for row, x in zip(rows, found.x, strict=True) if x > 0.5]
    return chosen, sum(row.delay_us for row in chosen)


def _arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Delays, freed nodes and job numbers, ascending."""
    delay = np.array([min(row.delay_us, LONGEST_US) for row in rows], dtype=np.int64)
    freed = np.array([row.freed for row in rows], dtype=np.int64)
    names = [row.running.attempt.id for row in rows]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return delay, freed, np.array([number[name] for name in names], dtype=np.int64)


SOLVERS: dict[str, Solver] = {"kernel": cheapest, "milp": by_milp}
"""Who solves it."""
