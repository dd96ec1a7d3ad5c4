# SPDX-License-Identifier: Apache-2.0
"""The configurations that a calibration simulates."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from rebat.core.errors import InputError, RebatError, one_line
from rebat.library.calibration.distance import (
    Floats,
    Nearness,
    RecordedWaits,
    nearness,
)
from rebat.library.calibration.smaller import on_nodes
from rebat.library.workloads import LoadedWorkload
from rebat.results.intervals import interval
from rebat.runs.scenario import Scenario
from rebat.runs.simulating import perform_all, simulate_run, units
from rebat.runs.unit import RunSpec, Unit

POLICIES = (
    "batsched-fcfs",
    "baseline",
    "easy",
    "greedy",
    "easy:order=shortest",
    "easy:order=smallest",
    "easy:order=largest",
)
"""Policies: no, conservative and EASY backfilling, no reservations, and EASY in other orders."""

SHARES_OF_NODES = (0.95, 0.9, 0.85, 0.8)
"""Shares of the nodes to simulate, since some real nodes may be down, drained or reserved."""

N_NEAREST = 4
"""Number of policies that are also simulated with fewer nodes."""


class Configuration(msgspec.Struct, frozen=True):
    """A policy on ``nodes`` nodes, divided into ``parts`` separate partitions (0: undivided)."""

    policy: str
    nodes: int
    of_nodes: int
    parts: int = 0

    @property
    def title(self) -> str:
        """The policy, followed by its separate partitions or its share of the nodes."""
        if self.parts:
            return f"{self.policy} in {self.parts} separate partitions"
        if self.nodes == self.of_nodes:
            return self.policy
        return f"{self.policy} on {self.nodes / self.of_nodes:.0%} of the nodes"


class CalibratedRun(msgspec.Struct, frozen=True):
    """A simulated configuration.

    Attributes
    ----------
    configuration : Configuration
    waits_s : dict of str to float
        Wait of each job until its first start, in seconds. Jobs that did not start are omitted.
    useful_nodes : float
        Useful node time, divided by the simulated time: the mean number of nodes with useful work.
    error : str
        The reason why the simulation failed, or an empty text if it succeeded.
    """

    configuration: Configuration
    waits_s: dict[str, float] = {}
    useful_nodes: float = math.nan
    error: str = ""

    def compared(self, recorded: RecordedWaits) -> tuple[RecordedWaits, Floats]:
        """Return recorded and simulated waits of the jobs that started in both schedules."""
        both = recorded.of(np.array([name in self.waits_s for name in recorded.ids], dtype=bool))
        return both, np.array([self.waits_s[name] for name in both.ids], dtype=np.float64)

    def near(self, recorded: RecordedWaits) -> Nearness:
        """Return how close the simulated waits are to the recorded waits."""
        return nearness(*self.compared(recorded))


class _Task(msgspec.Struct, frozen=True):
    configuration: Configuration
    unit: Unit


def simulated(
    workload: LoadedWorkload,
    scenario: Scenario,
    configurations: Sequence[Configuration],
    workers: int | None,
    on_done: Callable[[int, int], None],
) -> Iterator[CalibratedRun]:
    """Yield the run of each configuration."""
    specs = [
        RunSpec(
            grid="calibration",
            workload="workload",
            policy=chosen.policy,
            source=workload.origin,
            scenario=on_nodes(scenario, chosen.nodes, chosen.of_nodes),
        )
        for chosen in configurations
    ]
    tasks = [_Task(*pair) for pair in zip(configurations, units(specs), strict=True)]
    n_workers = min(workers or len(os.sched_getaffinity(0)), len(tasks))
    done = perform_all(tasks, perform, _lost, n_workers)
    for number, run in enumerate(done, start=1):
        on_done(number, len(tasks))
        yield run


def perform(task: _Task) -> CalibratedRun:
    """Simulate a configuration, in a worker."""
    try:
        result = simulate_run(task.unit)
    except InputError:
        raise
    except RebatError as error:
        return CalibratedRun(task.configuration, error=one_line(error))
    rows = result.rows
    waits_s = rows.column("first_start") - rows.column("submission_time")
    waits = zip(rows.column("job_id"), waits_s, strict=True)
    platform = result.summary.platform
    return CalibratedRun(
        task.configuration,
        {str(name): float(wait) for name, wait in waits if not math.isnan(wait)},
        platform.useful / platform.total * task.configuration.nodes,
    )


def _lost(task: _Task, reason: str) -> CalibratedRun:
    return CalibratedRun(task.configuration, error=reason)


def nearest_first(
    runs: Mapping[Configuration, CalibratedRun], recorded: RecordedWaits
) -> list[tuple[CalibratedRun, Nearness]]:
    """Return the runs that have enough jobs for a distance, sorted by distance."""
    rows = [(run, run.near(recorded)) for run in runs.values() if run.waits_s]
    rows = [(run, near) for run, near in rows if near.distance]
    return sorted(rows, key=lambda row: (_mean(row[1]), row[0].configuration.title))


def _mean(near: Nearness) -> float:
    estimate = interval(near.distance)
    return estimate.mean if estimate else math.inf


def in_parts(
    ranked: Sequence[tuple[CalibratedRun, Nearness]], n_nodes: int, n_parts: int
) -> list[Configuration]:
    """Return the nearest policies on separate partitions.

    Return an empty list if there is only one partition.
    """
    policies = dict.fromkeys(run.configuration.policy for run, _ in ranked)
    nearest = list(policies)[:N_NEAREST] if n_parts else []
    return [Configuration(policy, n_nodes, n_nodes, n_parts) for policy in nearest]


def with_fewer_nodes(
    ranked: Sequence[tuple[CalibratedRun, Nearness]], n_nodes: int, cores_per_node: int = 1
) -> list[Configuration]:
    """Return the nearest policies, each on several shares of the nodes.

    If the machine's nodes are cores, each size is a multiple of ``cores_per_node``.
    """
    policies = dict.fromkeys(run.configuration.policy for run, _ in ranked)
    n_units = n_nodes // cores_per_node
    sizes = dict.fromkeys(
        max(1, math.floor(share * n_units)) * cores_per_node for share in SHARES_OF_NODES
    )
    return [
        Configuration(policy, nodes, n_nodes)
        for policy in list(policies)[:N_NEAREST]
        for nodes in sizes
        if nodes < n_nodes
    ]
