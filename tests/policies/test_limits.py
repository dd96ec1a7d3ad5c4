# SPDX-License-Identifier: Apache-2.0
"""Limits on running jobs and nodes of users, accounts and queues."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from rebat.core.errors import InputError, RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.drive.ask import Session
from rebat.engine.engine import Engine
from rebat.policies.choosing import changed
from rebat.policies.limits import Limit, read_limits
from rebat.policies.presets import preset
from rebat.runs.single import simulate
from rebat.state.ledger import Ledger
from tests.support.amount import few
from tests.support.restless import plain_ledger, random_point, with_fields, workload

ROWS = [(0, 1, "ann"), (0, 1, "ann"), (0, 3, "ann"), (0, 2, "bo"), (0, 1, "bo")]


def starts_of(policy: str, rows=ROWS) -> list[float]:
    """Return the starts of jobs of 10 s (submission, nodes, user) on 4 nodes."""
    jobs = tuple(
        Job(str(n), size, to_us(at), to_us(10), "d", {"user": user, "account": "x"})
        for n, (at, size, user) in enumerate(rows)
    )
    load = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 10}})
    return simulate(load, preset(policy)).rows.column("first_start").tolist()


@pytest.mark.parametrize(
    ("limits", "starts"),
    [
        ("", [0, 0, 10, 0, 10]),
        # ann's second job waits without a reservation, so both jobs of bo start.
        ("user=ann:jobs=1", [0, 10, 20, 0, 0]),
        ("user:jobs=1", [0, 10, 20, 0, 10]),
        ("user:jobs=1+user=bo:jobs=2", [0, 10, 20, 0, 0]),
        ("account:nodes=3", [0, 0, 10, 20, 0]),
        ("account=x:nodes=3+user:jobs=1", [0, 10, 20, 0, 10]),
    ],
)
@pytest.mark.parametrize("policy", ["easy", "easy:placement=named", "greedy"])
def test_known_starts(policy: str, limits: str, starts: list[float]) -> None:
    if limits == "" and policy == "greedy":
        starts = [0, 0, 10, 0, 10]
    joint = "," if ":" in policy else ":"
    assert starts_of(f"{policy}{joint}limits={limits}" if limits else policy) == starts


@pytest.mark.parametrize(
    ("limits", "starts"),
    [
        ("account=sci:child=x:child=y:nodes=2", [0, 0, 10, 10]),
        ("account=sci:child=x:nodes=1", [0, 10, 0, 0]),
        ("account=x:jobs=1+account=sci:child=x:child=y:jobs=3", [0, 10, 0, 0]),
        ("user=ann:account=y:jobs=1", [0, 0, 0, 10]),
        ("user=ann:account=x:account=y:nodes=3", [0, 0, 0, 10]),
        ("user=ann:account=z:nodes=1", [0, 0, 0, 0]),
        ("user:jobs=1", [0, 10, 20, 30]),
    ],
)
def test_limits_of_accounts_below_and_of_users_in_an_account(
    limits: str, starts: list[float]
) -> None:
    jobs = tuple(
        Job(str(n), 1, 0, to_us(10), "d", {"user": "ann", "account": account})
        for n, account in enumerate("xxyy")
    )
    load = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 10}})
    rows = simulate(load, preset(f"easy:limits={limits}")).rows
    assert rows.column("first_start").tolist() == starts


def test_a_job_larger_than_a_limit_is_rejected() -> None:
    starts = starts_of("easy:limits=user=ann:nodes=2")
    assert starts[2] != starts[2]  # NaN
    assert starts[:2] == [0, 0]


def test_a_barred_job_says_why_it_waits() -> None:
    session = Session(preset("easy:limits=user:jobs=1").make())
    jobs = tuple(Job(str(n), 1, 0, to_us(10), "d", {"user": "ann"}) for n in range(2))
    load = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 10}})
    seen: list[str] = []

    def handle(message):
        reply = session.handle(message)
        seen.extend(session._policy.reasons(session.view).values())
        return reply

    Engine(load, n_nodes=4).run(handle)
    assert set(seen) == {"its start would exceed a limit: user ann runs 1 job, the limit"}


def test_limits_are_read_or_refused() -> None:
    assert read_limits("user:jobs=4+account=a:nodes=9:jobs=2") == {
        ("user", ""): Limit(4, 0), ("account", "a"): Limit(2, 9)
    }  # fmt: skip
    for text in ("user", "user:jobs", "user:jobs=x", "team:jobs=1", "user=:jobs=1", "user:cores=1",
                 "user:jobs=1+user:jobs=2", "user:jobs=1:jobs=2", "user:jobs=1+",
                 "user:account=a:jobs=1", "user=a:child=b:jobs=1", "account=a:child=:jobs=1",
                 "account=a:child=b", "queue=a:child=b:jobs=1"):  # fmt: skip
        with pytest.raises(InputError, match="invalid limits"):
            read_limits(text)
    for policy in ("dbes:limits=user:jobs=1", "easy:react=preempt,limits=user:jobs=1"):
        with pytest.raises(InputError, match="limits are not possible"):
            preset(policy)


LIMITS = ("user:jobs=1", "user:nodes=3", "account:jobs=2+user=a:jobs=1", "queue=q:nodes=4:jobs=2")


def most_held(ledger: Ledger, fields: dict[str, dict], kind: str) -> dict[str, tuple[int, int]]:
    """Return the largest numbers of jobs and nodes that ran at the same time, by group."""
    changes = defaultdict(list)
    for record in ledger.attempts:
        group = fields[record.attempt.job_id.partition("!")[2]].get(kind)
        if record.nodes is not None and group:
            n = record.attempt.n_nodes
            changes[group] += [(record.start_us, 1, 1, n), (record.end_us, 0, -1, -n)]
    most = {}
    for group, rows in changes.items():
        jobs = nodes = most_jobs = most_nodes = 0
        for _, _, job, n in sorted(rows):
            jobs, nodes = jobs + job, nodes + n
            most_jobs, most_nodes = max(most_jobs, jobs), max(most_nodes, nodes)
        most[group] = most_jobs, most_nodes
    return most


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(4))
def test_no_limit_is_exceeded_under_failures(first: int) -> None:
    """In random runs with failures, stealing, checkpoints, partitions and split messages."""
    for seed in range(first * few(60), (first + 1) * few(60)):
        rng = random.Random(seed)
        n_nodes, text = rng.choice([4, 10]), rng.choice(LIMITS)
        try:
            point = changed(random_point(rng, n_nodes), {"limits": text})
        except RebatError:
            continue
        load = workload(rng, n_nodes)
        own = {"user": "a", "account": "x", "queue": "q"}
        fields = {
            job.id: {name: rng.choice([value, value + "2"]) for name, value in own.items()}
            for job in load.jobs
        }
        ledger = plain_ledger(point, with_fields(load, fields), rng, seed)
        for (kind, name), limit in read_limits(text).items():
            for group, (n_jobs, n_held) in most_held(ledger, fields, kind).items():
                if name in ("", group):
                    assert not limit.jobs or n_jobs <= limit.jobs, (seed, kind, group)
                    assert not limit.nodes or n_held <= limit.nodes, (seed, kind, group)
