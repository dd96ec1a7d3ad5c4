# SPDX-License-Identifier: Apache-2.0
"""List scheduling with reservations: greedy, EASY and conservative backfilling.

The options are the queue order, the reservation depth (0: greedy, 1: EASY, ALL: conservative), the
maintenance of the plan, and the placement. The placement determines the class of the plan. A
reservation is *due* when its start time is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Annotated, ClassVar

from rebat.contract import Changes, Machine, PlannedStarts, Proposal, Reject, Start, View
from rebat.core.attempts import Attempt, Priority, Running
from rebat.core.errors import InputError
from rebat.policies.composition import Planning
from rebat.policies.context import Context, SizeLimit
from rebat.policies.planning.batsched import TimedOptions
from rebat.policies.planning.counted import CountedPlan
from rebat.policies.planning.predictions import (
    PREDICTIONS,
    Prediction,
    later_end_us,
    millionths_of,
    prediction,
)
from rebat.policies.planning.queue import AvailabilityPlan, SortedQueue
from rebat.policies.queue_order import QueueOrder, fcfs
from rebat.policies.variants import choice, text

ALL = -1
"""Reservation depth at which every queued attempt has a reservation."""


class Upkeep(IntEnum):
    """Ways to update a plan after a change.

    If changes need different ways, the largest value is used.
    """

    APPEND = 1
    COMPRESS = 2
    REBUILD = 3


MAINTENANCE: dict[str, dict[str, Upkeep]] = {
    # Batsched: after the end of a job, reservations can only move to earlier times. All are deleted
    # after a failure, a repair, or the arrival of a job with raised priority (section 7.2.1).
    "compression": {
        "arrival": Upkeep.APPEND,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.COMPRESS,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.REBUILD,
    },
    # The program of the node-stealing authors compresses the plan after a repair.
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
"""How the plan is updated after each kind of change, if every attempt has a reservation."""


class ListScheduling(Planning):
    """A planning that reserves nodes in queue order, and starts attempts that are due.

    Parameters
    ----------
    order : QueueOrder
    depth : int
        Maximum number of reservations for attempts that cannot start now. ALL means no limit.
    maintenance : str
        A key of MAINTENANCE. It has an effect only if depth is ALL. With other depths, the plan is
        always rebuilt.
    margin_us : int
        Microseconds that the plan adds to each walltime.
    placement : callable
        Function that creates the plan for a machine.
    first : bool
        Whether the first ``depth`` attempts of the queue get the reservations, including attempts
        that can start now (Algorithm 1 of Benoit et al., RR-9296). It has no effect if depth is
        ALL.
    seed : int
        Seed of a random queue order.
    period_us : int
        See `SortedQueue`.
    predict : callable, optional
        Predicted run time of an attempt (default: its walltime). It is determined once, when the
        attempt enters the queue, or at the start of an attempt that was never queued.
    """

    def __init__(
        self,
        order: QueueOrder = fcfs,
        depth: int = ALL,
        maintenance: str = "compression",
        margin_us: int = 0,
        placement: Callable[[Machine], AvailabilityPlan] | None = None,
        first: bool = False,
        seed: int = 0,
        period_us: int = 0,
        predict: Prediction | None = None,
    ) -> None:
        self._queue = SortedQueue(order, margin_us, seed, period_us)
        self._margin_us, self._predict = margin_us, predict
        self._predicted_us: dict[str, int] = {}
        self._running: dict[str, Running] = {}
        self._depth = depth
        self._upkeep = MAINTENANCE[maintenance]
        self._placement = placement or (lambda machine: CountedPlan(machine.n_nodes))
        self._first = first
        self._plan: AvailabilityPlan | None = None

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the attempts to start now, and reject jobs that are larger than the machine."""
        plan = self._opened(view)
        as_planned = self._book(view, plan, changes)
        plan.advance(view.now_us)
        upkeep = max(self._take_in(view, plan, changes), self._sort(plan, view.now_us))
        first = len(self._queue)
        rejected: list[Proposal] = []
        if changes.arrived or changes.resubmitted:
            upkeep = max(upkeep, self._enqueue(view, changes, rejected))
        if self._depth == ALL:
            self._maintain(plan, upkeep if as_planned else Upkeep.REBUILD, first)
        else:
            plan.backfill(self._queue, self._depth, self._first)
        return rejected + self._start_due(plan, view.now_us)

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts of the queued attempts in the most recent plan."""
        return None if self._plan is None else self._queue.planned(self._plan, view)

    def _opened(self, view: View) -> AvailabilityPlan:
        if self._plan is None:
            self._plan = self._placement(view.machine)
            if self._predict is not None:
                self._plan.later_end = self._later_end
            self._queue.on_machine(view)
        return self._plan

    def _book(self, view: View, plan: AvailabilityPlan, changes: Changes) -> bool:
        """Record which attempts started.

        Return whether they are exactly the attempts that were due.
        """
        as_planned = self._queue.book(changes.started, changes.withdrawn)
        if not as_planned:
            plan.clear()
        begin = plan.started if as_planned else plan.held
        for running in changes.started:
            begin(running, self._end_us(view, running))
        return as_planned

    def _sort(self, plan: AvailabilityPlan, now_us: int) -> Upkeep:
        """Sort the queue. Return the update that the plan needs."""
        if not self._queue.sort(now_us):
            return Upkeep.APPEND
        plan.clear()
        return Upkeep.REBUILD

    def _length_us(self, view: View, attempt: Attempt) -> int:
        """Return the run time with which an attempt is planned."""
        if self._predict is None:
            return attempt.walltime_us
        if attempt.id not in self._predicted_us:
            predicted_us = self._predict(view, attempt)
            self._predicted_us[attempt.id] = max(1, min(predicted_us, attempt.walltime_us))
        return self._predicted_us[attempt.id]

    def _end_us(self, view: View, running: Running) -> int:
        """Return the planned end of an attempt that started."""
        length_us = self._length_us(view, running.attempt)
        if self._predict is not None:
            self._running[running.attempt.id] = running
        return running.start_us + self._queue.duration_of(running.attempt, length_us)

    def _later_end(self, attempt_id: str, now_us: int) -> int:
        """Return the next planned end of an attempt, or of held nodes, that did not end in time."""
        running = self._running.get(attempt_id)
        if running is None:
            return now_us + 1
        return later_end_us(
            running.start_us,
            self._predicted_us[attempt_id],
            running.attempt.walltime_us,
            self._margin_us,
            now_us,
        )

    def _take_in(self, view: View, plan: AvailabilityPlan, changes: Changes) -> Upkeep:
        """Record changes of nodes and running attempts. Return the update that the plan needs."""
        due, upkeep = Upkeep.APPEND, self._upkeep
        for left in (changes.ended, changes.stopped):
            for running in left:
                plan.ended(running)
                self._predicted_us.pop(running.attempt.id, None)
                self._running.pop(running.attempt.id, None)
                due = upkeep["end"]
        for running in changes.moved:
            plan.held(running, self._end_us(view, running))
            due = max(due, upkeep["priority"])
        for running in changes.held:
            plan.held(running, running.start_us + self._queue.duration_of(running.attempt))
            due = max(due, upkeep["priority"])
        if changes.failures:
            plan.failed(changes.failed_nodes, changes.failed_under)
            due = max(due, upkeep["failure"])
        if changes.repairs:
            plan.rejuvenated(changes.rejuvenated_nodes, changes.rejuvenated_under)
            due = max(due, upkeep["rejuvenation"])
        for attempt in changes.resubmitted:
            if attempt.priority > Priority.REGULAR:
                due = max(due, upkeep["priority"])  # a retry after a silent error is an arrival
        return due

    def _enqueue(self, view: View, changes: Changes, rejected: list[Proposal]) -> Upkeep:
        """Queue new attempts, or reject those that are too large.

        Return the update that the plan needs.
        """
        upkeep, queue = Upkeep.APPEND, self._queue
        for attempt in (*changes.arrived, *changes.resubmitted):
            reason = SizeLimit(view.n_nodes).exceeded(attempt.n_nodes)
            if reason:
                rejected.append(Reject(attempt.id, reason))
            elif queue.add(attempt, self._length_us(view, attempt)) < len(queue) - 1:
                upkeep = Upkeep.REBUILD  # the new attempt precedes planned attempts
            else:
                upkeep = max(upkeep, self._upkeep["arrival"])
        return upkeep

    def _maintain(self, plan: AvailabilityPlan, upkeep: Upkeep, first: int) -> None:
        if upkeep == Upkeep.REBUILD:
            plan.rebuild(self._queue)
            return
        if upkeep == Upkeep.COMPRESS:
            plan.compress(self._queue, first)
        if first < len(self._queue) or upkeep == Upkeep.APPEND:
            plan.append(self._queue, first, len(self._queue))

    def _start_due(self, plan: AvailabilityPlan, now_us: int) -> list[Proposal]:
        return [
            Start(attempt.id, plan.nodes_at(position))
            for position, attempt in self._queue.due(now_us)
        ]


DEPTHS = {"greedy": 0, "easy": 1, "conservative": ALL, "all": ALL}
"""Reservation depths by name. Any whole number is also a valid depth."""


def depth_of(depth: str | int) -> int:
    """Return a reservation depth as a number. ALL means that every attempt gets a reservation."""
    name = str(depth)
    if name in DEPTHS:
        return DEPTHS[name]
    if not (name.isdecimal() and int(name) < 10**6):
        raise InputError(f"invalid depth {name!r}", expected=f"a number, or {', '.join(DEPTHS)}")
    return int(name)


Maintenance = Annotated[
    str,
    choice(
        MAINTENANCE,
        "How the plan changes when a job ends: reservations move to earlier times (compression, "
        "authors), or all are recomputed (rebuild). Failures and repairs rebuild the plan, except "
        "repairs under authors.",
    ),
]


class ListOptions(TimedOptions, frozen=True, tag="list"):
    """List scheduling with reservations: greedy, EASY and conservative backfilling."""

    places: ClassVar[bool] = True

    depth: Annotated[
        str | int,
        text(
            depth_of,
            "Number of queued attempts with a reservation: greedy (0), easy (1), conservative or "
            "all (every attempt), or a number.",
            DEPTHS,
        ),
    ] = "conservative"
    reserve: Annotated[
        str,
        choice(
            ("blocked", "first"),
            "If depth is limited, attempts that get a reservation: the first that cannot start "
            "now (blocked), or the first of the queue (first, Algorithm 1 of RR-9296).",
        ),
    ] = "blocked"
    maintenance: Maintenance = "compression"
    predict: Annotated[
        str | float,
        text(
            millionths_of,
            "Run time with which plans reserve nodes for a job: its walltime, the mean of the last "
            "two run times of its user (recent), the true run time (actual), or a factor of the "
            "walltime, like 0.5. If a job exceeds its predicted run time, plans use a longer one.",
            PREDICTIONS,
        ),
    ] = "walltime"

    def idle(self) -> frozenset[str]:
        """Return the options without an effect at this depth."""
        depth = depth_of(self.depth)
        # with other depths than ALL, the plan is always rebuilt
        names = set() if depth == ALL else {"maintenance"}
        return super().idle() | names | ({"reserve"} if depth in (0, ALL) else set())

    @staticmethod
    def kind(options: ListOptions, context: Context) -> ListScheduling:
        """Return the planning."""
        return ListScheduling(
            context.order,
            depth_of(options.depth),
            options.maintenance,
            options.margin_us,
            context.placement.plan_on,
            options.reserve == "first",
            context.seed,
            context.period_us,
            prediction(options.predict),
        )
