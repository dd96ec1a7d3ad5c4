# SPDX-License-Identifier: Apache-2.0
"""Standard Workload Format (SWF) of the Parallel Workloads Archive.

Source: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers",
JSSPP 1999, and the archive's definition of version 2.2. Fields used, counted from 1: 1 job number,
2 submission (s), 3 wait (s), 4 run time (s), 5 allocated processors, 8 requested processors,
9 requested time (s), 11 status, 12 user, 15 queue. -1 means unknown.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.files import read_text
from rebat.core.jobs import Workload
from rebat.workloads.columns import TraceColumns
from rebat.workloads.recorded import ImportedWorkload
from rebat.workloads.trace import placed, trace_options
from rebat.workloads.trace_schedule import PARTIAL, trace_schedule

N_FIELDS = 18
PARTIAL_STATUSES = (2, 3, 4)
"""Status values of partial executions, whose records follow the summary record of their job."""

EARLIEST_EPOCH_S = 5e8
"""Times above this value (1985) are Unix times, even if the trace omits UnixStartTime."""

_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs|UnixStartTime):\s*(-?\d+)")


def read_swf(path: Path, **options: Any) -> Workload:
    """Read a trace in the Standard Workload Format, plain or .gz.

    Parameters
    ----------
    path : Path
        The file.
    **options
        See `rebat.workloads.trace.TraceOptions`. The default of ``n_nodes`` is MaxProcs in the
        header, because sizes are processors. If MaxProcs is missing, it is MaxNodes.

    Returns
    -------
    Workload
        Jobs in order of submission with the job numbers of the trace, a delay profile per distinct
        run time, and notes on dropped and changed jobs.

    Raises
    ------
    InputError
        If the file is invalid; the error names file and line.
    """
    return import_swf(path, **options).workload


def import_swf(path: Path, schedule: bool = False, **options: Any) -> ImportedWorkload:
    """Read a trace as in `read_swf`. With ``schedule``, also return the recorded schedule.

    The schedule uses waiting times and status. The attempts of a job are its partial executions. If
    there are none, the job has one attempt. A node of the schedule is a processor. rebat assigns
    the node numbers.
    """
    chosen = trace_options(options)
    trace = _parse(Path(path))
    done = placed(trace, chosen)
    return ImportedWorkload(done.workload, trace_schedule(trace, done) if schedule else None)


def _parse(path: Path) -> TraceColumns:
    text = read_text(path, errors="replace")  # old traces have comments in Latin-1
    if "\0" in text:
        raise InputError("is not a text file", str(path), "a trace, plain or .gz")
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    header = _header(line for _, line in numbered if line.lstrip().startswith(";"))
    rows = [(n, line) for n, line in numbered if not line.lstrip().startswith(";")]
    if not rows:
        raise InputError("the trace contains no job", str(path), "lines of 18 numbers")
    lines = np.array([n for n, _ in rows], dtype=np.int64)
    table = _numbers(path, [line for _, line in rows], lines)
    trace = _trace(path, table, lines, header)
    partial = np.isin(table[:, 10], PARTIAL_STATUSES)
    return trace.marking(partial, "records of partial executions (status 2, 3, 4)")


def _header(comments: Any) -> dict[str, int]:
    values: dict[str, int] = {}
    for comment in comments:
        match = _HEADER.match(comment.lstrip())
        if match and int(match[2]) >= 0:  # -1 means unknown
            values.setdefault(match[1], int(match[2]))
    return values


def _numbers(path: Path, rows: list[str], lines: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Parse all rows together. If this fails, parse each line to find the line with the error."""
    try:
        table = np.loadtxt(rows, usecols=range(N_FIELDS), ndmin=2, comments=None)
    except ValueError:
        table = None
    if table is None or not np.isfinite(table).all():
        for line, row in zip(lines, rows, strict=True):
            _check_row(row, f"{path}:{line}")
        raise InputError("is not a table of numbers", str(path), "lines of 18 numbers")
    odd = np.flatnonzero((table[:, 0] != np.floor(table[:, 0])) | (np.abs(table[:, 0]) > 2**53))
    if len(odd):
        raise InputError(
            f"the job number is {table[odd[0], 0]:g}", f"{path}:{lines[odd[0]]}", "a whole number"
        )
    return table


def _check_row(row: str, where: str) -> None:
    fields = row.split()
    if len(fields) < N_FIELDS:
        raise InputError(f"has {len(fields)} fields", where, f"{N_FIELDS} fields in every line")
    for position, field in enumerate(fields[:N_FIELDS], 1):
        try:
            finite = bool(np.isfinite(float(field)))
        except ValueError:
            finite = False
        if not finite:
            raise InputError(f"field {position} is {field[:40]!r}", where, "a number")


def _trace(
    path: Path,
    table: npt.NDArray[np.float64],
    lines: npt.NDArray[np.int64],
    header: dict[str, int],
) -> TraceColumns:
    start_epoch_s = header.get("UnixStartTime", 0)
    submit_s = table[:, 1] + start_epoch_s
    partial = np.isin(table[:, 10], PARTIAL_STATUSES)
    if (early := np.flatnonzero((table[:, 1] < 0) & ~partial)).size:
        value = table[early[0], 1]
        raise InputError(
            f"the submission time is {value:g}", f"{path}:{lines[early[0]]}", "0 s or later"
        )
    return TraceColumns(
        name=path.name.removesuffix(".gz").removesuffix(".swf"),
        where=str(path),
        n_nodes=header.get("MaxProcs", header.get("MaxNodes")),
        dated=start_epoch_s > 0 or bool(submit_s.max() >= EARLIEST_EPOCH_S),
        lines=lines,
        ids=np.array([str(number) for number in table[:, 0].astype(np.int64).tolist()], object),
        submit_s=submit_s,
        start_s=_starts(table, submit_s, partial),
        requested=table[:, 7],
        allocated=table[:, 4],
        run_s=table[:, 3],
        walltime_s=table[:, 8],
        why_not=np.zeros(len(table), dtype=np.int64),
        users=_names(table[:, 11]),
        queues=_names(table[:, 14]),
        states=np.array([_STATES.get(code, "") for code in table[:, 10].tolist()], dtype=object),
    )


_STATES = {
    0: "FAILED",
    1: "COMPLETED",
    2: PARTIAL,
    3: "COMPLETED",
    4: "FAILED",
    5: "CANCELLED",
}
"""Final state by status. If the status is unknown (-1), the state is unknown as well."""


def _starts(
    table: npt.NDArray[np.float64],
    submit_s: npt.NDArray[np.float64],
    partial: npt.NDArray[np.bool_],
) -> npt.NDArray[np.float64]:
    """Return the start times.

    If a partial execution has no submission time, its wait begins at the end of the previous
    execution.
    """
    starts_s = np.where(table[:, 2] >= 0, submit_s + table[:, 2], np.nan)
    ends_s: dict[float, float] = {}
    for row in np.flatnonzero(partial).tolist():
        job, submitted, wait_s, run_s = table[row, :4].tolist()
        if submitted < 0:
            starts_s[row] = ends_s.get(job, np.nan) + wait_s
        ends_s[job] = starts_s[row] + run_s
    return starts_s


def _names(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.object_]:
    distinct, which = np.unique(numbers, return_inverse=True)
    names = [f"{number:.0f}" if number >= 0 else "" for number in distinct.tolist()]
    return np.array(names, dtype=object)[which]
