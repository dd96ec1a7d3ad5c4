# SPDX-License-Identifier: Apache-2.0
"""First come, first served, without backfilling and without a plan; walltimes have no effect.

Without partitions, this is Batsched's ``fcfs``, and Slurm's default (section 4.4 of
Rodríguez-Pascual et al. 2019: "a FIFO queue"). With partitions, a job that does not fit blocks only
later jobs in its partitions. Jobs of a lower tier are checkpointed when a job of a higher tier
needs their nodes (section 4.3). They return to their previous place in the queue.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Generator, Iterator
from typing import ClassVar

import msgspec
import numpy as np

from rebat.contract import (
    Changes,
    PlannedStarts,
    Proposal,
    Reject,
    Requeue,
    Start,
    Stop,
    View,
    When,
)
from rebat.core.attempts import Attempt, Cause, Priority
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.traits import USUAL
from rebat.policies.composition import Planning
from rebat.policies.context import Context, PlanningOptions, SizeLimit
from rebat.policies.partitions import (
    Partition,
    PartitionsOption,
    groups_of_partitions,
    merged_order,
    nodes_of_all,
    open_to,
    partitions_on,
    shares_of,
)
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.queue_order import Key, QueueOrder, bound, varies


class Fifo(Planning):
    """A planning that starts the head of the queue as soon as it fits.

    It rejects jobs that are too large.

    Without partitions, the placement 'any' only counts nodes, and the session chooses the lowest
    free nodes.
    """

    def __init__(self, options: FifoOptions, context: Context) -> None:
        place = context.placement
        self._counted = place.counted and not context.partitions and not context.windows
        self._choose_in = {False: place.choose, True: place.backwards or place.choose}
        self._context = context
        self._limit_on = context.limit_on
        self._partitions = context.partitions
        self._places: tuple[Partition, ...] = ()
        self._orders: dict[str, QueueOrder] = {}
        self._spares: dict[str, int] = {}
        self._queues: dict[int, list[tuple[Key, str]]] = {}
        self._attempts: dict[str, Attempt] = {}
        self._open: dict[str, list[Partition]] = {}

    # ---- the queue

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Yield the attempts to start now, and the attempts to checkpoint for them."""
        if not self._places:
            self._open_on(view)
        if any(map(varies, self._orders.values())):
            for queue in self._queues.values():
                names = [name for _, name in queue if name in view.queue]
                queue[:] = sorted((self._key(view, self._attempts[name]), name) for name in names)
        if changes.withdrawn:
            gone = {n for n, a in self._attempts.items() if a.job_id in changes.withdrawn}
            for queue in self._queues.values():
                queue[:] = [row for row in queue if row[1] not in gone]
        for attempt in (*changes.arrived, *changes.resubmitted):
            places = self._where(view, attempt.job_id)
            limit = max((self._limit_in(place) for place in places), key=lambda it: it.most)
            refused = [
                place.refuses(attempt.n_nodes, place.adapted(attempt).walltime_us)
                if self._partitions
                else ""
                for place in places
            ]
            never = [self._never(view, attempt, place) for place in places]
            reason = limit.exceeded(attempt.n_nodes) or (all(refused) and refused[0])
            if reason := reason or (all(never) and never[0]):
                yield Reject(attempt.id, reason)
            else:
                key = self._key(view, attempt)
                insort(self._queues[places[0].tier], (key, attempt.id))
                self._attempts[attempt.id] = attempt
        room = Room(view)
        for tier in self._queues:
            victims = yield from self._serve(view, tier, room)
            if victims:
                yield from victims
                return  # the session calls plan again when the victims have released their nodes

    def _never(self, view: View, attempt: Attempt, place: Partition) -> str:
        """Return why an attempt can never start because of reservations, or an empty text."""
        windows = self._context.windows
        if windows is None:
            return ""
        usable = place.nodes.mask(view.n_nodes)
        return windows.never(attempt, usable)

    def _key(self, view: View, attempt: Attempt) -> Key:
        place = self._where(view, attempt.job_id)[0]
        return self._orders[place.name](_at_its_place(attempt))

    def _open_on(self, view: View) -> None:
        machine = view.machine
        self._places = partitions_on(
            self._partitions or "all:all", machine.n_nodes, machine.cores_per_node
        )
        for place in self._places:
            order = merged_order(
                self._context.order_named, self._places, self._places, lambda _, place=place: place
            )
            self._orders[place.name] = bound(
                order, view, self._context.margin_us, self._context.seed, place.nodes.size
            )
        groups = groups_of_partitions(self._places)
        sizes = [nodes_of_all(group).size for group in groups]
        shares = shares_of(self._limit_on(view.n_nodes).n_spares, sizes)
        self._spares = {
            place.name: share
            for share, group in zip(shares, groups, strict=True)
            for place in group
        }
        tiers = sorted({place.tier for place in self._places}, reverse=True)
        self._queues = {tier: [] for tier in tiers}

    def _limit_in(self, place: Partition) -> SizeLimit:
        """Return the size limit of a partition, without its spare nodes."""
        return SizeLimit(place.nodes.size, self._spares[place.name])

    def _where(self, view: View, job_id: str) -> list[Partition]:
        """Return the partitions in which a job may run."""
        if job_id not in self._open:
            job = view.job(job_id)
            traits = job.traits if self._partitions else USUAL
            try:
                self._open[job_id] = open_to(self._places, traits, job.n_nodes, job.walltime_us)
            except InputError as error:
                raise error.at(f"job {job_id}") from None
        return self._open[job_id]

    def _tier_of(self, view: View, job_id: str) -> int:
        return self._where(view, job_id)[0].tier

    # ---- the record of plans

    def planned(self, view: View) -> PlannedStarts:
        """Return, for each queued attempt, for which attempt it waits. There are no planned starts.

        An attempt that waits for no other attempt does not fit: too few nodes are free, or the
        placement cannot use the free nodes.
        """
        starts = PlannedStarts.of_attempts([a for a, _ in self._waiting(view)], {})
        starts.behind = np.array([ahead for _, ahead in self._waiting(view)], dtype=np.int64)
        if not self._counted:
            starts.placeless = starts.behind < 0
        return starts

    def _waiting(self, view: View) -> Iterator[tuple[Attempt, int]]:
        """Yield each queued attempt with the serial of the attempt for which it waits, or -1."""
        for queue in self._queues.values():
            blocked: dict[str, int] = {}
            for _, attempt_id in queue:
                if attempt_id not in view.queue:
                    continue  # the attempt has started
                attempt = self._attempts[attempt_id]
                names = [place.name for place in self._where(view, attempt.job_id)]
                free = [name for name in names if name not in blocked]
                yield attempt, -1 if free else blocked[names[0]]
                blocked |= dict.fromkeys(free, attempt.serial)

    # ---- starts

    def _serve(
        self, view: View, tier: int, room: Room
    ) -> Generator[Proposal, None, list[Proposal]]:
        """Start attempts in the partitions of a tier.

        Return the stops that the next attempt needs, if any.
        """
        queue, at = self._queues[tier], 0
        open_here = {place.name for place in self._places if place.tier == tier}
        while at < len(queue) and open_here:
            attempt_id = queue[at][1]
            if attempt_id not in view.queue:  # the attempt has started
                del queue[at], self._attempts[attempt_id]
                continue
            at += 1
            attempt = self._attempts[attempt_id]
            places = [p for p in self._where(view, attempt.job_id) if p.name in open_here]
            if not places:
                continue
            start = self._start(view, room, attempt, places)
            if start is not None:
                yield start
                continue
            victims = self._victims(view, room, attempt, places)
            if victims:
                return victims
            open_here -= {place.name for place in places}
        return []

    def _start(
        self, view: View, room: Room, attempt: Attempt, places: list[Partition]
    ) -> Start | None:
        """Return the start of an attempt. Return None if the attempt does not fit."""
        if attempt.n_nodes > room.n_free:
            return None
        if self._counted:
            room.n_free -= attempt.n_nodes
            return Start(attempt.id)
        nodes = self._choose(view, room.free, attempt, places)
        if nodes is None:
            return None
        room.take(nodes)
        return Start(attempt.id, nodes)

    def _choose(
        self, view: View, free: Mask, attempt: Attempt, places: list[Partition]
    ) -> NodeSet | None:
        request, windows = Request.now(attempt), self._context.windows
        if windows:
            closed = windows.closed_mask(attempt)
            if closed is not None:
                free = free & ~closed
            inside = np.zeros(len(free), dtype=np.bool_)
            for window in windows.preferred(windows.current(view.now_us), attempt):
                window.nodes.put(inside, True)
            nodes = self._within(view, free & inside, request, places) if inside.any() else None
            if nodes is not None:
                return nodes
        return self._within(view, free, request, places)

    def _within(
        self, view: View, free: Mask, request: Request, places: list[Partition]
    ) -> NodeSet | None:
        """Return free nodes of the first partition in which they are enough, or None."""
        for place in places:
            within = free
            if place.nodes.size < view.n_nodes:
                within = free & place.nodes.mask(view.n_nodes)
            nodes = self._choose_in[place.backwards](within, request, view.machine)
            if nodes is not None:
                return nodes.first(request.n_nodes)
        return None

    # ---- tiers

    def _victims(
        self, view: View, room: Room, attempt: Attempt, places: list[Partition]
    ) -> list[Proposal]:
        """Return the stops (with checkpoints) that make room for an attempt, if possible."""
        tier = places[0].tier
        if all(place.tier >= tier for place in self._places):
            return []
        leaving = view.stopping.keys() | view.scheduled.keys()
        lower = [
            running
            for name, running in view.running.items()
            if self._tier_of(view, running.attempt.job_id) < tier
            and name not in leaving
            and not view.why_not_image(name)
        ]
        free = room.free.copy()
        for running in lower:
            running.nodes.put(free, True)
        free &= ~(view.machine.down | view.machine.drained)
        nodes = self._choose(view, free, attempt, places) if lower else None
        if nodes is None:
            return []
        held = sorted(
            (job for job in lower if job.nodes.meets(nodes)), key=lambda job: job.nodes.lowest
        )
        then = Requeue(Priority.REGULAR)
        return [Stop(job.attempt.id, Cause.PREEMPTED, When.IMAGE, then, "preempt") for job in held]


def _at_its_place(attempt: Attempt) -> Attempt:
    """Return the attempt with the queue time and the serial of the first attempt of its job."""
    return msgspec.structs.replace(attempt, queued_us=attempt.submit_us, serial=attempt.job_serial)


class Room:
    """The nodes that are still free while starts are chosen."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._free: Mask | None = None
        self.n_free = view.n_free

    @property
    def free(self) -> Mask:
        """Which nodes are free."""
        if self._free is None:
            self._free = self._view.machine.free
        return self._free

    def take(self, nodes: NodeSet) -> None:
        """Mark nodes as taken."""
        nodes.put(self.free, False)
        self.n_free -= nodes.size


class FifoOptions(PlanningOptions, frozen=True, tag="fifo"):
    """First come, first served, without backfilling; walltimes have no effect."""

    kind = Fifo
    places: ClassVar[bool] = True
    boxless: ClassVar[str] = "only a plan can keep the unused nodes of a box reserved"

    partitions: PartitionsOption = ""
