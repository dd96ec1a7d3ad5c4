# SPDX-License-Identifier: Apache-2.0
"""Plans with reservations of nodes.

A reservation *binds* if the plan without it would use its nodes in its window, for a job to which
the window is closed, or if a job can use it: the job requested it, or it is open to the job and the
job starts now. Other reservations change nothing. While reservations bind, the nodes are planned in
cells (`cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from rebat.contract import Machine
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels.counts import NEVER
from rebat.policies.context import Context
from rebat.policies.partitions import Partition
from rebat.policies.planning.cells import CellPlan
from rebat.policies.planning.named import NamedPlan
from rebat.policies.planning.queue import AvailabilityPlan, LaterEnd, SortedQueue, WithoutPlace
from rebat.policies.queue_order import planned_us
from rebat.policies.windows import Numbered, Window, Windows, same

Rows = Sequence[tuple[Partition, NodeSet]]


class ReservedPlan:
    """The plan of a list scheduler with reservations. Initially all nodes are up and free.

    Parameters
    ----------
    machine : Machine
    plain : callable
        Function that returns a new plan without reservations.
    rows, of
        See `CellPlan`.
    windows : Windows
    numbered : callable
        Function from nodes of the machine to the numbers of the group.
    """

    def __init__(
        self,
        machine: Machine,
        plain: Callable[[Machine], AvailabilityPlan],
        rows: Rows,
        of: Callable[[Attempt], Partition],
        windows: Windows,
        numbered: Numbered = same,
    ) -> None:
        self._machine, self._plain, self._rows, self._of = machine, plain, rows, of
        self._nodes = {partition.name: nodes for partition, nodes in rows}
        self._windows, self._numbered = windows, numbered
        self._plan = plain(machine)
        self._current: list[tuple[Window, NodeSet]] = []
        self._binding: list[tuple[Window, NodeSet]] = []
        self._held: dict[str, tuple[Running, int]] = {}
        self._down: set[int] = set()
        self._now_us = self._longest_us = 0
        self._any_requests = False
        """Whether a job requested a reservation."""

    @property
    def later_end(self) -> LaterEnd:
        """See `AvailabilityPlan`."""
        return self._plan.later_end

    @later_end.setter
    def later_end(self, later_end: LaterEnd) -> None:
        self._plan.later_end = later_end

    # ---- reservations

    def never(self, attempt: Attempt) -> str:
        """Return why a new attempt can never start because of reservations, or an empty text."""
        usable = self._nodes[self._of(attempt).name].mask(self._machine.n_nodes)
        self._longest_us = max(self._longest_us, planned_us(attempt.walltime_us))
        self._any_requests |= bool(self._windows.requested(attempt))
        return self._windows.never(attempt, usable, self._numbered)

    def renewed(self) -> bool:
        """Read the reservations. Return whether one that bound has ended (a rebuild is due)."""
        current = self._windows.current(self._now_us)
        rows = [(window, self._numbered(window.nodes)) for window in current]
        self._current = [(window, nodes) for window, nodes in rows if nodes.size]
        binding = [row for row in self._binding if row in self._current]
        if len(binding) == len(self._binding):
            return False
        self._binding = binding
        self._replace()
        return True

    def _replace(self) -> None:
        """Begin a plan with the binding reservations, which has the same attempts and failures."""
        later_end, now_us = self.later_end, self._now_us
        plan: AvailabilityPlan = self._plain(self._machine)
        if self._binding:
            plan = CellPlan(self._machine, self._rows, self._of, self._binding, self._windows)
        plan.later_end = later_end
        plan.advance(now_us)
        for name, (running, end_us) in self._held.items():
            plan.held(running, end_us if end_us > now_us else later_end(name, now_us))
        if self._down:
            under = [
                name
                for name, (running, _) in self._held.items()
                for node in running.nodes
                if node in self._down
            ]
            plan.failed(sorted(self._down), under)
        self._plan = plan

    def _check(self, queue: SortedQueue, plan_again: Callable[[], None]) -> None:
        """Plan again with reservations that bind, until the plan complies with all."""
        while new := [row for row in self._current if self._binds(row, queue)]:
            self._binding += new
            self._replace()
            plan_again()

    def _binds(self, row: tuple[Window, NodeSet], queue: SortedQueue) -> bool:
        """Return whether the plan violates a reservation, or ignores one that a job can use."""
        window, nodes = row
        if row in self._binding:
            return False
        start, attempts = queue.start[: len(queue)], queue.attempts
        may_bind = start < NEVER
        if not (window.users or window.accounts or self._any_requests):
            may_bind &= (start < window.end_us) & (window.begin_us - start < self._longest_us)
        for at in np.flatnonzero(may_bind).tolist():
            attempt, start_us = attempts[at], int(start[at])
            usable = self._nodes[self._of(attempt).name]
            walltime_us = planned_us(attempt.walltime_us)
            if self._windows.opens(window, attempt):
                inside = nodes.mask(self._machine.n_nodes)[usable.ids]
                requested = self._windows.requested(attempt)
                now = window.begin_us <= start_us <= self._now_us and not inside.all()
                if inside.any() and (requested or now):
                    return True
            elif start_us < window.end_us and walltime_us > window.begin_us - start_us:
                if isinstance(self._plan, NamedPlan):  # other plans choose nodes at the start
                    usable = self._plan.nodes_at(at) or usable
                if nodes.meets(usable):
                    return True
        return False

    # ---- updates

    def advance(self, now_us: int) -> None:
        """See `AvailabilityPlan`, as for all following methods."""
        self._now_us = max(self._now_us, now_us)
        self._plan.advance(now_us)

    def started(self, running: Running, end_us: int) -> None:
        """Record an attempt that was due."""
        self._held[running.attempt.id] = running, end_us
        self._plan.started(running, end_us)

    def clear(self) -> None:
        """Delete all planned starts."""
        self._plan.clear()

    def held(self, running: Running, end_us: int) -> None:
        """Record an attempt that was not due."""
        self._held[running.attempt.id] = running, end_us
        self._plan.held(running, end_us)

    def ended(self, running: Running) -> None:
        """Record an end."""
        del self._held[running.attempt.id]
        self._plan.ended(running)

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Record failures."""
        self._down.update(nodes)
        self._plan.failed(nodes, under)

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Record repairs."""
        self._down.difference_update(nodes)
        self._plan.rejuvenated(nodes, under)

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Plan some positions."""
        self._plan.append(queue, first, last)
        self._check(queue, lambda: self._plan.rebuild(queue))

    def rebuild(self, queue: SortedQueue) -> None:
        """Plan all positions again."""
        self._plan.rebuild(queue)
        self._check(queue, lambda: self._plan.rebuild(queue))

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Plan the first positions again."""
        self._plan.compress(queue, last)
        self._check(queue, lambda: self._plan.rebuild(queue))

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Plan some positions again."""
        self._plan.backfill(queue, depth, first)
        self._check(queue, lambda: self._plan.backfill(queue, depth, first))

    def nodes_at(self, position: int) -> NodeSet | None:
        """Return the nodes of a position that is due."""
        return self._plan.nodes_at(position)

    @property
    def without_place(self) -> WithoutPlace | None:
        """Sizes that do not fit."""
        return self._plan.without_place


def with_reservations(
    context: Context,
    windows: Windows,
    rows: Rows = (),
    of: Callable[[Attempt], Partition] | None = None,
    numbered: Numbered = same,
) -> Context:
    """Return a context whose plans comply with reservations.

    ``rows``, ``of`` and ``numbered`` describe a group of partitions (default: the entire machine).
    """
    placement = context.placement

    def create(machine: Machine) -> ReservedPlan:
        all_nodes = NodeSet.from_intervals([(0, machine.n_nodes - 1)])
        everything = Partition("all", all_nodes)
        return ReservedPlan(
            machine,
            placement.plan_on,
            rows or [(everything, all_nodes)],
            of or (lambda attempt: everything),
            windows,
            numbered,
        )

    placement_with = msgspec.structs.replace(placement, fused=create)
    return msgspec.structs.replace(context, placement=placement_with)
