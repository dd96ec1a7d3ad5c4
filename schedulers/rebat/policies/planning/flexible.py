# SPDX-License-Identifier: Apache-2.0
"""Moldable and malleable jobs with conservative backfilling in first-come, first-served order.

Section III of Prabhakaran, Neumann and Wolf, "Efficient Fault Tolerance through Dynamic Node
Replacement", 2018. A moldable job gets its size on arrival (SA). A malleable job is planned at its
minimum and may start on more nodes. Every change of size is a stop that loses no work, followed by
a move.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Move, Proposal, Reject, Start, Stop, View, When
from rebat.core.attempts import Attempt, Cause, Priority
from rebat.core.traits import Malleable, Moldable
from rebat.kernels.counts import NEVER
from rebat.kernels.dependents import dependents
from rebat.policies.context import Context
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.members import Dependents, Member, resized_nodes, take_lowest
from rebat.policies.malleable.rules import MALLEABILITY, MANAGED, MOLDINGS, Molding, SizeRule
from rebat.policies.parted import Parts
from rebat.policies.planning.batsched import TimedOptions
from rebat.policies.planning.list_scheduling import Maintenance
from rebat.policies.queue_order import planned_us
from rebat.policies.variants import choice, price, text

Mask = npt.NDArray[np.bool_]

AskedQueue = Any
"""See `rebat.drive.by_rules.AskedQueue`."""


class FlexibleJobs:
    """The decisions on the jobs of a machine, or of a group of partitions: sizes and starts.

    No job starts on the spare nodes. Under PRA, running jobs grow before queued attempts start.
    There is one exception: if the reaction reserves idle nodes for attempts that lost a node, no
    job grows under PRA while one of these attempts waits (step 5 of the replacement).

    The rules plan (`rebat.rules.plan`), and ask this class for the sizes of new jobs and for the
    starts (`rebat.rules.asked`).
    """

    def __init__(self, options: FlexibleOptions, context: Context) -> None:
        self._rule, self._members = context.rule, context.members
        self._molding: Molding = MOLDINGS[options.moldable]
        self._limit_on, self._hit_first = context.limit_on, context.hit_first
        self._margin_us = context.margin_us

    def decide(self, view: View, queue: AskedQueue) -> list[Proposal]:
        """Return the attempts to start, reject and resize now."""
        self._queue = queue
        return [*self._enter(view), *self._allocate(view)]

    def _duration_us(self, attempt: Attempt) -> int:
        return planned_us(attempt.walltime_us, self._margin_us)

    # ---- the queue

    def _enter(self, view: View) -> Iterator[Reject]:
        """Queue and plan new attempts in their planned sizes.

        Reject attempts that can never start.
        """
        # attempts that return are planned before those that arrive
        for attempt in sorted(self._queue.entered, key=lambda attempt: attempt.number == 0):
            entry = self._in_its_size(view, attempt)
            if entry is None:
                reason = self._limit_on(view.n_nodes).exceeded(self._sizes(view, attempt)[0])
                assert reason is not None
                yield Reject(attempt.id, reason)
            else:
                self._queue.enter(entry)

    def _sizes(self, view: View, attempt: Attempt) -> list[int]:
        """Return the numbers of nodes on which to plan an attempt, ascending.

        A malleable job is planned on its minimum, or on the requested number if its rule never
        grows jobs. A moldable job is rigid after its first attempt.
        """
        job = view.job(attempt.job_id)
        if isinstance(job.shape, Moldable) and attempt.number == 0:
            return job.shape.with_request(attempt.n_nodes)
        malleable = isinstance(job.shape, Malleable)
        request = job.n_nodes if malleable and self._rule.survives else attempt.n_nodes
        return [self._rule.at_start(job.shape, request)]

    def _in_its_size(self, view: View, attempt: Attempt) -> Attempt | None:
        """Return an attempt in its planned size. Return None if it can never start."""
        most = self._limit_on(view.n_nodes).most
        sizes = [size for size in self._sizes(view, attempt) if size <= most]
        if sizes == [attempt.n_nodes]:
            return attempt
        if not sizes:
            return None
        entries = [
            msgspec.structs.replace(
                attempt, n_nodes=size, walltime_us=view.walltime_on_us(attempt.id, size)
            )
            for size in sizes
        ]
        if len(entries) == 1:
            return entries[0]
        return self._molding(attempt.n_nodes, entries, self._end_on)

    def _end_on(self, entry: Attempt) -> int:
        lasts_us = self._duration_us(entry)
        return int(self._queue.first_fit_us(entry.n_nodes, lasts_us)) + lasts_us

    # ---- nodes

    def _allocate(self, view: View) -> list[Proposal]:
        """Return the starts and resizes of this plan.

        If a job must shrink to make room, the attempt that needs its nodes starts at the same
        simulated time, after the resize.
        """
        rule = self._rule
        members = self._members.running(view) if rule.resizes else []
        may_grow = rule.resizes and not (rule.before_starts and self._hit_waits())
        if members and may_grow and rule.before_starts and view.n_free:
            rule.grow(members, view.n_free, dict)
            if grown := self._resizes(members, view.machine.free, view.now_us):
                return grown
        due = self._queue.due()
        idle = view.n_free - sum(entry.n_nodes for _, entry in due)
        if rule.for_the_head:
            before = self._shrink_for_the_head(due, members, idle)
            if before is not None:
                return self._starts_and_resizes(view, before, [None] * len(before), members)
        starting = [self._members.starting(view, entry) if may_grow else None for _, entry in due]
        able = [*members, *filter(None, starting)]
        if able and idle and may_grow:
            rule.grow(able, idle, lambda: self._dependents(view, due, idle))
        return self._starts_and_resizes(view, due, starting, members)

    def _hit_waits(self) -> bool:
        """Return whether the head of the queue lost a node, so that running jobs must not grow."""
        queue = self._queue
        return self._hit_first and len(queue) > 0 and queue.attempt(0).priority > Priority.REGULAR

    def _shrink_for_the_head(
        self, due: list[tuple[int, Attempt]], members: list[Member], idle: int
    ) -> list[tuple[int, Attempt]] | None:
        """Shrink members to make room for the first attempt that cannot start now.

        Return the due starts of attempts that precede this attempt in the queue. Later attempts are
        planned again. Return None if no member shrinks.
        """
        positions = {position for position, _ in due}
        head = next(at for at in count() if at not in positions)
        if head >= len(self._queue):
            return None
        idle += sum(entry.n_nodes for position, entry in due if position > head)
        short = int(self._queue.sizes[head]) - idle
        if short <= 0 or sum(member.extra for member in members) < short:
            return None
        self._rule.shrink(members, short)
        return [(position, entry) for position, entry in due if position < head]

    def _starts_and_resizes(
        self,
        view: View,
        due: list[tuple[int, Attempt]],
        starting: list[Member | None],
        members: list[Member],
    ) -> list[Proposal]:
        """Return starts on the lowest free nodes, then resizes on the remaining free nodes."""
        if not due and all(member.size == member.attempt.n_nodes for member in members):
            return []
        free = view.machine.free
        sizes = [
            member.size if member else entry.n_nodes
            for (_, entry), member in zip(due, starting, strict=True)
        ]
        starts = [
            Start(entry.id, take_lowest(free, size))
            for (_, entry), size in zip(due, sizes, strict=True)
        ]
        for member in filter(None, starting):
            self._members.remember(member, view.now_us)
        return [*starts, *self._resizes(members, free, view.now_us)]

    def _resizes(self, members: list[Member], free: Mask, now_us: int) -> list[Proposal]:
        """Return the stops and moves that give jobs more or fewer nodes, without loss of work."""
        stops: list[Proposal] = []
        for member in members:
            running = member.running
            if running is None or member.size == running.attempt.n_nodes:
                continue
            self._members.remember(member, now_us)
            move = Move(resized_nodes(running, member.size, free), running.attempt.priority)
            why = "grow" if member.size > running.attempt.n_nodes else "shrink"
            stops.append(Stop(running.attempt.id, Cause.MOVED, When.RESIZE, move, why))
        return stops

    def _dependents(self, view: View, due: list[tuple[int, Attempt]], idle: int) -> Dependents:
        """Return the number of reservations that depend on each running or starting job."""
        queue, starts_us = self._queue, self._queue.starts_us
        waiting = np.flatnonzero((starts_us > view.now_us) & (starts_us < NEVER))
        order = waiting[np.argsort(starts_us[waiting], kind="stable")]
        if not len(order):
            return {}
        running = [(job.attempt, job.start_us) for job in view.running.values()]
        starting = [(entry, view.now_us) for _, entry in due]
        holders = [(a, start_us + self._duration_us(a)) for a, start_us in running + starting]
        start = starts_us[order]
        n_dependents = dependents(
            max(0, idle),
            np.array([end_us for _, end_us in holders], dtype=np.int64),
            np.array([attempt.n_nodes for attempt, _ in holders], dtype=np.int64),
            start,
            start + queue.durations_us[order],
            queue.sizes[order],
        )
        return {a.job_id: int(n) for (a, _), n in zip(holders, n_dependents, strict=True)}


class Flexible:
    """The decisions on all jobs. Each group of partitions has its own (see `FlexibleJobs`)."""

    def __init__(self, options: FlexibleOptions, context: Context, parts: Parts) -> None:
        self._options, self._context, self._parts = options, context, parts
        self._of_group: dict[int, FlexibleJobs] = {}

    def __call__(self, view: View, p: int, queue: AskedQueue) -> list[Proposal]:
        """Return the attempts of a group to start, reject and resize now."""
        if not self._context.partitions:
            return self._jobs_of(p, self._context).decide(view, queue)
        groups = self._parts.open(view).groups
        if p == len(groups):  # nodes without partition
            return []
        part = groups[p]
        proposals = self._jobs_of(p, part.context).decide(part.view, queue)
        return [part.on_machine(proposal) for proposal in proposals]

    def _jobs_of(self, p: int, context: Context) -> FlexibleJobs:
        if p not in self._of_group:
            self._of_group[p] = FlexibleJobs(self._options, context)
        return self._of_group[p]


class FlexibleOptions(TimedOptions, frozen=True, tag="flexible"):
    """Conservative backfilling with moldable and malleable jobs (Prabhakaran et al. 2018)."""

    maintenance: Maintenance = "compression"
    malleable: Annotated[
        str,
        choice(
            MALLEABILITY,
            "Rule for malleable jobs. They run on the requested nodes (asked), can shrink only "
            "when nodes fail (fixed), or also grow and shrink by a rule of the paper (pra, pwa, "
            "dbes).",
        ),
    ] = "dbes"
    moldable: Annotated[
        str,
        choice(
            MOLDINGS,
            "Size of a moldable job: the size that ends first (sa), or the requested size (asked).",
        ),
    ] = "sa"
    manager: Annotated[
        str,
        choice(
            MANAGERS,
            "Which jobs grow and shrink under pra and pwa: the oldest grow first and the youngest "
            "shrink first (fpsma), or all grow and shrink equally (egs).",
        ),
    ] = "fpsma"
    resize_cost: Annotated[
        str | float,
        text(
            partial(price, "resize_cost"),
            "Time that a resize takes before the job continues: a number of seconds, or 'table' "
            "(Table 1 of Rodríguez-Pascual et al. 2019). table*1000 assumes 1000 MB per task.",
            ("table",),
        ),
    ] = "0"

    @property
    def malleability(self) -> SizeRule:
        """The rule that decides when malleable jobs grow and shrink."""
        return MALLEABILITY[self.malleable](MANAGERS[self.manager])

    def idle(self) -> frozenset[str]:
        """Return the options that have no effect under the rule for malleable jobs."""
        names = set() if self.malleable in MANAGED else {"manager"}
        return super().idle() | names | ({"resize_cost"} if self.malleable == "asked" else set())
