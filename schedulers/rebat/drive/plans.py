# SPDX-License-Identifier: Apache-2.0
"""The record of the plans that the rules make (see `rebat.drive.plan_record`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rebat.contract import PlannedStarts
from rebat.contract.planned import NO_START, joined
from rebat.core.attempts import hold_id, resubmission_id
from rebat.drive.parts import LoopMachine
from rebat.drive.plan_record import NONE, PlanRecorder, bits_of
from rebat.drive.site_limits import SiteLimits
from rebat.kernels.barred import BARRED
from rebat.policies.placement.places import Places
from rebat.rules.queue import planned
from rebat.state import codes, tables


def planned_starts(
    room: tables.Room, p: int, begun: Sequence[int], positions: Sequence[int]
) -> PlannedStarts:
    """Return the planned starts of a group of partitions, after its plan.

    ``begun`` contains the attempts that this plan started, in queue order, and ``positions`` their
    positions in the queue before.
    """
    state = room.state
    n = state.parts[p].n_queued
    table = np.zeros((4, n + len(begun)), dtype=np.int64)
    is_queued = np.ones(n + len(begun), dtype=np.bool_)
    is_queued[positions[: len(begun)]] = False
    starts_us = room.start[p, :n]
    table[:, is_queued] = room.queue[p, :n] + 1, room.size[p, :n], room.duration[p, :n], starts_us
    started = [state.attempts[a] for a in begun]
    table[:, ~is_queued] = (
        [a + 1 for a in begun],
        [state.jobs[row.job].size for row in started],
        [planned(row.predicted, state.n.margin) for row in started],
        [row.start for row in started],
    )
    table = table[:, table[3] != BARRED]
    table[3] = np.minimum(table[3], NO_START)
    return PlannedStarts(*table)


def note_placeless(
    starts: PlannedStarts, places: Places, room: tables.Room, p: int, now_us: int
) -> None:
    """Note which attempts have no place on the free nodes, although enough nodes are free."""
    waits = (starts.starts_us > now_us) & (starts.sizes <= room.state.parts[p].n_free)
    lacking = places.without_place({*starts.sizes[waits].tolist()}) if waits.any() else []
    if lacking:
        starts.placeless = waits & np.isin(starts.sizes, lacking)


def waiting(room: tables.Room) -> PlannedStarts:
    """Return for which attempt each queued attempt waits under fifo. There are no planned starts.

    An attempt that waits for no other does not fit: too few nodes are free, or the placement,
    partitions or reservations do not allow the free nodes.
    """
    state = room.state
    starts = planned_starts(room, 0, [], [])
    starts.behind = np.full(len(starts.serials), NONE)
    for i, serial in enumerate(starts.serials.tolist()):
        if serial not in state.blocked_by:
            own = state.jobs[state.attempts[serial - 1].job].partition
            starts.behind[i] = state.blocked_by[own] or NONE
    n = state.n
    if n.parted or n.max_wakes or n.chooser != codes.LOWEST:
        starts.placeless = starts.behind < 0
    return starts


def all_starts(room: tables.Room, of_group: Callable[[int], PlannedStarts]) -> PlannedStarts:
    """Return the planned starts of all groups of partitions, given those of each group."""
    state = room.state
    if state.n.fifo:
        return waiting(room)
    planned = [*map(of_group, range(len(state.parts)))]
    return joined(planned) if state.n.parted else planned[0]


def reasons_to_wait(room: tables.Room, limits: SiteLimits) -> dict[int, str]:
    """Return why attempts wait, if limits bar them or a shelf is not yet built."""
    state, reasons = room.state, dict[int, str]()
    for p, part in enumerate(state.parts if state.n.shelf else ()):
        queued = room.queue[p, : part.n_queued].tolist()
        reasons |= dict.fromkeys(queued, "it waits for the next shelf")
    for p, part in enumerate(state.parts if state.n.limited else ()):
        n = part.n_queued
        for a in room.queue[p, :n][room.start[p, :n] == BARRED].tolist():
            job = state.jobs[state.attempts[a].job]
            reasons[a] = limits.why_barred(state, job.client, job.size)
    return reasons


class Recorder:
    """What plain Python does during plans. `rebat.rules.instant.plan_all` calls the methods.

    Attributes
    ----------
    places : dict
        The plans of the nodes that a placement chooses, by group.
    """

    places: Mapping[int, Places] = {}

    def begin(self, state: Any, room: tables.Room) -> None:
        """Note what happened since the last plan."""

    def table_of(self, p: int, table: Any) -> Any:
        """Return the plan of the named nodes of a group of partitions. It is usually ``table``."""
        return table

    def places_of(self, p: int) -> Places | None:
        """Return the plan of the nodes that a placement chooses for a group, or None."""
        return self.places.get(p)

    def starts_of(
        self, room: tables.Room, p: int, begun: Sequence[int], positions: Sequence[int], now: int
    ) -> PlannedStarts:
        """Return the planned starts of a group, and which attempts have no place."""
        starts = planned_starts(room, p, begun, positions)
        if p in self.places:
            note_placeless(starts, self.places[p], room, p, now)
        return starts

    def may_start(self, state: Any, a: int) -> bool:
        """Return whether the limits that are functions in a file allow an attempt to start."""
        return True

    def starts(self, state: Any, a: int) -> None:
        """Note an attempt that the plan will start, if limits or usage concern it."""

    def note(self, room: tables.Room, p: int) -> None:
        """Note the plan of a group."""

    def end(self, room: tables.Room, now: int) -> None:
        """Note that all groups are planned."""


class RuleRecorder(Recorder):
    """Records the plans of the rules.

    Parameters
    ----------
    recorder : PlanRecorder
    machine : LoopMachine
    limits : SiteLimits
    job_id : callable
        Function that returns the id of a job, given its row.
    """

    def __init__(
        self,
        recorder: PlanRecorder,
        machine: LoopMachine,
        limits: SiteLimits,
        job_id: Callable[[int], str],
    ) -> None:
        self._recorder, self._machine, self._limits = recorder, machine, limits
        self._job_id = job_id
        self._planned: dict[int, PlannedStarts] = {}
        self._n_out = 0

    def begin(self, state: Any, room: tables.Room) -> None:
        """Note what happened since the last plan."""
        n, attempts, lists = state.n, state.attempts, state.lists
        self._planned, self._n_out = {}, n.n_out
        arrived: list[int] = []
        returned: list[int] = []
        ended: list[int] = []
        stopped: list[int] = []
        released: list[int] = []
        for row in lists[: n.n_entered]:
            a = row.entered
            job_id, number = self._job_id(attempts[a].job), attempts[a].number
            (returned if number else arrived).append(a)
            self._recorder.learn(a + 1, resubmission_id(job_id, number) if number else job_id)
        for row in lists[: n.n_left]:
            a = row.left
            is_stopped = attempts[a].cause in codes.AGAIN
            is_hold = attempts[a].number == codes.HOLD
            (released if is_hold else stopped if is_stopped else ended).append(a)
        new = [row.new_hold for row in lists[: n.n_new_holds]]
        held = [a for a in new if attempts[a].number == codes.HOLD]
        moved = [a for a in new if attempts[a].number != codes.HOLD]
        failures = any(part.failures for part in state.parts)
        repairs = any(part.repairs for part in state.parts)
        nodes = [self._first_node(room, is_down) for is_down in (True, False)]
        drained = nodes[0] >= 0 and not state.failed[nodes[0]]
        self._causes = bits_of(
            arrived, returned, ended, stopped, moved, held, failures and not drained,
            failures and drained, repairs, (), n.n_refused, released,
        )  # fmt: skip
        self._held, self._named = held[:1], [*ended[:1], *stopped[:1], *moved[:1]]
        firsts = arrived, returned, ended, stopped, moved, held
        if self._machine.partitions:
            nodes = [int(self._machine.original[node]) if node >= 0 else NONE for node in nodes]
        self._first = [*(of[0] + 1 if of else NONE for of in firsts), *nodes]

    def _first_node(self, room: tables.Room, is_down: bool) -> int:
        """Return the first node that failed, or that came up, since the last plan."""
        state = room.state
        for node in room.changed[: state.n.n_changed].tolist():
            if state.down[node] == is_down and room.reported[node] != is_down:
                return int(node)
        return NONE

    def note(self, room: tables.Room, p: int) -> None:
        """Note the plan of a partition."""
        state = room.state
        new = state.out[self._n_out : state.n.n_out]
        begun = [row.subject for row in new if row.kind == codes.START]
        self._n_out = state.n.n_out
        if not state.n.fifo:
            self._planned[p] = self.starts_of(room, p, begun, room.positions, state.n.now)

    def end(self, room: tables.Room, now: int) -> None:
        """Record the plans of all partitions."""
        state, recorder = room.state, self._recorder
        starts = all_starts(
            room, lambda p: self._planned.get(p) or self.starts_of(room, p, [], [], now)
        )
        is_changed = recorder.compare(starts, now, state.n.n_free)
        for a, reason in reasons_to_wait(room, self._limits).items():
            is_changed |= recorder.explain(a + 1, reason)
        if not is_changed:
            return
        for h in self._held:
            row = state.attempts[h]
            recorder.name(h + 1, hold_id(self._job_id(row.job), h + 1, row.lives))
        for a in self._named:  # an attempt that moved was never in the queue
            row = state.attempts[a]
            recorder.name(a + 1, resubmission_id(self._job_id(row.job), row.number))
        recorder.add((now, state.n.n_free, self._causes, *self._first))
