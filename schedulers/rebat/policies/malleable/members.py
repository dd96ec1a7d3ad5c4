# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs at the current time, and the sizes that they can have."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.traits import Malleable


class Member(msgspec.Struct):
    """A malleable job that runs or is about to start."""

    attempt: Attempt
    running: Running | None
    """The running attempt. None if the job is about to start."""
    size: int
    """Planned number of nodes, from ``low`` to ``high``."""
    low: int
    high: int
    since_us: int
    """Start of the job's first attempt, in microseconds."""
    even: int = 0
    """Number of nodes above ``low`` that the job received when nodes were shared equally (DBES)."""
    expanded_us: int = 0
    """Time at which the job last grew, in microseconds. If it never grew, this is its start."""
    n_resizes: int = 0
    """Number of times that the job grew or shrank."""

    @property
    def room(self) -> int:
        """Number of nodes that the member can receive."""
        return self.high - self.size

    @property
    def extra(self) -> int:
        """Number of nodes that the member can give up."""
        return self.size - self.low

    def give(self, n: int) -> int:
        """Remove up to ``n`` nodes, and return the number of removed nodes.

        Nodes that were shared equally are removed first.
        """
        n = min(n, self.extra)
        self.size -= n
        self.even = max(0, self.even - n)
        return n

    def take(self, n: int, even: bool = False) -> int:
        """Add up to ``n`` nodes, and return the number of added nodes."""
        n = min(n, self.room)
        self.size += n
        self.even += n if even else 0
        return n


class Members:
    """The stored data of all malleable jobs: starts, equal shares and resizes."""

    def __init__(self) -> None:
        self._since_us: dict[str, int] = {}
        self._even: dict[str, int] = {}
        self._expanded_us: dict[str, int] = {}
        self._n_resizes: dict[str, int] = {}

    def running(self, view: View) -> list[Member]:
        """Return the members that can be resized now, oldest first.

        Jobs with drained nodes are left out. Jobs with failed nodes are left out too, because they
        are being stopped.
        """
        drained = view.machine.drained
        limited = bool(drained.any())
        members = []
        for running in view.running.values():
            attempt = running.attempt
            shape = view.job(attempt.job_id).shape
            if not isinstance(shape, Malleable):
                continue
            since_us = self._since_us.setdefault(attempt.job_id, running.start_us)
            busy = attempt.id in view.stopping or attempt.id in view.scheduled
            if not busy and not (limited and running.nodes.of_each(drained).any()):
                members.append(self._member(view, attempt, running, since_us, shape))
        return sorted(members, key=lambda member: (member.since_us, member.attempt.job_serial))

    def starting(self, view: View, attempt: Attempt) -> Member | None:
        """Return the member for an attempt that starts now, or None if its job is not malleable."""
        shape = view.job(attempt.job_id).shape
        if not isinstance(shape, Malleable):
            return None
        self._even.pop(attempt.job_id, None)
        since_us = self._since_us.setdefault(attempt.job_id, view.now_us)
        return self._member(view, attempt, None, since_us, shape)

    def remember(self, member: Member, now_us: int) -> None:
        """Store the number of nodes of a member that were shared equally.

        If the number of its nodes changes, also store this resize.
        """
        job_id = member.attempt.job_id
        self._even[job_id] = member.even
        if member.size > member.attempt.n_nodes:
            self._expanded_us[job_id] = now_us
        if member.size != member.attempt.n_nodes:
            self._n_resizes[job_id] = self._n_resizes.get(job_id, 0) + 1

    def _member(
        self,
        view: View,
        attempt: Attempt,
        running: Running | None,
        since_us: int,
        shape: Malleable,
    ) -> Member:
        high = max(attempt.n_nodes, min(shape.max, view.n_nodes))
        even = min(self._even.get(attempt.job_id, 0), attempt.n_nodes - shape.min)
        return Member(
            attempt,
            running,
            attempt.n_nodes,
            shape.min,
            high,
            since_us,
            max(0, even),
            self._expanded_us.get(attempt.job_id, since_us),
            self._n_resizes.get(attempt.job_id, 0),
        )


Mask = npt.NDArray[np.bool_]


def take_lowest(free: Mask, n: int) -> NodeSet:
    """Take and return the ``n`` lowest free nodes. If there are fewer, take all."""
    ends = np.flatnonzero(np.diff(free, prepend=False, append=False)).reshape(-1, 2)
    all_free = NodeSet(ends - np.array([0, 1]))
    nodes = all_free.first(min(n, all_free.size))
    nodes.put(free, False)
    return nodes


def resized_nodes(running: Running, size: int, free: Mask) -> NodeSet:
    """Return the nodes of a job after a change of its size.

    A smaller job keeps its lowest nodes. A larger job takes the lowest free nodes, which are
    removed from ``free``.
    """
    own = running.nodes
    if size <= own.size:
        return own.first(size)
    more = take_lowest(free, size - own.size)
    return NodeSet.from_intervals((*own.intervals.tolist(), *more.intervals.tolist()))


Dependents = Mapping[str, int]
"""Number of reservations that depend on each job, by job id."""
