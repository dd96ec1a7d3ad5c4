# SPDX-License-Identifier: Apache-2.0
"""Partitions of a recorded machine that share no nodes, simulated as separate machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.library.calibration.design import CalibratedRun, Configuration, simulated
from rebat.library.node_names import names_in
from rebat.library.workloads import as_file
from rebat.runs.scenario import Scenario


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
    configurations: Sequence[Configuration],
    workers: int | None,
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
                    [msgspec.structs.replace(chosen, nodes=part.n_nodes)],
                    workers,
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
