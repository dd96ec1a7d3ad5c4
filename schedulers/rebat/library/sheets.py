# SPDX-License-Identifier: Apache-2.0
"""Comparisons as tables for people: by metric, or with many policies by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from rebat.campaign.seeds import metric_of
from rebat.console.tables import Sheet
from rebat.core.errors import InputError, unknown_name
from rebat.core.units import format_duration
from rebat.metrics.backlog import NOT_COMPARABLE, WHY_NOT
from rebat.metrics.summary import RunSummary
from rebat.report.comparison import comparable_with, comparison, ratio, text_of
from rebat.results.intervals import marked, spread
from rebat.results.seeds import Metric, Row, Seeds

MANY_POLICIES = 4
"""With more of them a table has a row per policy."""


class Column(msgspec.Struct, frozen=True):
    """A metric as people read it; ``better`` is 'high' or 'low': the best policy comes first."""

    title: str
    metric: Metric
    kind: str
    better: str = "low"


USUAL = (
    Column("useful utilisation", ("useful_utilisation", None), "share", "high"),
    Column("some node idle, share of time", ("platform_idle_share", None), "share"),
    Column("failures under a job", ("failures_hit", None), "count"),
    Column("steals decided", ("steals", None), "count"),
    Column("max flow", ("flow_max_s", "all"), "time"),
    Column("mean flow", ("flow_mean_s", "all"), "time"),
    Column("weighted mean flow", ("flow_weighted_mean_s", "all"), "time"),
)
"""Where nothing else is asked for; flows are of all jobs measured."""

OF_POLICIES = tuple(column for column in USUAL if column.kind != "count")


def columns_of(texts: Sequence[str], known: Sequence[Metric]) -> tuple[Column, ...]:
    """The metrics of ``--columns``: names as in comparison.csv, ``flow_max_s:all``.

    Raises
    ------
    InputError
        For a metric that no policy has; it lists those that there are.
    """
    usual = {column.metric: column for column in USUAL}
    found = []
    for text in texts:
        metric = metric_of(text.strip())
        if metric not in known and (metric[0], "all") in known:
            metric = (metric[0], "all")
        if metric not in known:
            error = unknown_name("metric", text.strip(), map(named, known))
            raise InputError(error.what, "--columns", "a metric of comparison.csv")
        found.append(usual.get(metric) or _column(metric))
    return tuple(found)


def named(metric: Metric) -> str:
    """A metric as ``--columns`` and ``--until-metric`` take it."""
    return ":".join(filter(None, metric))


def _column(metric: Metric) -> Column:
    """How a metric is printed and which end of it is good goes by its name."""
    name = metric[0]
    if name.endswith("_s"):
        return Column(named(metric), metric, "time")
    if name.endswith(("_share", "utilisation")):
        return Column(named(metric), metric, "share", "high" if "util" in name else "low")
    if "slowdown" in name or name.startswith("fairness_"):
        return Column(named(metric), metric, "factor", "high" if name.endswith("jain") else "low")
    return Column(named(metric), metric, "count")


def by_metric(summaries: Mapping[str, RunSummary]) -> Sheet:
    """Of one run a policy: a row per metric, a column per policy, the ratios to the first."""
    base, *others = summaries
    columns = ["metric", *summaries, *(f"{name}/{base}" for name in others)]
    rows = []
    apart = [name for name in others if not comparable_with(summaries[name], summaries[base])]
    for line in comparison(summaries):
        ratios = [ratio(line, name, base) for name in others]
        values = [text_of(line.kind, line.values[name]) for name in summaries]
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


def by_metric_of_seeds(found: Sequence[Row], seeds: Seeds, columns: Sequence[Column]) -> Sheet:
    """Of many seeds: a row per metric and policy, means and ratios with their intervals."""
    by, base = _by(found), seeds.policies[0]
    rows = []
    for column in columns:
        some = [p for p in seeds.policies if (column.metric, p) in by]
        if any(by[column.metric, p].value.mean for p in some):
            for policy in some:
                title = column.title if policy == base else ""
                rows.append([title, policy, *_cells(by[column.metric, policy], column.kind)])
    caption = f"{_intervals(base)}; other metrics in comparison.csv{_why_not(found)}"
    return Sheet(_seeds(seeds), caption, ["metric", "policy", "mean", "ratio"], rows, words=2)


def by_policy(found: Sequence[Row], seeds: Seeds, columns: Sequence[Column]) -> Sheet:
    """A row per policy, the best by the first metric first; two columns per metric."""
    by, base, single = _by(found), seeds.policies[0], len(seeds.seeds) < 2
    rows = []
    for policy in _sorted(seeds.policies, columns[0], by):
        cells = [
            _cells(by[column.metric, policy], column.kind)
            if (column.metric, policy) in by
            else ("-", "-")
            for column in columns
        ]
        rows.append([policy, *(text for pair in cells for text in pair)])
    heads = [text for column in columns for text in (column.title, "ratio")]
    caption = f"ratios to {base}" if single else _intervals(base)
    order = f"sorted by {columns[0].title}, {columns[0].better}est first{_why_not(found)}"
    return Sheet(_seeds(seeds), f"{caption}; {order}", ["policy", *heads], rows)


def _by(found: Sequence[Row]) -> dict[tuple[Metric, str], Row]:
    return {(row.metric, row.policy): row for row in found}


def _sorted(
    policies: Sequence[str], column: Column, by: Mapping[tuple[Metric, str], Row]
) -> list[str]:
    """The best first; those without a value last."""
    sign = -1 if column.better == "high" else 1

    def place(policy: str) -> tuple[bool, float]:
        row = by.get((column.metric, policy))
        return row is None, 0.0 if row is None else sign * row.value.mean

    return sorted(policies, key=place)


def _seeds(seeds: Seeds) -> str:
    n = len(seeds.seeds)
    return f"{n} {'seed' if n == 1 else 'seeds'}, {len(seeds.policies)} policies"


def _intervals(base: str) -> str:
    return (
        f"mean [95 % interval]; ratios to {base}, paired by seed; = where 1 is within the interval"
    )


def _why_not(found: Sequence[Row]) -> str:
    return f"; {WHY_NOT}" if any(row.comparable is False for row in found) else ""


def _cells(row: Row, kind: str) -> tuple[str, str]:
    mark = f" {NOT_COMPARABLE}" if row.comparable is False else ""
    return spread(row.value, partial(text_of, kind)), marked(row.ratio) + mark
