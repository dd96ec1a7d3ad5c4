# SPDX-License-Identifier: Apache-2.0
"""Validation of the jobs.csv of any scheduler, to find out whether the schedule is possible.

Every correct scheduler on Batsim satisfies all rules. A finding therefore means that the scheduler
or the simulator has an error, or that the file was changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from rebat.results.files.batsim_files import JobRecord, JobsFile
from rebat.results.validate.against_workload import against_workload, filled
from rebat.results.validate.attempts import attempts_in_order, chains, main_workload
from rebat.results.validate.findings import KINDS, Finding, Reference, seconds
from rebat.results.validate.resubmissions import profile_of, resubmission_errors, six_digits
from rebat.results.validate.row_checks import CHECKS
from rebat.results.validate.sweep import Clash, sweep


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
