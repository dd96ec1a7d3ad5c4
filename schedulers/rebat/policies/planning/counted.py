# SPDX-License-Identifier: Apache-2.0
"""Placement ``any``: a plan that counts nodes but does not choose particular ones.

A *profile* is the number of free nodes over time. The plan has two profiles. In ``base``, nodes of
running attempts and failed nodes are not free. In ``plan``, reserved nodes are not free either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.kernels import counts, deep
from rebat.kernels.spread import scratch_needed
from rebat.policies.planning.queue import PlanBook, SortedQueue, WithoutPlace

Steps = npt.NDArray[np.int64]
Change = tuple[int, int, int]
"""A change of the free nodes: start and end of an interval (us), and the number of added nodes."""

FEW = 4
"""Maximum number of changes that a loop applies. More changes are applied with arrays."""

MOST_LATER = 1024
"""Maximum number of changes of the profile ``base`` that are not yet applied."""


class Profile:
    """Number of free nodes over time, as arrays that grow (see ``rebat.kernels.counts``)."""

    def __init__(self, n_free: int) -> None:
        self.t: Steps = np.zeros(256, dtype=np.int64)
        self.f: Steps = np.full(256, n_free, dtype=np.int64)
        self.n = 1

    def room_for(self, rectangles: int) -> None:
        """Enlarge the arrays for more rectangles.

        A rectangle is a change of the free nodes in an interval.
        """
        need = self.n + counts.steps_needed(rectangles)
        if need > len(self.t):
            more = np.zeros(2 * need - len(self.t), dtype=np.int64)
            self.t, self.f = np.concatenate([self.t, more]), np.concatenate([self.f, more])

    def copy_from(self, other: Profile, rectangles: int = 0) -> None:
        """Copy another profile into this one, with room for ``rectangles`` more rectangles."""
        n = self.n = other.n
        self.room_for(rectangles)
        self.t[:n] = other.t[:n]
        self.f[:n] = other.f[:n]

    def change(self, start_us: int, end_us: int, delta: int) -> None:
        """Add ``delta`` free nodes in an interval."""
        self.room_for(1)
        self.n = counts.change(self.t, self.f, self.n, start_us, end_us, delta)

    def change_all(self, changes: Sequence[Change]) -> None:
        """Apply several changes in order."""
        if len(changes) <= FEW:
            for change in changes:
                self.change(*change)
            return
        self.room_for(len(changes))
        table = np.array(changes, dtype=np.int64)
        self.n = counts.change_all(self.t, self.f, self.n, table)

    def forget(self, now_us: int) -> None:
        """Delete the part before ``now_us``."""
        self.n = counts.forget(self.t, self.f, self.n, now_us)


class Base:
    """The profile ``base``.

    Changes are collected, and applied together when the profile is read.
    """

    def __init__(self, n_free: int) -> None:
        self._profile = Profile(n_free)
        self._later: list[Change] = []

    def change(self, now_us: int, end_us: int, delta: int) -> None:
        """Add ``delta`` free nodes from now until ``end_us``."""
        self._later.append((now_us, end_us, delta))
        if len(self._later) == MOST_LATER:
            self.profile(now_us)

    def profile(self, now_us: int) -> Profile:
        """Return the profile from now on."""
        if self._later:
            self._profile.change_all(self._later)
            self._later.clear()
        self._profile.forget(now_us)
        return self._profile


class CountedPlan(PlanBook[int]):
    """The plan of a list scheduler for interchangeable nodes.

    Parameters
    ----------
    n_nodes : int
        Number of nodes of the machine, all up and free.
    """

    def __init__(self, n_nodes: int) -> None:
        super().__init__()
        self._base = Base(n_nodes)
        self._plan = Profile(n_nodes)
        self._blocks: Steps = np.zeros(0, dtype=np.int64)

    # ---- updates

    def advance(self, now_us: int) -> None:
        self._now_us = max(self._now_us, now_us)
        self._note_late(now_us)

    def _extend(self) -> dict[str, int]:
        """Set the planned end of each overdue attempt to its next one. Return these ends by id."""
        overdue = self._overdue()
        for attempt_id, end_us in overdue.items():
            self._take(attempt_id, self._holds[attempt_id][0], end_us)
        return overdue

    def _settle(self, queue: SortedQueue, last: int) -> None:
        """Adjust planned ends and reservations to the present time.

        Overdue attempts get a later planned end. If a reservation starts before this end, or if
        its start was due but its attempt did not start, make all reservations again. If only this
        reservation were moved, a later attempt of the queue could start first.
        """
        overdue = self._extend()
        self._plan.forget(self._now_us)
        late_us = max(overdue.values(), default=self._now_us)
        if counts.any_before(queue.start, last, late_us):
            self._plan.copy_from(self._base.profile(self._now_us))
            self._place(queue, 0, last)
        elif overdue:
            for attempt_id in overdue:
                size, end_us = self._holds[attempt_id]
                self._plan.change(self._now_us, end_us, -size)

    def started(self, running: Running, end_us: int) -> None:
        self._take(running.attempt.id, running.attempt.n_nodes, end_us)

    def _take(self, attempt_id: str, size: int, end_us: int) -> None:
        self._base.change(self._now_us, end_us, -size)
        self._hold(attempt_id, size, end_us)

    def clear(self) -> None:
        """Delete all reservations. The caller must then call `rebuild`."""

    def held(self, running: Running, end_us: int) -> None:
        self._take(running.attempt.id, running.attempt.n_nodes, end_us)

    def ended(self, running: Running) -> None:
        size, end = self._holds.pop(running.attempt.id)
        self._change(max(end, self._now_us), size)
        self._opened_us = max(self._opened_us, end)

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Record that nodes are unusable during the entire plan.

        Attempts may still hold some of the nodes. ``under`` contains the id of the holding attempt
        for each of these nodes. A held node that fails no longer counts as held, so that it is not
        subtracted twice.
        """
        self._change(FOREVER_US, -len(nodes))
        for attempt_id in under:
            size, end = self._holds[attempt_id]
            self._holds[attempt_id] = size - 1, end
            self._change(end, 1)

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self._change(FOREVER_US, len(nodes))
        for attempt_id in under:
            size, end = self._holds[attempt_id]
            self._holds[attempt_id] = size + 1, end
            self._change(end, -1)
        self._opened_us = FOREVER_US

    def _change(self, end_us: int, delta: int) -> None:
        self._base.change(self._now_us, end_us, delta)
        self._plan.change(self._now_us, end_us, delta)

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        self._settle(queue, first)
        self._place(queue, first, last)

    def _place(self, queue: SortedQueue, first: int, last: int) -> None:
        plan = self._plan
        plan.room_for(last - first)
        plan.n = deep.reserve(
            plan.t,
            plan.f,
            plan.n,
            queue.size,
            queue.duration,
            queue.start,
            first,
            last,
            self._scratch(),
        )

    def _scratch(self) -> Steps:
        """Return the array in which the kernels build a profile in blocks."""
        need = scratch_needed(len(self._plan.t) + 8)
        if len(self._blocks) < need:
            self._blocks = np.zeros(need, dtype=np.int64)
        return self._blocks

    def rebuild(self, queue: SortedQueue) -> None:
        self._extend()
        self._plan.copy_from(self._base.profile(self._now_us))
        self._place(queue, 0, len(queue))
        self._opened_us = self._now_us

    def compress(self, queue: SortedQueue, last: int) -> None:
        self._settle(queue, last)
        plan = self._plan
        plan.room_for(last)
        plan.n, self._opened_us = deep.renew(
            plan.t,
            plan.f,
            plan.n,
            queue.size,
            queue.duration,
            queue.start,
            last,
            self._opened_us,
            self._scratch(),
        )

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        if not len(queue):
            return
        self._extend()
        plan = self._plan
        plan.copy_from(self._base.profile(self._now_us), len(queue))
        plan.n = counts.backfill(
            plan.t,
            plan.f,
            plan.n,
            queue.size,
            queue.duration,
            queue.start,
            len(queue),
            depth,
            first,
        )

    def first_fit_us(self, size: int, duration_us: int) -> int:
        """Return the earliest time at which ``size`` nodes stay free for a duration.

        Return FOREVER_US if there is none.
        """
        plan = self._plan
        return int(counts.first_fit(plan.t, plan.f, plan.n, size, duration_us))

    without_place: WithoutPlace | None = None

    def nodes_at(self, position: int) -> NodeSet | None:
        """Return None, because this plan reserves no particular nodes."""
        return None
