# SPDX-License-Identifier: Apache-2.0
"""Victims, timings and criteria of node stealing, for policies that are asked.

`rebat.rules.steals` contains the rules. Those of a file receive the same fields and, in addition,
the attempts. A timing sets when the victim is interrupted and how much work it keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import msgspec

from rebat.contract import When
from rebat.core.attempts import Attempt, Running
from rebat.core.units import FOREVER_US
from rebat.policies.own import Rule, UnfitAnswer, called, numbers
from rebat.policies.queue_order import program_id
from rebat.rules import steals
from rebat.rules.steals import CRITERIA, VICTIMS

__all__ = ["CRITERIA", "RELEASES", "TIES", "TIMINGS", "VICTIMS", "Candidate", "Steal"]

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

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the attempt."""
        return self.running.n_nodes

    @property
    def start_us(self) -> int:
        """When the attempt started, in microseconds."""
        return self.running.start_us

    @property
    def release_us(self) -> int:
        """Release time in microseconds."""
        return self.release[0]


TieOf = Callable[[Running, tuple[int, int]], tuple[Any, ...]]
"""Function of a running attempt and its release that returns `Candidate.tie`."""


def _tie(rule: steals.Tie, running: Running, release: tuple[int, int]) -> tuple[Any, ...]:
    """Return the key of a tie rule."""
    last = program_id(running.attempt) if rule.by_text else -release[1]
    return (rule.key(running), -release[0], last)


TIES: dict[str, TieOf] = {name: partial(_tie, rule) for name, rule in steals.TIES.items()}
"""Tie-breakers between victims of equal size (`rebat.rules.steals`)."""


class OwnVictim(msgspec.Struct, frozen=True):
    """A user-defined victim rule: a function that returns a number for each candidate.

    The candidate with the smallest number is the victim.
    """

    rule: Rule
    fits: ClassVar[bool] = False

    def __call__(self, candidate: Candidate) -> tuple[Any, ...]:
        """Return the values of the user's function, then the release time, which breaks ties."""
        return (*numbers(self.rule, self.rule(candidate)), *candidate.release)


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

    @property
    def failed_nodes(self) -> int:
        """Number of nodes of the failed job."""
        return self.failed.n_nodes

    @property
    def victim_nodes(self) -> int:
        """Number of nodes of the victim."""
        return self.victim.n_nodes


Criterion = Callable[[Steal], bool]


class OwnCriterion(msgspec.Struct, frozen=True):
    """A user-defined criterion: a function that returns True to accept a steal."""

    rule: Rule

    def __call__(self, steal: Steal) -> bool:
        """Return the result of the function."""
        answer = called(self.rule, steal)
        if not isinstance(answer, bool):
            raise UnfitAnswer(self.rule, answer, "True or False")
        return answer


TIMINGS: dict[str, When] = {
    "now": When.NOW,
    "proactive": When.CHECKPOINT,
    "next": When.NEXT_CHECKPOINT,
}
"""When the victim stops: timings T1, T2 and T3 of the paper. The failed job waits until then."""


def earliest_end(running: list[Running]) -> int:
    """Return the earliest planned end of these attempts. Return FOREVER_US if there are none."""
    return min((r.planned_end_us for r in running), default=FOREVER_US)
