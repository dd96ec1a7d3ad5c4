# SPDX-License-Identifier: Apache-2.0
"""When malleable jobs grow and shrink: PRA, PWA and DBES; and the size of a moldable job.

Sections III and V of Prabhakaran, Neumann and Wolf, "Efficient Fault Tolerance through Dynamic Node
Replacement", 2018. A rule says whether running jobs come before waiting ones, hands idle nodes out,
and takes nodes back, for the head of the queue or in place of dead ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rebat.core.attempts import Attempt
from rebat.core.shapes import Malleable, Shape
from rebat.policies.malleable.managers import Manager, grow_evenly, shrink_evenly, shrink_youngest
from rebat.policies.malleable.members import Dependents, Member

Outlook = Callable[[], Dependents]
"""How many reservations wait for each job, worked out when asked for."""


class SizeRule(msgspec.Struct, frozen=True):
    """A way to treat malleable jobs.

    Attributes
    ----------
    grow : callable
        Of members (the oldest first), idle nodes and the outlook: changes sizes.
    shrink : callable
        Of members and how many nodes are wanted: changes sizes, gives what is still wanted.
    before_starts : bool
        Running jobs grow before anything starts.
    for_the_head : bool
        Jobs shrink so that the head of the queue can start, where that suffices.
    resizes : bool
        Jobs start on their minimum, and change their size at all.
    """

    grow: Callable[[Sequence[Member], int, Outlook], None]
    shrink: Callable[[Sequence[Member], int], int]
    before_starts: bool = False
    for_the_head: bool = True
    resizes: bool = True

    def least(self, shape: Shape, n_nodes: int) -> int:
        """On how many nodes an attempt that has or asks for so many can start and go on."""
        return shape.min if self.resizes and isinstance(shape, Malleable) else n_nodes


def as_asked(manager: Manager) -> SizeRule:
    """A malleable job is treated as a rigid one."""
    return SizeRule(_managed(manager), manager.shrink, for_the_head=False, resizes=False)


def pra(manager: Manager) -> SizeRule:
    """Precedence to running applications: idle nodes go to them, before starts and backfilling."""
    return SizeRule(_managed(manager), manager.shrink, before_starts=True, for_the_head=False)


def pwa(manager: Manager) -> SizeRule:
    """Precedence to waiting applications: starts first, for which others shrink; then growth."""
    return SizeRule(_managed(manager), manager.shrink)


def dbes(manager: Manager) -> SizeRule:
    """Dependency-based expansion scheduling: first what others wait for, then equally.

    How many wait is worked out once, not again after each growth.

    Its internals are not in the paper; this form is ours. Whom the most reservations wait for,
    directly or not, grows first and as far as it can; among equals, who ends first. What is left
    is shared equally, and is taken back first.
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
    for member in sorted(awaited, key=lambda one: _rank(one, waiting)):
        idle -= member.take(idle)
    grow_evenly(members, idle, even=True)


def _rank(member: Member, waiting: Dependents) -> tuple[int, int, int]:
    """Most dependents first, then who ends first; one that starts has its whole walltime ahead."""
    attempt = member.attempt
    running = member.running
    end_us = running.planned_end_us if running else member.since_us + attempt.walltime_us
    return (-waiting[attempt.job_id], end_us, attempt.job_serial)


def _even_share_first(members: Sequence[Member], wanted: int) -> int:
    """What was shared equally goes back equally; then what was given for a reason."""
    left = shrink_evenly(members, wanted, lambda member: member.even)
    return shrink_youngest(members, left)


MALLEABILITY: dict[str, Callable[[Manager], SizeRule]] = {
    "asked": as_asked,
    "pra": pra,
    "pwa": pwa,
    "dbes": dbes,
}
"""How malleable jobs are treated."""

MANAGED = frozenset({"pra", "pwa"})
"""Those that leave it to a manager who grows and who shrinks."""


EndOf = Callable[[Attempt], int]
"""When an attempt of some size would end, by its walltime, on the plan as it stands."""

Molding = Callable[[int, Sequence[Attempt], EndOf], Attempt]
"""Of the size that the user asked for and the attempts in each size, ascending: one of them."""


def least_turnaround(asked: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """SA: the one that ends first; among equals the smallest.

    The submit-time greedy strategy of Cirne and Berman 2002, reference [24] of Prabhakaran et al.
    """
    return min(entries, key=end_of)


def asked_size(asked: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """The size that the user asked for, or the largest that the machine has room for."""
    return max((one for one in entries if one.n_nodes <= asked), key=lambda one: one.n_nodes)


MOLDINGS: dict[str, Molding] = {"sa": least_turnaround, "asked": asked_size}
"""How a moldable job gets its size."""
