"""What Batsched's schedulers do beside planning on named machines: FCFS, and what they reject.

Its conservative and EASY backfilling need no rules of their own. Conservative backfilling with
compression, on a ``NamedPlan``, is its ``conservative_bf``. Its ``easy_bf`` spares itself work (an
arrival makes it try the new jobs only, the head's reservation standing), but what it leaves out
could not change anything while nothing is freed; so EASY on a ``NamedPlan`` gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rebat.policies.base import Changes, Proposal, Reject, Start, View
from rebat.policies.composition import Planning
from rebat.policies.planning.queue import SortedQueue
from rebat.policies.queue_order import fcfs


class NeedsWalltime:
    """A planning that rejects every job without walltime.

    Parameters
    ----------
    planning : Planning
        Plans the others.
    """

    def __init__(self, planning: Planning) -> None:
        self._planning = planning

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        endless = [attempt for attempt in changes.arrived if not attempt.has_walltime]
        if not endless:
            return self._planning.plan(view, changes)
        timed = [attempt for attempt in changes.arrived if attempt.has_walltime]
        others = msgspec.structs.replace(changes, arrived=timed)
        rejected = [Reject(attempt.id, "has no walltime") for attempt in endless]
        return [*rejected, *self._planning.plan(view, others)]


class Fcfs:
    """First come, first served, without backfilling and without a plan: walltimes play no part."""

    def __init__(self) -> None:
        self._queue = SortedQueue(fcfs)

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Start the queue's head while it fits; jobs larger than the machine are rejected."""
        self._queue.book(changes.started, changes.withdrawn)
        rejected = []
        for attempt in (*changes.arrived, *changes.resubmitted):
            if attempt.n_nodes > view.n_nodes:
                reason = f"asks for {attempt.n_nodes} of {view.n_nodes} nodes"
                rejected.append(Reject(attempt.id, reason))
            else:
                self._queue.add(attempt)
        return [*rejected, *self._start_head(view)]

    def _start_head(self, view: View) -> list[Start]:
        free, due = view.n_free, 0
        for attempt in self._queue.attempts:
            if attempt.n_nodes > free:
                break
            free -= attempt.n_nodes
            due += 1
        self._queue.start[:due] = view.now_us
        return [Start(attempt.id) for _, attempt in self._queue.due(view.now_us)]
