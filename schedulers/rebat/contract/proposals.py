# SPDX-License-Identifier: Apache-2.0
"""Proposals of a policy to the session.

For Batsim, a resize, the replacement of a failed node, a migration, a steal and a requeue are the
same operation: kill the attempt, wait for the acknowledgement, register the remaining work, and
queue or execute it. Therefore, a policy proposes a stop and the step after it. The session computes
the remaining work, checks the proposal, and carries it out or refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rebat.core.attempts import Cause, Priority, When
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US


class End(msgspec.Struct, frozen=True):
    """Step after a stop: end the job."""

    priority: int = Priority.REGULAR


class Requeue(msgspec.Struct, frozen=True):
    """Step after a stop: put the remaining work back into the queue."""

    priority: int = Priority.FAILED


class Move(msgspec.Struct, frozen=True):
    """Step after a stop: continue immediately on these nodes.

    The shape of the job must allow the number of nodes. If this number changes, a moldable job
    restarts from the beginning, because it cannot be resized.

    Each node must be usable. It must belong to the job, be free, or belong to an attempt that is
    being stopped, unless this attempt then waits: a job that waits keeps its nodes. The session
    holds free nodes for the job immediately, and other nodes when they are released. If a held node
    fails before the job is stopped, the job continues to run. If a held node fails later, the
    remaining work is requeued with ``priority``.
    """

    nodes: NodeSet
    priority: int = Priority.FAILED


class Wait(msgspec.Struct, frozen=True):
    """Step after a stop: hold the usable nodes of the job, and requeue it when the wait ends.

    The wait ends at the first of three events: the session executes or cancels the stop of the
    attempt with the id ``on``, the time ``until_us`` is reached, or the policy proposes a
    ``Release``.
    """

    on: str = ""
    until_us: int = FOREVER_US
    priority: int = Priority.FAILED


Then = Requeue | Move | Wait | End


class Stop(msgspec.Struct, frozen=True):
    """Stop a running attempt, now or at a checkpoint. Then take the step ``then``.

    ``why`` is a reason for the records.
    """

    attempt_id: str
    cause: Cause
    when: When = When.NOW
    then: Then = Requeue()
    why: str = ""


class Start(msgspec.Struct, frozen=True):
    """Start a queued attempt on ``nodes``, or on the lowest-numbered free nodes.

    ``n_nodes``, or the size of ``nodes``, may differ from the requested number if the job is
    moldable or malleable. The session then rejects the attempt, registers it with the new size in
    the same message, and starts it as the next attempt of the job.
    """

    attempt_id: str
    nodes: NodeSet | None = None
    n_nodes: int | None = None

    def size(self, job_size: int) -> int:
        """Return the number of nodes on which an attempt that requests ``job_size`` will start."""
        if self.nodes is not None:
            return self.nodes.size
        return job_size if self.n_nodes is None else self.n_nodes


class Reject(msgspec.Struct, frozen=True):
    """Reject a queued job permanently."""

    attempt_id: str
    reason: str


class Release(msgspec.Struct, frozen=True):
    """End the wait of a job, and cancel the stop for which it waits."""

    job_id: str


class Wake(msgspec.Struct, frozen=True):
    """Request a message with ``tag`` at a later time.

    If a plan proposes it for the present time, the session requests another plan at this time.
    """

    at_us: int
    tag: str = ""


class Drain(msgspec.Struct, frozen=True):
    """Start no more attempts on these nodes. Running attempts continue.

    ``why`` is the reason. A node may be drained for several reasons. It returns to service when no
    reason is left.
    """

    nodes: NodeSet
    why: str = ""


class Undrain(msgspec.Struct, frozen=True):
    """Remove ``why`` from the reasons for which these nodes are drained."""

    nodes: NodeSet
    why: str = ""


class Note(msgspec.Struct, frozen=True):
    """Record that an operation of the administrator is not carried out, and why."""

    operation: str
    reason: str


def called(function: Any, *given: Any) -> Any:
    """Return the answer of a function of a policy."""
    return function(*given)


class PlanByRules(msgspec.Struct, frozen=True):
    """Let the rules plan, start what is due, and reject what can never start.

    ``point`` is the `Point` with the parameters of the rules, ``placement`` its `Placement`.
    ``announced`` contains the reservations that administrators have announced so far.

    ``may_start`` states whether a limit in a file allows an attempt to start now. It receives its
    id, and the ids of those that start earlier in this plan.

    ``decide`` decides instead of the rules which attempts start. It receives the number of a group
    of partitions and its queue (`rebat.drive.by_rules.AskedQueue`), adds new attempts to the queue,
    and returns proposals.

    ``call`` calls each function of the policy. It can state the line of an error.
    """

    point: Any
    changes: Any
    placement: Any
    announced: Sequence[Any] = ()
    may_start: Any = None
    decide: Any = None
    call: Any = called


Proposal = Start | Reject | Stop | Release | Wake | Drain | Undrain | Note | PlanByRules


class Refusal(msgspec.Struct, frozen=True):
    """Reason why the session does not carry out a proposal.

    ``subject`` (an attempt, a job, nodes or a wake) and ``reason`` together form a sentence.
    """

    subject: str
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """Answer of the session to a proposal. The proposal is accepted if there is no refusal."""

    proposal: Proposal
    refusal: Refusal | None = None
