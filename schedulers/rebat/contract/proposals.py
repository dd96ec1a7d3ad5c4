# SPDX-License-Identifier: Apache-2.0
"""What a policy may ask of the session: all that can happen to a job is *stop, then ...*.

A resize, the replacement of a dead node, a migration, a theft and a plain requeue are one thing on
Batsim: kill, wait for the acknowledgement, register what remains, queue or execute it. A policy
says what it wants; the session works out what survives, checks, and carries it out or refuses it.
"""

from __future__ import annotations

import msgspec

from rebat.core.attempts import Cause, Priority, When
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US


class End(msgspec.Struct, frozen=True):
    """Nothing: the job is over."""

    priority: int = Priority.REGULAR


class Requeue(msgspec.Struct, frozen=True):
    """What remains goes back into the queue."""

    priority: int = Priority.FAILED


class Move(msgspec.Struct, frozen=True):
    """What remains goes on at once on these nodes: as many, fewer or more.

    A moldable job on another number of nodes starts over: by definition it cannot be resized.

    The nodes must be usable and its own, free, or held by an attempt that is being stopped. Those
    that are free are claimed from now on, the others when they are given back. If one of them is
    lost before the job is stopped, it runs on; if after, what remains is queued with ``priority``.
    """

    nodes: NodeSet
    priority: int = Priority.FAILED


class Wait(msgspec.Struct, frozen=True):
    """What survives of its nodes is held for the job, until it is released into the queue.

    That is when the stop of the attempt ``on`` is carried out or falls through, at the date
    ``until_us``, or at a ``Release``; whichever comes first.
    """

    on: str = ""
    until_us: int = FOREVER_US
    priority: int = Priority.FAILED


Then = Requeue | Move | Wait | End


class Stop(msgspec.Struct, frozen=True):
    """Stop a running attempt, now or at a checkpoint, and then ...

    ``why`` is a word for the records: what the stop is for.
    """

    attempt_id: str
    cause: Cause
    when: When = When.NOW
    then: Then = Requeue()
    why: str = ""


class Start(msgspec.Struct, frozen=True):
    """Start a queued attempt; without ``nodes`` it gets the lowest-numbered free ones.

    On ``n_nodes`` of them, or on ``nodes`` of another number than it asks for, a moldable or
    malleable job is rejected and registered anew in that size within the message: it starts as its
    next attempt.
    """

    attempt_id: str
    nodes: NodeSet | None = None
    n_nodes: int | None = None

    def size(self, asked: int) -> int:
        """On how many nodes it starts, when it asks for so many."""
        if self.nodes is not None:
            return self.nodes.size
        return asked if self.n_nodes is None else self.n_nodes


class Reject(msgspec.Struct, frozen=True):
    """Refuse a job for good."""

    attempt_id: str
    reason: str


class Release(msgspec.Struct, frozen=True):
    """End the wait of a job; the stop that it waited for is called off."""

    job_id: str


class Wake(msgspec.Struct, frozen=True):
    """Ask to receive ``tag`` at a later time."""

    at_us: int
    tag: str = ""


class Drain(msgspec.Struct, frozen=True):
    """Start nothing more on these nodes; what runs there goes on.

    ``why`` says what for: nodes may be drained for several things, and are in service again when
    they are drained for none any more.
    """

    nodes: NodeSet
    why: str = ""


class Undrain(msgspec.Struct, frozen=True):
    """These nodes are not drained for this any more."""

    nodes: NodeSet
    why: str = ""


class Note(msgspec.Struct, frozen=True):
    """For the records: an operation that was asked for is not carried out, and why."""

    what: str
    reason: str


Proposal = Start | Reject | Stop | Release | Wake | Drain | Undrain | Note


class Refusal(msgspec.Struct, frozen=True):
    """Why something is not carried out; ``subject`` and ``reason`` make a sentence.

    The subject is an attempt, a job, nodes or a wake.
    """

    subject: str
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """The session's answer to a proposal; without a refusal it is carried out, or will be."""

    proposal: Proposal
    refusal: Refusal | None = None
