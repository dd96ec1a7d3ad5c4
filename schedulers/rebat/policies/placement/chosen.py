# SPDX-License-Identifier: Apache-2.0
"""A plan that works with any chooser, but is slow.

For each reservation, the chooser chooses among the nodes that are free during the entire
reservation. The plans `planning.counted` and `planning.named` are much faster, but each works with
only one chooser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from rebat.contract import Machine
from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.policies.placement.choosers import Chooser, Mask, OwnChooser, Request
from rebat.policies.planning.queue import LaterEnd, SortedQueue, WithoutPlace, in_1_us


class Use(msgspec.Struct):
    """Nodes that are in use or reserved from ``start_us`` until ``end_us``.

    The attempt uses the first ``n_nodes`` of them; the others stay empty.
    """

    start_us: int
    end_us: int
    nodes: NodeSet
    n_nodes: int = 0


class ChosenPlan:
    """The plan of a list scheduler with a chooser. ``AvailabilityPlan`` documents the methods.

    Initially all nodes of the machine are up and free.
    """

    def __init__(self, machine: Machine, choose: Chooser) -> None:
        self.later_end: LaterEnd = in_1_us
        self._machine, self._choose = machine, choose
        self._now_us = 0
        self._usable: Mask = np.ones(machine.n_nodes, dtype=np.bool_)
        self._holds: dict[str, Use] = {}
        self._places: list[Use | None] = []
        self._all_nodes: dict[NodeSet, NodeSet] = {}

    # ---- updates

    def advance(self, now_us: int) -> None:
        self._places = [p for p in self._places if p is None or p.start_us > self._now_us]
        self._all_nodes.clear()
        self._now_us = now_us

    def clear(self) -> None:
        self._places = []

    def started(self, running: Running, end_us: int) -> None:
        nodes = self._all_nodes.get(running.nodes, running.nodes)
        self._holds[running.attempt.id] = Use(0, end_us, nodes)

    def held(self, running: Running, end_us: int) -> None:
        self.clear()
        self.started(running, end_us)

    def ended(self, running: Running) -> None:
        del self._holds[running.attempt.id]

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self._usable[nodes] = False
        self.clear()

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self._usable[nodes] = True

    # ---- plans

    def append(self, queue: SortedQueue, first: int, last: int) -> None:
        """Make a first-fit reservation for each position before ``last`` that has none."""
        self._settle()
        self._fill(queue, last)

    def _settle(self) -> None:
        """Delete all reservations if one starts before the new end of an overdue attempt."""
        late_us = self._outlive()
        if any(place and place.start_us < late_us for place in self._places):
            self.clear()

    def _outlive(self) -> int:
        """Set the planned end of each overdue attempt to its next one.

        Return the latest of these ends (us), or the present time if there is none.
        """
        late_us = self._now_us
        for attempt_id, hold in self._holds.items():
            if hold.end_us <= self._now_us:
                hold.end_us = self.later_end(attempt_id, self._now_us)
                late_us = max(late_us, hold.end_us)
        return late_us

    def _fill(self, queue: SortedQueue, last: int) -> None:
        for position in range(len(self._places), last):
            self._places.append(self._first_fit(queue, position))
        self._copy_starts(queue)

    def rebuild(self, queue: SortedQueue) -> None:
        self.clear()
        self.append(queue, 0, len(queue))

    def compress(self, queue: SortedQueue, last: int) -> None:
        """Move each of the first ``last`` attempts to an earlier time if possible.

        If an attempt can start now, its nodes are also chosen again.
        """
        self._settle()
        for position in range(len(self._places)):
            before, self._places[position] = self._places[position], None
            place = self._first_fit(queue, position)
            self._places[position] = before if self._stays(before, place) else place
        self._fill(queue, last)

    def _stays(self, before: Use | None, place: Use | None) -> bool:
        """Return whether to keep a reservation of the future, because it cannot begin earlier."""
        return bool(before and place and place.start_us == before.start_us > self._now_us)

    def backfill(self, queue: SortedQueue, depth: int, first: bool = False) -> None:
        self.clear()
        self._outlive()
        reserved = 0
        for position in range(len(queue)):
            may_wait = (position if first else reserved) < depth
            place = self._first_fit(queue, position, may_wait)
            if place and place.start_us > self._now_us:
                reserved += 1
            self._places.append(place)
        self._copy_starts(queue)

    @property
    def without_place(self) -> WithoutPlace | None:
        """The sizes that do not fit now. None for a user-defined chooser, which may have state."""
        return None if isinstance(self._choose, OwnChooser) else self._without_place

    def _without_place(self, sizes: set[int]) -> list[int]:
        machine, free = self._machine, self._machine.free
        requests = [Request(size, 1, wait_us=1) for size in sorted(sizes)]
        return [r.n_nodes for r in requests if self._choose(free, r, machine) is None]

    def nodes_at(self, position: int) -> NodeSet | None:
        """Return the reserved nodes that the attempt at a queue position will use."""
        place = self._places[position]
        if place is None:
            return None
        nodes = place.nodes.first(place.n_nodes)
        self._all_nodes[nodes] = place.nodes
        return nodes

    def _copy_starts(self, queue: SortedQueue) -> None:
        for position, place in enumerate(self._places):
            queue.start[position] = place.start_us if place else FOREVER_US

    # ---- first fit

    def _first_fit(self, queue: SortedQueue, position: int, may_wait: bool = True) -> Use | None:
        """Return the first time and nodes that stay free long enough.

        Return None if there are none.
        """
        size, length_us = int(queue.size[position]), int(queue.duration[position])
        for start_us in self._times() if may_wait else (self._now_us,):
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
        """Yield uses and reservations."""
        yield from self._holds.values()
        yield from (place for place in self._places if place)

    def _times(self) -> list[int]:
        """Return the possible start times: now, and all times at which nodes become free."""
        ends = {use.end_us for use in self._uses() if use.end_us < FOREVER_US}
        return sorted({self._now_us, *ends})

    def _free_over(self, start_us: int, end_us: int) -> Mask:
        free = self._usable.copy()
        for use in self._uses():
            if use.start_us < end_us and start_us < use.end_us:
                use.nodes.put(free, False)
        return free
