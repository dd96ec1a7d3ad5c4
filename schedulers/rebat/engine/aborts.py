# SPDX-License-Identifier: Apache-2.0
"""Errors for decisions at which a real Batsim aborts."""

from __future__ import annotations

from enum import StrEnum

from rebat.core.errors import BatsimAbort


class AbortRule(StrEnum):
    """The rules of Batsim that a decision can violate."""

    UNKNOWN_JOB = "unknown job"
    NOT_SUBMITTED = "job not submitted or already started"
    WRONG_SIZE = "allocation of the wrong size"
    OUTSIDE = "node outside the machine"
    NODE_DOWN = "execution on an unavailable node"
    NODE_BUSY = "execution on a busy node"
    KILLED_ENDED = "kill of a job whose completion was already sent"
    KILLED_PENDING = "kill of a job that was never started"
    KILLED_TWICE = "kill of jobs that are already being killed"
    CALL_IN_PAST = "call at a time that is not later than now"
    DATE_ORDER = "decision with a time outside its message"
    DYNAMIC_OFF = "registration without --enable-dynamic-jobs"
    REGISTRATION_OVER = "registration after registration_finished"
    DUPLICATE = "duplicate name"
    COMPOSED = "execution of a composed profile that was registered, not loaded"
    UNKNOWN_PROFILE = "unknown profile"
    BAD_JOB = "malformed job"
    BAD_PROFILE = "malformed profile"
    COLLECTED = "end of a job whose sequence has a part of another workload"
    PERIODIC = "periodic call that does not fit"
    POWER_STATE = "unknown power state"
    MACHINE_EVENTS = "machine events that do not alternate"
    DEADLOCK = "no event is left, but jobs still wait"


class Abort(BatsimAbort):
    """Error: a real Batsim would have aborted at this point.

    Attributes
    ----------
    rule : AbortRule
        The violated rule of Batsim.
    problem : str
        The rule and the decision.
    now_s : float
        The time in seconds.
    """

    def __init__(self, rule: AbortRule, detail: str, now_s: float) -> None:
        self.problem = f"{rule} ({detail})"
        super().__init__(f"Batsim would abort at {now_s:.6f} s: {self.problem}")
        self.rule, self.now_s = rule, now_s
