# SPDX-License-Identifier: Apache-2.0
"""Grouping of similar events in the story of a job, which keeps the story short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from rebat.results.explain.moment import Moment

IN_ORDER = "in order"
"""Name of the obstacle "an earlier attempt in the queue must start first"."""

Placed = tuple[int, Moment]
"""A moment with its position in the complete story."""


def grouped(moments: Iterable[Moment]) -> list[Moment]:
    """Join similar moments. Return all moments sorted by time.

    Consecutive moves of a reservation for the same cause become one moment. An obstacle that occurs
    several times while an attempt waits also becomes one moment.
    """
    moves: list[Placed] = []
    others: list[Placed] = []
    for place, moment in enumerate(moments):
        (others if moment.kind == "obstacle" else moves).append((place, moment))
    return [moment for _, moment in sorted([*_moves(moves), *_obstacles(others)], key=_place)]


def _place(item: Placed) -> int:
    return item[0]


def _moves(moments: Iterable[Placed]) -> Iterator[Placed]:
    """Join consecutive moves with the same main cause. Yield the other moments unchanged."""
    for _, items in groupby(moments, key=_likeness):
        group = list(items)
        if group[0][1].kind == "moved":
            yield group[0][0], _joined([moment for _, moment in group])
        else:
            yield from group


def _likeness(item: Placed) -> tuple[str, int, str]:
    moment = item[1]
    causes = moment.facts.get("causes")
    return moment.kind, moment.attempt, causes[0]["kind"] if causes else ""


def _joined(group: list[Moment]) -> Moment:
    """Return one move for a group of moves, from the group's first to its last planned start."""
    first, last = group[0], group[-1]
    if first is last:
        return first
    return msgspec.structs.replace(
        first,
        facts={
            "from_s": first.facts["from_s"],
            "to_s": last.facts["to_s"],
            "causes": first.facts["causes"][:1],
            "times": len(group),
            "last_s": last.at_s,
        },
    )


def _obstacles(moments: Iterable[Placed]) -> Iterator[Placed]:
    """Join the repetitions of an obstacle, and keep the facts of its first occurrence.

    If the obstacle is an earlier attempt in the queue, repetitions may have different attempts. If
    the obstacle is a reservation, only repetitions with the same reservation are joined.
    """
    groups: dict[tuple[int, str, str], list[Placed]] = {}
    for place, moment in moments:
        facts = moment.facts
        # the attempt ahead changes with each start
        other = "" if facts["obstacle"] == IN_ORDER else facts.get("job", "")
        key = moment.attempt, facts["obstacle"], other
        groups.setdefault(key, []).append((place, moment))
    for group in groups.values():
        place, first = group[0]
        if len(group) > 1:
            more = {"times": len(group), "last_s": group[-1][1].at_s}
            first = msgspec.structs.replace(first, facts=first.facts | more)
        yield place, first
