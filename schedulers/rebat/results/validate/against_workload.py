# SPDX-License-Identifier: Apache-2.0
"""Checks of a job table against its workload: each job has a row with matching values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from rebat.core.attempts import split_attempt
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, duration_us
from rebat.core.traits import shape_of
from rebat.models.checkpoint import checkpointing_of, work_in_us
from rebat.models.speedup import run_us, speedup_of
from rebat.results.files.batsim_files import FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, JobRecord
from rebat.results.validate.attempts import chains, made_by_rebat, main_workload
from rebat.results.validate.findings import ROUNDING_US, Finding, Reference, seconds


def filled(rows: Sequence[JobRecord], workload: Workload | None) -> list[JobRecord]:
    """Return the rows, with missing values of original jobs filled in from the workload."""
    jobs = {job.id: job for job in workload.jobs} if workload else {}
    main = main_workload(rows)
    return [
        _fill(row, jobs[row.job_id]) if row.workload == main and row.job_id in jobs else row
        for row in rows
    ]


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


def _fill(row: JobRecord, job: Job) -> JobRecord:
    return msgspec.structs.replace(
        row,
        n_nodes=job.n_nodes if row.n_nodes is None else row.n_nodes,
        submit_us=job.submit_us if row.submit_us is None else row.submit_us,
        walltime_us=row.walltime_us if row.walltime_listed else job.walltime_us,
    )


def _as_submitted(row: JobRecord, job: Job) -> Iterator[Finding]:
    if row.n_nodes is not None and row.n_nodes != job.n_nodes:
        text = f"job {row.key}: requested {row.n_nodes} nodes, in the workload {job.n_nodes}"
        yield Finding("size", row.line, text)
    if row.submit_us is not None and abs(row.submit_us - job.submit_us) > ROUNDING_US:
        times = f"{seconds(row.submit_us)}, in the workload at {seconds(job.submit_us)}"
        yield Finding("times", row.line, f"job {row.key}: submitted at {times}")
    if row.walltime_listed and not _same(row.walltime_us, job.walltime_us):
        times = f"{_walltime(row.walltime_us)}, in the workload {_walltime(job.walltime_us)}"
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


def _same(first_us: int | None, second_us: int | None) -> bool:
    if first_us is None or second_us is None:
        return first_us is second_us
    return abs(first_us - second_us) <= ROUNDING_US


def _walltime(us: int | None) -> str:
    return "none" if us is None else seconds(us)


def _run_times(
    rows: Sequence[JobRecord],
    jobs: Mapping[str, Job],
    workload: Workload,
    slack: int,
    digits: int | None,
) -> Iterator[Finding]:
    """Check that the run times of the attempts of each job match its profile."""
    length_us = _lengths(workload.profiles)
    for (_, job_id), attempts in chains(rows, workload).items():
        job = jobs.get(job_id)
        if job is None:
            continue
        full = {n: _full_us(row, job, attempts, length_us) for n, row in attempts.items()}
        whole = length_us(job.profile)
        coarse = _written_us(whole, job.walltime_us, digits)
        for number, row in attempts.items():
            yield from _as_long(row, full[number], slack, number * coarse)
        if 0 in attempts:
            yield from _return_code(attempts[0], workload.profiles[job.profile])
        if full[max(full)] is None and whole is not None:
            rough = slack + max(attempts) * coarse
            yield from _together(attempts, job, workload.profiles[job.profile], whole, rough)


def _written_us(length_us: int | None, walltime_us: int | None, digits: int | None) -> int:
    """Return the rounding error (us) of length plus walltime, each written with ``digits``."""
    if digits is None:
        return 0
    values_us = [us for us in (length_us, walltime_us) if us]
    return sum(10 ** max(0, len(str(us)) - digits) for us in values_us)


def _lengths(profiles: Mapping[str, dict[str, Any]]) -> Callable[[str], int | None]:
    """Return a function that maps the name of a profile to its length in microseconds.

    The length is None if it depends on the platform.
    """
    lengths: dict[str, int | None] = {}

    def length_us(name: str) -> int | None:
        if name not in lengths:
            try:
                lengths[name] = duration_us(profiles, name, speed_flops=None)
            except InputError:
                lengths[name] = None
        return lengths[name]

    return length_us


def _full_us(
    row: JobRecord,
    job: Job,
    attempts: Mapping[int, JobRecord],
    length_us: Callable[[str], int | None],
) -> int | None:
    """Return the run time (us) of an attempt if it is not stopped, or None if it is unknown.

    When rebat resubmits a job, it shortens run time and walltime by the same amount (equation 4 of
    Du et al. 2024), unless the job's size changed.
    """
    whole = length_us(job.profile)
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

    ``full`` is the time of the profile. ``coarse`` is its largest rounding error. Both are in
    microseconds.
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
        yield from _bounded(row, full, bound, ROUNDING_US + coarse)


def _bounded(row: JobRecord, full: int, bound: int, rounded: int) -> Iterator[Finding]:
    """Check that the final state matches the reason for the end (profile or walltime)."""
    outran = full > bound + rounded
    if outran and row.state != WALLTIME:
        text = f"its profile takes {seconds(full)}, its walltime is {seconds(bound)}"
    elif full < bound - rounded and row.state == WALLTIME:
        text = f"its profile takes only {seconds(full)} of {seconds(bound)}"
    else:
        return
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
