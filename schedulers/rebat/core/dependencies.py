# SPDX-License-Identifier: Apache-2.0
"""Dependencies between jobs, and limits of arrays, in the notation of Slurm.

Sources: Slurm's manual page *sbatch*, options ``--dependency`` and ``--array``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from rebat.core.errors import InputError, short
from rebat.core.jobs import Job

KINDS = {
    "after": "the job has started, or ended without a start",
    "afterok": "the job has completed successfully",
    "afternotok": "the job has ended otherwise",
    "afterany": "the job has ended",
}
"""The conditions on another job. A job ends with its last attempt."""

EXPECTED = f"KIND:ID[:ID...][,KIND:ID...], where KIND is {', '.join(KINDS)}"
_ARRAY = re.compile(r"(.+)%([1-9]\d{0,8})")


class Condition(NamedTuple):
    """A condition on another job: a key of `KINDS`, and the id of the job."""

    kind: str
    job: str


def conditions_of(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a dependency. All of them must hold.

    >>> conditions_of("afterok:12:13,afterany:14")[1:]
    (Condition(kind='afterok', job='13'), Condition(kind='afterany', job='14'))
    """
    conditions: list[Condition] = []
    for part in text.split(",") if text else ():
        kind, *ids = part.split(":")
        if kind not in KINDS or not ids or not all(ids) or "?" in part:
            raise InputError(f"is {short(text)}", "dependency", EXPECTED)
        conditions += [Condition(kind, job) for job in ids]
    return tuple(dict.fromkeys(conditions))


def dependency_text(conditions: Iterable[Condition]) -> str:
    """Return conditions as the text of a dependency.

    >>> dependency_text(conditions_of("afterany:14,afterok:12:13,afterany:15"))
    'afterany:14:15,afterok:12:13'
    """
    ids: dict[str, list[str]] = {}
    for kind, job in conditions:
        ids.setdefault(kind, []).append(job)
    return ",".join(":".join([kind, *jobs]) for kind, jobs in ids.items())


def array_limit(text: str) -> int:
    """Return the maximum number of tasks of an array in the queue or running at the same time.

    >>> array_limit("1234%2")
    2
    """
    match = _ARRAY.fullmatch(text)
    if match is None:
        raise InputError(f"is {short(text)}", "array", "NAME%N, where N is a whole number above 0")
    return int(match[2])


def check_dependencies(
    conditions: Mapping[str, Iterable[Condition]], jobs: Collection[str]
) -> None:
    """Raise InputError if a job depends on an unknown job, or directly or indirectly on itself.

    Parameters
    ----------
    conditions : dict
        The conditions of jobs, by id of the job.
    jobs : collection of str
        The ids of all jobs.
    """
    for name, needed in conditions.items():
        for condition in needed:
            if condition.job not in jobs:
                problem = f"names job {short(condition.job)}, which is not in the workload"
                raise InputError(problem, f"job {name}: dependency", "ids of the same workload")
    try:
        TopologicalSorter({name: {c.job for c in of} for name, of in conditions.items()}).prepare()
    except CycleError as error:
        cycle = " after ".join(map(str, error.args[1][::-1]))
        problem = f"is a cycle: {cycle}"
        raise InputError(problem, f"job {error.args[1][-1]}: dependency", "no cycle") from None


def within(job: Job, jobs: Collection[str]) -> Job:
    """Return a job without its conditions on jobs that are not in ``jobs``."""
    text = job.extra.get("dependency")
    if not text:
        return job
    extra: dict[str, Any] = {k: v for k, v in job.extra.items() if k != "dependency"}
    if left := [condition for condition in conditions_of(text) if condition.job in jobs]:
        extra["dependency"] = dependency_text(left)
    return Job(job.id, job.n_nodes, job.submit_us, job.walltime_us, job.profile, extra)
