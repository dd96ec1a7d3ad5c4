# SPDX-License-Identifier: Apache-2.0
"""Accounting logs of OpenPBS: ``MM/DD/YYYY HH:MM:SS;TYPE;ID;name=value ...``.

Source: OpenPBS's sources and the *PBS Administrator's Guide*, accounting log. A file contains one
or more days, in order.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from pathlib import Path

from rebat.accounting.rows import Problems
from rebat.accounting.table import AttemptTable
from rebat.accounting.values import count, duration_s, memory_mb, number
from rebat.core.errors import InputError
from rebat.core.files import open_text

RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]);([^;]*);(.*)\Z")
_PAIR = re.compile(r"([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_VNODE = re.compile(r"[(+]\s*([A-Za-z0-9._-]+)(?:\[\d+\])?:")
_HOST = re.compile(r"(?:^|\+)([A-Za-z0-9._-]+)(?:\[\d+\])?(?=/|\+|$)")

WALLTIME_EXCEEDED = -29
"""Exit status of a job that PBS killed at its walltime."""

Fields = dict[str, str]


def read_pbs(path: Path, zone: tzinfo, strict: bool = False) -> AttemptTable:
    """Read accounting logs of OpenPBS, plain or .gz.

    An E record ends a job. An R record ends an attempt. A job whose last record is an S record is
    still running. A job with only a Q record never started. Times are Unix times, so ``zone`` is
    not used.

    Raises
    ------
    InputError
        If the file contains no job.
    """
    del zone
    where = str(path)
    table, problems = AttemptTable(where), Problems(where, strict)
    queued: dict[str, tuple[int, Fields]] = {}
    started: dict[str, tuple[int, Fields]] = {}
    ended: set[str] = set()
    with open_text(path, newline="\n", errors="replace") as text:
        for line, raw in enumerate(text, 1):
            match = RECORD.match(raw.rstrip("\r\n"))
            if not match:
                if raw.strip():
                    problems.add(line, "not an accounting record", "DATE TIME;TYPE;ID;...")
                continue
            kind, job, rest = match.groups()
            fields = {key: value.strip("\"'") for key, value in _PAIR.findall(rest)}
            if kind == "Q":
                queued[job] = line, fields
            elif kind == "S":
                started[job] = line, fields
            elif kind in "ER":
                started.pop(job, None)
                ended.add(job)
                _attempt(table, problems, line, job, fields, "REQUEUED" if kind == "R" else "")
            elif kind in "DA":
                _ended_early(table, problems, line, job, kind, queued, started, ended)
            else:
                table.dropped[f"type {kind}"] += 1
    _unfinished(table, problems, queued, started, ended)
    table.notes += problems.notes()
    if not len(table):
        raise InputError("contains no job", where, "accounting records of OpenPBS")
    return table


def _ended_early(
    table: AttemptTable,
    problems: Problems,
    line: int,
    job: str,
    kind: str,
    queued: dict[str, tuple[int, Fields]],
    started: dict[str, tuple[int, Fields]],
    ended: set[str],
) -> None:
    """Add a job that was deleted or aborted before its start."""
    reason = "deletions" if kind == "D" else "aborts"
    if job not in queued:
        table.dropped[f"{reason} of jobs without a Q record"] += 1
    elif job in started or job in ended:
        table.dropped[f"{reason} of started jobs"] += 1  # an E or R record will follow
    else:
        ended.add(job)
        _attempt(table, problems, line, job, queued[job][1], "CANCELLED")


def _unfinished(
    table: AttemptTable,
    problems: Problems,
    queued: dict[str, tuple[int, Fields]],
    started: dict[str, tuple[int, Fields]],
    ended: set[str],
) -> None:
    for job, (line, fields) in started.items():
        _attempt(table, problems, line, job, fields, "RUNNING")
    for job, (line, fields) in queued.items():
        if job not in started and job not in ended:
            if "array_indices" in fields:
                table.dropped["arrays, whose jobs have their own records"] += 1
            else:
                _attempt(table, problems, line, job, fields, "PENDING")


def _attempt(
    table: AttemptTable, problems: Problems, line: int, job: str, fields: Fields, state: str
) -> None:
    try:
        numbers = _numbers(fields)
        if numbers["end_s"] < numbers["start_s"]:
            raise InputError("the job ends before it starts", expected="end after start")
        if not numbers["submit_s"] > 0:
            raise InputError("the job has no submission time", expected="qtime or ctime")
    except InputError as error:
        problems.add(line, error.problem, error.expected)
        return
    hosts = _hosts(fields)
    if "exec_vnode" in fields or "exec_host" in fields:
        numbers["nodes"] = float(len(hosts)) or numbers["nodes"]
    table.add(
        line,
        numbers,
        {
            "job": job.split(".", 1)[0],
            "raw": job,
            "state": state or _state(fields),
            "user": fields.get("user", ""),
            "account": fields.get("account", ""),
            "partition": fields.get("queue", ""),
            "qos": "",
            "hosts": ",".join(hosts),
        },
    )


def _numbers(fields: Fields) -> dict[str, float]:
    start, end = number(fields.get("start", "")), number(fields.get("end", ""))
    return {
        "submit_s": number(fields.get("ctime") or fields.get("qtime", "")),
        "start_s": start,
        "end_s": end,
        "elapsed_s": end - start,
        "limit_s": duration_s(fields.get("Resource_List.walltime", "")),
        "nodes": count(fields.get("Resource_List.nodect", "")),
        "cpus": count(fields.get("Resource_List.ncpus", "")),
        "memory_mb": memory_mb(fields.get("Resource_List.mem", "").upper().removesuffix("B")),
    }


def _hosts(fields: Fields) -> list[str]:
    """Return the hosts of an attempt. A vnode is replaced by its host."""
    names = _VNODE.findall(fields.get("exec_vnode", ""))
    return list(dict.fromkeys(names or _HOST.findall(fields.get("exec_host", ""))))


def _state(fields: Fields) -> str:
    text = fields.get("Exit_status", "0")
    status = int(text) if re.fullmatch(r"-?\d{1,9}", text) else 0
    if status == WALLTIME_EXCEEDED:
        return "TIMEOUT"
    return "FAILED" if status else "COMPLETED"
