# SPDX-License-Identifier: Apache-2.0
"""A day of a small cluster, as in Rodríguez-Pascual et al. 2019.

Source: "Job migration in HPC clusters by means of checkpoint/restart", section 4.4. Run times and
degrees of parallelism are exponential. Arrivals are uniform over 24 hours. Jobs are added until
they request the given share of the cluster. The figures of the paper that show the means are not
available. Therefore, the defaults are chosen to reproduce the published shares of mixed nodes.

Job sets by day of submission, as in RR-9296, which builds them from a trace.

The jobs that are submitted on a day form a set. All jobs of a set are released at the start of the
day. Source: section 5.1 of Benoit, Le Fèvre, Raghavan, Robert and Sun, "Design and comparison of
resilient scheduling heuristics for parallel jobs", Inria RR-9296, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rebat.core.arrays import Ints
from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload, duration_us, rounded_us
from rebat.core.units import US_PER_S
from rebat.records.clock import zone_of
from rebat.workloads.build import delay_profiles
from rebat.workloads.load import load_workload
from rebat.workloads.trace import month_bounds_s

MARGIN_US = US_PER_S
"""Time added to all walltimes, because Batsim kills a job whose run time equals its walltime."""

ETERNAL_S = 1e9
"""Run time of eternal jobs, longer than any simulation."""

LEAST_ACCURACY = 1e-3

MAX_JOBS = 1_000_000

MAX_OVERHEAD = 1000.0


class ClusterDay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the workload.

    Parameters
    ----------
    load : float
        Core time requested by all jobs (the area, cores x time), in percent of the cluster's core
        time.
    nodes, cores : int
        Number of nodes, and of cores per node.
    hours : float
        Period of the arrivals.
    parallelism : float
        Mean of the exponential distribution of the number of cores of a job, before rounding up.
    length_s : float
        Mean run time in seconds.
    accuracy : float
        Run time / walltime, above 0 and up to 1.
    memory_mb : float
        Memory of each task.
    eternal : int
        Number of serial jobs without an end, which are submitted at time 0 in the partition
        'eternal'.
    overhead : float
        Run-time overhead of the checkpoint library, in percent (section 2.1: less than 1). It does
        not change the random numbers.
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
    overhead: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("nodes", 2**20), ("cores", 2**12)):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise InputError(f"is {value}", name, f"1 to {most}")
        positive = (
            ("load", 1000),
            ("hours", 1e5),
            ("parallelism", 1e6),
            ("length_s", 1e7),
            ("accuracy", 1),
        )
        for name, limit in positive:
            value = getattr(self, name)
            if not 0 < value <= limit:
                raise InputError(f"is {value:g}", name, f"above 0, up to {limit:g}")
        if self.accuracy < LEAST_ACCURACY:
            raise InputError(f"is {self.accuracy:g}", "accuracy", f"at least {LEAST_ACCURACY:g}")
        if not 0 <= self.overhead <= MAX_OVERHEAD:
            raise InputError(f"is {self.overhead:g}", "overhead", f"0 to {MAX_OVERHEAD:g}")
        for name in ("memory_mb", "eternal"):
            if not 0 <= getattr(self, name) <= MAX_JOBS:
                raise InputError(f"is {getattr(self, name):g}", name, f"0 to {MAX_JOBS}")

    @property
    def area_us(self) -> float:
        """Minimum area of the jobs, in core-microseconds."""
        return self.load / 100 * self.nodes * self.cores * self.hours * 3600 * US_PER_S


def cluster_day(seed: int, options: ClusterDay | None = None) -> Workload:
    """Return random jobs whose area reaches the requested load (see `ClusterDay`).

    Parameters
    ----------
    seed : int
        The same seed yields the same workload.
    """
    options = options or ClusterDay()
    n_cores = options.nodes * options.cores
    sizes, run_us = _drawn(seed, options, n_cores)
    run_us = np.rint(run_us * (1 + options.overhead / 100)).astype(np.int64)
    arrivals = _rng(seed, "arrivals").random(len(sizes)) * options.hours * 3600 * US_PER_S
    submit_us = np.sort(np.rint(arrivals).astype(np.int64))
    walltime_us = np.ceil(run_us / options.accuracy).astype(np.int64) + MARGIN_US
    codes, profiles = delay_profiles(run_us)
    names = [*profiles]
    extra = {"memory_mb": options.memory_mb}
    columns = np.column_stack([sizes, submit_us, walltime_us, codes]).tolist()
    jobs = [
        Job(str(number), size, at_us, limit_us, names[code], extra)
        for number, (size, at_us, limit_us, code) in enumerate(columns, 1)
    ]
    jobs += _eternal(options, profiles)
    note = (
        f"random day of {options.nodes} nodes of {options.cores} cores "
        f"after Rodríguez-Pascual et al. 2019, load {options.load:g} %, seed {seed}"
    )
    return Workload(f"cluster-day-{options.load:g}-{seed}", n_cores, tuple(jobs), profiles, (note,))


def _rng(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed, "workload", "cluster-day", purpose)


def _drawn(seed: int, options: ClusterDay, n_cores: int) -> tuple[Ints, Ints]:
    """Return the sizes and run times (us) of jobs whose total area reaches the load."""
    mean = options.parallelism * options.length_s * US_PER_S
    count = math.ceil(1.5 * options.area_us / mean) + 100
    if count > MAX_JOBS:
        raise InputError(
            f"load {options.load:g} needs about {count} jobs", expected=f"at most {MAX_JOBS}"
        )
    size_rng, time_rng = _rng(seed, "sizes"), _rng(seed, "run times")
    sizes, run_us = (np.zeros(0, dtype=np.int64) for _ in range(2))
    while True:  # one draw may not suffice, because sizes are limited to the machine
        drawn = np.ceil(size_rng.exponential(options.parallelism, count)).astype(np.int64)
        sizes = np.concatenate([sizes, np.clip(drawn, 1, n_cores)])
        drawn = rounded_us(time_rng.exponential(options.length_s, count))
        run_us = np.concatenate([run_us, np.maximum(drawn, US_PER_S)])
        areas = np.cumsum(sizes * run_us)
        if areas[-1] >= options.area_us:
            last = int(np.searchsorted(areas, options.area_us)) + 1
            return sizes[:last], run_us[:last]
        if len(sizes) > MAX_JOBS:
            raise InputError(
                f"load {options.load:g} needs more than {MAX_JOBS} jobs", expected="a lower load"
            )


def _eternal(options: ClusterDay, profiles: dict[str, dict[str, Any]]) -> list[Job]:
    if not options.eternal:
        return []
    profiles["eternal"] = {"type": "delay", "delay": ETERNAL_S}
    extra = {"memory_mb": options.memory_mb, "partition": "eternal", "eternal": True}
    return [
        Job(f"eternal-{number}", 1, 0, None, "eternal", extra)
        for number in range(1, options.eternal + 1)
    ]


DAY_US = 86_400 * US_PER_S


class DaySet(NamedTuple):
    """The jobs submitted on one day.

    Attributes
    ----------
    name : str
        The date, like ``"2020-01-31"``. If there are no calendar dates, a number: ``"day-0031"``.
    times_us : int array, shape (n,)
        Run times, in order of submission.
    sizes : int array, shape (n,)
        Numbers of nodes, in order of submission.
    n_nodes : int
        Number of nodes of the machine.
    """

    name: str
    times_us: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_nodes: int


def read_day_sets(
    path: Path, months: Sequence[str] | None = None, *, tz: str = "UTC", **options: Any
) -> list[DaySet]:
    """Return the day sets of a trace. Days without jobs have no set.

    Parameters
    ----------
    path : Path
        Any file that `load_workload` reads.
    months : sequence of str, optional
        Calendar months, like ``"2020-01"``. By default, days are periods of 24 h, and the first one
        begins at the first submission.
    tz : str
        Time zone of the days, and of dates without a time zone in the trace.
    **options
        See `rebat.workloads.trace.TraceOptions`.
    """
    if months is None:
        return day_sets(load_workload(path, **options))
    sets = []
    for month in dict.fromkeys(months):
        jobs = load_workload(path, months=month, tz=tz, origin="month", **options)
        sets += day_sets(jobs, month, tz)
    return sets


def day_sets(workload: Workload, month: str | None = None, tz: str = "UTC") -> list[DaySet]:
    """Split a workload by day of submission.

    Parameters
    ----------
    month : str, optional
        Month that begins at time 0 of the workload. Its days are calendar days. A day on which
        clocks change has 23 or 25 hours. If no month is set, all days have 24 hours, and are
        numbered from 1.
    tz : str
        Time zone of the month.
    """
    submit_us = np.array([job.submit_us for job in workload.jobs], np.int64)
    sizes = np.array([job.n_nodes for job in workload.jobs], np.int64)
    for job in (job for job in workload.jobs if job.n_nodes > workload.n_nodes):
        expected = f"at most {workload.n_nodes} nodes"
        raise InputError(f"requests {job.n_nodes} nodes", f"job {job.id}", expected)
    times_us = np.array(
        [duration_us(workload.profiles, job.profile) for job in workload.jobs], np.int64
    )
    if month is None:
        last = int(submit_us.max(initial=0)) // DAY_US + 1
        starts_us = np.arange(last) * DAY_US
        names = [f"day-{number + 1:04}" for number in range(last)]
    else:
        starts_us, names = _days_of(month, tz)
    day = np.searchsorted(starts_us, submit_us, side="right") - 1
    return [
        DaySet(names[k], times_us[day == k], sizes[day == k], workload.n_nodes)
        for k in np.unique(day).tolist()
    ]


def _days_of(month: str, tz: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return the date of each day, and its start relative to the start of the month."""
    first_s, after_s = month_bounds_s(month, tz)
    date = datetime.fromtimestamp(first_s, zone_of(tz))
    starts_us, names = [], []
    while date.timestamp() < after_s:
        starts_us.append(round((date.timestamp() - first_s) * US_PER_S))
        names.append(date.strftime("%Y-%m-%d"))
        date += timedelta(days=1)
    return np.array(starts_us, np.int64), names
