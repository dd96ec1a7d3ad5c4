# SPDX-License-Identifier: Apache-2.0
"""A run of the embedded driver: the tables of its inputs, and the records of the outcome."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rebat.contract import Machine
from rebat.core.attempts import attempt_profile
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs, submission_order
from rebat.core.jobs import Workload, delays_us_of
from rebat.core.node_events import NodeEvents
from rebat.core.options import Recovery
from rebat.core.table import Ragged
from rebat.core.traits import USUAL, Traits, traits_of
from rebat.core.units import FOREVER_US, parse_duration, to_s, to_us
from rebat.drive.eligible import (
    CRITERIA,
    DIALECT,
    PREDICT,
    RELEASES,
    TIES,
    TIMINGS,
    VICTIM_RULES,
    why_not_tiers,
    why_not_workload,
)
from rebat.drive.embedded import run
from rebat.drive.growing import with_plans, with_rows, with_spaces
from rebat.drive.hangs import hangs_for
from rebat.drive.keys import KeyRecorder, Keys, needs_python
from rebat.drive.machine import LoopNodes
from rebat.drive.operations import Orders, awaits
from rebat.drive.outcome import (
    Outcome,
    Rows,
    coded,
    in_order_of_kills,
    ledger_of,
    states_of,
)
from rebat.drive.parts import (
    LoopMachine,
    Uncovered,
    columns_of_jobs,
    machine_of,
    order_code,
    whole_machine,
)
from rebat.drive.plan_record import PlanRecord, PlanRecorder
from rebat.drive.plans import Recorder, RuleRecorder
from rebat.drive.shared import Shared
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.drive.tiers import tiers_for
from rebat.kernels import deep_queue
from rebat.kernels.blocks import BlockTable
from rebat.kernels.jit import machine_code_of
from rebat.models.checkpoint import NEVER, Checkpointing, checkpoint_kinds
from rebat.models.failures.events import ExternalEvent, GenericEvent, MachineEvent, in_order
from rebat.models.failures.history import Remembered
from rebat.models.failures.law import DrawnEvents, NodeChanges
from rebat.models.failures.laws import reads_files
from rebat.models.remaining import period_as_forwarded_s
from rebat.models.silent_errors import errors_left
from rebat.policies.placement.cores import FITS, ClusterOptions
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.places import Places
from rebat.policies.placement.plans import AnyOptions, NamedOptions, PlacementOptions
from rebat.policies.planning.batsched import TimedOptions
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.planning.flexible import FlexibleOptions
from rebat.policies.planning.list_scheduling import (
    ALL,
    MAINTENANCE,
    ListOptions,
    depth_of,
    millionths_of,
)
from rebat.policies.planning.shelves import ShelfOptions
from rebat.policies.point import Point
from rebat.policies.reactions.exclusion import ExclusionOptions
from rebat.policies.reactions.preemption import PreemptionOptions
from rebat.policies.reactions.replacement import ReplacementOptions
from rebat.policies.reactions.stealing import StealingOptions
from rebat.policies.shares import Shares
from rebat.policies.variants import parts
from rebat.policies.windows import read_reservations
from rebat.rules import steals
from rebat.rules.by_value import arrays_of
from rebat.rules.links import links_of
from rebat.state import codes, rooms, tables
from rebat.state.rows import zeros

Ints = npt.NDArray[np.int64]


PATTERN = "checkpoints", "period", "cost", "restart", "first_period", "first_recovery"
"""Fields of a profile that its checkpoints determine."""


class Events:
    """Node events, which are read as needed. Runs in several threads can share them.

    Parameters
    ----------
    events : iterable of MachineEvent
        A sequence is an event file: all of its events occur.

    Attributes
    ----------
    all : iterable of MachineEvent
        All events from the beginning.
    """

    def __init__(self, events: Iterable[ExternalEvent]) -> None:
        self.are_file = isinstance(events, Sequence)
        self.all: Iterable[ExternalEvent] = events
        if isinstance(events, Sequence):
            self.all = in_order(events)
        elif isinstance(events, Iterator):
            self.all = Remembered(events)
        self._lock = Lock()
        self._is_consistent = False
        self._causes: dict[str, int] = {"": 0}

    def _begin(self) -> None:
        """Begin to read the events."""
        blocks = self.all.blocks() if isinstance(self.all, DrawnEvents) else None
        self._rest: Iterator[Any] = iter(self.all) if blocks is None else blocks
        self._complete = self._others = False
        self._error: Exception | None = None
        self._numbers = [array("q", first) for first in ((), (), (), [0], (), [0], ())]
        self._arrays: list[Ints] = []

    def columns(self, until_us: int, n_nodes: int) -> tuple[tuple[Ints, ...], bool]:
        """Return events as arguments of the loop, and whether there are no other events.

        The events include all up to ``until_us``, or up to an error of their law.

        Raises
        ------
        Uncovered
            If the loop does not cover an event.
        """
        with self._lock:
            if not self._is_consistent:  # the first call, or the call after an interrupt
                self._begin()
            self._is_consistent = False
            self._read_until(until_us)
            self._is_consistent = True
            if self._others:
                raise Uncovered("events other than failures and repairs")
            at_us, available, causes, first, nodes, *_ = self._as_arrays()
            if nodes.max(initial=0) >= n_nodes:
                raise Uncovered("events of nodes outside the machine")
            n, complete = self._n_known(at_us), self._complete
        return (at_us[:n], available[:n], causes[:n], first[: n + 1], nodes), complete

    def check_more(self, n: int) -> None:
        """Raise Uncovered if the law of the events raises an error after the first n events.

        A run that ends earlier has a result. The session decides which comes first.
        """
        with self._lock:
            if self._error and n == self._n_known(self._as_arrays()[0]):
                raise Uncovered(str(self._error))

    def _n_known(self, at_us: Ints) -> int:
        """Return the number of events without those whose time may have other events."""
        unread = len(at_us) and not self._complete
        return int(np.searchsorted(at_us, at_us[-1])) if unread else len(at_us)

    def _read_until(self, until_us: int) -> None:
        """Read events up to the first that is later than this time."""
        at_us, available, causes, first, nodes, first_interval, intervals = self._numbers
        ended = self._complete or self._others or self._error
        while not (ended or (at_us and at_us[-1] > until_us)):
            try:
                event = next(self._rest, None)
            except Exception as error:
                self._error = error
                return
            if event is None:
                self._complete = True
                return
            self._arrays = []
            if isinstance(event, NodeChanges):
                self._add(event)
                continue
            if not isinstance(event, MachineEvent):
                self._others = True
                return
            for low, high in event.nodes.intervals.tolist():
                intervals.extend((low, high))
                nodes.extend(range(low, high + 1))
            at_us.append(event.at_us)
            available.append(event.available)
            causes.append(self._causes.setdefault(event.cause or "", len(self._causes)))
            first.append(len(nodes))
            first_interval.append(len(intervals) // 2)

    def _add(self, changes: NodeChanges) -> None:
        """Add a block of events. None has a cause."""
        n, cores = len(changes.node), changes.cores_per_node
        low = changes.node * cores
        first, last = len(self._numbers[4]), len(self._numbers[6]) // 2
        counts = np.arange(1, n + 1)
        columns = (
            changes.at_us,
            changes.up,
            np.zeros(n),
            first + cores * counts,
            (low[:, None] + np.arange(cores)).ravel(),
            last + counts,
            np.column_stack([low, low + cores - 1]).ravel(),
        )
        for numbers, column in zip(self._numbers, columns, strict=True):
            numbers.frombytes(column.astype(np.int64).tobytes())

    def _as_arrays(self) -> list[Ints]:
        self._arrays = self._arrays or [np.array(each, np.int64) for each in self._numbers]
        return self._arrays

    def number_of(self, cause: str) -> int:
        """Return the number of a cause of failures."""
        with self._lock:
            return self._causes.setdefault(cause, len(self._causes))

    @property
    def causes(self) -> list[str]:
        """The causes of the events that were read, and those to which numbers were given."""
        with self._lock:
            return [*self._causes]

    def happened(self, n: int | None) -> NodeEvents:
        """Return the first n events (default: all), which the loop has processed."""
        with self._lock:
            at_us, available, _, _, _, first, intervals = self._as_arrays()
        first = first[: None if n is None else n + 1]
        nodes = Ragged(intervals.reshape(-1, 2), first[:-1], np.diff(first))
        return NodeEvents.of_columns(at_us[:n], available[:n] != 0, nodes)


_DRAWN: Shared[Events] = Shared(16)
"""The failures drawn last. All policies that run with a seed share its failures."""


def events_of(events: Iterable[ExternalEvent]) -> Events:
    """Return events for the loop. Failures that are drawn are shared with other runs."""
    if isinstance(events, DrawnEvents) and not reads_files(events.law):
        return _DRAWN.get(cast(Hashable, events), lambda: Events(events))
    return Events(events)


OnProgress = Callable[[int, int, int], None]


def simulate(
    workload: Workload,
    point: Point,
    events: Events,
    *,
    n_nodes: int,
    cores_per_node: int = 1,
    max_attempts: int,
    compiled: bool,
    hazards: Hazards | None = None,
    uptime_us: Ints | None = None,
    explain: bool = False,
    on_progress: OnProgress | None = None,
    operations: Sequence[GenericEvent] = (),
) -> Outcome:
    """Simulate a run.

    Parameters
    ----------
    compiled : bool
        Whether the rules run as machine code. It cannot record plans or use a chooser.
    hazards : Hazards, optional
        The failure law of the run, for placements.
    uptime_us : int64 array, optional
        Uptime of each node at the beginning, for placements (default: 0).
    explain : bool
        Whether to record the plans.
    on_progress : callable, optional
        Called with a time (us), the number of ended attempts so far, and their total number.
    operations : sequence of GenericEvent
        Operations of an administrator. The rules cover them (`eligible.why_not_operations`).

    Raises
    ------
    Uncovered
        If the rules do not cover the run, or if it ends with an error: the engine reports it.
    """
    jobs = submissions_of(workload)
    table, profiles = jobs.table, jobs.table_of_profiles
    columns: dict[str, Any] = {}
    try:
        machine = machine_of(point, n_nodes, cores_per_node)
        waits = awaits(point, operations)
        windows = SiteWindows(point.common.reservations, machine, cores_per_node, waits)
        if machine.partitions:
            of_jobs = columns_of_jobs(machine, workload)
            columns |= {name: values[jobs.order] for name, values in of_jobs.items()}
    except InputError as error:
        raise Uncovered(str(error)) from None
    if jobs.tiered and (reason := why_not_tiers(point)):
        raise Uncovered(reason)
    parameters = parameters_of(point, machine.n_nodes, max_attempts, cores_per_node)
    parameters.operating = bool(operations)
    set_partitions(parameters, machine)
    parameters.max_wakes = windows.max_wakes
    parameters.to_the_last_event = events.are_file
    check_numbers(table, parameters, machine)
    limits, shares = SiteLimits(point.limits), point.shares()
    columns |= columns_of_rules(workload, jobs, parameters, machine, limits, windows, shares)
    if columns:
        table = table.copy()  # other runs use it too
        for name, values in columns.items():
            table[name] = values
    if parameters.six_digits:
        table, profiles = with_periods_as_forwarded(table, profiles)
    kinds = jobs.kinds
    if point.recovery and "init" in point.recovery.stages:
        kinds, profiles = with_restarts(jobs)
    lengths_us = np.minimum(profiles["delay"][table["profile"]], table["wall"])
    until_us = int((table["submit"] + lengths_us).max(initial=0))
    until_us = FOREVER_US if events.are_file else until_us
    formulas = arrays_of(point.formulas, n_nodes)
    play: Any = machine_code_of(run) if compiled else run
    n_failures = len(events.columns(until_us, n_nodes)[0][-1])
    room = rooms.room_for(
        table, profiles, parameters, n_failures, machine, jobs.links, limits.tables(),
        shares.tree, formulas, compiled,
    )  # fmt: skip
    light = [kinds[kind] for kind in jobs.kind_of] if jobs.tiered else None
    room = with_recoveries(room, light, point, events, machine, cores_per_node, compiled)
    room, orders = with_orders(room, jobs, point, cores_per_node, operations, compiled)
    plan, cells = rooms.table_for(parameters), windows.table(room)
    record = PlanRecorder() if explain else None
    shown = LoopNodes(machine.n_nodes, cores_per_node)
    own = RuleRecorder(record, machine, limits, jobs.job_id) if record else None
    recorder = recorder_of(point, machine, jobs.job_id, own, shown, hazards, jobs.traits_of)
    if point.chooses_nodes and uptime_us is not None:
        rooms.set_uptimes(room.state, uptime_us)
    while True:
        shown.show(room)
        (*lines, nodes), complete = events.columns(until_us, n_nodes)
        room.state.n.drawn = not complete
        lines.append(machine.numbered(nodes))
        if not compiled:
            lines = [each.tolist() for each in lines]
        outcome = play(*lines, room, plan, cells, extended(parameters), recorder)
        if outcome == codes.DONE:
            break
        if outcome == codes.IMPOSSIBLE:
            raise Uncovered("a run that ends with an error")
        if outcome == codes.ANNOUNCED and orders:
            cells, room = orders.announce(windows, cells, room, room.state.n.n_operations_due)
            continue
        if outcome == codes.MORE_EVENTS:
            events.check_more(len(lines[0]))
            until_us += until_us // 4 + 1
            continue
        room, plan = larger_tables(room, plan, table, lines)
        cells = windows.extend(cells, room)
    room = machine.restore(rooms.finished(room))
    plans = record.result() if record else None
    source = Known(jobs, table, events, machine, limits, windows, kinds, point.recovery, orders)
    return outcome_of(source, events, room, plans, on_progress)


def larger_tables(
    room: tables.Room, plan: BlockTable | None, jobs: Any, lines: Sequence[Any]
) -> tuple[tables.Room, BlockTable | None]:
    """Return a room and a plan that are large enough to go on. ``lines`` are the node events."""
    n = room.state.n
    if n.is_deciding:
        room = with_plans(room, 0)
        return room, with_spaces(room, plan, 0)
    # the tables are too small for the jobs and events of the time ``now``
    i, j = (int(np.searchsorted(at, n.now, "right")) for at in (jobs["submit"], lines[0]))
    n_changed = int(lines[3][j] - lines[3][n.next_line])
    return with_rows(room, i - n.next_job, j - n.next_line, n_changed), plan


def columns_of_rules(
    workload: Workload,
    jobs: Submissions,
    parameters: tables.Numbers,
    machine: LoopMachine,
    limits: SiteLimits,
    windows: SiteWindows,
    shares: Shares,
) -> dict[str, Ints]:
    """Return the columns of jobs that only some rules use."""
    columns: dict[str, Ints] = {}
    if parameters.limited:
        columns["client"] = jobs.of_traits(limits.client_of)
    if parameters.max_wakes:
        columns["who"] = jobs.of_traits(windows.who_of)
    if parameters.retries:
        columns["errors"] = jobs.table["errors"] * jobs.errors(workload)
    if parameters.uses_usage:
        columns["share"] = rows_of_users(shares, jobs)
    if compares_ids(parameters, machine):
        columns["by_name"], columns["by_prefix"] = ranks_of(jobs).T
    return columns


def with_recoveries(
    room: tables.Room,
    profiles: Iterable[Checkpointing | None] | None,
    point: Point,
    events: Events,
    machine: LoopMachine,
    cores_per_node: int,
    compiled: bool,
) -> tables.Room:
    """Return a room with the tables of tiers of checkpoints and of stages of recovery, if any.

    ``profiles`` are the checkpoints of the profiles, or None if none has several tiers.
    """
    state, k = room.state, len(room.state.attempts)
    if profiles is not None:
        tiers = tiers_for(profiles, events.number_of, machine, cores_per_node, k, compiled)
        state = state._replace(tiers=tiers)
    if point.recovery:
        hangs = hangs_for(point.recovery, events.number_of, k, compiled)
        state = state._replace(hangs=hangs)
    return room._replace(state=state)


def with_orders(
    room: tables.Room,
    jobs: Submissions,
    point: Point,
    cores_per_node: int,
    operations: Sequence[GenericEvent],
    compiled: bool,
) -> tuple[tables.Room, Orders | None]:
    """Return a room with the tables of operations, and the operations, if there are any.

    Raises
    ------
    Uncovered
        If an operation is invalid. The session reports the error at its time.
    """
    if not operations:
        return room, None
    orders = Orders(point, len(room.state.owner), cores_per_node, jobs.named, jobs.users)
    images = orders.images_of(jobs.traits, jobs.extra_codes, jobs.table["size"])
    try:
        return orders.fill(room, images, operations, compiled), orders
    except InputError as error:
        raise Uncovered(str(error)) from None


def recorder_of(
    point: Point,
    machine: LoopMachine,
    job_id: Callable[[int], str],
    recorder: Recorder | None,
    shown: LoopNodes,
    hazards: Hazards | None,
    traits_of: Callable[[int], Traits] = lambda j: USUAL,
) -> Recorder | None:
    """Return what plain Python does during plans, in addition to a recorder. None: nothing.

    Raises
    ------
    Uncovered
        If the placement is not possible on the machine.
    """
    if point.chooses_nodes and machine.n_nodes:
        recorder = recorder or Recorder()
        recorder.places = places_on(shown, point, hazards)
    if needs_python(point):
        recorder = KeyRecorder(Keys(point, machine), job_id, recorder, traits_of)
    return recorder


def places_on(shown: LoopNodes, point: Point, hazards: Hazards | None) -> dict[int, Places]:
    """Return the plan of the nodes that a placement chooses, by group. There is one group.

    Raises
    ------
    Uncovered
        If the placement is not possible on the machine.
    """
    try:
        placement = point.placement.make(hazards, point.common.seed)
        machine = Machine(shown)
        return {0: placement.plan_on(machine, np.ones(machine.n_nodes, dtype=np.bool_))}
    except InputError as error:
        raise Uncovered(str(error)) from None


def set_partitions(parameters: tables.Numbers, machine: LoopMachine) -> None:
    """Set the parameters that depend on the partitions."""
    parameters.parted = bool(machine.partitions)
    tiers = {partition.tier for partition in machine.partitions}
    parameters.tiered = parameters.fifo and len(tiers) > 1
    parameters.most_weight = max(1, int(machine.rows["weight"].max()))
    same = (machine.rows["order"] == parameters.order) & (machine.rows["rank"] == 0)
    parameters.ranked = parameters.parted and not same.all()


def compares_ids(parameters: tables.Numbers, machine: LoopMachine) -> bool:
    """Return whether a rule compares ids as text."""
    by_id = parameters.order == codes.BY_ID or (machine.rows["order"] == codes.BY_ID).any()
    return bool(by_id or parameters.tie_by_text)


def rows_of_users(shares: Shares, jobs: Submissions) -> Ints:
    """Return the row of each job's user. Users get rows in the order of their first jobs."""
    _, first = np.unique(jobs.extra_codes, return_index=True)
    rows = np.zeros(len(jobs.traits), dtype=np.int64)
    for code in jobs.extra_codes[np.sort(first)].tolist():
        rows[code] = shares.row_of(jobs.traits[code])
    of_jobs: Ints = rows[jobs.extra_codes]
    return of_jobs


def check_numbers(table: Any, parameters: tables.Numbers, machine: LoopMachine) -> None:
    """Raise Uncovered if a number that a rule computes may not fit in 64 bits."""
    if parameters.stealing and (table["wall"] >= FOREVER_US).any():
        names = [*VICTIM_RULES][parameters.victim], [*CRITERIA][parameters.criterion]
        if rule := steals.needs_walltimes(*names):
            raise Uncovered(f"{rule} with jobs without walltimes")
    if {parameters.order, *machine.rows["order"]} & {codes.LARGEST_AREA, codes.SMALLEST_AREA}:
        lengths = np.minimum(table["wall"], codes.LONGEST_US).astype(float)
        if ((lengths + 1e12) * table["size"]).max(initial=0.0) > 2.0**62:
            raise Uncovered("areas that do not fit in 64 bits")


def ranks_of(jobs: Submissions) -> Ints:
    """Return the ranks of the jobs among the ids as text, and among those of resubmissions."""
    names = [*jobs.ids.take(jobs.order)]
    ranks = np.zeros((len(names), 2), dtype=np.int64)
    for column, ending in enumerate(("", "-")):
        texts = sorted((name + ending, j) for j, name in enumerate(names))
        ranks[[j for _, j in texts], column] = np.arange(len(texts))
        if ending and any(b.startswith(a) for (a, _), (b, _) in itertools.pairwise(texts)):
            raise Uncovered("ids of jobs that begin like resubmissions of other jobs")
    return ranks


def with_periods_as_forwarded(table: Any, profiles: Any) -> tuple[Any, Any]:
    """Return both tables with periods as Batsim rounds them (see `rebat.models.remaining`).

    A rounded period depends on the number of nodes, so a profile becomes a row for each number.
    """
    wanted, which = np.unique(table[["profile", "size"]], return_inverse=True)
    table, profiles = table.copy(), profiles[wanted["profile"]]
    table["profile"] = which.ravel()
    for row, size in zip(profiles, wanted["size"].tolist(), strict=True):
        period_us, cost_us = int(row["period"]), int(row["cost"])
        if not row["checkpoints"] or period_us + cost_us <= 1:
            continue
        forwarded_s = period_as_forwarded_s(to_s(period_us), to_s(cost_us), size)
        fraction, row["exponent"] = math.frexp(forwarded_s)
        row["fraction"] = int(fraction * 2**53)
        row["period"] = to_us(forwarded_s)
        if row["first_period"] == period_us:
            row["first_period"] = row["period"]
    return table, profiles


def with_restarts(jobs: Submissions) -> tuple[list[Checkpointing | None], Any]:
    """Return the checkpoints, and the table of profiles, if each restart of a job has a cost."""
    profiles = jobs.table_of_profiles.copy()
    without = profiles["checkpoints"] == 0
    for name, value in zip(PATTERN, pattern_of(NEVER), strict=True):
        profiles[name][without] = value
    return [each or NEVER for each in jobs.kinds], profiles


def extended(parameters: tables.Numbers) -> bool | None:
    """Return the last argument of the loop: which rules are compiled."""
    timed = parameters.timing != codes.NOW or parameters.staged
    moves = parameters.replacing or parameters.operating
    return True if timed or parameters.six_digits or moves else None


def smallest_arguments(
    point: Point, tiered: bool = False, operating: bool = False
) -> tuple[Any, ...]:
    """Return arguments of the loop for a run without jobs, which have the types of all runs.

    ``tiered`` is whether jobs have checkpoints in several tiers, ``operating`` whether there are
    operations.
    """
    parameters = parameters_of(point, 1, 1)
    parameters.operating = operating
    jobs, events = zeros(tables.Job, 0), Events([])
    profiles = zeros(tables.Profile, 0)
    machine, links = whole_machine(1), tables.no_links()
    room = rooms.room_for(
        jobs, profiles, parameters, 0, machine, links, tables.no_limits(), tables.no_tree(),
        arrays_of([], 1), True,
    )  # fmt: skip
    room = with_recoveries(room, [] if tiered else None, point, events, machine, 1, True)
    if operating:
        room = Orders(point, 1, 1).fill(room, rooms.ints(0, 2), [], True)
    reserves = read_reservations(point.common.reservations) or awaits(point, operating)
    smallest = "any:0:begin=0:length=1" if reserves else ""
    windows = SiteWindows(smallest, machine)
    return (
        *events.columns(0, 1)[0],
        room,
        rooms.table_for(parameters),
        windows.table(room),
        extended(parameters),
        None,
    )


_TABLES: Shared[tuple[Workload, Submissions]] = Shared(1_000_000, lambda pair: len(pair[0].jobs))
"""The workloads used last, with their tables. All policies and seeds share a table."""


def submissions_of(workload: Workload) -> Submissions:
    """Return the jobs of a workload as a table for the loop.

    Raises
    ------
    Uncovered
        If the loop does not cover the workload.
    """

    def create() -> tuple[Workload, Submissions]:
        if reason := why_not_workload(workload):
            raise Uncovered(reason)
        try:
            return workload, Submissions(workload)  # with the workload, whose id is the key
        except InputError as error:
            raise Uncovered(str(error)) from None

    return _TABLES.get(id(workload), create)[1]


class Submissions:
    """The jobs of a workload in the order of their submission, as a table for the loop.

    Attributes
    ----------
    ids : Texts
        Ids in the order of the workload.
    order : int64 array, shape (n,)
        Positions in the workload.
    profiles, extra_codes : int arrays, shape (n,)
        Positions in ``profile_names`` and in ``traits``.
    kinds, kind_of : list of Checkpointing or None, int64 array
        The distinct checkpoints, and the position of those of each profile.
    tiered : bool
        Whether any profile has checkpoints in several tiers.
    users : dict
        Numbers of users.
    table, table_of_profiles : arrays of Job and Profile
    links : Links
        Dependencies and arrays.
    """

    def __init__(self, workload: Workload) -> None:
        jobs = Jobs.of(workload.jobs)
        self.ids, order = jobs.ids, submission_order([("w0", jobs)])
        self.order, self.profiles = order, jobs.profile_codes[order]
        self.profile_names = jobs.profile_names
        self.links = links_of(jobs, order)
        profiles = [workload.profiles[name] for name in self.profile_names]
        self.kinds, kinds = checkpoint_kinds(profiles)
        self.kind_of = np.array(kinds, dtype=np.int64)
        self.tiered = any(c is not None and c.light is not None for c in self.kinds)
        if any(c and c.never for c in self.kinds):
            raise Uncovered("checkpoints of another kind")
        patterns = np.array([*map(pattern_of, self.kinds)], dtype=np.int64)
        self.table_of_profiles = zeros(tables.Profile, len(profiles))
        self.table_of_profiles["delay"] = delays_us_of(profiles)
        fails = np.array([bool(profile.get("ret", 0)) for profile in profiles], dtype=np.bool_)
        for name, values in zip(PATTERN, patterns.reshape(-1, 6)[self.kind_of].T, strict=True):
            self.table_of_profiles[name] = values
        self.traits = [traits_of(extra) for extra in jobs.extra_fields]
        self.extra_codes = jobs.extra_codes[order]
        classes = [each.priority_class for each in self.traits]
        self.users = {"": 0}
        users = [self.users.setdefault(each.user, len(self.users)) for each in self.traits]
        walls_us = jobs.walltime_us
        self.table = table = zeros(tables.Job, len(order))
        table["submit"], table["size"] = jobs.submit_us[order], jobs.n_nodes[order]
        table["wall"] = np.where(walls_us < 0, FOREVER_US, walls_us)[order]
        table["profile"], table["errors"] = self.profiles, fails[self.profiles]
        table["job_class"] = np.array(classes, dtype=np.int64)[self.extra_codes]
        table["user"] = np.array(users, dtype=np.int64)[self.extra_codes]
        if len(self.links.blocks):
            table["block"] = np.arange(1, len(order) + 1)

    def named(self, name: str) -> list[int]:
        """Return the rows of the jobs that an id means. It may lack the name of the workload."""
        places = {name, name.removeprefix("w0!")}
        return [j for j, at in enumerate(self.order.tolist()) if self.ids[at] in places]

    def traits_of(self, j: int) -> Traits:
        """Return the traits of a job."""
        return self.traits[int(self.extra_codes[j])]

    def of_traits(self, number: Callable[[Traits], int]) -> Ints:
        """Return the number of the traits of each job."""
        numbers: Ints = np.array([*map(number, self.traits)], dtype=np.int64)[self.extra_codes]
        return numbers

    def errors(self, workload: Workload) -> Ints:
        """Return how many attempts of each job end with an error, if its first attempt does."""
        try:
            left = [errors_left(workload.profiles[name]) for name in self.profile_names]
        except InputError as error:
            raise Uncovered(str(error)) from None
        numbers: Ints = np.maximum(1, np.array(left, dtype=np.int64))[self.profiles]
        return numbers

    def job_id(self, j: int) -> str:
        """Return the complete id of a job."""
        return f"w0!{self.ids[int(self.order[j])]}"


def pattern_of(c: Checkpointing | None) -> tuple[int, ...]:
    """Return the columns of a profile that its checkpoints determine."""
    if c is None:
        return (0, 0, 0, 0, 0, 0)
    pattern = c.pattern
    return (
        codes.NEVER if c is NEVER else codes.WRITTEN, pattern.period, pattern.cost,
        pattern.restart, pattern.first_period, pattern.first_recovery,
    )  # fmt: skip


def parameters_of(
    point: Point, n_nodes: int, max_attempts: int, cores_per_node: int = 1
) -> tables.Numbers:
    """Return the parameters of the loop."""
    planning, dialect = point.planning, point.dialect
    parameters = tables.Numbers()
    parameters.fifo, parameters.cores = isinstance(planning, FifoOptions), cores_per_node
    if parameters.fifo:
        parameters.chooser = chooser_of(point.placement)
    elif isinstance(planning, ShelfOptions):
        parameters.shelf = codes.WITH_BACKFILL if planning.backfill else codes.WITHOUT_BACKFILL
    parameters.unplanned = parameters.fifo or parameters.shelf > 0
    parameters.timed = isinstance(planning, TimedOptions) and planning.walltimes == "required"
    if isinstance(planning, ListOptions):
        depth = depth_of(planning.depth)
        parameters.depth = codes.ALL if depth == ALL else depth
        parameters.first_only = planning.reserve == "first"
        parameters.named = isinstance(point.placement, NamedOptions)
        parameters.millionths = millionths_of(planning.predict)
        parameters.predict = PREDICT.get(str(planning.predict), codes.PART_OF_WALLTIME)
    if isinstance(planning, FlexibleOptions):
        parameters.depth = codes.ALL
    if isinstance(planning, ListOptions | FlexibleOptions):
        upkeep = MAINTENANCE[planning.maintenance]
        for column, change in (
            ("on_arrival", "arrival"),
            ("on_priority", "priority"),
            ("on_end", "end"),
            ("on_failure", "failure"),
            ("on_repair", "rejuvenation"),
        ):
            setattr(parameters, column, int(upkeep[change]))
    parameters.margin = planning.margin_us
    formulas = point.formulas
    parameters.order = codes.BY_VALUE if formulas else order_code(point.common.order)
    parameters.varies = any(formula.varies for formula in formulas)
    parameters.sort_period = to_us(parse_duration(point.common.order_period))
    parameters.max_attempts, parameters.n_nodes = max_attempts, n_nodes
    parameters.limited = bool(point.limits)
    parameters.staged = point.recovery is not None
    parameters.retries = point.common.silent_errors == "retry"
    parameters.scanned = deep_queue.SCANNED
    parameters.uses_usage = point.accounts_usage
    parameters.uses_shares = any("fairshare" in formula.columns for formula in formulas)
    parameters.accounted = bool(point.common.limits) or parameters.uses_usage
    for part in point.reactions:
        if isinstance(part, StealingOptions):
            parameters.stealing = True
            if part.victim in VICTIM_RULES:  # otherwise, the session asks the rule of a file
                parameters.victim = VICTIM_RULES[part.victim]
                parameters.fitting = steals.VICTIMS[part.victim].fits
                parameters.counts_lost = steals.reads_lost_work(part.victim, dialect.tie)
            if part.criterion in CRITERIA:
                parameters.criterion = CRITERIA[part.criterion]
                parameters.judges_flows = steals.judges_flows(part.criterion)
            parameters.timing = TIMINGS[part.timing]
        elif isinstance(part, ReplacementOptions):
            steps = parts(part.steps)
            parameters.replacing, parameters.hit_first = True, part.hit_first
            parameters.takes_own, parameters.takes_idle = "local" in steps, "idle" in steps
            parameters.n_spares = part.n_spares
        elif isinstance(part, PreemptionOptions):
            parameters.preempting = True
            parameters.period, parameters.grace = to_us(part.period), to_us(part.grace)
            parameters.scanned = codes.LONGEST_US  # the first entry of the queue is no gap
        elif isinstance(part, ExclusionOptions):
            parameters.excluding, parameters.hits = True, part.hits
            parameters.within, parameters.excluded_for = (
                to_us(part.within),
                to_us(part.excluded_for),
            )
            parameters.most_excluded = int(part.most_excluded * n_nodes)
    parameters.reserving = bool(point.common.reservations)
    parameters.migrates = point.common.drain == "migrate"
    parameters.hears_all = parameters.n_spares > 0 or parameters.preempting
    parameters.begins = parameters.has_news = parameters.hears_all
    parameters.release = RELEASES[dialect.release]
    parameters.tie, parameters.tie_by_text = TIES[dialect.tie], steals.TIES[dialect.tie].by_text
    parameters.hold_margin = round(dialect.hold_margin_s * 1e6)
    for column, (name, value) in DIALECT.items():
        setattr(parameters, column, getattr(dialect, name) == value)
    return parameters


def chooser_of(placement: PlacementOptions) -> int:
    """Return the code of the chooser of nodes under fifo."""
    if isinstance(placement, ClusterOptions):
        return codes.BEST_CORES if FITS[placement.fit] else codes.FIRST_CORES
    return codes.LOWEST if isinstance(placement, AnyOptions | NamedOptions) else codes.ASKED


class Known:
    """The jobs of a run of the embedded driver (see `Source`)."""

    workload_of, workloads = 0, {"w0": 0}

    def __init__(
        self,
        jobs: Submissions,
        table: Any,
        events: Events,
        machine: LoopMachine,
        limits: SiteLimits,
        windows: SiteWindows,
        kinds: list[Checkpointing | None],
        recovery: Recovery | None,
        orders: Orders | None = None,
    ) -> None:
        self.orders = orders
        self._jobs, self.machine, self.limits, self.windows = jobs, machine, limits, windows
        self.ids, self.order, self.table = jobs.ids, jobs.order, table
        self.kinds, self.kind_of = kinds, jobs.kind_of[jobs.profiles]
        self.recovery = recovery or Recovery()
        self.causes = events.causes  # only after the run

    def job_id(self, j: int) -> str:
        return self._jobs.job_id(j)

    def blocking(self, block: int) -> str:
        return self.ids[int(self.order[block])]

    def profiles(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        jobs, again = self._jobs, rows.again
        profiles = jobs.profiles[rows.job].astype(np.int64)
        values: dict[Any, int] = {name: code for code, name in enumerate(jobs.profile_names)}
        of_jobs = [jobs.profile_names[code] for code in profiles[again].tolist()]
        profiles[again] = coded(values, map(attempt_profile, rows.names, of_jobs))
        return profiles, values

    def states(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        return states_of(rows.ended_as)

    def failures(self, rows: Rows) -> tuple[Ints, Any]:
        return np.where(rows.hit | rows.moved_hit, rows.column("failure"), 0), 0


def outcome_of(
    source: Known,
    events: Events,
    room: tables.Room,
    plans: PlanRecord | None,
    on_progress: OnProgress | None,
) -> Outcome:
    """Return the records of a run of the embedded driver."""
    rows, n = Rows(source, room), room.state.n
    ledger = ledger_of(source, rows, room)
    ledger.node_events = events.happened(None if events.are_file else n.next_line)
    if on_progress and len(rows.records):
        on_progress(int(rows.end_us[-1]), len(rows.records), len(rows.records))
    records = in_order_of_kills(room)
    ended = rows if records is None else Rows(source, room, records)
    return Outcome(ledger, ended.ended(), plans)
