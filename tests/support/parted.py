# SPDX-License-Identifier: Apache-2.0
"""Random runs on a machine with partitions: each partition is like a machine of its own, and the
rules are like a policy that is asked.

``python -m tests.support.parted 2000`` compares 2,000 runs.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.drive.simulate import Events
from rebat.models.failures.events import MachineEvent
from rebat.models.formula import formula_of
from rebat.policies.presets import preset
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.runs.single import RunResult
from tests.support.asked import simulate
from tests.support.both_ways import Case, check_same
from tests.support.dependent import dependent
from tests.support.seeds import play_all


class PartedCase:
    """Two to four machines of random cases, which are also partitions of one machine.

    The nodes of the partitions are interleaved.
    """

    def __init__(self, seed: int, *, engines: bool = False) -> None:
        self.rng = rng = random.Random(seed)
        self.depends = seed if engines and seed % 2 else 0
        self.explain = engines
        self.cases = [
            Case(rng.randrange(10**6), depends=False, limited=False)
            for _ in range(rng.choice([2, 2, 3, 4]))
        ]
        self.options = self._options(self.cases[0].policy)
        self.limits = [""] * len(self.cases)
        if engines:
            self.options = _covered(self.cases[0].policy)
            self.limits = [rng.choice(["", "", ":max_nodes=2", ":max_time=9"]) for _ in self.cases]
        self.max_attempts = self.cases[0].max_attempts
        self.more = rng.choice([0, 0, 1, 3]) if engines else 0
        order = [-1] * self.more + [
            i for i, case in enumerate(self.cases) for _ in range(case.n_nodes)
        ]
        if rng.random() < 0.7:
            rng.shuffle(order)
        self.nodes = [np.flatnonzero(np.array(order) == i) for i in range(len(self.cases))]
        self.n_nodes = len(order)

    @staticmethod
    def _options(policy: str) -> str:
        """Return a policy with one pass, whose waiting jobs hold their own nodes.

        A second pass, also one at the end of a wait, depends on kills in all partitions, and the
        lowest free nodes of a machine may be in another partition. Orders that change over time
        are sorted at the plans of all partitions.
        """
        left_out = ("passes=", "held=", "ended=")
        options = [option for option in policy.split(",") if not option.startswith(left_out)]
        order = next((o.partition("=")[2] for o in options if "order=" in o), "fcfs")
        if order not in QUEUE_ORDERS and formula_of(order).varies:
            options = [option for option in options if not option.startswith("order_period=")]
            options = [option.replace(order, "fcfs") for option in options]
        steals = ["held=surviving", "ended=together"] if "stealing" in policy else []
        return ",".join([*options, "passes=one", *steals])

    @property
    def partitions(self) -> str:
        """The partitions in the notation of the option."""
        named = (
            f"p{i}:{NodeSet.of_sorted(nodes)}{self.limits[i]}" for i, nodes in enumerate(self.nodes)
        )
        return "+".join(named)

    @property
    def workload(self) -> Workload:
        """The jobs of all machines, each in a partition."""
        jobs, profiles = list[Job](), {}
        for i in range(len(self.cases)):
            own = self.alone(i)
            jobs += own.jobs
            profiles |= own.profiles
        if self.depends:
            made = Workload("parted", self.n_nodes, tuple(jobs), profiles)
            jobs = [*dependent(random.Random(self.depends), made).jobs]
        self.rng.shuffle(jobs)
        return Workload("parted", self.n_nodes, tuple(jobs), profiles)

    def alone(self, i: int) -> Workload:
        """Return the workload of a machine, with ids and users that no other machine has."""
        made = self.cases[i].workload
        extra = {"queue": f"p{i}"}
        jobs = tuple(
            msgspec.structs.replace(
                job,
                id=f"{'xyzw'[i]}{job.id}",
                profile=f"{'xyzw'[i]}{job.profile}",
                extra={**job.extra, **extra, **_user_of(job, i)},
            )
            for job in made.jobs
        )
        profiles = {f"{'xyzw'[i]}{name}": fields for name, fields in made.profiles.items()}
        return msgspec.structs.replace(made, jobs=jobs, profiles=profiles)

    def events(self) -> list[MachineEvent]:
        """Return the failures of all machines."""
        return [
            msgspec.structs.replace(event, nodes=NodeSet.of_sorted(nodes[event.nodes.ids]))
            for case, nodes in zip(self.cases, self.nodes, strict=True)
            for event in case.events
        ]

    def run(self, how: str = "asked") -> RunResult:
        """Return the result on the machine with partitions."""
        return simulate(
            self.workload, preset(f"{self.options},partitions={self.partitions}"),
            n_nodes=self.n_nodes, machine_events=Events(self.events()).all,
            max_attempts=self.max_attempts, how=how, explain=self.explain,
        )  # fmt: skip

    def run_alone(self, i: int) -> RunResult:
        """Return the result of a machine of its own."""
        return simulate(
            self.alone(i), preset(self.options), n_nodes=self.cases[i].n_nodes,
            machine_events=Events(self.cases[i].events).all, max_attempts=self.max_attempts,
            how="asked",
        )  # fmt: skip


def _user_of(job: Job, i: int) -> dict[str, str]:
    """Return the user of a job, if it has one, with a name that no other machine has."""
    user = job.extra.get("user")
    return {"user": f"{'xyzw'[i]}{user}"} if user else {}


def _covered(policy: str) -> str:
    """Return a policy that the loop covers on a machine with partitions."""
    options = dict(option.partition("=")[::2] for option in policy.partition(":")[2].split(","))
    if options.get("planning") == "fifo":
        options = {"order": "fcfs", "depth": "easy"}
    options |= {"placement": "any"}
    return f"baseline:{','.join(f'{name}={value}' for name, value in options.items())}"


def play_engines(seed: int) -> str:
    """Run a case on both engines, and compare the records."""
    case = PartedCase(seed, engines=True)
    try:
        ours = case.run("interpreted")
    except InputError as error:
        assert "does not cover this run" in str(error)
        return "not covered"
    check_same(ours, case.run("asked"))
    if ours.ledger.holds:
        return "holds"
    return "steals" if ours.ledger.steals else "plain"


def records_of(result: RunResult, prefix: str, nodes: Any = None) -> list[tuple[Any, ...]]:
    """Return what happened to the jobs of a machine: id, times, cause, work and nodes."""
    rows = []
    for row in result.ledger.attempts:
        if row.attempt.job_id.startswith(f"w0!{prefix}"):
            ids = row.nodes.ids if row.nodes else np.empty(0, np.int64)
            held = ids if nodes is None else np.searchsorted(nodes, ids)
            times = row.start_us, row.end_us, row.useful_us
            rows.append((row.attempt.id, *times, row.cause.value, *held.tolist()))
    return sorted(rows, key=str)


def play(seed: int) -> str:
    """Compare a case with its separate machines."""
    case = PartedCase(seed)
    together = case.run()
    for i in range(len(case.cases)):
        ours = records_of(together, f"{'xyzw'[i]}", case.nodes[i])
        expected = records_of(case.run_alone(i), f"{'xyzw'[i]}")
        assert ours == expected, (i, [p for p in zip(ours, expected, strict=False) if p[0] != p[1]])
    return "steals" if together.ledger.steals else "plain"


if __name__ == "__main__":
    play_all(
        lambda seed: [f"alone: {play(seed)}", f"engines: {play_engines(seed)}"],
        lambda seed: PartedCase(seed, engines=True).options,
        *map(int, sys.argv[1:]),
    )
