"""Is a jobs.csv the record of something that can have happened? Whoever wrote it.

Every rule here holds for any correct scheduler on Batsim, so that a finding is a mistake: of the
scheduler, of the simulator, or of whoever edited the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from rebat.core.jobs import Job, Workload
from rebat.core.units import to_s
from rebat.models.failures.events import MachineEvent
from rebat.report.batsim_files import SUCCESS, JobRecord, JobsFile
from rebat.report.sweep import Clash, sweep

ROUNDING_US = 1
"""Dates are printed in microseconds: the difference of two may be off by so much."""


class Finding(msgspec.Struct, frozen=True):
    """Something that cannot be; ``kind`` is a key of ``KINDS``, ``line`` the line of the file."""

    kind: str
    line: int
    text: str


KINDS = {
    "overlap": "two jobs on one node",
    "dead node": "a job on a node that is down",
    "outside": "a node that the machine has not",
    "size": "not as many nodes as requested",
    "walltime": "longer than the walltime",
    "early start": "started before its submission",
    "negative run": "finished before it started",
    "times": "columns that contradict each other",
    "lost": "a job of the workload without a row",
    "unknown": "a row for no job of the workload",
    "doubled": "several rows of one id",
    "attempts": "resubmissions that do not follow each other",
}
"""What is looked for, in the order in which it is told."""


class Reference(msgspec.Struct, frozen=True):
    """What to hold a job table against; None where it is not known.

    ``slack_us``: how long a job may outlive the failure of one of its nodes, and its walltime; on a
    platform with network latency a kill takes some messages.
    """

    n_nodes: int | None = None
    events: Sequence[MachineEvent] = ()
    workload: Workload | None = None
    slack_us: int = 0


def validate(jobs: JobsFile, reference: Reference | None = None) -> list[Finding]:
    """Everything that is wrong with a job table, by kind and line; empty when all is well."""
    reference = reference or Reference()
    rows = jobs.records
    known = _filled(rows, reference.workload)
    findings = [
        *_rows_alone(known, reference),
        *_on_nodes(rows, reference),
        *_doubled(rows),
        *_attempts(rows),
    ]
    if reference.workload is not None:
        findings += _against_workload(rows, reference.workload)
    order = list(KINDS)
    return sorted(findings, key=lambda f: (order.index(f.kind), f.line, f.text))


Check = Callable[[JobRecord, Reference], Iterator[tuple[str, str]]]
"""A rule on one row: (kind, text) of what is wrong."""


def _rows_alone(rows: Iterable[JobRecord], reference: Reference) -> Iterator[Finding]:
    for row in rows:
        for check in CHECKS:
            for kind, text in check(row, reference):
                yield Finding(kind, row.line, f"job {row.key}: {text}")


def _outside(row: JobRecord, reference: Reference) -> Iterator[tuple[str, str]]:
    last = int(row.nodes.intervals[-1, 1]) if len(row.nodes) else -1
    if reference.n_nodes is not None and last >= reference.n_nodes:
        yield "outside", f"node {last} of a machine of {reference.n_nodes}"


def _size(row: JobRecord, _: Reference) -> Iterator[tuple[str, str]]:
    if row.ran and row.n_nodes is not None and len(row.nodes) != row.n_nodes:
        yield "size", f"{len(row.nodes)} nodes, requested {row.n_nodes}"
    elif row.ran and not len(row.nodes):
        yield "size", "ran on no node"
    elif not row.ran and len(row.nodes):
        yield "size", f"never started, has {len(row.nodes)} nodes"


def _walltime(row: JobRecord, reference: Reference) -> Iterator[tuple[str, str]]:
    if row.start_us is None or row.end_us is None or row.walltime_us is None:
        return
    over = row.end_us - row.start_us - row.walltime_us
    if over > ROUNDING_US + reference.slack_us:
        yield "walltime", f"ran {_s(row.end_us - row.start_us)}, walltime {_s(row.walltime_us)}"


def _order(row: JobRecord, _: Reference) -> Iterator[tuple[str, str]]:
    if row.start_us is None or row.end_us is None:
        return
    if row.submit_us is not None and row.start_us < row.submit_us:
        yield "early start", f"starts at {_s(row.start_us)}, submitted at {_s(row.submit_us)}"
    if row.end_us < row.start_us:
        yield "negative run", f"finishes at {_s(row.end_us)}, starts at {_s(row.start_us)}"


def _times(row: JobRecord, _: Reference) -> Iterator[tuple[str, str]]:
    for name, told, later, earlier in (
        ("execution_time", row.run_us, row.end_us, row.start_us),
        ("waiting_time", row.wait_us, row.start_us, row.submit_us),
        ("turnaround_time", row.flow_us, row.end_us, row.submit_us),
    ):
        if told is None or later is None or earlier is None:
            continue
        if abs(told - (later - earlier)) > ROUNDING_US:
            yield "times", f"{name} is {_s(told)}, its dates give {_s(later - earlier)}"


CHECKS: tuple[Check, ...] = (_outside, _size, _walltime, _order, _times)


def _on_nodes(rows: Sequence[JobRecord], reference: Reference) -> Iterator[Finding]:
    for clash in sweep(rows, reference.events, reference.slack_us):
        yield Finding(clash.kind, clash.row.line, _text_of(clash))


def _text_of(clash: Clash) -> str:
    at = f"from {_s(clash.at_us)}"
    if clash.other is not None:
        return f"jobs {clash.other.key} and {clash.row.key} both hold node {clash.node} {at}"
    return f"job {clash.row.key} runs on node {clash.node}, which is down, {at}"


def _doubled(rows: Sequence[JobRecord]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for row in rows:
        if row.key in seen:
            text = f"job {row.key} has a row in line {seen[row.key]} already"
            yield Finding("doubled", row.line, text)
        seen.setdefault(row.key, row.line)


def split_attempt(job_id: str) -> tuple[str, int]:
    """The original job's id and the number of the attempt.

    >>> split_attempt("12#3"), split_attempt("12")
    (('12', 3), ('12', 0))
    """
    base, mark, number = job_id.rpartition("#")
    return (base, int(number)) if mark and base and number.isdecimal() else (job_id, 0)


def _attempts(rows: Sequence[JobRecord]) -> Iterator[Finding]:
    """Attempts of a job are numbered 0, 1, 2 ..., one after another, none after a success."""
    jobs: dict[tuple[str, str], dict[int, JobRecord]] = defaultdict(dict)
    for row in rows:
        base, number = split_attempt(row.job_id)
        jobs[row.workload, base].setdefault(number, row)
    for attempts in jobs.values():
        numbers = sorted(attempts)
        if numbers != list(range(len(numbers))):
            last = attempts[numbers[-1]]
            missing = min(set(range(numbers[-1])) - set(numbers))
            yield Finding("attempts", last.line, f"job {last.key}: no attempt {missing} before it")
        for one, other in pairwise(numbers):
            yield from _follow(attempts[one], attempts[other])


def _follow(before: JobRecord, after: JobRecord) -> Iterator[Finding]:
    if before.state == SUCCESS:
        text = f"job {after.key} was resubmitted though {before.key} succeeded"
        yield Finding("attempts", after.line, text)
    if before.end_us is not None and after.start_us is not None and after.start_us < before.end_us:
        text = f"job {after.key} starts at {_s(after.start_us)}, before {before.key} ends"
        yield Finding("attempts", after.line, text)


def _main_workload(rows: Iterable[JobRecord]) -> str:
    """The name of the static workload among the rows'; the others' jobs were made on the way."""
    names = {row.workload for row in rows}
    return "w0" if "w0" in names else next(iter(names), "")


def _filled(rows: Sequence[JobRecord], workload: Workload | None) -> list[JobRecord]:
    """The rows, with what the file does not tell of original jobs taken from the workload."""
    jobs = {job.id: job for job in workload.jobs} if workload else {}
    main = _main_workload(rows)
    return [
        _fill(row, jobs[row.job_id]) if row.workload == main and row.job_id in jobs else row
        for row in rows
    ]


def _fill(row: JobRecord, job: Job) -> JobRecord:
    return msgspec.structs.replace(
        row,
        n_nodes=job.n_nodes if row.n_nodes is None else row.n_nodes,
        submit_us=job.submit_us if row.submit_us is None else row.submit_us,
        walltime_us=job.walltime_us if row.walltime_us is None else row.walltime_us,
    )


def _against_workload(rows: Sequence[JobRecord], workload: Workload) -> Iterator[Finding]:
    """Every job has its row, and every row of the workload its job, submitted as it says."""
    jobs = {job.id: job for job in workload.jobs}
    main = _main_workload(rows)
    own = [row for row in rows if row.workload == main]
    told = {row.job_id for row in own}
    for job in workload.jobs:
        if job.id not in told:
            yield Finding("lost", 0, f"job {job.id} of the workload has no row")
    for row in own:
        base, number = split_attempt(row.job_id)
        if row.job_id in jobs:
            yield from _as_submitted(row, jobs[row.job_id])
        elif number == 0 or base not in jobs:
            yield Finding("unknown", row.line, f"job {row.key} is not of the workload")


def _as_submitted(row: JobRecord, job: Job) -> Iterator[Finding]:
    if row.n_nodes is not None and row.n_nodes != job.n_nodes:
        text = f"job {row.key}: requested {row.n_nodes}, the workload asks {job.n_nodes}"
        yield Finding("size", row.line, text)
    if row.submit_us is not None and abs(row.submit_us - job.submit_us) > ROUNDING_US:
        dates = f"{_s(row.submit_us)}, in the workload at {_s(job.submit_us)}"
        yield Finding("times", row.line, f"job {row.key}: submitted at {dates}")


def _s(us: int) -> str:
    return f"{to_s(us):.6f}".rstrip("0").rstrip(".") + " s"
