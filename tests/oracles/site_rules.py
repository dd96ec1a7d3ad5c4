# SPDX-License-Identifier: Apache-2.0
"""A slow, plain simulator of limits, and of queue orders by usage and fair share.

It was written from the documentation, and shares no rule with rebat. ``python -m
tests.support.against_site_rules`` compares both. Sources are in parentheses: *site-rules* is
docs/how-to/site-rules.md, *axes* and *glossary* are pages of docs/reference. *Program* means that
no document decides, and that this module does what rebat does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from rebat.core.units import FOREVER_US
from tests.oracles.counts import first_fit
from tests.oracles.fair_share import CLOSE, FairShare, Member
from tests.oracles.formulas import evaluate

SECOND = 1_000_000


@dataclass(eq=False)
class Job:
    """A rigid job; times are in microseconds. ``owners`` are its user, account and queue."""

    id: str
    n: int
    submit: int
    wall: int
    run: int
    owners: dict[str, str] = field(default_factory=dict)
    rank: int = 0
    start: int = -1
    end: int = -1
    member: Member | None = None
    value: float = 0.0
    columns: dict[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Limit:
    """A maximum of running jobs and of their nodes; general if it has no names."""

    kind: str
    names: list[str]
    account: str
    jobs: float
    nodes: float

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Return the limit of a text like ``account=a:child=b:jobs=2``."""
        (kind, name), *words = [word.partition("=")[::2] for word in text.split(":")]
        names = [name] * bool(name) + [value for key, value in words if key == "child"]
        rest = dict(words)
        # program: 0 is no limit (in Slurm: no job may run)
        jobs, nodes = (float(rest.get(key, 0)) or math.inf for key in ("jobs", "nodes"))
        return cls(kind, names, rest.get("account", ""), jobs, nodes)

    def concerns(self, job: Job) -> bool:
        """Return whether the limit is one of the owners of a job."""
        name = job.owners.get(self.kind)
        if not name:  # program: a job without a user has no limit of users
            return False
        if self.account and job.owners.get("account") != self.account:
            return False
        return not self.names or name in self.names

    def counts(self, other: Job, job: Job) -> bool:
        """Return whether a running job counts for the limit of a job."""
        same = other.owners.get(self.kind) == job.owners[self.kind]
        return self.concerns(other) and (bool(self.names) or same)


def multifactor(text: str) -> str:
    """Return the formula of ``multifactor:age=W,fairshare=W,size=W,max_age=SECONDS``."""
    weights = dict(w.split("=") for w in text.partition(":")[2].replace(":", ",").split(","))
    oldest = weights.pop("max_age", "604800")
    parts = {"age": f"min(age/{oldest}, 1)", "size": "size/nodes"}
    terms = [f"{weight}*{parts.get(name, name)}" for name, weight in weights.items()]
    return f"floor({' + '.join(terms)})"  # Slurm's priorities are integers; site-rules: nothing


class Simulation:
    """One run."""

    def __init__(self, jobs: list[Job], n_nodes: int, options: dict[str, str]) -> None:
        self.n_nodes, self.options = n_nodes, options
        # semantics: jobs of one time are submitted in the order of their ids, as text
        self.coming = sorted(jobs, key=lambda job: (job.submit, job.id))
        self.queue: list[Job] = []  # in the order of entry
        self.running: list[Job] = []
        self.started: list[Job] = []
        self.rejected: list[str] = []
        self.doubts: set[str] = set()
        self.has_barred = False
        texts = options.get("limits", "").split("+")
        self.limits = [Limit.parse(text) for text in texts if text]
        self.fair = FairShare(options.get("shares", ""), self.doubts.add)
        self.half_life = float(options.get("half_life", 7 * 86400))
        self.now, self.sorted_at = 0, -FOREVER_US
        order = options.get("order", "fcfs")
        self.formula = multifactor(order) if order.startswith("multifactor") else order

    def run(self) -> None:
        """Simulate until all jobs have ended: ends, then submissions, then decisions."""
        while self.coming or self.running:
            self.now = min([j.end for j in self.running] + [j.submit for j in self.coming[:1]])
            self.running = [job for job in self.running if job.end > self.now]
            arrived = []
            while self.coming and self.coming[0].submit == self.now:
                arrived.append(self.coming.pop(0))
                self.enter(arrived[-1])
            self.decide(arrived)

    def enter(self, job: Job) -> None:
        """Put a job into the queue, or reject it (site-rules: larger than a limit)."""
        # program: a rejected job, too, is one of the jobs that name users and accounts
        job.member = self.fair.member_of(job.owners.get("user", ""), job.owners.get("account", ""))
        if job.n > min([self.n_nodes, *(limit.nodes for limit in self.limits_of(job))]):
            self.rejected.append(job.id)
        else:
            self.queue.append(job)

    # ---- limits

    def limits_of(self, job: Job) -> list[Limit]:
        """Return the limits of a job (site-rules: a limit with a name replaces the general one).

        Program: a limit of a user in an account replaces nothing, and a limit of several accounts
        replaces only the general limit of the first.
        """
        mine = [limit for limit in self.limits if limit.concerns(job)]
        replaced = {
            limit.kind
            for limit in mine
            if limit.names[:1] == [job.owners[limit.kind]] and not limit.account
        }
        return [limit for limit in mine if limit.names or limit.kind not in replaced]

    def is_barred(self, job: Job) -> bool:
        """Return whether a job would exceed a limit now."""
        for limit in self.limits_of(job):
            others = [other.n for other in self.running if limit.counts(other, job)]
            if len(others) + 1 > limit.jobs or sum(others) + job.n > limit.nodes:
                self.has_barred = True
                return True
        return False

    # ---- plan

    def decide(self, arrived: list[Job]) -> None:
        """Plan, and again without the jobs that are barred then, until no start is barred."""
        self.sort(arrived)
        again = True
        while again:
            again = False
            for job in self.plan([job for job in self.ordered() if not self.is_barred(job)]):
                if self.is_barred(job):
                    again = True
                    break
                job.start, job.end = self.now, self.now + min(job.run, job.wall)
                self.queue.remove(job)
                self.running.append(job)
                self.started.append(job)

    def plan(self, queue: list[Job]) -> list[Job]:
        """Return the jobs that start now (glossary: backfilling; axes: depth, reserve)."""
        reservations = {"greedy": 0, "easy": 1, "all": len(queue)}[self.options["depth"]]
        starts, taken = [], [(job.start, job.start + job.wall, job.n) for job in self.running]
        for job in queue:
            at = first_fit(self.n_nodes, taken, self.now, job.n, job.wall)
            if at == self.now:
                starts.append(job)
            elif reservations:  # program: also if it is after a job without a walltime
                reservations -= 1
            else:
                continue
            taken.append((at, at + job.wall, job.n))
        return starts

    # ---- order

    def ordered(self) -> list[Job]:
        """Return the queue: the largest value first, then the first entry."""
        queue = sorted(self.queue, key=lambda job: -job.value)
        for one, other in pairwise(queue):
            close = math.isclose(one.value, other.value, rel_tol=CLOSE, abs_tol=1e-12)
            if close and one.columns != other.columns:
                self.doubts.add("two values are equal except for rounding")
        return queue

    def sort(self, arrived: list[Job]) -> None:
        """Compute the values again, or those of new jobs (site-rules: order_period)."""
        if self.formula == "fcfs":
            return
        period = round(float(self.options.get("order_period", 0)) * SECOND)
        again = self.now >= self.sorted_at + period
        self.sorted_at = self.now if again else self.sorted_at
        for job in arrived:  # site-rules: users count from the entry of their first job
            member = job.member
            while member:
                member.exists = True
                member = member.above
        for job in [job for job in self.queue if again or job in arrived]:
            if "fairshare" in self.formula:
                self.fair.update(self.usage_of, self.options.get("fairshare_rule", "tree"))
            job.columns = self.columns(job)
            job.value = evaluate(self.formula, job.columns)

    def columns(self, job: Job) -> dict[str, float]:
        """Return the columns of a formula (site-rules: orders by formula)."""
        assert job.member
        return {
            "age": (self.now - job.submit) / SECOND,
            "size": job.n,
            "nodes": self.n_nodes,
            "class_": job.rank,
            "usage": self.usage_of(job.member),  # program: of the user in this account
            "fairshare": job.member.factor,
        }

    def usage_of(self, member: Member) -> float:
        """Return the node-seconds of a user (site-rules: if half_life old, they count half)."""
        jobs = [job for job in self.started if job.member is member]
        return sum(job.n * self.weight(job.start, min(job.end, self.now)) for job in jobs)

    def weight(self, start: int, end: int) -> float:
        """Return the integral of 2^(-age / half_life) from a start to an end, in seconds."""
        if not self.half_life:  # axes: usage does not decay
            return (end - start) / SECOND
        halved = [math.pow(2, (at - self.now) / SECOND / self.half_life) for at in (start, end)]
        return self.half_life / math.log(2) * (halved[1] - halved[0])


def rows_of(jobs: list[Job]) -> list[tuple[str, int, int]]:
    """Return id, start and end of jobs that ran."""
    return sorted((job.id, job.start, job.end) for job in jobs)
