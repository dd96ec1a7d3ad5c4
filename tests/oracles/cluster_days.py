# SPDX-License-Identifier: Apache-2.0
"""A cluster whose jobs migrate by checkpoint/restart, after Rodriguez-Pascual et al. 2019.

The state is a list of queued jobs and a list of running jobs. Everything else is computed from
these lists when it is needed. No code is shared with the package. All times are whole
microseconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

SECOND = 1_000_000
MODES = ("cluster", "compaction", "priorities", "tiers")
PERIODIC = ("compaction", "priorities")


@dataclass(frozen=True)
class OracleJob:
    """A job as submitted; its walltime is longer than its run time."""

    id: str
    cores: int
    run_us: int
    submit_us: int
    walltime_us: int
    memory_mb: float = 100.0
    checkpointable: bool = True
    partition: str | None = None


@dataclass(frozen=True)
class Piece:
    """One execution without interruption; the pieces of a job are numbered from 0."""

    job: str
    number: int
    start_us: int
    end_us: int
    cores: tuple[int, ...]
    overhead_us: int


@dataclass
class Task:
    """A job with its remaining work and walltime, and its present piece while it runs."""

    job: OracleJob
    work_us: int
    walltime_us: int
    place: int
    number: int = 0
    start_us: int = 0
    overhead_us: int = 0
    cores: tuple[int, ...] = ()

    def end_us(self) -> int:
        """Return when the piece ends if nothing interrupts it."""
        return self.start_us + self.overhead_us + self.work_us

    def done_us(self, now: int) -> int:
        """Return the work done in the piece until now; the overhead comes first and is no work."""
        return max(0, now - self.start_us - self.overhead_us)


def place(
    free: Iterable[int], nodes: Sequence[int], size: int, cores_per_node: int, fit: str
) -> tuple[int, ...] | None:
    """Return the cores of the nodes that a job gets, or None if it does not fit."""
    by_node = {node: [c for c in sorted(free) if c // cores_per_node == node] for node in nodes}
    enough = [node for node in nodes if len(by_node[node]) >= size]
    if enough:
        chosen = min(enough, key=lambda node: len(by_node[node])) if fit == "best" else enough[0]
        return tuple(by_node[chosen][:size])
    order = list(nodes)
    if fit == "best":
        order.sort(key=lambda node: -len(by_node[node]))
    taken = [core for node in order for core in by_node[node]][:size]
    return tuple(sorted(taken)) if len(taken) == size else None


class Cluster:
    """The state of the cluster at one time, and the rules that change it."""

    def __init__(
        self,
        n_nodes: int,
        cores_per_node: int,
        cost_us: Callable[[int, float], int],
        mode: str,
        targets: str,
        fit: str,
        n_high: int,
    ) -> None:
        if (
            mode not in MODES
            or targets not in ("single", "several")
            or fit not in ("best", "first")
        ):
            raise ValueError(f"no such rule: {mode}, {targets}, {fit}")
        self.n_nodes, self.cores_per_node, self.cost_us = n_nodes, cores_per_node, cost_us
        self.mode, self.targets, self.fit = mode, targets, fit
        self.now = 0
        self.queue: list[Task] = []  # all have the same priority: ordered by submission
        self.running: list[Task] = []
        self.pieces: list[Piece] = []
        nodes = list(range(n_nodes))
        self.partitions: dict[str, list[int]] = {"all": nodes}
        if mode == "priorities":
            self.partitions = {"high": nodes[:n_high], "low": nodes[n_high:]}
        if mode == "tiers":
            self.partitions = {"normal": nodes, "eternal": nodes[::-1]}

    # Queries of the state

    def free(self) -> set[int]:
        """Return the cores that no running job holds."""
        held = {core for task in self.running for core in task.cores}
        return set(range(self.n_nodes * self.cores_per_node)) - held

    def free_of(self, node: int) -> list[int]:
        """Return the free cores of a node, ascending."""
        return sorted(core for core in self.free() if core // self.cores_per_node == node)

    def used(self, node: int) -> int:
        """Return the number of cores of a node that running jobs hold."""
        return self.cores_per_node - len(self.free_of(node))

    def share(self, task: Task, node: int) -> list[int]:
        """Return the cores of a node that this running job holds, ascending."""
        return sorted(core for core in task.cores if core // self.cores_per_node == node)

    def place_in(self, name: str, task: Task, free: Iterable[int]) -> tuple[int, ...] | None:
        """Apply the placement rule in a partition."""
        nodes = self.partitions[name]
        return place(free, nodes, task.job.cores, self.cores_per_node, self.fit)

    def cost_of(self, task: Task) -> int:
        """Return the time that a checkpoint/restart of a job costs, in microseconds."""
        return self.cost_us(task.job.cores, task.job.memory_mb)

    def worth_moving(self, task: Task) -> bool:
        """Whether a job can be checkpointed and its remaining walltime exceeds the cost of this."""
        left_us = task.walltime_us - task.done_us(self.now)
        return task.job.checkpointable and left_us > self.cost_of(task)

    def tried(self, task: Task) -> list[str]:
        """Return the partitions that are tried for a job, in order."""
        name = task.job.partition
        if self.mode == "tiers":
            names = [name or "normal"]
        elif self.mode == "priorities":
            names = [name] if name else ["high", "low"]
        else:
            names = ["all"]
        if any(name not in self.partitions for name in names):
            raise ValueError(f"job {task.job.id} names the partition {name}")
        room = {name: len(self.partitions[name]) * self.cores_per_node for name in names}
        return [name for name in names if room[name] >= task.job.cores] or names

    # Starts, ends and checkpoints

    def start(self, task: Task, cores: tuple[int, ...]) -> None:
        """Start a job, or start it again, on free cores."""
        assert len(set(cores)) == task.job.cores and set(cores) <= self.free()
        task.start_us, task.cores = self.now, tuple(sorted(cores))
        task.overhead_us = self.cost_of(task) if task.number else 0
        self.running.append(task)

    def stop(self, task: Task) -> None:
        """End the piece of a running job now; update the job's remaining work and walltime."""
        done_us = task.done_us(self.now)
        piece = Piece(
            task.job.id, task.number, task.start_us, self.now, task.cores, task.overhead_us
        )
        self.pieces.append(piece)
        self.running.remove(task)
        task.work_us -= done_us
        task.walltime_us -= done_us
        task.number += 1

    # The queue

    def start_queued(self) -> None:
        """Walk the queue; repeat this until a walk ends without a preemption."""
        while self.walk():
            pass

    def walk(self) -> bool:
        """Start jobs from the head of the queue; return True once a job has preempted others."""
        order = list(self.queue)
        if self.mode == "tiers":
            order.sort(key=lambda task: self.tried(task) == ["eternal"])
        blocked: set[str] = set()
        for task in order:
            names = [name for name in self.tried(task) if name not in blocked]
            places = [self.place_in(name, task, self.free()) for name in names]
            fitting = [cores for cores in places if cores is not None]
            if fitting:
                self.queue.remove(task)
                self.start(task, fitting[0])
            elif names == ["normal"] and self.preempt(task):
                return True
            else:
                blocked.update(names)
        return False

    def preempt(self, task: Task) -> bool:
        """Put eternal jobs back in the queue if a normal job then fits; return whether it fits."""
        eternal = [
            other
            for other in self.running
            if other.job.partition == "eternal" and other.job.checkpointable
        ]
        theirs = {core for other in eternal for core in other.cores}
        chosen = self.place_in("normal", task, self.free() | theirs)
        if chosen is None:
            return False
        for other in sorted(eternal, key=lambda other: min(other.cores)):
            if set(other.cores) & set(chosen):
                self.stop(other)
                self.queue.append(other)
        self.queue.sort(key=lambda task: task.place)  # each at its earlier place
        return True

    # The periodic rules

    def apply_periodic_rule(self) -> None:
        """If the queue is empty, do at most one migration."""
        if not self.queue and self.mode == "compaction":
            self.compact()
        if not self.queue and self.mode == "priorities":
            self.promote()

    def compact(self) -> None:
        """Algorithm 1: empty the mixed node with the fewest used cores that can be emptied."""
        mixed = [n for n in range(self.n_nodes) if 0 < self.used(n) < self.cores_per_node]
        for node in sorted(mixed, key=lambda node: (self.used(node), node)):
            tasks = [task for task in self.running if self.share(task, node)]
            tasks.sort(key=lambda task: (-len(self.share(task, node)), self.share(task, node)[0]))
            sizes = [len(self.share(task, node)) for task in tasks]
            others = [other for other in mixed if other != node]
            if all(self.worth_moving(task) for task in tasks):
                goals = self.goals(sizes, others)
                if goals is not None:
                    self.migrate(node, tasks, goals)
                    return

    def goals(self, sizes: list[int], others: list[int]) -> list[int] | None:
        """Return the node that each share moves to, or None if a share does not fit on any node."""
        room = {node: len(self.free_of(node)) for node in others}
        if self.targets == "single":
            goal = self.goal(room, sum(sizes))
            return None if goal is None else [goal] * len(sizes)
        goals = []
        for size in sizes:
            goal = self.goal(room, size)
            if goal is None:
                return None
            goals.append(goal)
            room[goal] -= size
        return goals

    def goal(self, room: dict[int, int], size: int) -> int | None:
        """Return the node that ``size`` cores move to; ``room`` counts free cores by node."""
        enough = [node for node in sorted(room) if room[node] >= size]
        if self.fit == "best":
            enough.sort(key=lambda node: room[node])
        return enough[0] if enough else None

    def migrate(self, node: int, tasks: list[Task], goals: list[int]) -> None:
        """Move each job's share of a node to its goal; the jobs keep their cores on other nodes."""
        free = {goal: self.free_of(goal) for goal in goals}
        places = []
        for task, goal in zip(tasks, goals, strict=True):
            leaving = self.share(task, node)
            staying = [core for core in task.cores if core not in leaving]
            places.append((*staying, *free[goal][: len(leaving)]))
            del free[goal][: len(leaving)]
        for task in tasks:
            self.stop(task)
        for task, cores in zip(tasks, places, strict=True):
            self.start(task, cores)

    def promote(self) -> None:
        """Algorithm 2: move the largest job that can move from the low to the high partition."""
        high = set(self.partitions["high"])
        movable = [
            task
            for task in self.running
            if not any(core // self.cores_per_node in high for core in task.cores)
            and task.job.partition != "low"
            and self.worth_moving(task)
            and self.place_in("high", task, self.free()) is not None
        ]
        if movable:
            task = min(movable, key=lambda task: (-task.job.cores, min(task.cores)))
            self.stop(task)
            cores = self.place_in("high", task, self.free())
            assert cores is not None
            self.start(task, cores)


def simulate(
    jobs: Sequence[OracleJob],
    n_nodes: int,
    cores_per_node: int,
    *,
    cost_us: Callable[[int, float], int],
    mode: str,
    period_us: int = 60_000_000,
    targets: str = "single",
    fit: str = "best",
    n_high: int = 0,
    horizon_us: int | None = None,
) -> list[Piece]:
    """Return every piece of every job, sorted by start, job and number."""
    cluster = Cluster(n_nodes, cores_per_node, cost_us, mode, targets, fit, n_high)
    coming = sorted(jobs, key=lambda job: job.submit_us)
    assert all(0 < job.run_us < job.walltime_us and job.cores > 0 for job in coming)
    while coming or cluster.running:
        dates = [task.end_us() for task in cluster.running]
        dates += [job.submit_us for job in coming[:1]]
        if mode in PERIODIC and cluster.running:
            dates.append((cluster.now // period_us + 1) * period_us)
        now = cluster.now = min(dates)
        if horizon_us is not None and now >= horizon_us:
            cluster.now = horizon_us
            break
        for task in [task for task in cluster.running if task.end_us() == now]:
            cluster.stop(task)
        while coming and coming[0].submit_us == now:
            job = coming.pop(0)
            place = len(jobs) - len(coming)
            cluster.queue.append(Task(job, job.run_us, job.walltime_us, place))
        if now > 0 and now % period_us == 0:
            cluster.apply_periodic_rule()
        cluster.start_queued()
    if cluster.queue and horizon_us is None:
        raise ValueError(f"never fits: {cluster.queue[0].job.id}")
    for task in list(cluster.running):
        cluster.stop(task)
    return sorted(cluster.pieces, key=lambda piece: (piece.start_us, piece.job, piece.number))


def node_states(
    pieces: Sequence[Piece], n_nodes: int, cores_per_node: int, first_us: int, last_us: int
) -> tuple[float, float, float]:
    """Return the shares of a window's node time in which nodes are empty, mixed and full."""
    times = [0, 0, 0]
    for node in range(n_nodes):
        changes = [(first_us, 0), (last_us, 0)]
        for piece in pieces:
            held = sum(core // cores_per_node == node for core in piece.cores)
            start = min(max(piece.start_us, first_us), last_us)
            end = min(max(piece.end_us, first_us), last_us)
            changes += [(start, held), (end, -held)]
        changes.sort()
        used = 0
        for (date, change), (following, _) in pairwise(changes):
            used += change
            state = 0 if used == 0 else 2 if used == cores_per_node else 1
            times[state] += following - date
    whole = n_nodes * (last_us - first_us)
    return times[0] / whole, times[1] / whole, times[2] / whole


def day(
    load: float,
    seed: int,
    mean_cores: float = 2.0,
    mean_s: float = 1800.0,
    n_nodes: int = 8,
    cores_per_node: int = 16,
    hours: float = 24,
) -> list[OracleJob]:
    """Return random jobs, by arrival, whose total area is ``load`` times the machine's capacity."""
    rng = random.Random(seed)
    n_cores, length_us = n_nodes * cores_per_node, round(hours * 3600 * SECOND)
    drawn: list[tuple[int, int, int]] = []
    while sum(cores * run_us for _, cores, run_us in drawn) < load * n_cores * length_us:
        cores = min(n_cores, max(1, math.ceil(rng.expovariate(1 / mean_cores))))
        run_us = max(SECOND, round(rng.expovariate(1 / mean_s) * SECOND))
        drawn.append((rng.randrange(length_us), cores, run_us))
    return [
        OracleJob(f"job{number}", cores, run_us, submit_us, run_us + SECOND)
        for number, (submit_us, cores, run_us) in enumerate(sorted(drawn))
    ]
