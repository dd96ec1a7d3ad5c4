# SPDX-License-Identifier: Apache-2.0
"""Resources of an executor: its workers, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

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

    queue: str | None = None
    """Queue, or partition of Slurm."""
    account: str | None = None
    """Account (with SGE and LSF: project)."""
    walltime_s: float | None = None
    memory: str | None = None
    """Memory of the job, like '4 GiB'."""
    cores: int | None = None
    """Cores of the job, one per worker."""
    extra: tuple[str, ...] = ()
    """Additional directives, without the prefix ``#SBATCH`` or similar."""
    prologue: tuple[str, ...] = ()
    """Lines of the job script that run before the workers start."""
    local_directory: Path | None = None
    """Node-local folder for the temporary files of workers."""
    interface: str | None = None
    """Network interface between the workers and this process."""


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
