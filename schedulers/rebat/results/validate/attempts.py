# SPDX-License-Identifier: Apache-2.0
"""Resubmissions: in every Batsim scheduler, attempt N of job J is the job ``J#N``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rebat.core.attempts import attempt_profile, split_attempt
from rebat.core.jobs import Workload
from rebat.results.files.batsim_files import KILLED, SUCCESS, JobRecord
from rebat.results.validate.findings import ROUNDING_US, Finding, Reference, seconds

Attempts = Mapping[int, JobRecord]
"""The attempts of a job by number; attempt 0 is the original job."""

Chains = Mapping[tuple[str, str], Attempts]
"""The attempts of every job, by the workload's name and the job's id."""


def main_workload(rows: Iterable[JobRecord]) -> str:
    """Return the name of the static workload. Other workloads are submitted during the run."""
    names = {row.workload for row in rows}
    return "w0" if "w0" in names else next(iter(names), "")


def chains(rows: Sequence[JobRecord], workload: Workload | None = None) -> Chains:
    """Return the attempts of each original job by number.

    A job of the workload is never a resubmission, even if its id has the form ``J#N``. Without a
    workload, a row with an id of this form is an original job if job ``J`` has no row and the
    profile of the row has no name in the form that rebat uses.
    """
    main = main_workload(rows)
    jobs = {(main, job.id) for job in workload.jobs} if workload else set()
    names = jobs | {(row.workload, row.job_id) for row in rows}
    attempts: dict[tuple[str, str], dict[int, JobRecord]] = defaultdict(dict)
    for row in rows:
        base, number = split_attempt(row.job_id)
        orphan = (row.workload, base) not in names and not _may_be_made_by_rebat(row)
        if (row.workload, row.job_id) in jobs or orphan:
            base, number = row.job_id, 0
        attempts[row.workload, base].setdefault(number, row)
    return attempts


def _may_be_made_by_rebat(row: JobRecord) -> bool:
    return row.profile is None or row.profile.startswith(f"{row.job_id}:")


def made_by_rebat(row: JobRecord, profile: str | None) -> bool:
    """Return whether the profile of a resubmission is named as rebat names it."""
    if row.profile is None or profile is None:
        return False
    name = attempt_profile(row.job_id, profile)
    return row.profile.startswith(name) and not row.profile.removeprefix(name).strip("'")


def attempts_in_order(jobs: Chains, reference: Reference) -> Iterator[Finding]:
    """Check the attempts of each job: their numbers are 0, 1, 2 ..., and they do not overlap.

    No attempt may follow a successful one. If killed jobs are resubmitted, the last attempt of a
    job must not be killed. Jobs that never complete are an exception. They may be killed, but at
    the time at which rebat killed them, or if this time is unknown, all at the same time.
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
            text = f"job {last.key}: attempt {missing} is missing"
            yield Finding("attempts", last.line, text)
        for earlier, later in pairwise(numbers):
            yield from _follow(attempts[earlier], attempts[later], reference.hung_us)
        if not again or last.state != KILLED:
            continue
        if job_id not in endless:
            text = f"job {last.key} was killed, but not resubmitted"
            yield Finding("attempts", last.line, text)
            continue
        left_us, known_us = last.left_us or 0, reference.ended_us.get(job_id)
        expected_us = horizon_us if known_us is None else known_us
        if abs(left_us - expected_us) > ROUNDING_US + reference.slack_us:
            text = f"job {last.key}, which never completes, was ended at {seconds(left_us)}"
            who = "other such jobs" if known_us is None else "by rebat"
            text += f", but {who} at {seconds(expected_us)}"
            yield Finding("attempts", last.line, text)


def _horizon_us(jobs: Chains, endless: Collection[str]) -> int:
    """Return the latest time at which jobs that never complete were killed, or 0 if none were."""
    lasts = (attempts[max(attempts)] for (_, name), attempts in jobs.items() if name in endless)
    return max((row.left_us or 0 for row in lasts if row.state == KILLED), default=0)


def _follow(before: JobRecord, after: JobRecord, hung_us: Mapping[str, int]) -> Iterator[Finding]:
    if before.state == SUCCESS and before.job_id not in hung_us:
        text = f"job {after.key} was resubmitted, but {before.key} succeeded"
        yield Finding("attempts", after.line, text)
    left_us = before.left_us
    if left_us is not None and after.start_us is not None and after.start_us < left_us:
        text = f"job {after.key} starts at {seconds(after.start_us)}, before {before.key} ends"
        yield Finding("attempts", after.line, text)
