# SPDX-License-Identifier: Apache-2.0
"""Waiting times and slowdowns, computed by hand."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.results.measures.jobs import (
    GROUP_COLUMNS,
    JobRows,
    fairness,
    flow_of,
    group_rows,
    jain,
    job_rows,
    job_times,
    quantiles,
    service_of,
)
from tests.support.dependent import dependent
from tests.support.scenarios import fails, machine, run


@pytest.mark.parametrize("limits", [{"dependency": "afterok:1"}, {"array": "a%1"}])
def test_a_blocked_job_waits(limits: dict[str, str]) -> None:
    """Job 2 of 100 s is blocked while job 1 runs for 1000 s, although a node is free."""
    workload = machine(2, (1, 1000), (1, 100))
    first, second = workload.jobs
    of_first = limits if "array" in limits else {}
    jobs = (
        msgspec.structs.replace(first, extra=of_first),
        msgspec.structs.replace(second, extra=limits),
    )
    rows = run("easy", msgspec.structs.replace(workload, jobs=jobs)).rows
    assert rows.column("waiting_time").tolist() == [0, 1000]
    service = service_of(job_times(rows))
    assert service is not None
    assert (service.wait_mean_s, service.slowdown_mean) == (500, 6)
    assert service.bounded_slowdown_mean == 6


@given(st.integers(0, 10**6))
def test_a_rigid_job_waits_whenever_it_holds_no_nodes(seed: int) -> None:
    rng = random.Random(seed)
    shapes = [(rng.randint(1, 4), rng.randint(1, 50), rng.randint(0, 20)) for _ in range(6)]
    workload = dependent(rng, machine(4, *shapes))
    events = fails(0, 10.5, 20.5) + fails(1, 30.25, 31)
    rows = run(rng.choice(["easy", "baseline", "sfsj"]), workload, events).rows
    rows = rows[rows.has_finished]
    held = rows.column("node_seconds") / rows.column("size")
    waited = rows.column("flow") - rows.column("waiting_time")
    assert waited == pytest.approx(held)


def test_of_three_jobs_one_after_the_other() -> None:
    """Jobs of 20, 5 and 40 s on one node, all submitted at 0, wait for 0, 20 and 25 s."""
    rows = run("baseline", machine(1, (1, 20), (1, 5), (1, 40))).rows
    found = service_of(job_times(rows))
    assert found is not None
    assert (found.wait_mean_s, found.wait_max_s) == (15, 25)
    assert found.slowdown_mean == pytest.approx((1 + 25 / 5 + 65 / 40) / 3)
    assert found.bounded_slowdown_mean == pytest.approx((1 + 25 / 10 + 65 / 40) / 3)
    assert found.wait_p50_s == 20
    assert found.bounded_slowdown_max == 2.5
    assert service_of(job_times(rows[:0])) is None


OWNERS = {"1": ("ann", "long"), "2": ("bob", "short"), "3": ("ann", "short")}


def owned(*jobs: tuple) -> JobRows:
    """Run jobs one after another on one node, with their owners."""
    return job_rows(run("baseline", machine(1, *jobs)).ledger, OWNERS)


def test_users_and_queues_of_three_jobs() -> None:
    """The bounded slowdowns are 1, 2.5 and 65/40; ann's mean is 1.3125, bob's 2.5."""
    rows = owned((1, 20), (1, 5), (1, 40))
    users = {name: values for name, *values in group_rows(rows, "user")}
    bounded = GROUP_COLUMNS.index("bounded_slowdown_mean")
    assert {name: values[:2] for name, values in users.items()} == {"ann": [2, 2], "bob": [1, 1]}
    assert [users[name][bounded] for name in ("ann", "bob")] == pytest.approx([1.3125, 2.5])
    assert [name for name, *_ in group_rows(rows, "queue")] == ["long", "short"]
    found = fairness(rows)
    assert found is not None
    assert (found.users, found.worst_user) == (2, 2.5)
    assert found.jain == pytest.approx((1.3125 + 2.5) ** 2 / (2 * (1.3125**2 + 2.5**2)))


def test_jobs_without_a_user_are_nobodys(tmp_path) -> None:
    owners = {"1": ("ann", ""), "3": ("ann", "")}
    rows = job_rows(run("baseline", machine(1, (1, 20), (1, 5), (1, 40))).ledger, owners)
    found = fairness(rows)
    assert found is not None
    assert (found.users, found.jain) == (1, 1)
    assert [name for name, *_ in group_rows(rows, "user")] == ["", "ann"]


def test_without_users_there_is_no_fairness() -> None:
    rows = run("baseline", machine(1, (1, 20))).rows
    assert fairness(rows) is None
    assert list(group_rows(rows, "user")) == []


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30))
def test_jain_lies_between_one_for_all_and_all_alike(values: list[float]) -> None:
    index = jain(np.array(values))
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain(np.full(len(values), values[0])) == pytest.approx(1)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.sampled_from((0.5, 0.95)))
def test_quantiles_are_those_of_numpy(values: list[float], share: float) -> None:
    ordered = np.sort([values, values[::-1]], axis=1)
    assert quantiles(ordered, share) == [np.quantile(values, share)] * 2


@given(st.lists(st.floats(0.1, 1e7), min_size=1, max_size=400), st.integers(1, 1000))
def test_sums_of_rows_have_the_digits_of_single_sums(values: list[float], size: int) -> None:
    """The sums of several rows equal sums in the order of the jobs, and NumPy's means."""
    flow, wait = np.array(values), np.array(values) / 3
    times = np.stack([np.full(len(flow), size), size * flow, flow, wait, 2 * flow, 3 * flow])
    service, flows = service_of(times), flow_of(times)
    assert service is not None and flows is not None
    assert service.wait_mean_s == wait.mean()
    assert service.slowdown_mean == (3 * flow).mean()
    assert (flows.max_s, flows.mean_s) == (max(values), sum_in_order(values) / len(values))


def sum_in_order(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from("abc")), min_size=1, max_size=25))
def test_groups_hold_every_job_once_and_their_own_numbers(jobs: list[tuple[int, str]]) -> None:
    """The groups equal those of a plain loop over the rows."""
    owners = {f"{n}": (name, "") for n, (_, name) in enumerate(jobs, 1)}
    made = machine(1, *((1, length) for length, _ in jobs))
    rows = job_rows(run("baseline", made).ledger, owners)
    by_user: dict[str, list[float]] = {}
    for row in rows:
        assert row.waiting_time is not None
        by_user.setdefault(row.user, []).append(row.waiting_time)
    found = {name: values for name, *values in group_rows(rows, "user")}
    mean, largest = (GROUP_COLUMNS.index(name) for name in ("wait_mean_s", "wait_max_s"))
    assert found.keys() == by_user.keys()
    for name, waits in by_user.items():
        assert found[name][0] == len(waits)
        assert found[name][mean] == pytest.approx(sum(waits) / len(waits))
        assert found[name][largest] == max(waits)
