# SPDX-License-Identifier: Apache-2.0
"""Partitions of list schedulers: which nodes a job may use, and in which order jobs start."""

from __future__ import annotations

import random

import msgspec
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.models.failures.events import MachineEvent
from rebat.policies.partitions import partitions_on, read_partitions
from rebat.policies.presets import preset
from rebat.runs.single import RunResult
from tests.support.amount import few
from tests.support.asked import simulate

TWO = "a:0-3+b:4-7"
SHARED = "a:0-5+b:4-9+all:0-9"


def work(n_nodes: int, *jobs: tuple) -> Workload:
    """Return jobs (queue, nodes, length in s, submission in s) that request twice their length."""
    rows = tuple(
        Job(str(i), size, to_us(at), to_us(2 * length), f"d{length}", {"queue": queue})
        for i, (queue, size, length, at) in enumerate(jobs, start=1)
    )
    profiles = {f"d{job[2]}": {"type": "delay", "delay": job[2]} for job in jobs}
    return Workload("work", n_nodes, rows, profiles)


def starts(result: RunResult) -> dict[str, tuple[float, str]]:
    """Return the last start (s) and the nodes of each job that ran."""
    return {
        row.attempt.job_id[3:]: (to_s(row.start_us), str(row.nodes))
        for row in result.ledger.attempts
        if row.nodes
    }


def run(policy: str, workload: Workload, *events: tuple[float, bool, str]) -> RunResult:
    machine_events = [MachineEvent(to_us(at), up, NodeSet.parse(nodes)) for at, up, nodes in events]
    return simulate(workload, preset(policy), machine_events=machine_events, how="asked")


@pytest.mark.parametrize("policy", ["easy", "baseline", "greedy", "easy:placement=named"])
def test_a_job_waits_for_its_partition_although_other_nodes_are_free(policy) -> None:
    workload = work(8, ("a", 4, 10, 0), ("a", 1, 5, 1), ("b", 2, 5, 1))
    mark = "," if ":" in policy else ":"
    assert starts(run(f"{policy}{mark}partitions={TWO}", workload)) == {
        "1": (0.0, "0-3"), "2": (10.0, "0"), "3": (1.0, "4-5"),
    }  # fmt: skip
    assert starts(run(policy, workload))["2"] == (1.0, "4")


def test_a_job_without_a_partition_runs_in_the_first_that_is_large_enough() -> None:
    workload = work(8, ("", 1, 5, 0), ("other", 5, 5, 0))
    result = run("easy:partitions=small:0-1+large:2-7", workload)
    assert starts(result) == {"1": (0.0, "0"), "2": (0.0, "2-6")}


def test_limits_and_default_times_of_partitions() -> None:
    workload = work(8, ("a", 3, 10, 0), ("b", 1, 10, 0), ("b", 4, 10, 0), ("b", 5, 1, 0))
    text = "a:0-3:max_nodes=2+b:4-7:max_time=15"
    result = run(f"easy:partitions={text}", workload)
    assert dict(result.ledger.rejections) == {
        "w0!1": "requires 3 nodes, but the maximum of partition a is 2",
        "w0!2": "has a longer walltime than the maximum of partition b, 15 s",
        "w0!3": "has a longer walltime than the maximum of partition b, 15 s",
        "w0!4": "requires 5 nodes, but the maximum of partition b is 4",
    }


def test_a_job_without_walltime_is_planned_with_the_default_time() -> None:
    """A job of 2 nodes waits for a job without walltime. A job of 8 s may start before it."""
    made = work(2, ("a", 1, 10, 0), ("a", 2, 1, 1), ("a", 1, 4, 2))
    endless = Job("1", 1, 0, None, "d10", {"queue": "a"})
    workload = Workload("work", 2, (endless, *made.jobs[1:]), made.profiles)
    early = starts(run("easy:partitions=a:0-1:default_time=10", workload))
    late = starts(run("easy:partitions=a:0-1:default_time=9", workload))
    assert early["3"] == (2.0, "1") and late["3"][0] > 10


def test_partitions_have_orders_of_their_own() -> None:
    jobs = [(queue, 4, length, at) for queue in "ab" for at, length in enumerate((10, 9, 3))]
    result = starts(run("easy:partitions=a:0-3+b:4-7:order=shortest", work(8, *jobs)))
    assert [result[name][0] for name in "123"] == [0.0, 10.0, 19.0]
    assert [result[name][0] for name in "456"] == [0.0, 13.0, 10.0]


def test_a_victim_is_of_the_partition_of_the_failed_job() -> None:
    """In b, a job of one node is the smallest. The failed job of a takes a node of a."""
    workload = work(8, ("a", 3, 100, 0), ("a", 1, 100, 0), ("b", 1, 100, 0), ("b", 3, 100, 0))
    result = run(f"sfsj:partitions={TWO}", workload, (10.0, False, "0"))
    stolen = [row.attempt.job_id for row in result.ledger.attempts if row.cause.value == "stolen"]
    assert stolen == ["w0!2"]
    free = work(8, ("a", 3, 100, 0), ("a", 1, 100, 0))
    assert run(f"sfsj:partitions={TWO}", free, (10.0, False, "0")).ledger.steals  # b is idle
    assert not run("sfsj", free, (10.0, False, "0")).ledger.steals


def test_a_job_is_replaced_and_spare_nodes_are_of_its_partition() -> None:
    workload = work(8, ("a", 3, 100, 0), ("b", 3, 100, 0))
    policy = f"easy:react=replacement,spares=2,partitions={TWO}"
    result = run(policy, workload, (10.0, False, "0"))
    assert starts(result) == {"1": (10.0, "1-3"), "2": (0.0, "4-6")}


# ---- partitions that share nodes


def test_nodes_of_fewest_partitions_are_used_first() -> None:
    result = run("easy:partitions=a:0-5+b:4-9", work(10, ("b", 4, 10, 0), ("a", 2, 10, 0)))
    assert starts(result) == {"1": (0.0, "6-9"), "2": (0.0, "0-1")}


def test_easy_reserves_for_the_first_blocked_job_of_each_partition() -> None:
    """Job 4 of b would delay job 3, but not a job of a. Job 5 ends before job 3 starts."""
    jobs = [("a", 4, 20, 0), ("b", 4, 20, 0), ("b", 6, 5, 1), ("b", 2, 30, 2), ("a", 2, 10, 3)]
    result = starts(run("easy:partitions=a:0-5+b:4-9", work(10, *jobs)))
    assert result["3"] == (20.0, "4-9")
    assert result["4"] == (25.0, "6-7") and result["5"] == (3.0, "4-5")


def test_a_job_is_not_replaced_by_a_node_that_is_only_of_another_partition() -> None:
    """Job 1 of a uses all nodes of a. Job 2 holds 6 and 7, and nodes 8 and 9 of b are idle."""
    jobs = [("a", 6, 100, 0), ("b", 2, 100, 0)]
    policy = "easy:react=replacement,partitions=a:0-5+b:4-9"
    result = run(policy, work(10, *jobs), (10.0, False, "0"), (50.0, True, "0"))
    assert starts(result)["1"] == (50.0, "0-5")


def test_a_higher_tier_goes_first() -> None:
    jobs = [("low", 4, 10, 0), ("low", 4, 10, 1), ("high", 4, 10, 2)]
    result = starts(run("easy:partitions=low:0-3+high:0-3:2", work(4, *jobs)))
    assert [result[name][0] for name in "123"] == [0.0, 20.0, 10.0]


POLICIES = (
    "easy",
    "baseline",
    "greedy",
    "h111",
    "easy:depth=2",
    "easy-sfsj",
    "baseline:maintenance=rebuild",
    "batsched-fcfs",
    "easy:react=replacement",
    "training-swap",
    "training-preempt",
)


@pytest.mark.sampled
def test_jobs_run_once_and_in_their_partition_under_random_failures() -> None:
    """Each job ends exactly once, in its partition, and never on a node that is down."""
    for seed in range(few(200)):
        rng = random.Random(seed)
        policy = rng.choice(POLICIES)
        jobs = [
            (
                rng.choice(["a", "b", "all"]),
                rng.randint(1, 6),
                rng.randint(1, 20),
                rng.randint(0, 30),
            )
            for _ in range(rng.randint(1, 25))
        ]
        workload = work(10, *jobs)
        events = []
        for node in rng.sample(range(10), 4):
            at = rng.randint(1, 40)
            events += [(at, False, str(node)), (at + rng.randint(1, 20), True, str(node))]
        mark = "," if ":" in policy else ":"
        result = run(f"{policy}{mark}partitions={SHARED}", workload, *events)
        nodes = {row.name: row.nodes for row in partitions_on(SHARED, 10, 1)}
        queue = {f"w0!{job.id}": job.extra["queue"] for job in workload.jobs}
        for row in result.ledger.attempts:
            if row.nodes:
                assert set(row.nodes) <= set(nodes[queue[row.attempt.job_id]]), (seed, policy)
                assert not any(
                    at < to_s(row.end_us) and to_s(row.start_us) < back and int(node) in row.nodes
                    and at < to_s(row.start_us)
                    for (at, _, node), (back, _, _) in zip(events[::2], events[1::2], strict=True)
                )  # fmt: skip
        ended = [
            row.attempt.job_id
            for row in result.ledger.attempts
            if row.cause.value in ("completed", "rejected")
        ]
        assert sorted(ended) == sorted(queue), (seed, policy)


# ---- the notation


def test_a_partition_as_text_is_read() -> None:
    text = "gpu%20x:0-3:2:order=shortest:max_nodes=2:max_time=1h:default_time=10min:reversed"
    (row,) = partitions_on(text, 4, 1)
    assert (row.name, str(row.nodes), row.tier, row.backwards) == ("gpu x", "0-3", 2, True)
    assert (row.order, row.max_nodes) == ("shortest", 2)
    assert (row.max_time_us, row.default_time_us) == (to_us(3600), to_us(600))
    assert read_partitions("none") == read_partitions("") == ()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("easy:react=replacement,spares=1", "spare nodes with partitions a and b, which share"),
        ("pra", "a planning that changes sizes of jobs with partitions a and b"),
        ("easy:placement=cluster", "a placement other than any or named with partitions a and b"),
    ],
)
def test_what_partitions_that_share_nodes_do_not_support(policy, words) -> None:
    mark = "," if ":" in policy else ":"
    with pytest.raises(InputError, match=words):
        run(f"{policy}{mark}partitions=a:0-1+b:1-2", work(3, ("a", 1, 1, 0)))


@pytest.mark.parametrize("policy", ["easy", "baseline:planning=fifo", "greedy"])
@pytest.mark.parametrize("limit", ["max_nodes=1", "max_time=15s"])
def test_a_job_without_a_queue_avoids_partitions_whose_limits_exclude_it(policy, limit) -> None:
    """Both jobs request 20 s. Job 1 needs two nodes, job 2 needs one."""
    mark = "," if ":" in policy else ":"
    text = f"{policy}{mark}partitions=small:0-3:{limit}+large:4-7"
    result = starts(run(text, work(8, ("", 2, 10, 0), ("", 1, 10, 0))))
    assert result["1"] == (0.0, "4-5")
    assert result["2"][1] == ("0" if limit == "max_nodes=1" else "6")


def test_a_job_without_walltime_may_use_a_partition_with_a_maximum_time() -> None:
    workload = work(4, ("", 2, 10, 0))
    endless = msgspec.structs.replace(workload.jobs[0], walltime_us=None)
    workload = msgspec.structs.replace(workload, jobs=(endless,))
    assert starts(run("easy:partitions=a:0-1:max_time=1h+b:2-3", workload)) == {"1": (0.0, "0-1")}


@pytest.mark.parametrize("policy", ["easy", "batsched-fcfs", "cluster"])
def test_a_machine_without_partitions_has_one_pool_of_nodes(policy) -> None:
    assert starts(run(f"{policy}:partitions=none", work(2, ("a", 2, 10, 0)))) == {"1": (0.0, "0-1")}


def test_limits_are_nodes_if_nodes_have_several_cores() -> None:
    (row,) = partitions_on("a:all:max_nodes=2", 16, 4)
    assert not row.refuses(8, 0) and row.refuses(9, 0)


def test_a_node_is_held_and_comes_up_at_the_same_time() -> None:
    """At 28 s, node 2 comes up, and a hold that begins at this time contains it."""
    jobs = (
        ("p2", 5, 11, 3),
        ("p0", 6, 12, 7),
        ("p0", 2, 3, 12),
        ("p0", 5, 13, 18),
        ("p0", 3, 5, 18),
        ("p1", 1, 12, 20),
    )
    walls_s = (16.500001, 36.000001, 4.500001, 19.500001, None, None)
    rows = tuple(
        msgspec.structs.replace(job, walltime_us=to_us(wall_s) if wall_s else None)
        for job, wall_s in zip(work(6, *jobs).jobs, walls_s, strict=True)
    )
    workload = msgspec.structs.replace(work(6, *jobs), jobs=rows)
    times = ((2, "3"), (5, "3"), (20, "0"), (21, "2"), (28, "2"), (29, "3"), (34, "0"), (36, "3"))
    up = (5, 28, 34, 36)
    result = run(
        "training-swap:partitions=p0:0-5:3:order=fcfs+p1:0 2:order=largest+p2:0 2-5",
        workload,
        *((float(at), at in up, node) for at, node in times),
    )
    completed = [r for r in result.ledger.attempts if r.cause.value == "completed"]
    assert len(completed) == len(rows)


@pytest.mark.parametrize("how", ["auto", "asked"])
@pytest.mark.parametrize(
    ("partitions", "starts"),
    [
        ("a:all:weight=10+b:all:weight=1", [0, 100, 50]),
        ("a:all:weight=1+b:all:weight=10", [0, 50, 100]),
        ("a:all:weight=5+b:all:weight=5", [0, 50, 100]),
    ],
)
def test_weights_of_partitions_with_the_same_nodes(
    how: str, partitions: str, starts: list[float]
) -> None:
    """The first job is in b, like the second. The third is in a."""
    jobs = tuple(
        Job(name, 4, to_us(at), to_us(100), "d", {"partition": partition})
        for at, (name, partition) in enumerate([("long", "b"), ("low", "b"), ("high", "a")])
    )
    workload = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 50}})
    policy = preset(f"easy:order=multifactor:partition=1000,partitions={partitions}")
    result = simulate(workload, policy, how=how)
    assert result.rows.column("first_start").tolist() == starts


@pytest.mark.parametrize("planning", ["list", "fifo"])
def test_spare_nodes_of_partitions_that_share_nodes_are_refused(planning: str) -> None:
    spec = f"baseline:planning={planning},react=replacement,spares=1,partitions=p:all:2+q:all:1"
    with pytest.raises(InputError, match="spare nodes with partitions p and q, which share nodes"):
        preset(spec)
