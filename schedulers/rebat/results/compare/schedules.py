# SPDX-License-Identifier: Apache-2.0
"""Comparison of two job tables of one workload, job by job, to find the first difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.formatting import name_field
from rebat.core.units import to_s
from rebat.results.comparison import MetricLine
from rebat.results.files.batsim_files import JobRecord, JobsFile
from rebat.results.metric import UNITS

QUANTITIES = ("start", "finish", "waiting", "flow")
"""The compared quantities of a job: two times (start, finish) and two durations."""


class JobTimes(msgspec.Struct, frozen=True):
    """State and times of a job in a table, in microseconds. A missing value is None."""

    state: str
    start: int | None
    finish: int | None
    waiting: int | None
    flow: int | None
    record: JobRecord


class Pair(msgspec.Struct, frozen=True):
    """A job that is in both tables."""

    key: str
    a: JobTimes
    b: JobTimes

    def difference_us(self, quantity: str) -> int | None:
        """Return B minus A in microseconds, or None if a value is missing."""
        a_us, b_us = getattr(self.a, quantity), getattr(self.b, quantity)
        return None if a_us is None or b_us is None else b_us - a_us

    @property
    def same_state(self) -> bool:
        """Whether the final state is the same, and the job ran in both tables or in neither."""
        return self.a.state == self.b.state and (self.a.start is None) == (self.b.start is None)

    @property
    def same_nodes(self) -> bool:
        """Whether the job ran on the same nodes."""
        return self.a.record.nodes == self.b.record.nodes

    def differs(self, tolerance_us: float) -> bool:
        """Return whether the final states differ, or times differ by more than the tolerance."""
        gaps = (self.difference_us(quantity) for quantity in QUANTITIES)
        return not self.same_state or any(
            abs(gap) > tolerance_us for gap in gaps if gap is not None
        )


class DifferenceSpread(msgspec.Struct, frozen=True):
    """Absolute differences of a quantity (in seconds), for jobs with a value in both tables."""

    equal: int
    differing: int
    max_s: float
    mean_s: float


class Divergence(msgspec.Struct, frozen=True):
    """The first difference of two tables: its time, its job, and the jobs that run at this time."""

    at_us: int
    key: str
    a: JobRecord | None
    b: JobRecord | None
    running_a: list[JobRecord]
    running_b: list[JobRecord]


class Comparison(msgspec.Struct, frozen=True):
    """The jobs that are in both tables A and B or in only one, and their differences."""

    pairs: list[Pair]
    only_a: list[JobRecord]
    only_b: list[JobRecord]
    tolerance_us: float
    spreads: dict[str, DifferenceSpread]
    first: Divergence | None
    metrics: list[MetricLine]

    @property
    def differing(self) -> list[Pair]:
        """The jobs whose final state differs, or whose times differ by more than the tolerance."""
        return [pair for pair in self.pairs if pair.differs(self.tolerance_us)]

    @property
    def other_states(self) -> int:
        """The number of jobs with different final states."""
        return sum(not pair.same_state for pair in self.pairs)

    @property
    def other_nodes(self) -> int:
        """The number of jobs that ran on different nodes."""
        return sum(not pair.same_nodes for pair in self.pairs)

    def same(self, allocations: bool = False) -> bool:
        """Return whether the tables are equal.

        If ``allocations`` is set, also compare the nodes of jobs.
        """
        apart = self.only_a or self.only_b or self.differing
        return not apart and not (allocations and self.other_nodes)


def compare(a: JobsFile, b: JobsFile, tolerance_s: float = 1e-3) -> Comparison:
    """Join two tables by job and compare them.

    Parameters
    ----------
    a, b : JobsFile
        Tables with a row per execution. If job ids are unique in both tables, jobs are joined by
        id. Otherwise, they are joined by id and name of the workload. If only one table contains
        the submission time of a job, this time is used for both.
    tolerance_s : float
        Differences up to this value, in seconds, are ignored.
    """
    short = a.unique_ids and b.unique_ids
    in_a, in_b = _by_key(a, short), _by_key(b, short)
    pairs = [_pair(key, in_a[key], in_b[key]) for key in in_a if key in in_b]
    only_a = [record for key, record in in_a.items() if key not in in_b]
    only_b = [record for key, record in in_b.items() if key not in in_a]
    if not pairs:
        raise InputError(f"has no job in common with {a.path}", str(b.path), "the same workload")
    tolerance_us = tolerance_s * 1e6
    spreads = {quantity: _spread(pairs, quantity, tolerance_us) for quantity in QUANTITIES}
    return Comparison(
        pairs,
        only_a,
        only_b,
        tolerance_us,
        {name: spread for name, spread in spreads.items() if spread is not None},
        _first(a, b, pairs, only_a, only_b, tolerance_us),
        _metrics(
            [*(pair.a for pair in pairs), *map(_row, only_a)],
            [*(pair.b for pair in pairs), *map(_row, only_b)],
        ),
    )


def _by_key(table: JobsFile, short: bool) -> dict[str, JobRecord]:
    repeated = table.repeated()
    if repeated:
        raise InputError(
            f"has several rows for job {repeated[0]}", str(table.path), "one row per job"
        )
    return {record.job_id if short else record.key: record for record in table.records}


def _pair(key: str, a: JobRecord, b: JobRecord) -> Pair:
    return Pair(key, _row(a, b.submit_us), _row(b, a.submit_us))


def _row(record: JobRecord, submit_us: int | None = None) -> JobTimes:
    submit = submit_us if record.submit_us is None else record.submit_us
    start, finish = record.start_us, record.end_us
    waiting = start - submit if start is not None and submit is not None else None
    flow = finish - submit if finish is not None and submit is not None else None
    return JobTimes(record.state, start, finish, waiting, flow, record)


def _spread(pairs: Sequence[Pair], quantity: str, tolerance_us: float) -> DifferenceSpread | None:
    gaps = [abs(gap) for pair in pairs if (gap := pair.difference_us(quantity)) is not None]
    if not gaps:
        return None
    differing = sum(gap > tolerance_us for gap in gaps)
    mean_s = sum(gaps) / len(gaps) / 1e6
    return DifferenceSpread(len(gaps) - differing, differing, to_s(max(gaps)), mean_s)


def _first(
    a: JobsFile,
    b: JobsFile,
    pairs: Iterable[Pair],
    only_a: Iterable[JobRecord],
    only_b: Iterable[JobRecord],
    tolerance_us: float,
) -> Divergence | None:
    differences: list[tuple[int, str, JobRecord | None, JobRecord | None]] = [
        (_parting_us(pair, tolerance_us), pair.key, pair.a.record, pair.b.record)
        for pair in pairs
        if pair.differs(tolerance_us)
    ]
    differences += [(_begin_us(record), record.key, record, None) for record in only_a]
    differences += [(_begin_us(record), record.key, None, record) for record in only_b]
    if not differences:
        return None
    at_us, key, in_a, in_b = min(differences, key=lambda item: item[:2])
    return Divergence(at_us, key, in_a, in_b, running_at(a, at_us), running_at(b, at_us))


def _parting_us(pair: Pair, tolerance_us: float) -> int:
    """Return the time at which the executions of a job first differ.

    If the starts differ, this is the earlier start. Otherwise, it is the earlier finish.
    """
    gap = pair.difference_us("start")
    if gap is None or abs(gap) > tolerance_us:
        return min(_begin_us(pair.a.record), _begin_us(pair.b.record))
    return min(us for us in (pair.a.finish, pair.b.finish) if us is not None)


def _begin_us(record: JobRecord) -> int:
    """Return the start of a row, or the submission time of a rejected job."""
    return next((us for us in (record.start_us, record.submit_us) if us is not None), 0)


def running_at(table: JobsFile, at_us: int) -> list[JobRecord]:
    """Return the rows of jobs that held nodes just after a time, in order of their starts."""
    running = [
        record
        for record in table.records
        if record.start_us is not None
        and record.end_us is not None
        and record.start_us <= at_us < record.end_us
    ]
    return sorted(running, key=lambda record: (record.start_us, record.key))


def _metrics(a: Sequence[JobTimes], b: Sequence[JobTimes]) -> list[MetricLine]:
    values_a, values_b = _summary(a), _summary(b)
    lines = [
        MetricLine(
            name,
            "count" if name == "mean slowdown" else "time",
            {"A": values_a[name], "B": values_b[name]},
        )
        for name in values_a
    ]
    return [line for line in lines if any(value is not None for value in line.values.values())]


def _summary(rows: Iterable[JobTimes]) -> dict[str, float | None]:
    """Return Batsim's metrics of a schedule (times in seconds). Every row counts as a job."""
    ran = [row for row in rows if row.start is not None and row.finish is not None]
    waits = [to_s(row.waiting) for row in ran if row.waiting is not None]
    flows = [to_s(row.flow) for row in ran if row.flow is not None]
    slowdowns = [
        row.flow / (row.finish - row.start)
        for row in ran
        if row.flow is not None
        and row.finish is not None
        and row.start is not None
        and row.finish > row.start
    ]
    return {
        "makespan": to_s(max((row.finish for row in ran if row.finish is not None), default=0)),
        "mean waiting time": _mean(waits),
        "max waiting time": max(waits, default=None),
        "mean turnaround": _mean(flows),
        "max turnaround": max(flows, default=None),
        "mean slowdown": _mean(slowdowns),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


COLUMNS = (
    "job_id",
    "tables",
    *(f"{name}_{part}" for name in QUANTITIES for part in ("a", "b", "difference")),
    "state_a",
    "state_b",
    "same_nodes",
)


def differences_csv(comparison: Comparison) -> str:
    """Return a row per differing job, sorted by start in A. Differences are B - A, in seconds."""
    pairs = sorted(comparison.differing, key=lambda p: (p.a.start or 0, p.key))
    lines = [",".join(COLUMNS), *(_pair_line(pair) for pair in pairs)]
    lines += [_single_line(record, "A") for record in comparison.only_a]
    lines += [_single_line(record, "B") for record in comparison.only_b]
    return "\n".join(lines) + "\n"


def _pair_line(pair: Pair) -> str:
    cells = [name_field(pair.key), "both"]
    for name in QUANTITIES:
        values = getattr(pair.a, name), getattr(pair.b, name), pair.difference_us(name)
        cells += [_cell(value) for value in values]
    return ",".join([*cells, pair.a.state, pair.b.state, str(int(pair.same_nodes))])


def _single_line(record: JobRecord, table: str) -> str:
    """Return the row of a job that is in one table only. The other table's columns are empty."""
    cells = dict.fromkeys(COLUMNS, "")
    side = table.lower()
    cells |= {"job_id": name_field(record.key), "tables": table, f"state_{side}": record.state}
    cells |= {f"start_{side}": _cell(record.start_us), f"finish_{side}": _cell(record.end_us)}
    return ",".join(cells.values())


def _cell(us: int | None) -> str:
    return "" if us is None else f"{to_s(us):.6f}"


def comparison_facts(result: Comparison, allocations: bool) -> dict[str, Any]:
    """Return a comparison as plain data. If ``allocations`` is set, include the nodes of jobs."""
    return {
        "same": result.same(allocations),
        "tolerance_s": result.tolerance_us / 1e6,
        "jobs": len(result.pairs),
        "only_a": len(result.only_a),
        "only_b": len(result.only_b),
        "differing": len(result.differing),
        "different_states": result.other_states,
        "different_nodes": result.other_nodes,
        "quantities": [
            {
                "quantity": name,
                "equal": spread.equal,
                "differing": spread.differing,
                "max_s": spread.max_s,
                "mean_s": spread.mean_s,
            }
            for name, spread in result.spreads.items()
        ],
        "first_difference": None if result.first is None else _divergence_facts(result.first),
        "metrics": [_metric(line) for line in result.metrics],
    }


def _divergence_facts(first: Divergence) -> dict[str, Any]:
    return {
        "at_s": to_s(first.at_us),
        "job": first.key,
        "a": None if first.a is None else _times(first.a),
        "b": None if first.b is None else _times(first.b),
        "running_a": _running(first.running_a),
        "running_b": _running(first.running_b),
    }


def _times(record: JobRecord) -> dict[str, float | None]:
    return {
        "start_s": None if record.start_us is None else to_s(record.start_us),
        "end_s": None if record.end_us is None else to_s(record.end_us),
    }


def _running(records: Sequence[JobRecord]) -> dict[str, Any]:
    nodes = sum(len(record.nodes) for record in records)
    return {"jobs": [record.job_id for record in records], "nodes": nodes}


def _metric(line: MetricLine) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "unit": UNITS[line.unit],
        "a": line.values["A"],
        "b": line.values["B"],
        "ratio": line.ratio("B", "A"),
    }
