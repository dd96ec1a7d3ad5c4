# SPDX-License-Identifier: Apache-2.0
"""Jobs of a training cluster: many small jobs, and few large jobs that use most of the time.

The shares of sizes and the mean run times fit published numbers of RSC-1 (Kokolis et al., HPCA
2025). More than 90 % of the jobs use at most 8 GPUs each. Together, these jobs use less than 10 %
of the GPU time. Jobs of 4,096 GPUs use 12 % of the GPU time. Run times are log-normal, with the
sigma of AcmeTrace (Hu et al., NSDI 2024).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, rounded_us
from rebat.workloads.build import delay_workload
from rebat.workloads.flexible_load import flex

SHARES = {
    1: 0.45015,
    2: 0.09,
    4: 0.08,
    8: 0.30,
    16: 0.032,
    32: 0.018,
    64: 0.011,
    128: 0.008,
    256: 0.005,
    512: 0.003,
    1024: 0.0017,
    2048: 0.0008,
    4096: 0.00035,
}
"""Share of the jobs by number of GPUs."""

SMALL_GPUS = 8
MEAN_H = (1.2, 4.0)
"""Mean run time in hours of jobs with at most `SMALL_GPUS` GPUs, and of larger jobs."""

SIGMA = 2.2
LONGEST_S = 7 * 86_400.0
LEAST_S = 1.0
WALLTIME_FACTOR = (1.2, 3.0)
"""Range of the uniform ratio of walltime to run time."""

FLAGSHIP = "flagship"
"""Id of the flagship job, a large job that is submitted at time 0."""

_STEPS = 60

Positive = Annotated[float, msgspec.Meta(gt=0)]


class TrainingCluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the workload.

    Parameters
    ----------
    nodes : int
        Number of nodes of the machine.
    gpus : int
        GPUs of a node. A job uses entire nodes.
    days : float
        Period of the arrivals.
    load : float
        Node time of the jobs, without the flagship, in percent of the node time of the machine.
    flagship : int
        Number of nodes of the flagship job, which is submitted at time 0. If 0, there is no
        flagship job.
    flagship_days : float
        Run time of the flagship job without failures.
    malleable : float
        Percent of the jobs that are malleable (`flex`). Their speedup is linear, as for jobs with
        data-parallel replicas.
    classes : int
        Number of priority classes. The class of a job rises with its size, as on RSC-1. If 1, jobs
        have no class.
    urgent : float
        Percent of the jobs that are in the highest class, independent of their size.
    """

    nodes: Annotated[int, msgspec.Meta(ge=1)] = 2000
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 8
    days: Positive = 30.0
    load: Annotated[float, msgspec.Meta(ge=0)] = 83.0
    flagship: Annotated[int, msgspec.Meta(ge=0)] = 0
    flagship_days: Positive = 30.0
    malleable: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    classes: Annotated[int, msgspec.Meta(ge=1, le=len(SHARES))] = 1
    urgent: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0


def training_cluster(seed: int, options: TrainingCluster | None = None) -> Workload:
    """Return the jobs of a training cluster.

    Arrivals are uniform over the days. Run times are log-normal, and at most 7 days. They are
    scaled so that the means of the drawn run times are exact. Sizes larger than the machine are
    left out.

    Parameters
    ----------
    seed : int
        The same seed yields the same workload.
    """
    options = options or TrainingCluster()
    if options.flagship > options.nodes:
        raise InputError(f"is {options.flagship}", "flagship", f"at most {options.nodes} nodes")
    if options.urgent and options.classes == 1:
        raise InputError("has no effect", "urgent", "classes of at least 2 as well")
    gpus, shares = _sizes(options)
    nodes = -(-gpus // options.gpus)
    mean_s = np.where(gpus <= SMALL_GPUS, *MEAN_H) * 3600
    target_s = options.load / 100 * options.nodes * options.days * 86_400
    n_jobs = round(target_s / float((nodes * mean_s) @ shares))
    if not n_jobs and not options.flagship:
        problem = f"load {options.load:g} is too low: the workload would contain no jobs"
        raise InputError(problem, expected="a higher load, or a flagship job")

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", "training-cluster", purpose)

    kind = rng("sizes").choice(len(gpus), size=n_jobs, p=shares)
    run_s = np.empty(n_jobs)
    draws = np.exp(SIGMA * rng("run times").standard_normal(n_jobs))
    for small in (True, False):
        chosen = (gpus[kind] <= SMALL_GPUS) == small
        run_s[chosen] = _with_mean(draws[chosen], MEAN_H[0 if small else 1] * 3600)
    run_us = rounded_us(run_s)
    factor = rng("walltimes").uniform(*WALLTIME_FACTOR, n_jobs)
    submit_s = np.sort(rng("arrivals").random(n_jobs)) * options.days * 86_400
    workload = delay_workload(
        f"training-cluster-{seed}",
        options.nodes,
        ids=[str(number) for number in range(1, n_jobs + 1)],
        sizes=nodes[kind],
        submit_us=rounded_us(submit_s),
        walltime_us=np.rint(run_us * factor).astype(np.int64),
        run_us=run_us,
        notes=[f"generated training cluster with {options.load:g} % load, seed {seed}"],
    )
    if options.classes > 1:
        classes = kind * options.classes // len(gpus)
        classes[rng("urgent").random(n_jobs) * 100 < options.urgent] = options.classes - 1
        workload = _with_classes(workload, classes.tolist())
    workload = _with_flagship(workload, options)
    if not options.malleable:
        return workload
    return flex(workload, malleable=options.malleable / 100, seed=seed, sigma=0.0)


def _sizes(options: TrainingCluster) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the sizes (in GPUs) that fit on the machine, and their shares of the jobs."""
    fitting = [gpus for gpus in SHARES if gpus <= options.nodes * options.gpus]
    shares = np.array([SHARES[gpus] for gpus in fitting])
    return np.array(fitting, dtype=np.int64), shares / shares.sum()


def _with_mean(draws: Floats, mean_s: float) -> Floats:
    """Return the draws scaled to this mean, but at most the maximum run time."""
    low, high = 0.0, 100 * mean_s
    for _ in range(_STEPS if len(draws) else 0):
        scale = (low + high) / 2
        above = np.clip(draws * scale, LEAST_S, LONGEST_S).mean() > mean_s
        low, high = (low, scale) if above else (scale, high)
    scaled: Floats = np.clip(draws * high, LEAST_S, LONGEST_S)
    return scaled


def _with_classes(workload: Workload, classes: list[int]) -> Workload:
    jobs = tuple(
        msgspec.structs.replace(job, extra=job.extra | {"priority_class": number})
        for job, number in zip(workload.jobs, classes, strict=True)
    )
    return msgspec.structs.replace(workload, jobs=jobs)


def _with_flagship(workload: Workload, options: TrainingCluster) -> Workload:
    if not options.flagship:
        return workload
    profile = {"type": "delay", "delay": options.flagship_days * 86_400}
    extra = {"priority_class": options.classes - 1} if options.classes > 1 else {}
    job = Job(FLAGSHIP, options.flagship, 0, None, FLAGSHIP, extra)
    return msgspec.structs.replace(
        workload,
        jobs=(job, *workload.jobs),
        profiles={FLAGSHIP: profile, **workload.profiles},
        notes=(*workload.notes, f"flagship job of {options.flagship} nodes"),
    )
