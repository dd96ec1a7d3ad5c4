# SPDX-License-Identifier: Apache-2.0
"""A day of a small cluster, as in Rodríguez-Pascual et al., "Job migration in HPC clusters by means
of checkpoint/restart", 2019, section 4.4.

Run times and degrees of parallelism are exponential, arrivals random over 24 hours, until the jobs
ask for a share of the cluster. The means stand in figures that are lost; the defaults give the
shares of mixed nodes that the paper prints.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.streams import stream
from rebat.core.units import US_PER_S
from rebat.workloads.build import delay_profiles

Ints = npt.NDArray[np.int64]

MARGIN_US = US_PER_S
"""Walltimes are so much above what the accuracy asks for: Batsim kills a job whose run time equals
its walltime."""

ETERNAL_S = 1e9
"""Eternal jobs last for longer than anybody simulates."""

LEAST_ACCURACY = 1e-3

MAX_JOBS = 1_000_000


class ClusterDay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for.

    Parameters
    ----------
    load : float
        Area of the jobs in percent of the cluster's core time.
    nodes, cores : int
        Nodes, and cores of each.
    hours : float
        Over which jobs arrive.
    parallelism : float
        Mean of the exponential that, rounded up, is a job's number of cores.
    length_s : float
        Mean run time.
    accuracy : float
        Run time / walltime, above 0 and up to 1.
    memory_mb : float
        Of each task.
    eternal : int
        Serial jobs without an end, in the partition 'eternal', from the beginning on.
    """

    load: float = 50.0
    nodes: int = 8
    cores: int = 16
    hours: float = 24.0
    parallelism: float = 2.0
    length_s: float = 1800.0
    accuracy: float = 1.0
    memory_mb: float = 100.0
    eternal: int = 0

    def __post_init__(self) -> None:
        for name, most in (("nodes", 2**20), ("cores", 2**12)):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise InputError(f"is {value}", name, f"1 to {most}")
        positive = (("load", 1000), ("hours", 1e5), ("parallelism", 1e6), ("length_s", 1e7),
                    ("accuracy", 1))  # fmt: skip
        for name, limit in positive:
            value = getattr(self, name)
            if not 0 < value <= limit:
                raise InputError(f"is {value:g}", name, f"above 0, up to {limit:g}")
        if self.accuracy < LEAST_ACCURACY:
            raise InputError(f"is {self.accuracy:g}", "accuracy", f"at least {LEAST_ACCURACY:g}")
        for name in ("memory_mb", "eternal"):
            if not 0 <= getattr(self, name) <= MAX_JOBS:
                raise InputError(f"is {getattr(self, name):g}", name, f"0 to {MAX_JOBS}")

    @property
    def area_us(self) -> float:
        """Core-microseconds that the jobs ask for, at the least."""
        return self.load / 100 * self.nodes * self.cores * self.hours * 3600 * US_PER_S


def cluster_day(seed: int, asked: ClusterDay | None = None) -> Workload:
    """Jobs until their area is reached, the last one whole; see `ClusterDay`.

    Parameters
    ----------
    seed : int
        Same seed, same workload.
    asked : ClusterDay, optional

    Raises
    ------
    InputError
        For a load that takes more than a million jobs.
    """
    asked = asked or ClusterDay()
    n_cores = asked.nodes * asked.cores
    sizes, run_us = _drawn(seed, asked, n_cores)
    arrivals = _rng(seed, "arrivals").random(len(sizes)) * asked.hours * 3600 * US_PER_S
    submit_us = np.sort(np.rint(arrivals).astype(np.int64))
    walltime_us = np.ceil(run_us / asked.accuracy).astype(np.int64) + MARGIN_US
    names, profiles = delay_profiles(run_us.tolist())
    extra = {"memory_mb": asked.memory_mb}
    jobs = [
        Job(str(number), *row, extra)
        for number, row in enumerate(
            zip(sizes.tolist(), submit_us.tolist(), walltime_us.tolist(), names, strict=True), 1
        )
    ]
    jobs += _eternal(asked, profiles)
    note = (
        f"random day of {asked.nodes} nodes of {asked.cores} cores after Rodríguez-Pascual et al. "
        f"2019, load {asked.load:g} %, seed {seed}"
    )
    return Workload(f"cluster-day-{asked.load:g}-{seed}", n_cores, tuple(jobs), profiles, (note,))


def _rng(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed, "workload", "cluster-day", purpose)


def _drawn(seed: int, asked: ClusterDay, n_cores: int) -> tuple[Ints, Ints]:
    """Sizes and run times (microseconds) of as many jobs as make the area."""
    mean = asked.parallelism * asked.length_s * US_PER_S
    count = math.ceil(1.5 * asked.area_us / mean) + 100
    if count > MAX_JOBS:
        raise InputError(f"some {count} jobs make this load", expected=f"up to {MAX_JOBS}")
    size_rng, time_rng = _rng(seed, "sizes"), _rng(seed, "run times")
    sizes, run_us = (np.zeros(0, dtype=np.int64) for _ in range(2))
    while True:  # a machine may be so small that its jobs are
        drawn = np.ceil(size_rng.exponential(asked.parallelism, count)).astype(np.int64)
        sizes = np.concatenate([sizes, np.clip(drawn, 1, n_cores)])
        drawn = np.rint(time_rng.exponential(asked.length_s, count) * US_PER_S).astype(np.int64)
        run_us = np.concatenate([run_us, np.maximum(drawn, US_PER_S)])
        areas = np.cumsum(sizes * run_us)
        if areas[-1] >= asked.area_us:
            last = int(np.searchsorted(areas, asked.area_us)) + 1
            return sizes[:last], run_us[:last]
        if len(sizes) > MAX_JOBS:
            raise InputError(f"over {MAX_JOBS} jobs make this load", expected="less of a load")


def _eternal(asked: ClusterDay, profiles: dict[str, dict[str, Any]]) -> list[Job]:
    if not asked.eternal:
        return []
    profiles["eternal"] = {"type": "delay", "delay": ETERNAL_S}
    extra = {"memory_mb": asked.memory_mb, "partition": "eternal", "eternal": True}
    return [
        Job(f"eternal-{number}", 1, 0, None, "eternal", extra)
        for number in range(1, asked.eternal + 1)
    ]
