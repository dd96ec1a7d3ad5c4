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

    def times(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the times of the reservation that overlap with ``[start, end)``."""
        begin, found = self.begin, []
        if self.every and begin + self.length <= start:
            begin += (start - begin - self.length) // self.every * self.every
        while begin < end:
            if begin + self.length > start:
                found.append((begin, begin + self.length))
            if not self.every:
                break
            begin += self.every
        return found

    def holds(self, start: int, end: int) -> bool:
        """Return whether ``[start, end)`` is within one time of the reservation."""
        return any(b <= start and end <= e for b, e in self.times(start, end))

    @property
    def last_end(self) -> int:
        """The time from which the reservation never returns."""
        return NEVER if self.every else self.begin + self.length

    def has(self, job: Job) -> bool:
        """Return whether a job belongs to the users and accounts of the reservation."""
        user, account = job.user in self.users, job.account in self.accounts
        return user or account  # program: in Slurm, a job must match both if both are stated


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
    """A rigid job, and its current attempt."""

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


Cell = tuple[frozenset[Partition], frozenset[Window]]


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
        # semantics: jobs of one time are submitted in the order of their ids, as text
        self.coming = sorted(jobs, key=lambda job: (job.submit, job.id))
        self.events = sorted(events, key=lambda event: (event[0], not event[1]))
        self.up = set(range(n_nodes))
        self.now, self.serials = -1, 0
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.rows: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.rejected: list[str] = []
        self.seen: set[str] = set()

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
            late = max(self.now, window.begin) + 2 * self.cycle()
            for begin, end in window.times(self.now, late):
                times += [end, begin] if wanted else [end]
        return min(time for time in times if time > self.now)

    def cycle(self) -> int:
        """Return a time after which all repeated reservations are as before."""
        return math.lcm(*(window.every or 1 for window in self.windows))

    def stop(self, job: Job) -> None:
        """End the attempt of a job."""
        name = f"{job.id}#{job.attempt}" if job.attempt else job.id
        self.rows.append((name, job.start, self.now, tuple(sorted(job.nodes))))
        self.running.remove(job)

    def enter(self, job: Job) -> None:
        """Put a job into the queue, or reject it."""
        job.partition = self.partition_of(job)
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
        hit = []
        while self.events and self.events[0][0] == self.now:
            _, available, node = self.events.pop(0)
            if available:
                self.up.add(node)
            else:
                self.up.discard(node)
                hit += [job for job in self.running if node in job.nodes and job not in hit]
        for job in sorted(hit, key=lambda job: job.serial):
            self.stop(job)
            job.attempt, job.failed = job.attempt + 1, True
            self.put(job)
            self.seen.add("failures")

    # ---- reservations

    def can_use(self, node: int, job: Job, start: int, windows: list[Window]) -> bool:
        """Return whether a job may use a node from a start (site-rules: reservations)."""
        wanted = self.request_of(job)
        if wanted and start < wanted.last_end:  # site-rules: only in its time, on its nodes
            if node not in wanted.nodes or not wanted.holds(start, start + job.wall):
                return False
        return not any(
            node in window.nodes and window.times(start, start + job.wall)
            for window in windows
            if not self.is_open(window, job)
        )

    def request_of(self, job: Job) -> Window | None:
        """Return the reservation that a job waits for (site-rules: not if it never fits in it)."""
        assert job.partition
        for window in self.windows:
            if window.name == job.requested and window.last_end > self.now:
                return window if self.fits_in(job, window) else None
        return None

    def fits_in(self, job: Job, window: Window) -> bool:
        """Return whether a job fits into a reservation on an empty machine, now or later."""
        assert job.partition
        in_time = job.wall <= window.length
        return in_time and len(job.partition.nodes & window.nodes) >= job.n

    def is_open(self, window: Window, job: Job) -> bool:
        """Return whether a job may use a reservation."""
        return window is self.request_of(job) or window.has(job)

    def ever_fits(self, job: Job) -> bool:
        """Return whether a job fits between repeated reservations or on the other nodes."""
        assert job.partition
        late = max([self.now, *(window.begin for window in self.windows)])
        repeated = [window for window in self.windows if window.every]
        return any(
            sum(self.can_use(node, job, start, repeated) for node in job.partition.nodes) >= job.n
            for start in range(late, late + self.cycle())
        )

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
        orders = [(p.tier, p.order) for p in self.partitions]

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
        """Plan without reservations, then with those that bind, until no other binds."""
        queue = self.ordered(group)
        nodes = frozenset(node for partition in group for node in partition.nodes)
        near = [window for window in self.windows if window.nodes & nodes]
        binding: set[Window] = set()
        while True:
            plan = self.plan(group, queue, binding)
            more = [w for w in near if w not in binding and any(self.binds(w, p) for p in plan)]
            if not more:
                break
            binding.update(more)
        if binding:
            self.seen.add("reservations")
        for place in plan:
            if place.start == self.now:
                self.begin(place, group, binding)

    def binds(self, window: Window, place: Place) -> bool:
        """Return whether a reservation changes a plan that was made without it (module)."""
        job = place.job
        assert job.partition
        if not window.nodes & job.partition.nodes:
            return False
        if self.request_of(job) is window:
            return True
        if self.is_open(window, job):
            return place.start == self.now and bool(window.times(self.now, self.now + 1))
        return bool(window.times(place.start, place.end))

    def cell_of(self, node: int, group: list[Partition], binding: set[Window]) -> Cell:
        """Return the cell of a node: its partitions, and its reservations that bind."""
        return (
            frozenset(p for p in group if node in p.nodes),
            frozenset(w for w in binding if node in w.nodes),
        )

    def plan(self, group: list[Partition], queue: list[Job], binding: set[Window]) -> list[Place]:
        """Return the places of jobs (site: under EASY, one reservation in each partition)."""
        nodes = [n for n in sorted(self.up) if any(n in p.nodes for p in group)]
        cells: dict[Cell, list[int]] = {}
        for node in nodes:
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
        self, job: Job, cells: dict[Cell, list[int]], places: list[Place], binding: list[Window]
    ) -> Place | None:
        """Return the earliest place of a job."""
        late = max([self.now, *(p.end for p in places), *(w.begin + w.length for w in binding)])
        starts = {self.now, *(place.end for place in places)}
        for window in binding:
            for times in window.times(self.now, late + 2 * self.cycle()):
                starts.update(times)
        for start in sorted(start for start in starts if start >= self.now):
            over = [p for p in places if p.start < start + job.wall and p.end > start]
            dates = [start, *(p.start for p in over if p.start > start)]
            left, used = job.n, {}
            for cell in self.preferred(job, start, cells):
                if job.partition in cell[0] and self.can_use(cells[cell][0], job, start, binding):
                    busy = [
                        sum(p.used.get(cell, 0) for p in over if p.start <= at < p.end)
                        for at in dates
                    ]
                    used[cell] = min(left, len(cells[cell]) - max(busy))
                    left -= used[cell]
            if not left:
                return Place(job, start, start + job.wall, used)
        return None

    def preferred(self, job: Job, start: int, cells: dict[Cell, list[int]]) -> list[Cell]:
        """Return the cells in the order in which a job uses them."""

        def key(cell: Cell) -> tuple[bool, int, int]:
            partitions, windows = cell
            # site-rules: jobs prefer the nodes of a reservation that is open to them
            mine = any(self.is_open(w, job) and w.times(start, start + 1) for w in windows)
            return not mine, len(partitions) + len(windows), min(cells[cell])

        return sorted(cells, key=key)

    def begin(self, place: Place, group: list[Partition], binding: set[Window]) -> None:
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
