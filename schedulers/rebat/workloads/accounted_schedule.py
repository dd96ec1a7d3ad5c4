# SPDX-License-Identifier: Apache-2.0
"""The recorded schedule from accounting records: all attempts of the jobs of a workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from rebat.core.nodes import NodeSet
from rebat.models.failures.records.slurm import machine_events
from rebat.records.attempts import end_of
from rebat.records.hosts import expanded, sorted_names
from rebat.workloads.accounted import AccountedJobs
from rebat.workloads.recorded import (
    Execution,
    RecordedSchedule,
    counted_attempts,
    recorded_schedule,
)
from rebat.workloads.trace import PlacedTrace


def accounted_schedule(record: AccountedJobs, done: PlacedTrace) -> RecordedSchedule:
    """Return the recorded attempts of the jobs in a workload, with nodes of its machine.

    If the records contain node names, attempts without node names are left out.
    """
    machine, counts = done.workload.machine or {}, Counter[str]()
    names = sorted_names([machine["nodes"]]) if "nodes" in machine else ()
    executions = list(_executions(record, done, names, counts))
    events = machine_events(record.downs, names, done.origin_s)
    notes = [f"{counted_attempts(n)} left out: {why}" for why, n in sorted(counts.items())]
    return recorded_schedule(done, executions, end_of(record.table), events, notes)


def _executions(
    record: AccountedJobs, done: PlacedTrace, names: Sequence[str], counts: Counter[str]
) -> Iterator[Execution]:
    table, jobs = record.table, record.jobs
    places = {line: place for place, line in enumerate(done.jobs.lines.tolist())}
    lines = table.lines[jobs.last].tolist()
    owners = np.repeat([places.get(line, -1) for line in lines], jobs.n_attempts)
    start, end = table.column("start"), table.column("end")
    limit, sizes = table.column("walltime"), table.column("nodes")
    hosts, states = table.text("hosts"), table.text("state")
    sets = _NodeSets(names)
    for job, row in zip(owners.tolist(), jobs.attempts.tolist(), strict=True):
        nodes = sets.of(hosts[row])
        size = nodes.size or (0 if names or np.isnan(sizes[row]) else int(sizes[row]))
        if job < 0 or not size:
            counts["the job is not in the workload" if job < 0 else "no nodes"] += 1
            continue
        cut = record.cuts.get(row)
        state = states[row]
        yield Execution(
            job,
            float(start[row]),
            float(end[row]),
            state,
            size,
            nodes if names else None,
            float(limit[row]),
            cut.cut_s if cut else math.inf,
            cut.node if cut else "",
        )


class _NodeSets:
    """Conversion of lists of node names to sets of nodes. Equal lists share a set."""

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._sets: dict[str, NodeSet] = {}

    def of(self, hosts: str) -> NodeSet:
        """Return the nodes with these names."""
        if hosts not in self._sets:
            self._sets[hosts] = NodeSet.of(self._numbers[name] for name in expanded(hosts))
        return self._sets[hosts]
