# SPDX-License-Identifier: Apache-2.0
"""What the scheduler answers: imperative, frozen, one class per kind."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.nodes import NodeSet


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base: a decision takes effect at a date not before the message it answers."""

    at_us: int


class ExecuteJob(Decision, frozen=True):
    """Start a submitted job on these nodes, all up and free."""

    job_id: str
    nodes: NodeSet


class RejectJob(Decision, frozen=True):
    """Refuse a job for good."""

    job_id: str


class KillJobs(Decision, frozen=True):
    """Kill running jobs, none of which is known to have completed."""

    job_ids: tuple[str, ...]


class CallMeLater(Decision, frozen=True):
    """Ask for a message at a date strictly later than now."""

    when_us: int


class RegisterProfile(Decision, frozen=True):
    """Make a new profile known under a name not used before."""

    workload: str
    name: str
    profile: dict[str, Any]


class RegisterJob(Decision, frozen=True):
    """Submit a new job; its profile comes first; ``job`` needs profile, res, subtime."""

    job_id: str
    job: dict[str, Any]


class FinishRegistration(Decision, frozen=True):
    """No job will be registered any more. Without it a dynamic simulation never ends."""


class ContinueRegistration(Decision, frozen=True):
    """Take FinishRegistration back."""


class SetMetadata(Decision, frozen=True):
    """Attach a text without double quotes to a job; it lands in jobs.csv."""

    job_id: str
    metadata: str


class Reply(msgspec.Struct, frozen=True):
    """The scheduler's answer to one message."""

    now_us: int
    decisions: tuple[Decision, ...] = ()
