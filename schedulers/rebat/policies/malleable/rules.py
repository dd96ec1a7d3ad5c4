# SPDX-License-Identifier: Apache-2.0
"""Rules for malleable jobs (PRA, PWA and DBES) and for the size of moldable jobs.

Sections III and V of Prabhakaran, Neumann and Wolf, "Efficient Fault Tolerance through Dynamic Node
Replacement", 2018. A rule decides whether running jobs have precedence over waiting jobs. It also
distributes idle nodes, and takes nodes back for the head of the queue or for failed jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rebat.core.attempts import Attempt
from rebat.core.traits import Malleable, Shape
from rebat.policies.malleable.managers import Manager, grow_evenly, shrink_evenly, shrink_youngest
from rebat.policies.malleable.members import Dependents, Member

Outlook = Callable[[], Dependents]
"""Function that computes the number of reservations that depend on each job."""


class SizeRule(msgspec.Struct, frozen=True):
    """A rule for malleable jobs.

    Attributes
    ----------
    grow : callable
        Function that changes sizes. Its arguments are the members (oldest first), the number of
        idle nodes, and an `Outlook`.
    shrink : callable
        Function that changes sizes and returns the number of nodes that are still missing. Its
        arguments are the members and the number of nodes wanted.
    before_starts : bool
        Whether running jobs grow before any job starts.
    for_the_head : bool
        Whether jobs shrink if the head of the queue can then start.
    resizes : bool
        Whether jobs start on their minimum number of nodes and then change their size.
    survives : bool
        Whether a job that lost nodes can continue on its minimum number of nodes.
    """

    grow: Callable[[Sequence[Member], int, Outlook], None]
    shrink: Callable[[Sequence[Member], int], int]
    before_starts: bool = False
    for_the_head: bool = True
    resizes: bool = True
    survives: bool = True

    def least(self, shape: Shape, n_nodes: int) -> int:
        """Return the minimum number of nodes on which an attempt on ``n_nodes`` can continue."""
        return shape.min if self.survives and isinstance(shape, Malleable) else n_nodes

    def at_start(self, shape: Shape, request: int) -> int:
        """Return the number of nodes that a plan gives to a job that requests ``request`` nodes."""
        return self.least(shape, request) if self.resizes else request


def as_asked(manager: Manager) -> SizeRule:
    """Treat malleable jobs as rigid jobs."""
    return SizeRule(
        _managed(manager), manager.shrink, for_the_head=False, resizes=False, survives=False
    )


def fixed(manager: Manager) -> SizeRule:
    """Start on the requested number of nodes and never grow.

    A job that lost nodes continues on fewer nodes.

    If each job requests its own spare nodes (see `rebat.workloads.flexible_load`), this is the
    static allocation of Figure 1a.
    """
    return SizeRule(_managed(manager), manager.shrink, for_the_head=False, resizes=False)


def pra(manager: Manager) -> SizeRule:
    """PRA: running jobs have precedence. They get idle nodes before queued jobs start."""
    return SizeRule(_managed(manager), manager.shrink, before_starts=True, for_the_head=False)


def pwa(manager: Manager) -> SizeRule:
    """PWA: waiting jobs have precedence. Running jobs shrink for them, and grow only afterwards."""
    return SizeRule(_managed(manager), manager.shrink)


def dbes(manager: Manager) -> SizeRule:
    """DBES: jobs on which reservations depend grow first, then all jobs grow equally.

    The paper leaves the following details open; rebat defines them. The job on which the most
    reservations depend, directly or indirectly, grows first, to its maximum. Among equal jobs, the
    job that ends first grows first. The number of dependent reservations is computed once, not
    after each growth. The remaining idle nodes are shared equally. When jobs shrink, they give back
    these equal shares first.
    """
    return SizeRule(_by_dependents, _even_share_first)


def _managed(manager: Manager) -> Callable[[Sequence[Member], int, Outlook], None]:
    def grow(members: Sequence[Member], idle: int, outlook: Outlook) -> None:
        manager.grow(members, idle)

    return grow


def _by_dependents(members: Sequence[Member], idle: int, outlook: Outlook) -> None:
    able = [member for member in members if member.room]
    if not able or not idle:
        return
    waiting = outlook()
    awaited = [member for member in able if waiting.get(member.attempt.job_id)]
    for member in sorted(awaited, key=lambda member: _rank(member, waiting)):
        idle -= member.take(idle)
    grow_evenly(members, idle, even=True)


def _rank(member: Member, waiting: Dependents) -> tuple[int, int, int]:
    """Return the sort key of a member: most dependent reservations first, then the earliest end."""
    attempt = member.attempt
    running = member.running
    end_us = running.planned_end_us if running else member.since_us + attempt.walltime_us
    return (-waiting[attempt.job_id], end_us, attempt.job_serial)


def _even_share_first(members: Sequence[Member], wanted: int) -> int:
    """Take back nodes that were shared equally (the same number from each job), then others."""
    left = shrink_evenly(members, wanted, lambda member: member.even)
    return shrink_youngest(members, left)


MALLEABILITY: dict[str, Callable[[Manager], SizeRule]] = {
    "asked": as_asked,
    "fixed": fixed,
    "pra": pra,
    "pwa": pwa,
    "dbes": dbes,
}
"""Rules for malleable jobs by name."""

MANAGED = frozenset({"pra", "pwa"})
"""Rules that use a manager (`managers`)."""


EndOf = Callable[[Attempt], int]
"""Function that returns the planned end of an attempt, by its walltime."""

Molding = Callable[[int, Sequence[Attempt], EndOf], Attempt]
"""Function that chooses a size. Arguments: requested size, the attempt in each size, an `EndOf`."""


def least_turnaround(request: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """Return the attempt in ``entries`` that ends first (rule SA).

    If several end at the same time, return the one on the fewest nodes.

    This is the submit-time greedy strategy of Cirne and Berman 2002, reference [24] of Prabhakaran
    et al.
    """
    return min(entries, key=end_of)


def asked_size(request: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """Return the attempt in ``entries`` that has the requested size.

    If this size is too large for the machine, return the attempt with the largest size that fits.
    """
    return max((entry for entry in entries if entry.n_nodes <= request), key=lambda e: e.n_nodes)


MOLDINGS: dict[str, Molding] = {"sa": least_turnaround, "asked": asked_size}
"""Rules for the size of moldable jobs by name."""
