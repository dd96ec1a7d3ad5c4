# SPDX-License-Identifier: Apache-2.0
"""Nodes with cores, partitions, compaction and priorities: each attempt equals the slow oracle's.

Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart", 2019.
"""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.models.failures.events import GenericEvent
from rebat.models.migration import cost_us
from rebat.policies.presets import preset
from rebat.results.measures.platform import usage
from rebat.results.measures.summary import Measures
from rebat.runs.single import RunResult, simulate
from rebat.workloads.generate import generator
from tests.oracles import cluster_days
from tests.oracles.cluster_days import OracleJob, Piece
from tests.support.amount import few
from tests.support.scenarios import check_run

DAY_US = to_us(86_400)


def workload(jobs: list[OracleJob], n_cores: int) -> Workload:
    """Return the oracle's jobs as a workload of rebat."""
    profiles = {job.id: {"type": "delay", "delay": job.run_us / 1e6} for job in jobs}
    made = []
    for job in jobs:
        extra = {"memory_mb": job.memory_mb, "checkpointable": job.checkpointable}
        if job.partition:
            extra["partition"] = job.partition
        made.append(Job(job.id, job.cores, job.submit_us, job.walltime_us, job.id, extra))
    return Workload("days", n_cores, tuple(made), profiles)


def pieces(result: RunResult) -> list[Piece]:
    """Return the attempts of a run in the form of the oracle."""
    found = [
        Piece(
            record.attempt.job_id.partition("!")[2], record.attempt.number, record.start_us,
            record.end_us, tuple(record.nodes.ids.tolist()),
            record.checkpointing.first_recovery_us if record.checkpointing else 0,
        )
        for record in result.ledger.attempts
        if record.nodes is not None
    ]  # fmt: skip
    return sorted(found, key=lambda piece: (piece.start_us, piece.job, piece.number))


def both(
    policy: str, jobs: list[OracleJob], n_nodes: int, cores: int, **how
) -> tuple[list[Piece], list[Piece]]:
    """Simulate jobs with rebat and with the oracle; return the attempts of both."""
    result = simulate(workload(jobs, n_nodes * cores), preset(policy), cores_per_node=cores)
    check_run(result)

    def price(n_tasks: int, memory_mb: float) -> int:
        return cost_us("table", n_tasks, memory_mb)

    return pieces(result), cluster_days.simulate(jobs, n_nodes, cores, cost_us=price, **how)


POLICIES = {
    "cluster": {"mode": "cluster"},
    "cluster:fit=first": {"mode": "cluster", "fit": "first"},
    "compaction": {"mode": "compaction"},
    "compaction:targets=several": {"mode": "compaction", "targets": "several"},
    "compaction:fit=first,period=300": {
        "mode": "compaction", "fit": "first", "period_us": to_us(300),
    },
    "priorities": {"mode": "priorities", "n_high": 2},
    "tiers": {"mode": "tiers", "fit": "first"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("load", [0.5, 0.9])
def test_a_day_is_the_oracles(policy: str, load: float) -> None:
    jobs = cluster_days.day(load, seed=7)
    if policy == "tiers":
        jobs += [OracleJob(f"z{i}", 1, DAY_US, 0, 10**15, partition="eternal") for i in range(20)]
        jobs.sort(key=lambda job: (job.submit_us, job.id))
    ours, theirs = both(policy, jobs, 8, 16, **POLICIES[policy])
    assert ours == theirs


def small_jobs(rng: random.Random, n_nodes: int, cores: int, mode: str) -> list[OracleJob]:
    """Draw a few jobs for few cores; many submission times are multiples of the period."""
    jobs = []
    for number in range(rng.randint(1, 25)):
        size = min(n_nodes * cores, 1 + int(rng.expovariate(1 / 3)))
        run_us = rng.choice([to_us(rng.randint(1, 4000)), rng.randint(1, 4 * 10**9)])
        submit_us = rng.choice([0, to_us(60 * rng.randint(0, 30)), rng.randint(0, 3 * 10**9)])
        partition = None
        if mode == "tiers":
            partition = rng.choice([None, "normal", "eternal", "eternal"])
        elif mode == "priorities":
            partition = rng.choice([None, None, None, "high", "low"])
            size = min(size, cores if partition == "high" else (n_nodes - 1) * cores)
        more_us = rng.choice([1, to_us(1), to_us(1000)])
        jobs.append(
            OracleJob(
                f"j{number:02}", size, run_us, submit_us, run_us + more_us,
                rng.choice([50.0, 100.0, 1000.0]), rng.random() < 0.85, partition,
            )
        )  # fmt: skip
    return sorted(jobs, key=lambda job: (job.submit_us, job.id))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_small_machines_are_the_oracles(first: int) -> None:
    """Random wide jobs, jobs that cannot be checkpointed, several tiers, and both fits."""
    for seed in range(60 * first, 60 * (first + 1)):
        rng = random.Random(seed)
        n_nodes, cores = rng.randint(2, 5), rng.randint(1, 5)
        mode, fit = rng.choice(cluster_days.MODES), rng.choice(["best", "first"])
        jobs, policy = small_jobs(rng, n_nodes, cores, mode), f"{mode}:fit={fit}"
        how = {"mode": mode, "fit": fit}
        if mode == "compaction":
            how["targets"] = rng.choice(["single", "several"])
            policy += f",targets={how['targets']}"
        elif mode == "priorities":
            how["n_high"] = 1
            policy += f",partitions=high:0+low:1-{n_nodes - 1}"
        ours, theirs = both(policy, jobs, n_nodes, cores, **how)
        assert ours == theirs, (seed, policy)


def mixed(policy: str, load: int) -> float:
    """Return the mean share of node time of mixed nodes over three days, in percent.

    It is defined as in the note on the paper.
    """
    window = Measures(window=(0, DAY_US))
    shares = []
    for seed in range(3):
        jobs = generator(f"cluster-day:load={load}")(seed)
        summary = simulate(jobs, preset(policy), cores_per_node=16, measures=window).summary
        assert summary.node_states is not None
        shares.append(100 * summary.node_states.mixed)
    return fmean(shares)


@pytest.mark.slow
def test_mixed_nodes_are_as_many_as_the_paper_has() -> None:
    """Figure 4: 53.5 % at 50 % load. Compaction reduces the share by 11.8 points; at 75 % load,
    by 10.8."""
    at_50, at_75 = mixed("cluster", 50), mixed("cluster", 75)
    assert 45 <= at_50 <= 55
    assert 8 <= at_50 - mixed("compaction", 50) <= 16
    assert 8 <= at_75 - mixed("compaction", 75) <= 14


@pytest.mark.slow
@pytest.mark.parametrize("load", [25, 90])
def test_compaction_never_raises_the_share_of_mixed_nodes(load: int) -> None:
    assert mixed("compaction", load) < mixed("cluster", load)


def test_waiting_for_a_full_node_takes_a_harmonic_number_of_jobs() -> None:
    """If run times are exponential, the wait is H_16 mean run times (the note, in place of
    section 4.2)."""
    rng = np.random.default_rng(4)
    waits = rng.exponential(1.0, (20_000, 16)).max(axis=1)
    harmonic = sum(1 / n for n in range(1, 17))
    assert harmonic == pytest.approx(3.3807, abs=1e-4)
    assert waits.mean() == pytest.approx(harmonic, rel=0.02)


# ---- properties


@st.composite
def days(draw, n_nodes: int = 4, cores: int = 3) -> list[OracleJob]:
    """Draw a small day of jobs."""
    jobs = []
    for number in range(draw(st.integers(1, 12))):
        run_us = to_us(draw(st.integers(1, 900)))
        jobs.append(
            OracleJob(
                f"j{number:02}", draw(st.integers(1, n_nodes * cores)), run_us,
                to_us(draw(st.integers(0, 900))), run_us + to_us(draw(st.integers(1, 99))),
                draw(st.sampled_from([0.0, 100.0])), draw(st.booleans()),
                draw(st.sampled_from([None, "eternal"])),
            )
        )  # fmt: skip
    return jobs


@st.composite
def orders(draw, n_nodes: int = 4) -> list[GenericEvent]:
    """Draw drains and undrains of nodes, and migrations of jobs."""
    found, drained, at = [], set(), 0
    for _ in range(draw(st.integers(0, 8))):
        at += draw(st.integers(0, 300))
        node = draw(st.integers(0, n_nodes - 1))
        if draw(st.booleans()):
            data = {"type": "migrate", "job": f"j{draw(st.integers(0, 11)):02}"}
        else:
            data = {"type": "undrain" if node in drained else "drain", "nodes": str(node)}
            drained ^= {node}
        found.append(GenericEvent(to_us(at), data))
    if drained:
        nodes = " ".join(map(str, sorted(drained)))
        found.append(GenericEvent(to_us(at + 400), {"type": "undrain", "nodes": nodes}))
    return found


ALL = st.sampled_from(
    [
        "cluster", "compaction:migration_cost=20", "compaction:targets=several,migration_cost=5",
        "tiers:migration_cost=30", "tiers:react=compaction,migration_cost=7",
        "compaction:react=compaction+sleep,migration_cost=9,sleep=60,boot=20",
        "easy:react=compaction,migration_cost=9,drain=migrate",
        "baseline:placement=cluster,react=compaction,drain=migrate",
        "baseline:placement=named,react=compaction+sleep,sleep=0,drain=migrate",
    ]
)  # fmt: skip


def without_eternal(policy: str, jobs: list[OracleJob]) -> list[OracleJob]:
    """Remove the partition "eternal" from the jobs, unless the policy is a tiers policy."""
    if policy.startswith("tiers"):
        return jobs
    return [OracleJob(*[getattr(job, name) for name in OracleJob.__match_args__[:-1]], None)
            for job in jobs]  # fmt: skip


@settings(max_examples=few(150))
@given(policy=ALL, jobs=days(), operations=orders())
def test_safety_of_every_day(policy, jobs, operations) -> None:
    """Three properties hold for any chain of migrations. Work is conserved. Drained nodes are
    empty and stay empty. The time in which cores are in use equals the time given to jobs."""
    jobs = without_eternal(policy, jobs)
    result = simulate(workload(jobs, 12), preset(policy), cores_per_node=3, operations=operations)
    check_run(result)
    _work_is_conserved(result, jobs)
    _drained_nodes_are_empty(result)
    _used_cores_are_delivered(result)


def _work_is_conserved(result: RunResult, jobs: list[OracleJob]) -> None:
    worked: dict[str, int] = defaultdict(int)
    for record in result.ledger.attempts:
        worked[record.attempt.job_id.partition("!")[2]] += record.useful_us - record.lost_us
    done = {row.job_id for row in result.rows if row.final_state == "COMPLETED_SUCCESSFULLY"}
    assert {job.id: worked[job.id] for job in jobs if job.id in done} == {
        job.id: job.run_us for job in jobs if job.id in done
    }
    assert result.summary.platform.waste_moving == 0


def _drained_nodes_are_empty(result: RunResult) -> None:
    for one in result.ledger.drained:
        until_us = one.until_us if one.until_us is not None else 10**18
        for record in result.ledger.attempts:
            if record.nodes is None or not record.nodes.meets(one.nodes):
                continue
            assert (
                record.end_us <= one.since_us
                or record.start_us >= until_us
                or (
                    record.start_us < one.since_us == until_us  # the drain was refused
                )
            )


def _used_cores_are_delivered(result: RunResult) -> None:
    end_us = max(record.end_us for record in result.ledger.attempts)
    of = usage(result.ledger, 4, 3, (0, end_us))
    given_us = sum(
        (record.end_us - record.start_us) * record.attempt.n_nodes
        for record in result.ledger.attempts
        if record.nodes is not None
    )
    assert int(of.used @ of.length_us) == given_us
    states = result.summary.node_states
    assert states.empty + states.mixed + states.full == pytest.approx(1)


@settings(max_examples=few(100))
@given(targets=st.sampled_from(["single", "several"]), jobs=days())
def test_no_compaction_raises_the_number_of_mixed_nodes(targets: str, jobs) -> None:
    """The number of mixed nodes immediately after a compaction is not above the number before."""
    jobs = without_eternal("compaction", jobs)
    policy = f"compaction:targets={targets},migration_cost=5,period=10"
    ledger = simulate(workload(jobs, 12), preset(policy), cores_per_node=3).ledger
    moments = {record.end_us for record in ledger.attempts if record.why == "compact"}
    for at_us in moments:
        moved = {
            r.attempt.job_id for r in ledger.attempts if r.why == "compact" and r.end_us == at_us
        }
        before, after = _mixed_at(ledger, at_us, moved)
        assert after <= before


def _mixed_at(ledger, at_us: int, moved: set[str]) -> tuple[int, int]:
    """Count mixed nodes just before a migration, and after it if nothing else changes."""
    before, after = np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for record in ledger.attempts:
        if record.nodes is None:
            continue
        counts = np.bincount(record.nodes.ids // 3, minlength=4)
        runs_before = record.start_us < at_us < record.end_us
        if runs_before or (record.end_us == at_us and record.attempt.job_id in moved):
            before += counts
        if runs_before or (record.start_us == at_us and record.attempt.job_id in moved):
            after += counts
    return tuple(int(((used > 0) & (used < 3)).sum()) for used in (before, after))


@settings(max_examples=few(60))
@given(jobs=days())
def test_no_eternal_job_loses_progress(jobs) -> None:
    """The progress of each attempt of an eternal job is its run time without the overhead."""
    extra = [OracleJob(f"e{i}", 1, 10**15, 0, 2 * 10**15, partition="eternal") for i in range(8)]
    made = workload([*jobs, *extra], 12)
    flagged = tuple(
        Job(j.id, j.n_nodes, j.submit_us, j.walltime_us, j.profile, j.extra | {"eternal": True})
        if j.id[0] == "e" else j
        for j in made.jobs
    )  # fmt: skip
    made = Workload("days", 12, flagged, made.profiles)
    result = simulate(made, preset("tiers:migration_cost=15"), cores_per_node=3)
    check_run(result)
    for record in result.ledger.attempts:
        if record.attempt.job_id.startswith("w0!e") and record.nodes is not None:
            recovery_us = record.checkpointing.first_recovery_us if record.checkpointing else 0
            ran_us = record.end_us - record.start_us
            assert record.useful_us == max(0, ran_us - recovery_us)
            assert record.lost_us == 0
