# SPDX-License-Identifier: Apache-2.0
"""What an executor is given: tasks are performed by so many workers, here or on a cluster."""

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
"""(task, reason) -> outcome of a task whose worker died."""
OnCrew = Callable[[int, str], None]
"""(workers, note): told how many workers there are, and what people should know of the rest."""


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a batch system, in which workers run.

    What is None or empty is as Dask's ``jobqueue.yaml`` says, or as it is by default.

    ``queue`` is Slurm's partition, ``account`` the project of SGE and LSF. ``memory`` (like
    '4 GiB') and ``cores``, one per worker, are a job's. ``extra`` are directives without the
    ``#SBATCH`` or the like, ``prologue`` lines of the job's script before its workers start.
    ``interface`` is the network on which the workers, and this process, are reached.
    """

    queue: str | None = None
    account: str | None = None
    walltime_s: float | None = None
    memory: str | None = None
    cores: int | None = None
    extra: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    local_directory: Path | None = None
    interface: str | None = None


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Where tasks are performed; each executor takes what it needs.

    0 ``workers`` are those of one job of a batch system. ``address`` is that of a Dask scheduler.
    ``folder``, which all nodes see, is for what batch systems leave. ``on_crew`` is told when
    workers come and go, by executors that wait for them.
    """

    workers: int = 1
    address: str | None = None
    jobs: Jobs = Jobs()
    folder: Path = Path()
    on_crew: OnCrew = lambda workers, note: None


def reason(error: BaseException) -> str:
    """Why a worker cannot go on, for people."""
    if isinstance(error, OSError):
        return f"cannot write: {error.strerror or error}"
    return one_line(error)
