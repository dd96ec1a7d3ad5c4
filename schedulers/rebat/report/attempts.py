# SPDX-License-Identifier: Apache-2.0
"""Resubmissions: attempt N of job J is the job ``J#N``, as every Batsim scheduler names it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rebat.core.attempts import split_attempt
from rebat.report.batsim_files import KILLED, SUCCESS, JobRecord
from rebat.report.findings import Finding, Reference, seconds


def chains(rows: Sequence[JobRecord]) -> dict[tuple[str, str], dict[int, JobRecord]]:
    """By workload and original job's id: the attempts, by number."""
    jobs: dict[tuple[str, str], dict[int, JobRecord]] = defaultdict(dict)
    for row in rows:
        base, number = split_attempt(row.job_id)
        jobs[row.workload, base].setdefault(number, row)
    return jobs


def attempts_in_order(rows: Sequence[JobRecord], reference: Reference) -> Iterator[Finding]:
    """Attempts of a job are numbered 0, 1, 2 ..., one after another, none after a success.

    The last one is not killed, where killed jobs are run again.
    """
    jobs = chains(rows)
    again = reference.resubmits
    if again is None:
        again = bool(reference.events) or any(max(attempts) > 0 for attempts in jobs.values())
    for attempts in jobs.values():
        numbers = sorted(attempts)
        last = attempts[numbers[-1]]
        if numbers != list(range(len(numbers))):
            missing = min(set(range(numbers[-1])) - set(numbers))
            yield Finding("attempts", last.line, f"job {last.key}: no attempt {missing} before it")
        for one, other in pairwise(numbers):
            yield from _follow(attempts[one], attempts[other])
        if again and last.state == KILLED:
            text = f"job {last.key} was killed, and not run again"
            yield Finding("attempts", last.line, text)


def _follow(before: JobRecord, after: JobRecord) -> Iterator[Finding]:
    if before.state == SUCCESS:
        text = f"job {after.key} was resubmitted though {before.key} succeeded"
        yield Finding("attempts", after.line, text)
    left_us = before.left_us
    if left_us is not None and after.start_us is not None and after.start_us < left_us:
        text = f"job {after.key} starts at {seconds(after.start_us)}, before {before.key} ends"
        yield Finding("attempts", after.line, text)
