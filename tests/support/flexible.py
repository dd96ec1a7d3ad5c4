# SPDX-License-Identifier: Apache-2.0
"""Workloads of rigid, moldable and malleable jobs, and checks of their runs."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st

from rebat.core.attempts import Cause
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import Malleable, Moldable, shape_of
from rebat.core.units import to_us
from rebat.models.checkpoint import NEVER, checkpointing_of
from rebat.models.failures.events import MachineEvent
from rebat.models.speedup import speedup_of
from rebat.runs.single import RunResult
from rebat.state.ledger import Ledger

SPEEDUPS = [
    {"model": "linear"},
    {"model": "amdahl", "serial": 0.1},
    {"model": "downey", "parallelism": 5, "sigma": 0.7},
    {"model": "downey", "parallelism": 3, "sigma": 1.6},
]


def malleable(low: int, high: int) -> dict:
    """Return the JSON fields of a malleable job with this range of sizes."""
    return {"shape": {"kind": "malleable", "min": low, "max": high}}


def moldable(*sizes: int) -> dict:
    """Return the JSON fields of a moldable job with these sizes."""
    return {"shape": {"kind": "moldable", "sizes": list(sizes)}}


def flexible(n_nodes: int, *jobs: tuple) -> Workload:
    """Return a workload of (size, length, submission, shape[, speedup]), with ids '1', '2' ...

    Times are in seconds. Each walltime is a second longer than the length.
    """
    made, profiles = [], {}
    for number, job in enumerate(jobs, start=1):
        size, length, submit, extra, speedup = (*job, {"model": "linear"})[:5]
        profiles[f"p{number}"] = {"type": "delay", "delay": length, "speedup": speedup}
        made.append(
            Job(str(number), size, to_us(submit), to_us(length + 1), f"p{number}", extra or {})
        )
    return Workload("flexible", n_nodes, tuple(made), profiles)


@st.composite
def flexible_workloads(draw, n_nodes: int = 12, max_jobs: int = 10) -> Workload:
    """Draw a small workload of rigid, moldable and malleable jobs."""
    jobs = []
    for _ in range(draw(st.integers(1, max_jobs))):
        size = draw(st.integers(1, n_nodes))
        low, high = draw(st.integers(1, size)), draw(st.integers(size, n_nodes))
        sizes = draw(st.lists(st.integers(1, n_nodes), min_size=1, max_size=4, unique=True))
        extra = draw(st.sampled_from([{}, malleable(low, high), moldable(*sorted(sizes))]))
        length, submit = draw(st.integers(1, 60)), draw(st.integers(0, 60))
        jobs.append((size, length, submit, extra, draw(st.sampled_from(SPEEDUPS))))
    return flexible(n_nodes, *jobs)


@st.composite
def group_failures(draw, n_nodes: int = 12, group: int = 4, most: int = 8) -> list[MachineEvent]:
    """Draw outages of entire groups of processors; outages of the same group do not overlap."""
    up_again: dict[int, int] = defaultdict(lambda: -1)
    events = []
    for _ in range(draw(st.integers(0, most))):
        node, gap = draw(st.integers(0, n_nodes // group - 1)), draw(st.integers(1, 60))
        length = draw(st.integers(1, 30))
        at, nodes = up_again[node] + gap, NodeSet.of(range(group * node, group * (node + 1)))
        up_again[node] = at + length
        events += [
            MachineEvent(to_us(at), False, nodes), MachineEvent(to_us(at + length), True, nodes)
        ]  # fmt: skip
    return sorted(events, key=lambda event: (event.at_us, event.available))


def check_sizes_allowed(result: RunResult, workload: Workload) -> None:
    """Check that malleable jobs stay in their range, and moldable jobs run at an allowed size."""
    jobs = {f"w0!{job.id}": job for job in workload.jobs}
    for record in result.ledger.attempts:
        if record.start_us < 0:
            continue
        job, size = jobs[record.attempt.job_id], record.attempt.n_nodes
        shape = shape_of(job.extra)
        if isinstance(shape, Malleable):
            assert shape.min <= size <= shape.max
        elif isinstance(shape, Moldable):
            assert size in (*shape.sizes, job.n_nodes)
        else:
            assert size == job.n_nodes


def _exact(profile: dict) -> bool:
    """Return whether a delay has perfect checkpoints or none."""
    checkpointing = checkpointing_of(profile) if profile["type"] == "delay" else NEVER
    return checkpointing is None or checkpointing.perfect


def check_work(ledger: Ledger, workload: Workload, slack_us: int = 0) -> None:
    """Check that the sum of S(n) x time over the attempts of a job equals its work.

    Each term is rounded to the clock's grid. This holds for jobs with perfect checkpoints or none,
    and for resizes without cost.
    """
    jobs = {f"w0!{job.id}": job for job in workload.jobs if _exact(workload.profiles[job.profile])}
    done: dict[str, float] = defaultdict(float)
    slack: dict[str, float] = defaultdict(float)
    ended = set()
    for record in ledger.attempts:
        job = jobs.get(record.attempt.job_id)
        if job is None:
            continue
        speed = speedup_of(workload.profiles[job.profile]).speed(record.attempt.n_nodes)
        if record.start_us >= 0:
            done[job.id] += speed * (record.useful_us - record.lost_us)  # without overheads
            slack[job.id] += speed * (1 + slack_us)
        if record.cause == Cause.COMPLETED:
            ended.add(job.id)
    for job in jobs.values():
        if job.id in ended:
            profile = workload.profiles[job.profile]
            speed = speedup_of(profile).speed(job.n_nodes)
            work = speed * to_us(profile["delay"])
            assert abs(done[job.id] - work) <= slack[job.id] + speed, job.id
