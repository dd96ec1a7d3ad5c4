# SPDX-License-Identifier: Apache-2.0
"""Comparisons as tables for people: by metric, or with many policies by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebat.console.tables import Sheet
from rebat.core.units import format_duration
from rebat.results.catalogue import metric
from rebat.results.comparison import comparable_with, comparison
from rebat.results.intervals import marked, spread
from rebat.results.measures.backlog import NOT_COMPARABLE, WHY_NOT
from rebat.results.measures.summary import RunSummary
from rebat.results.metric import Name, written
from rebat.results.seeds import MetricRow, Seeds

MANY_POLICIES = 4
"""With more of them a table has a row per policy."""


def by_metric(summaries: Mapping[str, RunSummary]) -> Sheet:
    """Of one run a policy: a row per metric, a column per policy, the ratios to the first."""
    base, *others = summaries
    columns = ["metric", *summaries, *(f"{name}/{base}" for name in others)]
    rows = []
    apart = [name for name in others if not comparable_with(summaries[name], summaries[base])]
    for line in comparison(summaries):
        ratios = [line.ratio(name, base) for name in others]
        values = [written(line.unit, line.values[name]) for name in summaries]
        texts = ["-" if r is None else f"{r:.3f}" for r in ratios]
        if line.of_window:
            marks = (f" {NOT_COMPARABLE}" if name in apart else "" for name in others)
            texts = [text + mark for text, mark in zip(texts, marks, strict=True)]
        rows.append([line.metric, *values, *texts])
    first = summaries[base]
    title = f"{first.jobs} jobs, {first.n_nodes} nodes"
    ratios_to = f"; ratios to {base}" if others else ""
    caption = _measured(list(summaries.values())) + ratios_to + (f"; {WHY_NOT}" if apart else "")
    return Sheet(title, caption, columns, rows)


def _measured(summaries: Sequence[RunSummary]) -> str:
    """Which stretch of time, and which jobs; runs that end at other times are measured so long."""
    (low, _), ends = summaries[0].window_s, [summary.window_s[1] for summary in summaries]
    until = ", ".join(format_duration(end) for end in ends[: 1 if len(set(ends)) == 1 else None])
    each = " (each to its last end)" if len(set(ends)) > 1 else ""
    return (
        f"node time and counts from {format_duration(low)} to {until}{each}; "
        f"flow of {summaries[0].selected_jobs} jobs"
    )


def by_metric_of_seeds(rows: Sequence[MetricRow], seeds: Seeds, columns: Sequence[Name]) -> Sheet:
    """Of many seeds: a row per metric and policy, means and ratios with their intervals."""
    by, base = _by(rows), seeds.policies[0]
    cells = []
    for name in columns:
        measured = [p for p in seeds.policies if (name, p) in by]
        if any(by[name, p].value.mean for p in measured):
            for policy in measured:
                title = metric(name[0]).recorded(name[1]) if policy == base else ""
                cells.append([title, policy, *_cells(by[name, policy])])
    caption = f"{_intervals(base)}; other metrics in comparison.csv{_why_not(rows)}"
    return Sheet(_seeds(seeds), caption, ["metric", "policy", "mean", "ratio"], cells, words=2)


def by_policy(rows: Sequence[MetricRow], seeds: Seeds, columns: Sequence[Name]) -> Sheet:
    """A row per policy, the best by the first metric first; two columns per metric."""
    by, base, single = _by(rows), seeds.policies[0], len(seeds.seeds) < 2
    cells = []
    for policy in _sorted(seeds.policies, columns[0], by):
        pairs = [
            _cells(by[name, policy]) if (name, policy) in by else ("-", "-") for name in columns
        ]
        cells.append([policy, *(text for pair in pairs for text in pair)])
    titles = [metric(name).recorded(size_class) for name, size_class in columns]
    heads = [text for title in titles for text in (title, "ratio")]
    caption = f"ratios to {base}" if single else _intervals(base)
    best = "highest" if metric(columns[0][0]).better == "high" else "lowest"
    order = f"sorted by {titles[0]}, {best} first{_why_not(rows)}"
    return Sheet(_seeds(seeds), f"{caption}; {order}", ["policy", *heads], cells)


def _by(rows: Sequence[MetricRow]) -> dict[tuple[Name, str], MetricRow]:
    return {(row.metric, row.policy): row for row in rows}


def _sorted(
    policies: Sequence[str], name: Name, by: Mapping[tuple[Name, str], MetricRow]
) -> list[str]:
    """The best first; those without a value last."""
    sign = -1 if metric(name[0]).better == "high" else 1

    def place(policy: str) -> tuple[bool, float]:
        row = by.get((name, policy))
        return row is None, 0.0 if row is None else sign * row.value.mean

    return sorted(policies, key=place)


def _seeds(seeds: Seeds) -> str:
    n = len(seeds.seeds)
    return f"{n} {'seed' if n == 1 else 'seeds'}, {len(seeds.policies)} policies"


def _intervals(base: str) -> str:
    return (
        f"mean [95 % interval]; ratios to {base}, paired by seed; = where 1 is within the interval"
    )


def _why_not(rows: Sequence[MetricRow]) -> str:
    return f"; {WHY_NOT}" if any(row.comparable is False for row in rows) else ""


def _cells(row: MetricRow) -> tuple[str, str]:
    mark = f" {NOT_COMPARABLE}" if row.comparable is False else ""
    return spread(row.value, metric(row.metric[0]).text), marked(row.ratio) + mark
