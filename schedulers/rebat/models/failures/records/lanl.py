# SPDX-License-Identifier: Apache-2.0
"""Los Alamos National Laboratory's failure records of 1996 to 2005, as machine events.

Source: LA-UR-05-7318, "Failure data" (credit: Los Alamos National Laboratory). A line is a failure
of a node of a system, with the start and the end of the problem, to the minute.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.errors import InputError
from rebat.core.units import US_PER_S
from rebat.models.failures.events import MAX_NODE
from rebat.models.failures.records.record import Lines, Record, opened, us_between
from rebat.models.failures.spans import Span
from rebat.records.detect import LANL_COLUMNS
from rebat.records.problems import Problems

COLUMNS = LANL_COLUMNS
DATE = "%m/%d/%Y %H:%M"
SHORTEST_S = 60
"""Minimum duration of a failure: the times in the file are in whole minutes."""


class _Failure(NamedTuple):
    node: int
    down: datetime
    up: datetime
    n_nodes: int


def read_lanl(path: Path, system: int | None, strict: bool = False) -> Record:
    """Read the failures of one system. Time 0 is the start of its first failure.

    Nodes are numbered from zero (column ``nodenumz``). Overlapping or adjacent outages of a node
    are joined. The size of the machine is in the column ``nodes``. If the record contains larger
    node numbers (systems 11 and 14), the size is the largest node number plus 1. Lines without a
    node are dropped. No line of system 17 has a node.

    Parameters
    ----------
    path : Path
        The CSV file, plain, .gz or .xz.
    system : int or None
        Number of the system. It may be None if the file has only one system.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.

    Raises
    ------
    InputError
        If columns are missing, if more than a tenth of the rows is invalid (the error names the
        first), or if the system has no failures (the error lists the systems with failures).
    """
    lines, systems, problems = Lines(), Counter[str](), Problems(str(path), strict)
    with opened(path) as text:
        try:
            failures = list(_failures(csv.DictReader(text), system, lines, systems, problems))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path)) from None
    problems.check(len(failures))
    lines.dropped += problems.reasons()
    if not systems:
        raise InputError("contains no failures", str(path), "a row per failure")
    if not failures or (system is None and len(systems) > 1):
        problem = (
            "contains several systems" if system is None else f"system {system} has no failures"
        )
        names = ", ".join(sorted(systems, key=lambda name: (len(name), name)))
        raise InputError(problem, f"{path}: --system", f"one of: {names}")
    first = min(failure.down for failure in failures)
    n_nodes = max(max(failure.node + 1, failure.n_nodes) for failure in failures)
    spans = [_span(failure, first) for failure in failures]
    return lines.record(spans, first, n_nodes)


def _failures(
    rows: csv.DictReader[str],
    system: int | None,
    lines: Lines,
    systems: Counter[str],
    problems: Problems,
) -> Iterator[_Failure]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        expected = f"the columns {', '.join(COLUMNS)}"
        raise InputError(f"has no column {missing[0]!r}", f"{problems.where}:1", expected)
    for row in rows:
        name, has_node = _text(row, "System"), bool(_text(row, "nodenumz"))
        if has_node:
            systems[name] += 1
        if name != str(system) and system is not None:
            lines.dropped["of other systems"] += 1
        elif not has_node:
            lines.dropped["no node"] += 1
        else:
            try:
                failure = _failure(row)
            except InputError as error:
                problems.add(rows.line_num, error.problem, error.expected, error.expected or "")
                continue
            lines.taken["node"] += 1
            yield failure


def _failure(row: dict[str, Any]) -> _Failure:
    text = _text(row, "nodenumz")
    if not (_is_number(text) and int(text) <= MAX_NODE):
        raise InputError(f"nodenumz is {text[:40]!r}", expected=f"0 to {MAX_NODE}")
    down, up = (_date(row, name) for name in ("Prob Started", "Prob Fixed"))
    if up < down:
        raise InputError(
            "the failure ends before it starts", expected="Prob Fixed after Prob Started"
        )
    size = _text(row, "nodes") if "nodes" in row else ""
    return _Failure(int(text), down, up, int(size) if _is_number(size) else 0)


def _text(row: dict[str, Any], name: str) -> str:
    return (row[name] or "").strip()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 9


def _date(row: dict[str, Any], name: str) -> datetime:
    text = _text(row, name)
    try:
        return datetime.strptime(text, DATE)
    except ValueError:
        raise InputError(f"{name} is {text[:40]!r}", expected="like 6/21/2005 10:54") from None


def _span(failure: _Failure, first: datetime) -> Span:
    down_us, up_us = us_between(first, failure.down), us_between(first, failure.up)
    return Span(failure.node, down_us, max(up_us, down_us + SHORTEST_S * US_PER_S))
