# SPDX-License-Identifier: Apache-2.0
"""Ids of jobs that are still to come: Batsim tells an id when the job is submitted, too late."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebat.core.attempts import check_ids
from rebat.core.errors import InputError
from rebat.core.events import SimulationBegan


class _Job(msgspec.Struct, gc=False):
    """A job of a workload file, its id alone."""

    id: int | str


class _File(msgspec.Struct, gc=False):
    """A workload file, its jobs alone."""

    jobs: list[_Job]


def check_workloads(event: SimulationBegan) -> None:
    """Refuse a workload of which a job has the id of another one's resubmission.

    The files are those that Batsim names. One that cannot be read here (Batsim may run in a
    container) is not checked, and nothing is where nothing can be resubmitted.

    Raises
    ------
    InputError
        With the file and the job.
    """
    if not event.config.get("dynamic-jobs-enabled"):
        return
    for file in event.workloads.values():
        try:
            check_ids(_ids(str(file)))
        except InputError as error:
            raise error.at(str(file)) from None


def _ids(file: str) -> list[str]:
    """The ids of a workload's jobs; none where the file is not at hand."""
    try:
        path = Path(file)
        if not path.is_file():
            return []
        return [str(job.id) for job in msgspec.json.decode(path.read_bytes(), type=_File).jobs]
    except (OSError, ValueError, RecursionError, msgspec.DecodeError):
        return []
