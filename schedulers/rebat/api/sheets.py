# SPDX-License-Identifier: Apache-2.0
"""Comparisons as printed tables.

A table has one row per metric or, if there are many policies, one row per policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

from rebat.core.errors import InputError
from rebat.core.numbers import change, counted, duration, spread
from rebat.report.table import Table
from rebat.results.catalogue import USUAL, VERDICT, check_metric, metric
from rebat.results.comparison import (
    MetricRow,
    Runs,
    by_name,
    comparable_with,
    comparison,
    main_lines,
)
from rebat.results.measures.platform import NOT_COMPARABLE, WHY_NOT
from rebat.results.measures.summary import RunSummary
from rebat.results.metric import FORMS, Name, Unit, name_of

MANY_POLICIES = 3
"""Maximum number of policies in a table with a row per metric."""

OTHERS_IN = "comparison.csv or --all-metrics"


def check_table(columns: Sequence[str], all_metrics: bool) -> None:
    """Check the options of a table before the runs."""
    if columns and all_metrics:
        raise InputError("has no effect", "--all-metrics", "no --columns")
    for text in columns:
        check_metric(name_of(text.strip()), "--columns")


def sheet_of(
    rows: Sequence[MetricRow],
    seeds: Runs[str],
    summaries: Mapping[str, RunSummary],
    columns: Sequence[Name],
    all_metrics: bool,
) -> Table:
    """Return a row per policy if ``columns`` is set or policies are many, otherwise per metric.

    ``summaries`` is empty if there are several seeds.
    """
    many = len(seeds.policies) > MANY_POLICIES
    if columns or (many and not all_metrics):
        return by_policy(rows, seeds, columns or VERDICT)
    if summaries:
        return by_metric(summaries, all_metrics)
    return by_metric_of_seeds(rows, seeds, seeds.metrics if all_metrics else USUAL)


def by_metric(
    summaries: Mapping[str, RunSummary], all_metrics: bool = False, others_in: str = OTHERS_IN
) -> Table:
    """Return a row per metric and a column per policy, with changes from the first policy.

    ``others_in`` is the part of the caption that states where the other metrics can be found.
    """
    base, *others = summaries
    incomparable = [
        name for name in others if not comparable_with(summaries[name], summaries[base])
    ]
    lines = comparison(summaries)
    rows = []
    for line in lines if all_metrics else main_lines(lines):
        cells = [_value(line.unit, line.values[base])]
        for name in others:
            value, ratio = _value(line.unit, line.values[name]), line.ratio(name, base)
            cells += [value, "" if ratio is None else change(ratio - 1)]
            if line.of_window and name in incomparable:
                cells[-1] = f"{cells[-1]} {NOT_COMPARABLE}".strip()
        rows.append([line.metric, *cells])
    heads = [text for name in others for text in (name, "change")]
    caption = [_measured(list(summaries.values())), "shares refer to node time unless stated"]
    caption += [f"changes against {base}"] * bool(others) + [WHY_NOT] * bool(incomparable)
    caption += [f"other metrics: {others_in}"] * (len(rows) < len(lines))
    title = f"{counted(summaries[base].jobs, 'job')}, {counted(summaries[base].n_nodes, 'node')}"
    return Table("", title, ["metric", base, *heads], rows, "; ".join(caption))


def _value(unit: Unit, value: float | None) -> str:
    return "-" if value is None else FORMS[unit](value)


def _measured(summaries: Sequence[RunSummary]) -> str:
    """Describe the measured jobs and the measured time, which may differ between policies."""
    (low, _), ends = summaries[0].window_s, [summary.window_s[1] for summary in summaries]
    until = ", ".join(duration(end) for end in ends[: 1 if len(set(ends)) == 1 else None])
    each = " (when the last job of each policy ends)" if len(set(ends)) > 1 else ""
    return (
        f"node time and counts from {duration(low)} to {until}{each}; "
        f"flow of {counted(summaries[0].selected_jobs, 'job')}"
    )


def by_metric_of_seeds(
    rows: Sequence[MetricRow], seeds: Runs[str], columns: Sequence[Name]
) -> Table:
    """Return a row per metric and policy with mean, change and their intervals."""
    by, base = by_name(rows), seeds.policies[0]
    cells = []
    for name in columns:
        measured = [p for p in seeds.policies if (name, p) in by]
        if any(by[name, p].value.mean for p in measured):
            for policy in measured:
                title = _short_title(name) if policy == base else ""
                cells.append([title, policy, *_cells(by[name, policy])])
    caption = f"{_intervals(base)}; other metrics in comparison.csv{_why_not(rows)}"
    heads = ["metric", "policy", "mean", "change"]
    return Table("", _seeds(seeds), heads, cells, caption, words=2)


def by_policy(rows: Sequence[MetricRow], seeds: Runs[str], columns: Sequence[Name]) -> Table:
    """Return a row per policy, sorted by the first metric (the best value first).

    Each metric has two columns: value and change. With several seeds, each metric has one column:
    the mean for the first policy, and the change for the others.
    """
    by, base, single = by_name(rows), seeds.policies[0], len(seeds.seeds) < 2
    cells = []
    for policy in _sorted(seeds.policies, columns[0], by):
        cells.append([policy])
        for name in columns:
            value, change = _cells(by[name, policy]) if (name, policy) in by else ("-", "-")
            cells[-1] += [value, change] if single else [value if policy == base else change]
    titles = [metric(name).recorded(size_class) for name, size_class in columns]
    heads = [h for title in titles for h in ([fill(title, 12), "change"] if single else [title])]
    caption = f"changes against {base}" if single else _intervals(base)
    best = "highest" if metric(columns[0][0]).better == "high" else "lowest"
    order = f"sorted by {titles[0]}, {best} first{_why_not(rows)}"
    return Table("", _seeds(seeds), ["policy", *heads], cells, f"{caption}; {order}")


def _short_title(name: Name) -> str:
    row = metric(name[0])
    return row.title if row.whole == "time" else row.recorded(name[1])


def _sorted(
    policies: Sequence[str], name: Name, by: Mapping[tuple[Name, str], MetricRow]
) -> list[str]:
    """Sort policies by a metric, the best first. Policies without a value are last."""
    sign = -1 if metric(name[0]).better == "high" else 1

    def place(policy: str) -> tuple[bool, float]:
        row = by.get((name, policy))
        return row is None, 0.0 if row is None else sign * row.value.mean

    return sorted(policies, key=place)


def _seeds(seeds: Runs[str]) -> str:
    n = len(seeds.seeds)
    return f"{counted(n, 'seed')}, {counted(len(seeds.policies), 'policy', 'policies')}"


def _intervals(base: str) -> str:
    return (
        f"mean [95 % interval]; changes against {base}: ratios of the means, paired by seed; "
        "= not significant"
    )


def _why_not(rows: Sequence[MetricRow]) -> str:
    return f"; {WHY_NOT}" if any(row.comparable is False for row in rows) else ""


def _cells(row: MetricRow) -> tuple[str, str]:
    mark = f" {NOT_COMPARABLE}" if row.comparable is False else ""
    shown = "" if row.ratio is None else spread(row.ratio.minus(1.0), change, 0.0)
    return spread(row.value, metric(row.metric[0]).form), shown + mark
