# SPDX-License-Identifier: Apache-2.0
"""The malleable jobs of a moment, with room to give and to take."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.shapes import Malleable


class Member(msgspec.Struct):
    """A malleable job that runs, or is about to start (``running`` is None).

    ``size`` is what it is to have, from ``low`` to ``high``; ``since_us`` when its first attempt
    started; ``even`` how many of its nodes beyond ``low`` it got in an even share (the second stage
    of DBES), the others being there for a reason.
    """

    attempt: Attempt
    running: Running | None
    size: int
    low: int
    high: int
    since_us: int
    even: int = 0

    @property
    def room(self) -> int:
        """How many nodes it can take."""
        return self.high - self.size

    @property
    def extra(self) -> int:
        """How many nodes it can give."""
        return self.size - self.low

    def give(self, n: int) -> int:
        """Take up to ``n`` nodes from it, those of the even share first; how many it gave."""
        n = min(n, self.extra)
        self.size -= n
        self.even = max(0, self.even - n)
        return n

    def take(self, n: int, even: bool = False) -> int:
        """Give it up to ``n`` nodes; how many it took."""
        n = min(n, self.room)
        self.size += n
        self.even += n if even else 0
        return n


class Members:
    """Knows since when malleable jobs run, and what they got from the even share."""

    def __init__(self) -> None:
        self._since_us: dict[str, int] = {}
        self._even: dict[str, int] = {}

    def running(self, view: View) -> list[Member]:
        """Those that can be resized now, the oldest first: none of their nodes is drained.

        What runs on dead nodes is stopped anyway, in the message that tells of them.
        """
        drained = view.machine.drained
        limited = bool(drained.any())
        found = []
        for running in view.running.values():
            attempt = running.attempt
            shape = view.job(attempt.job_id).shape
            if not isinstance(shape, Malleable):
                continue
            since_us = self._since_us.setdefault(attempt.job_id, running.start_us)
            busy = attempt.id in view.stopping or attempt.id in view.scheduled
            if not busy and not (limited and running.nodes.of_each(drained).any()):
                found.append(self._member(view, attempt, running, since_us, shape))
        return sorted(found, key=lambda member: (member.since_us, member.attempt.job_serial))

    def starting(self, view: View, attempt: Attempt) -> Member | None:
        """A malleable job that starts now on as many nodes as ``attempt`` has; None: another."""
        shape = view.job(attempt.job_id).shape
        if not isinstance(shape, Malleable):
            return None
        self._even.pop(attempt.job_id, None)
        since_us = self._since_us.setdefault(attempt.job_id, view.now_us)
        return self._member(view, attempt, None, since_us, shape)

    def remember(self, member: Member) -> None:
        """What it got from the even share."""
        self._even[member.attempt.job_id] = member.even

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
        return Member(attempt, running, attempt.n_nodes, shape.min, high, since_us, max(0, even))


Mask = npt.NDArray[np.bool_]


def take_lowest(free: Mask, n: int) -> npt.NDArray[np.int64]:
    """The ``n`` lowest free nodes, which are free no longer."""
    nodes = np.flatnonzero(free)[:n]
    free[nodes] = False
    return nodes


def resized_nodes(running: Running, size: int, free: Mask) -> NodeSet:
    """The lowest of its nodes, or all of them and the lowest that are free, which are taken."""
    own = running.nodes
    if size <= own.size:
        return own.first(size)
    more = take_lowest(free, size - own.size)
    return NodeSet.of_sorted(np.sort(np.concatenate([own.ids, more])))


Dependents = Mapping[str, int]
"""How many reservations wait for a job, by its id."""
