# SPDX-License-Identifier: Apache-2.0
"""Standard Workload Format (SWF) of the Parallel Workloads Archive.

Source: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers",
JSSPP 1999, and the archive's definition of version 2.2. Fields used, counted from 1: 1 job number,
2 submission (s), 3 wait (s), 4 run time (s), 5 allocated processors, 8 requested processors,
9 requested time (s), 11 status, 12 user, 15 queue, 17 preceding job, 18 think time after the end of
the preceding job (s). -1 means unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import tzinfo
from pathlib import Path

import numpy as np

from rebat.core.errors import InputError
from rebat.core.numbers import exactly
from rebat.records.cells import Place
from rebat.records.clock import EARLIEST_EPOCH_S, Floats
from rebat.records.mapping import CountColumn, Fields
from rebat.records.reader import read_rows
from rebat.records.sources import word_blocks
from rebat.records.table import Objects, Problems, Rows

COLUMNS = (
    "number", "submit", "wait", "run", "allocated", "cpu", "memory_kb", "requested", "walltime",
    "requested_memory", "status", "user", "group", "application", "queue", "partition", "after",
    "think",
)  # fmt: skip

PARTIAL_STATUSES = (2, 3, 4)
"""Status values of partial executions, whose records follow the summary record of their job."""

THINK_TIME = "think_time"
"""Field of a job: time in seconds from the end of the preceding job to its submission."""

PARTIAL = "PARTIAL"
"""State of an execution if the next execution continues its work."""

STATES = {
    0: "FAILED",
    1: "COMPLETED",
    2: PARTIAL,
    3: "COMPLETED",
    4: "FAILED",
    5: "CANCELLED",
}
"""Final state by status. If the status is unknown (-1), the state is unknown as well."""

FIELDS: Fields = {
    name: (CountColumn(column=name),)
    for name in (
        "number", "submit", "wait", "run", "allocated", "requested", "walltime", "status", "user",
        "queue", "after", "think",
    )
}  # fmt: skip

_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs|UnixStartTime):\s*(.*?)\s*\Z")
_NUMBER = re.compile(r"-?\d+|\d{1,3}(?:[,'\u00a0 ]\d{3})+\Z")


def read_swf(path: Path, zone: tzinfo, strict: bool = False) -> Rows:
    """Read a trace, plain or .gz. Times count from 1970 if the header states their start."""
    problems, comments = Problems(str(path), strict), list[str]()
    blocks = word_blocks(path, COLUMNS, ";", problems, comments)
    rows = _checked(read_rows(blocks, FIELDS, zone, problems))
    if not len(rows):
        problems.check(0)
        raise InputError("the trace contains no job", str(path), "lines of 18 numbers")
    header = _header(comments)
    _set_times(rows, header)
    size = header.get("MaxProcs", header.get("MaxNodes"))
    rows.facts["n_nodes" if isinstance(size, int) else "unclear_size"] = size
    rows.texts |= {
        "id": np.array([str(number) for number in rows.column("number").astype(int)], object),
        "user": _names(rows.numbers.pop("user")),
        "queue": _names(rows.numbers.pop("queue")),
        "state": np.array([STATES.get(c, "") for c in rows.column("status").tolist()], object),
    }
    _set_predecessors(rows)
    return rows


def _set_predecessors(rows: Rows) -> None:
    """State dependencies on preceding jobs as Slurm does. Think times without these are unset."""
    after, think = rows.numbers.pop("after"), rows.numbers.pop("think")
    follows = (after > 0) & ~is_partial(rows)
    if not follows.any():
        return
    names = (
        f"afterany:{number:.0f}" if has else "" for number, has in zip(after, follows, strict=True)
    )
    rows.texts["dependency"] = np.array([*names], dtype=object)
    rows.numbers["think"] = np.where(follows & (think > 0), think, np.nan)
    if n_think := int((rows.column("think") > 0).sum()):
        rows.notes.append(
            f"{exactly(n_think, 'job')} with a think time after the end of the preceding job: "
            "stated in the field think_time, but not simulated"
        )


def _header(comments: Iterable[str]) -> dict[str, int | str]:
    """Return the values in the comments: numbers, or texts that are not a single number."""
    values: dict[str, int | str] = {}
    for comment in comments:
        match = _HEADER.match(comment)
        if not match or not match[2]:
            continue
        name, text = match.groups()
        number = re.match(r"-?\d+", text) if name == "UnixStartTime" else _NUMBER.fullmatch(text)
        value = int(re.sub(r"[,'\u00a0 ]", "", number[0])) if number else f"{name} is {text[:40]!r}"
        if isinstance(value, str) or value >= 0:  # -1 means unknown
            values.setdefault(name, value)
    return values


def _checked(rows: Rows) -> Rows:
    place = Place(rows.where, rows.lines.tolist())
    number, submit = rows.column("number"), rows.column("submit")
    for at in np.flatnonzero((number != np.floor(number)) | (np.abs(number) > 2**53)).tolist():
        error = InputError(f"the job number is {number[at]:g}", expected="a whole number")
        place.reject_as(at, error)
    early = (submit < 0) | np.isnan(submit)
    for at in np.flatnonzero(early & ~is_partial(rows)).tolist():
        error = InputError(f"the submission time is {submit[at]:g}", expected="0 s or later")
        place.reject_as(at, error)
    return rows.taken(place.count(rows.problems))


def is_partial(rows: Rows) -> np.ndarray:
    """Return a mask of the records of partial executions."""
    return np.isin(rows.column("status"), PARTIAL_STATUSES)


def _set_times(rows: Rows, header: dict[str, int | str]) -> None:
    """Add the start of the trace to its times, unless the times already count from 1970."""
    start = header.get("UnixStartTime", 0)
    start_s = float(start) if isinstance(start, int) else 0.0
    submit = rows.column("submit")
    jobs = submit[~is_partial(rows)]
    if start_s > 0 and len(jobs) and jobs.min() >= EARLIEST_EPOCH_S:
        rows.notes.append(
            f"the submissions count from 1970, so UnixStartTime ({start_s:.0f}) is not added"
        )
        start_s = 0.0
        rows.facts["dated"] = True
    rows.facts["dated"] = start_s > 0 or bool((submit + start_s).max() >= EARLIEST_EPOCH_S)
    rows.numbers["submit"] = submit + start_s
    rows.numbers["start"] = _starts(rows, submit)


def _starts(rows: Rows, recorded: Floats) -> Floats:
    """Return the start times.

    If a partial execution has no submission time, its wait begins at the end of the previous
    execution.
    """
    wait, run, number = (rows.column(name) for name in ("wait", "run", "number"))
    starts_s = np.where(wait >= 0, rows.column("submit") + wait, np.nan)
    ends_s: dict[float, float] = {}
    for row in np.flatnonzero(is_partial(rows)).tolist():
        if recorded[row] < 0:
            starts_s[row] = ends_s.get(number[row], np.nan) + wait[row]
        ends_s[number[row]] = starts_s[row] + run[row]
    return starts_s


def _names(numbers: Floats) -> Objects:
    distinct, which = np.unique(numbers, return_inverse=True)
    names = [f"{number:.0f}" if number >= 0 else "" for number in distinct.tolist()]
    return np.array(names, dtype=object)[which]
