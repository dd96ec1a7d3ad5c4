# SPDX-License-Identifier: Apache-2.0
"""The output of ``sacct --json`` as rows of ``sacct -P``. Its keys differ between versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rebat.core.errors import InputError


def json_rows(lines: Iterable[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the fields of each job, with names as in parsable output.

    Raises
    ------
    InputError
        If the text is not the output of ``sacct --json``.
    """
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
