# SPDX-License-Identifier: Apache-2.0
"""The plan of list scheduling by the rules, in a session whose reactions are Python."""

from __future__ import annotations

import numpy as np

from rebat.contract import PlannedStarts, Wake
from rebat.contract.proposals import PlanByRules
from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.drive.ask_state import AskState
from rebat.drive.growing import with_plans, with_spaces
from rebat.drive.keys import LIMIT, STEP
from rebat.drive.labels import Labels
from rebat.drive.plans import barred_attempts, planned_starts
from rebat.drive.simulate import parameters_of
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.drive.transactions import Transactions
from rebat.kernels.blocks import BlockTable
from rebat.kernels.cell_plan import CellTable
from rebat.kernels.counts import NEVER
from rebat.models.formula import COLUMNS
from rebat.policies.point import Point
from rebat.rules.by_value import arrays_of
from rebat.rules.plan import plan, withdraw
from rebat.rules.room import plan_fits
from rebat.rules.usage import account
from rebat.rules.windows import next_wake, note_entered
from rebat.state import codes
from rebat.state.tables import table_for

PLANNING = (
    "depth", "first_only", "margin", "order", "on_arrival", "on_priority", "on_end", "on_failure",
    "on_repair", "named", "fifo", "timed", "predict", "millionths", "varies", "sort_period",
    "limited", "uses_usage", "uses_shares", "accounted",
)  # fmt: skip
"""The parameters of the rules that concern the plan."""


class ByRules:
    """The queue and the plan of a session, in the tables of the rules."""

    def __init__(self, session: AskState, transactions: Transactions) -> None:
        self._session, self._transactions = session, transactions
        self._point: Point | None = None
        self._table: BlockTable | None = None
        self._cells: CellTable | None = None
        self._labels = Labels(LIMIT, STEP)
        self._begun: list[int] = []
        """The attempts that the last plan started, in queue order."""

    def _begin(self, point: Point) -> None:
        """Set the parameters of the plan before the first plan."""
        session, room, self._point = self._session, self._session.room, point
        numbers = parameters_of(point, session.n_nodes, session.options.max_attempts)
        for name in PLANNING:
            setattr(session.state.n, name, getattr(numbers, name))
        self._table = table_for(numbers)
        if point.common.reservations:
            self._reserve(point)
            room = session.room
        if numbers.accounted:
            self._account(point)
            room = session.room
        if point.common.formula:
            operations, arguments = arrays_of(point.common.formula, session.n_nodes)
            n = room.queue.shape[1]
            session.show(
                room._replace(
                    operations=operations, arguments=arguments, value=np.zeros((1, n)),
                    table=np.zeros((n, len(COLUMNS))),
                )
            )  # fmt: skip

    def _reserve(self, point: Point) -> None:
        """Add the tables of reservations, and the owners of the jobs that are known."""
        session, registry = self._session, self._transactions.registry
        cores = session.options.cores_per_node
        session.windows = SiteWindows(point.common.reservations, session.machine, cores)
        for job_id, row in zip(session.submitted, session.state.jobs, strict=True):
            row.who = session.windows.who_of(registry.submissions[job_id].traits)
        self._cells = session.windows.table(session.room)

    def _account(self, point: Point) -> None:
        """Add the tables of limits and usage, and the owners of the jobs that are known."""
        session, limits, shares = self._session, SiteLimits(point.common.limits), point.shares()
        submissions = self._transactions.registry.submissions
        for job_id, row in zip(session.submitted, session.state.jobs, strict=True):
            row.client = limits.client_of(submissions[job_id].traits)
            row.share = shares.row_of(submissions[job_id].traits)
        session.limits, session.shares = limits, shares
        n_attempts, n_queued = len(session.state.attempts), session.room.queue.shape[1]
        clients = np.zeros(n_attempts, dtype=np.int64)
        session.show(
            session.room._replace(
                visible=np.zeros((4, n_queued), dtype=np.int64),
                state=session.state._replace(client_of=clients, tree=shares.tree),
            )
        )
        session.show(limits.extend(session.room))

    def plan(self, proposal: PlanByRules) -> None:
        """Plan after these changes, and carry out the starts and rejections."""
        session, changes = self._session, proposal.changes
        if self._point is None:
            self._begin(proposal.point)
        rows, jobs, lists = session.state, session.jobs, session.state.lists
        n, part = rows.n, rows.parts[0]
        for job_id in changes.withdrawn:
            withdraw(rows, session.room, 0, rows.attempts[session.row_of[job_id]].job)
        n.n_entered = n.n_left = n.n_new_holds = n.n_out = part.failures = part.repairs = 0
        for key, attempt in zip(
            proposal.keys, (*changes.arrived, *changes.resubmitted), strict=False
        ):
            for row, label in self._labels.add(key, attempt.serial - 1):
                rows.attempts[row].label = label
            n.order = codes.BY_LABEL
        for attempt in (*changes.arrived, *changes.resubmitted):
            lists[n.n_entered].entered = self._row(attempt)
            n.n_entered += 1
        for running in (*changes.ended, *changes.stopped):
            lists[n.n_left].left = running.attempt.serial - 1
            n.n_left += 1
        for running in (*changes.moved, *changes.held):
            lists[n.n_new_holds].new_hold = running.attempt.serial - 1
            n.n_new_holds += 1
        failures, repairs = changes.failures > 0, changes.repairs > 0
        if not plan_fits(rows, session.room, self._table, 0):
            session.show(with_plans(session.room, 0))
            self._table = with_spaces(session.room, self._table, 0)
            rows = session.state
        room, windows = session.room, session.windows
        cells = windows.announce(self._cells, proposal.announced, room)
        cells = self._cells = windows.extend(cells, room)
        if cells is not None:
            n.woken, n.n_refused = len(changes.woken), len(changes.refused)
            part.failures, part.repairs = failures, repairs
            note_entered(rows, cells)
            wake_us = next_wake(rows, room, cells, session.now_us)
            if wake_us not in (NEVER, n.wake):
                n.wake = wake_us
                self._transactions.wakes.append(Wake(wake_us, "window"))
        n.is_exceeded = 1
        while n.is_exceeded:
            n.is_exceeded = 0
            n_out = n.n_out
            if n.accounted:
                account(rows, room, session.now_us)
            outcome = plan(rows, room, self._table, cells, 0, failures, repairs, session.now_us)
            assert outcome == codes.DONE, f"outcome {outcome} of a plan"
            new = rows.out[n_out : n.n_out]
            self._begun = [row.subject for row in new if row.kind == codes.START]
            n.n_entered = n.n_left = n.n_new_holds = n.woken = 0
            failures = repairs = False
        session.check_runs()
        for row in rows.out[: n.n_out]:
            attempt = jobs.queue[session.names[row.subject]]
            if row.kind == codes.REJECT:
                reason = self._why_never(attempt, row.subject)
                self._transactions.never_runs(attempt, reason)
                continue
            nodes = session.nodes_at(rows.attempts[row.subject])
            running = self._transactions.started(attempt, nodes)
            session.changes.started.append(running)
            session.news.started.append(running)
        n.n_out = 0

    def _row(self, attempt: Attempt) -> int:
        """Return the row of an attempt that enters the queue."""
        a = attempt.serial - 1
        if self._session.state.n.predict == codes.ACTUAL:
            registry = self._transactions.registry
            try:
                self._session.state.attempts[a].delay = registry.true_run_us(attempt.id)
            except InputError as error:
                self._session.unknown_runs[a] = error
        return a

    def _why_never(self, attempt: Attempt, a: int) -> str:
        """Return why an attempt was rejected."""
        state = self._session.state
        if state.attempts[a].cause == codes.NO_WALLTIME:
            return "has no walltime"
        if state.attempts[a].cause == codes.LIMIT:
            job = state.jobs[state.attempts[a].job]
            return self._session.limits.why_never(job.client, attempt.n_nodes)
        if state.attempts[a].cause == codes.NO_WINDOW:
            job = {"who": state.jobs[state.attempts[a].job].who, "size": attempt.n_nodes}
            return self._session.windows.why_never(job, attempt.walltime_us, attempt.queued_us)
        most = self._session.n_nodes
        return f"requires {counted(attempt.n_nodes, 'node')}, but the maximum is {most}"

    def planned(self) -> PlannedStarts:
        """Return the planned starts of the queue before the starts of the last plan."""
        return planned_starts(self._session.room, 0, self._begun)

    def reasons(self) -> dict[str, str]:
        """Return why limits bar attempts, by id."""
        session = self._session
        barred = barred_attempts(session.room, session.limits)
        return {session.names[a]: reason for a, reason in barred.items()}
