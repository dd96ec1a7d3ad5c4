# SPDX-License-Identifier: Apache-2.0
"""What failures of nodes destroyed in a recorded schedule."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.models.checkpoint import PERIOD_FIELD, checkpointing_of, saved_in
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import Law
from rebat.models.failures.outages import node_events
from rebat.models.failures.recorded import Recorded, Trace
from rebat.results.files.run_folder import RECORDED, read_source, read_timeline, run_folders
from rebat.results.measures.jobs import class_name, size_classes
from rebat.results.measures.nodetime import NodeIntervals, node_times
from rebat.results.measures.timeline import CAUSES, Timeline, outages_of
from rebat.workloads.machine import origin_of

ATTEMPTS = "rebat_attempts.csv"

HOUR_US = 3_600_000_000
MONTH_H = 720.0
"""A month in hours: 30 days."""

DAYS_PER_PERIOD = 30
"""Length of a period in days if the dates of the record are unknown."""


class LostBy(msgspec.Struct, frozen=True):
    """A month, a user, a queue or a size class.

    Attributes
    ----------
    kind
        ``month``, ``user``, ``queue`` or ``size``.
    name
        Its name.
    lost_h
        Node-hours of work that failures destroyed.
    used_h
        Node-hours of all attempts.
    attempts
        Number of attempts that failures ended.
    """

    kind: str
    name: str
    lost_h: float
    used_h: float
    attempts: int


class RecordedLosses(msgspec.Struct, frozen=True, kw_only=True):
    """What failures of nodes cost in a recorded schedule. All times are node-hours.

    Attributes
    ----------
    span_h
        Hours from time 0 to the last end of an attempt.
    total_h
        Node-hours of the machine in this time.
    lost_h
        Node-hours of work that failures destroyed: attempts that ended because a node failed.
    attempts
        Number of these attempts.
    down_h
        Node-hours in which nodes were down, or None if the record has no node events.
    wait_s
        Mean time between submission and end in which a job held no nodes.
    by_job
        Node-hours of destroyed work of each job that lost any.
    groups
        The losses by month, user, queue and size.
    """

    span_h: float
    total_h: float
    lost_h: float
    attempts: int
    down_h: float | None
    wait_s: float
    by_job: dict[str, float]
    groups: list[LostBy]

    @property
    def per_month_h(self) -> float:
        """Node-hours destroyed in 30 days."""
        return self.lost_h / self.span_h * MONTH_H

    def worst(self, kind: str) -> LostBy | None:
        """Return the group of a kind that lost most. Return None unless there are several."""
        of_kind = [group for group in self.groups if group.kind == kind]
        return max(of_kind, key=lambda group: group.lost_h) if len(of_kind) > 1 else None


DownEvents = Callable[[int, float], Sequence[MachineEvent]]
"""Function of a number of nodes and an end (s) that returns recorded failures of nodes."""


def recorded_events(law: Law | None) -> DownEvents:
    """Return a function that returns the recorded failures of n nodes until a time in seconds."""

    def events(n_nodes: int, until_s: float) -> list[MachineEvent]:
        if isinstance(law, Trace):
            return list(law.events(n_nodes))
        if not isinstance(law, Recorded):
            return []
        in_order = msgspec.structs.replace(law, turn=False)
        return list(in_order.events(n_nodes, 0, until_s))

    return events


def recorded_losses(
    past: Path, workload: Workload, events: DownEvents, today: Workload | None = None
) -> RecordedLosses:
    """Read a recorded schedule of a workload, and return what failures destroyed in it.

    Parameters
    ----------
    events : callable
        If the schedule has no node events, this function returns the failures of the nodes.
    today : Workload, optional
        The workload with the checkpoints of its jobs. The work before the last checkpoint of an
        attempt is not lost.
    """
    expected = "a folder of 'rebat workload import --schedule'"
    try:
        (folder,) = [past] if (past / ATTEMPTS).is_file() else run_folders(past, [RECORDED])
    except InputError:
        raise InputError("has no recorded schedule", str(past), expected) from None
    run = read_timeline(folder)
    owners = {job.id: traits_of(job.extra) for job in workload.jobs}
    if other := next((name for name in run.job_id if name not in owners), None):
        problem = f"contains job {other}, which is not in {workload.name}"
        raise InputError(problem, str(folder), "the recorded schedule of this workload")
    if not run.makespan_us:
        raise InputError("has no attempt that ended", str(folder), expected)
    used_h = _node_hours(run, bool(read_source(folder).shared_attempts))
    failed = run.cause == CAUSES.index(Cause.NODE_FAILURE)
    length_us = np.maximum(run.end_us - run.start_us, 1)
    kept_us = run.kept_us
    if today is not None:
        kept_us = np.where(failed, _saved_us(run, today), kept_us)
    lost_h = np.where(failed, used_h * (1 - kept_us / length_us), 0.0)
    span_h = run.makespan_us / HOUR_US
    outages = run.outages
    if not len(outages.begin_us):
        drawn = node_events(events(run.n_nodes, span_h * 3600))
        outages, _ = outages_of(drawn, run.makespan_us)
    downs = np.minimum(outages.end_us, run.makespan_us) - outages.begin_us
    down_h = float((np.maximum(downs, 0) * outages.sizes).sum()) / HOUR_US
    names = {
        "month": _months(run, origin_of(workload.machine)),
        "user": [owners[name].user for name in run.job_id],
        "queue": [owners[name].queue for name in run.job_id],
        "size": _classes(run),
    }
    return RecordedLosses(
        span_h=span_h,
        total_h=span_h * run.n_nodes,
        lost_h=math.fsum(lost_h.tolist()),
        attempts=int(failed.sum()),
        down_h=down_h if len(outages.begin_us) else None,
        by_job=_by_job(run, lost_h),
        wait_s=float((run.start_us - run.queued_us).sum()) / 1e6 / len(set(run.job_id)),
        groups=[
            group
            for kind, labels in names.items()
            for group in _by(kind, labels, lost_h, used_h, failed)
        ],
    )


def _saved_us(run: Timeline, today: Workload) -> npt.NDArray[np.int64]:
    """Return the work of each attempt until its last checkpoint, in microseconds.

    An attempt begins with the time to read the last checkpoint of its job, if there is one.
    """
    patterns = {
        job.id: checkpointing_of(today.profiles[job.profile])
        for job in today.jobs
        if PERIOD_FIELD in today.profiles[job.profile]
    }
    saved, written = np.zeros(len(run.start_us), dtype=np.int64), set[str]()
    for i, name in enumerate(run.job_id):
        if (pattern := patterns.get(name)) is not None:
            recovery_us = pattern.recovery_us if name in written else 0
            worked_us = int(run.end_us[i] - run.start_us[i]) - recovery_us
            saved[i] = saved_in(worked_us, pattern.period_us + pattern.cost_us)
            written |= {name} if saved[i] else set()
    return saved


def _by_job(run: Timeline, lost_h: npt.NDArray[np.float64]) -> dict[str, float]:
    lost: dict[str, float] = {}
    for i in np.flatnonzero(lost_h).tolist():
        lost[run.job_id[i]] = lost.get(run.job_id[i], 0.0) + float(lost_h[i])
    return lost


def _node_hours(run: Timeline, shared: bool) -> npt.NDArray[np.float64]:
    """Return the node-hours of each attempt. Attempts on the same node divide its time equally."""
    if not shared:
        return (run.end_us - run.start_us) * run.sizes / HOUR_US
    holds = NodeIntervals(run.start_us, run.end_us, run.blocks.of_each(len(run.start_us)))
    return node_times(holds) / HOUR_US


def _months(run: Timeline, origin_s: float | None) -> list[str]:
    """Return the month in which each attempt ended, in UTC. Without dates, count 30-day periods."""
    ends_s = (run.end_us / 1e6).tolist()
    if origin_s is not None:
        return [f"{datetime.fromtimestamp(origin_s + end_s, UTC):%Y-%m}" for end_s in ends_s]
    numbers = [int(end_s // (DAYS_PER_PERIOD * 86_400)) for end_s in ends_s]
    return [f"days {DAYS_PER_PERIOD * n} to {DAYS_PER_PERIOD * (n + 1)}" for n in numbers]


def _classes(run: Timeline) -> list[str]:
    """Return the size class of each attempt."""
    classes = size_classes(run.n_nodes)
    names = [class_name(low, high) for low, high in classes]
    places = np.searchsorted([low for low, _ in classes], run.sizes, side="right") - 1
    return [names[place] for place in places.tolist()]


def _by(
    kind: str,
    labels: Sequence[str],
    lost_h: npt.NDArray[np.float64],
    used_h: npt.NDArray[np.float64],
    failed: npt.NDArray[np.bool_],
) -> Iterator[LostBy]:
    """Yield the groups of a kind: months in order of time, others with the largest loss first."""
    rows = defaultdict[str, list[int]](list)
    for row, label in enumerate(labels):
        rows[label].append(row)
    groups = [
        LostBy(
            kind,
            name,
            math.fsum(lost_h[of].tolist()),
            math.fsum(used_h[of].tolist()),
            int(failed[of].sum()),
        )
        for name, of in rows.items()
        if name
    ]
    if kind == "month":
        return iter(groups)
    return iter(sorted(groups, key=lambda group: -group.lost_h))
