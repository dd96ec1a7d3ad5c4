# SPDX-License-Identifier: Apache-2.0
"""Managers of malleable jobs: they decide which jobs grow and shrink.

Buisson, Sonmez, Mohamed, Lammers and Epema, "Scheduling malleable applications in multicluster
systems", Cluster 2007 (reference [33] of Prabhakaran et al. 2018). A *member* is a malleable job
(`members`). All managers receive the members in the order of their starts, and change the members'
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from rebat.policies.malleable.members import Member


def grow_oldest(members: Sequence[Member], idle: int) -> int:
    """FPSMA: give idle nodes to the oldest job, up to its maximum, then to the next oldest.

    Return the number of nodes that stay idle.
    """
    for member in members:
        idle -= member.take(idle)
    return idle


def shrink_youngest(members: Sequence[Member], wanted: int) -> int:
    """FPSMA: shrink members, beginning with the youngest, each at most to its minimum.

    Return the number of nodes that are still missing.
    """
    for member in reversed(members):
        wanted -= member.give(wanted)
    return wanted


def grow_evenly(members: Sequence[Member], idle: int, even: bool = False) -> int:
    """EGS: grow all members equally. Return the number of nodes that stay idle.

    The oldest members receive the nodes that cannot be divided equally. If a member is at its
    maximum, the other members receive its share.
    """
    while idle and (able := [member for member in members if member.room]):
        share, more = divmod(idle, len(able))
        idle -= sum(member.take(share + (i < more), even) for i, member in enumerate(able))
    return idle


def shrink_evenly(
    members: Sequence[Member], wanted: int, limit: Callable[[Member], int] = attrgetter("extra")
) -> int:
    """EGS: shrink all members equally. Return the number of nodes that are still missing.

    The youngest members give up the nodes that cannot be divided equally. ``limit`` returns the
    maximum number of nodes that a member gives up (default: its nodes above the minimum).
    """
    while wanted and (able := [member for member in reversed(members) if limit(member)]):
        share, more = divmod(wanted, len(able))
        wanted -= sum(m.give(min(limit(m), share + (i < more))) for i, m in enumerate(able))
    return wanted


class Manager(msgspec.Struct, frozen=True):
    """Rules to distribute idle nodes and to take nodes back."""

    grow: Callable[[Sequence[Member], int], int]
    shrink: Callable[[Sequence[Member], int], int]


MANAGERS: dict[str, Manager] = {
    "fpsma": Manager(grow_oldest, shrink_youngest),
    "egs": Manager(grow_evenly, shrink_evenly),
}
"""FPSMA: favour previously started malleable applications. EGS: equi-grow and shrink."""


def shrink_in_order(
    key: Callable[[Member], int],
) -> Callable[[Sequence[Member], int], int]:
    """Return a rule that shrinks members in the order of ``key``, each at most to its minimum.

    Of members with equal keys, the youngest shrinks first. The rule returns the number of nodes
    that are still missing.
    """

    def shrink(members: Sequence[Member], wanted: int) -> int:
        order = sorted(enumerate(members), key=lambda pair: (key(pair[1]), -pair[0]))
        for _, member in order:
            wanted -= member.give(wanted)
        return wanted

    return shrink


LENDERS: dict[str, Callable[[Sequence[Member], int], int] | None] = {
    "rule": None,
    "earliest": shrink_in_order(lambda member: member.expanded_us),
    "latest": shrink_in_order(lambda member: -member.expanded_us),
    "fewest": shrink_in_order(attrgetter("n_resizes")),
}
"""Orders in which malleable jobs shrink to free nodes for a job that lost nodes.

``earliest`` and ``latest`` sort the jobs by the time at which they last grew. ``fewest`` begins
with the job that was resized least often. ``rule`` (None) is the order of the rule for malleable
jobs. Source: Prabhakaran et al. 2018, section III-3.
"""
