# SPDX-License-Identifier: Apache-2.0
"""Slow, simple availability of named nodes: a set of nodes at each date; each date is tried.

``Plan`` has the methods of ``NamedPlan``. ``ConservativeBf`` and ``EasyBf`` apply exactly
Batsched's update rules to the same sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rebat.contract import Policy, Reject, Start
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US

Nodes = frozenset[int]


@dataclass
class Use:
    """Nodes in use over ``[start, end)``."""

    start: int
    end: int
    nodes: Nodes


NOWHERE = Use(FOREVER_US, FOREVER_US, frozenset())


def free_at(n_nodes: int, uses: list[Use], date: int) -> Nodes:
    """Return the nodes that are free at a date."""
    busy = [use.nodes for use in uses if use.start <= date < use.end]
    return frozenset(range(n_nodes)).difference(*busy)


def first_fit(n_nodes: int, uses: list[Use], now: int, size: int, duration: int) -> Use:
    """Return the earliest fit: the lowest nodes that are free for the entire duration."""
    dates = sorted({now, *(use.end for use in uses if now < use.end < FOREVER_US)})
    for date in dates:
        inside = [date] + [use.start for use in uses if date < use.start < date + duration]
        free = frozenset.intersection(*(free_at(n_nodes, uses, at) for at in inside))
        if len(free) >= size:
            return Use(date, date + duration, frozenset(sorted(free)[:size]))
    return NOWHERE


class Plan:
    """The same results as ``NamedPlan``, without its shortcuts."""

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes, self.now = n_nodes, 0
        self.down: set[int] = set()
        self.running: dict[str, Use] = {}
        self.places: list[Use] = []

    def advance(self, now_us: int) -> None:
        self.places = [place for place in self.places if place.start > self.now]
        self.now = now_us

    def started(self, running: Running, end_us: int) -> None:
        assert len(running.nodes) == running.attempt.n_nodes
        self.running[running.attempt.id] = Use(self.now, end_us, frozenset(running.nodes))

    def clear(self) -> None:
        self.places = []

    def ended(self, running: Running) -> None:
        del self.running[running.attempt.id]

    def failed(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self.down.update(nodes)
        self.places = []

    def rejuvenated(self, nodes: list[int], under: Sequence[str] = ()) -> None:
        self.down.difference_update(nodes)

    def uses(self) -> list[Use]:
        """Return all uses; a job that outlasts its planned end is assumed to end in 1 us."""
        dead = Use(0, FOREVER_US, frozenset(self.down))
        lasting = [Use(0, max(u.end, self.now + 1), u.nodes) for u in self.running.values()]
        return [dead, *lasting, *self.places]

    def settle(self) -> None:
        """Drop all reservations if the date of any has passed, or is now while a job is overdue."""
        overdue = any(use.end <= self.now for use in self.running.values())
        if any(place.start < self.now + overdue for place in self.places):
            self.places = []

    def place(self, queue, position: int) -> Use:
        size, duration = int(queue.size[position]), int(queue.duration[position])
        return first_fit(self.n_nodes, self.uses(), self.now, size, duration)

    def append(self, queue, first: int, last: int) -> None:
        self.settle()
        self.fill(queue, last)

    def fill(self, queue, last: int) -> None:
        for position in range(len(self.places), last):
            self.places.append(self.place(queue, position))
        self.tell(queue)

    def rebuild(self, queue) -> None:
        self.places = []
        self.append(queue, 0, len(queue))

    def compress(self, queue, last: int) -> None:
        self.settle()
        for position in range(len(self.places)):
            self.places[position] = NOWHERE
            self.places[position] = self.place(queue, position)
        self.fill(queue, last)

    def backfill(self, queue, depth: int, first: bool = False) -> None:
        self.places = []
        for position in range(len(queue)):
            place = self.place(queue, position)
            if place.start > self.now and place is not NOWHERE:
                depth -= not first
                if position >= depth if first else depth < 0:
                    place = NOWHERE
            self.places.append(place)
        self.tell(queue)

    def tell(self, queue) -> None:
        queue.start[: len(self.places)] = [place.start for place in self.places]

    def nodes_at(self, position: int) -> NodeSet | None:
        nodes = self.places[position].nodes
        return NodeSet.of(nodes) if nodes else None


@dataclass
class Batsched(Policy):
    """The common part of Batsched's backfilling schedulers; no node ever fails here."""

    margin: int
    n_nodes: int = 0
    now: int = 0
    uses: dict[str, Use] = field(default_factory=dict)
    queue: list[Attempt] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)

    def plan(self, view, changes):
        self.n_nodes, self.now, self.starts = view.n_nodes, view.now_us, []
        for running in changes.ended:
            del self.uses[running.attempt.id]
        refused = [a for a in changes.arrived if a.n_nodes > view.n_nodes or not a.has_walltime]
        new = [attempt for attempt in changes.arrived if attempt not in refused]
        self.update(new, bool(changes.ended))
        return [*(Reject(attempt.id, "refused") for attempt in refused), *self.starts]

    def insert(self, attempt: Attempt) -> bool:
        """Reserve the first fit of an attempt; if that is now, start it and return True."""
        self.uses.pop(attempt.id, None)
        length = attempt.walltime_us + self.margin
        uses = list(self.uses.values())
        use = first_fit(self.n_nodes, uses, self.now, attempt.n_nodes, length)
        self.uses[attempt.id] = use
        if use.start == self.now:
            self.queue.remove(attempt)
            self.starts.append(Start(attempt.id, NodeSet.of(use.nodes)))
        return use.start == self.now


class ConservativeBf(Batsched):
    """``conservative_bf``."""

    def update(self, new: list[Attempt], freed: bool) -> None:
        self.queue += new
        for attempt in list(self.queue) if freed else new:
            self.insert(attempt)


class EasyBf(Batsched):
    """``easy_bf``: only the head of the queue holds a reservation."""

    def update(self, new: list[Attempt], freed: bool) -> None:
        before = self.queue[:1]
        self.queue += new
        if self.queue[:1] != before:
            while self.queue and self.insert(self.queue[0]):
                pass
        for attempt in list(self.queue) if freed else new:
            if attempt not in self.queue:
                continue  # already started as the head
            is_head = attempt == self.queue[0]
            if is_head and not freed:
                continue
            if not self.insert(attempt) and not is_head:
                del self.uses[attempt.id]
