# SPDX-License-Identifier: Apache-2.0
"""Whom to steal from, when, and whether it is worth it: section 7.1 of the node-stealing paper.

A victim rule orders the candidates (the smallest key is the victim); a criterion judges the steal
from that victim; a timing says when the victim is interrupted and what it keeps. Adding one is a
function and a table row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.contract import When
from rebat.core.attempts import Attempt, Running
from rebat.core.units import FOREVER_US
from rebat.policies.own import Rule, UnfitAnswer, numbers
from rebat.policies.queue_order import program_id

ReleaseOf = Callable[[Attempt], tuple[int, int]]


def original_release(attempt: Attempt) -> tuple[int, int]:
    """The paper: release of the original job; equal dates by order in the workload."""
    return attempt.submit_us, attempt.job_serial


def resubmission_release(attempt: Attempt) -> tuple[int, int]:
    """The authors' program: a resubmission is released when it is resubmitted."""
    return attempt.queued_us, attempt.serial


RELEASES: dict[str, ReleaseOf] = {
    "original": original_release,
    "resubmission": resubmission_release,
}


class Candidate(msgspec.Struct, frozen=True):
    """A running attempt that may become the victim.

    ``release`` is its release date and its place in the order of releases; ``lost_us`` the work it
    would lose if it were interrupted at once (per node); ``last`` decides among equals.
    """

    running: Running
    release: tuple[int, int]
    lost_us: int
    last: int | str


LastOf = Callable[[Attempt, int], int | str]
"""The last key of an attempt with this place in the order of releases."""

TIES: dict[str, LastOf] = {
    "order": lambda attempt, order: -order,  # the last one released, as by dates
    "id": lambda attempt, order: program_id(attempt),  # the authors' program: its ids, as texts
}

VictimKey = Callable[[Candidate], tuple[Any, ...]]


def fewest_nodes(candidate: Candidate) -> tuple[Any, ...]:
    """V1: fewest nodes; among equals the latest released."""
    return (candidate.running.attempt.n_nodes, -candidate.release[0], candidate.last)


def latest_release(candidate: Candidate) -> tuple[Any, ...]:
    """V2: latest released; among equals the fewest nodes."""
    return (-candidate.release[0], candidate.running.attempt.n_nodes, candidate.last)


def least_lost_work(candidate: Candidate) -> tuple[Any, ...]:
    """Beyond the paper: least work since the last checkpoint, times nodes; then as V1."""
    lost = candidate.lost_us * candidate.running.attempt.n_nodes
    return (lost, *fewest_nodes(candidate))


class OwnVictim(msgspec.Struct, frozen=True):
    """A victim rule from a function of a candidate: the smallest number is the victim."""

    rule: Rule

    def __call__(self, candidate: Candidate) -> tuple[Any, ...]:
        """The function's numbers; among equals the earliest released."""
        return (*numbers(self.rule, self.rule(candidate)), *candidate.release)


VICTIMS: dict[str, VictimKey] = {
    "fewest-nodes": fewest_nodes,
    "latest-release": latest_release,
    "least-lost-work": least_lost_work,
}


class Steal(msgspec.Struct, frozen=True):
    """A steal to be judged; times in microseconds.

    ``kill_us`` is when the victim would be interrupted; ``failed_left_us`` and ``victim_left_us``
    the walltimes of their resubmissions; ``victim_end_us`` when the victim would end without it;
    ``next_end_us`` the earliest planned end among the other running attempts,
    ``next_end_besides_us`` the same without the victim.
    """

    failed: Running
    victim: Running
    failed_release_us: int
    victim_release_us: int
    kill_us: int
    failed_left_us: int
    victim_left_us: int
    victim_end_us: int
    next_end_us: int
    next_end_besides_us: int


Criterion = Callable[[Steal], bool]


def strictly_smaller(steal: Steal) -> bool:
    """K1: the victim uses strictly fewer nodes than the failed job."""
    return steal.victim.attempt.n_nodes < steal.failed.attempt.n_nodes


def released_later(steal: Steal) -> bool:
    """K2: the victim was released strictly later than the failed job."""
    return steal.victim_release_us > steal.failed_release_us


def smaller_maximum_flow(steal: Steal) -> bool:
    """K3: by their walltimes, the larger flow of the two jobs is strictly smaller with the steal.

    Without it the failed job waits for the earliest end of another; with it the victim waits for
    that, or for the failed job's end.
    """
    failed_end = steal.next_end_us + steal.failed_left_us
    stolen_failed_end = steal.kill_us + steal.failed_left_us
    stolen_victim_end = min(steal.next_end_besides_us, stolen_failed_end) + steal.victim_left_us

    def larger_flow(failed_us: int, victim_us: int) -> int:
        return max(failed_us - steal.failed_release_us, victim_us - steal.victim_release_us)

    return larger_flow(stolen_failed_end, stolen_victim_end) < larger_flow(
        failed_end, steal.victim_end_us
    )


class OwnCriterion(msgspec.Struct, frozen=True):
    """A criterion from a function of a steal: whether to steal."""

    rule: Rule

    def __call__(self, steal: Steal) -> bool:
        """The function's answer."""
        answer = self.rule(steal)
        if not isinstance(answer, bool):
            raise UnfitAnswer(self.rule, answer, "True or False")
        return answer


CRITERIA: dict[str, Criterion] = {
    "fewer-nodes": strictly_smaller,
    "later-release": released_later,
    "smaller-flow": smaller_maximum_flow,
}

TIMINGS: dict[str, When] = {
    "now": When.NOW,
    "proactive": When.CHECKPOINT,
    "next": When.NEXT_CHECKPOINT,
}
"""T1, T2, T3: when the victim is stopped, and so how long the failed job waits."""


def earliest_end(running: list[Running]) -> int:
    """The earliest planned end; FOREVER_US when nothing runs."""
    return min((r.planned_end_us for r in running), default=FOREVER_US)
