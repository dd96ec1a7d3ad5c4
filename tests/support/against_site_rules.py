# SPDX-License-Identifier: Apache-2.0
"""Random runs must have the schedules of the slow oracle in ``tests/oracles/site_rules.py``.

``python -m tests.support.against_site_rules 3000 0`` compares 3,000 runs.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from rebat.core.attempts import Cause
from rebat.core.jobs import Job, Workload
from rebat.core.units import FOREVER_US, to_us
from rebat.policies.presets import preset
from rebat.runs.single import RunResult, simulate
from tests.oracles import site_rules
from tests.support.seeds import play_all

ORDERS = (
    "-usage/10", "age-usage/3", "-usage+class", "fairshare", "fairshare", "100*fairshare+age/10",
    "fairshare*size", "multifactor:age=10,fairshare=1000", "multifactor:fairshare=9:size=3",
    "multifactor:age=3:fairshare=2:max_age=20", "age*fairshare-usage/100",
)  # fmt: skip

SHARES = (
    "", "a=3+b=1", "x=3(a=1+b=2)+y=1", "x=60(a=1+b=1)+y=40(c=1)", "a=1+x=2(a=3)",
    "x=parent(a=1+b=parent)+y=0(c=1)", "x=1(y=2(a=1+b=1)+z=1(c=1))+c=1", "a=parent+b=2",
    "x=1(y=parent(a=1+b=2)+c=1)+z=3",
)  # fmt: skip


def shares(rng: random.Random) -> str:
    """Return shares, as a tree of random accounts and users."""
    if rng.random() < 0.4:
        return rng.choice(SHARES)
    names = rng.sample("xyza", 4)

    def number() -> str:
        return rng.choice(["1", "1", "2", "3", "0", "parent"])

    def members(level: int) -> str:
        accounts = []
        while level < 3 and names and rng.random() < 0.6:
            account = f"{names.pop()}={number()}"
            inner = members(level + 1)
            accounts.append(f"{account}({inner})" if inner else account)
        taken = {text[0] for text in accounts}
        users = [f"{name}={number()}" for name in "abc" if rng.random() < 0.4 and name not in taken]
        parts = accounts + users
        rng.shuffle(parts)
        return "+".join(parts)

    return members(0)


def limits(rng: random.Random, n_nodes: int) -> str:
    """Return limits that jobs reach."""
    kinds = (
        "user", "account", "queue", "user=a", "account=x", "queue=p", "account=y:child=x",
        "account=z:child=y:child=a", "user=a:account=x", "user=b:account=y",
    )  # fmt: skip
    parts = []
    for kind in kinds:
        if rng.random() < 0.3:
            most = {"jobs": rng.randint(1, 4), "nodes": rng.randint(1, n_nodes + 2)}
            chosen = rng.choice([["jobs"], ["nodes"], ["jobs", "nodes"]])
            parts.append(":".join([kind, *(f"{name}={most[name]}" for name in chosen)]))
    firsts = {part.split(":")[0]: part for part in parts if ":account=" not in part}
    others = [part for part in parts if ":account=" in part]
    parts = [*firsts.values(), *others]
    rng.shuffle(parts)
    return "+".join(parts) or "user:jobs=1"


def jobs(rng: random.Random, n_nodes: int) -> tuple[Job, ...]:
    """Return jobs whose times often coincide."""
    last, longest = rng.choice([0, 5, 30, 100]), rng.choice([3, 10, 40])
    users, accounts, queues = "abc", "xyz" + "a" * rng.randint(0, 1), "pq"
    missing, made = rng.choice([0.0, 0.0, 0.2]), []
    for number in range(rng.randint(2, 30)):
        size = rng.randint(1, n_nodes) if rng.random() < 0.5 else rng.randint(1, 2)
        if rng.random() < 0.02:
            size = n_nodes + 1
        run = rng.randint(1, longest)
        wall: int | None = rng.choice([run, run, run + rng.randint(0, 10), max(1, run // 2)])
        if rng.random() < 0.02:
            wall = None
        owners = {"user": users, "account": accounts, "queue": queues}
        extra: dict[str, Any] = {
            kind: rng.choice(names) for kind, names in owners.items() if rng.random() >= missing
        }
        if rng.random() < 0.3:
            extra.pop("account", None)
        if rng.random() < 0.3:
            extra["priority_class"] = rng.randint(0, 2)
        name = str(rng.randint(0, 99) * 100 + number)
        submit = to_us(rng.randint(0, last))
        walltime = None if wall is None else to_us(wall)
        made.append(Job(name, size, submit, walltime, f"d{run}", extra))
    return tuple(made)


class Case:
    """A workload and a policy with rules of a site, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.n_nodes = rng.randint(2, 10)
        self.jobs = jobs(rng, self.n_nodes)
        self.options = {"order": rng.choice(["fcfs", "fcfs", *ORDERS])}
        if self.options["order"] != "fcfs":
            self.options["half_life"] = rng.choice(["0", "5", "20", "600"])
            self.options["order_period"] = rng.choice(["0", "0", "3", "20"])
        if "fairshare" in self.options["order"]:
            self.options["fairshare_rule"] = rng.choice(["tree", "classic"])
            self.options["shares"] = shares(rng)
        depth = self.options["depth"] = rng.choice(["easy", "easy", "greedy", "all"])
        if depth == "all":
            self.options["maintenance"] = "rebuild"
        if self.options["order"] == "fcfs" or rng.random() < 0.5:
            self.options["limits"] = limits(rng, self.n_nodes)

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return policy_of(self.options)

    def oracle(self) -> site_rules.Simulation:
        """Return the oracle, after its run."""
        made = []
        for job in self.jobs:
            owners = {**job.extra}
            rank = owners.pop("priority_class", 0)
            wall, length = job.walltime_us or FOREVER_US, to_us(int(job.profile[1:]))
            made.append(
                site_rules.Job(job.id, job.n_nodes, job.submit_us, wall, length, owners, rank)
            )
        oracle = site_rules.Simulation(made, self.n_nodes, self.options)
        oracle.run()
        return oracle


def policy_of(options: dict[str, str]) -> str:
    """Return the name of a policy with these options; empty options are left out."""
    return f"easy:{','.join(f'{name}={value}' for name, value in options.items() if value)}"


def run(made: tuple[Job, ...], n_nodes: int, policy: str) -> RunResult:
    """Return the run of a policy."""
    profiles = {job.profile: {"type": "delay", "delay": int(job.profile[1:])} for job in made}
    workload = Workload("random", n_nodes, made, profiles)
    return simulate(workload, preset(policy), n_nodes=n_nodes, how="interpreted")


def schedule_of(result: RunResult) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return id, start and end of the jobs that ran, and the ids of the rejected jobs."""
    ran, rejected = [], []
    for row in result.ledger.attempts:
        name = row.attempt.id.partition("!")[2]
        if row.cause == Cause.REJECTED:
            rejected.append(name)
        else:
            ran.append((name, row.start_us, row.end_us))
    return sorted(ran), sorted(rejected)


def play(seed: int) -> str:
    """Compare a case with the oracle; return what was compared.

    If two values are equal except for rounding, a difference is not an error; the result says so.
    """
    case = Case(seed)
    oracle = case.oracle()
    ran, rejected = schedule_of(run(case.jobs, case.n_nodes, case.policy))
    ours = site_rules.rows_of(oracle.started), sorted(oracle.rejected)
    if ours != (ran, rejected) and oracle.doubts:
        return f"differs, not decided: {', '.join(sorted(oracle.doubts))}"
    assert ours[1] == rejected, f"\n  oracle  {ours[1]}\n  program {rejected}"
    by_start = [sorted(rows, key=lambda row: (row[1], row)) for rows in (ours[0], ran)]
    for mine, other in zip(*by_start, strict=True):
        assert mine == other, f"\n  oracle  {mine}\n  program {other}"
    return kind_of(case, oracle)


def kind_of(case: Case, oracle: site_rules.Simulation) -> str:
    """Return the order of a case, and whether a limit barred a job."""
    order = case.options["order"]
    kind = case.options.get("fairshare_rule") or ("usage" if "usage" in order else order)
    return f"{kind} + limits" if oracle.has_barred else kind


if __name__ == "__main__":
    play_all(
        lambda seed: [play(seed)],
        lambda seed: Case(seed).policy,
        *map(int, sys.argv[1:]),
        excepts=True,
    )
