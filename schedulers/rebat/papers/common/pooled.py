# SPDX-License-Identifier: Apache-2.0
"""Ratios to the first policy: their means and intervals over all workloads of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from rebat.papers.common.parts import Table, bracketed
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.common.tables import Column
from rebat.results.intervals import FEWEST, BySeed, interval, marked, ratios
from rebat.results.scenario import ScenarioLabel

NOTE = (
    "The ratio of a workload is the mean over its seeds. The table shows the mean over {n} "
    "workloads{interval}: what to expect of another workload."
)


def pooled(runs: RunIndex[str], columns: Sequence[Column]) -> Iterator[Table]:
    """Yield a table for each grid of at least `FEWEST` workloads, and for each metric."""
    for grid in dict.fromkeys(setting.grid for setting in runs.settings):
        settings = [setting for setting in runs.settings if setting.grid == grid]
        workloads = list(dict.fromkeys(setting.workload for setting in settings))
        if len(workloads) >= FEWEST:
            for column in columns:
                yield _table(runs, settings, workloads, column)


def _table(
    runs: RunIndex[str], settings: Sequence[Setting], workloads: Sequence[str], column: Column
) -> Table:
    base, *others = runs.cases(settings[0])
    scenarios = list(dict.fromkeys(setting.scenario for setting in settings))
    shared = [p for p in scenarios[0].parts if all(p in other.parts for other in scenarios)]
    rows = []
    for scenario in scenarios:
        label = ", ".join(part for part in scenario.parts if part not in shared) or "all"
        values = [
            [
                _of_workload(runs, settings, scenario, workload, policy, column.metric)
                for workload in workloads
            ]
            for policy in others
        ]
        means = [[value for value in numbers if value is not None] for numbers in values]
        rows.append([label, *(marked(interval(numbers)) for numbers in means)])
    title = f"{settings[0].grid}: {column.heading}, ratio to {base} over all workloads"
    interval_text = " with its interval" if bracketed(rows) else ""
    note = NOTE.format(n=len(workloads), interval=interval_text)
    note += f" Scenario: {', '.join(shared)}." if shared else ""
    return Table("", title, ["scenario", *others], rows, note)


def _of_workload(
    runs: RunIndex[str],
    settings: Sequence[Setting],
    scenario: ScenarioLabel,
    workload: str,
    policy: str,
    metric: str,
) -> float | None:
    """Return the mean over the seeds of a workload's ratio to the first policy.

    Return None if there are no runs.
    """
    setting = settings[0]._replace(workload=workload, scenario=scenario)
    by_seed: BySeed = {}
    if setting in runs.settings:
        base = runs.cases(setting)[0]
        by_seed = ratios(*runs.paired(setting, policy, base, metric))
    return fmean(by_seed.values()) if by_seed else None
