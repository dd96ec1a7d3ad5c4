# SPDX-License-Identifier: Apache-2.0
"""Early checks of workload files: ids of jobs, and the number of hosts.

Without them, invalid ids are detected only when jobs are submitted, and another number of hosts is
not detected.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from rebat.core.attempts import check_ids
from rebat.core.errors import InputError
from rebat.core.events import SimulationBegan
from rebat.core.formatting import counted

T = TypeVar("T", bound=msgspec.Struct)


class _Job(msgspec.Struct, gc=False):
    """The id of a job in a workload file."""

    id: int | str


class _File(msgspec.Struct, gc=False):
    """The jobs of a workload file."""

    jobs: list[_Job]


class _Machine(msgspec.Struct, gc=False):
    """The number of hosts of a workload file."""

    nb_res: int


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


def other_machines(event: SimulationBegan) -> Iterator[str]:
    """Yield a warning for each workload file with another number of hosts than the platform.

    Batsim's messages do not contain ``nb_res``. Therefore, files that cannot be read here are
    ignored.
    """
    for file in event.workloads.values():
        content = _content(str(file), _Machine)
        if content and content.nb_res != event.n_nodes:
            yield other_machine(event.n_nodes, str(file), content.nb_res)


def other_machine(n_hosts: int, workload: str, n_nodes: int) -> str:
    """Return the warning that a platform has another number of hosts than a workload."""
    return (
        f"the platform has {counted(n_hosts, 'host')}, but the workload {workload} is for "
        f"{n_nodes} (nb_res); the schedule will differ from that of 'rebat run'"
    )


def _ids(file: str) -> list[str]:
    """Return the ids of a workload's jobs. If the file cannot be read, return no ids."""
    content = _content(file, _File)
    return [str(job.id) for job in content.jobs] if content else []


def _content(file: str, kind: type[T]) -> T | None:
    """Return the content of a workload file, or None if the file cannot be read."""
    try:
        path = Path(file)
        return msgspec.json.decode(path.read_bytes(), type=kind) if path.is_file() else None
    except (OSError, ValueError, RecursionError, msgspec.DecodeError):
        return None
