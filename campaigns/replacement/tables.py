# SPDX-License-Identifier: Apache-2.0
"""Tables of medians: makespans, use of node time, and outcomes of jobs that a failure hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebat.report.parts import Table, change, hours, number, share
from rebat.report.runs_index import Column, Setting, headings
from rebat.results.intervals import BySeed, Shown, interval, spread

from .published import FIGURES, RISES, RISES_REPLACED
from .published import SOURCES as PRINTED
from .runs import SOURCES, ReplacementCase, Runs, free, rise

COLUMNS = (
    Column("useful utilisation", "useful_utilisation", share),
    Column("idle", "idle_share", share),
    Column("down", "down_share", share),
    Column("lost to moves and failures", "lost_share", share),
    Column("mean wait (h)", "resizes_mean_wait_s", hours),
    Column("hits", "hits", number),
    Column("requeued", "resizes_requeued", number),
)

NO_FAILURES = "no failures"


def middle(values: BySeed, shown: Shown) -> str:
    """Format the median of values with its interval."""
    return spread(interval(values, of_median=True), shown)


def tables(runs: Runs) -> Iterator[Table]:
    """Yield two tables for each workload of Table III, from its first setting."""
    for workload in FIGURES:
        setting = runs.main(workload)
        if setting:
            yield _makespans(runs, setting)
            yield _sources(runs, setting)


def _cells(read: Callable[[str], BySeed]) -> list[str]:
    return [middle(read(column.metric), column.shown) for column in COLUMNS]


def _makespans(runs: Runs, setting: Setting) -> Table:
    rows, shown = [], set()
    for case in runs.cases(setting):
        alone = case._replace(replaces=False, how="")
        if alone not in shown and free(runs, setting, alone):
            shown.add(alone)
            makespan = middle(free(runs, setting, alone), hours)
            cells = _cells(lambda metric, case=alone: free(runs, setting, case, metric))  # type: ignore[misc]
            rows.append([alone.label, NO_FAILURES, makespan, "", "", "", *cells])
        rows.append([case.label, "failures", *_failing(runs, setting, case)])
    columns = ["policy", "case", "makespan (h)", "rise", "mean rise", "paper", *headings(COLUMNS)]
    title = f"{setting.workload}: makespan and use of the machine"
    return Table(f"{FIGURES[setting.workload][0]}, medians over seeds", title, columns, rows)


def _failing(runs: Runs, setting: Setting, case: ReplacementCase) -> list[str]:
    rises = rise(runs, setting, case)
    average = interval(rises)
    return [
        middle(runs.values(setting, case, "makespan_s"), hours),
        middle(rises, change),
        change(average.mean) if average else "",
        printed_rise(setting.workload, case),
        *_cells(lambda metric: runs.values(setting, case, metric)),
    ]


def printed_rise(workload: str, case: ReplacementCase) -> str:
    """Return the published increase of the makespan as text.

    It is empty if the paper has no value.
    """
    table = (RISES_REPLACED if case.replaces else RISES).get(workload, {})
    plain = not (case.other_axes or case.how)
    return f"{table[case.name]:+.0%}" if plain and case.name in table else ""


def _sources(runs: Runs, setting: Setting) -> Table:
    rows = [
        [
            case.label,
            *(middle(runs.values(setting, case, f"share_{name}"), share) for name in SOURCES),
        ]
        for case in runs.cases(setting)
        if case.replaces
    ]
    if setting.workload in PRINTED:
        paper = PRINTED[setting.workload]
        rows.append(["paper", *(share(paper[name]) if name in paper else "" for name in SOURCES)])
    title = f"{setting.workload}: outcomes of jobs that a failure hits"
    columns = ["policy", *SOURCES.values()]
    return Table(f"{FIGURES[setting.workload][1]}, medians over seeds", title, columns, rows)
