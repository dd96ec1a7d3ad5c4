# SPDX-License-Identifier: Apache-2.0
"""The configurations that a calibration simulates."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from rebat.api.workloads import LoadedWorkload
from rebat.core.arrays import Floats
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_S
from rebat.policies.partitions import (
    NONE,
    partition_text,
)
from rebat.policies.presets import Preset, scheduler
from rebat.results.intervals import interval
from rebat.runs.case import case_with, expand
from rebat.runs.runner import perform_all
from rebat.runs.scenario import ScenarioOptions
from rebat.runs.simulating import simulate_run, units
from rebat.runs.staging import on_machine
from rebat.runs.unit import Unit
from rebat.studies.calibration.distance import (
    Nearness,
    RecordedWaits,
    nearness,
)
from rebat.workloads.machine import StatedPartition, partitions_in_use
from rebat.workloads.trace import SUBMITTED

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
    """A policy on ``nodes`` of the ``of_nodes`` nodes of the machine.

    A configuration with fewer nodes consists of the nodes of each partition with the lowest
    numbers. ``places`` is 'partitions' or 'pool', if the record has partitions: whether a job runs
    in its partition or on any nodes. ``spec`` is the policy with these partitions and nodes.
    """

    policy: str
    nodes: int
    of_nodes: int
    places: str = ""
    spec: str = ""

    @property
    def title(self) -> str:
        """The policy, where its jobs run, and its share of the nodes."""
        where = {"partitions": " in partitions", "pool": " in one pool"}.get(self.places, "")
        if self.nodes == self.of_nodes:
            return f"{self.policy}{where}"
        comma = "," if where else ""
        return f"{self.policy}{where}{comma} on {self.nodes / self.of_nodes:.0%} of the nodes"


class CalibratedRun(msgspec.Struct, frozen=True):
    """A simulated configuration.

    Attributes
    ----------
    configuration : Configuration
    waits_s : dict of str to float
        Wait of each job until its first start, in seconds. Jobs that did not start are omitted.
        If the submission of a job is the recorded time from which it could start, the wait excludes
        the time in which its dependency or array blocked it in the simulation.
    useful_nodes : float
        Useful node time, divided by the simulated time: the mean number of nodes with useful work.
    lost_h : dict of float
        Node-hours of each job that failures destroyed.
    error : str
        The reason why the simulation failed, or an empty text if it succeeded.
    """

    configuration: Configuration
    waits_s: dict[str, float] = {}
    useful_nodes: float = math.nan
    lost_h: dict[str, float] = {}
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
    options: ScenarioOptions,
    workers: int | None,
    configurations: Sequence[Configuration],
    on_done: Callable[[int, int], None],
) -> Iterator[CalibratedRun]:
    """Yield the run of each configuration."""
    sources = {"workload": workload.origin}
    case = case_with(options, grid="calibration", workloads=sources)
    specs = [
        spec
        for chosen in configurations
        for spec in expand(replace(case, policies=(chosen.spec or chosen.policy,)))
    ]
    eligible = {job.id for job in workload.jobs if SUBMITTED in job.extra}
    n_workers = min(workers or len(os.sched_getaffinity(0)), len(specs))
    outcomes = perform_all(units(specs), perform, n_workers)
    for number, outcome in enumerate(outcomes, start=1):
        on_done(number, len(specs))
        chosen, metrics = configurations[outcome.number], outcome.metrics
        if metrics is None:
            yield CalibratedRun(chosen, error=outcome.error or "")
        else:
            used, waits_s = metrics["useful"] * chosen.of_nodes, metrics["waits_s"]
            for name in metrics["blocked_s"].keys() & waits_s.keys() & eligible:
                waits_s[name] -= metrics["blocked_s"][name]
            yield CalibratedRun(chosen, waits_s, used, metrics["lost_h"])


def perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    """Simulate a configuration, in a worker. Return waits and the useful share of node time."""
    result = simulate_run(unit)
    rows, platform = result.rows, result.summary.platform
    waits_s = rows.column("first_start") - rows.column("submission_time")
    waits = zip(rows.column("job_id"), waits_s, strict=True)
    attempts = result.ledger.attempts
    number, submit_us, queued_us = map(attempts.column, ("number", "submit_us", "queued_us"))
    blocked = np.flatnonzero((number == 0) & (queued_us > submit_us))
    blocked_s = ((queued_us - submit_us)[blocked] / US_PER_S).tolist()
    lost_s = rows.column("wasted_node_seconds")
    lost = zip(rows.column("job_id"), lost_s, strict=True)
    return {
        "lost_h": {str(name): float(s) / 3600 for name, s in lost if s > 0},
        "blocked_s": dict(zip(attempts.texts("name", blocked), blocked_s, strict=True)),
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


def on_all_nodes(
    policies: Iterable[str], workload: Workload, n_nodes: int, cores_per_node: int = 1
) -> list[Configuration]:
    """Return each policy on all nodes. If the record has partitions, its jobs run in them."""
    rows = []
    for policy in policies:
        chosen = scheduler(policy)
        parted = (
            isinstance(chosen, Preset)
            and on_machine(chosen, workload, n_nodes, cores_per_node).takes_partitions
            != chosen.takes_partitions
        )
        rows.append(Configuration(policy, n_nodes, n_nodes, "partitions" if parted else ""))
    return rows


def in_one_pool(
    ranked: Sequence[tuple[CalibratedRun, Nearness]], workload: Workload, cores_per_node: int = 1
) -> list[Configuration]:
    """Return the nearest policies in one pool of nodes, if partitions make a difference."""
    rows = partitions_in_use(workload, cores_per_node)
    nodes = [row.nodes.size * cores_per_node for row in rows if not row.fields]
    if len(rows) == 1 and nodes == [workload.n_nodes]:
        return []
    return [
        msgspec.structs.replace(chosen, places="pool", spec=_with(chosen.policy, NONE))
        for chosen in _nearest(ranked)
        if chosen.places
    ]


def with_fewer_nodes(
    ranked: Sequence[tuple[CalibratedRun, Nearness]], workload: Workload, cores_per_node: int = 1
) -> list[Configuration]:
    """Return the nearest policies, each on several shares of the nodes (or of each partition).

    If the machine's nodes are cores, each size is a multiple of ``cores_per_node``.
    """
    rows = []
    for chosen in _nearest(ranked):
        for share in SHARES_OF_NODES:
            text, nodes = _fewer(_rows(chosen, workload, cores_per_node), share)
            spec = _with(chosen.policy, text)
            rows.append(msgspec.structs.replace(chosen, nodes=nodes * cores_per_node, spec=spec))
    return [row for row in dict.fromkeys(rows) if row.nodes < row.of_nodes]


def _rows(chosen: Configuration, workload: Workload, cores: int) -> list[StatedPartition]:
    """Return the partitions of a configuration. A pool of nodes is a single partition."""
    if chosen.places:
        return partitions_in_use(workload, cores)
    nodes = NodeSet.from_intervals([(0, chosen.of_nodes // cores - 1)])
    return [StatedPartition("all", "", nodes, {}, True)]


def _nearest(ranked: Sequence[tuple[CalibratedRun, Nearness]]) -> list[Configuration]:
    """Return the nearest configurations with different policies."""
    rows = {run.configuration.policy: run.configuration for run, _ in reversed(ranked)}
    nearest = dict.fromkeys(run.configuration.policy for run, _ in ranked)
    return [rows[policy] for policy in [*nearest][:N_NEAREST]]


def _fewer(rows: Sequence[StatedPartition], share: float) -> tuple[str, int]:
    """Return partitions with a share of their nodes, as text, and the number of all their nodes.

    Of the nodes of the same partitions, those with the lowest numbers stay, at least one.
    """
    n_nodes = 1 + max(int(row.nodes.intervals[-1, 1]) for row in rows)
    members = np.array([row.nodes.mask(n_nodes) for row in rows])
    kinds, kind_of = np.unique(members, axis=1, return_inverse=True)
    stays = np.zeros(n_nodes, dtype=np.bool_)
    for kind in np.flatnonzero(kinds.any(axis=0)):
        nodes = np.flatnonzero(kind_of.ravel() == kind)
        stays[nodes[: max(1, math.floor(share * len(nodes)))]] = True
    texts = [partition_text(row.name, row.nodes.where(stays), row.words) for row in rows]
    return "+".join(texts), int(stays.sum())


def _with(policy: str, partitions: str) -> str:
    return f"{policy}{',' if ':' in policy else ':'}partitions={partitions}"
