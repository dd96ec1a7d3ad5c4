# SPDX-License-Identifier: Apache-2.0
"""The story of a job: the events from its submission to its end, in order of time.

Similar events are joined to keep the story short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from rebat.core.attempts import Cause, split_attempt
from rebat.core.units import FOREVER_US, to_s
from rebat.drive.plan_record import NONE, PlanCause, PlanChange
from rebat.results.explain.book import AttemptOutcome, Change, RunBook

IN_ORDER = "in order"
"""Name of the obstacle "an earlier attempt in the queue must start first"."""

OBSTACLES = {
    PlanChange.TOO_FEW: "too few nodes",
    PlanChange.RESERVED: "reserved",
    PlanChange.NO_PLACE: "no place",
    PlanChange.IN_ORDER: IN_ORDER,
    PlanChange.NOT_STARTED: "not started",
}
"""Names of the obstacles of a waiting attempt."""

SUBJECTS = {
    PlanCause.FAILURE: "down_node",
    PlanCause.DRAIN: "down_node",
    PlanCause.STOP: "stopped",
    PlanCause.RETURN: "returned",
    PlanCause.MOVE: "moved",
    PlanCause.HOLD: "held",
    PlanCause.REPAIR: "up_node",
    PlanCause.END: "ended",
    PlanCause.ARRIVAL: "arrived",
}
"""Causes of a changed plan, the most important first.

The value is the column of a recorded plan that contains the attempt or node of the cause.
"""

PLAIN = (PlanCause.RELEASE, PlanCause.WITHDRAWAL, PlanCause.REFUSAL)
"""Causes that concern no particular attempt or node."""


class Story(msgspec.Struct, frozen=True):
    """The story of a job under a policy. Times are in seconds.

    Attributes
    ----------
    policy, job : str
    n_nodes : int
        Number of nodes of the first attempt.
    waited_s : float or None
        Time from the submission to the first start, or None if the job never started.
    lost_s : float
        Lost run time of interrupted attempts, in seconds.
    lost_node_s : float
        The same loss in node-seconds.
    attempts : int
        Number of attempts that ran.
    moments : list of Moment
    """

    policy: str
    job: str
    n_nodes: int
    waited_s: float | None
    lost_s: float
    lost_node_s: float
    attempts: int
    moments: list[Moment]


def story(book: RunBook, job: str, complete: bool = False) -> Story:
    """Return the story of a job. If ``complete`` is set, similar moments are not joined."""
    job = book.id_of(job)
    attempts = book.attempts(job)
    ran = [attempt for attempt in attempts if attempt.start_us >= 0]
    first = attempts[0]
    moments = list(_moments(book, job, attempts))
    moments.sort(key=lambda moment: moment.at_s)  # the sort is stable
    return Story(
        book.policy,
        job,
        first.n_nodes,
        to_s(ran[0].start_us - first.submit_us) if ran else None,
        to_s(sum(attempt.lost_us for attempt in ran)),
        to_s(sum(attempt.lost_us * attempt.n_nodes for attempt in ran)),
        len(ran),
        moments if complete else grouped(moments),
    )


def _moments(book: RunBook, job: str, attempts: list[AttemptOutcome]) -> Iterator[Moment]:
    """Yield the events of a job, attempt by attempt."""
    changes: dict[int, list[Change]] = {}
    for change in book.changes(job):
        changes.setdefault(change.number, []).append(change)
    first = attempts[0]
    yield Moment("submitted", to_s(first.submit_us), 0, {"nodes": first.n_nodes})
    if first.queued_us > first.submit_us:
        yield Moment("released", to_s(first.queued_us), 0, {})
    for attempt in attempts:
        yield from _waiting(book, attempt, changes.get(attempt.number, []))
        if attempt.start_us >= 0:
            yield _started(attempt, book, changes.get(attempt.number, []))
        yield _ended(book, attempt)


def _waiting(book: RunBook, attempt: AttemptOutcome, changes: list[Change]) -> Iterator[Moment]:
    """Yield the planned starts and obstacles of a queued attempt."""
    before = FOREVER_US
    for change in changes:
        plan = book.plan(change.plan)
        at_us = plan["at_us"]
        if change.kind == PlanChange.PLANNED:
            starts = change.value <= at_us and attempt.start_us == at_us
            if not (starts and before in (FOREVER_US, change.value)):
                yield _moved(book, attempt, plan, before, change.value)
            before = change.value
        elif change.kind == PlanChange.REASON:
            text = book.record.texts[change.value]
            yield Moment("reason", to_s(at_us), attempt.number, {"text": text})
        else:
            yield _obstacle(book, attempt, change, plan)


def _moved(
    book: RunBook, attempt: AttemptOutcome, plan: dict[str, int], before: int, now: int
) -> Moment:
    facts: dict[str, Any] = {}
    if before < FOREVER_US:
        facts["from_s"] = to_s(before)
    if now < FOREVER_US:
        facts["to_s"] = to_s(now)
    kind = "moved" if len(facts) == 2 else "planned" if "to_s" in facts else "unplanned"
    own_arrival = plan["at_us"] == attempt.queued_us
    facts["causes"] = [] if own_arrival else list(causes(book, plan))
    return Moment(kind, to_s(plan["at_us"]), attempt.number, facts)


def _obstacle(
    book: RunBook, attempt: AttemptOutcome, change: Change, plan: dict[str, int]
) -> Moment:
    facts: dict[str, Any] = {
        "obstacle": OBSTACLES[PlanChange(change.kind)],
        "free": plan["n_free"],
        "needed": attempt.n_nodes,
    }
    if change.value != NONE:
        facts["job"] = book.outcome(change.value)[0]
        planned_us = book.planned_us(change.value, change.plan)
        if planned_us is not None:
            facts["job_start_s"] = to_s(planned_us)
    return Moment("obstacle", to_s(plan["at_us"]), attempt.number, facts)


def causes(book: RunBook, plan: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the causes of a plan, the most important first, with the attempt or node of each."""
    present = PlanCause(plan["causes"])
    for cause, column in SUBJECTS.items():
        if cause not in present:
            continue
        fact: dict[str, Any] = {"kind": str(cause.name).lower()}
        subject = plan[column]
        if subject != NONE and column.endswith("node"):
            fact["node"] = subject
        elif subject != NONE:
            fact["job"], outcome = book.outcome(subject)
            if cause == PlanCause.STOP and outcome is not None:
                fact |= {"cause": outcome.cause, **_thief(outcome)}
        yield fact
    for cause in PLAIN:
        if cause in present:
            yield {"kind": str(cause.name).lower()}


def _thief(attempt: AttemptOutcome) -> dict[str, Any]:
    """Return the job that took a stolen attempt's nodes, or an empty dict if it was not stolen."""
    if attempt.cause != Cause.STOLEN or not attempt.why.startswith("for "):
        return {}
    return {"by": split_attempt(attempt.why.removeprefix("for "))[0]}


def _started(attempt: AttemptOutcome, book: RunBook, changes: list[Change]) -> Moment:
    """Return the start of an attempt as a moment. It states if an earlier plan had this time."""
    plans = [change for change in changes if change.kind == PlanChange.PLANNED]
    last = plans[-1] if plans else None
    as_planned = (
        last is not None
        and last.value == attempt.start_us
        and book.plan(last.plan)["at_us"] < attempt.start_us
    )
    facts = {
        "waited_s": to_s(attempt.start_us - attempt.queued_us),
        "nodes": attempt.n_nodes,
        "as_planned": as_planned,
    }
    return Moment("started", to_s(attempt.start_us), attempt.number, facts)


def _ended(book: RunBook, attempt: AttemptOutcome) -> Moment:
    """Return the end of an attempt as a moment. It states how the attempt ended and its loss."""
    facts: dict[str, Any] = {"cause": attempt.cause}
    if attempt.start_us < 0:
        at_us = attempt.end_us if attempt.end_us >= 0 else attempt.queued_us
        return Moment("ended", to_s(at_us), attempt.number, facts)
    facts |= {
        "ran_s": to_s(attempt.end_us - attempt.start_us),
        "kept_s": to_s(attempt.kept_us),
        "lost_s": to_s(attempt.lost_us),
        "nodes": attempt.n_nodes,
    }
    if attempt.cause == Cause.NODE_FAILURE:
        node = book.failed_node(attempt)
        facts |= {} if node is None else {"node": node}
    return Moment("ended", to_s(attempt.end_us), attempt.number, facts | _thief(attempt))


class Moment(msgspec.Struct, frozen=True):
    """An event in the story of a job. It concerns one attempt. Times are in seconds.

    Attributes
    ----------
    kind : str
        submitted, released (entered the queue, after other jobs or tasks of its array), planned
        (first planned start), moved, unplanned (lost its reservation), obstacle, reason, started or
        ended.
    at_s : float
        Time of the event. If several similar events were joined, this is the time of the first one.
    attempt : int
        Number of the attempt.
    facts : dict
        Details of the event. ``times`` is the number of joined events, and ``last_s`` is the time
        of the last one.
    """

    kind: str
    at_s: float
    attempt: int
    facts: dict[str, Any]


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
    return [
        moment
        for _, moment in sorted([*_moves(moves), *_obstacles(others)], key=lambda item: item[0])
    ]


def _moves(moments: Iterable[Placed]) -> Iterator[Placed]:
    """Join consecutive moves with the same main cause. Yield the other moments unchanged."""

    def likeness(item: Placed) -> tuple[str, int, str]:
        causes = item[1].facts.get("causes")
        return item[1].kind, item[1].attempt, causes[0]["kind"] if causes else ""

    for _, items in groupby(moments, key=likeness):
        group = list(items)
        if group[0][1].kind == "moved":
            yield group[0][0], _joined([moment for _, moment in group])
        else:
            yield from group


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
