# SPDX-License-Identifier: Apache-2.0
"""A slow, plain simulator of reservations of nodes, and of partitions that share nodes.

It was written from the documentation, and shares no rule with rebat. ``python -m
tests.support.against_site_windows`` compares both. Sources are in parentheses: *site-rules* and
*site* are pages of docs/how-to, *semantics* is a page of docs/explanation, *axes* and *glossary*
are pages of docs/reference. *Module* is the description of rebat.rules.windows or of
rebat.kernels.cell_plan. *Program* means that no document decides, and that this module does what
rebat does.

Times are whole seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NEVER = 10**9


@dataclass(eq=False)
class Window:
    """A reservation of nodes: one time, or repeated times."""

    name: str
    nodes: frozenset[int]
    begin: int
    length: int
    every: int = 0
    users: list[str] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return the reservation of a text like ``n:0-3:begin=4:length=2:every=9:user=a``."""
        name, nodes, *words = text.split(":")
        window = cls(name, range_of(nodes, 0), 0, 0)
        for key, _, value in (word.partition("=") for word in words):
            if key in ("user", "account"):
                getattr(window, f"{key}s").append(value)
            else:
                setattr(window, key, int(value))
        return window

    def times(self, now: int, count: int = 8) -> list[tuple[int, int]]:
        """Return the next times of the reservation (program: a plan looks at eight of them)."""
        begins = [self.begin]
        if self.every:
            first = max(0, (now - self.begin - self.length) // self.every + 1)
            begins = [self.begin + k * self.every for k in range(first, first + count)]
        return [(begin, begin + self.length) for begin in begins if begin + self.length > now]

    def has(self, job: Job) -> bool:
        """Return whether a job belongs to the users and accounts of the reservation."""
        # program: one of them is enough (in Slurm, both must match if both are stated)
        return job.user in self.users or job.account in self.accounts


@dataclass(frozen=True)
class Time:
    """One of the times of a reservation."""

    window: Window
    begin: int
    end: int


@dataclass(eq=False)
class Partition:
    """A named group of nodes, with limits and a queue order (site)."""

    name: str
    index: int
    nodes: frozenset[int]
    tier: int
    order: str
    max_nodes: int
    max_time: int

    @classmethod
    def parse(cls, index: int, text: str, n_nodes: int, order: str) -> Partition:
        """Return the partition of a text like ``p:0-3:2:order=shortest:max_time=9``."""
        name, nodes, *words = text.split(":")
        rest = dict(word.partition("=")[::2] for word in words if "=" in word)
        tier = next((int(word) for word in words if "=" not in word), 1)
        return cls(
            name, index, range_of(nodes, n_nodes), tier, rest.get("order", order),
            int(rest.get("max_nodes", NEVER)), int(rest.get("max_time", NEVER)),
        )  # fmt: skip

    def allows(self, job: Job) -> bool:
        """Return whether a job is neither too large nor too long."""
        return job.n <= min(self.max_nodes, len(self.nodes)) and job.wall <= self.max_time


@dataclass(eq=False)
class Job:
    """A rigid job, and its current attempt. ``wanted`` is the reservation that it waits for."""

    id: str
    n: int
    submit: int
    wall: int
    run: int
    user: str = ""
    account: str = ""
    requested: str = ""
    places: tuple[str, ...] = ()  # the fields partition and queue
    partition: Partition | None = None
    wanted: Window | None = None
    attempt: int = 0
    failed: bool = False
    queued: int = 0
    serial: int = 0
    start: int = 0
    end: int = 0
    nodes: frozenset[int] = frozenset()


@dataclass(eq=False)
class Place:
    """A number of nodes of each cell that a job uses in ``[start, end)``."""

    job: Job
    start: int
    end: int
    used: dict[Cell, int]


Cell = tuple[frozenset[Partition], frozenset[Time]]


def range_of(text: str, n_nodes: int) -> frozenset[int]:
    """Return the nodes of a text like ``0-3`` or ``all``."""
    first, _, last = text.partition("-")
    return frozenset(range(n_nodes) if text == "all" else range(int(first), int(last) + 1))


class Simulation:
    """One run."""

    def __init__(
        self, jobs: list[Job], n_nodes: int, events: list[tuple[int, bool, int]],
        options: dict[str, str],
    ) -> None:  # fmt: skip
        self.n_nodes, self.depth = n_nodes, options["depth"]
        order = options["order"]
        texts = [text for text in options.get("reservations", "").split("+") if text]
        self.windows = [Window.parse(text) for text in texts]
        texts = [text for text in options.get("partitions", "").split("+") if text]
        self.partitions = [
            Partition.parse(index, text, n_nodes, order)
            for index, text in enumerate(texts or ["machine:all"])
        ]
        self.seen, self.faults = set[str](), set[str]()
        if 0 < sum(f":order={order}" in text for text in texts):
            self.faults.add("a partition states the queue order of the policy")
        # semantics: jobs of one time are submitted in the order of their ids, as text
        self.coming = sorted(jobs, key=lambda job: (job.submit, job.id))
        self.events = sorted(events, key=lambda event: (event[0], not event[1]))
        self.up = set(range(n_nodes))
        self.now, self.serials = -1, 0
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.rows: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.rejected: list[str] = []
        self.bound: dict[int, set[Time]] = {}

    # ---- events

    def run(self) -> None:
        """Simulate until all jobs have ended: ends, submissions, failures, then a plan."""
        while self.coming or self.running or self.queue:
            self.now = self.next_time()
            for job in [job for job in self.running if job.end == self.now]:
                self.stop(job)
            while self.coming and self.coming[0].submit == self.now:
                self.enter(self.coming.pop(0))
            self.change_nodes()
            for group in self.groups():
                self.decide(group)

    def next_time(self) -> int:
        """Return the next time at which something happens (module: when a new plan follows)."""
        times = [job.end for job in self.running] + [job.submit for job in self.coming[:1]]
        times += [event[0] for event in self.events[:1]]
        for window in self.windows if self.queue else []:
            wanted = any(self.request_of(job) is window for job in self.queue)
            for begin, end in window.times(self.now):
                times += [end, begin] if wanted else [end]
        return min(time for time in times if time > self.now)

    def stop(self, job: Job) -> None:
        """End the attempt of a job."""
        name = f"{job.id}#{job.attempt}" if job.attempt else job.id
        self.rows.append((name, job.start, self.now, tuple(sorted(job.nodes))))
        self.running.remove(job)

    def enter(self, job: Job) -> None:
        """Put a job into the queue, or reject it."""
        job.partition = self.partition_of(job)
        for window in self.windows if job.partition else []:
            if window.name == job.requested and self.fits_in(job, window):
                job.wanted = window  # site-rules: not if it never fits in it
        self.note_faults(job)
        if not job.partition or not job.partition.allows(job) or not self.ever_fits(job):
            self.rejected.append(job.id)
        else:
            self.put(job)

    def put(self, job: Job) -> None:
        """Put an attempt into the queue."""
        self.serials += 1
        job.serial, job.queued = self.serials, self.now
        self.queue.append(job)

    def partition_of(self, job: Job) -> Partition | None:
        """Return the partition of a job (site: the named one, or the first that allows it)."""
        for name in job.places:
            for partition in self.partitions:
                if partition.name == name:
                    return partition
        highest = max(partition.tier for partition in self.partitions)
        first = [p for p in self.partitions if p.tier == highest and p.allows(job)]
        return first[0] if first else None

    def change_nodes(self) -> None:
        """Repair nodes, then let nodes fail; requeue the jobs on them, in their order."""
        hit: list[Job] = []  # semantics: only jobs of one event are in the order of submission
        while self.events and self.events[0][0] == self.now:
            _, available, node = self.events.pop(0)
            if available:
                self.up.add(node)
            else:
                self.up.discard(node)
                hit += [job for job in self.running if node in job.nodes and job not in hit]
        for job in hit:
            self.stop(job)
            job.attempt, job.failed = job.attempt + 1, True
            self.put(job)
            self.seen.add("failures")

    # ---- reservations

    def note_faults(self, job: Job) -> None:
        """Note in which cases rebat is known to differ from the documents."""
        place = job.partition
        if not place or job.n > len(place.nodes):
            return
        for window in self.windows:
            if window.name == job.requested and not job.wanted:
                if job.n <= len(window.nodes) and not (window.every and job.wall > window.length):
                    self.faults.add("a job requests a reservation in which it never fits")
        blocking = [
            w for w in self.windows
            if 0 < w.every < w.length + job.wall and not self.is_open(w, job)
        ]  # fmt: skip
        rest = place.nodes.difference(*(w.nodes for w in blocking))
        if (len(rest) >= job.n) != self.ever_fits(job):
            self.faults.add("a job fits only between the times of single reservations")

    def request_of(self, job: Job) -> Window | None:
        """Return the reservation that a job waits for, until it is over."""
        return job.wanted if job.wanted and job.wanted.times(self.now) else None

    def fits_in(self, job: Job, window: Window) -> bool:
        """Return whether a job fits into a reservation of an empty machine, at any time of it."""
        assert job.partition
        nodes = job.partition.nodes & window.nodes
        first = self.late(0) if window.every else window.begin
        starts = range(first, first + (self.cycle() if window.every else window.length))
        times = window.times(first, 2 * self.cycle())
        others = [other for other in self.windows if other is not window]
        return any(
            begin <= start and start + job.wall <= end
            and sum(not self.meets(others, node, start, job.wall) for node in nodes) >= job.n
            for start in starts
            for begin, end in times
        )  # fmt: skip

    def ever_fits(self, job: Job) -> bool:
        """Return whether a job fits between repeated reservations or on the other nodes."""
        assert job.partition
        wanted, late = self.request_of(job), self.late(self.now)
        if wanted and wanted.every:
            return True
        closed = [w for w in self.windows if w.every and not self.is_open(w, job)]
        return any(
            sum(not self.meets(closed, n, at, job.wall) for n in job.partition.nodes) >= job.n
            for at in range(late, late + self.cycle())
        )

    def meets(self, windows: list[Window], node: int, start: int, wall: int) -> bool:
        """Return whether a node belongs to one of these reservations in a time."""
        return any(
            node in window.nodes
            and window.times(start)[:1]
            and window.times(start)[0][0] < start + wall
            for window in windows
        )

    def late(self, now: int) -> int:
        """Return a time at which all reservations are over or repeated."""
        return max([now, *(window.begin + window.length for window in self.windows)])

    def cycle(self) -> int:
        """Return a time after which all repeated reservations are as before."""
        return math.lcm(*(window.every or 1 for window in self.windows))

    def is_open(self, window: Window, job: Job) -> bool:
        """Return whether a job may use a reservation.

        Program: a job that requested one may use no other.
        """
        wanted = self.request_of(job)
        return window is wanted if wanted else window.has(job)

    def can_use(self, node: int, job: Job, start: int, times: list[Time]) -> bool:
        """Return whether a job may use a node from a start (site-rules: reservations)."""
        end, wanted = start + job.wall, self.request_of(job)
        mine = [time for time in times if time.window is wanted]
        if mine and (wanted.every or start < mine[-1].end):  # only in its time, on its nodes
            if node not in wanted.nodes or not any(t.begin <= start and end <= t.end for t in mine):
                return False
        return not any(
            node in t.window.nodes and t.begin < end and start < t.end
            for t in times if not self.is_open(t.window, job)
        )  # fmt: skip

    def binds(self, time: Time, place: Place) -> bool:
        """Return whether a reservation changes a plan that was made without it (module)."""
        job = place.job
        assert job.partition
        inside = time.window.nodes & job.partition.nodes
        if not inside or self.request_of(job) is time.window:
            return bool(inside)
        if self.is_open(time.window, job):  # program: not if the job can use no other node
            return time.begin <= place.start == self.now and inside != job.partition.nodes
        return time.begin < place.end and place.start < time.end

    # ---- plan

    def groups(self) -> list[list[Partition]]:
        """Return the partitions, joined if they share nodes (site: others are independent)."""
        groups: list[list[Partition]] = []
        for partition in self.partitions:
            near = [g for g in groups if any(p.nodes & partition.nodes for p in g)]
            groups = [g for g in groups if g not in near]
            groups.append([*(p for g in near for p in g), partition])
        return groups

    def ordered(self, group: list[Partition]) -> list[Job]:
        """Return the queue of a group (site: tiers first, then equal orders together)."""
        orders = [(p.tier, p.order) for p in sorted(group, key=lambda p: p.index)]

        def key(job: Job) -> tuple[int, ...]:
            p = job.partition
            assert p
            values = {
                "fcfs": job.queued, "shortest": job.wall, "largest": -job.n, "smallest": job.n,
            }  # fmt: skip
            place = orders.index((p.tier, p.order))
            return -p.tier, place, -job.failed, values[p.order], job.serial

        return sorted([job for job in self.queue if job.partition in group], key=key)

    def decide(self, group: list[Partition]) -> None:
        """Plan, and again with the reservations that bind then, until no other binds."""
        queue = self.ordered(group)
        nodes = frozenset(node for partition in group for node in partition.nodes)
        near = [
            Time(w, *time) for w in self.windows if w.nodes & nodes for time in w.times(self.now)
        ]
        # site-rules: nothing changes until a planned job overlaps; program: then until the end
        binding = self.bound.setdefault(group[0].index, set())
        binding.intersection_update(near)
        more = True
        while more:
            plan = self.plan(group, queue, binding)
            more = [t for t in near if t not in binding and any(self.binds(t, p) for p in plan)]
            binding.update(more)
        if binding:
            self.seen.add("reservations")
        for place in plan:
            if place.start == self.now:
                self.begin(place, group, binding)

    def cell_of(self, node: int, group: list[Partition], binding: set[Time]) -> Cell:
        """Return the cell of a node: its partitions, and its reservations that bind."""
        return (
            frozenset(p for p in group if node in p.nodes),
            frozenset(t for t in binding if node in t.window.nodes),
        )

    def plan(self, group: list[Partition], queue: list[Job], binding: set[Time]) -> list[Place]:
        """Return the places of jobs (site: under EASY, one reservation in each partition)."""
        cells: dict[Cell, list[int]] = {}
        for node in range(self.n_nodes):
            if any(node in p.nodes for p in group):
                cells.setdefault(self.cell_of(node, group, binding), []).append(node)
        taken, made, blocked = [], [], set()
        for job in self.running:
            if job.partition in group:
                used = {c: len(job.nodes & {*cells[c]}) for c in cells}
                taken.append(Place(job, job.start, job.start + job.wall, used))
        for job in queue:
            place = self.first_fit(job, cells, [*taken, *made], [*binding])
            if place is None:
                continue
            if place.start > self.now:
                if self.depth == "greedy" or (self.depth == "easy" and job.partition in blocked):
                    continue
                blocked.add(job.partition)
            made.append(place)
        return made

    def first_fit(
        self, job: Job, cells: dict[Cell, list[int]], places: list[Place], binding: list[Time]
    ) -> Place | None:
        """Return the earliest place of a job."""
        binding = sorted(binding, key=lambda time: time.end)
        starts = {self.now, *(p.end for p in places)}
        starts.update(date for time in binding for date in (time.begin, time.end))
        for start in sorted(start for start in starts if start >= self.now):
            over = [p for p in places if p.start < start + job.wall and p.end > start]
            dates = [start, *(p.start for p in over if p.start > start)]
            left, used = job.n, {}
            for cell in self.preferred(job, cells):
                if job.partition in cell[0] and self.can_use(cells[cell][0], job, start, binding):
                    busy = max(
                        sum(p.used.get(cell, 0) for p in over if p.start <= at < p.end)
                        for at in dates
                    )
                    used[cell] = min(left, len(self.up & {*cells[cell]}) - busy)
                    left -= used[cell]
            if not left:
                return Place(job, start, start + job.wall, used)
        return None

    def preferred(self, job: Job, cells: dict[Cell, list[int]]) -> list[Cell]:
        """Return the cells in the order in which a job uses them (module: the fewest first)."""

        def key(cell: Cell) -> tuple[bool, int, int]:
            partitions, times = cell
            # site-rules: jobs prefer nodes that are open to them (program: now, not at the start)
            mine = any(self.is_open(t.window, job) and t.begin <= self.now for t in times)
            # program: each time of a reservation counts
            return not mine, len(partitions) + len(times), cells[cell][0]

        return sorted(cells, key=key)

    def begin(self, place: Place, group: list[Partition], binding: set[Time]) -> None:
        """Start a job on the lowest free nodes of its cells (axes: any)."""
        job = place.job
        busy = {node for other in self.running for node in other.nodes}
        chosen: list[int] = []
        for cell, count in place.used.items():
            free = [
                node for node in sorted(self.up - busy)
                if self.cell_of(node, group, binding) == cell
            ]  # fmt: skip
            chosen += free[:count]
        assert len(chosen) == job.n
        job.nodes, job.start = frozenset(chosen), self.now
        job.end = self.now + min(job.run, job.wall)
        self.queue.remove(job)
        self.running.append(job)
