# SPDX-License-Identifier: Apache-2.0
"""The plan by the rules in a session, which asks Python for reactions.

Python can also choose nodes, compute sort keys, apply a limit, or decide which attempts start
(`AskedQueue`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rebat.contract import Changes, Machine, PlannedStarts, Proposal, Requeue, Stop, Wake, When
from rebat.contract.proposals import PlanByRules
from rebat.core.arrays import Ints
from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.drive.ask_state import AskState
from rebat.drive.growing import with_plans, with_spaces
from rebat.drive.keys import Keys
from rebat.drive.parts import machine_of
from rebat.drive.plans import Recorder, all_starts, reasons_to_wait
from rebat.drive.simulate import parameters_of, set_partitions
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.drive.transactions import Transactions
from rebat.kernels import counts, slices
from rebat.kernels.blocks import BlockTable, spaces_of
from rebat.kernels.blocks import grown as larger_table
from rebat.kernels.cell_plan import CellTable
from rebat.policies.placement.choosers import Request
from rebat.policies.placement.plans import Placement
from rebat.policies.point import Point
from rebat.policies.shares import Shares
from rebat.policies.windows import Reservation
from rebat.rules import asked
from rebat.rules.by_value import arrays_of
from rebat.rules.fifo import choose
from rebat.rules.instant import plan_all
from rebat.rules.plan import has_news, withdraw
from rebat.rules.room import plan_fits
from rebat.state import codes, rooms, tables

PLANNING = (
    "depth", "first_only", "margin", "order", "on_arrival", "on_priority", "on_end", "on_failure",
    "on_repair", "named", "unplanned", "fifo", "shelf", "asks", "chooser", "cores", "tiered",
    "timed", "predict", "millionths", "varies", "sort_period", "limited", "uses_usage",
    "uses_shares", "accounted", "parted", "ranked", "most_weight",
)  # fmt: skip
"""The parameters of the rules that concern the plan."""


class AskedQueue:
    """The queue of a group of partitions, and its plan, for Python that decides on starts.

    Attributes
    ----------
    entered : list of Attempt
        The attempts that arrived, then those that were resubmitted. They are not in the queue yet.
    jobs_due : list of int
        The rows of the jobs that `due` returned. If other attempts start, the plan is stale.
    """

    def __init__(self, session: AskState, p: int, entered: list[Attempt]) -> None:
        self._session, self._p, self.entered = session, p, entered
        self.jobs_due: list[int] = []

    def __len__(self) -> int:
        return int(self._session.state.parts[self._p].n_queued)

    def _column(self, name: str) -> Ints:
        column: Ints = getattr(self._session.room, name)[self._p, : len(self)]
        return column

    @property
    def sizes(self) -> Ints:
        """Number of nodes of each attempt, in queue order."""
        return self._column("size")

    @property
    def durations_us(self) -> Ints:
        """Planned duration of each attempt (us)."""
        return self._column("duration")

    @property
    def starts_us(self) -> Ints:
        """Planned start of each attempt (us)."""
        return self._column("start")

    def attempt(self, at: int) -> Attempt:
        """Return the attempt at a position, with its planned number of nodes and its walltime."""
        session, a = self._session, int(self._column("queue")[at])
        queued = session.jobs.queue[session.names[a]]
        return msgspec.structs.replace(
            queued, n_nodes=int(self.sizes[at]), walltime_us=session.state.attempts[a].wall
        )

    def due(self) -> list[tuple[int, Attempt]]:
        """Return the attempts whose planned start is reached, with their positions."""
        session, n = self._session, len(self)
        room, attempts = session.room, session.state.attempts
        k = counts.due(room.start[self._p], n, session.now_us, room.positions) if n else 0
        positions = room.positions[:k].tolist()
        self.jobs_due = [attempts[a].job for a in room.queue[self._p, positions].tolist()]
        return [(at, self.attempt(at)) for at in positions]

    def enter(self, attempt: Attempt) -> None:
        """Add an attempt with its planned number of nodes and walltime, and plan its start."""
        session, a = self._session, attempt.serial - 1
        session.by_rules.set_size(attempt)
        session.by_rules.label(attempt)
        asked.enter(session.state, session.room, self._p, a, session.now_us)

    def first_fit_us(self, n_nodes: int, duration_us: int) -> int:
        """Return the earliest time at which nodes stay free for a duration, or FOREVER_US."""
        room, p = self._session.room, self._p
        n = self._session.state.parts[p].plan_n
        return int(counts.first_fit(room.plan_t[p], room.plan_f[p], n, n_nodes, duration_us))


class ByRules(Recorder):
    """The queues and the plans of a session, in the tables of the rules."""

    def __init__(self, session: AskState, transactions: Transactions) -> None:
        self._session, self._transactions = session, transactions
        self._point: Point | None = None
        self._tables: list[BlockTable | None] = []
        self._cells: CellTable | None = None
        self._begun: dict[int, tuple[list[int], list[int]]] = {}
        """The attempts that the last plan of each group started, and their positions before."""
        self._n_out = 0
        self._starting: list[str] = []
        self._decide: Any = None
        self._proposals: list[Proposal] = []
        self._due: dict[int, list[int]] = {}
        """The jobs that were due in the last plan of each group, if Python decides on starts."""
        self._stale: set[int] = set()
        """Groups in which Python did not start exactly what was due."""
        self._victims: list[Running] = []
        """The attempts that make room for an attempt of a higher tier."""

    def _begin(self, point: Point, placement: Placement) -> None:
        """Set the parameters and the tables of the plan before the first plan."""
        session, self._point = self._session, point
        state, cores = session.state, session.options.cores_per_node
        machine = session.site = machine_of(point, session.n_nodes, cores, in_place=True)
        numbers = parameters_of(point, session.n_nodes, session.options.max_attempts, cores)
        numbers.asks = self._decide is not None
        orders = machine.rows["order"]
        orders[orders == codes.BY_ID] = codes.BY_LABEL  # ids are not ranked
        if numbers.order == codes.BY_ID:
            numbers.order = codes.BY_LABEL
        set_partitions(numbers, machine)
        for name in PLANNING:
            setattr(state.n, name, getattr(numbers, name))
        self._keys = Keys(point, machine, ranks_ids=False)
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
        if point.chooses_nodes:
            shown = Machine(session)
            placement = msgspec.structs.replace(placement, choose=self._choose_now)
            self.places = {
                p: placement.plan_on(shown, machine.home == p) for p in range(len(machine.table))
            }
        self._cells = session.windows.table(session.room)

    def _choose_now(self, *given: Any) -> NodeSet | None:
        """Choose nodes with the present chooser, whose errors state the present time."""
        nodes: NodeSet | None = self._call(self._choose, *given)
        return nodes

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

    @property
    def shares(self) -> Shares:
        """The usage and the fair-share factors of users."""
        return self._session.shares

    def plan(self, proposal: PlanByRules) -> None:
        """Plan after these changes, and carry out the starts and rejections."""
        session, changes = self._session, proposal.changes
        self._choose, self._may_start = proposal.placement.choose, proposal.may_start
        self._decide, self._call = proposal.decide, proposal.call
        self._new = *changes.arrived, *changes.resubmitted
        if self._point is None:
            self._begin(proposal.point, proposal.placement)
            self._note_nodes(changes)
        self._book(changes.started)
        rows, jobs, lists, n = session.state, session.jobs, session.state.lists, session.state.n
        for job_id in changes.withdrawn:
            j = rows.attempts[session.row_of[job_id]].job
            withdraw(rows, session.room, rows.jobs[j].part, j)
        n.n_entered = n.n_left = n.n_new_holds = n.n_out = 0
        n.n_refused = len(changes.refused)
        n.woken = int(bool(changes.woken))
        for attempt in self._new:
            if self._decide is None:  # otherwise, its size is not known yet
                self.label(attempt)
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
        if n.parted:
            self._count_free()
        self._n_out, self._begun = 0, {}
        self._victims, self._starting, self._any_barred = [], [], False
        self._proposals = []
        for p in [p for p in self._stale if not n.parted or has_news(session.state, p)]:
            session.state.parts[p].withdrawn = 1
            self._stale.remove(p)
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
        for proposed in self._proposals:
            self._transactions.propose(proposed)
        for running in session.changes.started if n.asks else ():
            self.set_size(self._adapted(running.attempt))
        then = Requeue(Priority.REGULAR)
        for running in self._victims:
            stop = Stop(running.attempt.id, Cause.PREEMPTED, When.IMAGE, then, "preempt")
            self._transactions.propose(stop)
        if self._any_barred:
            self._transactions.propose(Wake(session.now_us, "limit"))

    def label(self, attempt: Attempt) -> None:
        """Label an attempt that enters the queue, if Python computes its sort key."""
        if self._keys.orders:
            state, a = self._session.state, attempt.serial - 1
            self._keys.label(state, a, self._adapted(attempt), self._call)

    def _book(self, started: Sequence[Running]) -> None:
        """Record the attempts that Python started, if it decides on starts."""
        session, of_group = self._session, dict[int, list[int]]()
        if not session.state.n.asks:
            return
        for running in started:
            a = running.attempt.serial - 1
            j = session.state.attempts[a].job
            p = session.state.jobs[j].part
            if not asked.book(session.state, session.room, p, a):
                self._stale.add(p)
            of_group.setdefault(p, []).append(j)
        self._stale |= {p for p, due in self._due.items() if due != of_group.get(p, [])}
        self._due = {}

    def _note_nodes(self, changes: Changes) -> None:
        """Note in the new tables of groups where nodes failed or came up before the first plan."""
        state = self._session.state
        for which, sets in (("failures", changes.failing), ("repairs", changes.returning)):
            for p in {p for nodes in sets for p in state.home[nodes.ids].tolist()}:
                setattr(state.parts[p], which, 1)

    def _count_free(self) -> None:
        """Count the free nodes of each group, because policies may start jobs on any nodes."""
        state = self._session.state
        homes = state.home[(state.owner == codes.FREE) & ~state.down]
        for part, n_free in zip(
            state.parts, np.bincount(homes, minlength=len(state.parts)), strict=True
        ):
            part.n_free = int(n_free)

    def _make_room(self, announced: Sequence[Reservation]) -> None:
        """Let the tables grow, so that the plans fit."""
        session, windows = self._session, self._session.windows
        cells, room = windows.announce_to(self._cells, announced, session.room)
        if room is not session.room:
            session.show(room)
        fits = [plan_fits(session.state, session.room, table, 0) for table in self._tables]
        if not all(fits):
            session.show(with_plans(session.room, 0))
            self._tables = [with_spaces(session.room, table, 0) for table in self._tables]
        self._cells = windows.extend(cells, session.room)

    def table_of(self, p: int, table: Any) -> BlockTable | None:
        """Return the plan of the named nodes of a group."""
        return self._tables[p]

    def note(self, room: tables.Room, p: int) -> None:
        """Note the attempts that the plan of a group started, or let Python start attempts."""
        new = room.state.out[self._n_out : room.state.n.n_out]
        begun = [row.subject for row in new if row.kind == codes.START]
        self._begun[p] = begun, room.positions[: len(begun)].tolist()
        self._n_out = room.state.n.n_out
        if self._decide is not None:
            self._ask(p)

    def _ask(self, p: int) -> None:
        """Let Python decide which attempts of a group start."""
        session = self._session
        entered = []
        for attempt in self._new:
            row = session.state.attempts[attempt.serial - 1]
            if session.state.jobs[row.job].part == p and row.cause == 0:
                entered.append(msgspec.structs.replace(attempt, walltime_us=row.wall))
        queue = AskedQueue(session, p, entered)
        self._proposals += self._call(self._decide, p, queue)
        if queue.jobs_due:
            self._due[p] = queue.jobs_due

    def choose(self, state: Any, usable: Any, a: int, out: Any) -> int:
        """Choose nodes for an attempt with the chooser of the placement, as intervals."""
        attempt = self._session.jobs.queue[self._session.names[a]]
        nodes = self._choose_now(usable, Request.now(attempt), Machine(self._session))
        if nodes is None:
            return -1
        intervals = nodes.first(attempt.n_nodes).intervals
        out[: len(intervals)] = intervals
        return len(intervals)

    def may_start(self, state: Any, a: int) -> bool:
        """Return whether a user-defined limit allows an attempt to start in this plan."""
        if self._may_start is None:
            return True
        may_start = bool(self._call(self._may_start, self._session.names[a], self._starting))
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
        """Set the times of an attempt that plans need. Return its row."""
        a = attempt.serial - 1
        if self._session.state.n.predict == codes.ACTUAL:
            registry = self._transactions.registry
            try:
                self._session.state.attempts[a].delay = registry.true_run_us(attempt.id)
            except InputError as error:
                self._session.unknown_runs[a] = error
        self._session.state.attempts[a].wall = self._adapted(attempt).walltime_us
        return a

    def _adapted(self, attempt: Attempt) -> Attempt:
        """Return an attempt with the walltime that its partition sets."""
        state = self._session.state
        row = state.jobs[state.attempts[attempt.serial - 1].job].partition
        partition = self._session.site.of_row(row)
        return partition.adapted(attempt) if partition else attempt

    def set_size(self, attempt: Attempt) -> None:
        """Set the number of nodes and the walltime of an attempt, which may be planned ones."""
        state = self._session.state
        row = state.attempts[attempt.serial - 1]
        state.jobs[row.job].size, row.wall = attempt.n_nodes, attempt.walltime_us

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
        room, now_us = self._session.room, self._session.now_us
        return all_starts(
            room, lambda p: self.starts_of(room, p, *self._begun.get(p, ([], [])), now_us)
        )

    def reasons(self) -> dict[str, str]:
        """Return why attempts wait, by id."""
        session = self._session
        barred = reasons_to_wait(session.room, session.limits)
        return {session.names[a]: reason for a, reason in barred.items()}
