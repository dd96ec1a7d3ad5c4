# SPDX-License-Identifier: Apache-2.0
"""Checks of the resubmissions of rebat: profile, submission time, state and digits.

Other schedulers may use other names of profiles, and other submission times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rebat.core.attempts import attempt_profile
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.models.silent_errors import errors_left
from rebat.models.six_digits import written_us
from rebat.results.files.batsim_files import FAILED, REJECTED, SUCCESS, JobRecord
from rebat.results.validate.attempts import Attempts, Chains, made_by_rebat
from rebat.results.validate.findings import ROUNDING_US, Finding, Reference, seconds

Key = tuple[str, str]
"""The workload's name and the job's id."""

ProfileOf = Callable[[Key, Attempts], str | None]
"""Function of a job's key and attempts that returns its profile, or None if unknown."""


def profile_of(main: str, workload: Workload | None) -> ProfileOf:
    """Return a function that finds a job's profile in the workload or in the job's first row."""
    jobs = {(main, job.id): job.profile for job in workload.jobs} if workload else {}

    def name(key: Key, attempts: Attempts) -> str | None:
        if key in jobs:
            return jobs[key]
        return attempts[0].profile if 0 in attempts else None

    return name


def six_digits(jobs: Chains, original: ProfileOf) -> bool:
    """Return whether the times of all resubmissions by rebat have at most six digits.

    The function checks all walltimes, and the run times of successful attempts.
    """
    rows = [
        row
        for key, attempts in jobs.items()
        for row in attempts.values()
        if made_by_rebat(row, original(key, attempts)) and row.walltime_us is not None
    ]
    return bool(rows) and all(map(_in_six_digits, rows))


def _in_six_digits(row: JobRecord) -> bool:
    walltime_us = row.walltime_us or 0
    if written_us(walltime_us) != walltime_us:
        return False
    if row.state != SUCCESS or row.start_us is None or row.end_us is None:
        return True
    run_us = row.end_us - row.start_us
    return abs(written_us(run_us) - run_us) <= ROUNDING_US


def resubmission_errors(
    jobs: Chains, original: ProfileOf, profiles: Mapping[str, dict[str, Any]], reference: Reference
) -> Iterator[Finding]:
    """Yield the errors in the rows of resubmissions that rebat created."""
    if not _by_rebat(jobs, original, reference):
        return
    instants = _instants(jobs, reference) if reference.events else []
    slack_us = ROUNDING_US + reference.slack_us
    for key, attempts in jobs.items():
        name, failed = original(key, attempts), 0
        errors = _errors(profiles.get(name or ""))
        for number in sorted(attempts):
            row = attempts[number]
            if number:
                yield from _profile(row, name, profiles)
            before = attempts.get(number - 1)
            if before:
                queued_us = reference.queued_us.get(row.job_id)
                moments = instants if queued_us is None else [queued_us]
                yield from _submission(row, before, moments, slack_us)
            if errors is not None and number and row.state in (SUCCESS, FAILED):
                yield from _state(row, max(0, errors - failed))
            # an attempt that completes while it hangs does not count: its job runs again
            failed += row.state == FAILED and row.job_id not in reference.hung_us


def _by_rebat(jobs: Chains, original: ProfileOf, reference: Reference) -> bool:
    """Return whether rebat created the resubmissions.

    If ``reference`` does not state this, the names of the profiles decide.
    """
    if reference.by_rebat is not None:
        return reference.by_rebat
    return any(
        made_by_rebat(row, original(key, attempts))
        for key, attempts in jobs.items()
        for number, row in attempts.items()
        if number
    )


def _profile(
    row: JobRecord, name: str | None, profiles: Mapping[str, dict[str, Any]]
) -> Iterator[Finding]:
    """Check that a resubmission has its own profile. It may keep a composed profile."""
    if name is None or row.profile is None or made_by_rebat(row, name):
        return
    composed = profiles[name].get("type") == "composed" if name in profiles else True
    if composed and row.profile == name:
        return
    expected = name if composed and name in profiles else attempt_profile(row.job_id, name)
    text = f"job {row.key}: profile is {row.profile!r}, but that of a resubmission is {expected!r}"
    yield Finding("request", row.line, text)


def _submission(
    row: JobRecord, before: JobRecord, instants: Sequence[int], slack_us: int
) -> Iterator[Finding]:
    """Check that a job is resubmitted when its previous attempt ends.

    If the job waited, it is resubmitted later, at one of ``instants`` (if these are known). A job
    that starts on another number of nodes is rejected, resubmitted and started at the same time.
    """
    if row.submit_us is None:
        return
    expected_us = row.start_us if before.state == REJECTED else before.left_us
    if expected_us is None or abs(row.submit_us - expected_us) <= slack_us:
        return
    waited = before.state != REJECTED and row.submit_us > expected_us
    if waited and (not instants or _near(row.submit_us, instants, slack_us)):
        return
    event = "it starts" if before.state == REJECTED else f"{before.key} ends"
    text = f"submitted at {seconds(row.submit_us)}, but {event} at {seconds(expected_us)}"
    yield Finding("times", row.line, f"job {row.key}: {text}")


def _instants(jobs: Chains, reference: Reference) -> list[int]:
    """Return the sorted times at which jobs end or nodes fail or are repaired.

    At these times, the wait for a node ends. A policy may also end it at another time, for example
    because a node is excluded no longer. Only the tables of rebat contain these times.
    """
    ends = {row.left_us for attempts in jobs.values() for row in attempts.values()}
    events = {event.at_us for event in reference.events}
    return sorted({us for us in ends if us is not None} | events)


def _near(us: int, instants: Sequence[int], slack_us: int) -> bool:
    at = bisect_left(instants, us - slack_us)
    return at < len(instants) and instants[at] <= us + slack_us


def _errors(profile: Mapping[str, Any] | None) -> int | None:
    """Return how many attempts of a delay profile end with an error, or None if this is unknown."""
    if profile is None or profile.get("type") != "delay" or profile.get("ret", 0) < 0:
        return None
    try:
        return errors_left(profile)
    except InputError:
        return None


def _state(row: JobRecord, errors: int) -> Iterator[Finding]:
    if (row.state == FAILED) != (errors > 0):
        text = f"job {row.key}: {row.state}, {errors} errors of its profile are left"
        yield Finding("state", row.line, text)
