# SPDX-License-Identifier: Apache-2.0
"""Decisions of the scheduler: a frozen class for each kind. Names are imperatives."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.nodes import NodeSet


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base class of decisions.

    ``at_us`` is the time at which the decision takes effect, in microseconds. It is the time of the
    message, or later.
    """

    at_us: int


class ExecuteJob(Decision, frozen=True):
    """Start a submitted job on these nodes, which must be up and free."""

    job_id: str
    nodes: NodeSet


class RejectJob(Decision, frozen=True):
    """Reject a job permanently."""

    job_id: str


class KillJobs(Decision, frozen=True):
    """Kill running jobs. A job that was already reported as completed is an error."""

    job_ids: tuple[str, ...]


class CallMeLater(Decision, frozen=True):
    """Request a message at a later time. In Batsim 4, this message does not name the call."""

    when_us: int
    name: str = ""


class RegisterProfile(Decision, frozen=True):
    """Register a profile under a new name."""

    workload: str
    name: str
    profile: dict[str, Any]


class RegisterJob(Decision, frozen=True):
    """Submit a new job with a registered profile. ``job`` needs keys profile, res and subtime."""

    job_id: str
    job: dict[str, Any]


class FinishRegistration(Decision, frozen=True):
    """End the registration of jobs. Without this decision, a dynamic simulation never ends."""


class ContinueRegistration(Decision, frozen=True):
    """Reopen the registration of jobs."""


class SetMetadata(Decision, frozen=True):
    """Attach text without double quotes to a job. Batsim writes the text to jobs.csv."""

    job_id: str
    metadata: str


# ---- decisions that only Batsim 5 accepts; rebat's schedulers do not use them


class PeriodicCall(Decision, frozen=True):
    """Request a message at every multiple of a period since time 0."""

    name: str
    period_us: int
    offset_us: int = 0
    n_periods: int | None = None
    """Number of calls. If None, calls continue until `StopCall`."""


class StopCall(Decision, frozen=True):
    """End a periodic call."""

    name: str


class StopSimulation(Decision, frozen=True):
    """End the simulation immediately."""


class ChangePowerState(Decision, frozen=True):
    """Change the power state of nodes."""

    nodes: NodeSet
    state: int = 0


class SwitchNodes(Decision, frozen=True):
    """Turn nodes on or off."""

    nodes: NodeSet
    state: str = ""


# ---- replies


class Reply(msgspec.Struct, frozen=True):
    """Answer of the scheduler to one message."""

    now_us: int
    decisions: tuple[Decision, ...] = ()
