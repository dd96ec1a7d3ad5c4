# SPDX-License-Identifier: Apache-2.0
"""Slurm's accounting: the output of ``sacct -P`` and ``sacct --json``.

Source: Slurm's manual pages *sacct* and *sacctmgr*, and tests with Slurm 22.05.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import IO

from rebat.accounting.hosts import check_list, names_of
from rebat.accounting.rows import Problems, Row, header_of, joined_rows
from rebat.accounting.sacct_json import json_rows
from rebat.accounting.table import AttemptTable
from rebat.accounting.values import (
    UNSET,
    Clock,
    count,
    duration_s,
    memory_mb,
    minutes_s,
    number,
    state_of,
)
from rebat.core.counted import counted
from rebat.core.errors import InputError
from rebat.core.files import open_text

EXPORT = (
    "SLURM_TIME_FORMAT=%s sacct -a -P -X -D -S 2024-01-01 -E now --delimiter=$'\\x1f' "
    "-o JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Start,End,ElapsedRaw,Suspended,State,"
    "NNodes,NCPUS,ReqMem,TimelimitRaw,NodeList,JobName,Priority > jobs.txt"
)
"""Command that writes the records of all jobs with all columns."""

EXPORT_EVENTS = (
    "SLURM_TIME_FORMAT=%s sacctmgr -P show event Start=2024-01-01 "
    "format=NodeName,Start,End,StateRaw,State,Reason > events.txt"
)
"""Command that writes the events of all nodes."""

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
}
"""Patterns of the values of columns. They help to find delimiters inside names."""

Convert = Callable[[str], float]

# possible names of each column, in order of preference
_TEXT = {
    "job": ("jobid",),
    "raw": ("jobidraw",),
    "state": ("state",),
    "user": ("user", "uid"),
    "account": ("account",),
    "partition": ("partition",),
    "qos": ("qos",),
    "hosts": ("nodelist",),
}
_TIMES = {"submit_s": "submit", "start_s": "start", "end_s": "end"}
_NUMBER: dict[str, tuple[tuple[str, Convert], ...]] = {
    "elapsed_s": (("elapsedraw", number), ("elapsed", duration_s)),
    "suspended_s": (("suspended", duration_s),),
    "limit_s": (("timelimitraw", minutes_s), ("timelimit", duration_s)),
    "nodes": (("nnodes", count), ("allocnodes", count)),
    "cpus": (("alloccpus", count), ("ncpus", count)),
    "memory_mb": (("reqmem", memory_mb),),
}


def read_sacct(path: Path, zone: tzinfo, strict: bool = False) -> AttemptTable:
    """Read the output of sacct, plain or .gz: parsable with any delimiter, or JSON.

    Parameters
    ----------
    path : Path
    zone : tzinfo
        Time zone of local times. Unix times need no zone.
    strict : bool
        Whether the first invalid line is an error. Otherwise, invalid lines are dropped and
        counted.

    Raises
    ------
    InputError
        If the file is not the output of sacct, or if required columns are missing.
    """
    with open_text(path, newline="\n", errors="replace") as text:
        first = text.readline(1_000_000)
        if first.lstrip().startswith("{"):
            rows = json_rows(itertools.chain([first], text), str(path))
            return _table(rows, Clock(zone), Problems(str(path), strict))
        return _parsable(text, first, Clock(zone), Problems(str(path), strict))


def _parsable(text: IO[str], first: str, clock: Clock, problems: Problems) -> AttemptTable:
    where = problems.where
    if "\0" in first:
        raise InputError("is not a text file", where, "a dump of sacct -P")
    delimiter, names = header_of(first, where, f"the output of: {EXPORT}")
    _check_columns(names, where)
    plausible = _plausibility(names, clock)
    rows = joined_rows(text, delimiter, names, plausible, problems)
    return _table(_named(rows, names), clock, problems)


def _check_columns(names: list[str], where: str) -> None:
    have = set(names)
    groups = (
        ({"jobid", "jobidraw"}, "JobID"),
        ({"submit"}, "Submit"),
        ({"start"}, "Start"),
        ({"end", "elapsed", "elapsedraw"}, "End"),
        ({"state"}, "State"),
        ({"nnodes", "allocnodes", "nodelist"}, "NNodes"),
    )
    missing = [label for choices, label in groups if not choices & have]
    if missing:
        problem = f"has no column {', '.join(missing)}; export again with: {EXPORT}"
        raise InputError(problem, f"{where}:1")


Fields = dict[str, str]


def _named(rows: Iterator[Row], names: list[str]) -> Iterator[tuple[int, Fields]]:
    for line, fields in rows:
        yield line, dict(zip(names, fields, strict=True))


def _plausibility(names: list[str], clock: Clock) -> Callable[[list[str]], bool]:
    """Return a function that checks whether the fields of a row match the column patterns."""
    checks: list[tuple[int, Callable[[str], object]]] = []
    for position, name in enumerate(names):
        if name in ("submit", "start", "end", "eligible"):
            checks.append((position, clock.seconds))
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


def _table(rows: Iterator[tuple[int, Fields]], clock: Clock, problems: Problems) -> AttemptTable:
    table = AttemptTable(problems.where)
    read: Callable[[Fields], tuple[dict[str, float], Fields]] | None = None
    for line, fields in rows:
        if read is None:
            read = _reader(set(fields), clock)
        if "." in (fields.get("jobid") or fields["jobidraw"]):
            table.dropped["steps of jobs"] += 1
            continue
        try:
            table.add(line, *read(fields))
        except InputError as error:
            problems.add(line, error.problem, error.expected)
    table.notes += problems.notes()
    table.notes += _contradictions(table)
    if clock.second:
        times = "local time is" if len(clock.second) == 1 else "local times are"
        table.notes.append(
            f"{len(clock.second)} {times} in the hour that clocks repeat in autumn: the first of "
            "the two hours is used, unless only the second matches the run time of the job; to "
            "avoid this, export with SLURM_TIME_FORMAT=%s"
        )
    if not len(table):
        notes = f" ({'; '.join(table.notes)})" if table.notes else ""
        raise InputError(f"contains no job{notes}", problems.where, "a row per job")
    return table


def _contradictions(table: AttemptTable) -> list[str]:
    """Return a note if numbers of nodes differ from the numbers of listed nodes."""
    pairs = list(zip(table.texts["hosts"], table.column("nodes").tolist(), strict=True))
    wrong = {(hosts, n) for hosts, n in set(pairs) if hosts and n != len(names_of(hosts))}
    lines = [line for line, pair in zip(table.lines, pairs, strict=True) if pair in wrong]
    if not lines:
        return []
    return [
        f"{counted(len(lines), 'record')} in which NNodes differs from the number of nodes in "
        f"NodeList (first: line {lines[0]}): the workload uses NNodes, the recorded schedule uses "
        "NodeList"
    ]


def _reader(have: set[str], clock: Clock) -> Callable[[Fields], tuple[dict[str, float], Fields]]:
    """Return a function that converts the fields of a row. ``have`` lists the available columns."""
    texts = [(to, name) for to, names in _TEXT.items() for name in names if name in have]
    times = [(to, name) for to, name in _TIMES.items() if name in have]
    numbers = [
        (to, *next(choice for choice in choices if choice[0] in have))
        for to, choices in _NUMBER.items()
        if have & {name for name, _ in choices}
    ]

    def read(fields: Fields) -> tuple[dict[str, float], Fields]:
        row = {to: fields[name] for to, name in reversed(texts)}
        row["state"] = state_of(row["state"])
        row["raw"] = row.get("raw") or row["job"]
        row["job"] = row.get("job") or row["raw"]
        if row["job"] == row["raw"]:
            row["job"] = row["raw"]  # a single object
        row["hosts"] = _hosts(row.get("hosts", ""))
        values = {to: clock.seconds(fields[name]) for to, name in times}
        values.update({to: convert(fields[name]) for to, name, convert in numbers})
        if clock.second:
            values.update(_in_autumn(values, {to: fields[name] for to, name in times}, clock))
        _check(row, values)
        return values, row

    return read


def _hosts(text: str) -> str:
    if text == "None assigned" or text in UNSET:
        return ""
    check_list(text)
    return text


def _in_autumn(values: dict[str, float], texts: Fields, clock: Clock) -> dict[str, float]:
    """Return the start and the end that match the run time of a job.

    If a time is in the hour that clocks repeat in autumn, it has two possible values.
    """
    starts, ends = (
        [values.get(name, math.nan), *_second(texts.get(name, ""), clock)]
        for name in ("start_s", "end_s")
    )
    span_s = values.get("elapsed_s", math.nan) + _suspended_s(values)
    for start, end in itertools.product(starts, ends):
        if start >= values["submit_s"] and end - start == span_s:
            return {"start_s": start, "end_s": end}
    return {}


def _second(text: str, clock: Clock) -> list[float]:
    return [clock.second[text]] if text in clock.second else []


def _suspended_s(values: dict[str, float]) -> float:
    suspended = values.get("suspended_s", 0.0)
    return 0.0 if math.isnan(suspended) else suspended


def _check(texts: Fields, values: dict[str, float]) -> None:
    """Check a row. If its end or its duration is missing, compute the missing value."""
    raw = texts["raw"]
    if not raw or not raw[0].isdigit() or len(raw) > 64:
        raise InputError(f"invalid job id {raw[:40]!r}", expected="a number")
    if math.isnan(values["submit_s"]):
        raise InputError("the job has no submission time", expected="a time in column Submit")
    start, end = values["start_s"], values.get("end_s", math.nan)
    elapsed = values.get("elapsed_s", math.nan)
    if start > end:
        if texts["state"] not in ("CANCELLED", "DEADLINE"):
            raise InputError("the job ends before it starts", expected="End after Start")
        values["start_s"] = start = math.nan
    if math.isnan(end):  # the job still runs, or its end is not recorded
        values["end_s"] = start + elapsed + _suspended_s(values)
    if math.isnan(elapsed):
        values["elapsed_s"] = end - start - _suspended_s(values)
    if math.isnan(values.get("nodes", math.nan)) and texts["hosts"]:
        values["nodes"] = float(len(names_of(texts["hosts"])))
