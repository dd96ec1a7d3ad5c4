# SPDX-License-Identifier: Apache-2.0
"""Results of ``rebat batch``: the verdict, the means over the seeds, and batch.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rebat.console.tables import Sheet
from rebat.core.units import format_duration
from rebat.results.comparison import change_text, runs_text
from rebat.results.intervals import interval, ratio_of_means

if TYPE_CHECKING:
    from rebat.models.batch import Batch, BatchResult

COLUMNS = ("policy", "list", "duration_s", "seed", "completion_s", "aborts", "lost_node_s")
"""Columns of batch.csv."""

Results = Mapping["Batch", "BatchResult"]


class BatchCase(NamedTuple):
    """A combination of a policy, a list of boxes and a job duration, for all seeds."""

    policy: str
    which: str
    duration_s: float


class BatchMeans(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: means of a case over its seeds.

    Attributes
    ----------
    duration_s, policy, list
        The case. If the policy does not choose from a list of boxes, ``list`` is None.
    n
        Number of seeds.
    completion_s, completion_low_s, completion_high_s
        Mean completion time with its interval.
    aborts
        Mean number of aborted attempts.
    lost_node_s
        Mean, in node-seconds, of the node time of aborted attempts.
    less_than_linear, less_than_rps
        Relative saving of mean completion time compared with slurm-linear, and compared with rps on
        the same list. Only faps and ceiling have these values. For other policies, or if the
        compared policy did not run, they are None.
    change, change_low, change_high
        Relative change of the completion time compared with the first policy, and its interval.
        Runs with the same seed are compared. None for the first policy.
    """

    duration_s: float
    policy: str
    list: str | None
    n: int
    completion_s: float
    completion_low_s: float | None
    completion_high_s: float | None
    aborts: float
    lost_node_s: float
    less_than_linear: float | None
    less_than_rps: float | None
    change: float | None
    change_low: float | None
    change_high: float | None


def batch_csv(cases: Sequence[BatchCase], results: Results) -> str:
    """Return batch.csv: a row per case and seed, with the columns `COLUMNS`."""
    rows = {
        (BatchCase(batch.policy, batch.which, batch.duration_s), batch.seed): result
        for batch, result in results.items()
    }
    lines = [",".join(COLUMNS)]
    for case in cases:
        for (other, seed), result in rows.items():
            if other == case:
                cells = (
                    *case[:2],
                    repr(case.duration_s),
                    seed,
                    repr(result.completion_s),
                    result.aborts,
                    repr(result.lost_node_s),
                )
                lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def verdict(cases: Sequence[BatchCase], results: Results) -> list[str]:
    """Return sentences that compare completion times with those of the first policy."""
    lines = []
    for base in (case for case in cases if case[:2] == cases[0][:2]):
        expected = _by_seed(results, base)
        if len(cases) == len({case.duration_s for case in cases}):
            mean = f"{fmean(expected.values()) / 3600:.1f} h"
            jobs = f"jobs of {format_duration(base.duration_s)}, {len(expected)} seeds"
            lines.append(f"{_label(base)}: mean completion time {mean} ({jobs})")
        for case in (c for c in cases if c.duration_s == base.duration_s and c != base):
            ratio = ratio_of_means(_by_seed(results, case), expected)
            if ratio is not None:
                lines.append(
                    f"{_label(case)} against {_label(base)}: completion time {change_text(ratio)} "
                    f"(jobs of {format_duration(case.duration_s)}, {runs_text(ratio.n)})"
                )
    return lines


def means(cases: Sequence[BatchCase], results: Results) -> list[BatchMeans]:
    """Return the means of each case, sorted by duration."""
    return [_means(case, cases, results) for case in sorted(cases, key=lambda c: c.duration_s)]


def _means(case: BatchCase, cases: Sequence[BatchCase], results: Results) -> BatchMeans:
    completion = _by_seed(results, case)
    estimate = interval(completion)
    assert estimate is not None  # each case has at least one seed
    base = BatchCase(*cases[0][:2], case.duration_s)
    ratio = None if case == base else ratio_of_means(completion, _by_seed(results, base))
    change = None if ratio is None else ratio.minus(1.0)
    return BatchMeans(
        duration_s=case.duration_s,
        policy=case.policy,
        list=case.which or None,
        n=estimate.n,
        completion_s=estimate.mean,
        completion_low_s=estimate.low,
        completion_high_s=estimate.high,
        aborts=fmean(_by_seed(results, case, "aborts").values()),
        lost_node_s=fmean(_by_seed(results, case, "lost_node_s").values()),
        less_than_linear=_gain(case, BatchCase("slurm-linear", "", case.duration_s), results),
        less_than_rps=_gain(case, BatchCase("rps", case.which, case.duration_s), results),
        change=None if change is None else change.mean,
        change_low=None if change is None else change.low,
        change_high=None if change is None else change.high,
    )


def _gain(case: BatchCase, base: BatchCase, results: Results) -> float | None:
    """Return the relative saving of mean completion time, or None if a case is missing."""
    expected = _by_seed(results, base)
    if case.policy not in ("faps", "ceiling") or not expected:
        return None
    return 1 - fmean(_by_seed(results, case).values()) / fmean(expected.values())


def means_text(rows: Sequence[BatchMeans]) -> str:
    """Return the table of the means, in hours."""
    titles = [
        "duration",
        "policy",
        "list",
        "mean h",
        "aborts",
        "node-hours lost",
        "saved vs linear",
        "saved vs rps",
    ]
    return Sheet("", "means over the seeds", titles, [*map(_cells, rows)], words=3).text()


def _cells(row: BatchMeans) -> list[str]:
    gains = ("-" if v is None else f"{v:.1%}" for v in (row.less_than_linear, row.less_than_rps))
    numbers = (
        f"{row.completion_s / 3600:.1f}",
        f"{row.aborts:.1f}",
        f"{row.lost_node_s / 3600:,.0f}",
    )
    return [format_duration(row.duration_s), row.policy, row.list or "-", *numbers, *gains]


def _label(case: BatchCase) -> str:
    return f"{case.policy} ({case.which})" if case.which else case.policy


def _by_seed(results: Results, case: BatchCase, metric: str = "completion_s") -> dict[int, float]:
    return {
        batch.seed: getattr(result, metric)
        for batch, result in results.items()
        if BatchCase(batch.policy, batch.which, batch.duration_s) == case
    }
