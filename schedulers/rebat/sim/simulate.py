# SPDX-License-Identifier: Apache-2.0
"""A run on the compiled loop: columns of the inputs, and the records of the outcome."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Attempt, Cause, attempt_profile, job_name, resubmission_id
from rebat.core.compact_jobs import compact
from rebat.core.errors import InputError
from rebat.core.jobs import Workload, delay_us
from rebat.core.nodes import NodeSet
from rebat.core.packed import Packed
from rebat.core.traits import traits_of
from rebat.core.units import FOREVER_US, to_s, to_us
from rebat.engine.jobs import FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, EndedJob, ended_jobs
from rebat.models.checkpoint import Checkpointing, checkpointing_of
from rebat.models.failures.events import ExternalEvent, MachineEvent, in_order
from rebat.models.six_digits import period_as_forwarded_s
from rebat.policies.context import SizeLimit
from rebat.policies.placement.plans import NamedOptions
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.planning.list_scheduling import (
    ALL,
    MAINTENANCE,
    ListOptions,
    depth_of,
)
from rebat.policies.point import Point
from rebat.policies.reactions.stealing import StealingOptions
from rebat.session.ledger import AttemptRecord, Hold, Ledger, Why
from rebat.session.plan_record import PlanRecord
from rebat.sim import columns as loop
from rebat.sim.eligible import (
    CRITERIA,
    DIALECT,
    ORDERS,
    RELEASES,
    TIES,
    TIMINGS,
    VICTIM_RULES,
)
from rebat.sim.loop import run

Ints = npt.NDArray[np.int64]

CAUSES = (
    (Cause.COMPLETED, SUCCESS),
    (Cause.JOB_FAILED, FAILED),
    (Cause.WALLTIME, WALLTIME),
    (Cause.NODE_FAILURE, KILLED),
    (Cause.REJECTED, REJECTED),
    (Cause.STOLEN, KILLED),
    (Cause.REJECTED, REJECTED),
)
"""Cause and Batsim's state for each cause of the loop."""


WHY_OFF: tuple[Why, ...] = ("ended", "hit", "given up")
"""Reason why a steal is cancelled, for each of the loop's reasons."""


class Uncovered(Exception):
    """The loop does not cover the run, as was found while reading its inputs or simulating it."""


class Events:
    """Node events, which are read as needed and can be read again by the reference.

    Parameters
    ----------
    events : iterable of MachineEvent
        A sequence is an event file: all of its events occur.
    """

    def __init__(self, events: Iterable[ExternalEvent]) -> None:
        self.are_file = isinstance(events, Sequence)
        self._rest: Iterator[ExternalEvent] = iter(
            in_order(events) if isinstance(events, Sequence) else events
        )
        self.read: list[ExternalEvent] = []
        self.complete = False
        self.causes: dict[str, int] = {"": 0}

    def read_until(self, at_us: int) -> None:
        """Read events up to the first that is later than this time."""
        while not self.complete and not (self.read and self.read[-1].at_us > at_us):
            event = next(self._rest, None)
            if event is None:
                self.complete = True
            else:
                self.read.append(event)

    @property
    def all(self) -> Iterable[ExternalEvent]:
        """All events, in the form in which they were given."""
        if self.are_file:
            return [*self.read, *self._rest]
        return itertools.chain(self.read, self._rest)

    def columns(self, n_nodes: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Return the arguments of the loop. The last event is left out if more could follow it."""
        events = [event for event in self.read if isinstance(event, MachineEvent)]
        if len(events) < len(self.read):
            raise Uncovered("events other than failures and repairs")
        if not self.complete and events:
            last_us = events[-1].at_us  # other events of this time may be unread
            events = [event for event in events if event.at_us < last_us]
        ids = [event.nodes.ids for event in events]
        causes = [self.causes.setdefault(e.cause or "", len(self.causes)) for e in events]
        if any(len(nodes) and int(nodes[-1]) >= n_nodes for nodes in ids):
            raise Uncovered("events of nodes outside the machine")
        first = np.zeros(len(events) + 1, dtype=np.int64)
        np.cumsum([len(nodes) for nodes in ids], out=first[1:])
        return (
            np.array([event.at_us for event in events], dtype=np.int64),
            np.array([event.available for event in events], dtype=np.int64),
            np.array(causes, dtype=np.int64),
            first,
            np.concatenate([np.empty(0, dtype=np.int64), *ids]).astype(np.int64),
        )


class Outcome(msgspec.Struct):
    """The records of a run.

    ``plans`` is the record of plans, or None if the run did not record them. ``dead_us`` is the
    node time of jobs on nodes that were down.
    """

    ledger: Ledger
    jobs: Packed[EndedJob]
    plans: PlanRecord | None = None
    dead_us: int = 0


OnProgress = Callable[[int, int, int], None]

CHUNK = 4096
"""Number of records that are converted together."""


def simulate(
    workload: Workload,
    point: Point,
    events: Events,
    *,
    n_nodes: int,
    max_attempts: int,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Run the loop.

    Parameters
    ----------
    on_progress : callable, optional
        Called with a time (us), the number of ended attempts so far, and their total number.

    Raises
    ------
    Uncovered
        If only the reference can simulate the run, or report its error.
    """
    try:
        jobs = Submissions(workload)
    except InputError as error:
        raise Uncovered(str(error)) from None
    table, parameters = jobs.table, parameters_of(point, n_nodes, max_attempts)
    parameters[loop.TO_THE_LAST_EVENT] = events.are_file
    check_numbers(table, parameters)
    if parameters[loop.ORDER] == loop.BY_ID or parameters[loop.TIE] == loop.BY_TEXT:
        table = np.column_stack([table, ranks_of(jobs)])
    if parameters[loop.SIX_DIGITS]:
        table = with_periods_as_forwarded(table)
    until_us = int((table[:, loop.SUBMIT] + table[:, loop.JOB_DELAY]).max(initial=0))
    factor = 1
    if events.are_file:
        until_us = FOREVER_US
    while True:
        events.read_until(until_us)
        parameters[loop.DRAWN] = not events.complete
        room = loop.room_for(table, parameters, factor)
        lines, named = events.columns(n_nodes), loop.table_for(parameters, factor)
        outcome = run(*lines, room, named, extended(parameters))
        if outcome == loop.DONE:
            break
        if outcome == loop.REFERENCE:
            raise Uncovered("a run that only the reference can simulate")
        if outcome == loop.MORE_EVENTS:
            until_us *= 2
        else:
            factor *= 2
    return _outcome(
        jobs, events, n_nodes, room, room.state.n[loop.N_ATTEMPTS :][:5].tolist(), on_progress
    )


def check_numbers(table: Ints, parameters: Ints) -> None:
    """Raise Uncovered if a number that a rule computes may not fit in 64 bits."""
    judges_flows = parameters[loop.STEALING] and parameters[loop.CRITERION] == loop.SMALLER_FLOW
    if judges_flows and (table[:, loop.JOB_WALL] >= FOREVER_US).any():
        raise Uncovered("criterion=smaller-flow with jobs without walltimes")
    if parameters[loop.ORDER] in (loop.LARGEST_AREA, loop.SMALLEST_AREA):
        lengths = np.minimum(table[:, loop.JOB_WALL], loop.LONGEST_US).astype(float)
        if ((lengths + 1e12) * table[:, loop.SIZE]).max(initial=0.0) > 2.0**62:
            raise Uncovered("areas that do not fit in 64 bits")


def ranks_of(jobs: Submissions) -> Ints:
    """Return the ranks of the jobs among the ids as text, and among those of resubmissions."""
    names = [jobs.id(j) for j in range(len(jobs.table))]
    ranks = np.zeros((len(names), 2), dtype=np.int64)
    for column, ending in enumerate(("", "-")):
        texts = sorted((name + ending, j) for j, name in enumerate(names))
        ranks[[j for _, j in texts], column] = np.arange(len(texts))
        if ending and any(b.startswith(a) for (a, _), (b, _) in itertools.pairwise(texts)):
            raise Uncovered("ids of jobs that begin like resubmissions of other jobs")
    return ranks


def with_periods_as_forwarded(table: Ints) -> Ints:
    """Return the table with periods as Batsim rounds them (see `rebat.models.six_digits`)."""
    table = np.column_stack([table, np.zeros((len(table), 4), dtype=np.int64)])
    of_jobs = table[:, [loop.PERIOD, loop.COST, loop.SIZE, loop.CHECKPOINTS]]
    patterns, which = np.unique(of_jobs, axis=0, return_inverse=True)
    for k, (period_us, cost_us, size, checkpoints) in enumerate(patterns.tolist()):
        if not checkpoints or period_us + cost_us <= 1:
            continue
        period_s, rows = to_s(period_us), np.flatnonzero(which.ravel() == k)
        forwarded_s = period_as_forwarded_s(period_s, to_s(cost_us), size)
        fraction, exponent = math.frexp(forwarded_s)
        table[rows, loop.FRACTION], table[rows, loop.EXPONENT] = int(fraction * 2**53), exponent
        same = rows[table[rows, loop.FIRST_PERIOD] == period_us]
        table[rows, loop.PERIOD] = table[same, loop.FIRST_PERIOD] = to_us(forwarded_s)
    return table


def extended(parameters: Ints) -> bool | None:
    """Return the last argument of the loop: which rules are compiled."""
    return True if parameters[loop.TIMING] != loop.NOW or parameters[loop.SIX_DIGITS] else None


def smallest_arguments(point: Point) -> tuple[Any, ...]:
    """Return arguments of the loop for a run without jobs, which have the types of all runs."""
    parameters = parameters_of(point, 1, 1)
    room = loop.room_for(np.zeros((0, loop.N_JOB_COLUMNS), dtype=np.int64), parameters, 1)
    return *Events([]).columns(1), room, loop.table_for(parameters, 1), extended(parameters)


class Submissions:
    """The jobs of a workload in the order of their submission, as a table for the loop.

    Attributes
    ----------
    table : int64 array, shape (n, N_JOB_COLUMNS)
    """

    def __init__(self, workload: Workload) -> None:
        jobs = self._jobs = compact(workload.jobs)
        sizes, submit_us, walls_us, profiles, extras = jobs.columns()
        order = self._order = np.argsort(submit_us, kind="stable")
        self._sort_ties(submit_us[order])
        self._profiles, self._names = profiles[order], jobs.profile_names
        fields = [workload.profiles[name] for name in self._names]
        self._checkpoints = [checkpointing_of(profile) for profile in fields]
        rows = np.array([self._row(*pair) for pair in zip(fields, self._checkpoints, strict=True)])
        classes = [traits_of(extra).priority_class for extra in jobs.extra_fields]
        table = self.table = np.zeros((len(jobs), loop.N_JOB_COLUMNS), dtype=np.int64)
        if not len(jobs):
            return
        table[:, loop.SUBMIT], table[:, loop.SIZE] = submit_us[order], sizes[order]
        table[:, loop.JOB_WALL] = np.where(walls_us < 0, FOREVER_US, walls_us)[order]
        table[:, loop.JOB_DELAY : loop.CLASS] = rows[self._profiles]
        table[:, loop.CLASS] = np.array(classes, dtype=np.int64)[extras[order]]

    def _sort_ties(self, submit_us: Ints) -> None:
        """Sort jobs with equal submission times by their ids as text."""
        edges = np.flatnonzero(np.diff(submit_us, prepend=-1, append=-1))
        lengths = np.diff(edges)
        for first in edges[:-1][lengths > 1].tolist():
            last = int(edges[np.searchsorted(edges, first) + 1])
            self._order[first:last] = sorted(self._order[first:last].tolist(), key=self._jobs.id_at)

    @staticmethod
    def _row(profile: dict[str, Any], c: Checkpointing | None) -> tuple[int, ...]:
        """Return the columns of a job that its profile determines."""
        length = delay_us(profile), int(profile.get("ret", 0))
        if c is None:
            return (*length, 0, 0, 0, 0, 0, 0)
        pattern = c.pattern
        if c.never or c.image_us or pattern.recovery != pattern.restart:
            raise Uncovered("checkpoints of another kind")
        return (
            *length, 1, pattern.period, pattern.cost, pattern.restart, pattern.first_period,
            pattern.first_recovery,
        )  # fmt: skip

    def id(self, j: int) -> str:
        """Return the id of a job without its workload."""
        return self._jobs.id_at(int(self._order[j]))

    def profile(self, j: int) -> str:
        """Return the name of a job's profile."""
        return self._names[int(self._profiles[j])]

    @cache  # noqa: B019 (the object lives as long as the run)
    def _resumed(self, profile: int, first_us: int, recovery_us: int) -> Checkpointing | None:
        c = self._checkpoints[profile]
        if c is None:
            return None
        return msgspec.structs.replace(c, first_period_us=first_us, first_recovery_us=recovery_us)

    def checkpointing(self, j: int, first_us: int, recovery_us: int) -> Checkpointing | None:
        """Return the checkpoints of an attempt."""
        return self._resumed(int(self._profiles[j]), first_us, recovery_us)


def parameters_of(point: Point, n_nodes: int, max_attempts: int) -> Ints:
    """Return the parameters of the loop."""
    planning, dialect = point.planning, point.dialect
    parameters = np.zeros(loop.N_PARAMETERS, dtype=np.int64)
    parameters[loop.FIFO] = isinstance(planning, FifoOptions)
    if isinstance(planning, ListOptions):
        depth = depth_of(planning.depth)
        parameters[loop.DEPTH] = loop.ALL if depth == ALL else depth
        parameters[loop.FIRST_ONLY] = planning.reserve == "first"
        parameters[loop.TIMED] = planning.walltimes == "required"
        parameters[loop.NAMED] = isinstance(point.placement, NamedOptions)
        upkeep = MAINTENANCE[planning.maintenance]
        for column, change in (
            (loop.ON_ARRIVAL, "arrival"),
            (loop.ON_PRIORITY, "priority"),
            (loop.ON_END, "end"),
            (loop.ON_FAILURE, "failure"),
            (loop.ON_REPAIR, "rejuvenation"),
        ):
            parameters[column] = int(upkeep[change])
    parameters[loop.MARGIN] = planning.margin_us
    parameters[loop.ORDER] = ORDERS[point.common.order]
    parameters[loop.MAX_ATTEMPTS], parameters[loop.N_NODES] = max_attempts, n_nodes
    for part in point.reactions:
        if isinstance(part, StealingOptions):
            parameters[loop.STEALING] = True
            parameters[loop.VICTIM] = VICTIM_RULES[part.victim]
            parameters[loop.CRITERION] = CRITERIA[part.criterion]
            parameters[loop.TIMING] = TIMINGS[part.timing]
    parameters[loop.RELEASE] = RELEASES[dialect.release]
    parameters[loop.TIE] = TIES[dialect.tie]
    parameters[loop.HOLD_MARGIN] = round(dialect.hold_margin_s * 1e6)
    for column, (name, value) in DIALECT.items():
        parameters[column] = getattr(dialect, name) == value
    return parameters


def note_steals(ledger: Ledger, jobs: Submissions, room: loop.Room) -> None:
    """Add the records of steals, of cancelled steals and of held nodes to a ledger."""
    n, lists = room.state.n.tolist(), room.state.lists
    ledger.steals = lists[loop.STEALS_AT, : n[loop.N_STEALS]].tolist()
    off = lists[[loop.OFF_AT, loop.OFF_WHY], : n[loop.N_STEALS_OFF]].T
    ledger.steals_off = [(at, WHY_OFF[why]) for at, why in off.tolist()]
    records = room.state.tables[loop.HOLD_TABLE, : n[loop.N_HOLDS], : loop.N_HOLD_AT + 1]
    for j, since_us, until_us, first, k in records.tolist():
        held = NodeSet(room.state.nodes[first : first + k].copy())
        until = None if until_us < 0 else until_us
        ledger.holds.append(Hold(f"w0!{jobs.id(j)}", held, since_us, until))


def as_rounded(c: Checkpointing | None, room: loop.Room, a: int) -> Checkpointing | None:
    """Return the checkpoints of an attempt with the periods and costs that the loop rounded."""
    if c is None or room.state.attempts.shape[1] == loop.N_COLUMNS:
        return c
    period_us, cost_us, recovery_us = room.state.attempts[a, loop.OWN_PERIOD :].tolist()
    return msgspec.structs.replace(c, period_us=period_us, cost_us=cost_us, recovery_us=recovery_us)


def _outcome(
    jobs: Submissions,
    events: Events,
    n_nodes: int,
    room: loop.Room,
    counted: list[int],
    on_progress: OnProgress | None,
) -> Outcome:
    """Return the records of a run of the loop."""
    n_attempts, n_records, n_hits, n_given_up, n = counted
    nodes, hits, given_up = room.state.nodes, room.hits, room.state.lists[loop.GIVEN_UP_JOBS]
    ledger, ended, table = Ledger(), ended_jobs(), jobs.table
    columns, records = room.state.attempts[:n_attempts, : loop.N_COLUMNS], room.records[:n_records]
    serials = np.zeros(len(table), dtype=np.int64)
    originals = np.flatnonzero(columns[:, loop.NUMBER] == 0)
    serials[columns[originals, loop.JOB]] = originals + 1
    limit, failures = SizeLimit(n_nodes), [*events.causes]
    for first_record in range(0, n_records, CHUNK):
        chunk = records[first_record : first_record + CHUNK]
        own = columns[chunk, loop.JOB]
        of_jobs = np.column_stack(
            [serials[own], table[own][:, [loop.SIZE, loop.SUBMIT, loop.CLASS]]]
        )
        for a, row, (job_serial, size, submit_us, class_) in zip(
            chunk.tolist(), columns[chunk].tolist(), of_jobs.tolist(), strict=True
        ):
            (j, number, priority, queued_us, wall_us, _, first_us, recovery_us, start_us, end_us,
             cause, useful_us, first, k, _, thief, _, _, failure) = row  # fmt: skip
            why, state = CAUSES[cause]
            name, profile, c, held, reason = jobs.id(j), jobs.profile(j), None, None, ""
            failure = failures[failure] if why is Cause.NODE_FAILURE else ""
            job_id = attempt_id = f"w0!{name}"
            if number:
                attempt_id = resubmission_id(job_id, number)
                profile = attempt_profile(job_name(attempt_id), profile)
            if why is Cause.REJECTED:
                no_walltime = "has no walltime" if cause == loop.NO_WALLTIME else ""
                ledger.rejections.append((attempt_id, no_walltime or limit.exceeded(size) or ""))
            else:
                c = jobs.checkpointing(j, first_us, recovery_us)
                c = as_rounded(c, room, a)
                held = NodeSet(nodes[first : first + k].copy(), size)
            if why is Cause.NODE_FAILURE:
                ledger.interrupted[job_id] = ledger.interrupted.get(job_id, 0) + 1
            elif why is Cause.STOLEN:
                reason = f"for {jobs.id(thief - 1)}"
            attempt = Attempt(
                attempt_id, job_id, a + 1, job_serial, number, size, wall_us, submit_us, queued_us,
                priority, class_,
            )  # fmt: skip
            record = AttemptRecord(
                attempt, profile, c, start_us, end_us, why, state, useful_us, held, why=reason,
                failure=failure,
            )  # fmt: skip
            ledger.attempts.append(record)
            walltime_us = None if wall_us >= FOREVER_US else wall_us
            ended.append(
                EndedJob(
                    attempt_id,
                    size,
                    queued_us,
                    walltime_us,
                    profile,
                    "w0",
                    start_us,
                    end_us,
                    state,
                    held,
                    "",
                    number > 0,
                )
            )
        if on_progress:
            on_progress(end_us, len(ledger.attempts), n_records)
    ledger.given_up = [f"w0!{jobs.id(j)}" for j in given_up[:n_given_up].tolist()]
    ledger.failures_that_hit = [(at, free) for at, free in hits[:n_hits].tolist()]
    note_steals(ledger, jobs, room)
    happened = events.read if events.are_file else events.read[:n]
    ledger.node_events = [
        (event.at_us, event.available, event.nodes)
        for event in happened
        if isinstance(event, MachineEvent)
    ]
    return Outcome(ledger, ended)
