# SPDX-License-Identifier: Apache-2.0
"""The torus schedulers on the engine have the starts of the batch of Vardas et al. 2022.

They are compared with one job at a time: every other job is too large to run at the same time. The
engine differs from the paper's batch in two points. On the engine, a failed job restarts
immediately if other nodes are up, but in the paper it waits for the repair. On the engine, a failed
node is unavailable until its repair even if the job does not use it, but the paper ignores such
failures. Therefore either the engine's scheduler has to wait and repairs take no time, or the job
needs all nodes and no node fails during the repair of another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.models.batch import Batch, BatchAttempt, attempts, jobs_of, run_batch
from rebat.models.failures.per_node_laws import Weibull
from rebat.models.topology import Torus
from rebat.policies.presets import Preset, preset
from rebat.runs.single import simulate

HOUR = 3600.0
JOBS = 200


WAITS = """
def waits_for_repairs(attempt, running, view):
    return not view.machine.down.any()
"""
"""A limit that lets no job start while a node is down."""


def on_the_engine(batch: Batch, scheduler: Preset) -> list[tuple[int, int, list[int]]]:
    """Return (start, end, nodes) of every attempt, sorted by start; no job reaches its walltime."""
    profiles = {str(i): job.duration_s for i, job in enumerate(jobs_of(batch))}
    jobs = [
        Job(f"{i:03}", job.size, 0, to_us(job.duration_s) + 1, str(i))
        for i, job in enumerate(jobs_of(batch))
    ]
    workload = Workload(
        "batch", batch.torus.n_nodes, tuple(jobs),
        {name: {"type": "delay", "delay": length_s} for name, length_s in profiles.items()},
    )  # fmt: skip
    events = batch.law.events(batch.torus.n_nodes, batch.seed)
    ledger = simulate(workload, scheduler, machine_events=events).ledger
    records = sorted(ledger.attempts, key=lambda record: record.start_us)
    return [(r.start_us, r.end_us, list(r.nodes)) for r in records]


def in_the_batch(found: Iterable[BatchAttempt]) -> list[tuple[int, int, list[int]]]:
    return [(a.start_us, a.end_us, a.nodes.tolist()) for a in found]


def spec(batch: Batch, depth: str, folder: Path | None = None) -> Preset:
    """Return the scheduler of the batch's policy with the failure law of the nodes.

    With a folder for the file of the limit, no job starts while a node is down.
    """
    options = f",boxes={batch.which}" if batch.which else ""
    if folder:
        (folder / "waits.py").write_text(WAITS)
        options += f",limits={folder / 'waits.py'}:waits_for_repairs"
    found = preset(f"{batch.policy}:torus={batch.torus},depth={depth}{options}")
    return found.knowing(batch.law.nodes(batch.torus.n_nodes, batch.seed))


@pytest.mark.parametrize("depth", ["greedy", "easy", "conservative"])
@pytest.mark.parametrize(
    ("policy", "which"),
    [("slurm-linear", ""), ("faps", "16"), ("faps", "aligned"), ("faps", "all")],
)
def test_with_repairs_that_are_over_at_once(
    policy: str, which: str, depth: str, tmp_path: Path
) -> None:
    """Jobs need more than half of the machine and can choose a box. Repairs last a microsecond."""
    law = Weibull(300 * HOUR, 3.0, downtime_s=1e-6)
    batch = Batch(Torus((6, 5)), 16, JOBS, 8 * HOUR, law, policy, which, 5)
    found = list(attempts(batch))
    assert sum(attempt.aborted for attempt in found) > 20
    distinct = {tuple(attempt.nodes.tolist()) for attempt in found}
    if which == "all":
        assert len(distinct) > 5
    assert on_the_engine(batch, spec(batch, depth, tmp_path)) == in_the_batch(found)


@pytest.mark.parametrize("policy", ["slurm-linear", "faps"])
def test_jobs_of_several_sizes_and_durations(policy: str, tmp_path: Path) -> None:
    law = Weibull(300 * HOUR, 3.0, downtime_s=1e-6)
    which = "all" if policy == "faps" else ""
    batch = Batch(
        Torus((6, 5)), 16, JOBS, 8 * HOUR, law, policy, which, 5,
        other_sizes=(18, 20), duration_sigma=0.7,
    )  # fmt: skip
    drawn = attempts(batch)
    assert on_the_engine(batch, spec(batch, "easy", tmp_path)) == in_the_batch(drawn)
    jobs = jobs_of(batch)
    assert {job.size for job in jobs} == {16, 18, 20}
    assert jobs == jobs_of(msgspec.structs.replace(batch, policy="rps", which="all"))
    mean_s = sum(job.duration_s for job in jobs) / len(jobs)
    assert mean_s == pytest.approx(8 * HOUR, rel=0.2)


def test_lost_node_time_and_repairs_by_hand() -> None:
    """Lost node-hours are those of aborted attempts. Each abort waits for its own repair."""
    law = Weibull(300 * HOUR, 3.0, downtime_s=HOUR)
    batch = Batch(Torus((6, 5)), 16, 50, 8 * HOUR, law, "rps", "all", 3, repair_sigma=1.0)
    all_attempts = list(attempts(batch))
    aborted = [a for a in all_attempts if a.aborted]
    lost_us = sum((a.end_us - a.start_us) * len(a.nodes) for a in aborted)
    result = run_batch(batch)
    assert result.aborts == len(aborted) > 10
    assert result.lost_node_s == lost_us / 1e6
    waits = [
        after.start_us - before.end_us
        for before, after in itertools.pairwise(all_attempts)
        if before.aborted
    ]
    assert len(set(waits)) == len(waits)
    assert sum(waits) / len(waits) == pytest.approx(3.6e9, rel=0.7)
    equal = list(attempts(msgspec.structs.replace(batch, repair_sigma=0.0)))
    assert {b.start_us - a.end_us for a, b in itertools.pairwise(equal) if a.aborted} == {
        3_600_000_000
    }


@pytest.mark.parametrize(
    "wrong", [{"other_sizes": (31,)}, {"duration_sigma": -1.0}, {"repair_sigma": math.nan}]
)
def test_wrong_spreads_are_refused(wrong) -> None:
    law = Weibull(300 * HOUR, 3.0, downtime_s=HOUR)
    with pytest.raises(InputError):
        Batch(Torus((6, 5)), 16, 50, 8 * HOUR, law, "rps", "all", 3, **wrong)


@pytest.mark.parametrize("policy", ["slurm-linear", "rps", "faps"])
def test_with_the_whole_machine(policy: str) -> None:
    """Jobs need the entire machine, repairs last 9 minutes, and schedulers are unchanged."""
    which = "" if policy == "slurm-linear" else "all"
    law = Weibull(400 * HOUR, 3.0)
    batch = Batch(Torus((3, 3)), 9, JOBS, 8 * HOUR, law, policy, which, 2)
    found = list(attempts(batch))
    assert sum(attempt.aborted for attempt in found) > 20
    _no_failure_falls_into_a_repair(batch, found[-1].end_us)
    assert on_the_engine(batch, spec(batch, "conservative")) == in_the_batch(found)


def _no_failure_falls_into_a_repair(batch: Batch, end_us: int) -> None:
    last_us = -math.inf
    for at_us, _ in batch.law.failures(batch.torus.n_nodes, batch.seed):
        if at_us > end_us:
            return
        assert at_us - last_us > to_us(batch.law.downtime_s)
        last_us = at_us


def test_the_engine_does_not_wait_where_other_nodes_are_up() -> None:
    """If schedulers are unchanged, the start after the first abort is the first difference."""
    batch = Batch(Torus((6, 5)), 16, JOBS, 8 * HOUR, Weibull(300 * HOUR, 3.0), "faps", "all", 5)
    engine, found = on_the_engine(batch, spec(batch, "conservative")), list(attempts(batch))
    first = next(i for i, attempt in enumerate(found) if attempt.aborted)
    assert engine[: first + 1] == in_the_batch(found[: first + 1])
    assert found[first + 1].start_us == found[first].end_us + 540_000_000
    assert all(start_us == end_us for (_, end_us, _), (start_us, *_) in itertools.pairwise(engine))
