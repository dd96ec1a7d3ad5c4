# SPDX-License-Identifier: Apache-2.0
"""ALCF's public job logs: the CSV of DIM_JOB_COMPOSITE (Mira, Intrepid and other machines).

Source: Argonne Leadership Computing Facility, public data, files ``ANL-ALCF-DJC-*.csv``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.core.jobs import Workload
from rebat.workloads.calendar import zone
from rebat.workloads.columns import TraceColumns
from rebat.workloads.recorded import ImportedWorkload
from rebat.workloads.trace import placed, trace_options
from rebat.workloads.trace_schedule import trace_schedule

REQUIRED = (
    "COBALT_JOBID",
    "QUEUED_TIMESTAMP",
    "START_TIMESTAMP",
    "WALLTIME_SECONDS",
    "RUNTIME_SECONDS",
    "NODES_REQUESTED",
    "NODES_USED",
)

MACHINE_NODES = {"mira": 49152, "intrepid": 40960}
"""Number of nodes by MACHINE_NAME (Du et al. 2024, 5.2).

For other machines, ``n_nodes`` is required.
"""

_NAMES = ("MACHINE_NAME", "USERNAME_GENID", "QUEUE_NAME", "EXIT_STATUS")
"""Columns that may be missing."""

_NUMBERS = ("WALLTIME_SECONDS", "RUNTIME_SECONDS", "NODES_REQUESTED", "NODES_USED")


def read_alcf(path: Path, **options: Any) -> Workload:
    """Read an ALCF job log, plain or .gz.

    Parameters
    ----------
    path : Path
        The file.
    **options
        See `rebat.workloads.trace.TraceOptions`. The dates in the file have no time zone. ``tz``
        sets the zone. ``by="start"`` selects months by the start of the jobs, which is how the
        files are divided.

    Returns
    -------
    Workload
        Jobs in order of submission (QUEUED_TIMESTAMP), with their COBALT_JOBID as id.

    Raises
    ------
    InputError
        If the file is invalid; the error names file and line.
    """
    return import_alcf(path, **options).workload


def import_alcf(path: Path, schedule: bool = False, **options: Any) -> ImportedWorkload:
    """Read a log as in `read_alcf`. With ``schedule``, also return the recorded schedule.

    The schedule uses EXIT_STATUS, if this column is present. rebat assigns its node numbers.
    """
    chosen = trace_options(options)
    path = Path(path)
    with open_text(path) as text:
        try:
            rows = list(_rows(csv.reader(text), str(path), zone(chosen.tz)))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path)) from None
    if not rows:
        raise InputError("the log contains no job", str(path), "a line per job after the header")
    trace = _trace(path, rows)
    done = placed(trace, chosen)
    return ImportedWorkload(done.workload, trace_schedule(trace, done) if schedule else None)


Row = tuple[int, str, str, str, str, str, float, float, float, float, float, float]


def _rows(reader: Any, where: str, tz: tzinfo) -> Iterator[Row]:
    header = [name.strip() for name in next(reader, [])]
    column = {name: position for position, name in enumerate(header)}
    missing = [name for name in REQUIRED if name not in column]
    if missing:
        raise InputError(
            f"has no column {', '.join(missing)}", f"{where}:1", "the header of an ALCF job log"
        )
    for fields in reader:
        if fields:
            yield _row(fields, column, f"{where}:{reader.line_num}", reader.line_num, tz)


def _row(fields: list[str], column: dict[str, int], where: str, line: int, tz: tzinfo) -> Row:
    if len(fields) != len(column):
        raise InputError(f"has {len(fields)} fields", where, f"{len(column)} as in the header")
    job_id = fields[column["COBALT_JOBID"]].strip()
    if not job_id.isalnum():
        raise InputError(f"COBALT_JOBID is {job_id[:40]!r}", where, "a job number")
    names = (fields[column[name]].strip() if name in column else "" for name in _NAMES)
    dates = (
        _date_s(fields[column[name]], name, where, tz)
        for name in ("QUEUED_TIMESTAMP", "START_TIMESTAMP")
    )
    numbers = (_number(fields[column[name]], name, where) for name in _NUMBERS)
    return (line, job_id, *names, *dates, *numbers)  # type: ignore[return-value]


def _date_s(text: str, name: str, where: str, tz: tzinfo) -> float:
    try:
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=tz)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{name} is {text[:40]!r}", where, "YYYY-MM-DD HH:MM:SS") from None


def _number(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(f"{name} is {text[:40]!r}", where, "a number")
    return value


def _state(status: str) -> str:
    """Return the final state for an exit status. The state is empty if the status is unknown."""
    try:
        return "FAILED" if float(status) else "COMPLETED"
    except ValueError:
        return ""


def _trace(path: Path, rows: list[Row]) -> TraceColumns:
    lines, ids, machines, users, queues, statuses, *numbers = zip(*rows, strict=True)
    submit, start, walltime, run, requested, used = numbers
    n_nodes = {MACHINE_NODES.get(name.lower()) for name in machines}
    return TraceColumns(
        name=path.name.removesuffix(".gz").removesuffix(".csv"),
        where=str(path),
        # for logs of several machines, the caller sets the number of nodes
        n_nodes=n_nodes.pop() if len(n_nodes) == 1 else None,
        dated=True,
        lines=np.array(lines, dtype=np.int64),
        ids=np.array(ids, dtype=object),
        submit_s=np.array(submit),
        start_s=np.array(start),
        requested=np.array(requested),
        allocated=np.array(used),
        run_s=np.array(run),
        walltime_s=np.array(walltime),
        why_not=np.zeros(len(rows), dtype=np.int64),
        users=np.array(users, dtype=object),
        queues=np.array(queues, dtype=object),
        states=np.array([_state(status) for status in statuses], dtype=object),
    )
