# SPDX-License-Identifier: Apache-2.0
"""Conversion of rigid jobs to moldable or malleable jobs around their requested size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, duration_us
from rebat.core.shapes import RIGID, Malleable, Moldable, Shape, fields_of, shape_of
from rebat.core.streams import stream
from rebat.models.speedup import SIGMA_MAX, Downey
from rebat.workloads.columns import counted


def flex(
    workload: Workload,
    *,
    malleable: float = 0.0,
    moldable: float = 0.0,
    seed: int = 0,
    sigma: float | None = None,
) -> Workload:
    """Make some rigid jobs malleable and some moldable. Their other fields do not change.

    A malleable job that requests n nodes runs on n/4 (rounded down, at least 1) to 2n nodes (at
    most the entire machine). A moldable job runs on n/4, n/2, n or 2n nodes. Numbers that are not
    integers or exceed the machine are left out. If a profile has no speedup, it gets a speedup of
    Downey's model. The mean parallelism is chosen as small as possible, but so that the job is
    faster on each larger size (equation (5) of Prabhakaran et al. 2018).

    A random number u is drawn for each job. The job becomes malleable if u < ``malleable``, and
    moldable if u >= 1 - ``moldable``. If a share is increased, the selected jobs stay selected, and
    further jobs are added. Jobs larger than the machine, and jobs that need Batsim's network model,
    do not change.

    Parameters
    ----------
    malleable, moldable : float
        Shares of the jobs, from 0 to 1. Their sum is at most 1.
    seed : int
        The same seed yields the same jobs and speedups.
    sigma : float, optional
        Coefficient of variance of the parallelism of every job. By default it is drawn for each
        job, uniformly from 0 to ``SIGMA_MAX`` (Downey 1998).
    """
    _check(malleable, moldable, sigma)
    drawn = stream(seed, "workload", "flex", "kinds").random(len(workload.jobs)).tolist()
    sigmas = stream(seed, "workload", "flex", "sigmas").uniform(0, SIGMA_MAX, len(drawn)).tolist()
    scalable = scalable_profiles(workload)
    jobs, profiles = [], dict(workload.profiles)
    counts = {Malleable: 0, Moldable: 0}
    for job, u, random_sigma in zip(workload.jobs, drawn, sigmas, strict=True):
        kind = Malleable if u < malleable else Moldable if u >= 1 - moldable else None
        if kind is None or not can_flex(job, workload.n_nodes, scalable):
            jobs.append(job)
            continue
        counts[kind] += 1
        shape, most = _around(kind, job.n_nodes, workload.n_nodes)
        speedup = useful_to(most, random_sigma if sigma is None else sigma)
        name = _add_profile(profiles, job, speedup)
        extra = job.extra | fields_of(shape)
        jobs.append(msgspec.structs.replace(job, profile=name, extra=extra))
    note = (
        f"{counted(counts[Malleable])} made malleable, {counted(counts[Moldable])} moldable "
        f"(shares {malleable:g} and {moldable:g}, seed {seed})"
    )
    notes = (*workload.notes, note)
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles, notes=notes)


def useful_to(most: int, sigma: float) -> Downey:
    """Return a speedup that increases up to ``most`` nodes, with the smallest mean parallelism.

    The mean parallelism follows from equation (5) of Prabhakaran et al. 2018.

    >>> useful_to(31, 0.5), useful_to(46, 2.0)
    (Downey(parallelism=16.0, sigma=0.5), Downey(parallelism=16.0, sigma=2.0))
    """
    sigma = round(sigma, 6)
    mean = (most + 1) / 2 if sigma <= 1 else (most + sigma) / (1 + sigma)
    return Downey(max(math.ceil(mean * 1e6) / 1e6, 1.0), sigma)


def _check(malleable: float, moldable: float, sigma: float | None) -> None:
    for name, share in (("malleable", malleable), ("moldable", moldable)):
        if not 0 <= share <= 1:
            raise InputError(f"is {share:g}", name, "a share from 0 to 1")
    if malleable + moldable > 1:
        problem = f"the shares of malleable and moldable jobs are {malleable:g} and {moldable:g}"
        raise InputError(problem, expected="a sum of at most 1")
    if sigma is not None:
        Downey(1.0, sigma)  # raises an error if sigma is invalid


def scalable_profiles(workload: Workload) -> set[str]:
    """Return the profiles whose run time does not need Batsim's network model."""
    return {name for name in workload.profiles if _scales(workload.profiles, name)}


def _scales(profiles: Mapping[str, dict[str, Any]], name: str) -> bool:
    try:
        duration_us(profiles, name)
    except InputError:
        return False
    return True


def can_flex(job: Job, machine: int, scalable: set[str]) -> bool:
    """Return whether a job is rigid, fits the machine, and has one of the ``scalable`` profiles."""
    rigid = shape_of(job.extra) == RIGID
    return rigid and job.n_nodes <= machine and job.profile in scalable


def _around(kind: type[Shape], size: int, machine: int) -> tuple[Shape, int]:
    """Return the shape of a job around its requested size, and its maximum number of nodes."""
    if kind is Malleable:
        most = min(2 * size, machine)
        return Malleable(max(size // 4, 1), most), most
    parts = [size // part for part in (4, 2) if size % part == 0]
    sizes = (*parts, size, *([2 * size] if 2 * size <= machine else []))
    return Moldable(sizes), sizes[-1]


def _add_profile(profiles: dict[str, dict[str, Any]], job: Job, speedup: Downey) -> str:
    """Add the profile of a job with a speedup, under a new name. Return this name."""
    profile = profiles[job.profile]
    if "speedup" in profile:
        return job.profile
    name = f"{job.profile}-flex-{job.id}"
    while name in profiles:
        name += "+"
    profiles[name] = profile | {"speedup": msgspec.to_builtins(speedup)}
    return name
