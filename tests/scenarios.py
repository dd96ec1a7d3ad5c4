# SPDX-License-Identifier: Apache-2.0
"""Builders that read as a sentence, and the checks that every run must pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

from rebat.contract import Policy
from rebat.core.attempts import INTERRUPTED, Cause
from rebat.core.decisions import Reply
from rebat.core.events import Message
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.engine.engine import Scheduler
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import Preset, preset
from rebat.results.measures.recoveries import down_intervals
from rebat.runs.single import RunResult, simulate
from rebat.session.ledger import Ledger
from rebat.session.session import Session


class Custom(NamedTuple):
    """A policy that is in no table, for ``simulate``."""

    policy: Policy
    session: SessionOptions = SessionOptions()
    name: str = "custom"

    def make(self) -> Policy:
        """The policy itself: it can run once."""
        return self.policy


def machine(n_nodes: int, *jobs: tuple, profiles: dict | None = None) -> Workload:
    """A workload of (size, length, [submission], [walltime]) in seconds; ids '1', '2' ..."""
    made, known = [], dict(profiles or {})
    for number, job in enumerate(jobs, start=1):
        size, length, submit, walltime = (*job, *(0, None)[len(job) - 2 :])
        name = f"{length}s"
        known[name] = {"type": "delay", "delay": length}
        made.append(Job(str(number), size, to_us(submit), to_us(walltime or length + 0.01), name))
    return Workload("test", n_nodes, tuple(made), known)


def fails(node: int, at: float, back: float) -> list[MachineEvent]:
    """A node that fails and comes back."""
    nodes = NodeSet.of([node])
    return [MachineEvent(to_us(at), False, nodes), MachineEvent(to_us(back), True, nodes)]


def run(policy: str, workload: Workload, events: Sequence[MachineEvent] = ()) -> RunResult:
    """Simulate a preset by name (see ``on_ring``)."""
    return simulate(workload, on_ring(policy, workload.n_nodes), machine_events=events)


def on_ring(policy: str, n_nodes: int) -> Preset:
    """A preset by name; one for a torus on a ring of any size, without a law."""
    chosen = preset(policy)
    ring = {"torus": str(n_nodes), "foresight": "oldest"}
    own = [f"{axis}={value}" for axis, value in ring.items() if axis in chosen.point.effective]
    return preset(policy + (":" if ":" not in policy else ",") + ",".join(own)) if own else chosen


def validated(session: Session) -> Scheduler:
    """The session's ``handle``, after which its invariants are checked."""

    def handle(message: Message) -> Reply:
        reply = session.handle(message)
        session.validate()
        return reply

    return handle


def flows(result: RunResult) -> dict[str, float]:
    """Flow by job id, seconds rounded to the microsecond."""
    return {row.job_id: round(row.flow, 6) for row in result.rows}


@st.composite
def workloads(draw, n_nodes: int = 10, max_jobs: int = 12) -> Workload:
    """Small random workloads; some jobs outrun their walltime, some need the whole machine."""
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
    """Random outages; every node comes back, and no node fails while it is down."""
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


def check_run(result: RunResult) -> None:
    """The safety properties of every run, whatever the policy."""
    check_nodes(result.ledger)
    check_ends(result.ledger)
    check_sizes(result.ledger)
    check_time(result)


def check_nodes(ledger: Ledger, slack_us: int = 0) -> None:
    """No node runs two attempts at once, and none runs on a dead node, unless it hangs.

    ``slack_us`` is how long a kill takes to arrive, on a platform with latency.
    """
    held, hung_us = defaultdict(list), {}
    for record in ledger.attempts:
        hung_us[record.attempt.id] = record.hung_us
        for node in record.nodes or ():
            if record.end_us > record.start_us:
                held[node].append((record.start_us, record.end_us, record.attempt.id))
    for node, intervals in held.items():
        intervals.sort()
        for (_, end, first), (start, _, second) in pairwise(intervals):
            assert end <= start, f"node {node} runs {first} and {second}"
    horizon = max((record.end_us for record in ledger.attempts), default=0)
    for node, down, up in down_intervals(ledger.node_events, horizon):
        for start, end, attempt in held.get(node, ()):
            dead = min(end - hung_us[attempt], up) - max(start, down)
            assert dead <= slack_us, f"{attempt} runs on the dead node {node}"


def check_ends(ledger: Ledger) -> None:
    """Every job ends exactly once, with its last attempt; the others were interrupted."""
    attempts = defaultdict(list)
    for record in ledger.attempts:
        attempts[record.attempt.job_id].append(record)
    for job_id, records in attempts.items():
        records.sort(key=lambda record: record.attempt.number)
        assert [r.attempt.number for r in records] == list(range(len(records))), job_id
        causes = [record.cause for record in records]
        again = INTERRUPTED | {Cause.SILENT_ERROR, Cause.MOLDED}
        assert all(cause in again for cause in causes[:-1]), job_id
        assert causes[-1] not in again, job_id
        for before, after in pairwise(record for record in records if record.start_us >= 0):
            assert before.end_us <= after.start_us, job_id


def check_sizes(ledger: Ledger, slack_us: int = 0) -> None:
    """An attempt holds as many nodes as it asks, within its walltime, after its submission."""
    for record in ledger.attempts:
        if record.nodes is not None:
            assert len(record.nodes) == record.attempt.n_nodes
            assert record.attempt.queued_us <= record.start_us
            assert record.end_us - record.start_us <= record.attempt.walltime_us + slack_us


def check_time(result: RunResult) -> None:
    """Useful + checkpoint + recovery + waste + held + downtime + idle are all the node time."""
    p = result.summary.platform
    parts = (
        p.useful, p.checkpoint, p.recovery, p.waste_failure, p.waste_stealing, p.waste_silent,
        p.waste_walltime, p.waste_moving, p.held,
    )  # fmt: skip
    assert abs(sum(parts) + p.downtime + p.idle - p.total) <= 1e-6 * max(1.0, p.total)
    assert min(*parts, p.downtime, p.idle) >= 0
    assert all(row.flow >= 0 for row in result.rows if row.flow is not None)
