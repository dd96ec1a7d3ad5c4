# SPDX-License-Identifier: Apache-2.0
"""Random runs must have the schedules of the slow oracle in ``tests/oracles/site_windows.py``.

``python -m tests.support.against_site_windows 3000 0`` compares 3,000 runs.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from rebat.core.attempts import Cause
from rebat.core.errors import RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.runs.single import RunResult, simulate
from tests.oracles import site_windows
from tests.support.seeds import play_all

Row = tuple[str, int, int, tuple[int, ...]]
ORDERS = ("fcfs", "fcfs", "fcfs", "shortest", "largest", "smallest")


def span(rng: random.Random, n_nodes: int) -> str:
    """Return consecutive nodes."""
    first = rng.randrange(n_nodes)
    return f"{first}-{rng.randrange(first, n_nodes)}"


def reservations(rng: random.Random, n_nodes: int) -> str:
    """Return reservations, of which half are repeated. All repeat within a minute."""
    parts = []
    for name in rng.sample("nmk", rng.choice([1, 1, 2, 2, 3])):
        length = rng.randint(1, 14)
        words = [name, span(rng, n_nodes), f"begin={rng.randint(0, 40)}", f"length={length}"]
        if rng.random() < 0.5:
            words.append(f"every={rng.choice([e for e in (5, 10, 12, 15, 20, 30) if e > length])}")
        for kind, names in (("user", "ab"), ("account", "xy")):
            if rng.random() < 0.3:
                words += [f"{kind}={owner}" for owner in rng.sample(names, rng.randint(1, 2))]
        parts.append(":".join(words))
    return "+".join(parts)


def partitions(rng: random.Random, n_nodes: int, with_tiers: bool) -> str:
    """Return partitions that often share nodes."""
    with_tiers &= rng.random() < 0.5
    parts, with_limits = [], rng.random() < 0.5
    for name in "pqrs"[: rng.randint(2, 4)]:
        words = [name, "all" if rng.random() < 0.3 else span(rng, n_nodes)]
        if with_tiers and rng.random() < 0.8:
            words.append(str(rng.randint(1, 3)))
        if rng.random() < 0.3:
            words.append(f"order={rng.choice(ORDERS)}")
        if with_limits and rng.random() < 0.4:
            words.append(f"max_nodes={rng.randint(1, n_nodes)}")
        if with_limits and rng.random() < 0.4:
            words.append(f"max_time={rng.randint(5, 30)}")
        parts.append(":".join(words))
    return "+".join(parts)


def jobs(rng: random.Random, n_nodes: int, has_windows: bool, names: str) -> tuple[Job, ...]:
    """Return jobs whose times often coincide."""
    last, longest, made = rng.choice([0, 5, 30, 60]), rng.choice([3, 10, 25]), []
    requests = rng.choice([0.0, 0.1, 0.4]) if has_windows else 0.0
    named = rng.choice([1.0, 0.8])
    for number in range(rng.randint(5, 25)):
        size = rng.randint(1, n_nodes) if rng.random() < 0.4 else rng.randint(1, 2)
        if rng.random() < 0.02:
            size = n_nodes + 1
        run = rng.randint(1, longest)
        wall = rng.choice([run, run, run + rng.randint(0, 10), max(1, run // 2)])
        extra: dict[str, Any] = {}
        if has_windows:
            extra = {
                kind: rng.choice(owners)
                for kind, owners in (("user", "abc"), ("account", "xyz"))
                if rng.random() < 0.7
            }
        if rng.random() < requests:
            extra["reservation"] = rng.choice("nmko")
        if names and rng.random() < named:
            extra[rng.choice(["partition", "queue"])] = rng.choice(names)
        if names and rng.random() < 0.03:
            extra.setdefault("queue", "other")
        submit = to_us(rng.randint(0, last))
        name = str(rng.randint(0, 99) * 100 + number)  # text and number sort differently
        made.append(Job(name, size, submit, to_us(wall), f"d{run}", extra))
    return tuple(made)


def failures(rng: random.Random, n_nodes: int) -> list[tuple[int, bool, int]]:
    """Return failures and repairs of single nodes: time, whether it is a repair, and node."""
    events = []
    for node in range(n_nodes):
        at = rng.randint(1, 40)
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            end = at + rng.choice([1, 3, 10, 25])
            events += [(at, False, node), (end, True, node)]
            at = end + rng.randint(1, 25)
    return sorted(events)


class Case:
    """A workload, failures, and a policy with reservations or partitions, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.n_nodes = rng.randint(3, 10)
        self.options = {"order": rng.choice(ORDERS), "depth": rng.choice(["easy", "greedy", "all"])}
        if seed % 4 == 3:
            self.options = {"order": self.options["order"], "planning": "fifo"}
        elif self.options["depth"] == "all":
            self.options["maintenance"] = "rebuild"
        self.kind = rng.choice(["windows", "partitions", "both"])
        names = ""
        if self.kind != "windows":
            with_tiers = "planning" not in self.options  # under fifo, higher tiers preempt
            self.options["partitions"] = partitions(rng, self.n_nodes, with_tiers)
            names = "".join(text[0] for text in self.options["partitions"].split("+"))
        if self.kind != "partitions":
            self.options["reservations"] = reservations(rng, self.n_nodes)
        self.jobs = jobs(rng, self.n_nodes, self.kind != "partitions", names)
        self.events = [] if rng.random() < 1 / 3 else failures(rng, self.n_nodes)

    @property
    def policy(self) -> str:
        """The name of the policy."""
        family = "easy" if self.options.get("depth") == "easy" else "baseline"
        return f"{family}:{','.join(f'{name}={value}' for name, value in self.options.items())}"

    def oracle(self) -> site_windows.Simulation:
        """Return the oracle, before its run."""
        second, made = to_us(1), []
        for job in self.jobs:
            times = job.submit_us // second, (job.walltime_us or 0) // second
            length = int(job.profile[1:])
            made.append(site_windows.Job(job.id, job.n_nodes, *times, length, {**job.extra}))
        options, order = self.options, self.options["order"]
        windows = [window_of(text) for text in options.get("reservations", "").split("+") if text]
        parts = options.get("partitions", "machine:all").split("+")
        return site_windows.Simulation(
            made, self.n_nodes, self.events, options.get("depth", "fifo"), windows,
            [partition_of(text, self.n_nodes, order) for text in parts],
        )  # fmt: skip

    def run(self) -> RunResult:
        """Return the run of rebat."""
        profiles = {
            job.profile: {"type": "delay", "delay": int(job.profile[1:])} for job in self.jobs
        }
        workload = Workload("random", self.n_nodes, self.jobs, profiles)
        events = [
            MachineEvent(to_us(at), available, NodeSet.of([node]))
            for at, available, node in self.events
        ]
        return simulate(
            workload, preset(self.policy), n_nodes=self.n_nodes, machine_events=events,
            how="interpreted",
        )  # fmt: skip


def nodes_of(text: str, n_nodes: int) -> frozenset[int]:
    """Return the nodes of a text like ``0-3`` or ``all``."""
    first, _, last = text.partition("-")
    return frozenset(range(n_nodes) if text == "all" else range(int(first), int(last) + 1))


def window_of(text: str) -> site_windows.Window:
    """Return the reservation of a text like ``n:0-3:begin=4:length=2:every=9:user=a``."""
    name, nodes, *words = text.split(":")
    pairs = [(key, value) for key, _, value in (word.partition("=") for word in words)]
    owners = frozenset(pair for pair in pairs if pair[0] in ("user", "account"))
    times = {key: int(value) for key, value in pairs if key in ("begin", "length", "every")}
    return site_windows.Window(name, nodes_of(nodes, 0), **times, owners=owners)


def partition_of(text: str, n_nodes: int, order: str) -> site_windows.Partition:
    """Return the partition of a text like ``p:0-3:2:order=shortest:max_time=9``."""
    name, nodes, *words = text.split(":")
    rest = dict(word.partition("=")[::2] for word in words if "=" in word)
    tier = next((int(word) for word in words if "=" not in word), 1)  # program: 1 by default
    most = (int(rest.get(key, sys.maxsize)) for key in ("max_nodes", "max_time"))
    return site_windows.Partition(
        name, nodes_of(nodes, n_nodes), tier, rest.get("order", order), *most
    )


def schedule_of(result: RunResult) -> tuple[list[Row], list[str]]:
    """Return id, start, end and nodes of the attempts that ran, and the ids of rejected jobs."""
    ran: list[Row] = []
    rejected = []
    for row in result.ledger.attempts:
        name = row.attempt.id.partition("!")[2]
        if row.cause == Cause.REJECTED:
            rejected.append(name)
        else:
            assert row.start_us % to_us(1) == row.end_us % to_us(1) == 0
            nodes = tuple(sorted(map(int, row.nodes or ())))
            ran.append((name, row.start_us // to_us(1), row.end_us // to_us(1), nodes))
    return ran, sorted(rejected)


def exceptions_of(case: Case, oracle: site_windows.Simulation, jobs: list[site_windows.Job]) -> str:
    """Return what the documents except, and the oracle does not simulate."""
    found: set[str] = set()
    for group in oracle.groups():
        kinds = {(p.nodes, p.tier, p.order) for p in group}
        if oracle.depth == "easy" and len(group) > 1 and len(kinds) == 1:
            found.add("under EASY, equal partitions have one reservation")
    for job in jobs:
        places = [place for place in job.places if job.n <= len(place.nodes)]
        for window in oracle.windows:
            has_room = any(job.n <= len(window.nodes & place.nodes) for place in places)
            if window.name != job.owners.get("reservation") or not has_room or job.wanted:
                continue
            if job.wall <= window.length:
                found.add("other reservations close the one that a job requested")
            elif not window.every:
                found.add("a job is longer than the single window that it requested")
        closed = [w for w in oracle.windows if not oracle.is_open(w, job)]
        taken = [w.nodes for w in closed if 0 < w.every < w.length + job.wall]
        fits = any(len(place.nodes.difference(*taken)) >= job.n for place in places)
        is_allowed = any(place.allows(job) for place in places)
        if is_allowed and fits != oracle.ever_fits(job):
            found.add("a job fits between the times of each reservation, but not of all")
    return ", ".join(sorted(found))


def play(seed: int) -> str:
    """Compare a case with the oracle; return what was compared.

    A difference in a case that the documents except is not an error; the result says so.
    """
    case = Case(seed)
    oracle = case.oracle()
    jobs = [*oracle.coming]
    oracle.run()
    try:
        compare(case, oracle)
    except (AssertionError, RebatError):
        exceptions = exceptions_of(case, oracle, jobs)
        if not exceptions:
            raise
        return f"excepted: {exceptions}"
    binds = " that bind" if oracle.has_bound else ""
    hits = " + failures" if any(job.attempt for job in jobs) else ""
    return f"{case.kind}{binds}{hits}"


def compare(case: Case, oracle: site_windows.Simulation) -> None:
    """Check that a case has the schedule of the oracle."""
    ran, rejected = schedule_of(case.run())
    ours = sorted(job.id for job in oracle.rejected)
    assert ours == rejected, f"\n  rejected by oracle  {ours}\n  rejected by program {rejected}"
    by_start = [sorted(rows, key=lambda row: (row[1], row)) for rows in (oracle.rows, ran)]
    for mine, other in zip(*by_start, strict=False):
        assert mine == other, f"\n  oracle  {mine}\n  program {other}"
    assert len(oracle.rows) == len(ran), (len(oracle.rows), len(ran))


if __name__ == "__main__":
    play_all(
        lambda seed: [play(seed)],
        lambda seed: Case(seed).policy,
        *map(int, sys.argv[1:]),
        excepts=True,
    )
