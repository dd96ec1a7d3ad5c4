# SPDX-License-Identifier: Apache-2.0
"""Statistics of a workload, in the form of the papers' tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.errors import InputError
from rebat.core.jobs import Workload, duration_us
from rebat.core.traits import KINDS, extent, kind_of, shape_of, traits_of
from rebat.core.units import US_PER_S
from rebat.models.checkpoint import young_daly_period_s
from rebat.models.speedup import model_of, speedup_of
from rebat.workloads.published import SIZE_BOUNDS

WHOLE_MACHINE = 0.99
"""Minimum share of all nodes from which a job counts as a job of the entire machine.

It is below 1, because the authors of node stealing reduced these jobs from 49,152 to 49,000 nodes,
and from 40,960 to 40,900.
"""


def describe(workload: Workload, period_s: float | None = None) -> dict[str, Any]:
    """Return sizes, run times and load of a workload.

    Parameters
    ----------
    period_s : float, optional
        Length of the period to which the stress refers, in seconds (a month in Du et al. 2024,
        section 5.2). Default: the time from the first to the last submission.

    Returns
    -------
    dict
        Values computed from run times are None if a profile needs Batsim's network model.

        - ``name``, ``jobs``, ``nodes``, ``span_s``, ``node_seconds``, ``stress``, ``notes``
        - ``machine``: the recorded machine, None if unknown
        - ``size_classes``: jobs per size interval, as in Table 2 of Du et al. 2024
        - ``run_time_s``, ``walltime_s``: min, max, mean and median, as in Table 3
        - ``walltime_accuracy``: mean and median of run time / walltime
        - ``without_walltime``: jobs without walltime
        - ``over_walltime``: jobs that are killed at their walltime
        - ``too_large``: jobs larger than the machine
        - ``shapes``: number of jobs of each kind, with their minimum and maximum nodes
        - ``speedups``: number of jobs of each speedup model
        - ``eternal``: jobs without an end. These jobs are included in ``jobs`` and ``shapes``, but
          in no other value
    """
    n_jobs, shapes = len(workload.jobs), _shapes(workload)
    ending = tuple(job for job in workload.jobs if not traits_of(job.extra).eternal)
    workload = msgspec.structs.replace(workload, jobs=ending)
    sizes = np.array([job.n_nodes for job in workload.jobs], dtype=np.int64)
    submit_s = np.array([job.submit_us for job in workload.jobs]) / US_PER_S
    span_s = float(np.ptp(submit_s)) if len(submit_s) else 0.0
    walltime_s = np.array([_or_nan(job.walltime_us) for job in workload.jobs]) / US_PER_S
    run_s = _run_times_s(workload)
    return {
        "name": workload.name,
        "jobs": n_jobs,
        "nodes": workload.n_nodes,
        "span_s": span_s,
        **_load(sizes, run_s, workload.n_nodes, period_s or span_s),
        "size_classes": size_classes(sizes, workload.n_nodes),
        "run_time_s": _statistics(run_s),
        "walltime_s": _statistics(walltime_s[~np.isnan(walltime_s)]),
        **_walltime_use(run_s, walltime_s),
        "too_large": int((sizes > workload.n_nodes).sum()),
        "eternal": n_jobs - len(ending),
        "shapes": shapes,
        "speedups": _speedups(workload),
        "machine": workload.machine,
        "notes": list(workload.notes),
    }


def checkpointing(workload: Workload, mtbf_s: float, cost_s: float) -> dict[str, float | None]:
    """Return the share of jobs that run for at least one Young/Daly period, by size class.

    These jobs write at least one checkpoint (section 6.1 of Du et al. 2024). If a class has no
    jobs, its share is None.

    Parameters
    ----------
    workload : Workload
        A workload in which all jobs are delay jobs that end.
    mtbf_s : float
        MTBF of the machine.
    cost_s : float
        Time to write a checkpoint.
    """
    run_s = _run_times_s(workload)
    if run_s is None:
        raise InputError("run times need Batsim's network model", "--mtbf", "delay jobs")
    sizes = np.array([job.n_nodes for job in workload.jobs], dtype=np.int64)
    periods_s = [young_daly_period_s(int(n), workload.n_nodes, mtbf_s, cost_s) for n in sizes]
    writing = size_classes(sizes[run_s >= np.array(periods_s)], workload.n_nodes)
    return {
        name: writing[name] / count if count else None
        for name, count in size_classes(sizes, workload.n_nodes).items()
    }


def size_classes(sizes: npt.NDArray[np.int64], n_nodes: int) -> dict[str, int]:
    """Count jobs per size interval (Du et al. 2024, Table 2), and jobs of the entire machine."""
    full_size = sizes >= WHOLE_MACHINE * n_nodes
    counts, _ = np.histogram(sizes[~full_size], bins=[*SIZE_BOUNDS, np.inf])
    labels = [
        f"[{low}, {high})" if high else f">= {low}"
        for low, high in zip(SIZE_BOUNDS, [*SIZE_BOUNDS[1:], 0], strict=True)
    ]
    return dict(zip(labels, counts.tolist(), strict=True)) | {"whole machine": int(full_size.sum())}


def _shapes(workload: Workload) -> dict[str, dict[str, int]]:
    """Return the number of jobs and the range of sizes for each kind of shape."""
    sizes: dict[str, list[int]] = {}
    jobs: Counter[str] = Counter()
    for job in workload.jobs:
        shape = shape_of(job.extra)
        kind = kind_of(shape)
        jobs[kind] += 1
        sizes.setdefault(kind, []).extend(extent(shape, job.n_nodes))
    return {
        kind: {"jobs": jobs[kind], "min": min(sizes[kind]), "max": max(sizes[kind])}
        for kind in KINDS
        if kind in jobs
    }


def _speedups(workload: Workload) -> dict[str, int]:
    """Return the number of jobs with each speedup model. Jobs without a speedup are ignored."""
    models = {
        name: model_of(speedup_of(profile))
        for name, profile in workload.profiles.items()
        if "speedup" in profile
    }
    counts = Counter(models[job.profile] for job in workload.jobs if job.profile in models)
    return dict(sorted(counts.items()))


def _or_nan(value: int | None) -> float:
    return float("nan") if value is None else float(value)


def _run_times_s(workload: Workload) -> Floats | None:
    try:
        of_profile = {
            name: duration_us(workload.profiles, name) / US_PER_S
            for name in {job.profile for job in workload.jobs}
        }
    except InputError:
        return None
    return np.array([of_profile[job.profile] for job in workload.jobs])


def _load(
    sizes: npt.NDArray[np.int64], run_s: Floats | None, n_nodes: int, period_s: float
) -> dict[str, float | None]:
    if run_s is None:
        return {"node_seconds": None, "stress": None}
    work = float(sizes @ run_s)
    return {"node_seconds": work, "stress": work / (n_nodes * period_s) if period_s else None}


def _statistics(values: Floats | None) -> dict[str, float] | None:
    if values is None or not len(values):
        return None
    return {
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": float(values.mean()),
        "median": float(np.median(values)),
    }


def _walltime_use(run_s: Floats | None, walltime_s: Floats) -> dict[str, Any]:
    bounded = ~np.isnan(walltime_s)
    use: dict[str, Any] = {"without_walltime": int((~bounded).sum())}
    if run_s is None or not bounded.any():
        return use | {"over_walltime": None if run_s is None else 0, "walltime_accuracy": None}
    share = run_s[bounded] / walltime_s[bounded]
    return use | {
        "over_walltime": int((share >= 1).sum()),
        "walltime_accuracy": {"mean": float(share.mean()), "median": float(np.median(share))},
    }
