# SPDX-License-Identifier: Apache-2.0
"""Checks of the attempts of jobs, and of a job table against its workload.

In every Batsim scheduler, attempt N of job J is the job ``J#N``. Some checks concern only the
resubmissions of rebat. Other schedulers may use other names of profiles and submission times.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from rebat.core.attempts import attempt_profile, split_attempt
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, duration_us
from rebat.core.traits import shape_of
from rebat.models.checkpoint import checkpointing_of, work_in_us
from rebat.models.remaining import written_us
from rebat.models.silent_errors import errors_left
from rebat.models.speedup import run_us, speedup_of
from rebat.results.files.batsim_files import (
    FAILED,
    KILLED,
    NULL_RUN_US,
    REJECTED,
    SUCCESS,
    WALLTIME,
    JobRecord,
)
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
        may_be_ours = row.profile is None or row.profile.startswith(f"{row.job_id}:")
        orphan = (row.workload, base) not in names and not may_be_ours
        if (row.workload, row.job_id) in jobs or orphan:
            base, number = row.job_id, 0
        attempts[row.workload, base].setdefault(number, row)
    return attempts


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
    lasts = [attempts[max(attempts)] for (_, name), attempts in jobs.items() if name in endless]
    horizon_us = max((row.left_us or 0 for row in lasts if row.state == KILLED), default=0)
    for (_, job_id), attempts in jobs.items():
        numbers = sorted(attempts)
        last = attempts[numbers[-1]]
        if numbers != list(range(len(numbers))):
            missing = min(set(range(numbers[-1])) - set(numbers))
            text = f"job {last.key}: attempt {missing} is missing"
            yield Finding("attempts", last.line, text)
        for earlier, later in pairwise(numbers):
            yield from _follow(attempts[earlier], attempts[later], reference.hung_us)
        most = reference.max_attempts or math.inf
        given_up = job_id in reference.given_up or len(numbers) >= most
        if not again or last.state != KILLED or given_up:
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


def _follow(before: JobRecord, after: JobRecord, hung_us: Mapping[str, int]) -> Iterator[Finding]:
    if before.state == SUCCESS and before.job_id not in hung_us:
        text = f"job {after.key} was resubmitted, but {before.key} succeeded"
        yield Finding("attempts", after.line, text)
    left_us = before.left_us
    if left_us is not None and after.start_us is not None and after.start_us < left_us:
        text = f"job {after.key} starts at {seconds(after.start_us)}, before {before.key} ends"
        yield Finding("attempts", after.line, text)


Originals = Mapping[tuple[str, str], str | None]
"""The profile of every job, by the workload's name and the job's id. None is unknown."""


def profiles_of(jobs: Chains, main: str, workload: Workload | None) -> Originals:
    """Return the profiles of jobs, from the workload or from the first row of a job."""
    first = {key: attempts[0].profile if 0 in attempts else None for key, attempts in jobs.items()}
    listed = {(main, job.id): job.profile for job in workload.jobs} if workload else {}
    return first | listed


def six_digits(jobs: Chains, original: Originals) -> bool:
    """Return whether rebat rounded times of resubmissions to six digits.

    This is the case if all walltimes, and the run times of successful attempts, have at most six
    digits. Policies with ``digits=six`` round only after interruptions: a job that is moved or
    initialised has other times. Therefore, one resubmission with at most six digits is enough if
    the walltime of its job has more.
    """
    rows = [
        (attempts.get(0), row)
        for key, attempts in jobs.items()
        for row in attempts.values()
        if made_by_rebat(row, original[key]) and row.walltime_us is not None
    ]
    rounded = [(first, row) for first, row in rows if _in_six_digits(row)]
    return bool(rows) and (
        len(rounded) == len(rows)
        or any(
            first is not None
            and first.walltime_us is not None
            and written_us(first.walltime_us) != first.walltime_us
            for first, _ in rounded
        )
    )


def _in_six_digits(row: JobRecord) -> bool:
    walltime_us = row.walltime_us or 0
    if written_us(walltime_us) != walltime_us:
        return False
    if row.state != SUCCESS or row.start_us is None or row.end_us is None:
        return True
    run_us = row.end_us - row.start_us
    return abs(written_us(run_us) - run_us) <= ROUNDING_US


def resubmission_errors(
    jobs: Chains, original: Originals, profiles: Mapping[str, dict[str, Any]], reference: Reference
) -> Iterator[Finding]:
    """Yield the errors in the rows of resubmissions that rebat created.

    If ``reference`` does not state whether rebat created them, the names of the profiles decide.
    """
    by_rebat = reference.by_rebat
    if by_rebat is None:
        by_rebat = any(
            made_by_rebat(row, original[key])
            for key, attempts in jobs.items()
            for number, row in attempts.items()
            if number
        )
    if not by_rebat:
        return
    yield from _late_starts(jobs, reference)
    instants = _instants(jobs, reference) if reference.events else []
    slack_us = ROUNDING_US + reference.slack_us
    for key, attempts in jobs.items():
        name, failed = original[key], 0
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
                left = max(0, errors - failed)
                if (row.state == FAILED) != (left > 0):
                    text = f"job {row.key}: {row.state}, {left} errors of its profile are left"
                    yield Finding("state", row.line, text)
            # an attempt that completes while it hangs does not count: its job runs again
            failed += row.state == FAILED and row.job_id not in reference.hung_us


def _late_starts(jobs: Chains, reference: Reference) -> Iterator[Finding]:
    """Yield the starts that Batsim delayed by `NULL_RUN_US`, its minimum delay of a call.

    rebat decides when something happens, and Batsim executes decisions immediately.
    """
    rows = [row for attempts in jobs.values() for row in attempts.values()]
    times = {row.submit_us for row in rows} | set(_instants(jobs, reference))
    for row in rows:
        if row.start_us is None or row.start_us in times or reference.slack_us:
            continue
        on_time = range(row.start_us - ROUNDING_US, row.start_us + ROUNDING_US + 1)
        delays = range(NULL_RUN_US - ROUNDING_US, NULL_RUN_US + ROUNDING_US + 1)
        if times.isdisjoint(on_time) and any(row.start_us - delay in times for delay in delays):
            text = f"starts at {seconds(row.start_us)}, 10 us after the event that allowed it"
            yield Finding("times", row.line, f"job {row.key}: {text}")


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
    if waited:
        at = bisect_left(instants, row.submit_us - slack_us)
        if not instants or (at < len(instants) and instants[at] <= row.submit_us + slack_us):
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


def _errors(profile: Mapping[str, Any] | None) -> int | None:
    """Return how many attempts of a delay profile end with an error, or None if this is unknown."""
    if profile is None or profile.get("type") != "delay" or profile.get("ret", 0) < 0:
        return None
    try:
        return errors_left(profile)
    except InputError:
        return None


def filled(rows: Sequence[JobRecord], workload: Workload | None) -> list[JobRecord]:
    """Return the rows, with missing values of original jobs filled in from the workload."""
    jobs = {job.id: job for job in workload.jobs} if workload else {}
    main = main_workload(rows)
    complete = list(rows)
    for at, row in enumerate(rows):
        if row.workload == main and (job := jobs.get(row.job_id)) is not None:
            complete[at] = msgspec.structs.replace(
                row,
                n_nodes=job.n_nodes if row.n_nodes is None else row.n_nodes,
                submit_us=job.submit_us if row.submit_us is None else row.submit_us,
                walltime_us=row.walltime_us if row.walltime_listed else job.walltime_us,
            )
    return complete


def against_workload(rows: Sequence[JobRecord], reference: Reference) -> Iterator[Finding]:
    """Check that each job has a row, each row has a job, and each row matches its job."""
    workload = reference.workload
    if workload is None:
        return
    jobs = {job.id: job for job in workload.jobs}
    main = main_workload(rows)
    own = [row for row in rows if row.workload == main]
    ids = {row.job_id for row in own}
    for job in workload.jobs:
        if job.id not in ids:
            yield Finding("lost", 0, f"job {job.id} of the workload has no row")
    for row in own:
        base, number = split_attempt(row.job_id)
        if row.job_id in jobs:
            yield from _as_submitted(row, jobs[row.job_id])
        elif number == 0 or base not in jobs:
            yield Finding("unknown", row.line, f"job {row.key} is not in the workload")
        else:
            yield from _in_its_shape(row, jobs[base])
    digits = 6 if reference.six_digits else None
    yield from _run_times(own, jobs, workload, ROUNDING_US + reference.slack_us, digits)


def _as_submitted(row: JobRecord, job: Job) -> Iterator[Finding]:
    if row.n_nodes is not None and row.n_nodes != job.n_nodes:
        text = f"job {row.key}: requested {row.n_nodes} nodes, in the workload {job.n_nodes}"
        yield Finding("size", row.line, text)
    if row.submit_us is not None and abs(row.submit_us - job.submit_us) > ROUNDING_US:
        times = f"{seconds(row.submit_us)}, in the workload at {seconds(job.submit_us)}"
        yield Finding("times", row.line, f"job {row.key}: submitted at {times}")
    ours, theirs = row.walltime_us, job.walltime_us
    same = ours is theirs if ours is None or theirs is None else abs(ours - theirs) <= ROUNDING_US
    if row.walltime_listed and not same:
        ours_text, theirs_text = ("none" if us is None else seconds(us) for us in (ours, theirs))
        times = f"{ours_text}, in the workload {theirs_text}"
        yield Finding("request", row.line, f"job {row.key}: requested_time is {times}")
    if row.profile is not None and row.profile != job.profile:
        names = f"{row.profile!r}, in the workload {job.profile!r}"
        yield Finding("request", row.line, f"job {row.key}: profile is {names}")


def _in_its_shape(row: JobRecord, job: Job) -> Iterator[Finding]:
    """Check that the shape of a job allows the size of a resubmission created by rebat."""
    size = row.n_nodes
    if not made_by_rebat(row, job.profile) or size is None or size == job.n_nodes:
        return
    shape = shape_of(job.extra)
    if not shape.allows(size, job.n_nodes):
        text = f"job {row.key}: requested {size} nodes, but the job has {job.n_nodes}"
        yield Finding("size", row.line, f"{text} and its shape is {shape}")


def _run_times(
    rows: Sequence[JobRecord],
    jobs: Mapping[str, Job],
    workload: Workload,
    slack: int,
    digits: int | None,
) -> Iterator[Finding]:
    """Check that the run times of the attempts of each job match its profile.

    ``digits`` is the number of digits with which lengths and walltimes were written, if it is
    limited. Rounding errors add up over the attempts of a job.
    """

    @cache
    def length_us(name: str) -> int | None:
        """Return the length of a profile (us), or None if it depends on the platform."""
        with suppress(InputError):
            return duration_us(workload.profiles, name, speed_flops=None)
        return None

    for (_, job_id), attempts in chains(rows, workload).items():
        job = jobs.get(job_id)
        if job is None:
            continue
        whole = length_us(job.profile)
        full = {n: _full_us(row, job, attempts, whole) for n, row in attempts.items()}
        values_us = [us for us in (whole, job.walltime_us) if us and digits is not None]
        coarse = sum(10 ** max(0, len(str(us)) - (digits or 0)) for us in values_us)
        for number, row in attempts.items():
            yield from _as_long(row, full[number], slack, number * coarse)
        if 0 in attempts:
            yield from _return_code(attempts[0], workload.profiles[job.profile])
        if full[max(full)] is None and whole is not None:
            rough = slack + max(attempts) * coarse
            yield from _together(attempts, job, workload.profiles[job.profile], whole, rough)


def _full_us(
    row: JobRecord, job: Job, attempts: Mapping[int, JobRecord], whole: int | None
) -> int | None:
    """Return the run time (us) of an attempt if it is not stopped, or None if it is unknown.

    When rebat resubmits a job, it shortens run time and walltime by the same amount (equation 4 of
    Du et al. 2024), unless the job's size changed.
    """
    if whole is None or row.job_id == job.id or row.profile == job.profile:
        return whole
    one_size = {attempt.n_nodes for attempt in attempts.values()} == {job.n_nodes}
    if (
        not made_by_rebat(row, job.profile)
        or not one_size
        or row.walltime_us is None
        or job.walltime_us is None
    ):
        return None
    return whole + row.walltime_us - job.walltime_us


def _as_long(row: JobRecord, full: int | None, slack: int, coarse: int) -> Iterator[Finding]:
    """Check that a run ends after the time of its profile, or at its walltime if this is earlier.

    The final state must match the reason for the end. ``full`` is the time of the profile, and
    ``coarse`` is its largest rounding error. Both are in microseconds.
    """
    held, bound = row.held_us, row.walltime_us
    if full is None or held is None or row.start_us is None or row.end_us is None:
        return
    if held < 0 or (bound is not None and held > bound + slack):
        return  # other checks report negative times
    run = row.end_us - row.start_us
    least = full if bound is None else min(full, bound)
    most = full + slack + coarse
    if held > most or (row.state != KILLED and run < least - slack - coarse):
        took = f"{row.state} after {seconds(run)}, but its profile takes {seconds(full)}"
        yield Finding("run time", row.line, f"job {row.key}: {took}")
    elif bound is not None and row.state != KILLED:
        text, rounded = "", ROUNDING_US + coarse
        if full > bound + rounded and row.state != WALLTIME:
            text = f"its profile takes {seconds(full)}, its walltime is {seconds(bound)}"
        elif full < bound - rounded and row.state == WALLTIME:
            text = f"its profile takes only {seconds(full)} of {seconds(bound)}"
        if text:
            yield Finding("state", row.line, f"job {row.key}: {row.state}, but {text}")


def _return_code(row: JobRecord, profile: dict[str, Any]) -> Iterator[Finding]:
    """Check that a job with a delay profile fails if and only if its return code is positive."""
    code = profile.get("ret", 0)
    if profile.get("type") != "delay" or code < 0 or row.state not in (SUCCESS, FAILED):
        return
    if (row.state == FAILED) != (code > 0):
        text = f"job {row.key}: {row.state}, but the return code of its profile is {code}"
        yield Finding("state", row.line, text)


def _together(
    attempts: Mapping[int, JobRecord], job: Job, profile: dict[str, Any], full: int, slack: int
) -> Iterator[Finding]:
    """Check that all attempts of a completed job together did its entire work.

    If the size of the job changed, the check compares the work of its delay profile, without
    checkpoints.
    """
    last, done = attempts[max(attempts)], 0
    resized = any(row.n_nodes != job.n_nodes for row in attempts.values() if row.ran)
    if last.state not in (SUCCESS, FAILED) or (resized and profile.get("type") != "delay"):
        return
    if resized and not _scaled_by_rebat(attempts):
        return
    rounded = slack if resized else 0
    if resized:
        full = work_in_us(checkpointing_of(profile), full)
    for row in attempts.values():
        if row.start_us is None or row.end_us is None or row.n_nodes is None:
            if row.state != REJECTED:
                return  # times or sizes are missing
            continue
        speedup = speedup_of(profile)
        done += run_us(speedup, row.end_us - row.start_us, row.n_nodes, job.n_nodes)
        rounded += max(slack, run_us(speedup, slack, row.n_nodes, job.n_nodes))
    if len(attempts) == max(attempts) + 1 and done < full - rounded:
        took = f"all attempts did {seconds(done)} of the {seconds(full)} of its profile"
        yield Finding("run time", last.line, f"job {last.key}: {last.state}, but {took}")


def _scaled_by_rebat(attempts: Mapping[int, JobRecord]) -> bool:
    """Return whether walltimes change with the size of a job in the same way as in rebat."""
    rows = [attempts[number] for number in sorted(attempts)]
    return not any(
        before.n_nodes != after.n_nodes and before.walltime_us == after.walltime_us is not None
        for before, after in pairwise(rows)
    )
