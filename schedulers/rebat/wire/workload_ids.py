# SPDX-License-Identifier: Apache-2.0
"""Early check of job ids. Without it, invalid ids are detected only when jobs are submitted."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebat.core.attempts import check_ids
from rebat.core.errors import InputError
from rebat.core.events import SimulationBegan


class _Job(msgspec.Struct, gc=False):
    """The id of a job in a workload file."""

    id: int | str


class _File(msgspec.Struct, gc=False):
    """The jobs of a workload file."""

    jobs: list[_Job]


def check_workloads(event: SimulationBegan) -> None:
    """Check that no job of a workload has the id of a resubmission of another job.

    Batsim reports the names of the workload files. Batsim may run in a container; therefore, files
    that cannot be read here are ignored. If dynamic jobs are disabled, nothing is checked.

    Raises
    ------
    InputError
        If a job has the id of a resubmission. The error names the file and the first such job.
    """
    if not event.config.get("dynamic-jobs-enabled"):
        return
    for file in event.workloads.values():
        try:
            check_ids(_ids(str(file)))
        except InputError as error:
            raise error.at(str(file)) from None


def _ids(file: str) -> list[str]:
    """Return the ids of a workload's jobs. If the file cannot be read, return no ids."""
    try:
        path = Path(file)
        if not path.is_file():
            return []
        return [str(job.id) for job in msgspec.json.decode(path.read_bytes(), type=_File).jobs]
    except (OSError, ValueError, RecursionError, msgspec.DecodeError):
        return []
