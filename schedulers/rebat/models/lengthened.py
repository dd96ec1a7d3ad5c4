# SPDX-License-Identifier: Apache-2.0
"""Workloads whose run times and walltimes include checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebat.core.compact_jobs import with_times
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload


def check_delay(job: Job, profile: Mapping[str, Any]) -> None:
    """Raise InputError if the profile of a job allows no checkpoints. Only delays allow them."""
    if profile.get("type") != "delay":
        raise InputError(
            f"the profile type is {profile.get('type')!r}, which allows no checkpoints",
            f"job {job.id}",
            "a delay profile",
        )


def lengthened_workload(
    workload: Workload,
    profile_of: Callable[[Job], dict[str, Any]],
    walltime_us_of: Callable[[int, int], int],
) -> Workload:
    """Return the workload with lengthened profiles and walltimes.

    Parameters
    ----------
    workload : Workload
    profile_of : callable
        Function of a job that returns its longer profile. It is called once for each profile and
        number of nodes.
    walltime_us_of : callable
        Function of a walltime (us) and a number of nodes that returns the longer walltime (us).
    """
    profiles: dict[str, dict[str, Any]] = {}

    def times() -> Iterator[tuple[int | None, str]]:
        for job in workload.jobs:
            name = f"{job.profile}@{job.n_nodes}"
            if name not in profiles:
                profiles[name] = profile_of(job)
            walltime_us = job.walltime_us
            if walltime_us is not None:
                walltime_us = walltime_us_of(walltime_us, job.n_nodes)
            yield walltime_us, name

    return with_times(workload, times(), profiles)
