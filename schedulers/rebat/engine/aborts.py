# SPDX-License-Identifier: Apache-2.0
"""The decisions on which a real Batsim dies, as typed errors."""

from __future__ import annotations

from enum import StrEnum

from rebat.core.errors import BatsimAbort


class AbortRule(StrEnum):
    """The rule that a decision broke."""

    UNKNOWN_JOB = "unknown job"
    NOT_SUBMITTED = "job not submitted or already started"
    WRONG_SIZE = "allocation of the wrong size"
    OUTSIDE = "node outside the machine"
    NODE_DOWN = "execution on an unavailable node"
    NODE_BUSY = "execution on a busy node"
    KILLED_ENDED = "kill of a job whose completion was already sent"
    KILLED_PENDING = "kill of a job that was never started"
    CALL_IN_PAST = "call asked for a date that is not later than now"
    DATE_ORDER = "decision dated outside its message"
    DYNAMIC_OFF = "registration without --enable-dynamic-jobs"
    REGISTRATION_OVER = "registration after registration_finished"
    DUPLICATE = "a name registered twice"
    COMPOSED = "execution of a composed profile that was registered, not loaded"
    UNKNOWN_PROFILE = "unknown profile"
    BAD_JOB = "malformed job"
    BAD_PROFILE = "malformed profile"
    MACHINE_EVENTS = "machine events that do not alternate"
    DEADLOCK = "nothing left to happen, and jobs still waiting"


class Abort(BatsimAbort):
    """A real Batsim would have aborted here.

    Attributes
    ----------
    rule : AbortRule
        Which of Batsim's rules was broken.
    """

    def __init__(self, rule: AbortRule, detail: str, now_s: float) -> None:
        super().__init__(f"Batsim would abort at {now_s:.6f} s: {rule} ({detail})")
        self.rule = rule
