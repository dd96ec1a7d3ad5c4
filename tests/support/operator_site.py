# SPDX-License-Identifier: Apache-2.0
"""A cluster with three partitions, failures and checkpoints, whose truth is known.

The generator shares no code with rebat. It schedules each partition with EASY backfilling, and
writes what Slurm would record: ``sacct``, ``sacctmgr show event`` and ``scontrol show partition``.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field
from pathlib import Path

ORIGIN = 1_700_000_000
DAY = 86_400
PARTITIONS = {"short": (0, 48), "long": (48, 120), "gpu": (120, 160)}
"""First node of each partition, and the node after the last."""

MAX_TIME = {"short": 6 * 3600, "long": 3 * DAY, "gpu": 1 * DAY}
USERS = [f"user{i:02}" for i in range(12)]
CHECKPOINTING = USERS[::3]
PERIOD, COST, RECOVERY = 3600, 60, 60


@dataclass
class SiteJob:
    name: int
    partition: str
    user: str
    submit: int
    nodes: int
    run: int
    wall: int
    ended: int = 0
    first_start: int | None = None
    period: int = PERIOD


@dataclass
class SiteAttempt:
    job: SiteJob
    submit: int
    start: int
    nodes: list[int]
    length: int
    wall: int
    saved_before: int
    recovery: int
    end: int = 0
    state: str = "COMPLETED"
    saved: int = 0


@dataclass
class SiteTruth:
    """What happened: all attempts, node failures (node, down, up), and lost node-hours."""

    jobs: list[SiteJob]
    attempts: list[SiteAttempt] = field(default_factory=list)
    failures: list[tuple[int, int, int]] = field(default_factory=list)

    def lost_h(self, partition: str | None = None) -> float:
        """Return the node-hours of work that failures destroyed."""
        return sum(
            (a.end - a.start - a.saved) * len(a.nodes)
            for a in self.attempts
            if a.state == "NODE_FAIL" and partition in (None, a.job.partition)
        ) / 3600  # fmt: skip

    @property
    def mean_flow(self) -> float:
        return sum(job.ended - job.submit for job in self.jobs) / len(self.jobs)


def made_jobs(seed: int, days: int = 60, load: float = 0.8) -> list[SiteJob]:
    """Return jobs of all partitions."""
    rng = random.Random(seed)
    jobs: list[SiteJob] = []
    for partition, (first, end) in PARTITIONS.items():
        n_nodes, most = end - first, MAX_TIME[partition]
        at, used = 0.0, 0.0
        capacity = n_nodes * days * DAY * load
        rows = []
        while used < capacity:
            size = min(n_nodes // 2, 2 ** rng.choice([0, 0, 0, 1, 1, 2, 2, 3, 4]))
            run = int(min(most * 0.9, max(60, rng.lognormvariate(math.log(most / 6), 1.2))))
            wall = min(most, math.ceil(run * rng.choice([1.1, 1.5, 2, 4]) / 600) * 600 + 600)
            rows.append((size, run, max(wall, run + 60)))
            used += size * run
        gap = days * DAY / len(rows)
        for size, run, wall in rows:
            at += rng.expovariate(1 / gap)
            user = rng.choice(USERS)
            jobs.append(SiteJob(0, partition, user, int(at), size, run, wall))
    jobs.sort(key=lambda job: job.submit)
    for number, job in enumerate(jobs, start=1001):
        job.name = number
    return jobs


def made_failures(
    seed: int, n_nodes: int, until: int, mtbf_days: float
) -> list[tuple[int, int, int]]:
    """Return (node, down, up) of all nodes, in order of time."""
    rng = random.Random(f"failures {seed}")
    rows = []
    for node in range(n_nodes):
        at = 0.0
        while True:
            at += rng.expovariate(1 / (mtbf_days * DAY))
            if at >= until:
                break
            up = at + max(600, rng.lognormvariate(math.log(4 * 3600), 0.7))
            rows.append((node, int(at), int(up)))
            at = up
    return sorted(rows, key=lambda row: row[1])


def saved_in(job: SiteJob, ran: int, checkpoints: bool) -> int:
    """Return the work until the last complete checkpoint of an attempt that ran for some time."""
    return ran // (job.period + COST) * (job.period + COST) if checkpoints else 0


def played(
    jobs: list[SiteJob],
    failures: list[tuple[int, int, int]],
    *,
    checkpointing: tuple[str, ...] = tuple(CHECKPOINTING),
    shortest: bool = False,
    mtbf_s: float = 0.0,
) -> SiteTruth:
    """Schedule all partitions with EASY backfilling, and return what happened.

    With ``mtbf_s`` of the machine, jobs write checkpoints by Young's formula, and run longer by
    the time to write them. Otherwise, the run times of jobs contain their checkpoints.
    """
    truth = SiteTruth(jobs, failures=failures)
    for job in jobs:
        job.period = PERIOD
        if mtbf_s:
            n_nodes = max(end for _, end in PARTITIONS.values())
            job.period = int(math.sqrt(2 * COST * mtbf_s * n_nodes / job.nodes))
            longer = job.run // job.period * COST
            job.run, job.wall = job.run + longer, job.wall + longer
    for partition, (first, end) in PARTITIONS.items():
        own = [job for job in jobs if job.partition == partition]
        downs = [row for row in failures if first <= row[0] < end]
        truth.attempts += _played(own, downs, first, end, set(checkpointing), shortest)
    truth.attempts.sort(key=lambda a: (a.end, a.job.name))
    return truth


def _played(jobs, downs, first, end, checkpointing, shortest) -> list[SiteAttempt]:
    events: list[tuple[int, int, str, object]] = []
    order = iter(range(10**9))

    def push(at: int, rank: int, kind: str, value: object) -> None:
        heapq.heappush(events, (at, rank, next(order), kind, value))

    for job in jobs:
        push(job.submit, 1, "submit", SiteAttempt(job, job.submit, 0, [], job.run, job.wall, 0, 0))
    for node, down, up in downs:
        push(down, 2, "down", node)
        push(up, 2, "up", node)
    free = set(range(first, end))
    down_now: set[int] = set()
    queue: list[SiteAttempt] = []
    running: list[SiteAttempt] = []
    done: list[SiteAttempt] = []

    def key(a: SiteAttempt):
        failed = a.submit > a.job.submit
        return (not failed, a.submit if failed or not shortest else a.wall, a.job.name)

    def start(a: SiteAttempt, now: int) -> None:
        a.nodes = sorted(free)[: a.job.nodes]
        free.difference_update(a.nodes)
        a.start = now
        if a.job.first_start is None:
            a.job.first_start = now
        running.append(a)
        push(now + a.length, 0, "end", a)

    while events:
        now = events[0][0]
        hit = []
        while events and events[0][0] == now:
            _, _, _, kind, value = heapq.heappop(events)
            if kind == "end" and value in running and value.start + value.length == now:
                running.remove(value)
                value.end, value.job.ended = now, now
                done.append(value)
                free.update(n for n in value.nodes if n not in down_now)
            elif kind == "submit":
                queue.append(value)
            elif kind == "down":
                down_now.add(value)
                free.discard(value)
                hit += [a for a in running if value in a.nodes and a not in hit]
            elif kind == "up":
                down_now.discard(value)
                if not any(value in a.nodes for a in running):
                    free.add(value)
        for a in hit:
            running.remove(a)
            a.end, a.state = now, "NODE_FAIL"
            ran = max(0, now - a.start - a.recovery)
            a.saved = saved_in(a.job, ran, a.job.user in checkpointing)
            done.append(a)
            free.update(n for n in a.nodes if n not in down_now)
            recovery = RECOVERY if a.job.user in checkpointing else 0
            length = a.length - a.recovery - a.saved + recovery
            wall = max(1, a.wall - a.recovery - a.saved + recovery)
            queue.append(SiteAttempt(a.job, now, 0, [], length, wall, a.saved, recovery))
        queue.sort(key=key)
        while queue and queue[0].job.nodes <= len(free):
            start(queue.pop(0), now)
        if queue and free:
            _backfill(queue, running, free, now, start)
    return done


def _backfill(queue, running, free, now, start) -> None:
    """Start jobs that do not delay the head of the queue."""
    need, available, shadow = queue[0].job.nodes, len(free), math.inf
    for a in sorted(running, key=lambda a: a.start + a.wall):
        available += len(a.nodes)
        if available >= need:
            shadow = a.start + a.wall
            break
    extra = available - need if shadow < math.inf else len(free)
    for a in queue[1:]:
        if a.job.nodes > len(free):
            continue
        if now + a.wall <= shadow:
            queue.remove(a)
            start(a, now)
        elif a.job.nodes <= extra:
            extra -= a.job.nodes
            queue.remove(a)
            start(a, now)


def node(number: int) -> str:
    return f"c{number + 1:03}"


def folded(nodes: list[int]) -> str:
    """Return names of nodes in short form."""
    parts, nodes = [], sorted(nodes)
    i = 0
    while i < len(nodes):
        j = i
        while j + 1 < len(nodes) and nodes[j + 1] == nodes[j] + 1:
            j += 1
        last = f"-{nodes[j] + 1:03}" if j > i else ""
        parts.append(f"{nodes[i] + 1:03}{last}")
        i = j + 1
    return f"c[{','.join(parts)}]"


FIELDS = (
    "JobID|JobIDRaw|Cluster|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|"
    "Suspended|State|NNodes|NCPUS|ReqMem|TimelimitRaw|NodeList|JobName|Priority"
)


def write_records(truth: SiteTruth, folder: Path) -> None:
    """Write jobs.txt, events.txt, partitions.txt and checkpoints.csv."""
    rows = [FIELDS]
    for a in sorted(truth.attempts, key=lambda a: (a.job.name, a.start)):
        job, n = a.job, len(a.nodes)
        times = (ORIGIN + a.submit, ORIGIN + a.submit, ORIGIN + a.start, ORIGIN + a.end)
        cells = [
            job.name, job.name, "site", job.user, "lab", job.partition, "normal", *times,
            a.end - a.start, "00:00:00", a.state, n, 4 * n, "8000M", math.ceil(a.wall / 60),
            folded(a.nodes), "work", 1000,
        ]  # fmt: skip
        rows.append("|".join(map(str, cells)))
    (folder / "jobs.txt").write_text("\n".join(rows) + "\n")
    events = ["Cluster|NodeName|TimeStart|TimeEnd|StateRaw|State|Reason"]
    events += [
        f"site|{node(number)}|{ORIGIN + down}|{ORIGIN + up}|1|DOWN*|Not responding"
        for number, down, up in truth.failures
    ]
    (folder / "events.txt").write_text("\n".join(events) + "\n")
    blocks = [
        f"PartitionName={name}\n   AllowGroups=ALL Default={'YES' if name == 'short' else 'NO'}\n"
        f"   DefaultTime=NONE MaxNodes=UNLIMITED MaxTime={MAX_TIME[name] // 60 // 60}:00:00\n"
        f"   Nodes={folded([*range(first, end)])}\n   PriorityTier=1 State=UP\n"
        for name, (first, end) in PARTITIONS.items()
    ]
    (folder / "partitions.txt").write_text("\n".join(blocks))
    table = ["user,period,cost,recovery"]
    table += [f"{user},{PERIOD}s,{COST}s,{RECOVERY}s" for user in CHECKPOINTING]
    (folder / "checkpoints.csv").write_text("\n".join(table) + "\n")


def made_site(seed: int, folder: Path, days: int = 60, mtbf_days: float = 40.0) -> SiteTruth:
    """Write the records of a site, and return the truth."""
    jobs = made_jobs(seed, days)
    until = max(job.submit for job in jobs)
    truth = played(jobs, made_failures(seed, 160, until, mtbf_days))
    write_records(truth, folder)
    return truth
