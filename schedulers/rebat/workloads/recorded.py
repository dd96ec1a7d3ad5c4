# SPDX-License-Identifier: Apache-2.0
"""The recorded schedule of a workload: attempts of its jobs with times, nodes and causes.

Accounting records and traces list the executions of jobs. `recorded_schedule` converts them to
attempts. The attempts are numbered per job, with times relative to time 0 of the workload. No
attempt starts before the submission of its job, and no two attempts of a job overlap. If a record
has no node names, nodes are assigned.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.records.slurm import machine_events
from rebat.records.attempts import Correction, end_of
from rebat.records.hosts import expanded, sorted_names
from rebat.records.swf import PARTIAL
from rebat.workloads.accounted import AccountedJobs
from rebat.workloads.trace import PlacedTrace, TraceColumns

CAUSES: dict[str, Cause] = {
    "COMPLETED": Cause.COMPLETED,
    "FAILED": Cause.JOB_FAILED,
    "OUT_OF_MEMORY": Cause.JOB_FAILED,
    "SPECIAL_EXIT": Cause.JOB_FAILED,
    "TIMEOUT": Cause.WALLTIME,
    "NODE_FAIL": Cause.NODE_FAILURE,
    "BOOT_FAIL": Cause.NODE_FAILURE,
    "CANCELLED": Cause.CANCELLED,
    "DEADLINE": Cause.CANCELLED,
    "REVOKED": Cause.CANCELLED,
    "PREEMPTED": Cause.PREEMPTED,
    "REQUEUED": Cause.PREEMPTED,
    "REQUEUE_HOLD": Cause.PREEMPTED,
    "REQUEUE_FED": Cause.PREEMPTED,
    "PENDING": Cause.PREEMPTED,
}
"""Slurm's states of attempts that have ended. Attempts in other states are still running."""

LOST = frozenset({Cause.NODE_FAILURE, Cause.PREEMPTED})
"""Causes after which all work of an attempt is lost, because a record has no checkpoints."""


class Execution(NamedTuple):
    """An execution in a record. Times are in seconds, as in the record.

    Attributes
    ----------
    job : int
        Position of the job in the workload.
    start_s, end_s : float
        Start and end of the execution. An unknown end is NaN.
    state : str
        Final state, with Slurm's name.
    size : int
        Number of nodes.
    nodes : NodeSet, optional
        The nodes, or None if the record has no node names.
    limit_s : float
        Maximum run time, or NaN if there is none.
    cut_s : float
        Time of the node failure that cuts the execution. If there is no failure, it is infinite.
    failed_node : str
        The failed node.
    continued : bool
        Whether the next execution continues the work of this execution.
    """

    job: int
    start_s: float
    end_s: float
    state: str
    size: int
    nodes: NodeSet | None = None
    limit_s: float = math.nan
    cut_s: float = math.inf
    failed_node: str = ""
    continued: bool = False


class RecordedAttempt(msgspec.Struct, gc=False):
    """An attempt of a recorded schedule. Times are in microseconds since time 0 of the workload.

    ``job`` is the position of the job in the workload. ``number`` is 0 for the first attempt of the
    job. ``lost`` states whether the work of the attempt is lost.
    """

    job: int
    number: int
    queued_us: int
    start_us: int
    end_us: int
    walltime_us: int | None
    nodes: NodeSet
    cause: Cause
    why: str
    lost: bool


class RecordedSchedule(msgspec.Struct, frozen=True):
    """A workload with its recorded attempts, in the order of their ends.

    Attributes
    ----------
    workload : Workload
    attempts : tuple of RecordedAttempt
    events : tuple of MachineEvent
        Failures and repairs of nodes.
    assigned_nodes : bool
        Whether rebat assigned the node numbers, because the record has no node names.
    crowded : bool
        Whether some of these attempts share nodes, because the machine has too few.
    notes : tuple of str
        How the executions were converted to attempts.
    """

    workload: Workload
    attempts: tuple[RecordedAttempt, ...]
    events: tuple[MachineEvent, ...] = ()
    assigned_nodes: bool = False
    crowded: bool = False
    notes: tuple[str, ...] = ()


class ImportedWorkload(msgspec.Struct, frozen=True):
    """A workload from a trace or from accounting records.

    Attributes
    ----------
    workload : Workload
    schedule : RecordedSchedule, optional
        The recorded attempts of its jobs, or None if they were not requested.
    corrections : tuple of Correction
        Attempts in accounting records that were cut at a failure.
    """

    workload: Workload
    schedule: RecordedSchedule | None = None
    corrections: tuple[Correction, ...] = ()


def recorded_schedule(
    done: PlacedTrace,
    executions: Iterable[Execution],
    until_s: float,
    events: Sequence[MachineEvent] = (),
    notes: Sequence[str] = (),
) -> RecordedSchedule:
    """Return the attempts of the jobs of a workload.

    Parameters
    ----------
    done : PlacedTrace
        The workload and time 0.
    executions : iterable of Execution
        The executions. Either all executions have nodes, or none. Executions without nodes get the
        lowest free nodes, in order of their starts.
    until_s : float
        End of the record, for jobs that still run.
    events, notes : sequence, optional
        Events and notes that the result also contains.
    """
    by_job: defaultdict[int, list[Execution]] = defaultdict(list)
    for execution in executions:
        by_job[execution.job].append(execution)
    if not by_job:
        raise InputError("contains no attempt with a start and nodes", done.jobs.where)
    clock, counts = _Clock(done.origin_s, until_s), Counter[str]()
    attempts: list[RecordedAttempt] = []
    sizes: list[int] = []
    for job in sorted(by_job):
        row = sorted(by_job[job], key=lambda execution: execution.start_s)
        attempts += _attempts(row, done.workload.jobs[job].submit_us, clock, counts)
        sizes += [execution.size for execution in row]
    without = not all(attempt.nodes.size for attempt in attempts)
    _place(attempts, sizes, without, done, counts)
    attempts.sort(key=lambda a: (a.end_us, a.start_us, a.job, a.number))
    all_notes = (*notes, *_notes(attempts, counts, without))
    crowded = bool(counts["crowded"])
    return RecordedSchedule(
        done.workload, tuple(attempts), tuple(events), without, crowded, all_notes
    )


class _Clock(NamedTuple):
    """Conversion of times of a record to microseconds since time 0 of the workload."""

    origin_s: float
    until_s: float

    def us(self, at_s: float) -> int:
        """Return a time in microseconds. Return `FOREVER_US` for an infinite time."""
        return FOREVER_US if math.isinf(at_s) else round((at_s - self.origin_s) * US_PER_S)


def _attempts(
    row: Sequence[Execution], submit_us: int, clock: _Clock, counts: Counter[str]
) -> Iterator[RecordedAttempt]:
    """Yield the attempts of a job, from its executions in order of their starts."""
    starts_us = [max(clock.us(execution.start_s), submit_us) for execution in row]
    counts["early"] += sum(clock.us(execution.start_s) < submit_us for execution in row)
    queued_us = submit_us
    for number, execution in enumerate(row):
        after_us = starts_us[number + 1] if number + 1 < len(row) else None
        start_us = starts_us[number]
        end_us = max(_end_us(execution, after_us, clock, counts), start_us)
        hit = end_us == max(clock.us(execution.cut_s), start_us)
        cause, why = _cause(execution, hit, last=after_us is None)
        limited = execution.limit_s > 0
        yield RecordedAttempt(
            job=execution.job,
            number=number,
            queued_us=queued_us,
            start_us=start_us,
            end_us=end_us,
            walltime_us=round(execution.limit_s * US_PER_S) if limited else None,
            nodes=execution.nodes or NO_NODES,
            cause=cause,
            why=why,
            lost=cause in LOST and not execution.continued,
        )
        queued_us = end_us


def _end_us(execution: Execution, after_us: int | None, clock: _Clock, counts: Counter[str]) -> int:
    """Return the end of an execution, or the start of the job's next execution if it is earlier."""
    unknown = math.isnan(execution.end_s)
    end_us = clock.us(clock.until_s if unknown else execution.end_s)
    end_us = min(end_us, clock.us(execution.cut_s))
    if after_us is None or end_us <= after_us:
        return end_us
    counts["unknown end" if unknown else "overlap"] += 1
    return after_us


def _cause(execution: Execution, hit: bool, last: bool) -> tuple[Cause, str]:
    """Return why an execution ended, and a note on details that its cause does not express.

    ``hit`` states whether the execution ended at the failure of a node, and ``last`` whether it is
    the last execution of its job.
    """
    state = execution.state
    if hit:
        return Cause.NODE_FAILURE, f"{execution.failed_node} failed, recorded as {state}"
    cause = CAUSES.get(state)
    if cause is None:  # the job was still running
        cause = Cause.HORIZON if last else Cause.PREEMPTED
    return cause, "" if state in _PLAIN else state


_PLAIN = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED", "PREEMPTED"})
"""States for which no note is needed, because the cause of the end means the same."""

NO_NODES = NodeSet.of(())


def _place(
    attempts: Sequence[RecordedAttempt],
    sizes: Sequence[int],
    without: bool,
    done: PlacedTrace,
    counts: Counter[str],
) -> None:
    """Raise InputError if an attempt does not fit on the machine.

    If ``without`` is set, the record contains no nodes. Then assign the lowest free nodes.
    """
    n_nodes, used = done.workload.n_nodes, 0
    starts_us = [attempt.start_us for attempt in attempts]
    ends_us = [attempt.end_us for attempt in attempts]
    if without:
        used = max(sizes)
        problem = f"an attempt has {used} nodes"
    else:
        used = 1 + max(int(attempt.nodes.intervals[-1, 1]) for attempt in attempts)
        problem = f"attempts run on {used} different nodes"
    if used > n_nodes:
        where, expected = done.jobs.where, f"--nodes {used}, or no --schedule"
        raise InputError(f"{problem}, but the machine has {n_nodes} nodes", where, expected)
    if without:
        most = most_used(starts_us, ends_us, sizes)
        if most > n_nodes:
            counts["crowded"] = most
        nodes = lowest_free(starts_us, ends_us, sizes, n_nodes)
        for attempt, chosen in zip(attempts, nodes, strict=True):
            attempt.nodes = chosen


def _notes(attempts: Sequence[RecordedAttempt], counts: Counter[str], without: bool) -> list[str]:
    texts = {
        "early": "with a start before the submission: the start is moved to the submission",
        "overlap": "with an end after the start of the job's next attempt: the end is moved to the "
        "start of the next attempt",
        "unknown end": "without an end, before another attempt of the job: the end is moved to the "
        "start of the next attempt",
    }
    notes = [
        f"{counted_attempts(counts[key])} {text}" for key, text in texts.items() if counts[key]
    ]
    if lost := sum(attempt.lost for attempt in attempts):
        ended = f"{counted_attempts(lost)} ended by a failure, a preemption or a requeue"
        notes.append(f"{ended}: all work counts as lost, because the record has no checkpoints")
    if without:
        notes.append(
            "the record has no node names: each attempt has the lowest free nodes, in order of the "
            "starts"
        )
    if counts["crowded"]:
        notes.append(
            f"the record has attempts on up to {counts['crowded']} nodes at the same time, more "
            "than the machine has: some attempts share nodes"
        )
    return notes


def counted_attempts(count: int) -> str:
    """Return a number of attempts in words."""
    return f"{count} attempt" + ("s" if count != 1 else "")


def accounted_schedule(record: AccountedJobs, done: PlacedTrace) -> RecordedSchedule:
    """Return the recorded attempts of the jobs in a workload, with nodes of its machine.

    If the records contain node names, attempts without node names are left out.
    """
    machine, counts = done.workload.machine or {}, Counter[str]()
    names = sorted_names([machine["nodes"]]) if "nodes" in machine else ()
    executions = list(_accounted_executions(record, done, names, counts))
    events = machine_events(record.downs, names, done.origin_s)
    notes = [f"{counted_attempts(n)} left out: {why}" for why, n in sorted(counts.items())]
    return recorded_schedule(done, executions, end_of(record.table), events, notes)


def _accounted_executions(
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


def trace_schedule(trace: TraceColumns, done: PlacedTrace) -> RecordedSchedule:
    """Return the attempts of the jobs of a workload, with assigned nodes.

    Parameters
    ----------
    trace : TraceColumns
        All records. A record that is marked for exclusion and has a final state is a partial
        execution. It belongs to the previous job with the same number.
    done : PlacedTrace
        The workload.
    """
    counts = Counter[str]()
    executions = list(_trace_executions(trace, done, counts))
    notes = [f"{counted_attempts(n)} left out: {why}" for why, n in sorted(counts.items())]
    if not any(execution.state for execution in executions):
        notes.append("the record has no final states: all attempts count as completed")
    rows = [e._replace(state=e.state or "COMPLETED") for e in executions]
    return recorded_schedule(done, rows, math.nan, notes=notes)


def _trace_executions(
    trace: TraceColumns, done: PlacedTrace, counts: Counter[str]
) -> Iterator[Execution]:
    places = {line: place for place, line in enumerate(done.jobs.lines.tolist())}
    sizes = np.where(trace.allocated > 0, trace.allocated, trace.requested)
    parts = _parts(trace)
    for row, line in enumerate(trace.lines.tolist()):
        if line not in places:
            continue
        for part in parts.get(row, [row]):
            start_s, run_s = float(trace.start_s[part]), float(trace.run_s[part])
            if math.isnan(start_s) or run_s < 0 or sizes[part] < 1:
                counts["no start, no run time or no nodes"] += 1
                continue
            state = "" if trace.states is None else trace.states[part]
            yield Execution(
                places[line],
                start_s,
                start_s + run_s,
                "PREEMPTED" if state == PARTIAL else state,
                int(sizes[part]),
                limit_s=float(trace.walltime_s[row]),
                continued=state == PARTIAL,
            )


def _parts(trace: TraceColumns) -> dict[int, list[int]]:
    """Return the rows of partial executions, for the row of each job that has any."""
    parts: dict[int, list[int]] = {}
    if trace.states is None:
        return parts
    owners: dict[str, int] = {}
    for row, (name, is_job) in enumerate(zip(trace.ids, trace.is_job, strict=True)):
        if is_job:
            owners[name] = row
        elif name in owners and trace.states[row]:
            parts.setdefault(owners[name], []).append(row)
    return parts


def most_used(start_us: Sequence[int], end_us: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the maximum number of nodes that attempts hold at the same time."""
    spans = list(zip(start_us, end_us, sizes, strict=True))
    changes = [(start, size) for start, end, size in spans if start < end]
    changes += [(end, -size) for start, end, size in spans if start < end]
    used = most = 0
    for _, change in sorted(changes):  # at equal times, ends come before starts
        used += change
        most = max(most, used)
    return max([most, *sizes])


def lowest_free(
    start_us: Sequence[int], end_us: Sequence[int], sizes: Sequence[int], n_nodes: int
) -> list[NodeSet]:
    """Return the nodes of each attempt: the lowest free nodes, assigned in order of starts.

    If too few nodes are free (see `most_used`), an attempt also gets nodes that are in use,
    beginning with the nodes that have the fewest attempts. An attempt with a run time of 0 gets the
    lowest nodes.
    """
    held = np.zeros(n_nodes, dtype=np.int64)
    nodes = [NodeSet.of(())] * len(sizes)
    running: list[tuple[int, int]] = []
    for which in sorted(range(len(sizes)), key=lambda at: (start_us[at], at)):
        start, end, size = start_us[which], end_us[which], sizes[which]
        if start == end:
            nodes[which] = NodeSet.of_sorted(np.arange(size))
            continue
        while running and running[0][0] <= start:
            held[nodes[heapq.heappop(running)[1]].ids] -= 1
        chosen = np.flatnonzero(held == 0)[:size]
        if len(chosen) < size:
            chosen = np.sort(np.argsort(held, kind="stable")[:size])
        nodes[which] = NodeSet.of_sorted(chosen)
        held[chosen] += 1
        heapq.heappush(running, (end, which))
    return nodes
