# SPDX-License-Identifier: Apache-2.0
"""The plan by the rules, in a session whose reactions are Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rebat.contract import Changes, Machine, PlannedStarts, Requeue, Stop, Wake, When
from rebat.contract.proposals import PlanByRules
from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.drive.ask_state import AskState
from rebat.drive.growing import larger, with_plans, with_spaces
from rebat.drive.keys import LIMIT, STEP
from rebat.drive.labels import Labels
from rebat.drive.parts import machine_of
from rebat.drive.plans import Recorder, all_starts, barred_attempts, planned_starts
from rebat.drive.simulate import parameters_of, set_partitions
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.drive.transactions import Transactions
from rebat.kernels import slices
from rebat.kernels.blocks import BlockTable, spaces_of
from rebat.kernels.blocks import grown as larger_table
from rebat.kernels.cell_plan import CellTable
from rebat.policies.placement.choosers import Request
from rebat.policies.point import Point
from rebat.policies.windows import Reservation
from rebat.rules.by_value import arrays_of
from rebat.rules.fifo import choose
from rebat.rules.instant import plan_all
from rebat.rules.plan import withdraw
from rebat.rules.room import plan_fits
from rebat.state import codes, rooms, tables

PLANNING = (
    "depth", "first_only", "margin", "order", "on_arrival", "on_priority", "on_end", "on_failure",
    "on_repair", "named", "fifo", "chooser", "cores", "tiered", "timed", "predict", "millionths",
    "varies", "sort_period", "limited", "uses_usage", "uses_shares", "accounted", "parted",
    "ranked", "most_weight",
)  # fmt: skip
"""The parameters of the rules that concern the plan."""


class ByRules(Recorder):
    """The queues and the plans of a session, in the tables of the rules."""

    def __init__(self, session: AskState, transactions: Transactions) -> None:
        self._session, self._transactions = session, transactions
        self._point: Point | None = None
        self._tables: list[BlockTable | None] = []
        self._cells: CellTable | None = None
        self._labels: dict[str, Labels] = {}
        self._begun: dict[int, tuple[list[int], list[int]]] = {}
        """The attempts that the last plan of each group started, and their positions before."""
        self._n_out = 0
        self._starting: list[str] = []
        self._victims: list[Running] = []
        """The attempts that make room for an attempt of a higher tier."""

    def _begin(self, point: Point) -> None:
        """Set the parameters and the tables of the plan before the first plan."""
        session, self._point = self._session, point
        state, cores = session.state, session.options.cores_per_node
        machine = session.site = machine_of(point, session.n_nodes, cores, in_place=True)
        numbers = parameters_of(point, session.n_nodes, session.options.max_attempts, cores)
        orders = machine.rows["order"]
        orders[orders == codes.BY_ID] = codes.BY_LABEL  # ids are not ranked
        if numbers.order == codes.BY_ID:
            numbers.order = codes.BY_LABEL
        set_partitions(numbers, machine)
        for name in PLANNING:
            setattr(state.n, name, getattr(numbers, name))
        session.limits, session.shares = SiteLimits(point.limits), point.shares()
        session.windows = SiteWindows(point.common.reservations, machine, cores)
        submissions = self._transactions.registry.submissions
        for j, (job_id, row) in enumerate(zip(session.submitted, state.jobs, strict=True)):
            if job_id in submissions:  # otherwise, the job has ended before the first plan
                session.add_owner(row, submissions[job_id].traits)
                session.place(j, submissions[job_id].traits)
        session.show(
            rooms.with_plans_of(
                session.room, machine, arrays_of(point.formulas, session.n_nodes),
                session.shares.tree,
            )
        )  # fmt: skip
        session.show(session.limits.extend(session.room))
        self._tables = [self._table(p) for p in range(len(machine.table))]
        self._cells = session.windows.table(session.room)

    def _table(self, p: int) -> BlockTable | None:
        """Return the plan of the named nodes of a group, or None if nodes are only counted."""
        session = self._session
        table, others = rooms.table_for(session.state.n), session.state.home != p
        if table is None or not others.any():
            return table
        intervals = NodeSet.of_sorted(np.flatnonzero(others)).intervals
        n_slices, n_blocks, n_reserved = spaces_of(table)
        n_blocks = max(n_blocks, min(2 * len(intervals) + 1, session.n_nodes))
        table = larger_table(table, n_slices, n_blocks, n_reserved)
        slices.fail(table, intervals)
        return table

    def plan(self, proposal: PlanByRules) -> None:
        """Plan after these changes, and carry out the starts and rejections."""
        session, changes = self._session, proposal.changes
        if self._point is None:
            self._begin(proposal.point)
            self._note_nodes(changes)
        rows, jobs, lists, n = session.state, session.jobs, session.state.lists, session.state.n
        for job_id in changes.withdrawn:
            j = rows.attempts[session.row_of[job_id]].job
            withdraw(rows, session.room, rows.jobs[j].part, j)
        n.n_entered = n.n_left = n.n_new_holds = n.n_out = 0
        n.n_refused = len(changes.refused)
        n.woken = int(bool(changes.woken))
        new = (*changes.arrived, *changes.resubmitted)
        for pair, attempt in zip(proposal.keys, new, strict=False):
            if pair is None:
                continue
            labels = self._labels.setdefault(pair[0], Labels(LIMIT, STEP))
            for row, label in labels.add(pair[1], attempt.serial - 1):
                rows.attempts[row].label = label
        for attempt in new:
            lists[n.n_entered].entered = self._row(attempt)
            n.n_entered += 1
        for running in (*changes.ended, *changes.stopped):
            lists[n.n_left].left = running.attempt.serial - 1
            n.n_left += 1
        rows_of_moved = [self._row(running.attempt) for running in changes.moved]
        for a in (*rows_of_moved, *(running.attempt.serial - 1 for running in changes.held)):
            lists[n.n_new_holds].new_hold = a
            n.n_new_holds += 1
        self._make_room(proposal.announced)
        self._n_out, self._begun = 0, {}
        self._choose, self._may_start = proposal.choose, proposal.may_start
        self._victims, self._starting, self._any_barred = [], [], False
        outcome = plan_all(session.state, session.room, None, self._cells, self, session.now_us)
        assert outcome == codes.DONE, f"outcome {outcome} of a plan"
        session.check_runs()
        rows = session.state
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
        then = Requeue(Priority.REGULAR)
        for running in self._victims:
            stop = Stop(running.attempt.id, Cause.PREEMPTED, When.IMAGE, then, "preempt")
            self._transactions.propose(stop)
        if self._any_barred:
            self._transactions.propose(Wake(session.now_us, "limit"))

    def _note_nodes(self, changes: Changes) -> None:
        """Note in the new tables of groups where nodes failed or came up before the first plan."""
        state = self._session.state
        for which, sets in (("failures", changes.failing), ("repairs", changes.returning)):
            for p in {p for nodes in sets for p in state.home[nodes.ids].tolist()}:
                setattr(state.parts[p], which, 1)

    def _make_room(self, announced: Sequence[Reservation]) -> None:
        """Let the tables grow, so that the plans fit."""
        session, windows = self._session, self._session.windows
        cells = windows.announce(self._cells, announced, session.room)
        state = session.state
        state.n.max_wakes = windows.max_wakes
        if windows.max_wakes > len(state.wakes):
            wakes = larger(state.wakes, windows.max_wakes, 0)
            session.show(session.room._replace(state=state._replace(wakes=wakes)))
        fits = [plan_fits(session.state, session.room, table, 0) for table in self._tables]
        if not all(fits):
            session.show(with_plans(session.room, 0))
            self._tables = [with_spaces(session.room, table, 0) for table in self._tables]
        self._cells = windows.extend(cells, session.room)

    def table_of(self, p: int, table: Any) -> BlockTable | None:
        """Return the plan of the named nodes of a group."""
        return self._tables[p]

    def note(self, room: tables.Room, p: int) -> None:
        """Note the attempts that the plan of a group started."""
        new = room.state.out[self._n_out : room.state.n.n_out]
        begun = [row.subject for row in new if row.kind == codes.START]
        self._begun[p] = begun, room.positions[: len(begun)].tolist()
        self._n_out = room.state.n.n_out

    def choose(self, state: Any, usable: Any, a: int, out: Any) -> int:
        """Choose nodes for an attempt with the chooser of the placement, as intervals."""
        attempt = self._session.jobs.queue[self._session.names[a]]
        nodes = self._choose(usable, Request.now(attempt), Machine(self._session))
        if nodes is None:
            return -1
        intervals = nodes.first(attempt.n_nodes).intervals
        out[: len(intervals)] = intervals
        return len(intervals)

    def may_start(self, state: Any, a: int) -> bool:
        """Return whether a user-defined limit allows an attempt to start in this plan."""
        if self._may_start is None:
            return True
        may_start = bool(self._may_start(self._session.names[a], self._starting))
        self._any_barred |= not may_start
        return may_start

    def starts(self, state: Any, a: int) -> None:
        """Note an attempt that the plan will start."""
        self._starting.append(self._session.names[a])

    def makes_room(self, state: Any, room: tables.Room, cells: Any, a: int, now: int) -> bool:
        """Find the attempts of lower tiers whose nodes an attempt needs that does not fit."""
        jobs = self._session.jobs
        leaving = jobs.stopping.keys() | jobs.scheduled.keys()
        tier = self._tier(state, a)
        lower = [
            running
            for name, running in jobs.running.items()
            if running.start_us < now  # otherwise, it could be stopped and start for ever
            and self._tier(state, running.attempt.serial - 1) < tier
            and name not in leaving
            and not self._transactions.registry.why_not_image(running)
        ]
        if not lower:
            return False
        usable = room.usable
        usable[:] = state.owner == codes.FREE
        for running in lower:
            running.nodes.put(usable, True)
        usable &= ~state.down
        out = np.zeros((len(usable) // 2 + 1, 2), dtype=np.int64)
        k = choose(state, room, cells, self, a, now, out)
        met = [running for running in lower if k > 0 and running.nodes.meets(NodeSet(out[:k]))]
        self._victims = sorted(met, key=lambda running: running.nodes.lowest)
        return k > 0

    def _tier(self, state: Any, a: int) -> int:
        return int(state.partitions[state.jobs[state.attempts[a].job].partition].tier)

    def _row(self, attempt: Attempt) -> int:
        """Return the row of an attempt that enters the queue."""
        a = attempt.serial - 1
        if self._session.state.n.predict == codes.ACTUAL:
            registry = self._transactions.registry
            try:
                self._session.state.attempts[a].delay = registry.true_run_us(attempt.id)
            except InputError as error:
                self._session.unknown_runs[a] = error
        state = self._session.state
        row = state.attempts[a]
        if partition := self._session.site.of_row(state.jobs[row.job].partition):
            row.wall = partition.adapted(attempt).walltime_us
        return a

    def _why_never(self, attempt: Attempt, a: int) -> str:
        """Return why an attempt was rejected."""
        state, session = self._session.state, self._session
        row, cause = state.jobs[state.attempts[a].job], state.attempts[a].cause
        if cause == codes.NO_WALLTIME:
            return "has no walltime"
        if cause == codes.LIMIT:
            return session.limits.why_never(row.client, attempt.n_nodes)
        job = msgspec.structs.asdict(row)
        if cause == codes.NO_WINDOW:
            return session.windows.why_never(job, attempt.walltime_us, attempt.queued_us)
        return session.site.why_rejected(job, state.attempts[a].wall)

    def planned(self) -> PlannedStarts:
        """Return the planned starts of the queue before the starts of the last plan."""
        room = self._session.room
        return all_starts(room, lambda p: planned_starts(room, p, *self._begun.get(p, ([], []))))

    def reasons(self) -> dict[str, str]:
        """Return why limits bar attempts, by id."""
        session = self._session
        barred = barred_attempts(session.room, session.limits)
        return {session.names[a]: reason for a, reason in barred.items()}
