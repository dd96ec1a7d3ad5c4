# SPDX-License-Identifier: Apache-2.0
"""Builders of small scenarios, and the checks of ``rebat policy check``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from rebat.check.playing import (
    check_run,  # noqa: F401  (for many tests)
    on_ring,
)
from rebat.contract import Policy
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent
from rebat.runs.single import RunResult, simulate


class Custom(NamedTuple):
    """A policy for ``simulate`` that is not in the tables of policies."""

    policy: Policy
    session: SessionOptions = SessionOptions()
    name: str = "custom"

    def make(self) -> Policy:
        """Return the policy itself, which can run only once."""
        return self.policy


def machine(n_nodes: int, *jobs: tuple, profiles: dict | None = None) -> Workload:
    """Return a workload of (size, length, [submission], [walltime]) in seconds, ids '1', '2' ..."""
    made, known = [], dict(profiles or {})
    for number, job in enumerate(jobs, start=1):
        size, length, submit, walltime = (*job, *(0, None)[len(job) - 2 :])
        name = f"{length}s"
        known[name] = {"type": "delay", "delay": length}
        made.append(Job(str(number), size, to_us(submit), to_us(walltime or length + 0.01), name))
    return Workload("test", n_nodes, tuple(made), known)


def fails(node: int, at: float, back: float) -> list[MachineEvent]:
    """Return the failure and the repair of a node."""
    nodes = NodeSet.of([node])
    return [MachineEvent(to_us(at), False, nodes), MachineEvent(to_us(back), True, nodes)]


def run(policy: str, workload: Workload, events: Sequence[MachineEvent] = ()) -> RunResult:
    """Simulate a preset by name (see ``on_ring``)."""
    return simulate(workload, on_ring(policy, workload.n_nodes), machine_events=events)


def flows(result: RunResult) -> dict[str, float]:
    """Return the flow of each job by id, in seconds rounded to the microsecond."""
    return {row.job_id: round(row.flow, 6) for row in result.rows}


@st.composite
def workloads(draw, n_nodes: int = 10, max_jobs: int = 12) -> Workload:
    """Draw a small workload, in which some jobs reach their walltime."""
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(1, n_nodes - 2),
                st.integers(1, 40),
                st.integers(0, 60),
                st.integers(1, 60),
            ),
            min_size=1,
            max_size=max_jobs,
        )
    )
    return machine(n_nodes, *jobs)


@st.composite
def failures(draw, n_nodes: int = 10, most: int = 12) -> list[MachineEvent]:
    """Draw random outages. Every node is repaired, and no node fails while it is down."""
    outages = draw(
        st.lists(
            st.tuples(st.integers(0, n_nodes - 1), st.integers(0, 90), st.integers(1, 30)),
            max_size=most,
        )
    )
    up_again: dict[int, int] = defaultdict(lambda: -1)
    events = []
    for node, at, length in sorted(outages, key=lambda o: (o[1], o[0])):
        if at > up_again[node]:
            up_again[node] = at + length
            events += fails(node, at, at + length)
    return events
