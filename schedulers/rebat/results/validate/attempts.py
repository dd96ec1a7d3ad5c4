# SPDX-License-Identifier: Apache-2.0
"""Resubmissions: attempt N of job J is the job ``J#N``, as every Batsim scheduler names it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rebat.core.attempts import attempt_profile, split_attempt
from rebat.core.jobs import Workload
from rebat.results.files.batsim_files import KILLED, SUCCESS, JobRecord
from rebat.results.validate.findings import ROUNDING_US, Finding, Reference, seconds

Attempts = Mapping[int, JobRecord]
"""The attempts of a job by number; 0 is the job as submitted."""

Chains = Mapping[tuple[str, str], Attempts]
"""The attempts of every job, by the workload's name and the job's id."""


def main_workload(rows: Iterable[JobRecord]) -> str:
    """The name of the static workload among the rows'; the others' jobs were made on the way."""
    names = {row.workload for row in rows}
    return "w0" if "w0" in names else next(iter(names), "")


def chains(rows: Sequence[JobRecord], workload: Workload | None = None) -> Chains:
    """By workload and original job's id: the attempts, by number.

    A job of the workload is no resubmission, whatever its id. Where the workload is not known, a
    row named like a resubmission is none if its job has no row and its profile is another's.
    """
    main = main_workload(rows)
    jobs = {(main, job.id) for job in workload.jobs} if workload else set()
    told = jobs | {(row.workload, row.job_id) for row in rows}
    found: dict[tuple[str, str], dict[int, JobRecord]] = defaultdict(dict)
    for row in rows:
        base, number = split_attempt(row.job_id)
        orphan = (row.workload, base) not in told and not _may_be_made_by_rebat(row)
        if (row.workload, row.job_id) in jobs or orphan:
            base, number = row.job_id, 0
        found[row.workload, base].setdefault(number, row)
    return found


def _may_be_made_by_rebat(row: JobRecord) -> bool:
    return row.profile is None or row.profile.startswith(f"{row.job_id}:")


def made_by_rebat(row: JobRecord, profile: str | None) -> bool:
    """Whether a row has a resubmission's profile as rebat names it, of a job with this profile."""
    if row.profile is None or profile is None:
        return False
    name = attempt_profile(row.job_id, profile)
    return row.profile.startswith(name) and not row.profile.removeprefix(name).strip("'")


def attempts_in_order(jobs: Chains, reference: Reference) -> Iterator[Finding]:
    """Attempts of a job are numbered 0, 1, 2 ..., one after another, none after a success.

    The last one is not killed, where killed jobs are run again; but for jobs without an end, which
    are all ended at one time.
    """
    again = reference.resubmits
    if again is None:
        again = bool(reference.events) or any(max(attempts) > 0 for attempts in jobs.values())
    endless = reference.endless
    horizon_us = _horizon_us(jobs, endless)
    for (_, job_id), attempts in jobs.items():
        numbers = sorted(attempts)
        last = attempts[numbers[-1]]
        if numbers != list(range(len(numbers))):
            missing = min(set(range(numbers[-1])) - set(numbers))
            yield Finding("attempts", last.line, f"job {last.key}: no attempt {missing} before it")
        for one, other in pairwise(numbers):
            yield from _follow(attempts[one], attempts[other])
        if not again or last.state != KILLED:
            continue
        if job_id not in endless:
            text = f"job {last.key} was killed, and not run again"
            yield Finding("attempts", last.line, text)
        elif abs((last.left_us or 0) - horizon_us) > ROUNDING_US + reference.slack_us:
            at = f"{seconds(last.left_us or 0)}, others without an end at {seconds(horizon_us)}"
            yield Finding("attempts", last.line, f"job {last.key} was ended for good at {at}")


def _horizon_us(jobs: Chains, endless: Collection[str]) -> int:
    """When what has no end was ended: the last such time."""
    lasts = (attempts[max(attempts)] for (_, name), attempts in jobs.items() if name in endless)
    return max((row.left_us or 0 for row in lasts if row.state == KILLED), default=0)


def _follow(before: JobRecord, after: JobRecord) -> Iterator[Finding]:
    if before.state == SUCCESS:
        text = f"job {after.key} was resubmitted though {before.key} succeeded"
        yield Finding("attempts", after.line, text)
    left_us = before.left_us
    if left_us is not None and after.start_us is not None and after.start_us < left_us:
        text = f"job {after.key} starts at {seconds(after.start_us)}, before {before.key} ends"
        yield Finding("attempts", after.line, text)
