# SPDX-License-Identifier: Apache-2.0
"""A plan that works with any chooser, but is slow.

For each reservation, the chooser chooses among the nodes that are free during the entire
reservation. Boxes have a faster plan (`boxed.BoxPlan`), and equal nodes have that of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from rebat.contract import Machine
from rebat.core.arrays import Ints
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.policies.placement.choosers import Chooser, Mask, Request
from rebat.policies.placement.places import Waiting


class Use(msgspec.Struct):
    """Nodes that are in use or reserved from ``start_us`` until ``end_us``.

    The attempt uses the first ``n_nodes`` of them; the others stay empty.
    """

    start_us: int
    end_us: int
    nodes: NodeSet
    n_nodes: int = 0


class ChosenPlan:
    """The plan of a list scheduler with a chooser. `places.Places` documents the methods.

    Parameters
    ----------
    machine : Machine
    choose : Chooser
    inside : bool array, shape (n_nodes,)
        The nodes of the plan: all nodes, or those of a group of partitions.
    is_own : bool
        Whether the chooser is user-defined, so that it may have state.
    """

    def __init__(
        self, machine: Machine, choose: Chooser, inside: Mask, is_own: bool = False
    ) -> None:
        self._machine, self._choose, self._inside = machine, choose, inside
        self._is_own = is_own
        self._now_us = 0
        self._usable: Mask = inside.copy()
        self._holds: dict[int, Use] = {}
        self._places: list[Use | None] = []

    # ---- updates

    def advance(self, now_us: int) -> None:
        self._places = [p for p in self._places if p is None or p.start_us > self._now_us]
        self._now_us = now_us

    def clear(self) -> None:
        self._places = []

    def hold(self, a: int, intervals: Ints, until_us: int) -> None:
        self._holds[a] = Use(0, until_us, NodeSet(intervals.copy()))

    def end(self, a: int) -> None:
        del self._holds[a]

    def prolong(self, a: int, until_us: int) -> None:
        self._holds[a].end_us = until_us

    def settle(self, late_us: int) -> None:
        if any(place and place.start_us < late_us for place in self._places):
            self.clear()

    def fail(self, intervals: Ints) -> None:
        NodeSet(intervals).put(self._usable, False)

    def repair(self, intervals: Ints) -> None:
        NodeSet(intervals).put(self._usable, True)

    # ---- plans

    def append(self, waiting: Waiting) -> None:
        for at in range(len(self._places), len(waiting[0])):
            self._places.append(self._first_fit(waiting, at))
        self._copy_starts(waiting)

    def rebuild(self, waiting: Waiting) -> None:
        self.clear()
        self.append(waiting)

    def compress(self, waiting: Waiting) -> None:
        """Move each reservation to an earlier time if possible.

        If an attempt can start now, its nodes are also chosen again.
        """
        for at, before in enumerate(self._places):
            self._places[at] = None
            place = self._first_fit(waiting, at)
            self._places[at] = before if self._stays(before, place) else place

    def _stays(self, before: Use | None, place: Use | None) -> bool:
        """Return whether to keep a reservation of the future, because it cannot begin earlier."""
        return bool(before and place and place.start_us == before.start_us > self._now_us)

    def backfill(self, waiting: Waiting, depth: int, first: bool) -> None:
        self.clear()
        reserved = 0
        for at in range(len(waiting[0])):
            may_wait = (at if first else reserved) < depth
            place = self._first_fit(waiting, at, may_wait)
            if place and place.start_us > self._now_us:
                reserved += 1
            self._places.append(place)
        self._copy_starts(waiting)

    def start(self, at: int, a: int, out: Any) -> int:
        place = self._places[at]
        if place is None:
            return -1
        self._holds[a] = Use(0, place.end_us, place.nodes)
        intervals = place.nodes.first(place.n_nodes).intervals
        out[: len(intervals)] = intervals
        return len(intervals)

    def without_place(self, sizes: set[int]) -> list[int] | None:
        """See `Places.without_place`. None for a user-defined chooser, which may have state."""
        if self._is_own:
            return None
        machine, free = self._machine, self._machine.free & self._inside
        requests = [Request(size, 1, wait_us=1) for size in sorted(sizes)]
        return [r.n_nodes for r in requests if self._choose(free, r, machine) is None]

    def _copy_starts(self, waiting: Waiting) -> None:
        for at, place in enumerate(self._places):
            waiting[2][at] = place.start_us if place else FOREVER_US

    # ---- first fit

    def _first_fit(self, waiting: Waiting, at: int, may_wait: bool = True) -> Use | None:
        """Return the first time and nodes that stay free long enough.

        Return None if there are none.
        """
        size, length_us, _, a = (int(column[at]) for column in waiting)
        for start_us in self._times() if may_wait else (self._now_us,):
            end_us = min(start_us + length_us, FOREVER_US)
            free = self._free_over(start_us, end_us)
            if np.count_nonzero(free) >= size:
                request = Request(size, length_us, start_us - self._now_us, a + 1)
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
