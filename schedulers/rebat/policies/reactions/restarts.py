# SPDX-License-Identifier: Apache-2.0
"""Choice of moldable jobs that restart on fewer nodes, to free nodes for a hit job.

This is the integer program of equation 3 of Prabhakaran, Neumann and Wolf 2018: choose at most one
new size per job, so that enough nodes become free and the sum of the delays is minimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Running
from rebat.core.units import FOREVER_US
from rebat.kernels.knapsack import cheapest_rows
from rebat.policies.malleable.members import Member

Ints = npt.NDArray[np.int64]
Rows = Sequence["Restart"]

LONGEST_US = 2**48
"""Maximum delay in microseconds (8.9 years). The sum of thousands of delays fits in 64 bits."""


class Restart(msgspec.Struct, frozen=True):
    """A restart on fewer nodes. ``delay_us`` is the new end minus the first planned end (eq. 2).

    Only sizes below the current size are allowed. Otherwise the solver would choose larger sizes,
    which have negative delays.
    """

    running: Running
    n_nodes: int
    delay_us: int

    @property
    def freed(self) -> int:
        """Number of nodes that the restart frees."""
        return self.running.attempt.n_nodes - self.n_nodes


class Replacement(msgspec.Struct, frozen=True):
    """A replacement: its step, the new nodes of the attempt, and the jobs that restart."""

    step: str
    nodes: list[int]
    restarts: Sequence[Restart] = ()


class RestartRound:
    """The nodes available to one call of the reaction, and the jobs that could free nodes.

    Attributes
    ----------
    hit : set of str
        The attempts that lost nodes.
    free : list of int
        Idle nodes. The nodes of the spare pool come first.
    lenders : list of Member
        Malleable jobs that could shrink.
    moldable : dict
        Attempts that could restart, by id.
    nodes : dict
        Nodes of each lender, by the id of its attempt.
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
        """Number of nodes of the lenders beyond their minimum."""
        return sum(member.extra for member in self.lenders)

    def take_free(self, n: int) -> list[int]:
        """Take up to ``n`` idle nodes."""
        taken, self.free = self.free[:n], self.free[n:]
        return taken

    def collect(self) -> list[int]:
        """Take the last nodes of lenders whose sizes were reduced."""
        taken: list[int] = []
        for member in self.lenders:
            nodes = self.nodes[member.attempt.id]
            taken += nodes[member.size :]
            del nodes[member.size :]
        return taken


def expected_wait_us(state: RestartRound, short: int, repair_us: int | None) -> int:
    """Return the expected time (us) until ``short`` nodes are free after job ends and repairs.

    Jobs are expected to end at their walltimes, and a node is expected to be down for the mean time
    ``repair_us``. If a node has been down for longer, its repair is expected at the next multiple
    of the mean. If ``repair_us`` is None, repairs are ignored.
    """
    view = state.view
    back = [
        (max(0, job.planned_end_us - view.now_us), job.attempt.n_nodes)
        for name, job in view.running.items()
        if name not in state.hit
    ]
    if repair_us is not None:
        ages_us = view.machine.age_us[view.machine.down].tolist()
        back += [(repair_us - age_us % repair_us, 1) for age_us in ages_us]
    for wait_us, n_nodes in sorted(back):
        short -= n_nodes
        if short <= 0:
            return wait_us
    return FOREVER_US


Solver = Callable[[Rows, int], tuple[list[Restart], int]]
"""Function that chooses restarts.

Arguments: the possible restarts, sorted by job, and the number of nodes to free. It returns the
chosen restarts and the sum of their delays (us). It returns no restarts if they cannot free enough
nodes.
"""


class Restarts(NamedTuple):
    """The minimum total cost, and the chosen rows in ascending order."""

    total: int
    rows: Ints


def cheapest_restarts(costs: Ints, freed: Ints, job: Ints, need: int) -> Restarts | None:
    """Choose rows that free enough nodes at the minimum total cost, at most one row per job.

    A row is a possible restart of a job. Of several solutions with the minimum cost, the function
    returns the one with the fewest rows, then the lowest rows in lexicographic order.

    Parameters
    ----------
    costs : int64 array, shape (m,)
        Cost of each row in microseconds. It may be negative.
    freed : int64 array, shape (m,)
        Number of nodes that each row frees, at least 0.
    job : int64 array, shape (m,)
        Job of each row, ascending.
    need : int
        Number of nodes to free.

    Returns
    -------
    Restarts or None
        None if all jobs together free too few nodes.

    Examples
    --------
    >>> rows = [(60, 2, 0), (30, 1, 0), (20, 2, 1)]
    >>> best = cheapest_restarts(*np.array(rows).T, need=3)
    >>> best.total, best.rows.tolist()
    (50, [1, 2])
    """
    if not len(job):
        return None if need > 0 else Restarts(0, np.empty(0, np.int64))
    firsts = np.flatnonzero(np.diff(job, prepend=job[0] - 1))
    if (np.diff(job) < 0).any() or freed.min() < 0:
        raise ValueError("jobs do not ascend, or a row frees a negative number of nodes")
    if float(np.abs(costs.astype(float)).max()) * len(firsts) >= 2**62:
        raise OverflowError("the sum of the costs exceeds 64 bits")
    if need > np.maximum.reduceat(freed, firsts).sum():
        return None
    ends = np.append(firsts, len(job))
    total, rows = cheapest_rows(costs, freed, ends, max(need, 0))
    return Restarts(int(total), rows)


def cheapest(rows: Rows, wanted: int) -> tuple[list[Restart], int]:
    """Return the restarts with the smallest sum of delays, by dynamic programming."""
    best = cheapest_restarts(*_arrays(rows), wanted)
    return ([rows[i] for i in best.rows.tolist()], best.total) if best else ([], 0)


def by_milp(rows: Rows, wanted: int) -> tuple[list[Restart], int]:
    """Return the restarts with the smallest sum of delays by scipy's branch and bound (HiGHS).

    This solver is slower than `cheapest`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not rows:
        return [], 0
    delay, freed, job = _arrays(rows)
    once = (job[None, :] == np.unique(job)[:, None]).astype(float)
    solution = milp(
        delay.astype(float),
        integrality=np.ones(len(rows)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(freed.astype(float), lb=wanted),
            LinearConstraint(once, ub=1),
        ],
        options={"mip_rel_gap": 0.0},
    )
    if not solution.success:
        return [], 0
    chosen = [row for row, x in zip(rows, solution.x, strict=True) if x > 0.5]
    return chosen, sum(row.delay_us for row in chosen)


def _arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    delay = np.array([min(row.delay_us, LONGEST_US) for row in rows], dtype=np.int64)
    freed = np.array([row.freed for row in rows], dtype=np.int64)
    names = [row.running.attempt.id for row in rows]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return delay, freed, np.array([number[name] for name in names], dtype=np.int64)


SOLVERS: dict[str, Solver] = {"kernel": cheapest, "milp": by_milp}
"""Solvers by name."""
