# SPDX-License-Identifier: Apache-2.0
"""A slow, plain simulator of reservations of nodes, and of partitions that share nodes.

It was written from the documentation, and shares no rule with rebat. ``python -m
tests.support.against_site_windows`` compares both. Sources are in parentheses: *site-rules* and
*site* are pages of docs/how-to, *semantics* and *axes* are other pages. *Module* is the description
of rebat.rules.windows or of rebat.kernels.cell_plan. *Program* means that no document decides, and
that this module does what rebat does. Times are whole seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.oracles import site_rules
from tests.oracles.counts import fits

Nodes = frozenset[int]


@dataclass(eq=False)
class Window:
    """A reservation of nodes: one time, or repeated times."""

    name: str
    nodes: Nodes
    begin: int
    length: int
    every: int = 0
    owners: frozenset[tuple[str, str]] = frozenset()  # like ("user", "ann")

    def times(self, now: int, count: int = 8) -> list[tuple[int, int]]:
        """Return the next times of the reservation (program: a plan looks at eight of them)."""
        begins = [self.begin]
        if self.every:
            first = max(0, (now - self.begin - self.length) // self.every + 1)
            begins = [self.begin + k * self.every for k in range(first, first + count)]
        return [(begin, begin + self.length) for begin in begins if begin + self.length > now]


class Time(NamedTuple):
    """One of the times of a reservation, and its nodes."""

    window: Window
    nodes: Nodes
    begin: int
    end: int


@dataclass(eq=False)
class Partition:
    """A named group of nodes, with limits and a queue order (site)."""

    name: str
    nodes: Nodes
    tier: int
    order: str
    max_nodes: int
    max_time: int

    def allows(self, job: Job) -> bool:
        """Return whether a job is neither too large nor too long."""
        return job.n <= min(self.max_nodes, len(self.nodes)) and job.wall <= self.max_time


@dataclass(eq=False)
class Job(site_rules.Job):
    """A rigid job, and its current attempt. ``wanted`` is the reservation that it waits for.

    ``places`` are the partitions in which it may run: under fifo several, else ``partition``.
    """

    partition: Any = None
    places: tuple[Any, ...] = ()
    wanted: Window | None = None
    attempt: int = 0
    queued: int = 0
    serial: int = 0
    nodes: Nodes = frozenset()


class Place(NamedTuple):
    """A number of nodes of each cell that a job uses in ``[start, end)``."""

    job: Job
    start: int
    end: int
    used: dict[Nodes, int]


class Simulation:
    """One run."""

    def __init__(
        self, jobs: list[Job], n_nodes: int, events: list[tuple[int, bool, int]], depth: str,
        windows: list[Window], partitions: list[Partition],
    ) -> None:  # fmt: skip
        self.depth, self.windows, self.partitions = depth, windows, partitions
        # semantics: jobs of one time are submitted in the order of their ids, as text
        self.coming = sorted(jobs, key=lambda job: (job.submit, job.id))
        # program: at one time, repairs are before failures
        self.events = sorted(events, key=lambda event: (event[0], not event[1]))
        self.up, self.now, self.serials = set(range(n_nodes)), -1, 0
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.rows: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.rejected: list[Job] = []
        self.bound: dict[str, set[Time]] = {}
        self.has_bound = False

    def run(self) -> None:
        """Simulate until all jobs have ended: ends, submissions, failures, then a plan."""
        while self.coming or self.running or self.queue:
            self.now = min(time for time in self.next_times() if time > self.now)
            for job in [job for job in self.running if job.end == self.now]:
                self.stop(job)
            while self.coming and self.coming[0].submit == self.now:
                self.enter(self.coming.pop(0))
            self.change_nodes()
            if self.depth == "fifo":
                self.serve()
                continue
            for group in self.groups():
                self.decide(group)

    def next_times(self) -> Iterator[int]:
        """Yield times at which something happens (module: when a new plan follows)."""
        yield from [job.end for job in self.running] + [job.submit for job in self.coming[:1]]
        yield from [event[0] for event in self.events[:1]]
        for window in self.windows if self.queue else []:
            is_wanted = any(self.request_of(job) is window for job in self.queue)
            for begin, end in window.times(self.now):
                yield from [begin, end] if is_wanted else [end]

    def stop(self, job: Job) -> None:
        """End the attempt of a job."""
        name = f"{job.id}#{job.attempt}" if job.attempt else job.id
        self.rows.append((name, job.start, self.now, tuple(sorted(job.nodes))))
        self.running.remove(job)

    def enter(self, job: Job) -> None:
        """Put a job into the queue of its partition (site), or reject it."""
        names = [job.owners.get("partition"), job.owners.get("queue")]
        named = [p for name in names for p in self.partitions if p.name == name]
        highest = max(partition.tier for partition in self.partitions)
        named += [p for p in self.partitions if p.tier == highest and p.allows(job)]
        job.partition = next(iter(named), None)
        is_named = any(p.name in names for p in self.partitions)
        several = self.depth == "fifo" and not is_named  # migration: partitions and tiers
        job.places = tuple(named if several else named[:1])
        for window in self.windows if job.partition else []:
            if window.name == job.owners.get("reservation") and self.fits_in(job, window):
                job.wanted = window  # site-rules: not if it never fits in it
        if job.partition and job.partition.allows(job) and self.ever_fits(job):
            self.put(job)
        else:
            self.rejected.append(job)

    def put(self, job: Job) -> None:
        """Put an attempt into the queue."""
        job.serial, job.queued = self.serials, self.now
        self.serials += 1
        self.queue.append(job)

    def change_nodes(self) -> None:
        """Repair nodes, then let nodes fail; requeue the jobs on them, in their order."""
        hit: list[Job] = []  # semantics: only jobs of one event are in the order of submission
        while self.events and self.events[0][0] == self.now:
            _, available, node = self.events.pop(0)
            self.up = self.up | {node} if available else self.up - {node}
            if not available:
                hit += [job for job in self.running if node in job.nodes and job not in hit]
        for job in hit:
            self.stop(job)
            job.attempt += 1
            self.put(job)

    def request_of(self, job: Job) -> Window | None:
        """Return the reservation that a job waits for, until it is over."""
        return job.wanted if job.wanted and job.wanted.times(self.now) else None

    def is_open(self, window: Window, job: Job) -> bool:
        """Return whether a job may use a reservation (program: only the requested one)."""
        if wanted := self.request_of(job):
            return window is wanted
        # program: one of the owners is enough (in Slurm, a user and an account if both are stated)
        return not window.owners.isdisjoint(job.owners.items())

    def has_room(self, job: Job, nodes: Nodes, closed: list[Window], start: int) -> bool:
        """Return whether a job fits on nodes of an empty machine, outside of reservations."""
        for window in closed:
            if any(begin < start + job.wall for begin, _ in window.times(start, 1)):
                nodes -= window.nodes
        return len(nodes) >= job.n

    def fits_in(self, job: Job, window: Window) -> bool:
        """Return whether a job fits into a reservation of an empty machine, at any time of it."""
        others = [other for other in self.windows if other is not window]
        once = range(window.begin, window.begin + window.length)
        return any(
            begin <= start
            and start + job.wall <= end
            and self.has_room(job, place.nodes & window.nodes, others, start)
            for place in job.places
            for start in (self.cycle() if window.every else once)
            for begin, end in window.times(start, 1)
        )

    def ever_fits(self, job: Job) -> bool:
        """Return whether a job fits between repeated reservations or on the other nodes."""
        wanted = self.request_of(job)
        closed = [w for w in self.windows if w.every and not self.is_open(w, job)]
        fits_outside = any(
            self.has_room(job, place.nodes, closed, start)
            for place in job.places
            for start in self.cycle()
        )
        return fits_outside or (wanted is not None and wanted.every > 0)

    def cycle(self) -> range:
        """Return times after which repeated reservations are as before. The others are over."""
        first = max((window.begin + window.length for window in self.windows), default=0)
        return range(first, first + math.lcm(*(window.every or 1 for window in self.windows)))

    def can_use(self, node: int, job: Job, start: int, times: Iterable[Time]) -> bool:
        """Return whether a job may use a node from a start (site-rules: reservations)."""
        end, wanted = start + job.wall, self.request_of(job)
        mine = [time for time in times if time.window is wanted]
        inside = any(node in t.nodes and t.begin <= start and end <= t.end for t in mine)
        if mine and start < max(t.end for t in mine) and not inside:
            return False  # only in its time, on its nodes
        closed = [t for t in times if node in t.nodes and not self.is_open(t.window, job)]
        return not any(t.begin < end and start < t.end for t in closed)

    def binds(self, time: Time, place: Place) -> bool:
        """Return whether a reservation changes a plan that was made without it (module)."""
        job, nodes = place.job, place.job.partition.nodes
        if not time.nodes & nodes or self.request_of(job) is time.window:
            return bool(time.nodes & nodes)
        if self.is_open(time.window, job):  # program: not if the job can use no other node
            return time.begin <= place.start == self.now and not nodes <= time.nodes
        return time.begin < place.end and place.start < time.end

    def groups(self) -> list[list[Partition]]:
        """Return the partitions, joined if they share nodes (site: others are independent)."""
        groups: list[list[Partition]] = []
        for partition in self.partitions:
            near = [g for g in groups if any(p.nodes & partition.nodes for p in g)]
            together = {partition, *(p for g in near for p in g)}
            groups = [g for g in groups if g not in near]
            groups.append([p for p in self.partitions if p in together])
        return groups

    def decide(self, group: list[Partition]) -> None:
        """Plan, and again with the reservations that bind then, until no other binds."""
        kinds = [(p.tier, p.order) for p in group]

        def key(job: Job) -> tuple[int, ...]:
            """Return the key of a job (site: tier, then equal orders together)."""
            keys = {"fcfs": job.queued, "shortest": job.wall, "largest": -job.n, "smallest": job.n}
            tier, order = job.partition.tier, job.partition.order
            place = kinds.index((tier, order))  # program: the first in the list is first
            return -tier, place, -(job.attempt > 0), keys[order], job.serial

        queue = sorted([job for job in self.queue if job.partition in group], key=key)
        near = [w for w in self.windows if any(w.nodes & p.nodes for p in group)]
        coming = {Time(w, w.nodes, *time) for w in near for time in w.times(self.now)}
        # site-rules: nothing changes until a planned job overlaps; program: then until the end
        binding = self.bound.setdefault(group[0].name, set())
        binding &= coming
        places = self.plan(group, queue, binding)
        while more := {t for t in coming - binding if any(self.binds(t, p) for p in places)}:
            binding |= more
            places = self.plan(group, queue, binding)
        self.has_bound |= bool(binding)
        for place in [place for place in places if place.start == self.now]:
            self.start(place)

    def serve(self) -> None:
        """Start jobs in the order of the queue (migration: partitions and tiers).

        A job that does not fit now delays only later jobs of its partitions.
        """
        kinds = [(p.tier, p.order) for p in self.partitions]
        blocked: set[Any] = set()

        def key(job: Job) -> tuple[Any, ...]:
            """Return the key of a job (semantics: ties by the submission of the job)."""
            keys = {"fcfs": job.submit, "shortest": job.wall, "largest": -job.n, "smallest": job.n}
            order = job.places[0].order
            place = kinds.index((job.places[0].tier, order))  # program: the first in the list
            return place, -(job.attempt > 0), keys[order], job.submit, job.id

        for job in sorted(self.queue, key=key):
            places = [p for p in job.places if p not in blocked]
            if nodes := self.fit_now(job, places):
                self.begin(job, nodes)
            else:
                blocked.update(places)

    def fit_now(self, job: Job, places: list[Partition]) -> Nodes:
        """Return nodes on which a job can start now: all in a reservation for it, if possible.

        They are the lowest of the first partition with enough nodes. There may be none.
        """
        times = [Time(w, w.nodes, *time) for w in self.windows for time in w.times(self.now)]
        usable = {node for node in self.free() if self.can_use(node, job, self.now, times)}
        mine = [t.nodes for t in times if t.begin <= self.now and self.is_open(t.window, job)]
        for nodes in [usable.intersection(frozenset().union(*mine)), usable]:
            for place in places:
                if len(nodes & place.nodes) >= job.n:
                    return frozenset(sorted(nodes & place.nodes)[: job.n])
        return frozenset()

    def free(self) -> set[int]:
        """Return the nodes that are up and not in use."""
        return self.up.difference(*(other.nodes for other in self.running))

    def start(self, place: Place) -> None:
        """Start a job on the lowest free nodes of its cells (axes: any)."""
        free = self.free()
        self.begin(
            place.job,
            frozenset(node for cell, n in place.used.items() for node in sorted(cell & free)[:n]),
        )

    def begin(self, job: Job, nodes: Nodes) -> None:
        """Start a job on these nodes."""
        job.nodes = nodes
        job.start, job.end = self.now, self.now + min(job.run, job.wall)
        assert len(job.nodes) == job.n
        self.queue.remove(job)
        self.running.append(job)

    def plan(self, group: list[Partition], queue: list[Job], binding: set[Time]) -> list[Place]:
        """Return the places of jobs (site: under EASY, one reservation in each partition)."""
        cells: dict[frozenset[Partition | Time], Nodes] = {}
        for node in {node for partition in group for node in partition.nodes}:
            kind = frozenset(x for x in [*group, *binding] if node in x.nodes)
            cells[kind] = cells.get(kind, frozenset()) | {node}
        running, made, blocked = [], [], []
        for job in self.running:
            used = {cell: len(job.nodes & cell) for cell in cells.values()}
            running.append(Place(job, job.start, job.start + job.wall, used))
        for job in queue:
            place = self.first_fit(job, cells, [*running, *made], binding)
            if place and place.start > self.now:
                blocked.append(job.partition)
                depth = {"greedy": 0, "easy": 1}.get(self.depth, len(queue))
                place = place if blocked.count(job.partition) <= depth else None
            made += [place] if place else []
        return made

    def first_fit(self, job: Job, cells: Any, places: list[Place], binding: Any) -> Place | None:
        """Return the earliest place of a job (module: in the cells of the fewest sets first)."""

        def key(kind: Any) -> tuple[bool, int, int]:
            """Return the key of a cell (program: each time of a reservation counts)."""
            times = [time for time in kind if isinstance(time, Time) and time.begin <= self.now]
            # site-rules: jobs prefer nodes that are open to them (program: now, not at the start)
            is_mine = any(self.is_open(time.window, job) for time in times)
            return not is_mine, len(kind), min(cells[kind])

        order = [cells[kind] for kind in sorted(cells, key=key) if job.partition in kind]
        dates = {self.now, *(p.end for p in places)}.union(*(time[2:] for time in binding))
        for start in sorted(date for date in dates if date >= self.now):
            left, used = job.n, {}
            for cell in [c for c in order if self.can_use(min(c), job, start, binding)]:
                taken, n = [(p.start, p.end, p.used.get(cell, 0)) for p in places], left
                while not fits(len(self.up & cell), taken, start, n, job.wall):
                    n -= 1
                left, used[cell] = left - n, n
            if not left:
                return Place(job, start, start + job.wall, used)
        return None
