# SPDX-License-Identifier: Apache-2.0
"""The table of executors.

An executor applies a function to many tasks: in local processes or threads, on Dask, in jobs of a
batch system, or in this process. It yields outcomes as they complete. If a worker dies, its task is
tried again. If this attempt also fails, the function ``lost`` receives the task and returns its
outcome. Other tasks are not affected. If an executor is closed before its end, it ends its workers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from rebat.core.errors import unknown_name
from rebat.executors.cluster import SYSTEMS
from rebat.executors.processes import on_processes
from rebat.executors.resources import Lost, R, Resources, T, Work
from rebat.executors.threads import on_threads


def inline(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Perform tasks one after another in this process, for debuggers, profilers and tests."""
    yield from map(work, tasks)


def _on_dask(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Run the executor for Dask. It is imported only now, because most commands use processes."""
    from rebat.executors.on_dask import on_dask

    return on_dask(tasks, work, lost, resources)


def _on_cluster(
    name: str, tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Run the executor for a batch system. It is imported only now."""
    from rebat.executors.cluster import on_cluster

    return on_cluster(SYSTEMS[name], tasks, work, lost, resources)


Executor = Callable[[Sequence[Any], Work[Any, Any], Lost[Any, Any], Resources], Generator[Any]]
EXECUTORS: dict[str, Executor] = {
    "processes": on_processes,
    "threads": on_threads,
    "dask": _on_dask,
    **{name: partial(_on_cluster, name) for name in SYSTEMS},
    "inline": inline,
}


def executor(name: str) -> Executor:
    """Return the executor with this name. For an unknown name, the error lists the choices."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name]
