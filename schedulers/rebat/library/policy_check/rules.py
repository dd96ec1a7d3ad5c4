# SPDX-License-Identifier: Apache-2.0
"""Table of the checks of a policy.

The checks compare the *usual run* of a case with other runs. The usual run takes place in the
process ``Players.usual``, without additional messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rebat.library.policy_check.playing import How, Played
from rebat.library.policy_check.processes import Players

Test = Callable[[Players, dict[str, Any], Played], str]
"""Function of the processes, a case and its usual run. It returns the problem or an empty text."""


class PolicyRule(NamedTuple):
    """A check: the rule, and a test of this rule on one case."""

    name: str
    meaning: str
    test: Test
    compares: bool = True
    """Whether the test compares two runs.

    In this case, the usual run must not have broken a rule.
    """
    needs_usual: bool = False
    """Whether only cases that have neither latency nor split messages are tested."""
    of_streams: bool = False
    """Whether only streams of jobs are tested."""

    def covers(self, case: dict[str, Any], usual: Played) -> bool:
        """Return whether the check applies to a case."""
        if self.compares and usual.rule:
            return False
        if self.needs_usual and (case["latency_s"] or case["split_instants"]):
            return False
        return bool(case["stream"] or not self.of_streams)


def _broken(name: str) -> Test:
    """Return a test that fails if the usual run breaks the rule of this name."""
    return lambda players, case, usual: usual.problem if usual.rule == name else ""


def _repeat(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.usual.play(case, How.TWICE), "a second run")


def _hash_seed(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.other_hash.play(case), "a process with another hash seed")


def _clock(players: Players, case: dict[str, Any], usual: Played) -> str:
    return _difference(usual, players.other_clock.play(case), "a run at another time of day")


def _messages(players: Players, case: dict[str, Any], usual: Played) -> str:
    noisy = players.usual.play(case, How.NOISY)
    return _difference(usual, noisy, "a run with additional messages", schedule_only=True)


def _wire(players: Players, case: dict[str, Any], usual: Played) -> str:
    wire = players.usual.play(case, How.WIRE)
    return _difference(usual, wire, "a run over Batsim's protocol", schedule_only=True)


def _difference(usual: Played, other: Played, which: str, schedule_only: bool = False) -> str:
    """Describe how two runs differ. The text is empty if they are equal."""
    if other.rule == "repeat":
        return other.problem
    if other.rule:
        return f"only in {which}: {other.problem}"
    if other.schedule != usual.schedule:
        return f"{which} has another schedule"
    if not schedule_only and other.decisions != usual.decisions:
        return f"{which} has the same schedule, but other decisions"
    return ""


RULES = (
    PolicyRule(
        "safety",
        "no error, no refused proposal, at most one attempt per node, no attempt on a dead node",
        _broken("safety"),
        compares=False,
    ),
    PolicyRule("ends", "every job ends, exactly once", _broken("ends"), compares=False),
    PolicyRule(
        "starvation",
        "no job waits longer than the longest walltime x the number of jobs submitted up to it",
        _broken("starvation"),
        compares=False,
        of_streams=True,
    ),
    PolicyRule("view", "the policy does not change the view", _broken("view"), compares=False),
    PolicyRule("repeat", "a second run in the same process decides the same", _repeat),
    PolicyRule("hash-seed", "a process with another hash seed decides the same", _hash_seed),
    PolicyRule("clock", "at another time of day it decides the same", _clock),
    PolicyRule(
        "messages",
        "additional messages, and instants in parts, do not change the schedule",
        _messages,
        needs_usual=True,
    ),
    PolicyRule(
        "wire",
        "over Batsim's protocol, the schedule is the same",
        _wire,
        needs_usual=True,
    ),
)
"""The checks, in the order in which they are reported."""
