"""List scheduling with reservations: greedy, EASY and conservative backfilling in one.

The axes are the queue order, the reservation depth (0 greedy, 1 EASY, ALL conservative), how the
plan is maintained, and the placement (the kind of plan underneath).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Protocol

from rebat.core.attempts import Priority, Running
from rebat.core.nodes import NodeSet
from rebat.policies.base import Changes, Reject, Start, View
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.queue import SortedQueue
from rebat.policies.queue_order import QueueOrder, fcfs

ALL = -1
"""Reservation depth: every queued attempt holds a reservation."""


class Upkeep(IntEnum):
    """What a change asks of the plan; the strongest wins."""

    APPEND = 1
    COMPRESS = 2
    REBUILD = 3


MAINTENANCE: dict[str, dict[str, Upkeep]] = {
    # Batsched's: reservations only ever move earlier while nothing fails. After a failure, a
    # rejuvenation or the arrival of a raised priority all is cleared (section 7.2.1).
    "compression": {
        "arrival": Upkeep.APPEND,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.COMPRESS,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.REBUILD,
    },
    # The node-stealing authors' program compresses on a rejuvenation.
    "authors": {
        "arrival": Upkeep.APPEND,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.COMPRESS,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.COMPRESS,
    },
    "rebuild": {
        "arrival": Upkeep.REBUILD,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.REBUILD,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.REBUILD,
    },
}
"""What each kind of change asks of a plan in which every attempt is reserved."""


class AvailabilityPlan(Protocol):
    """What a placement must offer to be planned on; see ``CountedPlan`` for the meanings."""

    def advance(self, now_us: int) -> None: ...
    def started(
        self, attempt_id: str, n_nodes: int, end_us: int, nodes: NodeSet | None = None
    ) -> None: ...
    def held(self, running: Running) -> None: ...
    def ended(self, running: Running) -> None: ...
    def withdrawn(self, attempt_id: str) -> None: ...
    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None: ...
    def rejuvenated(self, nodes: list[int]) -> None: ...
    def append(self, queue: SortedQueue, first: int, last: int) -> None: ...
    def rebuild(self, queue: SortedQueue) -> None: ...
    def compress(self, queue: SortedQueue, last: int) -> None: ...
    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None: ...
    def nodes_at(self, position: int) -> NodeSet | None: ...


class ListScheduling:
    """Plan the queue in its order, and start what is due.

    Parameters
    ----------
    order : QueueOrder
    depth : int
        How many attempts that cannot start now hold a reservation; ALL: every one.
    maintenance : str
        A key of MAINTENANCE; plays no part where depth is not ALL (those plans are rebuilt).
    margin_us : int
        Added to every walltime in the plan.
    placement : callable
        Makes the plan for a number of nodes.
    first : bool
        The first ``depth`` attempts of the queue take the reservations, also those that can start
        now (Algorithm 1 of Benoit et al., RR-9296); plays no part where depth is ALL.
    seed : int
        For a queue order that is drawn.
    """

    def __init__(
        self,
        order: QueueOrder = fcfs,
        depth: int = ALL,
        maintenance: str = "compression",
        margin_us: int = 0,
        placement: Callable[[int], AvailabilityPlan] = CountedPlan,
        first: bool = False,
        seed: int = 0,
    ) -> None:
        self._queue = SortedQueue(order, margin_us, seed)
        self._depth = depth
        self._upkeep = MAINTENANCE[maintenance]
        self._placement = placement
        self._first = first
        self._plan: AvailabilityPlan | None = None

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which attempts to start now; jobs larger than the machine are rejected."""
        plan = self._plan
        if plan is None:
            plan = self._plan = self._placement(view.n_nodes)
            self._queue.on_machine(view.n_nodes)
        plan.advance(view.now_us)
        rejected = [
            Reject(attempt.id, f"asks for {attempt.n_nodes} of {view.n_nodes} nodes")
            for attempt in changes.arrived
            if attempt.n_nodes > view.n_nodes
        ]
        upkeep = self._take_in(plan, view, changes)
        if self._depth == ALL:
            self._maintain(plan, upkeep)
        else:
            plan.backfill(self._queue, self._depth, self._first)
        return [*rejected, *self._start_due(plan, view.now_us)]

    def _take_in(self, plan: AvailabilityPlan, view: View, changes: Changes) -> tuple[Upkeep, int]:
        """Bring queue and plan up to date; gives the upkeep due and the first new position."""
        kinds = set()
        for running in (*changes.ended, *changes.killed):
            plan.ended(running)
            kinds.add("end")
        for running in changes.held:
            plan.held(running)
            kinds.add("priority")
        if changes.failures:
            plan.failed(changes.failed_nodes, changes.failed_under)
            kinds.add("failure")
        if changes.repairs:
            plan.rejuvenated(changes.rejuvenated_nodes)
            kinds.add("rejuvenation")
        returned = changes.returned(view)
        for attempt in returned:
            plan.withdrawn(attempt.id)
            kinds.add("priority")
        if any(attempt.priority > Priority.REGULAR for attempt in changes.resubmitted):
            kinds.add("priority")  # one that comes back after a silent error just arrives
        upkeep = max((self._upkeep[kind] for kind in kinds), default=Upkeep.APPEND)
        first = len(self._queue)
        for attempt in (*returned, *changes.arrived, *changes.resubmitted):
            if attempt.n_nodes <= view.n_nodes:
                if self._queue.add(attempt) < len(self._queue) - 1:
                    upkeep = Upkeep.REBUILD  # it stands before others that are planned already
                else:
                    upkeep = max(upkeep, self._upkeep["arrival"])
        return upkeep, first

    def _maintain(self, plan: AvailabilityPlan, due: tuple[Upkeep, int]) -> None:
        upkeep, first = due
        if upkeep == Upkeep.REBUILD:
            plan.rebuild(self._queue)
            return
        if upkeep == Upkeep.COMPRESS:
            plan.compress(self._queue, first)
        if first < len(self._queue) or upkeep == Upkeep.APPEND:
            plan.append(self._queue, first, len(self._queue))

    def _start_due(self, plan: AvailabilityPlan, now_us: int) -> list[Start]:
        starts = []
        for position, attempt in self._queue.take_due(now_us):
            end_us = now_us + self._queue.duration_of(attempt)
            nodes = plan.nodes_at(position)
            plan.started(attempt.id, attempt.n_nodes, end_us, nodes)
            starts.append(Start(attempt.id, nodes))
        return starts
