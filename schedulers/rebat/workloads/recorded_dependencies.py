# SPDX-License-Identifier: Apache-2.0
"""Dependencies between the jobs of accounting records, and limits of their arrays.

The fields of the workload name jobs of the workload. A dependency or a limit that the record
contradicts is left out, because a user or an administrator may have changed it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.dependencies import KINDS, Condition, dependency_text
from rebat.core.job_table import Jobs
from rebat.core.numbers import exactly
from rebat.core.table import Column
from rebat.records.attempts import JoinedJobs
from rebat.records.table import Rows
from rebat.workloads.trace import PlacedTrace

Texts = npt.NDArray[np.object_]

_TASK = re.compile(r"(\d+)_\w+|(\d+\[)\d+\]")
_TASKS = re.compile(r"_(?:\*|\[.*\])\Z")


class RecordedDependencies(NamedTuple):
    """The jobs of a record that contains dependencies. The columns have an entry per job.

    Attributes
    ----------
    lines : dict
        Position of each job, by its line in the record.
    ids, raws : array of str
        Id that users see, and internal id of the batch system.
    dependency, limit : array of str
        Value of ``--dependency``, and limit of the array. Empty if there is none.
    submit_s, start_s, end_s : array
        First submission, first start and last end, in seconds. Unknown times are NaN.
    """

    lines: dict[int, int]
    ids: Texts
    raws: Texts
    dependency: Texts
    limit: Texts
    submit_s: Floats
    start_s: Floats
    end_s: Floats


def recorded_dependencies(table: Rows, jobs: JoinedJobs) -> RecordedDependencies | None:
    """Return the dependencies of the jobs of a record, or None if it contains none."""
    rows = jobs.last
    dependency, limit = (table.text(name)[rows] for name in ("dependency", "limit"))
    if not ((dependency != "") | (limit != "")).any():
        return None
    ends = np.cumsum(jobs.n_attempts)
    start_s = np.full(len(rows), np.nan)
    ran = jobs.n_attempts > 0
    start_s[ran] = table.column("start")[jobs.attempts[(ends - jobs.n_attempts)[ran]]]
    return RecordedDependencies(
        {line: at for at, line in enumerate(table.lines[rows].tolist())},
        table.text("id")[rows],
        table.text("raw")[rows],
        dependency,
        limit,
        jobs.submit_s,
        start_s,
        table.column("end")[rows],
    )


def preceding_jobs(table: Rows) -> RecordedDependencies | None:
    """Return the dependencies of a record with a row per job, or None if it contains none.

    A job with an unknown start started at its submission. A job with an unknown end ended then.
    """
    dependency = table.text("dependency")
    if not (dependency != "").any():
        return None
    submit_s = table.column("submit")
    start_s = np.where(np.isnan(table.column("start")), submit_s, table.column("start"))
    return RecordedDependencies(
        {line: at for at, line in enumerate(table.lines.tolist())},
        table.text("id"),
        table.text("id"),
        dependency,
        np.full(len(table), "", dtype=object),
        submit_s,
        start_s,
        start_s + np.maximum(np.nan_to_num(table.column("run")), 1e-6),
    )


def with_dependencies(done: PlacedTrace, record: RecordedDependencies | None) -> PlacedTrace:
    """Return the jobs of a workload with the fields ``dependency`` and ``array``."""
    if record is None:
        return done
    jobs, counts = Jobs.of(done.workload.jobs), Counter[str]()
    rows = [record.lines[line] for line in done.jobs.lines.tolist()]
    names = _Names(record, rows)
    fields: dict[int, dict[str, str]] = {}
    for at in np.flatnonzero(record.dependency[rows] != "").tolist():
        conditions = [*_conditions(record, rows, at, names, counts)]
        if conditions:
            texts = [Condition(kind, jobs.ids[other]) for kind, other in conditions]
            fields[at] = {"dependency": dependency_text(dict.fromkeys(texts))}
            counts["dependent"] += 1
    for name, tasks in _arrays(record, rows, counts):
        for at in tasks:
            fields[at] = {**fields.get(at, {}), "array": name}
    notes = (*done.workload.notes, *_notes(counts))
    workload = msgspec.structs.replace(done.workload, jobs=_changed(jobs, fields), notes=notes)
    return done._replace(workload=workload)


class _Names:
    """Positions of the jobs of a workload by the names that dependencies use."""

    def __init__(self, record: RecordedDependencies, rows: list[int]) -> None:
        self._record, self._rows = record, rows
        self._by_name: tuple[defaultdict[str, list[int]], ...] = (
            defaultdict(list), defaultdict(list), defaultdict(list)
        )  # fmt: skip
        by_array, by_id, by_raw = self._by_name
        for at, row in enumerate(rows):
            name = record.ids[row]
            if array := _array_of(name):
                by_array[array].append(at)
            by_id[name].append(at)
            by_raw[record.raws[row].split(".", 1)[0]].append(at)

    def jobs(self, name: str, at: int) -> list[int]:
        """Return the job with a name, or all tasks of the array with this name.

        If the batch system used the name several times, return the last one submitted before job
        ``at``.
        """
        submit_s, plain = self._record.submit_s, _TASKS.sub("", name).removesuffix("]")
        latest_s = submit_s[self._rows[at]]
        for key, by_name in zip((plain, name, name), self._by_name, strict=True):
            others = [other for other in by_name.get(key, ()) if other != at]
            times = [submit_s[self._rows[other]] for other in others]
            last_s = max((time for time in times if time <= latest_s), default=None)
            if last_s is not None:
                return [other for other, s in zip(others, times, strict=True) if s == last_s]
        return []


def _array_of(name: str) -> str:
    """Return the name of the array of a task, or an empty text for other jobs.

    >>> _array_of("12_3"), _array_of("12[3]"), _array_of("12")
    ('12', '12[', '')
    """
    match = _TASK.fullmatch(name)
    return "" if match is None else match[1] or match[2]


def _conditions(
    record: RecordedDependencies,
    rows: list[int],
    at: int,
    names: _Names,
    counts: Counter[str],
) -> Iterator[tuple[str, int]]:
    """Yield the kind and the job of each condition that the simulation can use."""
    text = record.dependency[rows[at]]
    parts = [part.split(":") for part in re.split(r"[,?]", text)]
    if "?" in text:
        counts["form"] += 1
        return
    for kind, *ids in parts:
        if kind not in KINDS or not ids or (kind == "after" and "+" in text):
            counts["form"] += 1
            continue
        for name in ids:
            others = names.jobs(name, at)
            counts["outside"] += not others
            allowed = [other for other in others if _allowed(record, rows, kind, other, at)]
            counts["contradicted"] += len(allowed) < len(others)
            counts["not ok"] += kind == "afternotok" and bool(allowed)
            # simulated jobs complete although their recorded state is another one
            used = "afterany" if kind == "afternotok" else kind
            yield from ((used, other) for other in allowed)


def _allowed(record: RecordedDependencies, rows: list[int], kind: str, other: int, at: int) -> bool:
    """Return whether a job started after the start, or the end, of another job."""
    start_s, before = record.start_s[rows[at]], rows[other]
    if kind == "after":
        return (record.start_s[before], other) < (start_s, at)
    return bool(record.end_s[before] <= start_s)


def _arrays(
    record: RecordedDependencies, rows: list[int], counts: Counter[str]
) -> Iterator[tuple[str, list[int]]]:
    """Yield the text and the tasks of each array whose limit the record respects."""
    tasks: dict[tuple[str, float, str], list[int]] = {}
    for at in np.flatnonzero(record.limit[rows] != "").tolist():
        row = rows[at]
        if array := _array_of(record.ids[row]):
            key = array, float(record.submit_s[row]), record.limit[row]
            tasks.setdefault(key, []).append(at)
    uses = Counter[str]()
    for (array, _, limit), members in tasks.items():
        starts, ends = (np.sort(of[[rows[at] for at in members]]) for of in record[-2:])
        running = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")
        if (running > int(limit)).any():
            counts["limit"] += 1
            continue
        uses[array] += 1
        counts["array"] += 1
        yield f"{array}{f'-{uses[array]}' * (uses[array] > 1)}%{limit}", members


def _changed(jobs: Jobs, fields: dict[int, dict[str, str]]) -> Jobs:
    """Return jobs with more fields."""
    extras, codes = [*jobs.extra_fields], jobs.extra_codes.copy()
    shared: dict[tuple[int, tuple[tuple[str, str], ...]], int] = {}
    for at, more in fields.items():
        before = codes.item(at)
        code = shared.setdefault((before, tuple(more.items())), len(extras))
        if code == len(extras):
            extras.append({**extras[before], **more})
        codes[at] = code
    columns: list[Column] = [
        jobs.n_nodes, jobs.submit_us, jobs.walltime_us, jobs.profile_codes, codes
    ]  # fmt: skip
    return Jobs(jobs.ids, columns, jobs.profile_names, extras)


def _notes(counts: Counter[str]) -> Iterator[str]:
    for key, noun, text in (
        ("dependent", "job", "with dependencies on other jobs of the workload"),
        ("array", "array", "with a limit of simultaneous tasks"),
        ("not ok", "dependency", "of the kind afternotok: imported as afterany, because recorded "
         "jobs complete in a simulation"),
        ("form", "dependency", "left out: only after, afterok, afternotok and afterany without "
         "minutes or alternatives are supported"),
        ("outside", "dependency", "left out: the other job is not in the workload"),
        ("contradicted", "dependency", "left out: the job started too early for it in the record"),
        ("limit", "limit of an array", "left out: more tasks ran at the same time in the record"),
    ):  # fmt: skip
        if count := counts[key]:
            plural = {"dependency": "dependencies", "limit of an array": "limits of arrays"}
            many = count > 1 and noun in plural
            yield f"{count} {plural[noun]} {text}" if many else f"{exactly(count, noun)} {text}"
