# SPDX-License-Identifier: Apache-2.0
"""Results of a run as a trace in the Standard Workload Format (SWF).

Source: the archive's definition of version 2.2, with its rules for partial executions. A job with
several attempts has a summary line, followed by a line per attempt. The status of the last attempt
is 3 (completed) or 4 (killed). The status of earlier attempts is 2 (the job continues). Only the
first attempt has a submission time. The waiting time of each later attempt is the time since the
previous attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.attempts import Cause
from rebat.core.files import write_text
from rebat.core.jobs import Job, Workload
from rebat.core.traits import traits_of
from rebat.core.units import US_PER_S
from rebat.results.files.batsim_files import read_jobs
from rebat.results.files.run_folder import ATTEMPTS, n_nodes_of
from rebat.results.files.tables import Rows, table_in
from rebat.workloads.swf_export import UNKNOWN, Predecessors, numbered

FAILED, COMPLETED, CONTINUES, LAST_COMPLETED, LAST_KILLED, CANCELLED = range(6)
"""Status of jobs (0, 1, 5) and of attempts (2, 3, 4) in the format."""

ENDS: dict[str, int] = {Cause.COMPLETED: COMPLETED, Cause.CANCELLED: CANCELLED}
"""Status for each cause of a job's end. With any other cause, the status is "failed"."""


class SwfAttempt(NamedTuple):
    """An attempt in the results. Times are in microseconds, and -1 if the attempt never ran."""

    number: int
    size: int
    submit_us: int
    start_us: int
    end_us: int
    cause: str


def write_result_swf(
    folder: Path, path: Path, workload: Workload | None = None
) -> tuple[int, list[str]]:
    """Write the result of a policy as a trace, compressed if its name ends in .gz.

    Jobs are numbered from 1 in order of submission. Times are in seconds, with decimals if needed.
    If ``workload`` is set, the trace also contains the users, the queues and the preceding jobs of
    this workload, and the date of its time 0.

    Returns
    -------
    int, list of str
        Number of jobs, and notes on dependencies that the format cannot contain.
    """
    jobs = _read(table_in(folder, ATTEMPTS))
    limits = _limits(folder, workload)
    lines = [*_header(n_nodes_of(folder), len(jobs), workload)]
    before = Predecessors({name: number for number, name in enumerate(jobs, 1)})
    owners = _Owners({job.id: job for job in workload.jobs} if workload else {}, before)
    for number, (name, attempts) in enumerate(jobs.items(), 1):
        lines += _lines(number, attempts, limits.get(name, UNKNOWN), owners.of(name))
    write_text(path, "".join(f"{line}\n" for line in lines))
    return len(jobs), before.notes


def _read(path: Path) -> dict[str, list[SwfAttempt]]:
    """Return the attempts of each job, in order. Jobs are in order of submission."""
    rows = Rows(path, ("job_id", "attempt", "size", "submission_time", "start_time", "cause"))
    columns = zip(
        rows.names("job_id"),
        rows.counts("attempt").tolist(),
        rows.counts("size").tolist(),
        rows.times("submission_time").tolist(),
        rows.times("start_time", empty=-1).tolist(),
        rows.times("finish_time", empty=-1).tolist(),
        rows.texts("cause"),
        strict=True,
    )
    jobs: dict[str, list[SwfAttempt]] = {}
    for name, *values in columns:
        jobs.setdefault(name, []).append(SwfAttempt(*values))
    for attempts in jobs.values():
        attempts.sort()
    return dict(sorted(jobs.items(), key=lambda item: item[1][0].submit_us))


def _limits(folder: Path, workload: Workload | None) -> dict[str, int]:
    """Return the walltime in microseconds of each job that has one."""
    if workload is not None:
        walltimes = [(job.id, job.walltime_us) for job in workload.jobs]
    elif table_in(folder, "jobs").is_file():
        records = read_jobs(folder).records
        walltimes = [(record.job_id, record.walltime_us) for record in records]
    else:
        walltimes = []
    return {name: walltime_us for name, walltime_us in walltimes if walltime_us is not None}


def _header(n_nodes: int, n_jobs: int, workload: Workload | None) -> Iterator[str]:
    yield "; Version: 2.2"
    yield f"; MaxJobs: {n_jobs}"
    yield f"; MaxNodes: {n_nodes}"
    yield f"; MaxProcs: {n_nodes}"
    origin_s = (workload.machine or {}).get("origin_s") if workload else None
    if isinstance(origin_s, int | float) and origin_s > 0:
        yield f"; UnixStartTime: {round(origin_s)}"
    yield "; Note: jobs with several attempts have a line per attempt (status 2, 3, 4)"


class _Owners:
    """A numbering of users and queues from 1, in the order of their first jobs."""

    def __init__(self, jobs: Mapping[str, Job], before: Predecessors) -> None:
        self._jobs, self._before = jobs, before
        self._users: dict[str, int] = {}
        self._queues: dict[str, int] = {}

    def of(self, name: str) -> tuple[int, int, int, str]:
        """Return the numbers of the user, the queue and the preceding job, and the think time.

        An unknown number is -1.
        """
        if name not in self._jobs:
            return UNKNOWN, UNKNOWN, UNKNOWN, str(UNKNOWN)
        traits = traits_of(self._jobs[name].extra)
        user, queue = numbered(self._users, traits.user), numbered(self._queues, traits.queue)
        return user, queue, *self._before.of(self._jobs[name].extra)


def _lines(
    number: int, attempts: Sequence[SwfAttempt], limit_us: int, owner: tuple[int, int, int, str]
) -> Iterator[str]:
    """Yield the lines of a job: its summary, and a line per attempt if there are several."""
    first, ran = attempts[0], [attempt for attempt in attempts if attempt.start_us >= 0]
    user, queue, preceding, think_s = owner

    def line(submit_us: int, wait_us: int, run_us: int, size: int, status: int) -> str:
        return (
            f"{number} {_seconds(submit_us)} {_seconds(wait_us)} {_seconds(run_us)} {size} -1 -1 "
            f"{first.size} {_seconds(limit_us)} -1 {status} {user} -1 -1 {queue} -1 "
            f"{preceding} {think_s}"
        )

    if not ran:
        yield line(first.submit_us, UNKNOWN, UNKNOWN, UNKNOWN, CANCELLED)
        return
    run_us = sum(attempt.end_us - attempt.start_us for attempt in ran)
    cause, wait_us = ran[-1].cause, ran[0].start_us - first.submit_us
    status = ENDS.get(cause, FAILED)
    yield line(first.submit_us, wait_us, run_us, ran[-1].size, status)
    if len(ran) == 1:
        return
    submit_us, free_us = first.submit_us, first.submit_us
    for attempt in ran:
        last = LAST_COMPLETED if status == COMPLETED else LAST_KILLED
        status_of = CONTINUES if attempt is not ran[-1] else last
        wait_us, length_us = attempt.start_us - free_us, attempt.end_us - attempt.start_us
        yield line(submit_us, wait_us, length_us, attempt.size, status_of)
        submit_us, free_us = UNKNOWN, attempt.end_us


def _seconds(us: int) -> str:
    """Return a time in seconds as text, or -1 if ``us`` is negative (an unknown time).

    >>> _seconds(1_500_000), _seconds(2_000_000), _seconds(-1)
    ('1.5', '2', '-1')
    """
    if us == UNKNOWN:
        return "-1"
    whole, part = divmod(us, US_PER_S)
    return f"{whole}.{part:06d}".rstrip("0") if part else str(whole)
