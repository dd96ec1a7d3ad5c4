# SPDX-License-Identifier: Apache-2.0
"""Random runs of each kind of policy, with the files of `rebat run`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Poisson
from rebat.policies.presets import preset
from rebat.runs.scenario import CheckpointModel, Scenario, SilentErrors
from rebat.runs.single import RunResult, simulate, write_run
from rebat.runs.staging import prepared

POLICIES = (
    "baseline", "sfsj", "h111", "h212", "h313", "h321", "authors-baseline", "authors-h111",
    "authors-h213", "easy", "greedy", "easy-sfsj", "greedy-sfsj",
    "baseline:depth=easy,react=stealing,victim=least-lost-work", "r-list-0", "r-list-q",
    "r-list-q:la", "r-shelf-b", "r-shelf-nb",
)  # fmt: skip
FLEXIBLE = ("pra", "dbes", "pwa:react=replacement", "dbes:react=replacement+stealing")
MIGRATING = ("cluster", "compaction", "priorities", "tiers")
STEALING = ("h111", "h213", "h222", "h323", "authors-h111", "authors-h213", "authors-h323")
FAILURE_FREE = ("batsched-conservative", "batsched-easy", "batsched-fcfs")
"""Policies of Batsched, which cannot handle failures."""


class Written(NamedTuple):
    """A run written to a folder, with its workload, failures and policy."""

    folder: Path
    workload: Workload
    events: list[MachineEvent]
    policy: str
    result: RunResult


def random_run(seed: int, folder: Path) -> Written:
    """Run a random policy: jobs too large or beyond their walltime, failures, checkpoints."""
    rng = np.random.default_rng(seed)
    policy = str(rng.choice([*POLICIES, *FAILURE_FREE]))
    n_nodes = int(rng.integers(4, 17))
    workload = random_workload(rng, n_nodes)
    mtbf_s = float(rng.choice([40.0, 100.0, 400.0]))
    if not policy.startswith(("r-", "batsched")) and rng.random() < 0.5:
        checkpoint = CheckpointModel(mtbf_s, 1.5, 2.0, "ceil")
        workload = prepared(workload, Scenario(nodes=n_nodes, checkpoint=checkpoint))
    if rng.random() < 0.4:
        errors = SilentErrors(probability=0.3, seed=seed)
        workload = prepared(workload, Scenario(nodes=n_nodes, silent_errors=errors))
    events: list[MachineEvent] = []
    if policy not in FAILURE_FREE and rng.random() < 0.85:
        events = generate_events(Poisson(mtbf_s, 15.0), n_nodes, horizon_s=600.0, seed=seed)
    result = simulate(workload, preset(policy), n_nodes=n_nodes, machine_events=events)
    write_run(folder, result, {})
    return Written(folder, workload, events, policy, result)


def random_workload(rng: np.random.Generator, n_nodes: int) -> Workload:
    """Draw up to 24 jobs: some reach or exceed their walltime, and one may be too large."""
    jobs, profiles = [], {}
    for number in range(int(rng.integers(3, 25))):
        length = round(float(rng.uniform(0.5, 60.0)), int(rng.integers(0, 4)))
        factor = float(rng.choice([0.7, 1.0, 1.05, 2.0, 5.0], p=[0.1, 0.05, 0.25, 0.3, 0.3]))
        size = int(rng.integers(1, n_nodes + 1)) if number else n_nodes + 1
        submit = round(float(rng.uniform(0, 120.0)), int(rng.integers(0, 4)))
        profiles[f"d{length}"] = {"type": "delay", "delay": length}
        walltime_us = max(1, to_us(length * factor))
        jobs.append(Job(str(number), size, to_us(submit), walltime_us, f"d{length}"))
    if rng.random() < 0.7:
        jobs = jobs[1:]  # no job is rejected
    return Workload("random", n_nodes, tuple(jobs), profiles)


def varied_run(seed: int, folder: Path, policy: str = "") -> Written:
    """Run jobs that migrate, never end or change size, and whose ids look like resubmissions."""
    rng = np.random.default_rng((seed, 1))
    chosen = policy or str(rng.choice([*FLEXIBLE, *MIGRATING, *STEALING, "r-list-q"]))
    n_nodes, mtbf_s = int(rng.integers(6, 13)), float(rng.choice([20.0, 50.0, 200.0]))
    workload = varied_workload(rng, n_nodes, chosen)
    if chosen != "r-list-q" and rng.random() < 0.7:
        cost_s, recovery_s, rounding = [(1.5, 2.0, "ceil"), (1.25, 0.5, "floor")][rng.integers(2)]
        model = CheckpointModel(mtbf_s, cost_s, recovery_s, rounding)
        workload = prepared(workload, Scenario(nodes=n_nodes, checkpoint=model))
    if chosen == "r-list-q":
        errors = SilentErrors(probability=0.3, seed=seed)
        workload = prepared(workload, Scenario(nodes=n_nodes, silent_errors=errors))
    events = generate_events(Poisson(mtbf_s, 10.0), n_nodes, horizon_s=400.0, seed=seed)
    result = simulate(workload, preset(chosen), n_nodes=n_nodes, machine_events=events)
    write_run(folder, result, {})
    return Written(folder, workload, events, chosen, result)


def varied_workload(rng: np.random.Generator, n_nodes: int, policy: str) -> Workload:
    """Draw up to 16 jobs, with times of up to six decimals; some are malleable, some never end."""
    jobs = []
    profiles: dict[str, dict] = {"endless": {"type": "delay", "delay": 1_000_000}}
    for number in range(int(rng.integers(4, 17))):
        length = round(float(rng.uniform(5.0, 80.0)), int(rng.choice([0, 3, 6])))
        size, factor = int(rng.integers(1, n_nodes // 2 + 1)), float(rng.choice([1.1, 3.0]))
        submit_us = to_us(round(float(rng.uniform(0, 80.0)), 3))
        name, profile = f"{number}#1" if rng.random() < 0.2 else str(number), f"d{length}"
        walltime_us: int | None = to_us(length * factor)
        profiles[profile] = {"type": "delay", "delay": length}
        extra: dict = {}
        if policy in FLEXIBLE and rng.random() < 0.7:
            extra = {"shape": {"kind": "malleable", "min": 1, "max": n_nodes}}
        if policy in MIGRATING and rng.random() < 0.3:
            size, walltime_us, profile, extra = 1, None, "endless", {"eternal": True}
        jobs.append(Job(name, size, submit_us, walltime_us, profile, extra))
    return Workload("varied", n_nodes, tuple(jobs), profiles)
