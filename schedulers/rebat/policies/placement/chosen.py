# SPDX-License-Identifier: Apache-2.0
"""The plan of any chooser: slow, and open to every idea of where an attempt should run.

Each reservation holds the nodes that the chooser picked from those free over its whole length. The
fused plans (`planning.counted`, `planning.named`) do the same for their choosers, much faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from rebat.contract import Machine
from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.policies.placement.choosers import Chooser, Mask, Request
from rebat.policies.planning.queue import SortedQueue


class Use(msgspec.Struct):
    """Nodes in use or reserved over [start, end), of which the first ``n_nodes`` are needed."""

    start_us: int
    end_us: int
    nodes: NodeSet
    n_nodes: int = 0


class ChosenPlan:
    """The plan of a list scheduler whose nodes a chooser picks; see ``CountedPlan`` for the facts.

    All nodes of the machine are up and free at first.
    """

    def __init__(self, machine: Machine, choose: Chooser) -> None:
        self._machine, self._choose = machine, choose
        self._now_us = 0
        self._usable: Mask = np.ones(machine.n_nodes, dtype=np.bool_)
        self._holds: dict[str, Use] = {}
        self._places: list[Use | None] = []
        self._given: dict[NodeSet, NodeSet] = {}

    # ---- facts

    def advance(self, now_us: int) -> None:
        """Move to a date; what was due at the last one has been started."""
        self._places = [p for p in self._places if p is None or p.start_us > self._now_us]
        self._given.clear()
        self._now_us = now_us

    def clear(self) -> None:
        """Nothing is reserved any more; a rebuild is due."""
        self._places = []

    def started(self, running: Running, end_us: int) -> None:
        """An attempt runs where it was reserved, until ``end_us`` at the latest."""
        nodes = self._given.get(running.nodes, running.nodes)
        self._holds[running.attempt.id] = Use(0, end_us, nodes)

    def held(self, running: Running, end_us: int) -> None:
        """Nodes are held for a job, or it runs there unplanned; a rebuild is due."""
        self.clear()
        self.started(running, end_us)

    def ended(self, running: Running) -> None:
        """An attempt freed its nodes."""
        del self._holds[running.attempt.id]

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes cannot be used until their repair, and nothing stays reserved."""
        self._usable[nodes] = False
        self.clear()

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        """Nodes can be used again; those that an attempt still holds are free when it ends."""
        self._usable[nodes] = True

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Give the positions up to ``last`` that have no place their first fit."""
        self._settle()
        self._fill(queue, last)

    def _settle(self) -> None:
        """No reservation stands whose date has passed, or has come and is still taken."""
        overdue = any(hold.end_us <= self._now_us for hold in self._holds.values())
        late_us = self._now_us + (1 if overdue else 0)
        if any(place and place.start_us < late_us for place in self._places):
            self.clear()

    def _fill(self, queue: SortedQueue, last: int) -> None:
        for position in range(len(self._places), last):
            self._places.append(self._first_fit(queue, position))
        self._tell(queue)

    def rebuild(self, queue: SortedQueue) -> None:
        """Clear all reservations and place the whole queue anew, in order."""
        self.clear()
        self.append(queue, 0, len(queue))

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Each of the first ``last`` attempts in turn to an earlier time, the others standing.

        A place that begins now is chosen again as well.
        """
        self._settle()
        for position in range(len(self._places)):
            before, self._places[position] = self._places[position], None
            place = self._first_fit(queue, position)
            self._places[position] = before if self._stays(before, place) else place
        self._fill(queue, last)

    def _stays(self, before: Use | None, place: Use | None) -> bool:
        """Whether a place for later stays, as there is none earlier."""
        return bool(before and place and place.start_us == before.start_us > self._now_us)

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        """Rebuild with at most ``depth`` reservations for attempts that cannot start now.

        ``first``: the first ``depth`` of the queue take them, also those that can start now.
        """
        self.clear()
        reserved = 0
        for position in range(len(queue)):
            may_wait = (position if first else reserved) < depth
            place = self._first_fit(queue, position, may_wait)
            if place and place.start_us > self._now_us:
                reserved += 1
            self._places.append(place)
        self._tell(queue)

    def nodes_at(self, position: int) -> NodeSet | None:
        """The nodes on which the attempt at a queue position runs: the first of those reserved."""
        place = self._places[position]
        if place is None:
            return None
        nodes = place.nodes.first(place.n_nodes)
        self._given[nodes] = place.nodes
        return nodes

    def _tell(self, queue: SortedQueue) -> None:
        for position, place in enumerate(self._places):
            queue.start[position] = place.start_us if place else FOREVER_US

    # ---- first fit

    def _first_fit(self, queue: SortedQueue, position: int, may_wait: bool = True) -> Use | None:
        """The earliest date at which the chooser finds nodes that stay free long enough."""
        size, length_us = int(queue.size[position]), int(queue.duration[position])
        for start_us in self._dates() if may_wait else (self._now_us,):
            end_us = min(start_us + length_us, FOREVER_US)
            free = self._free_over(start_us, end_us)
            if np.count_nonzero(free) >= size:
                serial = queue.attempts[position].serial
                request = Request(size, length_us, start_us - self._now_us, serial)
                nodes = self._choose(free, request, self._machine)
                if nodes is not None:
                    return Use(start_us, end_us, nodes, size)
        return None

    def _uses(self) -> Iterator[Use]:
        """What is in use, what outlives its planned end a tick more; and what is reserved."""
        late_us = self._now_us + 1
        for hold in self._holds.values():
            yield hold if hold.end_us > self._now_us else Use(0, late_us, hold.nodes)
        yield from (place for place in self._places if place)

    def _dates(self) -> list[int]:
        """Now, and whenever something ends: more is free then."""
        ends = {use.end_us for use in self._uses() if use.end_us < FOREVER_US}
        return sorted({self._now_us, *ends})

    def _free_over(self, start_us: int, end_us: int) -> Mask:
        free = self._usable.copy()
        for use in self._uses():
            if use.start_us < end_us and start_us < use.end_us:
                use.nodes.put(free, False)
        return free
