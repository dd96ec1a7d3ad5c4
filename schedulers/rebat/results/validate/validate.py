# SPDX-License-Identifier: Apache-2.0
"""Validation of the jobs.csv of any scheduler, to find out whether the schedule is possible.

Every correct scheduler on Batsim satisfies all rules. A finding therefore means that the scheduler
or the simulator has an error, or that the file was changed. One exception is network latency, with
which all jobs leave failed nodes a little later than the failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.results.files.batsim_files import JobRecord, JobsFile
from rebat.results.validate.attempts import (
    against_workload,
    attempts_in_order,
    chains,
    filled,
    main_workload,
    profile_of,
    resubmission_errors,
    six_digits,
)
from rebat.results.validate.findings import CHECKS, KINDS, Finding, Reference, seconds


def validate(jobs: JobsFile, reference: Reference | None = None) -> list[Finding]:
    """Return all contradictions in a job table, sorted by kind and line."""
    reference = reference or Reference()
    rows = jobs.records
    workload = reference.workload
    completed = filled(rows, workload)
    attempts = chains(completed, workload)
    original = profile_of(main_workload(rows), workload)
    if reference.six_digits is None:
        six = six_digits(attempts, original)
        reference = msgspec.structs.replace(reference, six_digits=six)
    findings = [
        *_rows_alone(completed, reference),
        *_on_nodes(rows, reference),
        *_doubled(rows),
        *attempts_in_order(attempts, reference),
        *resubmission_errors(attempts, original, workload.profiles if workload else {}, reference),
        *against_workload(completed, reference),
    ]
    order = list(KINDS)
    return sorted(findings, key=lambda f: (order.index(f.kind), f.line, f.text))


def _rows_alone(rows: Iterable[JobRecord], reference: Reference) -> Iterator[Finding]:
    for row in rows:
        for check in CHECKS:
            for kind, text in check(row, reference):
                yield Finding(kind, row.line, f"job {row.key}: {text}")


def _on_nodes(rows: Sequence[JobRecord], reference: Reference) -> Iterator[Finding]:
    for clash in sweep(rows, reference.events, reference.slack_us, reference.hung_us):
        yield Finding(clash.kind, clash.row.line, _text_of(clash))


def _text_of(clash: Clash) -> str:
    at = f"from {seconds(clash.at_us)}"
    if clash.other is not None:
        return f"jobs {clash.other.key} and {clash.row.key} both hold node {clash.node} {at}"
    return f"job {clash.row.key} runs on node {clash.node}, which is down, {at}"


def _doubled(rows: Sequence[JobRecord]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for row in rows:
        if row.key in seen:
            text = f"job {row.key} already has a row in line {seen[row.key]}"
            yield Finding("doubled", row.line, text)
        seen.setdefault(row.key, row.line)


MOST_US = US_PER_S
"""Maximum delay that counts as latency. Batsim's platforms have less than 10 ms."""


class Latency(msgspec.Struct, frozen=True):
    """A delay (us) that explains findings, and the findings that are left with this slack."""

    us: int
    left: list[Finding]


def latency(jobs: JobsFile, reference: Reference, findings: Sequence[Finding]) -> Latency | None:
    """Return the delay that explains findings, or None if no network latency explains them.

    Every job on a failed node must have left the node within `MOST_US`.
    """
    if reference.slack_us or not findings:
        return None
    delays = [*_after_failures(jobs.records, reference), *_after_walltimes(jobs.records)]
    if not delays or max(delays) > MOST_US:
        return None
    slack_us = max(delays)
    left = validate(jobs, msgspec.structs.replace(reference, slack_us=slack_us))
    return Latency(slack_us, left) if len(left) < len(findings) else None


def _after_failures(rows: Sequence[JobRecord], reference: Reference) -> Iterator[int]:
    """Yield for how long jobs held a failed node, without the time for which they hung."""
    for clash in sweep(rows, reference.events, hung_us=reference.hung_us):
        row, left_us = clash.row, clash.row.left_us
        if clash.kind == "dead node" and left_us is not None and row.start_us != clash.at_us:
            yield left_us - clash.at_us - reference.hung_us.get(row.job_id, 0)


def _after_walltimes(rows: Sequence[JobRecord]) -> Iterator[int]:
    """Yield for how long jobs ran after their walltimes."""
    for row in rows:
        held_us, walltime_us = row.held_us, row.walltime_us
        if held_us is not None and walltime_us is not None and held_us > walltime_us:
            yield held_us - walltime_us


_END, _REPAIR, _START, _FAILURE = range(4)
"""Order of events at the same time.

If a job starts on a node that fails at the same time, the job must end (or hang) at this time.
"""


class Clash(msgspec.Struct, frozen=True):
    """Two jobs on one node ('overlap', with ``other``), or a job on a down node ('dead node')."""

    kind: str
    at_us: int
    node: int
    row: JobRecord
    other: JobRecord | None = None


class _Machine:
    """The state of nodes: the row of the job on each node (-1: none), and a mask of down nodes."""

    def __init__(self, n_nodes: int) -> None:
        self.holder: npt.NDArray[np.int64] = np.full(n_nodes, -1, dtype=np.int64)
        self.down: npt.NDArray[np.bool_] = np.zeros(n_nodes, dtype=np.bool_)

    def holders(self, nodes: NodeSet) -> dict[int, int]:
        """Return the rows that hold any of these nodes, each with the first node that it holds."""
        first_nodes: dict[int, int] = {}
        for first, last in nodes.intervals.tolist():
            span = self.holder[first : last + 1]
            if span.max() < 0:
                continue
            rows, where = np.unique(span, return_index=True)
            for row, offset in zip(rows.tolist(), where.tolist(), strict=True):
                if row >= 0:
                    first_nodes.setdefault(row, first + offset)
        return first_nodes

    def first_down(self, nodes: NodeSet) -> int | None:
        """Return the lowest of these nodes that is down, or None if all are up."""
        for first, last in nodes.intervals.tolist():
            span = self.down[first : last + 1]
            if span.any():
                return int(first + span.argmax())
        return None

    def take(self, nodes: NodeSet, row: int) -> None:
        """Assign nodes to the job in a row of the table."""
        for first, last in nodes.intervals.tolist():
            self.holder[first : last + 1] = row

    def free(self, nodes: NodeSet, row: int) -> None:
        """Release the nodes of a row, unless they were assigned to another row in the meantime."""
        for first, last in nodes.intervals.tolist():
            span = self.holder[first : last + 1]
            span[span == row] = -1

    def mark(self, nodes: NodeSet, down: bool) -> None:
        """Mark nodes as down or up."""
        for first, last in nodes.intervals.tolist():
            self.down[first : last + 1] = down


def sweep(
    rows: Sequence[JobRecord],
    events: Sequence[MachineEvent] = (),
    slack_us: int = 0,
    hung_us: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Clash]:
    """Yield clashes in order of time: one for each pair of jobs, or for each job and failure.

    If two jobs are on one node, the sweep continues with the later job. Therefore, it always
    reports the first clash on a node, but may miss later clashes of the earlier job.

    Parameters
    ----------
    rows : sequence of JobRecord
        Rows with a run time of 0 or less are ignored. (Batsim writes a run time of 0 as
        `NULL_RUN_US`; these rows are not ignored.)
    events : sequence of MachineEvent
        In order of time; failures and repairs of a node alternate.
    slack_us : int
        Maximum time for which a job may continue on a failed node, in microseconds.
    hung_us : mapping
        Additional time for which an attempt may stay on a failed node because it hangs, by id.
    """
    agenda = [
        *(
            (event.at_us, _REPAIR if event.available else _FAILURE, n)
            for n, event in enumerate(events)
        ),
        *_job_steps(rows),
    ]
    machine = _Machine(_span(rows, events))
    for at_us, kind, number in sorted(agenda):
        if kind == _END:
            machine.free(rows[number].nodes, number)
        elif kind == _START:
            yield from _start(machine, rows, number, at_us)
        else:
            nodes = events[number].nodes
            machine.mark(nodes, kind == _FAILURE)
            if kind == _FAILURE:
                yield from _failure(machine, rows, nodes, at_us, slack_us, hung_us)


def _job_steps(rows: Sequence[JobRecord]) -> Iterator[tuple[int, int, int]]:
    for number, row in enumerate(rows):
        left_us = row.left_us
        if row.start_us is not None and left_us is not None and row.start_us < left_us:
            yield row.start_us, _START, number
            yield left_us, _END, number


def _span(rows: Sequence[JobRecord], events: Sequence[MachineEvent]) -> int:
    sets = [*(row.nodes for row in rows), *(event.nodes for event in events)]
    return 1 + max((int(nodes.intervals[-1, 1]) for nodes in sets if len(nodes)), default=0)


def _start(
    machine: _Machine, rows: Sequence[JobRecord], number: int, at_us: int
) -> Iterator[Clash]:
    row = rows[number]
    for other, node in machine.holders(row.nodes).items():
        yield Clash("overlap", at_us, node, row, rows[other])
    dead = machine.first_down(row.nodes)
    if dead is not None:
        yield Clash("dead node", at_us, dead, row)
    machine.take(row.nodes, number)


def _failure(
    machine: _Machine,
    rows: Sequence[JobRecord],
    nodes: NodeSet,
    at_us: int,
    slack_us: int,
    hung_us: Mapping[str, int],
) -> Iterator[Clash]:
    for number, node in machine.holders(nodes).items():
        left_us, allowed_us = rows[number].left_us, slack_us + hung_us.get(rows[number].job_id, 0)
        if left_us is not None and left_us > at_us + allowed_us:
            yield Clash("dead node", at_us, node, rows[number])
