# SPDX-License-Identifier: Apache-2.0
"""Spare nodes of each job: Figure 1a of Prabhakaran, Neumann and Wolf 2018."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.shapes import Malleable, fields_of
from rebat.models.speedup import SpeedupTable
from rebat.workloads.columns import counted
from rebat.workloads.flex import can_flex, scalable_profiles

EXPECTED = "a number of nodes, or a percentage such as 5%"


def n_own_spares(text: str, n_nodes: int) -> int:
    """Return the number of spare nodes of a job on ``n_nodes`` nodes. Percentages are rounded up.

    >>> n_own_spares("2", 30), n_own_spares("5%", 30)
    (2, 2)
    """
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise InputError(f"is {text!r}", "own spares", EXPECTED) from None
    if not 0 < number <= 2**31 or (not text.endswith("%") and number % 1):
        raise InputError(f"is {text!r}", "own spares", EXPECTED)
    return math.ceil(n_nodes * number / 100) if text.endswith("%") else int(number)


def with_own_spares(workload: Workload, spares: str) -> Workload:
    """Return the workload with spare nodes for each rigid job, up to the size of the machine.

    A job that needs n nodes requests n + s nodes. It can run on n to n + s nodes, always at the
    same speed. A scheduler with ``malleable=fixed`` starts it on n + s nodes. With
    ``react=replacement`` the job continues without interruption until it has lost more than s
    nodes. The spare nodes count as used by the job.

    Parameters
    ----------
    spares : str
        A number of nodes per job, or a percentage of the nodes that the job needs (rounded up).
    """
    n_own_spares(spares, 1)  # raises an error if the text is invalid
    scalable = scalable_profiles(workload)
    jobs, profiles, n_changed = [], dict(workload.profiles), 0
    for job in workload.jobs:
        request = min(job.n_nodes + n_own_spares(spares, job.n_nodes), workload.n_nodes)
        if request <= job.n_nodes or not can_flex(job, workload.n_nodes, scalable):
            jobs.append(job)
            continue
        name = f"{job.profile}-on-{job.n_nodes}"
        profiles[name] = workload.profiles[job.profile] | _constant(job.n_nodes)
        jobs.append(_widened(job, request, name))
        n_changed += 1
    note = f"{counted(n_changed)} with {spares} spare nodes each"
    notes = (*workload.notes, note)
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles, notes=notes)


def _constant(n_nodes: int) -> dict[str, Any]:
    return {"speedup": msgspec.to_builtins(SpeedupTable((n_nodes,), (1.0,)))}


def _widened(job: Job, request: int, profile: str) -> Job:
    extra = job.extra | fields_of(Malleable(job.n_nodes, request))
    return msgspec.structs.replace(job, n_nodes=request, profile=profile, extra=extra)
