# SPDX-License-Identifier: Apache-2.0
"""Executors: a function over many tasks, on processes of this machine, on Dask, on the jobs of a
batch system, or right here.

Each gives an outcome per task, as they finish. All but the last survive a worker that dies: its
task is tried again, then handed to ``lost``, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rebat.core.errors import unknown_name
from rebat.executors.cluster import on_cluster
from rebat.executors.on_dask import on_dask
from rebat.executors.processes import on_processes
from rebat.executors.resources import Lost, R, Resources, T, Work
from rebat.executors.systems import SYSTEMS


def inline(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Iterator[R]:
    """Outcomes one after the other in this process: for debuggers, profilers and tests."""
    return map(work, tasks)


Executor = Callable[[Sequence[Any], Work[Any, Any], Lost[Any, Any], Resources], Iterator[Any]]
EXECUTORS: dict[str, Executor] = {
    "processes": on_processes,
    "dask": on_dask,
    "slurm": partial(on_cluster, SYSTEMS["slurm"]),
    "pbs": partial(on_cluster, SYSTEMS["pbs"]),
    "sge": partial(on_cluster, SYSTEMS["sge"]),
    "lsf": partial(on_cluster, SYSTEMS["lsf"]),
    "inline": inline,
}


def executor(name: str) -> Executor:
    """The executor of that name; an unknown one lists the choices."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name]
