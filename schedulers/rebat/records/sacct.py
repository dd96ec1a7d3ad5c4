# SPDX-License-Identifier: Apache-2.0
"""Slurm's accounting: the output of ``sacct -P`` and ``sacct --json``.

Source: Slurm's manual pages *sacct* and *sacctmgr*, and tests with Slurm 22.05.

The output of ``sacct --json`` as rows of ``sacct -P``. Its keys differ between versions.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.numbers import exactly
from rebat.records.cells import Place
from rebat.records.clock import Clock, Floats
from rebat.records.dependencies import array_option, dependency_option
from rebat.records.foreign import EXPORT, FIRST_LINES, reject_foreign
from rebat.records.hosts import check_list, number_of
from rebat.records.mapping import Fields, TextColumn, TimeColumn, ValueColumn
from rebat.records.reader import read_rows
from rebat.records.slurm_rows import exported_header, slurm_blocks
from rebat.records.sources import Block, blocks_of, opened, without
from rebat.records.table import Problems, Rows
from rebat.records.values import (
    UNSET,
    count,
    duration_s,
    memory_mb,
    minutes_s,
    number,
    state_of,
)

MAX_ID = 64
"""Maximum length of a job id."""

_PLAIN_NUMBERS = frozenset(("elapsedraw", "priority", "timelimitraw"))
_COUNTS = frozenset(("nnodes", "allocnodes", "ncpus", "alloccpus"))

_PATTERNS = {
    "jobid": r"\d.*",
    "jobidraw": r"\d[\d.a-z+]*",
    "uid": r"\d*",
    "user": r"[^\s=/]*",
    "exitcode": r"(\d+:\d+)?",
    "derivedexitcode": r"(\d+:\d+)?",
    "alloctres": r"([a-z].*=.*)?",
    "reqtres": r"([a-z].*=.*)?",
    "nodelist": r"[^\s=/]*|None assigned",
    "reqnodes": r"\d*",
    "reqcpus": r"\d*",
    "reqmem": r"[\d.]*[KMGTP]?[cn]?",
    "partition": r"[^\s=/]*",
    "reservation": r"[^\s=/]*",
}
"""Patterns of the values of columns. They help to find delimiters inside names."""


def _hosts(text: str) -> str:
    if text == "None assigned" or text in UNSET:
        return ""
    check_list(text)
    return text


def _value(
    name: str, convert: Callable[[str], object], default: float | str = math.nan
) -> ValueColumn:
    return ValueColumn(column=name, convert=convert, default=default)


FIELDS: Fields = {
    "id": (TextColumn(column="jobid"),),
    "raw": (TextColumn(column="jobidraw"), TextColumn(column="jobid")),
    "cluster": (TextColumn(column="cluster"),),
    "state": (_value("state", state_of, ""),),
    "user": (TextColumn(column="user"), TextColumn(column="uid")),
    "account": (TextColumn(column="account"),),
    "queue": (TextColumn(column="partition"),),
    "qos": (TextColumn(column="qos"),),
    "hosts": (_value("nodelist", _hosts, ""),),
    "submit": (TimeColumn(column="submit", unit="any"),),
    "eligible": (TimeColumn(column="eligible", unit="any"),),
    "start": (TimeColumn(column="start", unit="any"),),
    "end": (TimeColumn(column="end", unit="any"),),
    "run": (_value("elapsedraw", number), _value("elapsed", duration_s)),
    "suspended": (_value("suspended", duration_s),),
    "walltime": (_value("timelimitraw", minutes_s), _value("timelimit", duration_s)),
    "nodes": (_value("nnodes", count), _value("allocnodes", count)),
    "cpus": (_value("alloccpus", count), _value("ncpus", count)),
    "memory": (_value("reqmem", memory_mb),),
    "dependency": (_value("submitline", dependency_option, ""),),
    "limit": (_value("submitline", array_option, ""),),
    "reservation": (TextColumn(column="reservation"),),
}
"""The columns of sacct, by their names in lower case. Times are Unix times or local times."""


def read_sacct(path: Path, zone: tzinfo, strict: bool = False) -> Rows:
    """Read the output of sacct, plain or .gz: parsable with any delimiter, or JSON.

    Parameters
    ----------
    zone : tzinfo
        Time zone of local times. Unix times need no zone.
    strict : bool
        Whether the first invalid line is an error. Otherwise, invalid lines are dropped and
        counted.
    """
    problems, dropped = Problems(str(path), strict), Counter[str]()
    with opened(path) as text:
        first = text.readline(1_000_000)
        if first.lstrip().startswith("{"):
            lines = [first, *text]
            reject_foreign("".join(lines[:FIRST_LINES]), str(path))
            blocks = blocks_of(json_rows(lines, str(path)))
        else:
            reject_foreign(first, str(path))
            blocks = _parsable(text, first, Clock(zone), problems)
        rows = read_rows(without(blocks, _steps, dropped), FIELDS, zone, problems, check_ids=False)
    rows.dropped += dropped
    rows = _checked(rows)
    rows.notes += [*problems.notes(), *_contradictions(rows), *_repeated_hours(rows.clock)]
    if not len(rows):
        notes = f" ({'; '.join(rows.notes)})" if rows.notes else ""
        raise InputError(f"contains no job{notes}", problems.where, "a row per job")
    return rows


def _steps(block: Block) -> list[str]:
    ids = block.columns.get("jobid") or block.columns["jobidraw"]
    return ["steps of jobs" if "." in str(job) else "" for job in ids]


_REQUIRED = {
    "JobID": frozenset({"jobid", "jobidraw"}),
    "Submit": frozenset({"submit"}),
    "Start": frozenset({"start"}),
    "End": frozenset({"end", "elapsed", "elapsedraw"}),
    "State": frozenset({"state"}),
    "NNodes": frozenset({"nnodes", "allocnodes", "nodelist"}),
}


def _parsable(text: IO[str], first: str, clock: Clock, problems: Problems) -> Iterator[Block]:
    where = problems.where
    if "\0" in first:
        raise InputError("is not a text file", where, "a dump of sacct -P")
    delimiter, names = exported_header(first, where, EXPORT, _REQUIRED)
    return slurm_blocks(text, delimiter, names, _plausibility(names, clock), problems)


def _plausibility(names: list[str], clock: Clock) -> Callable[[list[str]], bool]:
    """Return a function that checks whether the fields of a row match the column patterns."""
    checks: list[tuple[int, Callable[[str], object]]] = []
    for position, name in enumerate(names):
        if name in ("submit", "start", "end", "eligible"):
            checks.append((position, clock.parsed))
        elif name == "state":
            checks.append((position, state_of))
        elif name in _PLAIN_NUMBERS:
            checks.append((position, number))
        elif name in _COUNTS:
            checks.append((position, count))
        elif name in ("elapsed", "timelimit", "suspended"):
            checks.append((position, duration_s))
        elif name in _PATTERNS:
            checks.append((position, _matching(_PATTERNS[name])))

    def plausible(fields: list[str]) -> bool:
        try:
            for position, check in checks:
                check(fields[position])
        except InputError:
            return False
        return True

    return plausible


def _matching(pattern: str) -> Callable[[str], None]:
    compiled = re.compile(pattern)

    def check(text: str) -> None:
        if not compiled.fullmatch(text):
            raise InputError(
                f"invalid value {text[:40]!r}", expected="a value that fits the column"
            )

    return check


def _repeated_hours(clock: Clock) -> list[str]:
    if not clock.second:
        return []
    times = "local time is" if len(clock.second) == 1 else "local times are"
    return [
        f"{len(clock.second)} {times} in the hour that clocks repeat in autumn: the first of "
        "the two hours is used, unless only the second matches the run time of the job; to "
        "avoid this, export with SLURM_TIME_FORMAT=%s"
    ]


def _contradictions(rows: Rows) -> list[str]:
    """Return a note if numbers of nodes differ from the numbers of listed nodes."""
    lists, nodes = rows.host_lists, rows.column("nodes")
    listed = lists.sizes[lists.codes]
    lines = [
        int(rows.lines[at])
        for at in np.flatnonzero((listed > 0) & (listed != nodes)).tolist()
        if number_of(rows.text("hosts")[at]) != nodes[at]  # a list may contain a name twice
    ]
    if not lines:
        return []
    return [
        f"{exactly(len(lines), 'record')} in which NNodes differs from the number of nodes in "
        f"NodeList (first: line {lines[0]}): the workload uses NNodes, the recorded schedule uses "
        "NodeList"
    ]


def _checked(rows: Rows) -> Rows:
    """Drop rows that contradict themselves. Compute missing ends, run times and sizes."""
    ids, raws = rows.text("id"), rows.text("raw")
    rows.texts["raw"] = raws = np.where(raws == "", ids, raws)
    rows.texts["id"] = ids = np.where((ids == "") | (ids == raws), raws, ids)
    start, end, elapsed = (rows.column(name).copy() for name in ("start", "end", "run"))
    suspended = np.nan_to_num(rows.column("suspended"))
    submit = rows.column("submit")
    if rows.clock.second:
        start, end = _in_autumn(rows.clock, submit, start, end, elapsed + suspended)
    place = Place(rows.where, rows.lines.tolist())
    invalid = [
        at for at, raw in enumerate(raws.tolist()) if not raw[:1].isdigit() or len(raw) > MAX_ID
    ]
    for at in invalid:
        place.reject_as(at, InputError(f"invalid job id {raws[at][:40]!r}", expected="a number"))
    unset = InputError("the job has no submission time", expected="a time in column Submit")
    for at in np.flatnonzero(np.isnan(submit)).tolist():
        place.reject_as(at, unset)
    early = InputError("the job ends before it starts", expected="End after Start")
    late = start > end
    never = late & np.isin(rows.text("state"), ("CANCELLED", "DEADLINE"))
    for at in np.flatnonzero(late & ~never).tolist():
        place.reject_as(at, early)
    start[never] = np.nan
    open_ = np.isnan(end)  # the job still runs, or its end is not recorded
    rows.numbers["start"] = start
    rows.numbers["recorded_end"] = end
    rows.numbers["end"] = np.where(open_, start + elapsed + suspended, end)
    rows.numbers["run"] = np.where(np.isnan(elapsed), end - start - suspended, elapsed)
    rows.numbers["nodes"] = nodes = rows.column("nodes").copy()
    hosts = rows.text("hosts")
    for at in np.flatnonzero(np.isnan(nodes) & (hosts != "")).tolist():
        nodes[at] = float(number_of(hosts[at]))
    return rows.taken(place.count(rows.problems))


def _in_autumn(
    clock: Clock, submit: Floats, start: Floats, end: Floats, span: Floats
) -> tuple[Floats, Floats]:
    """Return starts and ends that match the run times of the jobs.

    If a time is in the hour that clocks repeat in autumn, it has two possible values.
    """
    firsts = np.array([*clock.second])
    for at in np.flatnonzero(np.isin(start, firsts) | np.isin(end, firsts)).tolist():
        starts, ends = (
            [time, clock.second[time]] if time in clock.second else [time]
            for time in (float(start[at]), float(end[at]))
        )
        for first, last in itertools.product(starts, ends):
            if first >= submit[at] and last - first == span[at]:
                start[at], end[at] = first, last
                break
    return start, end


def json_rows(lines: Iterable[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the fields of each job, with names as in parsable output."""
    try:
        document = msgspec.json.decode("".join(lines))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", where, "output of sacct --json") from None
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise InputError("contains no list 'jobs'", where, "output of sacct --json")
    for position, job in enumerate(jobs, 1):
        yield position, _fields(job if isinstance(job, dict) else {})


def _fields(job: dict[str, Any]) -> dict[str, str]:
    times = _inner(job, "time")
    state = _inner(job, "state").get("current")
    raw = str(_number(job.get("job_id")) or "")
    return {
        "jobid": _job_id(job, raw),
        "jobidraw": raw,
        "cluster": str(job.get("cluster") or ""),
        "user": str(job.get("user") or _inner(job, "association").get("user") or ""),
        "account": str(job.get("account") or ""),
        "partition": str(job.get("partition") or ""),
        "qos": str(job.get("qos") or ""),
        "submit": _text(times.get("submission")),
        "eligible": _text(times.get("eligible")),
        "start": _text(times.get("start")),
        "end": _text(times.get("end")),
        "elapsedraw": str(_number(times.get("elapsed")) or 0),
        "timelimitraw": _text(times.get("limit")),
        "state": str(state[0] if isinstance(state, list) and state else state or ""),
        "nnodes": _text(_count(job, "node") or job.get("allocation_nodes")),
        "ncpus": _text(_count(job, "cpu")),
        "reqmem": _text(_count(job, "mem")),
        "nodelist": str(job.get("nodes") or ""),
        "submitline": str(job.get("submit_line") or ""),
        "reservation": str(_inner(job, "reservation").get("name") or ""),
    }


def _inner(job: dict[str, Any], key: str) -> dict[str, Any]:
    value = job.get(key)
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> Any:
    """Return a number. Newer versions write ``{"set": true, "infinite": false, "number": 5}``."""
    if isinstance(value, dict):
        return value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value


def _text(value: Any) -> str:
    number = _number(value)
    return "" if number in (None, 0) else str(number)


def _count(job: dict[str, Any], kind: str) -> Any:
    """Return the allocated (or, if unknown, requested) number of nodes, cores or MB of a job."""
    tres = _inner(job, "tres")
    for key in ("allocated", "requested"):
        rows = tres.get(key)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and row.get("type") == kind and row.get("count"):
                return row["count"]
    return None


def _job_id(job: dict[str, Any], raw: str) -> str:
    array, het = _inner(job, "array"), _inner(job, "het")
    if _number(array.get("job_id")):
        task = _number(array.get("task_id"))
        return f"{_number(array['job_id'])}_{array.get('task') or '' if task is None else task}"
    if _number(het.get("job_id")):
        return f"{_number(het['job_id'])}+{_number(het.get('job_offset')) or 0}"
    return raw
