# SPDX-License-Identifier: Apache-2.0
"""A comparison of policies as a table for a paper: a row per policy, columns per metric.

Headings contain the units. An asterisk marks a change that is significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10

from rebat.core.formatting import TableForm, csv_line, name_field
from rebat.core.numbers import Form, about_percent, change, duration, number, percent, spread
from rebat.report.table import Table
from rebat.results.catalogue import metric
from rebat.results.comparison import (
    COMPARED,
    MetricRow,
    Runs,
    by_name,
    compared,
    field,
    shown_value,
)
from rebat.results.intervals import CONFIDENCE
from rebat.results.measures.platform import NOT_COMPARABLE, WHY_NOT
from rebat.results.metric import UNITS, Name

SIGNIFICANT = "*"
"""Mark of a change whose interval does not contain 0."""

DIGITS = 3
"""Number of significant digits of the smallest mean in a column."""

MOST_DECIMALS = 3


def form_of(name: Name, means: Sequence[float]) -> Form:
    """Return how values of a metric are written: all in one unit, with the same decimals.

    >>> form_of(("flow_mean_s", "all"), [7310.0, 9000.0])(7310.0)
    '2.03 h'
    >>> form_of(("useful_utilisation", None), [0.8142])(0.8142)
    '81.42 %'
    """
    kind = metric(name[0]).unit
    if kind == "share":
        return percent
    sizes = [abs(value) for value in means if value]
    unit, size = "", 1.0
    if kind in ("time", "node time"):
        unit, size = duration.fitting(max(min(sizes, default=1.0), 1.0))
        unit = f"node-{unit}" if kind == "node time" else unit
    if kind == "count" and all(value == int(value) for value in means):
        return number
    places = DIGITS - 1 - floor(log10(min(sizes) / size)) if sizes else 0
    return Form(((unit, size),), min(max(places, 0), MOST_DECIMALS))


def paper_table(
    form: TableForm,
    rows: Sequence[MetricRow],
    seeds: Runs[str],
    names: Sequence[Name],
    failed: Sequence[str] = (),
) -> str:
    """Return a table in LaTeX, Markdown or CSV.

    Parameters
    ----------
    rows : sequence of MetricRow
        All metrics of all policies.
    seeds : Runs
        The policies, in the order of the rows of the table, and the seeds.
    names : sequence of Name
        The metrics.
    failed : sequence of str
        Policies that failed, for the note.
    """
    by = by_name(rows)
    if form == "csv":
        return _csv(by, seeds.policies, names)
    cells = [[policy] for policy in seeds.policies]
    heads, groups = ["policy"], [("", ["policy"])]
    marks: set[str] = set()
    width = 2 if len(seeds.policies) > 1 else 1
    for name in names:
        shown = form_of(name, [by[name, p].value.mean for p in seeds.policies if (name, p) in by])
        title = _title(name, shown.unit)
        heads += [title, f"change of {title.partition(' (')[0]} (%)"][:width]
        groups.append((title, ["mean", "change (%)"][:width]))
        for line, policy in zip(cells, seeds.policies, strict=True):
            line.extend(_cells(by.get((name, policy)), shown, marks)[:width])
    note = _note(seeds, rows, marks, failed)
    return Table("", "", heads, cells, note, groups=groups).written(form)


def _title(name: Name, unit: str) -> str:
    row = metric(name[0])
    title = row.title.strip() if row.unit == "node time" else row.recorded(None)
    title += f", jobs {name[1]}" if name[1] not in (None, "all") else ""
    return f"{title} ({unit})" if unit else title


def _cells(row: MetricRow | None, form: Form, marks: set[str]) -> list[str]:
    """Return the mean and the change of a policy. ``marks`` collects the marks in the table."""
    if row is None:
        return ["-", "-"]
    text = ""
    if row.ratio is not None:
        effect = shown_value(row.ratio.minus(1.0))
        text = spread(effect, change.bare)
        mark = SIGNIFICANT if effect.low is not None and effect.excludes(0.0) else ""
        if row.comparable is False:
            mark = f" {NOT_COMPARABLE}"
        marks |= {mark.strip()} - {""}
        text += mark
    return [spread(shown_value(row.value), form.bare), text]


def _note(
    seeds: Runs[str], rows: Sequence[MetricRow], marks: set[str], failed: Sequence[str]
) -> str:
    n, base = len(seeds.seeds), seeds.policies[0]
    intervals = any(shown_value(row.value).low is not None for row in rows)
    parts = [f"Means over {n} seeds" if n > 1 else "One run per policy"]
    if intervals:
        parts[0] += f", {about_percent(CONFIDENCE)} intervals in brackets"
    if len(seeds.policies) > 1:
        parts.append(f"Changes against {base}" + (": ratios of means, paired by seed" * (n > 1)))
    if SIGNIFICANT in marks:
        parts.append(f"{SIGNIFICANT}: the interval does not contain 0")
    if NOT_COMPARABLE in marks:
        parts.append(WHY_NOT)
    if failed:
        parts.append(f"Failed: {', '.join(failed)}")
    return "".join(f"{part}. " for part in parts).strip()


def _csv(
    by: Mapping[tuple[Name, str], MetricRow], policies: Sequence[str], names: Sequence[Name]
) -> str:
    """Return the numbers of comparison.csv in wide form, with their units in the headings."""
    columns = ["policy", "seeds"]
    for name in names:
        title, unit = _title(name, ""), UNITS[metric(name[0]).unit]
        columns += [f"{title} ({unit})", f"{title} low ({unit})", f"{title} high ({unit})"]
        columns += [f"{title} {part}" for part in ("ratio", "ratio low", "ratio high", "differs")]
    lines = [csv_line(columns)]
    for policy in policies:
        present = [by[name, policy] for name in names if (name, policy) in by]
        cells = [str(present[0].value.n if present else 0)]
        for name in names:
            row = by.get((name, policy))
            values = dict(zip(COMPARED, compared(row), strict=True)) if row else {}
            cells += [field(values.get(column)) for column in _COLUMNS]
        lines.append(",".join([name_field(policy), *cells]) + "\n")
    return "".join(lines)


_COLUMNS = ("mean", "low", "high", "ratio", "ratio_low", "ratio_high", "differs")
