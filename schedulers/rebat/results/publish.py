# SPDX-License-Identifier: Apache-2.0
"""A comparison of policies as a table for a paper: a row per policy, columns per metric.

Headings contain the units. An asterisk marks a change that is significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import NamedTuple

from rebat.core.formatting import csv_line, name_field
from rebat.core.markup import TableForm, latex_table, markdown_lines
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
from rebat.results.intervals import CONFIDENCE, spread
from rebat.results.measures.platform import NOT_COMPARABLE, WHY_NOT
from rebat.results.metric import UNITS, Name

SIGNIFICANT = "*"
"""Mark of a change whose interval does not contain 0."""

DIGITS = 3
"""Number of significant digits of the smallest mean in a column."""

MOST_DECIMALS = 3

_LENGTHS = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
"""Units of times, and of node time after "node-"."""


class Scale(NamedTuple):
    """The unit of a column, its length in the unit of files, and the number of decimals."""

    unit: str
    size: float
    decimals: int

    def text(self, value: float) -> str:
        """Return a value in this unit, without the unit."""
        return f"{value / self.size:.{self.decimals}f}"


def scale_of(name: Name, means: Sequence[float]) -> Scale:
    """Return the unit and the number of decimals for values of a metric.

    >>> scale_of(("flow_mean_s", "all"), [7310.0, 9000.0])
    Scale(unit='h', size=3600.0, decimals=2)
    >>> scale_of(("useful_utilisation", None), [0.8142])
    Scale(unit='%', size=0.01, decimals=2)
    """
    kind = metric(name[0]).unit
    if kind == "share":
        return Scale("%", 0.01, 2)
    sizes = [abs(value) for value in means if value]
    unit, size = "", 1.0
    if kind in ("time", "node time"):
        unit, size = next((row for row in _LENGTHS if sizes and min(sizes) >= row[1]), _LENGTHS[-1])
        unit = f"node-{unit}" if kind == "node time" else unit
    if kind == "count" and all(value == int(value) for value in means):
        return Scale(unit, size, 0)
    places = DIGITS - 1 - floor(log10(min(sizes) / size)) if sizes else 0
    return Scale(unit, size, min(max(places, 0), MOST_DECIMALS))


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
    groups, cells = [("", 1)], [[policy] for policy in seeds.policies]
    columns = ["policy"]
    marks: set[str] = set()
    for name in names:
        scale = scale_of(name, [by[name, p].value.mean for p in seeds.policies if (name, p) in by])
        several = len(seeds.policies) > 1
        groups.append((_title(name, scale.unit), 1 + several))
        columns += ["mean", "change (%)"][: 1 + several]
        for line, policy in zip(cells, seeds.policies, strict=True):
            line.extend(_cells(by.get((name, policy)), scale, marks)[: 1 + several])
    note = _note(seeds, rows, marks, failed)
    if form == "latex":
        return latex_table(columns, cells, note, groups)
    heads = ["policy"]
    for title, width in groups[1:]:
        heads += [title, f"change of {title.partition(' (')[0]} (%)"][:width]
    return "\n".join([*markdown_lines(heads, cells), "", note.replace("*", r"\*")]) + "\n"


def _title(name: Name, unit: str) -> str:
    row = metric(name[0])
    title = row.title.strip() if row.unit == "node time" else row.recorded(None)
    title += f", jobs {name[1]}" if name[1] not in (None, "all") else ""
    return f"{title} ({unit})" if unit else title


def _cells(row: MetricRow | None, scale: Scale, marks: set[str]) -> list[str]:
    """Return the mean and the change of a policy. ``marks`` collects the marks in the table."""
    if row is None:
        return ["-", "-"]
    change = ""
    if row.ratio is not None:
        percent = shown_value(row.ratio.minus(1.0))
        change = spread(percent, lambda value: f"{100 * value:+z.1f}")
        mark = SIGNIFICANT if percent.low is not None and percent.excludes(0.0) else ""
        if row.comparable is False:
            mark = f" {NOT_COMPARABLE}"
        marks |= {mark.strip()} - {""}
        change += mark
    return [spread(shown_value(row.value), scale.text), change]


def _note(
    seeds: Runs[str], rows: Sequence[MetricRow], marks: set[str], failed: Sequence[str]
) -> str:
    n, base = len(seeds.seeds), seeds.policies[0]
    intervals = any(shown_value(row.value).low is not None for row in rows)
    parts = [f"Means over {n} seeds" if n > 1 else "One run per policy"]
    if intervals:
        parts[0] += f", {CONFIDENCE:.0%} intervals in brackets".replace("%", " %")
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
