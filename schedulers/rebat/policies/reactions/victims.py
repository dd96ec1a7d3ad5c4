# SPDX-License-Identifier: Apache-2.0
"""Victims, timings and criteria of node stealing: section 7.1 of the node-stealing paper.

A victim rule returns a key for each candidate. The candidate with the smallest key is the victim. A
criterion accepts or rejects the steal. A timing sets when the victim is interrupted and how much
work it keeps. To add a rule, write a function and add it to a table.
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
    """Return the submission time of the original job (us) and its position in the workload.

    The node-stealing paper uses these two values.
    """
    return attempt.submit_us, attempt.job_serial


def resubmission_release(attempt: Attempt) -> tuple[int, int]:
    """Return the time at which the attempt entered the queue (us), and its serial number.

    The authors' program uses these two values.
    """
    return attempt.queued_us, attempt.serial


RELEASES: dict[str, ReleaseOf] = {
    "original": original_release,
    "resubmission": resubmission_release,
}


class Candidate(msgspec.Struct, frozen=True):
    """A running attempt that may become the victim."""

    running: Running
    release: tuple[int, int]
    """Release time in microseconds, and position in the order of releases."""
    lost_us: int
    """Work that an immediate interruption would lose on each node, in microseconds."""
    tie: tuple[Any, ...]
    """Key that decides between victims of equal size. The victim with the smallest key is first."""
    left_us: int
    """Time until the end of its walltime, in microseconds."""


TieOf = Callable[[Running, tuple[int, int]], tuple[Any, ...]]
"""Function of a running attempt and its release that returns `Candidate.tie`."""

TIES: dict[str, TieOf] = {
    "order": lambda running, release: (-release[0], -release[1]),
    "id": lambda running, release: (-release[0], program_id(running.attempt)),
    "run-time": lambda running, release: (-running.start_us, -release[0], -release[1]),
}
"""Tie-breakers between victims of equal size.

order: latest release (section 4.2), then the last in the order of releases. id: latest release,
then job ids as text (as in the program). run-time: shortest time since the start (section 1), then
as order.
"""

VictimKey = Callable[[Candidate], tuple[Any, ...]]


def fewest_nodes(candidate: Candidate) -> tuple[Any, ...]:
    """V1: fewest nodes.

    The option ``tie`` orders candidates of equal size (default: latest release).
    """
    return (candidate.running.attempt.n_nodes, *candidate.tie)


def latest_release(candidate: Candidate) -> tuple[Any, ...]:
    """V2: latest release. Of candidates with equal releases, the one with the fewest nodes."""
    return (-candidate.release[0], *fewest_nodes(candidate))


def least_lost_work(candidate: Candidate) -> tuple[Any, ...]:
    """Least node time lost since the last checkpoint (not in the paper).

    Ties are broken as in V1.
    """
    lost = candidate.lost_us * candidate.running.attempt.n_nodes
    return (lost, *fewest_nodes(candidate))


class OwnVictim(msgspec.Struct, frozen=True):
    """A user-defined victim rule: a function that returns a number for each candidate.

    The candidate with the smallest number is the victim.
    """

    rule: Rule

    def __call__(self, candidate: Candidate) -> tuple[Any, ...]:
        """Return the values of the user's function, then the release time, which breaks ties."""
        return (*numbers(self.rule, self.rule(candidate)), *candidate.release)


VICTIMS: dict[str, VictimKey] = {
    "fewest-nodes": fewest_nodes,
    "latest-release": latest_release,
    "least-lost-work": least_lost_work,
    "fits": fewest_nodes,
}

FITTING = frozenset({"fits"})
"""Victim rules that skip candidates whose nodes do not help (not in the paper).

The failed job must fit on the candidate's nodes, its own surviving nodes and the free nodes. On a
torus, the nodes of most candidates do not complete a box."""


class Steal(msgspec.Struct, frozen=True):
    """A possible steal; times are in microseconds."""

    failed: Running
    victim: Running
    failed_release_us: int
    victim_release_us: int
    kill_us: int
    """When the victim would be interrupted."""
    failed_left_us: int
    """Walltime of the failed job's resubmission."""
    victim_left_us: int
    """Walltime of the victim's resubmission."""
    victim_end_us: int
    """Planned end of the victim without the steal."""
    next_end_us: int
    """Earliest planned end of the running attempts other than the failed job."""
    next_end_besides_us: int
    """Earliest planned end of the running attempts other than the failed job and the victim."""


Criterion = Callable[[Steal], bool]


def strictly_smaller(steal: Steal) -> bool:
    """K1: the victim uses strictly fewer nodes than the failed job."""
    return steal.victim.attempt.n_nodes < steal.failed.attempt.n_nodes


def released_later(steal: Steal) -> bool:
    """K2: the victim was released strictly later than the failed job."""
    return steal.victim_release_us > steal.failed_release_us


def smaller_maximum_flow(steal: Steal) -> bool:
    """K3: the steal strictly reduces the longer of the two jobs' flows, computed from walltimes.

    Without the steal, the failed job waits for the earliest planned end of another attempt. With
    the steal, the victim waits for the earlier of this end and the end of the failed job.
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
    """A user-defined criterion: a function that returns True to accept a steal."""

    rule: Rule

    def __call__(self, steal: Steal) -> bool:
        """Return the result of the function."""
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
"""When the victim stops: timings T1, T2 and T3 of the paper. The failed job waits until then."""


def earliest_end(running: list[Running]) -> int:
    """Return the earliest planned end of these attempts. Return FOREVER_US if there are none."""
    return min((r.planned_end_us for r in running), default=FOREVER_US)
