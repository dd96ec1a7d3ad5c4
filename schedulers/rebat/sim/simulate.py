# SPDX-License-Identifier: Apache-2.0
"""A run on the compiled loop: columns of the inputs, and the records of the outcome."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Attempt, Cause, attempt_profile, job_name, resubmission_id
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs, submission_order
from rebat.core.jobs import Workload, delays_us_of
from rebat.core.nodes import NodeSet
from rebat.core.packed import Packed
from rebat.core.traits import traits_of
from rebat.core.units import FOREVER_US
from rebat.engine.jobs import FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, EndedJob, ended_jobs
from rebat.models.checkpoint import Checkpointing, checkpoint_kinds
from rebat.models.failures.events import ExternalEvent, MachineEvent, in_order
from rebat.policies.context import SizeLimit
from rebat.policies.planning.list_scheduling import (
    ALL,
    MAINTENANCE,
    ListOptions,
    depth_of,
)
from rebat.policies.point import Point
from rebat.policies.reactions.stealing import StealingOptions
from rebat.session.ledger import AttemptRecord, Ledger
from rebat.session.plan_record import PlanRecord
from rebat.sim import loop
from rebat.sim.eligible import CRITERIA, ORDERS, RELEASES, TIES, VICTIM_RULES

Ints = npt.NDArray[np.int64]

CAUSES = (
    (Cause.COMPLETED, SUCCESS),
    (Cause.JOB_FAILED, FAILED),
    (Cause.WALLTIME, WALLTIME),
    (Cause.NODE_FAILURE, KILLED),
    (Cause.REJECTED, REJECTED),
    (Cause.STOLEN, KILLED),
)
"""Cause and Batsim's state for each cause of the loop."""


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

    def columns(self, n_nodes: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the arguments of the loop. The last event is left out if more could follow it."""
        events = [event for event in self.read if isinstance(event, MachineEvent)]
        if len(events) < len(self.read):
            raise Uncovered("events other than failures and repairs")
        if not self.complete and events:
            last_us = events[-1].at_us  # other events of this time may be unread
            events = [event for event in events if event.at_us < last_us]
        ids = [event.nodes.ids for event in events]
        if any(event.cause is not None for event in events):
            raise Uncovered("failures with causes")
        if any(len(nodes) and int(nodes[-1]) >= n_nodes for nodes in ids):
            raise Uncovered("events of nodes outside the machine")
        first = np.zeros(len(events) + 1, dtype=np.int64)
        np.cumsum([len(nodes) for nodes in ids], out=first[1:])
        return (
            np.array([event.at_us for event in events], dtype=np.int64),
            np.array([event.available for event in events], dtype=np.int64),
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
    judges_flows = parameters[loop.STEALING] and parameters[loop.CRITERION] == loop.SMALLER_FLOW
    if judges_flows and (table[:, loop.JOB_WALL] >= FOREVER_US).any():
        raise Uncovered("criterion=smaller-flow with jobs without walltimes")
    until_us = int((table[:, loop.SUBMIT] + table[:, loop.JOB_DELAY]).max(initial=0))
    factor, counted = 1, np.zeros(5, dtype=np.int64)
    while True:
        events.read_until(until_us)
        parameters[loop.DRAWN] = not events.complete
        room = loop.room_for(len(table), n_nodes, factor)
        outcome = loop.run(table, *events.columns(n_nodes), parameters, room, counted)
        if outcome == loop.DONE:
            break
        if outcome == loop.REFERENCE:
            raise Uncovered("a run that cannot continue")
        if outcome == loop.MORE_EVENTS:
            until_us *= 2
        else:
            factor *= 2
    if events.are_file:
        events.read_until(FOREVER_US)
    return _outcome(jobs, events, n_nodes, room, counted.tolist(), on_progress)


class Submissions:
    """The jobs of a workload in the order of their submission, as a table for the loop.

    Attributes
    ----------
    table : int64 array, shape (n, N_JOB_COLUMNS)
    """

    def __init__(self, workload: Workload) -> None:
        jobs = self._jobs = Jobs.of(workload.jobs)
        order = self._order = submission_order([("w0", jobs)])
        self._profiles, self._names = jobs.profile_codes[order], jobs.profile_names
        profiles = [workload.profiles[name] for name in self._names]
        self._kinds, kinds = checkpoint_kinds(profiles)
        self._kind_of = np.array(kinds, dtype=np.int64)
        rows = np.zeros((len(profiles), loop.N_JOB_COLUMNS), dtype=np.int64)
        rows[:, loop.JOB_DELAY] = delays_us_of(profiles)
        rows[:, loop.RET] = [int(profile.get("ret", 0)) for profile in profiles]
        patterns = np.array([self._pattern(c) for c in self._kinds], dtype=np.int64)
        rows[:, loop.CHECKPOINTS : loop.CLASS] = patterns.reshape(-1, 6)[self._kind_of]
        classes = [traits_of(extra).priority_class for extra in jobs.extra_fields]
        table = self.table = rows[self._profiles]
        table[:, loop.SUBMIT], table[:, loop.SIZE] = jobs.submit_us[order], jobs.n_nodes[order]
        walls_us = jobs.walltime_us
        table[:, loop.JOB_WALL] = np.where(walls_us < 0, FOREVER_US, walls_us)[order]
        table[:, loop.CLASS] = np.array(classes, dtype=np.int64)[jobs.extra_codes[order]]

    @staticmethod
    def _pattern(c: Checkpointing | None) -> tuple[int, ...]:
        """Return the columns of a job that its checkpoints determine."""
        if c is None:
            return (0, 0, 0, 0, 0, 0)
        pattern = c.pattern
        if c.never or c.image_us or pattern.recovery != pattern.restart:
            raise Uncovered("checkpoints of another kind")
        return (
            1, pattern.period, pattern.cost, pattern.restart, pattern.first_period,
            pattern.first_recovery,
        )  # fmt: skip

    def id(self, j: int) -> str:
        """Return the id of a job without its workload."""
        return self._jobs.ids[int(self._order[j])]

    def profile(self, j: int) -> str:
        """Return the name of a job's profile."""
        return self._names[int(self._profiles[j])]

    @cache  # noqa: B019 (the object lives as long as the run)
    def _resumed(self, kind: int, first_us: int, recovery_us: int) -> Checkpointing | None:
        c = self._kinds[kind]
        if c is None:
            return None
        return msgspec.structs.replace(c, first_period_us=first_us, first_recovery_us=recovery_us)

    def checkpointing(self, j: int, first_us: int, recovery_us: int) -> Checkpointing | None:
        """Return the checkpoints of an attempt."""
        return self._resumed(int(self._kind_of[self._profiles[j]]), first_us, recovery_us)


def parameters_of(point: Point, n_nodes: int, max_attempts: int) -> Ints:
    """Return the parameters of the loop."""
    planning = point.planning
    assert isinstance(planning, ListOptions)
    upkeep = MAINTENANCE[planning.maintenance]
    parameters = np.zeros(loop.N_PARAMETERS, dtype=np.int64)
    depth = depth_of(planning.depth)
    parameters[loop.DEPTH] = loop.ALL if depth == ALL else depth
    parameters[loop.FIRST_ONLY] = planning.reserve == "first"
    parameters[loop.MARGIN] = planning.margin_us
    parameters[loop.ORDER] = ORDERS[point.common.order]
    for column, change in (
        (loop.ON_ARRIVAL, "arrival"),
        (loop.ON_PRIORITY, "priority"),
        (loop.ON_END, "end"),
        (loop.ON_FAILURE, "failure"),
        (loop.ON_REPAIR, "rejuvenation"),
    ):
        parameters[column] = int(upkeep[change])
    parameters[loop.MAX_ATTEMPTS], parameters[loop.N_NODES] = max_attempts, n_nodes
    for part in point.reactions:
        if isinstance(part, StealingOptions):
            parameters[loop.STEALING] = True
            parameters[loop.VICTIM] = VICTIM_RULES[part.victim]
            parameters[loop.CRITERION] = CRITERIA[part.criterion]
    parameters[loop.RELEASE] = RELEASES[point.dialect.release]
    parameters[loop.TIE] = TIES[point.dialect.tie]
    return parameters


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
    nodes, hits, given_up = room.nodes, room.hits, room.given_up
    ledger, ended, table = Ledger(), ended_jobs(), jobs.table
    columns, records = room.attempts[:n_attempts], room.records[:n_records]
    serials = np.zeros(len(table), dtype=np.int64)
    originals = np.flatnonzero(columns[:, loop.NUMBER] == 0)
    serials[columns[originals, loop.JOB]] = originals + 1
    limit = SizeLimit(n_nodes)
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
             cause, useful_us, first, k, _, thief) = row  # fmt: skip
            why, state = CAUSES[cause]
            name, profile, c, held, reason = jobs.id(j), jobs.profile(j), None, None, ""
            job_id = attempt_id = f"w0!{name}"
            if number:
                attempt_id = resubmission_id(job_id, number)
                profile = attempt_profile(job_name(attempt_id), profile)
            if why is Cause.REJECTED:
                ledger.rejections.append((attempt_id, limit.exceeded(size) or ""))
            else:
                c = jobs.checkpointing(j, first_us, recovery_us)
                held = NodeSet(nodes[first : first + k].copy(), size)
            if why is Cause.NODE_FAILURE:
                ledger.interrupted[job_id] = ledger.interrupted.get(job_id, 0) + 1
            elif why is Cause.STOLEN:
                reason = f"for {jobs.id(thief)}"
                ledger.steals.append(end_us)
            attempt = Attempt(
                attempt_id, job_id, a + 1, job_serial, number, size, wall_us, submit_us, queued_us,
                priority, class_,
            )  # fmt: skip
            ledger.attempts.append(
                AttemptRecord(
                    attempt, profile, c, start_us, end_us, why, state, useful_us, held, why=reason
                )
            )
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
    happened = events.read if events.are_file else events.read[:n]
    ledger.node_events = [
        (event.at_us, event.available, event.nodes)
        for event in happened
        if isinstance(event, MachineEvent)
    ]
    return Outcome(ledger, ended)
