# SPDX-License-Identifier: Apache-2.0
"""Which malleable jobs grow and which shrink: the managers of Buisson, Sonmez, Mohamed, Lammers and
Epema, "Scheduling malleable applications in multicluster systems", Cluster 2007 (reference [33] of
Prabhakaran et al. 2018).

All of them take the members with the oldest first, and change their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from rebat.policies.malleable.members import Member


def grow_oldest(members: Sequence[Member], idle: int) -> int:
    """FPSMA: the oldest first, each as far as it can; gives what is left."""
    for member in members:
        idle -= member.take(idle)
    return idle


def shrink_youngest(members: Sequence[Member], wanted: int) -> int:
    """FPSMA: the youngest first, each down to its minimum; gives what is still wanted."""
    for member in reversed(members):
        wanted -= member.give(wanted)
    return wanted


def grow_evenly(members: Sequence[Member], idle: int, even: bool = False) -> int:
    """EGS: as many for each, one more for the oldest; what some cannot take goes to the others."""
    while idle and (able := [member for member in members if member.room]):
        share, more = divmod(idle, len(able))
        idle -= sum(member.take(share + (i < more), even) for i, member in enumerate(able))
    return idle


def shrink_evenly(
    members: Sequence[Member], wanted: int, most: Callable[[Member], int] = attrgetter("extra")
) -> int:
    """EGS: as many from each, one more from the youngest; gives what is still wanted.

    ``most`` is how many nodes a member has to give: those beyond its minimum, or some of them.
    """
    while wanted and (able := [member for member in reversed(members) if most(member)]):
        share, more = divmod(wanted, len(able))
        wanted -= sum(m.give(min(most(m), share + (i < more))) for i, m in enumerate(able))
    return wanted


class Manager(msgspec.Struct, frozen=True):
    """How to hand idle nodes out, and how to take nodes back."""

    grow: Callable[[Sequence[Member], int], int]
    shrink: Callable[[Sequence[Member], int], int]


MANAGERS: dict[str, Manager] = {
    "fpsma": Manager(grow_oldest, shrink_youngest),
    "egs": Manager(grow_evenly, shrink_evenly),
}
"""Favour previously started malleable applications, or equi-grow and shrink."""
