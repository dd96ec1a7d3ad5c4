# SPDX-License-Identifier: Apache-2.0
"""The configurations that a calibration simulates.

Partitions of a recorded machine that share no nodes are simulated as separate machines.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from rebat.api.workloads import LoadedWorkload, as_file
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import traits_of
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.recorded import Trace
from rebat.results.intervals import interval
from rebat.runs.runner import perform_all
from rebat.runs.scenario import Scenario
from rebat.runs.simulating import simulate_run, units
from rebat.runs.unit import RunSpec, Unit
from rebat.studies.calibration.distance import (
    Floats,
    Nearness,
    RecordedWaits,
    nearness,
)
from rebat.workloads.machine import names_in

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


def simulated(
    workload: LoadedWorkload,
    scenario: Scenario,
    workers: int | None,
    configurations: Sequence[Configuration],
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
    n_workers = min(workers or len(os.sched_getaffinity(0)), len(specs))
    outcomes = perform_all(units(specs), perform, n_workers)
    for number, outcome in enumerate(outcomes, start=1):
        on_done(number, len(specs))
        chosen, metrics = configurations[outcome.number], outcome.metrics
        if metrics is None:
            yield CalibratedRun(chosen, error=outcome.error or "")
        else:
            yield CalibratedRun(chosen, metrics["waits_s"], metrics["useful"] * chosen.nodes)


def perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    """Simulate a configuration, in a worker. Return waits and the useful share of node time."""
    result = simulate_run(unit)
    rows, platform = result.rows, result.summary.platform
    waits_s = rows.column("first_start") - rows.column("submission_time")
    waits = zip(rows.column("job_id"), waits_s, strict=True)
    return {
        "waits_s": {str(name): float(wait) for name, wait in waits if not math.isnan(wait)},
        "useful": platform.useful / platform.total,
    }


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


class PartOfTrace(Trace, frozen=True, kw_only=True):
    """The events of a file on the first nodes of a machine with ``of_nodes`` nodes."""

    of_nodes: int

    def events(
        self,
        n_nodes: int,
        seed: int = 0,
        horizon_s: float | None = None,
        cores_per_node: int = 1,
    ) -> Iterable[MachineEvent]:
        """Return the events of the first ``n_nodes`` nodes as a list."""
        events = super().events(self.of_nodes, seed, horizon_s, cores_per_node)
        return list(_of_first(events, n_nodes))


def _of_first(events: Iterable[MachineEvent], n_nodes: int) -> Iterator[MachineEvent]:
    for event in events:
        pairs = event.nodes.intervals.tolist()
        nodes = NodeSet.from_intervals((a, min(b, n_nodes - 1)) for a, b in pairs if a < n_nodes)
        if len(nodes):
            yield msgspec.structs.replace(event, nodes=nodes)


def on_nodes(scenario: Scenario, nodes: int, of_nodes: int) -> Scenario:
    """Return a scenario on fewer nodes. Recorded failures of the other nodes are left out."""
    failures = scenario.failures
    if failures is not None and isinstance(failures.law, Trace) and nodes < of_nodes:
        part = PartOfTrace(failures.law.file, failures.law.numbers, of_nodes=of_nodes)
        failures = msgspec.structs.replace(failures, law=part)
    return msgspec.structs.replace(scenario, nodes=nodes, failures=failures)


def separate_parts(workload: Workload) -> list[Workload]:
    """Return one workload for each group of partitions. Different groups share no nodes.

    The result is empty in three cases: there is only one group, the partition of a job is unknown,
    or a partition is smaller than its job.
    """
    groups = _groups((workload.machine or {}).get("partitions"))
    parts = [_part(workload, partitions, len(nodes)) for partitions, nodes in groups]
    several = len(parts) > 1 and sum(len(part.jobs) for part in parts) == len(workload.jobs)
    fits = all(job.n_nodes <= part.n_nodes for part in parts for job in part.jobs)
    return [part for part in parts if part.jobs] if several and fits else []


def _groups(partitions: object) -> list[tuple[set[str], set[str]]]:
    """Return groups of partitions, each with its nodes.

    Partitions that share a node are in one group.
    """
    groups: list[tuple[set[str], set[str]]] = []
    for name, text in partitions.items() if isinstance(partitions, dict) else ():
        names, nodes = {str(name)}, set(names_in(text))
        for other in [group for group in groups if group[1] & nodes]:
            groups.remove(other)
            names, nodes = names | other[0], nodes | other[1]
        groups.append((names, nodes))
    return groups


def _part(workload: Workload, partitions: set[str], n_nodes: int) -> Workload:
    jobs = tuple(job for job in workload.jobs if traits_of(job.extra).queue in partitions)
    name = "+".join(sorted(partitions))
    return Workload(name=name, n_nodes=n_nodes, jobs=jobs, profiles=workload.profiles)


def simulated_in_parts(
    parts: Sequence[Workload],
    scenario: Scenario,
    workers: int | None,
    configurations: Sequence[Configuration],
    on_done: Callable[[int, int], None],
) -> Iterator[CalibratedRun]:
    """Yield the run of each configuration.

    Groups are simulated separately, and their runs are joined.
    """
    with TemporaryDirectory() as folder:
        loaded = []
        for number, part in enumerate(parts):
            place = Path(folder) / str(number)
            place.mkdir()
            loaded.append(as_file(part, place))
        for number, chosen in enumerate(configurations, start=1):
            runs = [
                run
                for part in loaded
                for run in simulated(
                    part,
                    scenario,
                    workers,
                    [msgspec.structs.replace(chosen, nodes=part.n_nodes)],
                    lambda done, of: None,
                )
            ]
            on_done(number, len(configurations))
            yield _joined(chosen, runs)


def _joined(chosen: Configuration, runs: Sequence[CalibratedRun]) -> CalibratedRun:
    waits_s = {name: wait_s for run in runs for name, wait_s in run.waits_s.items()}
    error = "; ".join(run.error for run in runs if run.error)
    use = math.fsum(run.useful_nodes for run in runs)
    return CalibratedRun(chosen, {} if error else waits_s, use, error)
