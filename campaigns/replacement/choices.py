# SPDX-License-Identifier: Apache-2.0
"""Parameters that the paper leaves open, and the effect of each on the makespans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from rebat.report.parts import Table, change, share
from rebat.report.runs_index import Setting
from rebat.results.intervals import Interval, interval, spread

from . import published
from .runs import ReplacementCase, Runs, rise

Column = tuple[str, bool, str]
"""A column: policy, whether it replaces nodes, and the value that the column shows.

The value is the utilisation, the share of replacements from one source, or a rise: the relative
increase of the makespan due to failures.
"""

COLUMNS: dict[str, tuple[Column, ...]] = {
    published.MIXED: (
        ("baseline", False, "rise"),
        ("pra", False, "rise"),
        ("pwa", False, "rise"),
        ("dbes", False, "rise"),
        ("dbes", True, "rise"),
        ("dbes", False, "utilisation"),
    ),
    published.MOLDABLE_RIGID: (
        ("sa", False, "rise"),
        ("sa", True, "rise"),
        ("sa", True, "utilisation"),
        ("sa", True, "by_idle"),
        ("sa", True, "requeued"),
        ("sa", True, "by_restart"),
    ),
}
"""Columns of the table of a workload's variants. A column without runs is left empty."""

RIGID = {"easy": "EASY", "greedy": "greedy"}
"""Policies for rigid jobs other than the baseline."""

Row = Mapping[Column, Interval]


def choices(runs: Runs) -> Iterator[tuple[Table, str]]:
    """Yield a table and a sentence for each workload. A table's first row is its reference."""
    for workload, columns in COLUMNS.items():
        rows = dict(_rows(runs, columns, workload))
        if len(rows) > 1:
            yield _table(workload, columns, rows), _sentence(workload, rows)


def _rows(runs: Runs, columns: Sequence[Column], workload: str) -> Iterator[tuple[str, Row]]:
    settings = [setting for setting in runs.settings if _varies(setting, workload)]
    for setting in settings:
        rows: dict[str, dict[Column, Interval]] = {}
        for case in runs.cases(setting):
            label = _label(setting, case, settings[0])
            row = rows.setdefault(label, {})
            name = "baseline" if case.name in RIGID else case.name
            for column in columns:
                if column[:2] == (name, case.replaces):
                    shown = _shown(runs, setting, case, column[2])
                    if shown:
                        row[column] = shown
        yield from ((label, row) for label, row in rows.items() if row)


def _varies(setting: Setting, workload: str) -> bool:
    """Return whether a setting has the name of a variant of this workload of Table III."""
    return setting.workload not in published.FIGURES and setting.workload.startswith(f"{workload}-")


def _label(setting: Setting, case: ReplacementCase, reference: Setting) -> str:
    usual = (reference.scenario.law or "").split(",")
    law = [part for part in (setting.scenario.law or "").split(",") if part not in usual]
    return ", ".join(
        filter(None, (setting.grid, *law, RIGID.get(case.name), case.how, case.other_axes))
    )


def _shown(runs: Runs, setting: Setting, case: ReplacementCase, value: str) -> Interval | None:
    if value == "rise":
        return interval(rise(runs, setting, case), of_median=True)
    metric = "useful_utilisation" if value == "utilisation" else f"share_{value}"
    return runs.interval(setting, case, metric, of_median=True)


def _printed(workload: str, column: Column) -> float | None:
    name, replaces, value = column
    if value == "rise":
        table = published.RISES_REPLACED if replaces else published.RISES
        return table.get(workload, {}).get(name)
    if value == "utilisation":
        return published.UTILISATION.get(workload)
    return published.SOURCES.get(workload, {}).get(value)


def _heading(column: Column) -> str:
    name, replaces, value = column
    words = {
        "rise": "increase of the makespan",
        "by_idle": "idle nodes",
        "requeued": "waits",
        "by_restart": "start over",
    }.get(value, value)
    return f"{words}, {published.WORDS[name]}{' with replacement' if replaces else ''}"


def _table(workload: str, columns: Sequence[Column], rows: Mapping[str, Row]) -> Table:
    def cell(column: Column, estimate: Interval | None) -> str:
        return spread(estimate, change if column[2] == "rise" else share)

    def paper(column: Column) -> str:
        value = _printed(workload, column)
        return "" if value is None else (change if column[2] == "rise" else share)(value)

    lines = [
        [
            label,
            *(cell(column, row.get(column)) for column in columns),
            _distance_text(workload, row),
        ]
        for label, row in rows.items()
    ]
    lines.append(["paper", *(paper(column) for column in columns), ""])
    head = ["parameter", *(_heading(column) for column in columns)]
    head.append("root mean square difference from the published increases, points")
    title = f"{workload}: one parameter changed at a time (first row: reference)"
    return Table("open in the paper", title, head, lines)


def _rises(workload: str) -> list[Column]:
    return [
        column
        for column in COLUMNS[workload]
        if column[2] == "rise" and _printed(workload, column) is not None
    ]


def _distance(workload: str, row: Row) -> float | None:
    """Return the root mean square distance from the paper's rises.

    Return None if a rise is missing.
    """
    wanted = _rises(workload)
    if any(column not in row for column in wanted):
        return None
    squares = [(row[c].mean - (_printed(workload, c) or 0.0)) ** 2 for c in wanted]
    return sqrt(sum(squares) / len(squares))


def _distance_text(workload: str, row: Row) -> str:
    distance = _distance(workload, row)
    return "" if distance is None else f"{100 * distance:.1f}"


def _sentence(workload: str, rows: Mapping[str, Row]) -> str:
    """Return a sentence on the row closest to the published rises and on the largest changes."""
    first, reference = next(iter(rows.items()))
    distances = {
        label: d for label, row in rows.items() if (d := _distance(workload, row)) is not None
    }
    sentences = [f"Which open parameter has the largest effect ({workload})?"]
    if distances:
        best = min(distances, key=lambda label: distances[label])
        text = f"The row {best!r} is closest to the published increases of the makespan (root mean "
        text += f"square difference {100 * distances[best]:.1f} points"
        if first in distances:
            text += f"; {first!r}: {100 * distances[first]:.1f} points"
        sentences.append(f"{text}).")
    parts = []
    for column in reference:
        moved = {
            label: row[column].mean - reference[column].mean
            for label, row in rows.items()
            if column in row and label != first
        }
        if moved:
            most = max(moved, key=lambda label: abs(moved[label]))
            parts.append(f"{_heading(column)}: {100 * moved[most]:+z.1f} points ({most})")
    if parts:
        sentences.append(f"Largest change of each column, and its row: {'; '.join(parts)}.")
    return " ".join(sentences)
