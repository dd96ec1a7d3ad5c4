# SPDX-License-Identifier: Apache-2.0
"""Accounting logs of OpenPBS: ``MM/DD/YYYY HH:MM:SS;TYPE;ID;name=value ...``.

Source: OpenPBS's sources and the *PBS Administrator's Guide*, accounting log. A file contains one
or more days, in order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import tzinfo
from pathlib import Path

import numpy as np

from rebat.core.errors import InputError
from rebat.records.cells import Place
from rebat.records.clock import Clock
from rebat.records.dependencies import depend_attribute
from rebat.records.mapping import Fields, TextColumn, ValueColumn
from rebat.records.reader import read_rows
from rebat.records.sources import blocks_of, opened
from rebat.records.table import Problems, Rows
from rebat.records.values import count, duration_s, memory_mb, number

RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)\Z")
_PAIR = re.compile(r"([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_VNODE = re.compile(r"[(+]\s*([A-Za-z0-9._-]+)(?:\[\d+\])?:")
_HOST = re.compile(r"(?:^|\+)([A-Za-z0-9._-]+)(?:\[\d+\])?(?=/|\+|$)")
_ARRAY = re.compile(r"\d+\[\]")
_TASK = re.compile(r"\[\d+\]")

WALLTIME_EXCEEDED = -29
"""Exit status of a job that PBS killed at its walltime."""

NO_PROJECT = "_pbs_project_default"
"""Project of a job whose user set none."""

ARRAYS = "arrays, whose jobs have their own records"

Values = dict[str, str]


def _time(text: str) -> float:
    """Return a Unix time. The time 0 is unset."""
    return number(text) or math.nan


def _memory(text: str) -> float:
    return memory_mb(text.upper().removesuffix("B"))


FIELDS: Fields = {
    "id": (TextColumn(column="id"),),
    "raw": (TextColumn(column="raw"),),
    "state": (TextColumn(column="state"),),
    "user": (TextColumn(column="user"),),
    "account": (TextColumn(column="account"),),
    "queue": (TextColumn(column="queue"),),
    "hosts": (TextColumn(column="hosts"),),
    "submit": (ValueColumn(column="submit", convert=_time),),
    "eligible": (ValueColumn(column="etime", convert=_time),),
    "start": (ValueColumn(column="start", convert=_time),),
    "end": (ValueColumn(column="end", convert=_time),),
    "suspended": (ValueColumn(column="suspended", convert=number),),
    "walltime": (ValueColumn(column="Resource_List.walltime", convert=duration_s),),
    "nodes": (ValueColumn(column="nodes", convert=count),),
    "cpus": (ValueColumn(column="Resource_List.ncpus", convert=count),),
    "memory": (ValueColumn(column="Resource_List.mem", convert=_memory),),
    "dependency": (ValueColumn(column="depend", convert=depend_attribute, default=""),),
}
"""The columns of an attempt: the values of its last record. All times are Unix times."""

_COLUMNS = tuple(column.column for choices in FIELDS.values() for column in choices)


def read_pbs(path: Path, zone: tzinfo, strict: bool = False) -> Rows:
    """Read accounting logs of OpenPBS, plain or .gz.

    An E record ends a job. An R record ends an attempt. A job whose last record is an S record is
    still running. A job with only a Q record never started. Records of an entire array of jobs are
    dropped. The time between a z record (suspended) and an r record (resumed) is not part of the
    run time. Times are Unix times, except those of z and r records, which are in ``zone``.
    """
    problems, log = Problems(str(path), strict), _Log(zone)
    with opened(path) as text:
        blocks = blocks_of(log.attempts(text, problems), _COLUMNS)
        rows = read_rows(blocks, FIELDS, zone, problems, check_ids=False)
    rows.clock.kinds.add("epoch")
    rows.facts["submitted_once"] = True
    rows.dropped += log.dropped
    rows = _checked(rows)
    rows.notes += problems.notes()
    if not len(rows):
        problems.check(0)
        raise InputError("contains no job", problems.where, "accounting records of OpenPBS")
    return rows


class _Log:
    """The jobs of a log whose last record has not been read yet."""

    def __init__(self, zone: tzinfo) -> None:
        self._clock = Clock(zone)
        self._last_s = 0.0
        self._suspended_s: dict[str, float] = {}
        self._since_s: dict[str, float] = {}
        self.queued: dict[str, tuple[int, Values]] = {}
        self.started: dict[str, tuple[int, Values]] = {}
        self.ended: set[str] = set()
        self.depends: dict[str, str] = {}
        self.dropped: Counter[str] = Counter()

    def attempts(self, text: Iterable[str], problems: Problems) -> Iterator[tuple[int, Values]]:
        """Yield the line and the values of each attempt."""
        for line, raw in enumerate(text, 1):
            match = RECORD.match(raw.rstrip("\r\n"))
            if not match:
                if raw.strip():
                    problems.add(line, "not an accounting record", "DATE TIME;TYPE;ID;...")
                continue
            stamp, kind, job, rest = match.groups()
            if kind in "zrER":
                self._suspend(job, self._at_s(stamp), kind == "z")
            values = {key: value.strip("\"'") for key, value in _PAIR.findall(rest)}
            earlier = "" if kind == "Q" else self.depends.get(job, "")
            self.depends[job] = values.get("depend", earlier)
            if _ARRAY.match(job) or "array_indices" in values:
                self.dropped[ARRAYS] += 1
            elif kind == "Q":
                self._requeued(job, values)
                self.queued[job] = line, values
            elif kind == "S":
                self.started[job] = line, values
                self._suspended_s.pop(job, None)
                self._since_s.pop(job, None)
            elif kind in "ER":
                self.started.pop(job, None)
                self.ended.add(job)
                yield (
                    line,
                    self._attempt(job, values, "REQUEUED" if kind == "R" else _state(values)),
                )
            elif kind in "DA":
                yield from self._ended_early(line, job, kind)
            elif kind not in "zr":
                self.dropped[f"type {kind}"] += 1
        yield from self._open()

    def _open(self) -> Iterator[tuple[int, Values]]:
        """Yield the attempts that still run, and the jobs that never started."""
        for job, (line, values) in self.started.items():
            self._suspend(job, self._last_s, False)
            yield line, self._attempt(job, values, "RUNNING")
        for job, (line, values) in self.queued.items():
            if job not in self.started and job not in self.ended:
                yield line, self._attempt(job, values, "PENDING")

    def _at_s(self, stamp: str) -> float:
        """Return the time of a record, or that of the record before if it is no date."""
        day, _, time = stamp.partition(" ")
        month, day, year = day.split("/")
        with suppress(InputError):
            self._last_s = self._clock.parsed(f"{year}-{month}-{day}T{time}")
        return self._last_s

    def _suspend(self, job: str, at_s: float, begins: bool) -> None:
        """Begin to count the suspended time of a job, or end to count it."""
        if begins:
            self._since_s.setdefault(job, at_s)
        elif job in self._since_s:
            length_s = max(at_s - self._since_s.pop(job), 0.0)
            self._suspended_s[job] = self._suspended_s.get(job, 0.0) + length_s

    def _requeued(self, job: str, values: Values) -> None:
        """Forget the end of an earlier job with this id, whose submission was another one."""
        earlier = self.queued.get(job)
        if earlier and earlier[1].get("ctime") != values.get("ctime"):
            self.ended.discard(job)

    def _ended_early(self, line: int, job: str, kind: str) -> Iterator[tuple[int, Values]]:
        """Yield a job that was deleted or aborted before its start."""
        reason = "deletions" if kind == "D" else "aborts"
        if job not in self.queued:
            self.dropped[f"{reason} of jobs without a Q record"] += 1
        elif job in self.started or job in self.ended:
            self.dropped[f"{reason} of started jobs"] += 1  # an E or R record will follow
        else:
            self.ended.add(job)
            yield line, self._attempt(job, self.queued[job][1], "CANCELLED")

    def _attempt(self, job: str, values: Values, state: str) -> Values:
        """Return the values of an attempt by the names of the columns.

        Only Q records contain dependencies. Those of an array hold for all its jobs.
        """
        hosts = _hosts(values)
        requested = values.get("Resource_List.nodect", "")
        project = values.get("project", "")
        return {
            **values,
            "id": job.split(".", 1)[0],
            "raw": job,
            "suspended": str(self._suspended_s.pop(job, 0.0)),
            "state": state,
            "hosts": ",".join(hosts),
            "submit": values.get("ctime") or values.get("qtime", ""),
            "nodes": str(len(hosts)) if hosts else requested,
            "account": values.get("account") or ("" if project == NO_PROJECT else project),
            "depend": self.depends.get(job) or self.depends.get(_TASK.sub("[]", job), ""),
        }


def _checked(rows: Rows) -> Rows:
    """Drop attempts that contradict themselves. Compute the run times."""
    start, end, submit = (rows.column(name) for name in ("start", "end", "submit"))
    place = Place(rows.where, rows.lines.tolist())
    early = InputError("the job ends before it starts", expected="end after start")
    for at in np.flatnonzero(end < start).tolist():
        place.reject_as(at, early)
    unset = InputError("the job has no submission time", expected="qtime or ctime")
    for at in np.flatnonzero(np.isnan(submit)).tolist():
        place.reject_as(at, unset)
    suspended = np.nan_to_num(rows.column("suspended"))
    rows.numbers["run"] = np.maximum(end - start - suspended, 0)
    rows.numbers["recorded_end"] = end
    return rows.taken(place.count(rows.problems))


def _hosts(values: Values) -> list[str]:
    """Return the hosts of an attempt. A vnode is replaced by its host."""
    names = _VNODE.findall(values.get("exec_vnode", ""))
    return list(dict.fromkeys(names or _HOST.findall(values.get("exec_host", ""))))


def _state(values: Values) -> str:
    text = values.get("Exit_status", "0")
    status = int(text) if re.fullmatch(r"-?\d{1,9}", text) else 0
    if status == WALLTIME_EXCEEDED:
        return "TIMEOUT"
    return "FAILED" if status else "COMPLETED"
