# SPDX-License-Identifier: Apache-2.0
"""Validation of the jobs.csv of any scheduler, to find out whether the schedule is possible.

Every correct scheduler on Batsim satisfies all rules. A finding therefore means that the scheduler
or the simulator has an error, or that the file was changed. One exception is network latency, with
which all jobs leave failed nodes a little later than the failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    profiles_of,
    resubmission_errors,
    six_digits,
)
from rebat.results.validate.dependencies import dependency_errors
from rebat.results.validate.findings import KINDS, Finding, Reference, row_errors, seconds


def validate(jobs: JobsFile, reference: Reference | None = None) -> list[Finding]:
    """Return all contradictions in a job table, sorted by kind and line."""
    reference = reference or Reference()
    rows = jobs.records
    workload = reference.workload
    completed = filled(rows, workload)
    attempts = chains(completed, workload)
    original = profiles_of(attempts, main_workload(rows), workload)
    if reference.six_digits is None:
        six = six_digits(attempts, original)
        reference = msgspec.structs.replace(reference, six_digits=six)
    findings = [
        *(
            Finding(kind, row.line, f"job {row.key}: {text}")
            for row in completed
            for kind, text in row_errors(row, reference)
        ),
        *(
            Finding(clash.kind, clash.row.line, clash.text)
            for clash in sweep(rows, reference.events, reference.slack_us, reference.hung_us)
        ),
        *_doubled(rows),
        *attempts_in_order(attempts, reference),
        *resubmission_errors(attempts, original, workload.profiles if workload else {}, reference),
        *dependency_errors(attempts, main_workload(rows), workload),
        *against_workload(completed, reference),
    ]
    order = list(KINDS)
    return sorted(findings, key=lambda f: (order.index(f.kind), f.line, f.text))


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
    delays = [
        left_us - clash.at_us - reference.hung_us.get(clash.row.job_id, 0)
        for clash in sweep(jobs.records, reference.events, hung_us=reference.hung_us)
        if clash.kind == "dead node"
        and (left_us := clash.row.left_us) is not None
        and clash.row.start_us != clash.at_us
    ]
    delays += [
        held_us - row.walltime_us
        for row in jobs.records
        if row.walltime_us is not None
        and (held_us := row.held_us) is not None
        and held_us > row.walltime_us
    ]
    if not delays or max(delays) > MOST_US:
        return None
    slack_us = max(delays)
    left = validate(jobs, msgspec.structs.replace(reference, slack_us=slack_us))
    return Latency(slack_us, left) if len(left) < len(findings) else None


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

    @property
    def text(self) -> str:
        """The text of a finding."""
        at = f"from {seconds(self.at_us)}"
        if self.other is not None:
            return f"jobs {self.other.key} and {self.row.key} both hold node {self.node} {at}"
        return f"job {self.row.key} runs on node {self.node}, which is down, {at}"


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
        (event.at_us, _REPAIR if event.available else _FAILURE, n) for n, event in enumerate(events)
    ]
    for number, row in enumerate(rows):
        left_us = row.left_us
        if row.start_us is not None and left_us is not None and row.start_us < left_us:
            agenda += [(row.start_us, _START, number), (left_us, _END, number)]
    sets = [*(row.nodes for row in rows), *(event.nodes for event in events)]
    last = max((int(nodes.intervals[-1, 1]) for nodes in sets if len(nodes)), default=0)
    machine = _Machine(1 + last)
    for at_us, kind, number in sorted(agenda):
        if kind == _END:
            machine.free(rows[number].nodes, number)
        elif kind == _START:
            row = rows[number]
            for other, node in machine.holders(row.nodes).items():
                yield Clash("overlap", at_us, node, row, rows[other])
            dead = machine.first_down(row.nodes)
            if dead is not None:
                yield Clash("dead node", at_us, dead, row)
            machine.take(row.nodes, number)
        else:
            nodes = events[number].nodes
            machine.mark(nodes, kind == _FAILURE)
            for holder, node in machine.holders(nodes).items() if kind == _FAILURE else ():
                row = rows[holder]
                allowed_us = slack_us + hung_us.get(row.job_id, 0)
                if row.left_us is not None and row.left_us > at_us + allowed_us:
                    yield Clash("dead node", at_us, node, row)
