# SPDX-License-Identifier: Apache-2.0
"""Resources of an executor: its workers, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from rebat.core import declared
from rebat.core.errors import one_line

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T], R]
Lost = Callable[[T, str], R]
"""Function that receives a task whose worker died and the reason, and returns the outcome."""
OnCrew = Callable[[int, str], None]
"""Callback that receives the number of connected workers and a note about missing workers."""


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a batch system that runs workers.

    If a value is None or empty, the value in Dask's ``jobqueue.yaml`` or the default of
    dask-jobqueue is used.
    """

    queue: Annotated[str | None, "Batch system: queue or partition of the jobs."] = None
    account: Annotated[str | None, "Batch system: account or project of the jobs."] = None
    walltime_s: Annotated[
        declared.Seconds | None,
        "--job-walltime",
        "Walltime of each batch job. When a batch job reaches its walltime, rebat submits another "
        "job.",
    ] = None
    memory: Annotated[
        str | None,
        "--job-memory",
        "Memory of each job, like '4 GiB' (default: 2 GiB per worker).",
        declared.extra(metavar="SIZE"),
    ] = None
    cores: Annotated[
        declared.Count | None,
        "--job-cores",
        "Number of cores of each job, one worker per core (default: 1).",
    ] = None
    extra: Annotated[
        tuple[str, ...],
        "--job-extra",
        "Additional directive in the job script, like '--constraint=skylake'; may be repeated.",
    ] = ()
    prologue: Annotated[
        tuple[str, ...],
        "--job-prologue",
        "Shell line that the job script runs before the workers start, like 'module load python'; "
        "may be repeated.",
    ] = ()
    local_directory: Annotated[
        Path | None,
        "--job-directory",
        "Node-local folder for the temporary files of workers.",
        declared.extra(file="folder"),
    ] = None
    interface: Annotated[
        str | None,
        "Network interface between nodes and this machine, like ib0 (default: the interface of the "
        "default route).",
    ] = None


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of an executor. Each executor uses some of the fields."""

    workers: int = 1
    """Number of workers. 0 means the number of workers of one job of the batch system."""
    address: str | None = None
    """Address of a Dask scheduler."""
    jobs: Jobs = Jobs()
    folder: Path = Path()
    """Folder, shared by all nodes, for files of the batch system."""
    on_crew: OnCrew = lambda workers, note: None
    """Function that is called when workers connect or disconnect."""


def reason(error: BaseException) -> str:
    """Return a readable reason why a worker cannot continue."""
    if isinstance(error, OSError):
        return f"cannot write: {error.strerror or error}"
    return one_line(error)
