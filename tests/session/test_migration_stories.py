# SPDX-License-Identifier: Apache-2.0
"""Small examples of jobs that migrate, computed by hand.

They follow sections 3.3 and 4.1 to 4.3 of Rodríguez-Pascual et al., "Job migration in HPC clusters
by means of checkpoint/restart", 2019. Nodes have 16 cores. Simultaneous jobs are in the order of
their names. If only its size matters, the name of a job is a letter and its number of cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rebat.core.attempts import Cause, Priority
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.policies.presets import preset
from rebat.results.measures.platform import usage
from rebat.runs.single import RunResult, simulate
from tests.support.scenarios import check_run

CORES = 16

Place = tuple[str, float, float]
"""The nodes of an attempt (not its cores), its start and its end in seconds."""


# ---- builders and results of the examples


def ask(
    name: str,
    cores: int,
    length_s: float,
    submit_s: float = 0,
    walltime_s: float | None = None,
    **extra: Any,
) -> Job:
    """Return a job. The default walltime is twice its length."""
    walltime_us = to_us(walltime_s or 2 * length_s)
    return Job(name, cores, to_us(submit_s), walltime_us, str(length_s), extra)


def eternal(name: str, submit_s: float = 0) -> Job:
    """Return a serial job that never ends."""
    extra = {"partition": "eternal", "eternal": True}
    return Job(name, 1, to_us(submit_s), None, "1000000", extra)


def drain(at_s: float, nodes: str, **more: Any) -> GenericEvent:
    """Return the order to drain nodes."""
    return GenericEvent(to_us(at_s), {"type": "drain", "nodes": nodes, **more})


def undrain(at_s: float, nodes: str, **more: Any) -> GenericEvent:
    """Return the order to return nodes to service."""
    return GenericEvent(to_us(at_s), {"type": "undrain", "nodes": nodes, **more})


def migrate(at_s: float, job: str, **more: Any) -> GenericEvent:
    """Return the order to migrate a job."""
    return GenericEvent(to_us(at_s), {"type": "migrate", "job": job, **more})


def dies(at_s: float, node: int) -> MachineEvent:
    """Return the failure of an entire node."""
    cores = NodeSet.from_intervals([(node * CORES, node * CORES + CORES - 1)])
    return MachineEvent(to_us(at_s), False, cores)


def returns(at_s: float, node: int) -> MachineEvent:
    """Return the repair of an entire node."""
    return MachineEvent(to_us(at_s), True, dies(at_s, node).nodes)


def tell(
    policy: str,
    n_nodes: int,
    jobs: Sequence[Job],
    operations: Sequence[GenericEvent] = (),
    failures: Sequence[MachineEvent] = (),
) -> RunResult:
    """Run an example on nodes of 16 cores, and check the rules for every run."""
    profiles = {job.profile: {"type": "delay", "delay": float(job.profile)} for job in jobs}
    result = simulate(
        Workload("story", n_nodes * CORES, tuple(jobs), profiles),
        preset(policy),
        cores_per_node=CORES,
        operations=operations,
        machine_events=failures,
    )
    check_run(result)
    return result


def short(attempt_id: str) -> str:
    """Return the id of an attempt without its workload: 'a#1' for 'w0!a#1'."""
    return attempt_id.partition("!")[2]


def places(result: RunResult) -> dict[str, Place]:
    """Return the nodes, the start and the end of each attempt."""
    return {
        short(one.attempt.id): (
            str(NodeSet.of(one.nodes.ids // CORES)), to_s(one.start_us), to_s(one.end_us),
        )
        for one in result.ledger.attempts
        if one.nodes is not None
    }  # fmt: skip


def cores_of(result: RunResult) -> dict[str, str]:
    """Return the cores of each attempt."""
    return {short(one.attempt.id): str(one.nodes) for one in result.ledger.attempts}


def overheads(result: RunResult) -> dict[str, float]:
    """Return the overhead in seconds of each attempt that starts with one."""
    return {
        short(one.attempt.id): to_s(one.checkpointing.first_recovery_us)
        for one in result.ledger.attempts
        if one.checkpointing is not None and one.checkpointing.first_recovery_us
    }


def work(result: RunResult) -> dict[str, float]:
    """Return the progress of each attempt, in seconds."""
    return {short(one.attempt.id): to_s(one.useful_us) for one in result.ledger.attempts}


def causes(result: RunResult) -> dict[str, Cause]:
    """Return the cause of the end of each attempt."""
    return {short(one.attempt.id): one.cause for one in result.ledger.attempts}


def refused(result: RunResult) -> list[float]:
    """Return the times of refused orders."""
    return [to_s(at_us) for at_us, _, _ in result.ledger.refusals]


def in_service(result: RunResult) -> bool:
    """Return whether no node is drained at the end."""
    return all(one.until_us is not None for one in result.ledger.drained)


# ---- without migration: first come, first served


def test_without_backfilling_a_small_job_waits_behind_a_large_one() -> None:
    """Eight cores are free from 0 on. b needs 16 and starts at 100, and c starts after b."""
    jobs = ask("a", 8, 100), ask("b", 16, 50, 1), ask("c", 1, 10, 2)
    ran = places(tell("cluster", 1, jobs))
    assert ran == {"a": ("0", 0, 100), "b": ("0", 100, 150), "c": ("0", 150, 160)}


def test_a_job_goes_to_the_fullest_node_with_room_and_to_its_lowest_cores() -> None:
    """a and b fill node 0 with 10 + 6 cores, and c is on node 1. When b ends, nodes 0 and 1 have
    6 and 13 free cores. d (4) takes cores 10-13 of node 0, which is fuller. e (5) no longer fits
    there."""
    jobs = (
        ask("a", 10, 500), ask("b", 6, 50), ask("c", 3, 500), ask("d", 4, 100, 60),
        ask("e", 5, 100, 70),
    )  # fmt: skip
    cores = cores_of(tell("cluster", 3, jobs))
    assert cores == {"a": "0-9", "b": "10-15", "c": "16-18", "d": "10-13", "e": "19-23"}


def test_a_wide_job_takes_the_emptiest_nodes_first() -> None:
    """Nodes 0 to 2 have 12, 16 and 16 free cores. b takes 40 = 16 + 16 + 8, with the 8 on node
    0."""
    cores = cores_of(tell("cluster", 3, (ask("a", 4, 100), ask("b", 40, 100))))
    assert cores == {"a": "0-3", "b": "4-11 16-47"}


# ---- the cost of a migration


@pytest.mark.parametrize(
    ("cores", "memory_mb", "seconds"),
    [
        (1, 50, 51), (16, 100, 66), (128, 1000, 608),
        (16, 550, 134.0),  # halfway between 66 and 202
        (24, 100, 73.605),  # 66 + (log2 24 - 4) x (79 - 66)
        (256, 2000, 608),  # larger than the table
        (1, 1000, 89), (2, 100, 54), (8, 1000, 144),
    ],
)  # fmt: skip
def test_a_job_pays_what_table_1_says_of_its_tasks_and_memory(
    cores: int, memory_mb: float, seconds: float
) -> None:
    """The job migrates at 400 s of 1000 and restarts immediately. The overhead delays its end."""
    jobs = (ask("a", cores, 1000, memory_mb=memory_mb),)
    result = tell("cluster", 16, jobs, [migrate(400, "a")])
    assert overheads(result) == {"a#1": pytest.approx(seconds, abs=5e-4)}
    _, start_s, end_s = places(result)["a#1"]
    assert start_s == 400
    assert end_s == pytest.approx(1000 + seconds, abs=5e-4)


@pytest.mark.parametrize(
    ("axes", "seconds"),
    [
        ("purge=300", 173),  # 53 + (300 - 60) / 2
        ("purge=0", 23),  # 53 - 30
        ("migration_cost=10", 10),
        ("migration_cost=constant*10", 10),
        ("migration_cost=0", 0),
        ("migration_cost=table", 53),
    ],
)
def test_axes_say_what_it_costs(axes: str, seconds: float) -> None:
    """The table has 53 s for one core and 100 MB."""
    result = tell(f"cluster:{axes}", 2, (ask("a", 1, 1000),), [drain(400, "0")])
    assert places(result) == {"a": ("0", 0, 400), "a#1": ("1", 400, 1000 + seconds)}


def test_jobs_of_a_thousand_mb_pay_more() -> None:
    """Node 0 has a job of 1 core (89 s instead of 53) and one of 8 cores (144 s instead of 59)."""
    jobs = ask("small", 1, 1000, memory_mb=1000), ask("large", 8, 1000, memory_mb=1000)
    ran = places(tell("cluster", 2, jobs, [drain(100, "0")]))
    assert ran["small#1"] == ("1", 100, 1089)
    assert ran["large#1"] == ("1", 100, 1144)


def test_a_migrated_job_ends_later_by_the_overhead_and_loses_no_work() -> None:
    """The job runs for 400 s on node 0. From 400 on it has 53 s of overhead and the other 600 s
    on node 1."""
    result = tell("cluster", 2, (ask("a", 1, 1000),), [drain(400, "0")])
    assert places(result) == {"a": ("0", 0, 400), "a#1": ("1", 400, 1053)}
    assert overheads(result) == {"a#1": 53}
    assert work(result) == {"a": 400, "a#1": 600}
    assert (result.rows[0].flow, result.rows[0].attempts) == (1053, 2)
    moved = result.summary.migrations
    assert (moved.count, moved.cost, moved.moved) == (1, 53, 400)
    first, last = result.ledger.attempts
    assert (first.cause, first.imaged, last.cause) == (Cause.MOVED, True, Cause.COMPLETED)


def test_the_cost_of_a_wide_job_is_paid_on_all_its_cores() -> None:
    """Each of 16 cores has 66 s of overhead: 1056 core-seconds, after 16 x 400 core-seconds of
    work."""
    result = tell("cluster", 2, (ask("a", 16, 1000),), [drain(400, "0")])
    moved = result.summary.migrations
    assert (moved.count, moved.cost, moved.moved) == (1, 1056, 6400)


def test_the_overhead_is_added_to_the_walltime_that_is_left() -> None:
    """At 400, 500 of 900 s of walltime are left, so the job is killed at 400 + 53 + 500."""
    result = tell("cluster", 2, (ask("a", 1, 1000, walltime_s=900),), [drain(400, "0")])
    assert places(result)["a#1"] == ("1", 400, 953)
    assert causes(result) == {"a": Cause.MOVED, "a#1": Cause.WALLTIME}
    assert [to_s(one.attempt.walltime_us) for one in result.ledger.attempts] == [900, 553]


def test_a_second_migration_during_the_overhead_of_the_first_pays_in_full_again() -> None:
    """The job moves at 400, and again at 450 after 50 of 100 s of overhead: it ends at
    450 + 100 + 600."""
    result = tell(
        "cluster:migration_cost=100", 2, (ask("a", 1, 1000),),
        [migrate(400, "a", nodes="1"), migrate(450, "a", nodes="0")],
    )  # fmt: skip
    assert places(result) == {"a": ("0", 0, 400), "a#1": ("1", 400, 450), "a#2": ("0", 450, 1150)}
    assert work(result) == {"a": 400, "a#1": 0, "a#2": 600}
    assert overheads(result) == {"a#1": 100, "a#2": 100}


def test_a_second_migration_after_the_overhead_keeps_what_was_done_since() -> None:
    """The job works for 400 s, has 100 s of overhead and works for another 200 s. It moves again
    at 700 and ends at 700 + 100 + 400."""
    result = tell(
        "cluster:migration_cost=100", 2, (ask("a", 1, 1000),),
        [migrate(400, "a", nodes="1"), migrate(700, "a", nodes="0")],
    )  # fmt: skip
    assert work(result) == {"a": 400, "a#1": 200, "a#2": 400}
    assert places(result)["a#2"] == ("0", 700, 1200)


# ---- smigrate, step by step


def test_step_1_who_may_not_drain_changes_nothing() -> None:
    """Neither a stranger nor the user of the job may drain. A later job still starts on node 0."""
    jobs = ask("a", 4, 1000, user="ann"), ask("late", 4, 50, 150)
    events = [drain(100, "0", user="eve"), drain(110, "0", user="ann")]
    result = tell("cluster:operators=root+ops", 2, jobs, events)
    assert places(result) == {"a": ("0", 0, 1000), "late": ("0", 150, 200)}
    assert refused(result) == [100, 110]
    assert result.ledger.drained == []


@pytest.mark.parametrize("who", [{"user": "ops"}, {"user": "root"}, {}])
def test_step_1_operators_and_the_administrator_may_drain(who: dict[str, str]) -> None:
    result = tell(
        "cluster:operators=root+ops,migration_cost=10", 2, (ask("a", 4, 1000, user="ann"),),
        [drain(100, "0", **who)],
    )  # fmt: skip
    assert places(result) == {"a": ("0", 0, 100), "a#1": ("1", 100, 1010)}
    assert refused(result) == []


@pytest.mark.parametrize(
    ("who", "may"),
    [("ann", True), ("ops", True), ("eve", False)],
)
def test_step_1_a_job_is_migrated_by_its_own_user_and_by_operators(who: str, may: bool) -> None:
    result = tell(
        "cluster:operators=root+ops,migration_cost=10", 2, (ask("a", 4, 1000, user="ann"),),
        [migrate(100, "a", nodes="1", user=who)],
    )  # fmt: skip
    assert places(result).get("a#1") == (("1", 100, 1010) if may else None)
    assert refused(result) == ([] if may else [100])


def test_step_1_strangers_do_not_give_nodes_back() -> None:
    """b waits for node 1, which is drained at 50. eve's undrain at 100 is refused, the one at
    200 is not."""
    jobs = ask("a", 16, 1000), ask("b", 16, 100, 60)
    events = [drain(50, "1"), undrain(100, "1", user="eve"), undrain(200, "1")]
    result = tell("cluster:operators=ops", 2, jobs, events)
    assert places(result)["b"] == ("1", 200, 300)
    assert refused(result) == [100]


def test_step_2_nothing_starts_on_a_node_from_the_instant_of_its_drain_on() -> None:
    """Node 0 has 12 free cores and would be the first choice. 'same' arrives at 100, with the
    drain."""
    jobs = ask("a", 4, 1000), ask("same", 2, 100, 100), ask("later", 2, 100, 150)
    result = tell("cluster:migration_cost=10", 2, jobs, [drain(100, "0")])
    assert places(result) == {
        "a": ("0", 0, 100), "a#1": ("1", 100, 1010),
        "same": ("1", 100, 200), "later": ("1", 150, 250),
    }  # fmt: skip


def test_step_3_one_job_that_cannot_be_checkpointed_and_the_node_is_available_again() -> None:
    """No job is stopped, not even 'plain'. 'later' still starts on node 0, which is the fullest
    node."""
    jobs = (
        ask("plain", 4, 1000), ask("sticky", 4, 1000, checkpointable=False),
        ask("later", 4, 100, 200),
    )  # fmt: skip
    result = tell("cluster", 2, jobs, [drain(100, "0")])
    assert places(result) == {
        "plain": ("0", 0, 1000), "sticky": ("0", 0, 1000), "later": ("0", 200, 300),
    }  # fmt: skip
    ((at_us, what, why),) = result.ledger.refusals
    assert at_us == to_us(100)
    assert "0" in what
    assert "sticky" in why
    assert in_service(result)
    assert (result.summary.drains.refused, result.summary.drains.nodes) == (1, 0)
    assert result.summary.migrations.count == 0


def test_step_3_is_about_the_jobs_of_that_node_only() -> None:
    """'sticky' is on node 1, so it does not prevent the drain of node 0."""
    jobs = ask("plain", 16, 1000), ask("sticky", 16, 1000, checkpointable=False)
    result = tell("cluster:migration_cost=10", 3, jobs, [drain(100, "0")])
    assert places(result) == {
        "plain": ("0", 0, 100), "sticky": ("1", 0, 1000), "plain#1": ("2", 100, 1010),
    }  # fmt: skip


def test_step_4_a_job_on_several_nodes_stays_where_the_flag_forbids() -> None:
    """'large' has node 0 and 8 cores of node 1. 'small' is on node 1 and stays as well."""
    jobs = ask("large", 24, 1000), ask("small", 2, 1000), ask("later", 2, 100, 200)
    result = tell("cluster", 3, jobs, [drain(100, "1", spanning=False)])
    assert places(result) == {
        "large": ("0-1", 0, 1000), "small": ("1", 0, 1000), "later": ("1", 200, 300),
    }  # fmt: skip
    ((at_us, _, why),) = result.ledger.refusals
    assert at_us == to_us(100)
    assert "large" in why
    assert in_service(result)


def test_step_4_the_flag_is_about_jobs_on_several_nodes_only() -> None:
    result = tell(
        "cluster:migration_cost=10", 2, (ask("a", 16, 1000),), [drain(100, "0", spanning=False)]
    )
    assert places(result)["a#1"] == ("1", 100, 1010)


def test_step_5_all_jobs_of_the_node_start_elsewhere_at_the_same_instant() -> None:
    """a and b are on node 0, c is on node 1. a (8) then fits only on node 2, and b (4) fits into
    the 6 free cores of node 1. The overhead is 59 s for 8 cores and 55 s for 4."""
    jobs = ask("a", 8, 1000), ask("b", 4, 1000), ask("c", 10, 1000)
    result = tell("cluster", 3, jobs, [drain(120, "0")])
    assert places(result) == {
        "a": ("0", 0, 120), "a#1": ("2", 120, 120 + 59 + 880),
        "b": ("0", 0, 120), "b#1": ("1", 120, 120 + 55 + 880),
        "c": ("1", 0, 1000),
    }  # fmt: skip
    assert result.summary.migrations.by == {"drain": 2}


def test_step_5_a_checkpointed_job_goes_before_those_that_wait() -> None:
    """c waits for 16 cores from 10 on. Node 0 is drained at 100. When b leaves node 1 at 500, a
    gets the node before c, and ends at 500 + 59 + 900."""
    jobs = ask("a", 8, 1000), ask("b", 16, 500), ask("c", 16, 100, 10)
    result = tell("cluster", 2, jobs, [drain(100, "0")])
    assert places(result) == {
        "a": ("0", 0, 100), "b": ("1", 0, 500), "a#1": ("1", 500, 1459), "c": ("1", 1459, 1559),
    }  # fmt: skip
    priority = {short(one.attempt.id): one.attempt.priority for one in result.ledger.attempts}
    assert priority["a#1"] == max(Priority)
    assert priority["a"] == priority["b"] == priority["c"] == Priority.REGULAR


def test_step_6_an_empty_node_goes_to_maintenance_and_hits_nobody() -> None:
    """Node 0 is down from 110 to 400 and in service again at 450. Then c (16 cores) starts on
    it."""
    jobs = ask("a", 4, 1000), ask("c", 16, 100, 200)
    result = tell(
        "cluster:migration_cost=10", 2, jobs, [drain(100, "0"), undrain(450, "0")],
        [dies(110, 0), returns(400, 0)],
    )  # fmt: skip
    assert places(result) == {
        "a": ("0", 0, 100), "a#1": ("1", 100, 1010), "c": ("0", 450, 550),
    }  # fmt: skip
    assert result.summary.failures_hit == 0
    assert result.summary.drains.max_s == 0


def test_step_7_a_restart_gets_the_node_as_soon_as_it_is_available() -> None:
    """There is only one node. a waits for it from 100 to 300. Then a has 10 s of overhead and
    works for 900 s."""
    result = tell(
        "cluster:migration_cost=10", 1, (ask("a", 4, 1000),), [drain(100, "0"), undrain(300, "0")]
    )
    assert places(result) == {"a": ("0", 0, 100), "a#1": ("0", 300, 1210)}
    assert work(result) == {"a": 100, "a#1": 900}
    assert in_service(result)


# ---- drains


def test_several_nodes_are_emptied_at_once() -> None:
    jobs = ask("a", 16, 500), ask("b", 16, 500), ask("later", 1, 10, 200)
    result = tell("cluster:migration_cost=10", 5, jobs, [drain(100, "0-1")])
    assert places(result) == {
        "a": ("0", 0, 100), "a#1": ("2", 100, 510),
        "b": ("1", 0, 100), "b#1": ("3", 100, 510),
        "later": ("4", 200, 210),
    }  # fmt: skip


def test_of_several_nodes_none_is_drained_where_one_cannot_be() -> None:
    """'sticky' prevents the drain of node 1. Therefore node 0 is available again as well, for c
    at 200."""
    jobs = (
        ask("a", 16, 150), ask("sticky", 8, 1000, checkpointable=False),
        ask("c", 16, 100, 200), ask("d", 8, 100, 200),
    )  # fmt: skip
    result = tell("cluster", 4, jobs, [drain(100, "0-1")])
    assert places(result) == {
        "a": ("0", 0, 150), "sticky": ("1", 0, 1000), "c": ("0", 200, 300), "d": ("1", 200, 300),
    }  # fmt: skip
    assert refused(result) == [100]
    assert in_service(result)


def test_a_job_on_several_nodes_leaves_all_of_them_when_one_is_drained() -> None:
    """The job has 24 cores on nodes 0 and 1. Without node 1, nodes 0 and 2 are the emptiest."""
    result = tell("cluster:migration_cost=10", 4, (ask("wide", 24, 500),), [drain(100, "1")])
    assert cores_of(result) == {"wide": "0-23", "wide#1": "0-15 32-39"}
    assert places(result) == {"wide": ("0-1", 0, 100), "wide#1": ("0 2", 100, 510)}


def test_a_drained_node_stays_empty_while_a_job_waits_for_it() -> None:
    """b would fit on node 1 from 100 on, but the node returns to service at 300."""
    jobs = ask("a", 16, 1000), ask("b", 16, 100, 100)
    result = tell("cluster", 2, jobs, [drain(50, "1"), undrain(300, "1")])
    assert places(result) == {"a": ("0", 0, 1000), "b": ("1", 300, 400)}


def test_part_of_what_was_drained_may_come_back_first() -> None:
    """Node 2 returns to service at 200 for b, and node 1 at 400 for c."""
    jobs = ask("a", 16, 1000), ask("b", 16, 1000, 100), ask("c", 16, 1000, 100)
    events = [drain(50, "1-2"), undrain(200, "2"), undrain(400, "1")]
    assert places(tell("cluster", 3, jobs, events)) == {
        "a": ("0", 0, 1000), "b": ("2", 200, 1200), "c": ("1", 400, 1400),
    }  # fmt: skip


@pytest.mark.parametrize("checkpointable", [True, False])
def test_draining_by_waiting_lets_jobs_end(checkpointable: bool) -> None:
    """a ends on node 0 at 300, 200 s after the drain. c waits until the node returns to service
    at 600."""
    jobs = (
        ask("a", 4, 300, checkpointable=checkpointable), ask("b", 16, 1000),
        ask("c", 4, 100, 150),
    )  # fmt: skip
    result = tell("cluster:drain=wait", 2, jobs, [drain(100, "0"), undrain(600, "0")])
    assert places(result) == {"a": ("0", 0, 300), "b": ("1", 0, 1000), "c": ("0", 600, 700)}
    assert refused(result) == []
    assert result.summary.migrations.count == 0
    drains = result.summary.drains
    assert (drains.nodes, drains.emptied, drains.mean_s, drains.max_s) == (1, 1, 200, 200)


def test_a_node_that_is_taken_back_before_its_last_job_has_ended_never_got_empty() -> None:
    """b ends at 200 and a at 300, but node 0 returns to service at 250."""
    result = tell(
        "cluster:drain=wait", 2, (ask("a", 4, 300), ask("b", 8, 200), ask("c", 1, 10, 260)),
        [drain(100, "0"), undrain(250, "0")],
    )  # fmt: skip
    assert places(result)["c"] == ("0", 260, 270)
    assert (result.summary.drains.nodes, result.summary.drains.emptied) == (1, 0)


def test_waiting_for_two_nodes_is_measured_for_each() -> None:
    """Node 0 is empty at 200, when the longer of its jobs ends, and node 1 at 400. They have
    waited for 100 and 300 s, on average 200 s."""
    jobs = ask("a", 10, 150), ask("b", 6, 200), ask("c", 16, 400)
    drains = tell("cluster:drain=wait", 2, jobs, [drain(100, "0-1")]).summary.drains
    assert (drains.nodes, drains.emptied, drains.mean_s, drains.max_s) == (2, 2, 200, 300)


def test_nodes_may_be_drained_one_by_one_in_one_instant() -> None:
    """No job moves between nodes 0 and 1. At 100 a moves to node 2, and b to node 3."""
    jobs = ask("a", 16, 500), ask("b", 16, 500)
    events = [drain(100, "0"), drain(100, "1")]
    assert places(tell("cluster:migration_cost=10", 4, jobs, events)) == {
        "a": ("0", 0, 100), "a#1": ("2", 100, 510), "b": ("1", 0, 100), "b#1": ("3", 100, 510),
    }  # fmt: skip


def test_a_node_that_comes_back_in_the_instant_of_a_drain_takes_its_jobs() -> None:
    events = [drain(50, "1"), undrain(100, "1"), drain(100, "0")]
    ran = places(tell("cluster:migration_cost=10", 2, (ask("a", 16, 500),), events))
    assert ran == {"a": ("0", 0, 100), "a#1": ("1", 100, 510)}


def test_a_node_that_was_dead_and_then_drained_is_used_after_both() -> None:
    """The node is down from 50 to 200 and drained from 100 to 300. b waits from 60 to 300."""
    jobs = ask("a", 16, 1000), ask("b", 16, 100, 60)
    result = tell(
        "cluster", 2, jobs, [drain(100, "1"), undrain(300, "1")], [dies(50, 1), returns(200, 1)]
    )
    assert places(result) == {"a": ("0", 0, 1000), "b": ("1", 300, 400)}


@pytest.mark.parametrize("event", [drain(100, "0"), migrate(100, "a", nodes="1")])
def test_a_job_that_ends_at_the_instant_of_the_operation_simply_ends(event: GenericEvent) -> None:
    jobs = ask("a", 4, 100), ask("b", 1, 50, 200)
    result = tell("cluster", 2, jobs, [event])
    drained = event.data["type"] == "drain"
    assert places(result) == {"a": ("0", 0, 100), "b": ("1" if drained else "0", 200, 250)}
    assert causes(result) == {"a": Cause.COMPLETED, "b": Cause.COMPLETED}
    assert work(result) == {"a": 100, "b": 50}
    assert result.summary.migrations.count == 0


# ---- migrations of one job


def test_a_job_moves_to_the_nodes_that_were_named() -> None:
    """By default the job would move to node 1. The order names node 2, and the job takes its
    lowest cores."""
    jobs = ask("a", 4, 1000), ask("b", 13, 2000)
    result = tell("cluster:migration_cost=10", 3, jobs, [migrate(100, "a", nodes="2")])
    assert cores_of(result) == {"a": "0-3", "b": "16-28", "a#1": "32-35"}
    assert places(result)["a#1"] == ("2", 100, 1010)


def test_a_job_without_a_target_goes_first_in_the_queue() -> None:
    """b waits for 16 cores from 10 on. a is before it in the queue and restarts on the same
    node."""
    jobs = ask("a", 4, 1000), ask("b", 16, 100, 10)
    result = tell("cluster:migration_cost=10", 1, jobs, [migrate(100, "a")])
    assert places(result) == {
        "a": ("0", 0, 100), "a#1": ("0", 100, 1010), "b": ("0", 1010, 1110),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("at_s", "job", "nodes"),
    [
        (100, "a", "1"),  # has 1 free core
        (100, "waits", "0"),
        (100, "sticky", "2"),
        (5, "waits", "2"),  # not submitted yet
    ],
)
def test_a_migration_that_cannot_be_is_refused(at_s: float, job: str, nodes: str) -> None:
    jobs = (
        ask("a", 4, 1000), ask("b", 13, 1000), ask("sticky", 2, 1000, checkpointable=False),
        ask("waits", 40, 100, 10),
    )  # fmt: skip
    result = tell("cluster", 3, jobs, [migrate(at_s, job, nodes=nodes)])
    assert places(result) == {
        "a": ("0", 0, 1000), "b": ("1", 0, 1000), "sticky": ("1", 0, 1000),
        "waits": ("0-2", 1000, 1100),
    }  # fmt: skip
    assert refused(result) == [at_s]


# ---- targets that fail


def test_a_job_runs_on_where_its_target_dies_at_the_instant_of_the_operation() -> None:
    result = tell(
        "cluster", 2, (ask("a", 4, 1000),), [migrate(100, "a", nodes="1")], [dies(100, 1)]
    )
    assert places(result) == {"a": ("0", 0, 1000)}
    assert refused(result) == [100]


def test_a_drained_job_does_not_go_to_a_node_that_dies_at_that_instant() -> None:
    """The first choice would be node 1, but it fails when node 0 is drained. The job moves to
    node 2."""
    result = tell(
        "cluster:migration_cost=10", 3, (ask("a", 4, 1000),), [drain(100, "0")], [dies(100, 1)]
    )
    assert places(result) == {"a": ("0", 0, 100), "a#1": ("2", 100, 1010)}


def test_a_job_whose_target_dies_during_the_overhead_goes_on_from_its_image() -> None:
    """The job moves at 100. Node 1 fails at 120, after 20 of 50 s of overhead. On node 0 the job
    has the entire overhead again: 120 + 50 + 900."""
    result = tell(
        "cluster:migration_cost=50", 2, (ask("a", 4, 1000),), [migrate(100, "a", nodes="1")],
        [dies(120, 1)],
    )  # fmt: skip
    assert places(result) == {"a": ("0", 0, 100), "a#1": ("1", 100, 120), "a#2": ("0", 120, 1070)}
    assert work(result) == {"a": 100, "a#1": 0, "a#2": 900}
    assert overheads(result) == {"a#1": 50, "a#2": 50}


def test_a_job_whose_node_dies_later_goes_on_from_its_last_image() -> None:
    """The job moves at 100. Its work on node 1 from 150 to 300 is in no image: 300 + 50 + 900."""
    result = tell(
        "cluster:migration_cost=50", 2, (ask("a", 4, 1000),), [migrate(100, "a", nodes="1")],
        [dies(300, 1)],
    )  # fmt: skip
    assert places(result) == {"a": ("0", 0, 100), "a#1": ("1", 100, 300), "a#2": ("0", 300, 1250)}
    assert work(result) == {"a": 100, "a#1": 0, "a#2": 900}


# ---- Algorithm 1, compaction


def six_five_and_sixteen() -> tuple[Job, ...]:
    """Return jobs with which node 0 is full from 30 on, and nodes 1 and 2 use 6 and 5 cores."""
    return ask("a16", 16, 1000), ask("b6", 6, 1000), ask("c10", 10, 30), ask("d5", 5, 300)


def test_compaction_moves_the_jobs_of_the_least_used_node() -> None:
    """At 60 the job on the node with 5 used cores moves to the node with 6. The nodes then use
    16, 11 and 0 cores. d5 ends at 60 + 10 + 240."""
    result = tell("compaction:migration_cost=10", 3, six_five_and_sixteen())
    assert places(result) == {
        "a16": ("0", 0, 1000), "b6": ("1", 0, 1000), "c10": ("1", 0, 30),
        "d5": ("2", 0, 60), "d5#1": ("1", 60, 310),
    }  # fmt: skip
    assert result.summary.migrations.by == {"compact": 1}


def test_compaction_pays_the_table_for_five_cores() -> None:
    """The overhead is 55 + (log2 5 - 2) x (59 - 55) = 56.288 s."""
    result = tell("compaction", 3, six_five_and_sixteen())
    assert overheads(result) == {"d5#1": pytest.approx(56.288, abs=5e-4)}


def test_compaction_does_nothing_while_a_job_waits() -> None:
    """At 50 'wide' needs 22 cores, but 21 are free. When 'd5' ends at 300, 'wide' starts on node
    2 and 6 cores of node 1. Then only node 1 is mixed."""
    jobs = (*six_five_and_sixteen(), ask("wide", 22, 100, 50))
    result = tell("compaction:migration_cost=10", 3, jobs)
    assert places(result) == {
        "a16": ("0", 0, 1000), "b6": ("1", 0, 1000), "c10": ("1", 0, 30),
        "d5": ("2", 0, 300), "wide": ("1-2", 300, 400),
    }  # fmt: skip
    assert result.summary.migrations.count == 0


@pytest.mark.parametrize("targets", ["single", "several"])
def test_compaction_moves_nothing_that_fits_nowhere(targets: str) -> None:
    """Two nodes use 10 and 9 cores and have 6 and 7 free cores. Full and empty nodes are no
    targets."""
    jobs = ask("a16", 16, 1000), ask("b10", 10, 1000), ask("c6", 6, 30), ask("d9", 9, 1000)
    result = tell(f"compaction:targets={targets},migration_cost=10", 4, jobs)
    assert places(result) == {
        "a16": ("0", 0, 1000), "b10": ("1", 0, 1000), "c6": ("1", 0, 30), "d9": ("2", 0, 1000),
    }  # fmt: skip


@pytest.mark.parametrize(("targets", "moved"), [("single", []), ("several", ["0", "1"])])
def test_the_jobs_of_a_node_go_to_several_others_if_they_may(
    targets: str, moved: list[str]
) -> None:
    """Nodes 0 and 1 have 3 free cores each. Node 2 has two jobs of 2 cores, one for each of
    these nodes."""
    jobs = (
        ask("a13", 13, 1000), ask("b3", 3, 30), ask("c13", 13, 1000), ask("d3", 3, 30),
        ask("e2", 2, 1000), ask("f2", 2, 1000),
    )  # fmt: skip
    ran = places(tell(f"compaction:targets={targets},migration_cost=10", 3, jobs))
    assert sorted(ran[name][0] for name in ("e2#1", "f2#1") if name in ran) == moved
    assert {ran[name][1:] for name in ("e2#1", "f2#1") if name in ran} == (
        {(60, 1010)} if moved else set()
    )
    assert ran["e2"] == ran["f2"] == (("2", 0, 60) if moved else ("2", 0, 1000))


def test_compaction_empties_one_node_each_time() -> None:
    """The nodes use 2, 3 and 4 cores. At 60 a2 moves to node 2, which has fewer free cores than
    node 1. At 120 c3 moves there, too: 2 + 3 + 4 on node 2."""
    jobs = (
        ask("a2", 2, 1000), ask("b14", 14, 30), ask("c3", 3, 1000), ask("d13", 13, 30),
        ask("e4", 4, 1000),
    )  # fmt: skip
    result = tell("compaction:migration_cost=10", 3, jobs)
    assert places(result) == {
        "b14": ("0", 0, 30), "d13": ("1", 0, 30), "e4": ("2", 0, 1000),
        "a2": ("0", 0, 60), "a2#1": ("2", 60, 1010),
        "c3": ("1", 0, 120), "c3#1": ("2", 120, 1010),
    }  # fmt: skip


def test_compaction_leaves_a_node_alone_whose_job_cannot_be_checkpointed() -> None:
    """The nodes use 7, 6 and 4 cores, but the job of 4 cannot be checkpointed. Therefore c6
    moves to node 0, which has fewer free cores. Its 13 cores do not fit into the 12 free cores
    of node 2."""
    jobs = (
        ask("a7", 7, 1000), ask("b9", 9, 30), ask("c6", 6, 1000), ask("d10", 10, 30),
        ask("sticky", 4, 1000, checkpointable=False),
    )  # fmt: skip
    result = tell("compaction:migration_cost=10", 3, jobs)
    assert places(result) == {
        "a7": ("0", 0, 1000), "b9": ("0", 0, 30), "d10": ("1", 0, 30), "sticky": ("2", 0, 1000),
        "c6": ("1", 0, 60), "c6#1": ("0", 60, 1010),
    }  # fmt: skip


def test_a_job_that_cannot_be_checkpointed_may_get_company() -> None:
    """The nodes use 6 and 5 cores. The job of 5 cannot be checkpointed, so a6 moves to its node."""
    jobs = ask("a6", 6, 1000), ask("b10", 10, 30), ask("sticky", 5, 1000, checkpointable=False)
    ran = places(tell("compaction:migration_cost=10", 2, jobs))
    assert ran["a6#1"] == ("1", 60, 1010)
    assert ran["sticky"] == ("1", 0, 1000)


def test_compaction_does_not_fill_a_node_that_is_drained_in_the_same_instant() -> None:
    """At 60 node 1 would be the target of d5, but it is drained. Instead b6 moves to node 2."""
    result = tell("compaction:migration_cost=10", 3, six_five_and_sixteen(), [drain(60, "1")])
    assert places(result) == {
        "a16": ("0", 0, 1000), "c10": ("1", 0, 30), "d5": ("2", 0, 300),
        "b6": ("1", 0, 60), "b6#1": ("2", 60, 1010),
    }  # fmt: skip


def test_compaction_does_not_fill_a_node_that_empties_by_waiting() -> None:
    """a6 cannot be moved. c5 does not move to its node, because node 0 is drained."""
    jobs = (
        ask("a6", 6, 1000, checkpointable=False), ask("b10", 10, 30), ask("c5", 5, 1000),
    )  # fmt: skip
    result = tell("compaction:migration_cost=10,drain=wait", 2, jobs, [drain(50, "0")])
    assert places(result) == {"a6": ("0", 0, 1000), "b10": ("0", 0, 30), "c5": ("1", 0, 1000)}


@pytest.mark.parametrize(("walltime_s", "mover"), [(70, "a6"), (71, "c5")])
def test_a_job_is_moved_only_if_more_is_left_of_its_walltime_than_that_costs(
    walltime_s: float, mover: str
) -> None:
    """At 60, 'c5' has 10 or 11 s of its walltime left, and a move costs 10 s. If 'c5' does not
    move, the other node is emptied, and 'a6' moves to it. If 'c5' moves, it ends at 60 + 10 + 5."""
    jobs = ask("a6", 6, 1000), ask("b10", 10, 30), ask("c5", 5, 65, walltime_s=walltime_s)
    ran = places(tell("compaction:migration_cost=10", 2, jobs))
    if mover == "a6":
        assert ran["a6#1"] == ("1", 60, 1010)
        assert ran["c5"] == ("1", 0, 65)
    else:
        assert ran["c5#1"] == ("0", 60, 75)
        assert ran["a6"] == ("0", 0, 1000)
    assert len(ran) == 4


def test_nothing_is_moved_where_nothing_is_worth_it() -> None:
    """At 60 both jobs have 50 s of walltime left, but the overhead in the table is longer."""
    jobs = (
        ask("a6", 6, 105, walltime_s=110), ask("b10", 10, 30),
        ask("c5", 5, 105, walltime_s=110),
    )  # fmt: skip
    assert tell("compaction", 2, jobs).summary.migrations.count == 0


def test_states_of_nodes_add_up_and_hold_what_jobs_were_given() -> None:
    """Three nodes are measured for 1000 s. Full are node 0, and node 1 for 30 s.

    Mixed are node 1 for 970 s (6 cores for 30 + 690 s, 11 for 250 s) and node 2 for 60 s (5 cores).
    Jobs use 16 x 1000 + 6 x 1000 + 10 x 30 + 5 x 310 = 23850 core-seconds. This equals
    16 x 1030 + 6 x 720 + 11 x 250 + 5 x 60.
    """
    result = tell("compaction:migration_cost=10", 3, six_five_and_sixteen())
    states = result.summary.node_states
    assert states is not None
    assert states.empty + states.mixed + states.full == pytest.approx(1)
    assert states.full == pytest.approx(1030 / 3000)
    assert states.mixed == pytest.approx(1030 / 3000)
    assert states.empty == pytest.approx(940 / 3000)
    of = usage(result.ledger, 3, CORES, (0, to_us(1000)))
    mixed = (of.used > 0) & (of.used < CORES)
    full_us = int(of.length_us[of.used == CORES].sum())
    mixed_us = int(np.dot(of.used[mixed], of.length_us[mixed]))
    assert (to_s(full_us), to_s(mixed_us)) == (1030, 7370)
    given_us = sum(
        (one.end_us - one.start_us) * len(one.nodes)
        for one in result.ledger.attempts
        if one.nodes is not None
    )
    assert to_s(full_us * CORES + mixed_us) == to_s(given_us) == 23850


# ---- Algorithm 2, priorities


def high_gets_empty() -> tuple[Job, ...]:
    """Return jobs with which node 0 (partition high) is empty from 100 on.

    In partition low, node 1 uses 4 + 8 cores and node 2 uses 6.
    """
    return ask("a16", 16, 100), ask("b4", 4, 1000), ask("c8", 8, 1000), ask("d6", 6, 1000)


def test_an_arrival_runs_in_high_if_it_fits_and_else_in_low() -> None:
    ran = places(tell("priorities", 4, (ask("a", 12, 50), ask("b", 5, 50), ask("c", 4, 50))))
    assert ran == {"a": ("0", 0, 50), "b": ("1", 0, 50), "c": ("0", 0, 50)}


def test_a_job_does_not_span_partitions() -> None:
    """'wide' needs all 48 cores on the three nodes of partition low. The 40 free cores of low
    and the 16 cores of high cannot be combined."""
    jobs = ask("a", 16, 20), ask("low", 8, 100), ask("wide", 48, 50, 1)
    ran = places(tell("priorities:migration_cost=1000", 4, jobs))
    assert ran["wide"] == ("1-3", 100, 150)


def test_the_largest_low_job_that_fits_is_moved_up_one_in_each_period() -> None:
    """c8 moves at 120 and d6 at 180. Then high has 2 free cores, too few for b4."""
    result = tell("priorities:migration_cost=10", 4, high_gets_empty())
    assert places(result) == {
        "a16": ("0", 0, 100), "b4": ("1", 0, 1000),
        "c8": ("1", 0, 120), "c8#1": ("0", 120, 1010),
        "d6": ("2", 0, 180), "d6#1": ("0", 180, 1010),
    }  # fmt: skip
    assert result.summary.migrations.by == {"promote": 2}


def test_a_larger_job_that_does_not_fit_is_passed_over() -> None:
    """From 100 on high has 7 free cores. c8 does not fit, so d6 moves. Then b4 does not fit."""
    jobs = ask("a9", 9, 2000), ask("a7", 7, 100), *high_gets_empty()[1:]
    result = tell("priorities:migration_cost=10", 4, jobs)
    assert places(result) == {
        "a9": ("0", 0, 2000), "a7": ("0", 0, 100),
        "b4": ("1", 0, 1000), "c8": ("1", 0, 1000),
        "d6": ("2", 0, 120), "d6#1": ("0", 120, 1010),
    }  # fmt: skip


def test_a_job_that_asks_for_low_stays_there() -> None:
    """c8 requests low and stays. d6 moves at 120 and b4 at 180."""
    a16, b4, _, d6 = high_gets_empty()
    jobs = a16, b4, ask("c8", 8, 1000, partition="low"), d6
    ran = places(tell("priorities:migration_cost=10", 4, jobs))
    assert ran == {
        "a16": ("0", 0, 100), "c8": ("1", 0, 1000),
        "d6": ("2", 0, 120), "d6#1": ("0", 120, 1010),
        "b4": ("1", 0, 180), "b4#1": ("0", 180, 1010),
    }  # fmt: skip


def test_a_job_that_cannot_be_checkpointed_is_not_moved_up() -> None:
    a16, b4, _, d6 = high_gets_empty()
    jobs = a16, b4, ask("c8", 8, 1000, checkpointable=False), d6
    ran = places(tell("priorities:migration_cost=10", 4, jobs))
    assert ran["c8"] == ("1", 0, 1000)
    assert ran["d6#1"] == ("0", 120, 1010)


@pytest.mark.parametrize(("walltime_s", "first"), [(130, "d6"), (131, "c8")])
def test_a_job_is_moved_up_only_if_more_is_left_of_its_walltime_than_that_costs(
    walltime_s: float, first: str
) -> None:
    """At 120, 'c8' has 10 or 11 s of its walltime left, and a move costs 10 s."""
    a16, b4, _, d6 = high_gets_empty()
    jobs = a16, b4, ask("c8", 8, 125, walltime_s=walltime_s), d6
    ran = places(tell("priorities:migration_cost=10", 4, jobs))
    assert ran[f"{first}#1"][:2] == ("0", 120)
    assert ran.get("c8#1") == (("0", 120, 135) if first == "c8" else None)


def test_nothing_is_moved_up_while_a_job_waits() -> None:
    """'wide' waits for 40 of the 48 cores of low until the other jobs end at 1000."""
    jobs = (*high_gets_empty(), ask("wide", 40, 100, 50, partition="low"))
    result = tell("priorities:migration_cost=10", 4, jobs)
    assert result.summary.migrations.count == 0
    assert places(result)["wide"] == ("1-3", 1000, 1100)


def test_nothing_is_moved_up_to_drained_nodes() -> None:
    """High is empty but drained until 200. a and b start in low, and move to high at 240 and
    300."""
    jobs = ask("a", 6, 1000, 10), ask("b", 4, 1000, 10)
    result = tell("priorities:migration_cost=10", 4, jobs, [drain(5, "0"), undrain(200, "0")])
    assert places(result) == {
        "a": ("1", 10, 240), "a#1": ("0", 240, 1020),
        "b": ("1", 10, 300), "b#1": ("0", 300, 1020),
    }  # fmt: skip


# ---- tiers: preemption and eternal jobs


def test_a_normal_job_preempts_an_eternal_one_which_resumes_with_its_progress() -> None:
    """'ever' runs on node 2. The first two normal jobs take nodes 0 and 1. The third preempts
    'ever' at 100. At 300 'ever' resumes and ends at 300 + 53 + 900."""
    jobs = (
        ask("ever", 1, 1000, partition="eternal"), ask("first", 16, 500, 10),
        ask("second", 16, 300, 20), ask("third", 16, 200, 100),
    )  # fmt: skip
    result = tell("tiers", 3, jobs)
    assert places(result) == {
        "ever": ("2", 0, 100), "first": ("0", 10, 510), "second": ("1", 20, 320),
        "third": ("2", 100, 300), "ever#1": ("2", 300, 1253),
    }  # fmt: skip
    assert work(result)["ever"] == 100
    assert work(result)["ever#1"] == 900
    assert overheads(result) == {"ever#1": 53}
    assert causes(result)["ever"] == Cause.PREEMPTED


def test_eternal_jobs_fill_nodes_from_the_last_on_and_normal_ones_from_the_first() -> None:
    """Of 17 eternal jobs, 16 run on node 3 and one on node 2. Normal jobs run on node 0 while
    they fit."""
    jobs = (
        *(eternal(f"e{n:02}") for n in range(17)), ask("a", 10, 100), ask("b", 6, 100),
        ask("c", 1, 100),
    )  # fmt: skip
    ran = places(tell("tiers", 4, jobs))
    assert [ran[f"e{n:02}"] for n in range(17)] == [("3", 0, 100)] * 16 + [("2", 0, 100)]
    assert ran["a"] == ran["b"] == ("0", 0, 100)
    assert ran["c"] == ("1", 0, 100)


def test_a_normal_job_preempts_only_when_it_must() -> None:
    """Four eternal jobs run on cores 16 to 19. 'rest' fits next to them. 'two' does not fit, so
    the eternal jobs on cores 16 and 17 are preempted. They resume at 150 and end at
    150 + 53 + 900."""
    jobs = (
        *(ask(f"e{n}", 1, 1000, partition="eternal") for n in range(4)),
        ask("full", 16, 2000, 10), ask("rest", 12, 2000, 20), ask("two", 2, 50, 100),
    )  # fmt: skip
    result = tell("tiers", 2, jobs)
    assert places(result) == {
        "full": ("0", 10, 2010), "rest": ("1", 20, 2020), "two": ("1", 100, 150),
        "e0": ("1", 0, 100), "e0#1": ("1", 150, 1103),
        "e1": ("1", 0, 100), "e1#1": ("1", 150, 1103),
        "e2": ("1", 0, 1000), "e3": ("1", 0, 1000),
    }  # fmt: skip
    cores = cores_of(result)
    assert (cores["rest"], cores["two"]) == ("20-31", "16-17")


def test_a_normal_job_waits_where_preemption_does_not_help() -> None:
    """'large' needs 16 cores, but a normal job uses 8 until 200. 'ever' is not preempted before."""
    jobs = (
        ask("ever", 1, 1000, partition="eternal"), ask("normal", 8, 190, 10),
        ask("large", 16, 100, 50),
    )  # fmt: skip
    assert places(tell("tiers", 1, jobs)) == {
        "ever": ("0", 0, 200), "normal": ("0", 10, 200), "large": ("0", 200, 300),
        "ever#1": ("0", 300, 1153),
    }  # fmt: skip


def test_an_eternal_job_that_cannot_be_checkpointed_is_not_preempted() -> None:
    """'large' waits until the job ends at 400."""
    jobs = (
        ask("ever", 1, 400, partition="eternal", checkpointable=False), ask("large", 16, 100, 50),
    )  # fmt: skip
    assert places(tell("tiers", 1, jobs)) == {"ever": ("0", 0, 400), "large": ("0", 400, 500)}


def test_a_job_preempted_during_its_overhead_pays_in_full_again() -> None:
    """'ever' works until 100. It restarts at 150, but is preempted at 180 during its overhead.
    At 200 it restarts again, with 53 s of overhead and 900 s of work."""
    jobs = (
        ask("ever", 1, 1000, partition="eternal"), ask("a", 16, 50, 100), ask("b", 16, 20, 180),
    )  # fmt: skip
    result = tell("tiers", 1, jobs)
    assert places(result) == {
        "ever": ("0", 0, 100), "a": ("0", 100, 150), "ever#1": ("0", 150, 180),
        "b": ("0", 180, 200), "ever#2": ("0", 200, 1153),
    }  # fmt: skip
    assert work(result)["ever#1"] == 0


def test_a_preempted_job_resumes_on_whatever_core_is_free_first() -> None:
    """'ever' leaves node 1 at 100. Node 0 is free at 150, but node 1 only at 600."""
    jobs = (
        ask("ever", 1, 1000, partition="eternal"), ask("a", 16, 150), ask("b", 16, 500, 100),
    )  # fmt: skip
    ran = places(tell("tiers", 2, jobs))
    assert ran["ever"] == ("1", 0, 100)
    assert ran["ever#1"] == ("0", 150, 150 + 53 + 900)


def test_a_job_of_the_low_queue_makes_room_for_one_of_the_high_queue() -> None:
    """'urgent' takes node 0, whose job is preempted. The job on node 1 continues. The preempted
    job resumes at 300 and ends at 300 + 66 + 400."""
    jobs = (
        ask("one", 16, 500, partition="low"), ask("two", 16, 500, partition="low"),
        ask("urgent", 16, 200, 100, partition="high"),
    )  # fmt: skip
    result = tell("tiers:partitions=high:all:2+low:all:1", 2, jobs)
    assert places(result) == {
        "one": ("0", 0, 100), "two": ("1", 0, 500), "urgent": ("0", 100, 300),
        "one#1": ("0", 300, 766),
    }  # fmt: skip


def test_a_low_job_waits_for_a_high_one_and_high_jobs_for_each_other() -> None:
    """'low' arrives before 'second', but 'second' starts first."""
    jobs = (
        ask("first", 16, 100, partition="high"), ask("low", 16, 100, 10, partition="low"),
        ask("second", 16, 100, 20, partition="high"),
    )  # fmt: skip
    ran = places(tell("tiers:partitions=high:all:2+low:all:1", 1, jobs))
    assert ran == {"first": ("0", 0, 100), "second": ("0", 100, 200), "low": ("0", 200, 300)}


def test_scarce_nodes_are_used_by_any_job_until_one_needs_them() -> None:
    """Nodes 2 and 3 have accelerators. 'c' leaves node 2 at 100. It continues on the first free
    node, node 0 at 250, and ends at 250 + 66 + 400."""
    jobs = (
        ask("a", 16, 250, partition="any"), ask("b", 16, 500, partition="any"),
        ask("c", 16, 500, partition="any"), ask("d", 16, 500, partition="any"),
        ask("needs", 16, 200, 100, partition="phi"),
    )  # fmt: skip
    assert places(tell("tiers:partitions=phi:2-3:2+any:all:1", 4, jobs)) == {
        "a": ("0", 0, 250), "b": ("1", 0, 500), "c": ("2", 0, 100), "d": ("3", 0, 500),
        "needs": ("2", 100, 300), "c#1": ("0", 250, 716),
    }  # fmt: skip


def test_a_job_takes_a_scarce_node_that_is_free_before_it_preempts() -> None:
    jobs = (
        ask("a", 16, 500, partition="any"), ask("b", 16, 500, partition="any"),
        ask("c", 16, 500, partition="any"), ask("needs", 16, 200, 100, partition="phi"),
    )  # fmt: skip
    result = tell("tiers:partitions=phi:2-3:2+any:all:1", 4, jobs)
    assert places(result)["needs"] == ("3", 100, 300)
    assert result.summary.migrations.count == 0


def test_a_job_moved_off_a_scarce_node_goes_to_a_free_one_at_once() -> None:
    """Node 0 becomes free at 50, when no job waits. At 100 'needs' takes both scarce nodes. 'c'
    continues immediately on node 0, and 'd' when 'b' leaves node 1 at 500."""
    jobs = (
        ask("a", 16, 50, partition="any"), ask("b", 16, 500, partition="any"),
        ask("c", 16, 500, partition="any"), ask("d", 16, 500, partition="any"),
        ask("needs", 32, 2000, 100, partition="phi"),
    )  # fmt: skip
    ran = places(tell("tiers:partitions=phi:2-3:2+any:all:1", 4, jobs))
    assert ran["needs"] == ("2-3", 100, 2100)
    assert ran["c#1"] == ("0", 100, 566)
    assert ran["d#1"] == ("1", 500, 966)


def test_eternal_jobs_are_ended_when_nothing_else_is_left() -> None:
    """The last normal job arrives at 400 and ends at 450."""
    jobs = eternal("ever"), ask("a", 4, 200, 50), ask("b", 4, 50, 400)
    result = tell("tiers", 2, jobs)
    assert places(result) == {"ever": ("1", 0, 450), "a": ("0", 50, 250), "b": ("0", 400, 450)}
    assert causes(result)["ever"] == Cause.HORIZON
    assert result.summary.platform.useful == 450 + 4 * 200 + 4 * 50


def test_an_eternal_job_that_was_preempted_keeps_what_it_did_to_its_end() -> None:
    """The job works until 100. At 200 it restarts with 53 s of overhead. It ends with 'b' at
    500: 100 + 247."""
    jobs = eternal("ever"), ask("a", 16, 100, 100), ask("b", 4, 200, 300)
    result = tell("tiers", 1, jobs)
    assert places(result) == {
        "ever": ("0", 0, 100), "a": ("0", 100, 200), "ever#1": ("0", 200, 500),
        "b": ("0", 300, 500),
    }  # fmt: skip
    assert causes(result)["ever#1"] == Cause.HORIZON
    platform = result.summary.platform
    assert platform.useful == 100 + 247 + 16 * 100 + 4 * 200
    assert (platform.recovery, platform.waste_moving) == (53, 0)


def test_the_progress_of_an_eternal_job_is_all_that_it_worked_until_it_was_ended() -> None:
    """The job works for 100 s. From 200 to 500 it has 53 s of overhead and 247 s of work."""
    jobs = eternal("ever"), ask("a", 16, 100, 100), ask("b", 4, 200, 300)
    done = work(tell("tiers", 1, jobs))
    assert (done["ever"], done["ever#1"]) == (100, 247)


@pytest.mark.parametrize("length_s", [100, 1000])
def test_eternal_jobs_are_ended_at_a_date_if_there_is_one(length_s: float) -> None:
    """The eternal job ends at 400, whether the normal job ends before or after."""
    result = tell("tiers:horizon=400", 2, (eternal("ever"), ask("a", 4, length_s)))
    assert places(result) == {"ever": ("1", 0, 400), "a": ("0", 0, length_s)}
    assert causes(result)["ever"] == Cause.HORIZON


def test_an_eternal_job_leaves_a_drained_node() -> None:
    """The job works until 100, has 10 s of overhead on node 0, and ends at 300: 100 + 190."""
    jobs = eternal("ever"), ask("a", 4, 300)
    result = tell("tiers:migration_cost=10", 2, jobs, [drain(100, "1")])
    assert places(result)["ever#1"] == ("0", 100, 300)
    assert result.summary.platform.useful == 100 + 190 + 4 * 300


def test_a_job_off_a_drained_node_preempts_eternal_ones() -> None:
    """At 100 a needs all of node 1. It ends at 510, and the eternal jobs resume: 510 + 10 + 900."""
    jobs = (
        ask("a", 16, 500), ask("e0", 1, 1000, partition="eternal"),
        ask("e1", 1, 1000, partition="eternal"),
    )  # fmt: skip
    assert places(tell("tiers:migration_cost=10", 2, jobs, [drain(100, "0")])) == {
        "a": ("0", 0, 100), "a#1": ("1", 100, 510),
        "e0": ("1", 0, 100), "e0#1": ("1", 510, 1420),
        "e1": ("1", 0, 100), "e1#1": ("1", 510, 1420),
    }  # fmt: skip


def test_what_an_eternal_job_pays_is_not_added_to_the_normal_one() -> None:
    """At 100 'a' immediately preempts eight eternal jobs, so its flow is its length."""
    jobs = (
        *(ask(f"e{n}", 1, 1000, partition="eternal") for n in range(8)), ask("a", 16, 100, 100),
    )  # fmt: skip
    result = tell("tiers", 1, jobs)
    flow = {row.job_id: row.flow for row in result.rows}
    assert flow == {"a": 100, **{f"e{n}": 100 + 100 + 53 + 900 for n in range(8)}}
    moved = result.summary.migrations
    assert (moved.count, moved.cost, moved.moved) == (8, 8 * 53, 8 * 100)
