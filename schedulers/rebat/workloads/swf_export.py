# SPDX-License-Identifier: Apache-2.0
"""Workloads as traces in the Standard Workload Format, see `rebat.records.swf`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rebat.core.files import write_text
from rebat.core.jobs import Workload, duration_us
from rebat.core.traits import traits_of
from rebat.core.units import US_PER_S


def write_swf(workload: Workload, path: Path) -> None:
    """Write a trace in the Standard Workload Format, compressed if its name ends in .gz.

    Jobs, users and queues are numbered from 1, in the order of the jobs. Times are rounded to
    seconds. Waiting times are unknown (-1). UnixStartTime is set if the recorded time 0 is known.
    """
    write_text(Path(path), "".join(f"{line}\n" for line in _lines(workload)))


def _lines(workload: Workload) -> Iterator[str]:
    yield "; Version: 2.2"
    yield f"; MaxNodes: {workload.n_nodes}"
    yield f"; MaxProcs: {workload.n_nodes}"
    origin_s = (workload.machine or {}).get("origin_s")
    if isinstance(origin_s, int | float) and origin_s > 0:
        yield f"; UnixStartTime: {round(origin_s)}"
    users: dict[str, int] = {}
    queues: dict[str, int] = {}
    for number, job in enumerate(workload.jobs, 1):
        run_s = _seconds(duration_us(workload.profiles, job.profile))
        limit_s = -1 if job.walltime_us is None else _seconds(job.walltime_us)
        traits = traits_of(job.extra)
        user, queue = _number(users, traits.user), _number(queues, traits.queue)
        yield (
            f"{number} {_seconds(job.submit_us)} -1 {run_s} {job.n_nodes} -1 -1 {job.n_nodes} "
            f"{limit_s} -1 1 {user} -1 -1 {queue} -1 -1 -1"
        )


def _seconds(us: int) -> int:
    return round(us / US_PER_S)


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers) + 1) if name else -1
