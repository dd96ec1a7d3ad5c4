# SPDX-License-Identifier: Apache-2.0
"""Reader of jobs.csv of Batsim or rebat, also if some of its columns are missing.

Times are read as integers in microseconds, the precision of the file (``%.6f``). Any invalid value
is an error, which names the file and line. `rebat.results.validate` checks whether the rows are
consistent.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.batsim5 import local
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
from rebat.core.jobs import PROBES
from rebat.core.nodes import NodeSet, parse_intervals
from rebat.core.numbers import counted
from rebat.core.units import MAX_SECONDS, US_PER_S, to_us
from rebat.results.files.tables import RowReader, row_reader

REQUIRED = ("job_id", "final_state", "starting_time", "finish_time", "allocated_resources")

OPTIONAL_TIMES = {
    "submission_time": "submit_us",
    "requested_time": "walltime_us",
    "execution_time": "run_us",
    "waiting_time": "wait_us",
    "turnaround_time": "flow_us",
}
"""The field of a row for each column. If the file or the row has no value, the field is None."""

STATES = (
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED",
    "REJECTED",
)

SUCCESS, FAILED, WALLTIME, KILLED, REJECTED = STATES

MAX_STRETCH = MAX_SECONDS * US_PER_S
"""The stretch of a job with the longest flow and a run time of one microsecond."""

NULL_RUN_US = 10
"""The run time that Batsim writes for a job that starts and ends at the same time."""


class JobRecord(msgspec.Struct, frozen=True):
    """A row: an execution of a job, or a rejected job (no start, no end, no nodes).

    If a column is missing, its field is None, or '' for ``workload``. ``walltime_us`` is also None
    for jobs without a walltime. ``walltime_listed`` states whether the file contains a walltime for
    the job. ``duplicate_node`` is a node that the row lists twice, or None.
    """

    line: int
    workload: str
    job_id: str
    state: str
    start_us: int | None
    end_us: int | None
    nodes: NodeSet
    n_nodes: int | None = None
    submit_us: int | None = None
    walltime_us: int | None = None
    run_us: int | None = None
    wait_us: int | None = None
    flow_us: int | None = None
    walltime_listed: bool = False
    profile: str | None = None
    success: bool | None = None
    stretch: float | None = None
    duplicate_node: int | None = None

    @property
    def key(self) -> str:
        """The id as in Batsim's protocol, ``w0!12``."""
        return f"{self.workload}!{self.job_id}" if self.workload else self.job_id

    @property
    def ran(self) -> bool:
        """Whether the job was started."""
        return self.start_us is not None

    @property
    def left_us(self) -> int | None:
        """The time at which the job releases its nodes.

        This is the end of the job, or its start if the run time is `NULL_RUN_US`.
        """
        if self.start_us is None or self.end_us is None:
            return self.end_us
        return self.start_us if self.end_us - self.start_us == NULL_RUN_US else self.end_us

    @property
    def held_us(self) -> int | None:
        """The duration for which the job held nodes, up to `left_us`, or None if it held none."""
        left_us = self.left_us
        return None if self.start_us is None or left_us is None else left_us - self.start_us


_MEANS = ("mean_waiting_time", "mean_turnaround_time", "mean_slowdown", "success_rate")
"""Columns of schedule.csv that are means over all rows of jobs.csv."""


class JobsFile(msgspec.Struct, frozen=True):
    """The rows of a jobs.csv in the order of the file, and the path of the file."""

    path: Path
    records: list[JobRecord]
    n_probes: int = 0
    """Number of rows of probe jobs (`rebat.core.jobs.PROBES`), which ``records`` omits."""

    @property
    def size(self) -> str:
        """The number of rows, in words."""
        rows = counted(len(self.records), "row")
        probes = f", without {counted(self.n_probes, 'probe')} of rebat serve"
        return rows + (probes if self.n_probes else "")

    def totals(self) -> dict[str, float]:
        """Return the totals of Batsim's schedule.csv that the probe jobs change, without them.

        If there are no probes, or no schedule.csv next to the jobs.csv, there are no totals.
        """
        path = self.path.with_name(self.path.name.replace("jobs.csv", "schedule.csv"))
        if not self.n_probes or not path.is_file() or path == self.path:
            return {}
        with row_reader(path) as reader:
            row = dict(zip(next(reader, []), next(reader, []), strict=False))
        n_jobs = len(self.records)
        share = n_jobs / (n_jobs + self.n_probes) if n_jobs else 1.0
        try:
            names = ("nb_jobs", "nb_jobs_rejected", *_MEANS)
            values = {name: _number(row, name, math.inf, "a total") for name in names}
        except InputError as error:
            raise error.at(str(path)) from None
        return {
            name: value / share if name in _MEANS else value - self.n_probes
            for name, value in values.items()
            if value is not None
        }

    def at(self, record: JobRecord) -> str:
        """Return file and line of a row."""
        return f"{self.path}:{record.line}"

    @property
    def unique_ids(self) -> bool:
        """Whether job ids without the name of the workload are unique."""
        return len({record.job_id for record in self.records}) == len(self.records)

    def repeated(self) -> list[str]:
        """Return the keys that occur in more than one row."""
        counts = Counter(record.key for record in self.records)
        return [key for key, count in counts.items() if count > 1]


def find_jobs_file(path: Path) -> Path:
    """Return the job table of a path: the file itself, or the table in the folder of a run.

    A folder written by ``rebat run`` is also accepted if it contains only one policy.
    """
    if not path.is_dir():
        return path
    own = [
        path / name
        for name in ("jobs.csv", "jobs.csv.gz", "jobs.parquet")
        if (path / name).is_file()
    ]
    named = [p for p in sorted(path.glob("*_jobs.csv*")) if not p.name.startswith("rebat_")]
    of_policies = [*path.glob("*/jobs.csv"), *path.glob("*/jobs.parquet")]
    tables = own or named or sorted(of_policies)
    if len(tables) == 1:
        return tables[0]
    if own or named:
        names = ", ".join(file.name for file in tables)
        problem = f"contains {len(tables)} files with jobs: {names}"
        raise InputError(problem, str(path), "one of these files")
    if tables:
        policies = ", ".join(file.parent.name for file in tables)
        problem = f"contains runs of {len(tables)} policies: {policies}"
        raise InputError(
            problem, str(path), f"the folder of one policy, such as {tables[0].parent}"
        )
    raise InputError(
        "the folder contains no table of jobs", str(path), "one jobs.csv or *_jobs.csv"
    )


def read_jobs(path: Path) -> JobsFile:
    """Read a jobs.csv, plain or .gz, or the jobs.csv in a folder.

    Probe jobs of `rebat serve` are omitted.
    """
    path = find_jobs_file(Path(path))
    with row_reader(path) as reader:
        try:
            rows = [*_records(reader, str(path))]
            records = [row for row in rows if row.workload != PROBES]
            return JobsFile(path, records, len(rows) - len(records))
        except csv.Error as error:
            raise InputError(f"invalid CSV: {error}", str(path), "Batsim's jobs.csv") from None


def _records(reader: RowReader, where: str) -> Iterator[JobRecord]:
    header = [name.strip() for name in next(reader, [])]
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        problem = f"has no column {', '.join(missing)}"
        raise InputError(problem, f"{where}:1", "the header of Batsim's jobs.csv")
    for fields in reader:
        if not fields:
            continue
        place = f"{where}:{reader.line_num}"
        if len(fields) != len(header):
            expected = f"{len(header)} fields, as in the header"
            raise InputError(f"has {len(fields)} fields", place, expected)
        try:
            yield _record(dict(zip(header, fields, strict=True)), reader.line_num)
        except InputError as error:
            raise error.at(place) from None


def _record(row: dict[str, str], line: int) -> JobRecord:
    if not row["job_id"]:
        raise InputError("job_id is empty", expected="a job's id")
    if row["final_state"] not in STATES:
        state = row["final_state"][:40]
        raise InputError(f"final_state is {state!r}", expected=f"one of {', '.join(STATES)}")
    start_us, end_us = _time(row, "starting_time"), _time(row, "finish_time")
    if (start_us is None) != (end_us is None):
        empty = "starting_time" if start_us is None else "finish_time"
        raise InputError(f"only {empty} is empty", expected="both times or neither")
    times: dict[str, Any] = {field: _time(row, name) for name, field in OPTIONAL_TIMES.items()}
    walltime_listed = times["walltime_us"] is not None
    if walltime_listed and times["walltime_us"] < 0:
        times["walltime_us"] = None
    nodes, duplicate_node = _nodes(row["allocated_resources"])
    return JobRecord(
        line=line,
        workload=row.get("workload_name", ""),
        job_id=row["job_id"],
        state=row["final_state"],
        start_us=start_us,
        end_us=end_us,
        nodes=nodes,
        n_nodes=_size(row),
        walltime_listed=walltime_listed,
        profile=_profile(row),
        success=_success(row),
        stretch=_number(row, "stretch", MAX_STRETCH, "turnaround time over execution time"),
        duplicate_node=duplicate_node,
        **times,
    )


def _profile(row: dict[str, str]) -> str | None:
    """Return the name of the profile. (Batsim 5 puts the name of the workload in front of it.)"""
    workload = row.get("workload_name", "")
    return (
        local(row.get("profile", ""), workload) or None if workload else row.get("profile") or None
    )


def _time(row: dict[str, str], name: str) -> int | None:
    value = _number(row, name, MAX_SECONDS, "seconds")
    return None if value is None else to_us(value)


def _number(row: dict[str, str], name: str, most: float, expected: str) -> float | None:
    text = row.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= most:  # also NaN
        raise InputError(f"{name} is {text[:40]!r}", expected=expected)
    return value


def _success(row: dict[str, str]) -> bool | None:
    text = row.get("success", "").strip()
    if text not in ("", "0", "1"):
        raise InputError(f"success is {text[:40]!r}", expected="0 or 1")
    return None if not text else text == "1"


def _size(row: dict[str, str]) -> int | None:
    name = "requested_number_of_resources"
    text = row.get(name, "").strip()
    if not text:
        return None
    if not (text.isdecimal() and len(text) <= 9):
        raise InputError(f"{name} is {text[:40]!r}", expected="a whole number")
    return int(text)


def _nodes(text: str) -> tuple[NodeSet, int | None]:
    """Return the nodes in the text, and the first node that is listed twice (or None)."""
    pairs = sorted(parse_intervals(text))
    nodes = NodeSet.from_intervals(pairs)
    if len(nodes) and nodes.intervals[-1, 1] >= MAX_NODES:
        largest = int(nodes.intervals[-1, 1])
        raise InputError(
            f"allocated_resources names node {largest}", expected=f"nodes below {MAX_NODES}"
        )
    again = (first for (_, last), (first, _) in pairwise(pairs) if first <= last)
    return nodes, next(again, None)
