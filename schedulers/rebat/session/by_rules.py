# SPDX-License-Identifier: Apache-2.0
"""The plan of list scheduling by the rules, in a session whose reactions are Python."""

from __future__ import annotations

import numpy as np

from rebat.contract import Changes, PlannedStarts
from rebat.contract.planned import NO_START
from rebat.core.attempts import Attempt, Running
from rebat.core.formatting import counted
from rebat.drive.simulate import parameters_of
from rebat.kernels.counts import NEVER
from rebat.policies.formula import COLUMNS
from rebat.policies.point import Point
from rebat.rules.by_value import arrays_of
from rebat.rules.plan import plan, withdraw
from rebat.session.state import State
from rebat.session.transactions import Transactions
from rebat.state import codes

PLANNING = (
    "depth", "first_only", "margin", "order", "on_arrival", "on_priority", "on_end", "on_failure",
    "on_repair", "fifo", "timed", "predict", "millionths", "varies", "sort_period",
)  # fmt: skip
"""The parameters of the rules that concern the plan."""


class ByRules:
    """The queue and the plan of a session, in the tables of the rules."""

    def __init__(self, state: State, transactions: Transactions) -> None:
        self._state, self._transactions = state, transactions
        self._point: Point | None = None

    def _begin(self, point: Point) -> None:
        """Set the parameters of the plan before the first plan."""
        state, room, self._point = self._state, self._state.room, point
        numbers = parameters_of(point, state.nodes.n_nodes, state.options.max_attempts)
        for name in PLANNING:
            setattr(state.rows.n, name, getattr(numbers, name))
        if point.common.formula:
            operations, arguments = arrays_of(point.common.formula, state.nodes.n_nodes)
            n = room.queue.shape[1]
            state.show(
                room._replace(
                    operations=operations, arguments=arguments, value=np.zeros((1, n)),
                    table=np.zeros((n, len(COLUMNS))),
                )
            )  # fmt: skip

    def plan(self, point: Point, changes: Changes) -> None:
        """Plan after these changes, and carry out the starts and rejections."""
        state = self._state
        if self._point is None:
            self._begin(point)
        rows, room, jobs = state.rows, state.room, state.jobs
        n, lists, part = rows.n, rows.lists, rows.parts[0]
        for job_id in changes.withdrawn:
            withdraw(rows, room, 0, state.job_ids.index(job_id))
        entered = [self._row(attempt) for attempt in (*changes.arrived, *changes.resubmitted)]
        left = [_row_of(running) for running in (*changes.ended, *changes.stopped)]
        new = [_row_of(running) for running in (*changes.moved, *changes.held)]
        for field, members in (("entered", entered), ("left", left), ("new_hold", new)):
            for i, a in enumerate(members):
                setattr(lists[i], field, a)
        n.n_entered, n.n_left, n.n_new_holds = len(entered), len(left), len(new)
        n.n_out = part.failures = part.repairs = 0
        failures, repairs = changes.failures > 0, changes.repairs > 0
        outcome = plan(rows, room, None, 0, failures, repairs, state.now_us)
        assert outcome == codes.DONE, f"outcome {outcome} of a plan"
        n.n_entered = n.n_left = n.n_new_holds = 0
        decided = [(rows.out[i].kind, rows.out[i].subject) for i in range(n.n_out)]
        n.n_out = 0
        for kind, a in decided:
            attempt = jobs.queue[jobs.names[a]]
            if kind == codes.REJECT:
                self._transactions.reject_job(attempt, self._why_never(attempt, a))
                continue
            nodes = self._transactions.nodes_at(rows.attempts[a])
            running = self._transactions.started(attempt, nodes)
            state.changes.started.append(running)
            state.news.started.append(running)

    def _row(self, attempt: Attempt) -> int:
        """Return the row of an attempt that enters the queue."""
        a = attempt.serial - 1
        if self._state.rows.n.predict == codes.ACTUAL:
            registry = self._transactions.registry
            self._state.rows.attempts[a].delay = registry.true_run_us(attempt.id)
        return a

    def _why_never(self, attempt: Attempt, a: int) -> str:
        """Return why an attempt was rejected."""
        if self._state.rows.attempts[a].cause == codes.NO_WALLTIME:
            return "has no walltime"
        most = self._state.nodes.n_nodes
        return f"requires {counted(attempt.n_nodes, 'node')}, but the maximum is {most}"

    def planned(self) -> PlannedStarts:
        """Return the planned starts of the queued attempts."""
        room, n = self._state.room, self._state.rows.parts[0].n_queued
        start = room.start[0, :n].copy()
        start[start >= NEVER] = NO_START
        return PlannedStarts(
            room.queue[0, :n] + 1, room.size[0, :n].copy(), room.duration[0, :n].copy(), start
        )


def _row_of(running: Running) -> int:
    return running.attempt.serial - 1
