# SPDX-License-Identifier: Apache-2.0
"""What the paper leaves open, one choice changed at a time: which of them move the makespans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from rebat.papers.common.parts import Table, change, share
from rebat.papers.common.runs_index import Setting
from rebat.papers.replacement import published
from rebat.papers.replacement.runs import ReplacementCase, Runs, rise
from rebat.results.intervals import RANKS, Interval, interval, spread

Column = tuple[str, bool, str]
"""A policy, whether it replaces, and what is shown of it: its rise, utilisation or idle share."""

COLUMNS: dict[str, tuple[Column, ...]] = {
    published.MIXED: (
        ("baseline", False, "rise"), ("pra", False, "rise"), ("pwa", False, "rise"),
        ("dbes", False, "rise"), ("dbes", True, "rise"), ("dbes", False, "utilisation"),
    ),
    published.MOLDABLE_RIGID: (
        ("sa", False, "rise"), ("sa", True, "rise"), ("sa", True, "utilisation"),
        ("sa", True, "by_idle"), ("sa", True, "requeued"), ("sa", True, "by_restart"),
    ),
}  # fmt: skip
"""Of the tables for workloads like those two; a column is empty where it was not run."""

RIGID = {"easy": "EASY", "greedy": "greedy"}
"""Other ways to schedule rigid jobs than the baseline's."""

Row = Mapping[Column, Interval]


def choices(runs: Runs) -> Iterator[tuple[Table, str]]:
    """For either workload a table with the reference first, and a sentence on what it shows."""
    for workload, columns in COLUMNS.items():
        rows = dict(_rows(runs, columns, workload))
        if len(rows) > 1:
            yield _table(workload, columns, rows), _sentence(workload, rows)


def _rows(runs: Runs, columns: Sequence[Column], workload: str) -> Iterator[tuple[str, Row]]:
    settings = [one for one in runs.settings if _varies(one, workload)]
    for setting in settings:
        found: dict[str, dict[Column, Interval]] = {}
        for case in runs.cases(setting):
            label = _label(setting, case, settings[0])
            row = found.setdefault(label, {})
            name = "baseline" if case.name in RIGID else case.name
            for column in columns:
                if column[:2] == (name, case.replaces):
                    shown = _shown(runs, setting, case, column[2])
                    if shown:
                        row[column] = shown
        yield from ((label, row) for label, row in found.items() if row)


def _varies(setting: Setting, workload: str) -> bool:
    """Whether these runs vary those of a workload of Table III: its name is their beginning."""
    return setting.workload not in published.FIGURES and setting.workload.startswith(f"{workload}-")


def _label(setting: Setting, case: ReplacementCase, reference: Setting) -> str:
    """The grid, and what of the failures' law and of the policy is not as in the first."""
    usual = (reference.scenario.law or "").split(",")
    law = [part for part in (setting.scenario.law or "").split(",") if part not in usual]
    return ", ".join(filter(None, (setting.grid, *law, RIGID.get(case.name), case.how, case.rest)))


def _shown(runs: Runs, setting: Setting, case: ReplacementCase, what: str) -> Interval | None:
    if what == "rise":
        return interval(rise(runs, setting, case), RANKS)
    metric = "useful_utilisation" if what == "utilisation" else f"share_{what}"
    return runs.interval(setting, case, metric, method=RANKS)


def _printed(workload: str, column: Column) -> float | None:
    name, replaces, what = column
    if what == "rise":
        return (
            (published.RISES_REPLACED if replaces else published.RISES).get(workload, {}).get(name)
        )
    if what == "utilisation":
        return published.UTILISATION.get(workload)
    return published.SOURCES.get(workload, {}).get(what)


def _heading(column: Column) -> str:
    name, replaces, what = column
    words = {"by_idle": "idle", "requeued": "waits", "by_restart": "start over"}.get(what, what)
    return published.WORDS[name] + (" replaced" if replaces else "") + f": {words}"


def _table(workload: str, columns: Sequence[Column], rows: Mapping[str, Row]) -> Table:
    def cell(column: Column, found: Interval | None) -> str:
        return spread(found, change if column[2] == "rise" else share)

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
    head = ["choice", *(_heading(column) for column in columns), "distance of the rises, points"]
    title = f"{workload}: one choice changed at a time (the first row: none)"
    return Table("what the paper leaves open", title, head, lines)


def _rises(workload: str) -> list[Column]:
    return [
        column for column in COLUMNS[workload]
        if column[2] == "rise" and _printed(workload, column) is not None
    ]  # fmt: skip


def _distance(workload: str, row: Row) -> float | None:
    """Root mean square of rise - printed rise over the policies; None where one is missing."""
    wanted = _rises(workload)
    if any(column not in row for column in wanted):
        return None
    squares = [(row[c].mean - (_printed(workload, c) or 0.0)) ** 2 for c in wanted]
    return sqrt(sum(squares) / len(squares))


def _distance_text(workload: str, row: Row) -> str:
    found = _distance(workload, row)
    return "" if found is None else f"{100 * found:.1f}"


def _sentence(workload: str, rows: Mapping[str, Row]) -> str:
    """Which row is nearest to the printed rises, and which moves each column most."""
    first, reference = next(iter(rows.items()))
    known = {label: d for label, row in rows.items() if (d := _distance(workload, row)) is not None}
    parts = []
    if known:
        best = min(known, key=lambda label: known[label])
        at = f"; {first!r} is at {100 * known[first]:.1f}" if first in known else ""
        parts.append(
            f"nearest to the printed rises is {best!r}, {100 * known[best]:.1f} points{at}"
        )
    for column in reference:
        moved = {
            label: row[column].mean - reference[column].mean
            for label, row in rows.items()
            if column in row and label != first
        }
        if moved:
            most = max(moved, key=lambda label: abs(moved[label]))
            parts.append(f"{_heading(column)} moves most by {most!r} ({100 * moved[most]:+.1f})")
    return f"{workload}, choices: " + "; ".join(parts) + "."
