# SPDX-License-Identifier: Apache-2.0
"""Victims, timings and criteria of node stealing, for policies that are asked.

`rebat.rules.steals` contains the rules, and what they read. A timing sets when the victim is
interrupted and how much work it keeps.
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
from rebat.rules.steals import CRITERIA, VICTIMS, Candidate, Steal

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
