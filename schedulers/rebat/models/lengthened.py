# SPDX-License-Identifier: Apache-2.0
"""Workloads whose run times and walltimes include checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.distinct import Column, distinct
from rebat.core.errors import InputError
from rebat.core.job_table import Ints, Jobs
from rebat.core.jobs import Workload, delays_us_of
from rebat.core.units import FOREVER_US, US_PER_S, to_s


def check_delays(workload: Workload) -> None:
    """Raise InputError if the profile of a job allows no checkpoints. Only delays allow them."""
    jobs = Jobs.of(workload.jobs)
    for name in jobs.profile_names:
        kind = workload.profiles[name].get("type")
        if kind != "delay":
            problem = f"the profile type is {kind!r}, which allows no checkpoints"
            raise InputError(problem, f"job {jobs.first_of(name).id}", "a delay profile")


def checkpoint_times_us(counts: npt.NDArray[Any], cost_us: int) -> Ints:
    """Return the times (us) to write numbers of checkpoints, shape (n,)."""
    if (counts * float(cost_us) >= FOREVER_US).any():
        problem = f"the checkpoints of a job take more than {to_s(FOREVER_US):.0e} s"
        raise InputError(problem, expected="a longer MTBF, or cheaper checkpoints")
    return counts.astype(np.int64) * cost_us


def lengthened_workload(
    workload: Workload,
    fields_on: Callable[[int], dict[str, Any]],
    longer_us: Callable[[Ints, Column], Ints],
) -> Workload:
    """Return the workload with lengthened profiles and walltimes.

    Parameters
    ----------
    fields_on : callable
        Function of a number of nodes that returns the checkpoint fields of a profile.
    longer_us : callable
        Function of times (us) and numbers of nodes, both of shape (n,), that returns the longer
        times (us).
    """
    check_delays(workload)
    jobs, of_name = Jobs.of(workload.jobs), workload.profiles
    delays_us = delays_us_of([of_name[name] for name in jobs.profile_names])
    rows, codes = distinct(jobs.profile_codes, jobs.n_nodes)
    before, sizes = jobs.profile_codes[rows], jobs.n_nodes[rows]
    fields = {size: fields_on(size) for size in np.unique(sizes).tolist()}
    delays_s = longer_us(delays_us[before], sizes) / US_PER_S
    names = [jobs.profile_names[code] for code in before.tolist()]
    profiles = {
        f"{name}@{size}": {**of_name[name], "delay": delay_s, **fields[size]}
        for name, size, delay_s in zip(names, sizes.tolist(), delays_s.tolist(), strict=True)
    }
    walltime_us, limited = jobs.walltime_us.copy(), jobs.walltime_us >= 0
    walltime_us[limited] = longer_us(walltime_us[limited], jobs.n_nodes[limited])
    changed = jobs.changed(walltime_us, codes, [*profiles])
    return msgspec.structs.replace(workload, jobs=changed, profiles=profiles)
