# SPDX-License-Identifier: Apache-2.0
"""Job sets by day of submission, as in RR-9296, which builds them from a trace.

The jobs that are submitted on a day form a set. All jobs of a set are released at the start of the
day. Source: section 5.1 of Benoit, Le Fèvre, Raghavan, Robert and Sun, "Design and comparison of
resilient scheduling heuristics for parallel jobs", Inria RR-9296, 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebat.core.errors import InputError
from rebat.core.jobs import Workload, duration_us
from rebat.core.units import US_PER_S
from rebat.records.clock import zone_of
from rebat.workloads.calendar import month_bounds_s
from rebat.workloads.load import load_workload

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
