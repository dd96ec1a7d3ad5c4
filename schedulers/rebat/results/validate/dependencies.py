# SPDX-License-Identifier: Apache-2.0
"""Checks of the dependencies between jobs, and of the limits of arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rebat.core.dependencies import Condition, array_limit, conditions_of
from rebat.core.jobs import Workload
from rebat.core.traits import traits_of
from rebat.results.files.batsim_files import SUCCESS, JobRecord
from rebat.results.validate.attempts import Attempts, Chains
from rebat.results.validate.findings import ROUNDING_US, Finding, seconds


def dependency_errors(jobs: Chains, main: str, workload: Workload | None) -> Iterator[Finding]:
    """Yield the starts that violate a dependency, or the limit of an array.

    A task of an array counts from its first start to the end of its last attempt.
    """
    active: defaultdict[str, list[tuple[int, int, JobRecord]]] = defaultdict(list)
    for job in workload.jobs if workload else ():
        traits = traits_of(job.extra)
        attempts = jobs.get((main, job.id), {})
        first = _first(attempts)
        if first is None or first.start_us is None or not (traits.dependency or traits.array):
            continue
        for condition in conditions_of(traits.dependency):
            if why := _violated(first.start_us, condition, jobs.get((main, condition.job), {})):
                text = f"job {first.key} depends on {condition.kind}:{condition.job}, but {why}"
                yield Finding("dependency", first.line, text)
        end_us = attempts[max(attempts)].left_us
        if traits.array and end_us is not None:
            active[traits.array] += [
                (first.start_us, 1, first), (end_us - ROUNDING_US, -1, first)
            ]  # fmt: skip
    for array, changes in active.items():
        n_active = 0
        for at_us, change, row in sorted(changes, key=lambda each: each[:2]):
            n_active += change
            if change > 0 and n_active > array_limit(array):
                text = f"job {row.key} starts at {seconds(at_us)} as task {n_active} of {array}"
                yield Finding("dependency", row.line, text)


def _first(attempts: Attempts) -> JobRecord | None:
    """Return the first attempt that started."""
    return next((attempts[number] for number in sorted(attempts) if attempts[number].ran), None)


def _violated(start_us: int, condition: Condition, attempts: Attempts) -> str:
    """Return why a job must not start at this time, or an empty text if it may."""
    kind, job = condition
    first = _first(attempts)
    if not attempts or (kind == "after" and first is None):
        return ""
    last = attempts[max(attempts)]
    begun_us = first.start_us if first and kind == "after" else last.left_us
    if begun_us is not None and start_us < begun_us - ROUNDING_US:
        event = "starts" if kind == "after" else "ends"
        return f"starts at {seconds(start_us)}, before job {job} {event} at {seconds(begun_us)}"
    if kind in ("after", "afterany") or (last.state == SUCCESS) == (kind == "afterok"):
        return ""
    return f"job {job} is {last.state}"
