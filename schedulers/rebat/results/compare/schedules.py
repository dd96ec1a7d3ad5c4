# SPDX-License-Identifier: Apache-2.0
"""Comparison of two job tables of one workload, job by job, to find the first difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.errors import InputError
from rebat.core.formatting import name_field
from rebat.core.units import to_s
from rebat.results.comparison import MetricLine
from rebat.results.files.batsim_files import JobRecord, JobsFile
from rebat.results.metric import UNITS

QUANTITIES = ("start", "finish", "waiting", "flow")
"""The compared quantities of a job: two times (start, finish) and two durations."""


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
    """The jobs that are in both tables A and B or in only one, and their differences.

    Attributes
    ----------
    keys, a, b : list
        Ids and rows of the jobs that are in both tables.
    times_us : dict
        For each of `QUANTITIES`, an array of shape (2, n) with the values of these jobs in A and B.
        Missing values are NaN.
    differing : list of int
        Positions of the jobs whose final state differs, or whose times differ by more than the
        tolerance.
    other_states, other_nodes : int
        Numbers of jobs with different final states, and of jobs that ran on different nodes. The
        state also differs if the job ran in only one of the tables.
    """

    keys: list[str]
    a: list[JobRecord]
    b: list[JobRecord]
    only_a: list[JobRecord]
    only_b: list[JobRecord]
    tolerance_us: float
    times_us: dict[str, Floats]
    differing: list[int]
    other_states: int
    other_nodes: int
    spreads: dict[str, DifferenceSpread]
    first: Divergence | None
    metrics: list[MetricLine]

    def same(self, allocations: bool = False) -> bool:
        """Return whether the tables are equal.

        If ``allocations`` is set, also compare the nodes of jobs.
        """
        apart = self.only_a or self.only_b or self.differing
        return not apart and not (allocations and self.other_nodes)


def compare(a: JobsFile, b: JobsFile, tolerance_s: float = 0.0) -> Comparison:
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
    keys = [key for key in in_a if key in in_b]
    only_a = [record for key, record in in_a.items() if key not in in_b]
    only_b = [record for key, record in in_b.items() if key not in in_a]
    if not keys:
        raise InputError(f"has no job in common with {a.path}", str(b.path), "the same workload")
    of_a, of_b = [in_a[key] for key in keys], [in_b[key] for key in keys]
    tolerance_us, times_us = tolerance_s * 1e6, _times_us(of_a, of_b)
    gaps_us = {name: np.abs(np.diff(times, axis=0)[0]) for name, times in times_us.items()}
    ran = ~np.isnan(times_us["start"])
    other_state = (ran[0] != ran[1]) | [x.state != y.state for x, y in zip(of_a, of_b, strict=True)]
    apart = {name: gaps > tolerance_us for name, gaps in gaps_us.items()}
    differing = np.flatnonzero(np.any([other_state, *apart.values()], axis=0)).tolist()
    differences: list[tuple[int, str, JobRecord | None, JobRecord | None]] = [
        (_begin_us(record), record.key, record, None) for record in only_a
    ]
    differences += [(_begin_us(record), record.key, None, record) for record in only_b]
    for at in differing:
        at_us = min(_begin_us(of_a[at]), _begin_us(of_b[at]))
        if ran[:, at].all() and not apart["start"][at]:
            at_us = int(times_us["finish"][:, at].min())
        differences.append((at_us, keys[at], of_a[at], of_b[at]))
    first = min(differences, key=lambda item: item[:2], default=None)
    return Comparison(
        keys,
        of_a,
        of_b,
        only_a,
        only_b,
        tolerance_us,
        times_us,
        differing,
        int(other_state.sum()),
        sum(x.nodes != y.nodes for x, y in zip(of_a, of_b, strict=True)),
        {
            name: _spread(gaps[present], apart[name])
            for name, gaps in gaps_us.items()
            if (present := ~np.isnan(gaps)).any()
        },
        first and Divergence(*first, running_at(a, first[0]), running_at(b, first[0])),
        _metrics(times_us, [only_a, only_b]),
    )


def _by_key(table: JobsFile, short: bool) -> dict[str, JobRecord]:
    repeated = table.repeated()
    if repeated:
        raise InputError(
            f"has several rows for job {repeated[0]}", str(table.path), "one row per job"
        )
    return {record.job_id if short else record.key: record for record in table.records}


def _times_us(a: Sequence[JobRecord], b: Sequence[JobRecord]) -> dict[str, Floats]:
    """Return the `QUANTITIES` of jobs in two tables, with the submission times of either table."""
    submit, start, finish = (
        np.array([[getattr(record, name) for record in rows] for rows in (a, b)], dtype=float)
        for name in ("submit_us", "start_us", "end_us")
    )
    submit = np.where(np.isnan(submit), submit[::-1], submit)
    return dict(zip(QUANTITIES, (start, finish, start - submit, finish - submit), strict=True))


def _spread(gaps_us: Floats, apart: npt.NDArray[np.bool_]) -> DifferenceSpread:
    n, differing = len(gaps_us), int(apart.sum())
    mean_s = sum(map(int, gaps_us.tolist())) / n / 1e6
    return DifferenceSpread(n - differing, differing, float(gaps_us.max()) / 1e6, mean_s)


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


def _metrics(
    times_us: Mapping[str, Floats], alone: Sequence[Sequence[JobRecord]]
) -> list[MetricLine]:
    """Return Batsim's metrics of both schedules. Every row counts as a job."""
    values: dict[str, dict[str, float | None]] = {}
    for side, (name, rows) in enumerate(zip("AB", alone, strict=True)):
        further = _times_us(rows, rows)
        start, finish, waiting, flow = (
            np.append(times_us[quantity][side], further[quantity][side]) for quantity in QUANTITIES
        )
        present = ~np.isnan(flow)
        waits_s, flows_s = (waiting[present] / 1e6).tolist(), (flow[present] / 1e6).tolist()
        longer = finish > start
        slowdowns = (flow[longer] / (finish - start)[longer])[present[longer]].tolist()
        values[name] = {
            "makespan": float(finish[~np.isnan(finish)].max(initial=0)) / 1e6,
            "mean waiting time": _mean(waits_s),
            "max waiting time": max(waits_s, default=None),
            "mean turnaround": _mean(flows_s),
            "max turnaround": max(flows_s, default=None),
            "mean slowdown": _mean(slowdowns),
        }
    lines = [
        MetricLine(
            name,
            "count" if name == "mean slowdown" else "time",
            {"A": value, "B": values["B"][name]},
        )
        for name, value in values["A"].items()
    ]
    return [line for line in lines if any(value is not None for value in line.values.values())]


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
    both, times_us = comparison, comparison.times_us
    starts_us = np.nan_to_num(times_us["start"][0])
    lines = [",".join(COLUMNS)]
    for at in sorted(both.differing, key=lambda at: (starts_us[at], both.keys[at])):
        a, b = both.a[at], both.b[at]
        cells = [name_field(both.keys[at]), "both"]
        for of_a, of_b in (times_us[name][:, at].tolist() for name in QUANTITIES):
            cells += [_cell(of_a), _cell(of_b), _cell(of_b - of_a)]
        lines.append(",".join([*cells, a.state, b.state, str(int(a.nodes == b.nodes))]))
    for table, records in (("A", both.only_a), ("B", both.only_b)):
        side = table.lower()
        for record in records:
            cells_of = dict.fromkeys(COLUMNS, "") | {
                "job_id": name_field(record.key),
                "tables": table,
                f"state_{side}": record.state,
                f"start_{side}": _cell(record.start_us),
                f"finish_{side}": _cell(record.end_us),
            }
            lines.append(",".join(cells_of.values()))
    return "\n".join(lines) + "\n"


def _cell(us: float | None) -> str:
    return "" if us is None or isnan(us) else f"{us / 1e6:.6f}"


def comparison_facts(result: Comparison, allocations: bool) -> dict[str, Any]:
    """Return a comparison as plain data. If ``allocations`` is set, include the nodes of jobs."""
    return {
        "same": result.same(allocations),
        "tolerance_s": result.tolerance_us / 1e6,
        "jobs": len(result.keys),
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
        "metrics": [
            {
                "metric": line.metric,
                "unit": UNITS[line.unit],
                "a": line.values["A"],
                "b": line.values["B"],
                "ratio": line.ratio("B", "A"),
            }
            for line in result.metrics
        ],
    }


def _divergence_facts(first: Divergence) -> dict[str, Any]:
    facts: dict[str, Any] = {"at_s": to_s(first.at_us), "job": first.key}
    for name, record in (("a", first.a), ("b", first.b)):
        facts[name] = record and {
            "start_s": None if record.start_us is None else to_s(record.start_us),
            "end_s": None if record.end_us is None else to_s(record.end_us),
        }
    for name, records in (("running_a", first.running_a), ("running_b", first.running_b)):
        nodes = sum(len(record.nodes) for record in records)
        facts[name] = {"jobs": [record.job_id for record in records], "nodes": nodes}
    return facts
