# SPDX-License-Identifier: Apache-2.0
"""Grouping of similar moments, so that the story of a job stays short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from rebat.results.explain.moment import Moment

IN_ORDER = "in order"
"""The obstacle of an attempt that waits for the attempt ahead of it."""

Placed = tuple[int, Moment]
"""A moment with its place in the complete story."""


def grouped(moments: Iterable[Moment]) -> list[Moment]:
    """Return the moments, with similar moments joined, sorted by time.

    Consecutive moves of the same cause become one move. An obstacle that returns while an attempt
    waits becomes one obstacle.
    """
    moves: list[Placed] = []
    others: list[Placed] = []
    for place, moment in enumerate(moments):
        (others if moment.kind == "obstacle" else moves).append((place, moment))
    return [moment for _, moment in sorted([*_moves(moves), *_obstacles(others)], key=_place)]


def _place(item: Placed) -> int:
    return item[0]


def _moves(moments: Iterable[Placed]) -> Iterator[Placed]:
    """Join consecutive moves of the same strongest cause; yield the other moments unchanged."""
    for _, items in groupby(moments, key=_likeness):
        group = list(items)
        if group[0][1].kind == "moved":
            yield group[0][0], _joined([moment for _, moment in group])
        else:
            yield from group


def _likeness(item: Placed) -> tuple[str, int, str]:
    """Return equal values for moments that can be joined."""
    moment = item[1]
    causes = moment.facts.get("causes")
    return moment.kind, moment.attempt, causes[0]["kind"] if causes else ""


def _joined(group: list[Moment]) -> Moment:
    """Return one move for a group, from the first to the last planned start."""
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
    """Join the returns of an obstacle; it keeps the facts of its first time.

    Waits for different attempts ahead are joined, waits for different reservations are not.
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
