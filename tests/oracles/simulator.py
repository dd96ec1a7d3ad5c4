# SPDX-License-Identifier: Apache-2.0
"""A slow, plain simulator of list scheduling under failures, written from the documentation.

It shares no rule with rebat. ``python -m tests.support.against_oracle`` compares both. Each rule
names its source: *paper* is Du, Marchal, Pallez and Robert (CCPE 2024), *program* is the program of
its authors (docs/node-stealing.md), *axes* and *semantics* are pages of the documentation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.formulas import divide, evaluate, formula_of

FOREVER = 2**62
REGULAR, VICTIM, FAILED = 1, 2, 3  # paper 7.2.1
STEPS = [m * 60_000_000 for m in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)]


class StuckError(Exception):
    """No event is left, but jobs wait."""


@dataclass(eq=False)
class Pattern:
    """Checkpoints of an execution, in microseconds: T, C, R, and T and R at the start."""

    period: int
    cost: int
    recovery: int
    first_period: int
    first_recovery: int

    @property
    def perfect(self) -> bool:
        return self.period + self.cost <= 1

    @property
    def first_end(self) -> int:
        return self.first_recovery + self.first_period + self.cost


@dataclass(eq=False)
class Job:
    """A job of the workload."""

    id: str
    n: int
    submit: int
    wall: int
    delay: int
    fails: bool
    pattern: Pattern | None
    user: str = ""
    rank: int = 0
    conditions: list[tuple[str, str]] = field(default_factory=list)
    array: str = ""
    partition: str = ""
    index: int = -1
    runs: list[Attempt] = field(default_factory=list)
    over: str = ""
    interruptions: int = 0


@dataclass(eq=False)
class Attempt:
    """One execution of a job."""

    job: Job
    number: int
    serial: int
    wall: int
    delay: int
    queued: int
    priority: int
    pattern: Pattern | None
    predicted: int = FOREVER
    value: float = 0.0
    start: int = -1
    seq: int = 0
    end: int = FOREVER
    state: str = ""
    nodes: frozenset[int] = frozenset()

    @property
    def id(self) -> str:
        return self.job.id + (f"#{self.number}" if self.number else "")

    @property
    def program_id(self) -> str:
        """The id in the authors' program (program: differences, `tie`)."""
        name = self.job.id
        return f"resubmit!{name}-{self.number}" if self.number else f"w0!{name}"


@dataclass(eq=False)
class Block:
    """Nodes that a plan reserves from a start to an end."""

    start: int
    end: int
    n: int
    nodes: frozenset[int]


@dataclass
class Record:
    """The end of an attempt."""

    id: str
    start: int
    end: int
    cause: str
    useful: int
    nodes: tuple[int, ...]


@dataclass(eq=False)
class Stop:
    """The stop of an attempt, and what its copy has left."""

    attempt: Attempt
    useful: int
    wait: int
    delay: int
    wall: int
    pattern: Pattern | None
    rest: int = 0
    in_doubt: bool = False


@dataclass(eq=False)
class Wait:
    """A failed job that waits for a victim, and the nodes that are held for it."""

    failed: Stop
    victim: Attempt
    stop: Stop
    victim_then: Stop
    decided: int
    failures: int
    nodes: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    since: int = 0
    until: int = 0
    placed: bool = True
    why: str = ""


DIALECT = {  # node-stealing.md: the paper's value and the program's value
    "semantics": ("paper", "authors"), "passes": ("one", "two"), "digits": ("all", "six"),
    "release": ("original", "resubmission"), "held": ("surviving", "lowest"),
    "hold_margin": ("0", "900"), "tie": ("order", "id"), "ended": ("together", "others-first"),
    "hit": ("failed", "victim"), "chosen": ("again", "once"), "k3": ("text", "program"),
}  # fmt: skip


@dataclass
class News:
    """What happened since the last plan."""

    arrived: list[Attempt] = field(default_factory=list)
    ended: bool = False
    failed: bool = False
    repaired: bool = False


@dataclass
class Left:
    """What remains after a stop: kept work, first period and recovery of the copy, and the wait."""

    useful: Any
    first_period: Any
    first_recovery: Any
    wait: Any


def left_after(p: Pattern, run: Any, timing: str, authors: bool, moment: Any) -> Left:
    """Return what remains (paper 7.2.2, figures 14 to 16), in any unit of time.

    With ``authors``: the two details of docs/node-stealing.md without an axis.
    """
    rf, tf, t, c, r = p.first_recovery, p.first_period, p.period, p.cost, p.recovery
    t1 = rf + tf + c
    if timing == "now":  # paper 4.1: from the last checkpoint
        if run <= t1:
            return Left(0, tf, rf if authors else r, 0)
        return Left(tf + c + (run - t1) // (t + c) * (t + c), t, r, 0)
    if timing == "proactive":  # figure 15
        if run <= rf:
            return Left(0, tf, r, moment if authors else 0)
        if run <= rf + tf:
            return Left(run - rf, tf - (run - rf), r, c)
        if run <= t1:
            return Left(tf + c, t, r, t1 - run)
        cycles = (run - t1) // (t + c)
        part = (run - t1) - cycles * (t + c)
        if part <= t:
            return Left(run - rf, t - part, r, c)
        return Left(tf + c + (cycles + 1) * (t + c), t, r, t + c - part)
    if run <= rf and not authors:  # figure 16
        return Left(0, tf, r, 0)
    cycles = max(0, -((t1 - run) // (t + c)))
    useful = tf + c + cycles * (t + c)
    return Left(useful, t, r, rf + useful - run)


def six(seconds: float) -> float:
    """Round to six significant digits (node-stealing.md: digits)."""
    return float(f"{seconds:.6g}")


def us(seconds: float) -> int:
    return round(seconds * 1e6)


ORDERS = (
    "fcfs", "fcfs-by-id", "priority", "shortest", "largest", "smallest", "lpt", "spt", "hpa",
    "lpa", "la", "sa", "ljf",
)  # fmt: skip


class Simulation:
    """One run."""

    def __init__(
        self, jobs: list[Job], n_nodes: int, events: list[tuple[int, bool, list[int]]],
        options: dict[str, Any], max_attempts: int, lazily: bool = False,
    ) -> None:  # fmt: skip
        self.jobs, self.n_nodes, self.options = jobs, n_nodes, options
        self.max_attempts = max_attempts
        self.events, self.lazily = events, lazily
        self.now, self.serials, self.seqs = 0, 0, 0
        self.up = set(range(n_nodes))
        self.queue: list[Attempt] = []
        self.running: list[Attempt] = []
        self.plan_of: dict[Attempt, Block] = {}
        self.records: list[Record] = []
        self.blocked: list[Attempt] = []
        self.changed: list[Job] = []  # started or ended, and their dependents are not considered
        self.rejections: list[tuple[str, str]] = []
        self.given_up: list[str] = []
        self.news = News()
        self.waits: list[Wait] = []
        self.chosen: list[Attempt] = []
        self.doomed: list[Attempt] = []
        self.doubts: set[str] = set()
        self.steals: list[int] = []
        self.steals_off: list[tuple[int, str]] = []
        self.holds: list[tuple[str, tuple[int, ...], int, int]] = []
        self.hold_margin = round(float(self.dialect("hold_margin")) * 1e6)
        self.order_before: list[Attempt] = []
        self.sorted_at = -FOREVER
        self.history: dict[str, list[tuple[int, int]]] = {}
        self.margin = round(float(options.get("margin", 0)) * 1e6)

    # ---- events

    def run(self) -> None:
        # semantics: jobs of one time are submitted in the order of their ids, as text
        coming = sorted(self.jobs, key=lambda job: (job.submit, job.id))
        # failures.md: at one time, repairs are before failures
        events = sorted(self.events, key=lambda e: (e[0], not e[1]))
        while coming or self.running or self.queue or self.waits or self.blocked:
            times = [a.end for a in self.running] + [j.submit for j in coming[:1]]
            times += [wait.until for wait in self.waits]
            times += [e[0] for e in events[:1]]
            if not times or (self.lazily and not events and not coming and not self.running):
                raise StuckError
            self.now = min(times)
            ended = self.end_attempts()
            while coming and coming[0].submit == self.now:
                self.submit(coming.pop(0))
            at = []
            while events and events[0][0] == self.now:
                at.append(events.pop(0))
            hit = self.change_nodes(at)
            self.unblock_all()
            # semantics: a job that is hidden from the policy causes no plan
            if ended or at or self.news.arrived or any(w.until == self.now for w in self.waits):
                self.react(hit, ended)

    def end_attempts(self) -> list[Attempt]:
        ended = sorted([a for a in self.running if a.end == self.now], key=lambda a: a.seq)
        for a in ended:
            self.running.remove(a)
            walltime = a.delay >= a.wall  # Batsim 4.2.1: also when equal
            cause = "walltime" if walltime else "job failed" if a.job.fails else "completed"
            recovery = a.pattern.first_recovery if a.pattern else 0
            self.record(a, cause, max(0, a.end - a.start - recovery))  # files.md: kept_seconds
            self.over(a.job, cause)
            self.history.setdefault(a.job.user, []).append((self.now, a.end - a.start))
            self.news.ended = True
        return ended

    def submit(self, job: Job) -> None:
        job.index = sum(j.index >= 0 for j in self.jobs)
        self.serials += 1
        a = Attempt(job, 0, self.serials, job.wall, job.delay, self.now, REGULAR, job.pattern)
        self.blocked.append(a)
        self.unblock(a)

    def unblock_all(self) -> bool:
        """Put the jobs into the queue that nothing blocks any more; return whether there are any.

        semantics: dependents of jobs that started or ended first, then tasks of arrays.
        """
        before = len(self.news.arrived)
        while self.changed:
            job = self.changed.pop(0)
            for a in [*self.blocked]:
                if any(name == job.id for _, name in a.job.conditions):
                    self.unblock(a)
        for a in [*self.blocked]:
            if self.is_ready(a) and not self.is_full(a.job.array):
                self.blocked.remove(a)
                self.enter(a)
        return len(self.news.arrived) > before

    def unblock(self, a: Attempt) -> None:
        """Put a job into the queue if nothing blocks it; reject it if a condition never holds."""
        conditions = a.job.conditions
        never = [f"{k}:{name}" for k, name in conditions if self.holds_now(k, name) is False]
        if never:
            self.blocked.remove(a)
            self.refuse(a, f"its dependency {never[0]} can never hold")
        elif self.is_ready(a) and not a.job.array:
            self.blocked.remove(a)
            self.enter(a)

    def is_ready(self, a: Attempt) -> bool:
        return all(self.holds_now(kind, name) for kind, name in a.job.conditions)

    def holds_now(self, kind: str, name: str) -> bool | None:
        """Return whether a condition holds; None if this is not known yet."""
        job = next(job for job in self.jobs if job.id == name)
        if kind == "after":
            return bool(job.over) or any(a.start >= 0 for a in job.runs) or None
        if not job.over:
            return None
        return kind == "afterany" or (job.over == "completed") == (kind == "afterok")

    def is_full(self, array: str) -> bool:
        """Return whether as many tasks of an array as allowed are in the queue or running."""
        active = [job for job in self.jobs if job.array == array and job.runs and not job.over]
        return bool(array) and len(active) >= int(array.rpartition("%")[2])

    def enter(self, a: Attempt) -> None:
        """Put an attempt into the queue."""
        if a.number:
            a.serial = self.serials = self.serials + 1
        a.queued = self.now
        a.job.runs.append(a)
        a.predicted = min(a.wall, self.predict(a))
        self.queue.append(a)
        self.news.arrived.append(a)

    def change_nodes(self, at: list[tuple[int, bool, list[int]]]) -> list[Attempt]:
        """Process repairs and failures; return the running attempts on failed nodes."""
        hit: list[Attempt] = []
        for _, available, nodes in at:
            if available:
                self.up.update(nodes)
                self.news.repaired = True
            else:
                self.up.difference_update(nodes)
                self.news.failed = True
                there = [a for a in self.running if a.nodes & set(nodes) and a not in hit]
                hit += sorted(there, key=lambda a: a.serial)
        return hit

    # ---- stops

    def left(self, a: Attempt, timing: str) -> Stop:
        """Return the stop of an attempt that is decided now."""
        run, p, authors = self.now - a.start, a.pattern, self.dialect("semantics") == "authors"
        endless = a.wall >= FOREVER
        six_digits = self.dialect("digits") == "six" and not (p and p.perfect)
        if p is None:  # policies.md: without checkpoints, nothing is saved
            if six_digits:
                wall = a.wall if endless else us(six(a.wall / 1e6))
                return Stop(a, 0, 0, us(six(a.delay / 1e6)), wall, None, a.wall)
            return Stop(a, 0, 0, a.delay, a.wall, None, a.wall)
        if p.perfect:  # glossary.md: an interruption loses no work
            left = Left(max(0, run - p.first_recovery), p.first_period, 0, 0)
        else:
            left = left_after(p, run, timing, authors, 100_000)
        rf = left.first_recovery  # paper, equation 4, without the recovery before
        wall = a.wall if endless else rf + (a.wall - p.first_recovery) - left.useful
        if six_digits:
            return self.left_in_seconds(a, timing, left.useful, wall)
        copy = Pattern(p.period, p.cost, p.recovery, left.first_period, rf)
        delay = rf + (a.delay - p.first_recovery) - left.useful
        return Stop(a, left.useful, left.wait, delay, wall, copy, wall)

    def left_in_seconds(self, a: Attempt, timing: str, useful: int, rest: int) -> Stop:
        """Return the same in the arithmetic of the program (node-stealing.md: digits)."""
        p, run = a.pattern, (self.now - a.start) / 1e6
        assert p is not None
        period, cost, delay, wall = (x / 1e6 for x in (p.period, p.cost, a.delay, a.wall))
        if not a.number:  # the failure rate has six decimals
            rate = round(2e8 * cost / (period**2 * a.job.n), 6)
            period = math.sqrt(2 * cost / (rate * 1e-8 * a.job.n)) if rate else period
        first = period if p.first_period == p.period else p.first_period / 1e6
        q = Pattern(period, cost, p.recovery / 1e6, first, p.first_recovery / 1e6)  # type: ignore[arg-type]
        authors = self.dialect("semantics") == "authors"
        left = left_after(q, run, timing, authors, 0.1)
        # nothing says whether times or run times are in seconds: 42.31 - 30.31 is more than 12
        other = left_after(q, self.now / 1e6 - a.start / 1e6, timing, authors, 0.1)
        in_doubt = abs(other.useful - left.useful) > 1e-4
        rf = left.first_recovery
        delay = six(rf + (delay - q.first_recovery) - left.useful)
        wall = six(rf + ((wall + 5 - q.first_recovery) - 5) - left.useful)
        copy = Pattern(*[us(six(x)) for x in (period, cost, q.recovery, left.first_period, rf)])
        ends = FOREVER if a.wall >= FOREVER else us(wall)
        return Stop(a, useful, us(left.wait), us(delay), ends, copy, rest, in_doubt)

    def dialect(self, name: str) -> str:
        """Return a value of the dialect (node-stealing.md: the differences)."""
        semantics = self.options.get("semantics", "paper")
        value = self.options.get(name, "auto")
        return DIALECT[name][semantics == "authors"] if value == "auto" else value

    def kill(self, stop: Stop, cause: str, priority: int) -> None:
        """Stop an attempt and put its copy into the queue."""
        a = stop.attempt
        self.running.remove(a)
        self.record(a, cause, stop.useful)
        self.news.ended = True
        a.job.interruptions += cause == "node failure"
        if priority:
            self.resubmit(stop, priority, interrupted=cause == "node failure")

    def resubmit(self, stop: Stop, priority: int, interrupted: bool = True) -> None:
        """Put the copy of a stopped attempt into the queue, or end its job."""
        a = stop.attempt
        if stop.in_doubt:
            self.doubts.add("with six digits, a stop is at the end of a checkpoint")
        if interrupted and a.job.interruptions >= self.max_attempts:
            self.given_up.append(a.job.id)
            self.over(a.job, "given up")
            return
        wall, delay = max(1, stop.wall), max(1, stop.delay)
        self.enter(Attempt(a.job, a.number + 1, 0, wall, delay, 0, priority, stop.pattern))

    # ---- reactions

    def react(self, hit: list[Attempt], ended: list[Attempt]) -> None:
        """Requeue failed jobs, steal nodes for them, and end waits (paper 4.2 and 7.2)."""
        kills: list[tuple[Stop, str, int, Wait | None]] = []
        over: list[Wait] = []
        for wait in self.waits:
            wait.lost |= wait.nodes - self.up
            wait.failures += len(wait.lost)
        for why in ("ended", "hit", "given up"):
            for wait in [w for w in self.waits if w not in over]:
                if why == self.why_over(wait, hit, ended):
                    over.append(wait)
                    wait.why = why
                    self.steals_off.append((self.now, why))
        busy = {wait.victim for wait in self.waits if wait not in over}
        self.doomed = [*hit]
        two, others_first = self.dialect("passes") == "two", self.dialect("ended") == "others-first"
        late = {"given up": two, "ended": others_first, "hit": two}
        # nodes count as free if their wait is over before the first plan
        early = [w for w in over if not late[w.why]]
        self.spare = len(self.free()) + sum(len(w.nodes & self.up) for w in early)
        for a in hit:
            mine = [wait for wait in over if wait.victim is a]
            stop, priority = self.left(a, "now"), FAILED
            if not mine:
                kills += self.steal_for(a, stop, busy)
                continue
            lost = len(a.nodes - self.up)
            if lost <= self.spare:  # it failed too, so it also needs free nodes
                self.spare -= lost
            if self.dialect("hit") == "victim":
                stop, priority = mine[0].victim_then, VICTIM
            kills.append((stop, "node failure", priority, None))
        due: list[Wait] = []
        for wait in self.waits:
            if wait not in over and wait.until == self.now:
                over.append(wait)
                due.append(wait)
        for wait in early:
            over.remove(wait)
            self.hold_ends(wait)
        if two and due and kills:
            self.doubts.add("a stop is due at the time of a failure")
        self.unblock_all()
        first = any(w.why == "ended" for w in over)
        first = first or (two and (bool(kills) or any(w.why for w in over)))
        lowest = self.dialect("held") == "lowest"  # semantics: the nodes are chosen again later
        first = first or (lowest and any(w.lost for w in self.waits if w not in over))
        if first and self.plan() and not kills:
            # semantics: the dependent job is before stops; nothing about the ends of waits
            self.doubts.add("a start of the first plan releases a job, and a wait ends")
        for wait in due:
            self.hold_ends(wait)
        self.unblock_all()
        self.end_instant(kills, due, [w for w in over if w not in due])
        self.unblock_all()
        self.plan()

    def why_over(self, wait: Wait, hit: list[Attempt], ended: list[Attempt]) -> str:
        """Return why a wait ends without a stop of the victim (paper 7.2.3), or an empty text."""
        if wait.victim in ended:
            return "ended"
        if wait.victim in hit:
            return "hit"
        too_few = wait.victim.job.n < wait.failures or not wait.nodes & self.up
        return "given up" if wait.lost and too_few else ""

    def end_instant(
        self, kills: list[tuple[Stop, str, int, Wait | None]], due: list[Wait], over: list[Wait]
    ) -> None:
        """Carry out what was decided: kills first, then ends of waits."""
        for wait in [wait for wait in self.waits if wait not in over]:
            if wait.lost:
                self.note_hold(wait)
                wait.nodes -= wait.lost
                self.hold_begins(wait)
                wait.lost = set()
                self.news.failed = True
        # the policy's stops come first, then the other attempts on failed nodes
        kills.sort(key=lambda kill: kill[3] is None and kill[1] == "node failure")
        for stop, cause, priority, wait in kills:
            if wait is None:
                self.kill(stop, cause, priority)
                continue
            self.kill(stop, cause, 0)
            wait.nodes = set(stop.attempt.nodes) & self.up
            self.hold_begins(wait)
            self.waits.append(wait)
            self.news.failed = True
        if sum(not wait.placed for wait in self.waits) > 1:
            self.doubts.add("two holds begin at one time")
        for wait in self.waits:
            if not wait.placed:  # node-stealing.md: held
                n, wait.nodes = len(wait.nodes), set()
                wait.nodes, wait.placed = set(sorted(self.free())[:n]), True
        for wait in due:
            self.kill(wait.stop, "stolen", VICTIM)
        self.unblock_all()
        for wait in over:
            self.hold_ends(wait)

    def hold_begins(self, wait: Wait) -> None:
        wait.since, wait.placed = self.now, self.dialect("held") == "surviving"
        left = wait.stop.wait - (self.now - wait.decided)
        if wait.until and self.dialect("held") == "surviving":
            return  # it only lost nodes
        # semantics: six digits also for the rest of a wait, at each begin of a hold
        wait.until = self.now + (us(six(left / 1e6)) if self.dialect("digits") == "six" else left)

    def hold_ends(self, wait: Wait) -> None:
        """Release what is held, and put the failed job into the queue."""
        self.waits.remove(wait)
        self.note_hold(wait)
        self.news.ended = True
        self.resubmit(wait.failed, FAILED)

    def note_hold(self, wait: Wait) -> None:
        self.holds.append(
            (wait.failed.attempt.job.id, tuple(sorted(wait.nodes)), wait.since, self.now)
        )

    def steal_for(
        self, a: Attempt, stop: Stop, busy: set[Attempt]
    ) -> list[tuple[Stop, str, int, Wait | None]]:
        """Decide how a failed job continues (paper, algorithm 1)."""
        requeue: list[tuple[Stop, str, int, Wait | None]] = [(stop, "node failure", FAILED, None)]
        timing = self.options.get("timing", "now")
        lost = len(a.nodes - self.up)
        if self.options.get("react") != "stealing":
            return requeue
        if lost <= self.spare:  # enough free nodes, without those for other failed jobs
            self.spare -= lost
            return requeue
        if timing != "now" and not a.nodes & self.up:  # paper 7.2.1: no node is left to hold
            return requeue
        once = self.dialect("chosen") == "once"
        victims = [
            v for v in self.running
            if v not in self.doomed and v not in busy and not (once and v in self.chosen)
        ]  # fmt: skip
        if self.options.get("victim") == "fits":  # node-stealing.md: with the free nodes
            spare = self.spare if timing == "now" else 0
            victims = [v for v in victims if v.job.n + spare >= lost]
        victim = min(victims, key=self.victim_key, default=None)
        if victim is None:
            return requeue
        if victim.job.n < lost and self.options.get("victim") != "fits":  # paper 7.2.3
            return requeue
        taken = self.left(victim, timing)
        if not self.is_worth(a, stop, victim, taken):
            return requeue
        self.steals.append(self.now)
        self.chosen.append(victim)
        if not taken.wait:
            self.doomed.append(victim)
            return [(taken, "stolen", VICTIM, None), *requeue]
        busy.add(victim)
        failures = len(a.nodes - self.up)
        wait = Wait(stop, victim, taken, self.left(victim, "now"), self.now, failures)
        return [(stop, "node failure", 0, wait)]

    def release(self, a: Attempt) -> int:
        return a.job.submit if self.dialect("release") == "original" else a.queued

    def released(self, a: Attempt) -> int:
        return a.job.index if self.dialect("release") == "original" else a.serial

    def victim_key(self, v: Attempt) -> Any:
        """Return the key of the victim rule: the smallest is chosen (paper 7.1)."""
        tie = {
            "order": (-self.release(v), -self.released(v)),
            "id": (-self.release(v), v.program_id),
            "run-time": (-v.start, -self.released(v)),
        }[self.dialect("tie")]
        rule = self.options.get("victim", "fewest-nodes")
        if rule == "latest-release":
            return (-self.release(v), v.job.n, *tie)
        if rule == "least-lost-work":
            stop = self.left(v, "now")
            recovery = v.pattern.first_recovery if v.pattern else 0
            return (max(0, self.now - v.start - recovery - stop.useful) * v.job.n, v.job.n, *tie)
        return (v.job.n, *tie)

    def is_worth(self, a: Attempt, stop: Stop, victim: Attempt, taken: Stop) -> bool:
        """Decide whether to steal (paper 7.1: K1, K2, K3)."""
        criterion = self.options.get("criterion", "fewer-nodes")
        if criterion == "fewer-nodes":
            return victim.job.n < a.job.n
        if criterion == "later-release":
            return self.release(victim) > self.release(a)
        program = self.dialect("k3") == "program"
        ends = {v: v.start + v.wall for v in self.running if v is not a}
        others = [end for v, end in ends.items() if v is not victim]
        if program:
            others += [wait.until + self.hold_margin for wait in self.waits]
        e2 = min(others, default=FOREVER)
        e1 = min(e2, ends[victim])
        killed = self.now + taken.wait
        stay = e1 + stop.rest, ends[victim]
        if program and victim.pattern:
            stay = stay[0], stay[1] - victim.pattern.first_recovery
        moved = killed + stop.rest, min(e2, killed + stop.rest) + taken.rest
        releases = self.release(a), self.release(victim)
        flows = [
            max(c - r for c, r in zip(ends_, releases, strict=True)) for ends_ in (stay, moved)
        ]
        return flows[1] < flows[0]

    def record(self, a: Attempt, cause: str, useful: int) -> None:
        self.records.append(Record(a.id, a.start, self.now, cause, useful, tuple(sorted(a.nodes))))

    # ---- queue

    def sorted_queue(self) -> list[Attempt]:
        return sorted(self.queue, key=lambda a: (-a.priority, self.key(a), a.serial))

    def key(self, a: Attempt) -> Any:
        """Return the key of the queue order (axes: order); the smallest key is first."""
        order, n = self.options.get("order", "fcfs"), a.job.n
        time = max(1, a.wall + self.margin)  # the planned duration of RR-9296, section 5.1
        keys = {
            "fcfs": a.queued, "fcfs-by-id": (a.queued, a.program_id),
            "priority": (-a.job.rank, a.queued),
            "shortest": a.wall, "largest": -n, "smallest": n,
            "lpt": (-time, a.job.index), "spt": (time, a.job.index),
            "hpa": (-n, a.job.index), "lpa": (n, a.job.index),
            "la": (-time * n, a.job.index), "sa": (time * n, a.job.index),
            # RR-9296, section 4.2.1: jobs on more than half of the nodes, largest first
            "ljf": ((0, -n) if 2 * n >= self.n_nodes + 1 else (1, 0), a.job.index),
        }  # fmt: skip
        if order not in keys:
            return self.formula_key(a)
        if self.options.get("planning") == "fifo":  # semantics: ties by the submission of the job
            keys |= {"fcfs": 0, "fcfs-by-id": 0, "priority": -a.job.rank}
            return keys[order], a.job.index
        return keys[order]

    def formula_key(self, a: Attempt) -> Any:
        is_fifo = self.options.get("planning") == "fifo"  # site-rules.md: its previous place
        return -a.value, a.job.index if is_fifo else a.queued

    def sort_by_formula(self) -> None:
        """Compute the values of a formula again (site-rules.md: order_period)."""
        if not self.has_formula():
            return
        period = round(float(self.options.get("order_period", 0)) * 1e6)
        again = self.now >= self.sorted_at + period
        for a in self.queue:
            if again or a in self.news.arrived:
                a.value = self.value(a)
        if again:
            self.sorted_at = self.now

    def has_formula(self) -> bool:
        return self.options.get("order", "fcfs") not in ORDERS

    def value(self, a: Attempt) -> float:
        """Return the value of a formula (site-rules.md: orders by formula)."""
        # semantics: without a walltime, 2^60 microseconds
        since = a.job.submit if self.options.get("planning") == "fifo" else a.queued
        age, wall = (self.now - since) / 1e6, min(a.wall, 2**60) / 1e6
        columns = {
            "age": age, "size": a.job.n, "nodes": self.n_nodes, "walltime": wall,
            "expansion": divide(age + wall, wall), "class_": a.job.rank,
            "submitted": max(1.0, a.job.submit / 1e6), "partition": 1.0,
            "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
        }  # fmt: skip
        return evaluate(formula_of(self.options["order"]), columns)

    def predict(self, a: Attempt) -> int:
        """Return the predicted run time of an attempt that enters the queue (axes: predict)."""
        kind = self.options.get("predict", "walltime")
        if kind == "walltime":
            return a.wall
        if kind == "actual":
            return a.delay
        if kind == "recent":
            runs = [run for end, run in self.history.get(a.job.user, []) if end < self.now][-2:]
            return sum(runs) // 2 if a.job.user and len(runs) == 2 else a.wall
        return a.wall * round(float(kind) * 1_000_000) // 1_000_000

    # ---- plan

    def free(self) -> set[int]:
        """Return the free nodes: up, without a job, and not held."""
        holders = [a.nodes for a in self.running] + [w.nodes for w in self.waits]
        return self.up - {node for nodes in holders for node in nodes}

    def begin(self, a: Attempt, nodes: frozenset[int] | None) -> None:
        """Start an attempt (policies.md: on the free nodes with the lowest numbers)."""
        a.nodes = frozenset(sorted(self.free())[: a.job.n]) if nodes is None else nodes
        assert len(a.nodes) == a.job.n and a.nodes <= self.free()
        a.start, a.seq = self.now, self.seqs
        self.seqs += 1
        a.end = self.now + min(a.delay, a.wall)
        self.queue.remove(a)
        self.running.append(a)
        self.changed.append(a.job)

    def busy(self) -> list[Block]:
        """Return what the running attempts hold until their planned ends."""
        blocks = []
        for a in self.running:
            nodes = a.nodes & self.up
            blocks.append(Block(a.start, self.planned_end(a), len(nodes), frozenset(nodes)))
        return blocks

    def held(self) -> list[Block]:
        """Return what is held for jobs that wait (node-stealing.md: hold_margin)."""
        blocks = []
        for wait in self.waits:
            nodes = wait.nodes & self.up
            end = max(wait.until + self.hold_margin + self.margin, self.now + 1)
            blocks.append(Block(self.now, end, len(nodes), frozenset(nodes)))
        return blocks

    def planned_end(self, a: Attempt) -> int:
        """Return the planned end, later than predicted for late attempts (axes: predict)."""
        for step in (0, *STEPS):
            planned = min(a.predicted + step, a.wall)
            end = a.start + min(planned + self.margin, FOREVER)
            if end > self.now:
                return end
        return self.now + 1

    def length(self, a: Attempt) -> int:
        return max(1, min(a.predicted + self.margin, FOREVER))

    def fit(self, blocks: list[Block], a: Attempt) -> Block | None:
        """Return the earliest place of an attempt."""
        named = self.options.get("placement") == "named"
        length = self.length(a)
        for start in sorted({self.now, *(b.end for b in blocks if b.end > self.now)}):
            end = start + length
            over = [b for b in blocks if b.start < end and b.end > start]
            if named:
                free = sorted(self.up - {node for b in over for node in b.nodes})
                if len(free) >= a.job.n:
                    return Block(start, end, a.job.n, frozenset(free[: a.job.n]))
            else:
                points = [start, *(b.start for b in over if b.start > start)]
                used = max(sum(b.n for b in over if b.start <= p < b.end) for p in points)
                if len(self.up) - used >= a.job.n:
                    return Block(start, end, a.job.n, frozenset())
        return None

    def plan(self) -> bool:
        """Plan, and again if a start lets further jobs enter the queue. Return whether one did."""
        self.plan_once()
        again = False
        while self.unblock_all():
            again = True
            self.plan_once()
        return again

    def plan_once(self) -> None:
        self.sort_by_formula()
        self.news.arrived.sort(key=lambda a: a.serial)
        # semantics: first those without a walltime, then those that are too large
        required = self.options.get("walltimes") == "required"
        for a in [a for a in self.news.arrived if required and a.wall >= FOREVER]:
            self.reject(a, "has no walltime")
        for a in [a for a in self.news.arrived if a.job.n > self.n_nodes]:
            self.reject(a, f"requires {a.job.n} nodes, but the maximum is {self.n_nodes}")
        if self.options.get("planning") == "fifo":
            self.plan_fifo()
        elif self.depth() is None:
            self.plan_all()
        else:
            self.plan_some(self.depth() or 0)
        self.news = News()

    def reject(self, a: Attempt, why: str) -> None:
        self.queue.remove(a)
        self.news.arrived.remove(a)
        self.refuse(a, why)

    def refuse(self, a: Attempt, why: str) -> None:
        self.rejections.append((a.job.id, why))
        self.records.append(Record(a.id, -1, -1, "rejected", 0, ()))
        self.over(a.job, "rejected")

    def over(self, job: Job, how: str) -> None:
        job.over = how
        self.changed.append(job)

    def depth(self) -> int | None:
        text = self.options.get("depth", "conservative")
        names = {"greedy": 0, "easy": 1, "conservative": None, "all": None}
        return names[text] if text in names else int(text)

    def plan_fifo(self) -> None:
        for a in self.sorted_queue():
            if a.job.n > len(self.free()):
                break
            self.begin(a, None)

    def plan_some(self, depth: int) -> None:
        """Reserve nodes for some attempts of the queue (axes: depth, reserve)."""
        blocks, reserved = self.busy() + self.held(), 0
        for place, a in enumerate(self.sorted_queue()):
            block = self.fit(blocks, a)
            if block is None:
                continue
            if block.start == self.now:
                self.begin(a, block.nodes or None)
                blocks.append(block)
            elif (place < depth) if self.options.get("reserve") == "first" else (reserved < depth):
                reserved += 1
                blocks.append(block)

    def plan_all(self) -> None:
        """Keep a reservation for every attempt (axes: maintenance)."""
        news, kind = self.news, self.options.get("maintenance", "compression")
        queue = self.sorted_queue()
        # semantics: made again unless new attempts are the last of the queue, as they arrived
        kept = [a for a in self.order_before if a in self.queue]
        self.order_before, raised = queue, kept + news.arrived != queue
        if (
            news.failed or raised or (news.repaired and kind != "authors")
            or (news.ended and kind == "rebuild")
        ):  # fmt: skip
            self.plan_of = dict(zip(self.running, self.busy(), strict=True))
            again = queue
        elif news.ended or news.repaired:
            again = queue
        else:
            again = [a for a in queue if a in news.arrived]
        for a in [a for a in self.plan_of if a not in self.queue and a not in self.running]:
            del self.plan_of[a]
        limit = self.now
        for a in self.running:
            if a in self.plan_of and self.plan_of[a].end <= self.now:
                self.plan_of[a].end = self.planned_end(a)
                limit = max(limit, self.plan_of[a].end)
        stale = [a for a in queue if a in self.plan_of and self.plan_of[a].start < limit]
        if stale:
            self.plan_of = dict(zip(self.running, self.busy(), strict=True))
            again = queue
        for a in again:
            self.plan_of.pop(a, None)
            block = self.fit([*self.plan_of.values(), *self.held()], a)
            if block is not None:
                self.plan_of[a] = block
                if block.start == self.now:
                    self.begin(a, block.nodes or None)
