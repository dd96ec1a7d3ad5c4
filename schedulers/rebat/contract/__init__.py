# SPDX-License-Identifier: Apache-2.0
"""The contract between session and policy: a view to read, and proposals to return.

A policy must not do I/O, read a clock or draw from a global random stream. The session checks each
proposal. If a real Batsim would abort on a proposal, the session refuses it and states a reason.
"""

from rebat.contract.planned import PlannedStarts
from rebat.contract.policy import Changes, News, Policy
from rebat.contract.proposals import (
    Answer,
    Drain,
    End,
    Move,
    Note,
    Proposal,
    Refusal,
    Reject,
    Release,
    Requeue,
    Start,
    Stop,
    Then,
    Undrain,
    Wait,
    Wake,
)
from rebat.contract.view import Machine, Submission, View, WaitingJob
from rebat.core.attempts import Attempt, Cause, Priority, Running, When
from rebat.core.nodes import NodeSet

__all__ = [
    "Answer",
    "Attempt",
    "Cause",
    "Changes",
    "Drain",
    "End",
    "Machine",
    "Move",
    "News",
    "NodeSet",
    "Note",
    "PlannedStarts",
    "Policy",
    "Priority",
    "Proposal",
    "Refusal",
    "Reject",
    "Release",
    "Requeue",
    "Running",
    "Start",
    "Stop",
    "Submission",
    "Then",
    "Undrain",
    "View",
    "Wait",
    "WaitingJob",
    "Wake",
    "When",
]
