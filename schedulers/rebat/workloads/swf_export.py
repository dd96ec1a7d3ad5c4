# SPDX-License-Identifier: Apache-2.0
"""Workloads as traces in the Standard Workload Format, see `rebat.records.swf`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rebat.core.dependencies import conditions_of
from rebat.core.files import write_text
from rebat.core.jobs import Workload, duration_us
from rebat.core.numbers import exactly
from rebat.core.traits import traits_of
from rebat.core.units import US_PER_S
from rebat.records.swf import THINK_TIME

UNKNOWN = -1


def write_swf(workload: Workload, path: Path) -> list[str]:
    """Write a trace in the Standard Workload Format, compressed if its name ends in .gz.

    Jobs, users and queues are numbered from 1, in the order of the jobs. Times are rounded to
    seconds. Waiting times are unknown (-1). UnixStartTime is set if the recorded time 0 is known.
    Return notes on dependencies that the format cannot contain.
    """
    before = Predecessors({job.id: number for number, job in enumerate(workload.jobs, 1)})
    write_text(Path(path), "".join(f"{line}\n" for line in _lines(workload, before)))
    return before.notes


class Predecessors:
    """The preceding job and the think time of jobs (fields 17 and 18).

    Parameters
    ----------
    numbers : dict
        The number of each job in the trace, by id.
    """

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._n_lost = self._n_limited = 0

    def of(self, fields: Mapping[str, Any]) -> tuple[int, str]:
        """Return the number of the preceding job and the think time. Unknown values are -1.

        The format contains a single job whose end is awaited.
        """
        traits = traits_of(fields)
        self._n_limited += bool(traits.array)
        conditions = conditions_of(traits.dependency)
        ended = [c.job for c in conditions if c.kind != "after" and c.job in self._numbers]
        self._n_lost += len(conditions) > 1 or len(ended) < len(conditions)
        if len(ended) != 1:
            return UNKNOWN, str(UNKNOWN)
        think_s = fields.get(THINK_TIME)
        is_number = isinstance(think_s, int | float) and think_s >= 0
        return self._numbers[ended[0]], f"{think_s:.15g}" if is_number else str(UNKNOWN)

    @property
    def notes(self) -> list[str]:
        """Sentences about dependencies that the format cannot contain."""
        lost = "with several dependencies, or on the start of a job: the trace lacks some of them"
        limit = "of arrays with a limit of simultaneous tasks: the trace lacks the limit"
        rows = (self._n_lost, lost), (self._n_limited, limit)
        return [f"{exactly(n, 'job')} {text}" for n, text in rows if n]


def _lines(workload: Workload, before: Predecessors) -> Iterator[str]:
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
        user, queue = numbered(users, traits.user), numbered(queues, traits.queue)
        preceding, think_s = before.of(job.extra)
        yield (
            f"{number} {_seconds(job.submit_us)} -1 {run_s} {job.n_nodes} -1 -1 {job.n_nodes} "
            f"{limit_s} -1 1 {user} -1 -1 {queue} -1 {preceding} {think_s}"
        )


def _seconds(us: int) -> int:
    return round(us / US_PER_S)


def numbered(numbers: dict[str, int], name: str) -> int:
    """Return the number of a name, which is the next one for a new name."""
    return numbers.setdefault(name, len(numbers) + 1) if name else UNKNOWN
