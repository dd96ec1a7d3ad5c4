# SPDX-License-Identifier: Apache-2.0
"""Figures 3 and 4 and Tables 1 and 2 as tables: rebat's intervals and published values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rebat.report.claims import INSIDE, NEAR, place_of
from rebat.report.parts import Table, number, points, share
from rebat.report.runs_index import Run, mean_of
from rebat.results.intervals import BySeed, Shown, interval, minus, narrow

from . import published
from .runs import (
    ComparedGroup,
    MigrationCase,
    Runs,
    compactions,
    figure_4,
    named,
    seeds,
    table_2,
)


def printed_text(values: BySeed, printed: float, shown: Shown) -> str:
    """Format a published value. If its size verdict is 'inside' or 'near', add the verdict."""
    ours = interval(values)
    place = place_of(ours, printed) if ours else ""
    return shown(printed) + (f" ({place})" if place in (INSIDE, NEAR) else "")


def tables(index: Runs) -> Iterator[Table]:
    """Yield the tables for which there are runs."""
    loads = figure_4(index)
    if loads:
        yield _figure_4(index, loads)
    if published.FIGURE_3_LOAD in loads:
        yield _figure_3(index, loads[published.FIGURE_3_LOAD])
    if compactions(index):
        yield _overheads(index)
    for load, pair in table_2(index).items():
        yield _table_2(index, load, pair)


def _figure_4(index: Runs, loads: Mapping[int, ComparedGroup]) -> Table:
    rows = []
    for load, (base, forms) in loads.items():
        without, with_ = published.MIXED[load]
        before = index.values(*base, "node_states_mixed")
        cells = [
            narrow(interval(before), share),
            printed_text(before, without, share),
            "",
            "",
        ]
        rows.append([f"{load} %, without", *cells])
        for name, run in named(forms).items():
            after = index.values(*run, "node_states_mixed")
            fall = minus(after, before)
            cells = [narrow(interval(after), share), printed_text(after, with_, share)]
            cells += [
                narrow(interval(fall), points),
                printed_text(fall, with_ - without, points),
            ]
            rows.append([f"{load} %, {name}", *cells])
    columns = ["load", "mixed", "paper", "change, points", "paper"]
    over = seeds(index, next(iter(loads.values())).base)
    return Table(f"Figure 4, means over {over}", "Share of node time in mixed nodes", columns, rows)


class _Row(NamedTuple):
    """A row of a table: its label, and rebat's and the published values by state of nodes."""

    label: str
    values: Mapping[str, BySeed]
    printed: Mapping[str, float]
    shown: Shown = share


def _states(paper: str, title: str, rows: Sequence[_Row]) -> Table:
    columns = [heading for state in published.STATES for heading in (state, "paper")]
    lines = []
    for row in rows:
        line = [row.label]
        for state in published.STATES:
            values = row.values[state]
            printed = row.printed.get(state)
            line.append(narrow(interval(values), row.shown))
            line.append("" if printed is None else printed_text(values, printed, row.shown))
        lines.append(line)
    return Table(paper, title, ["", *columns], lines)


def states_of(index: Runs, run: Run[MigrationCase], of: str = "node_states") -> dict[str, BySeed]:
    """Return the share of node time in each state of nodes, by seed."""
    return {state: index.values(*run, f"{of}_{state}") for state in published.STATES}


def _figure_3(index: Runs, pair: ComparedGroup) -> Table:
    without, with_ = (
        {state: both[i] for state, both in published.FIGURE_3.items()} for i in (0, 1)
    )
    rows = [_Row("without", states_of(index, pair.base), without)]
    for name, run in named(pair.others).items():
        rows.append(_Row(name, states_of(index, run), with_))
    paper = f"Figure 3, means over {seeds(index, pair.base)}"
    return _states(paper, f"Node time at {published.FIGURE_3_LOAD} % load", rows)


def _table_2(index: Runs, load: int, pair: ComparedGroup) -> Table:
    rows = []
    for partition, states in published.TABLE_2[load].items():
        of = f"partition_states_{partition}"
        before, after = (states_of(index, run, of) for run in (pair.base, pair.others[0]))
        without, with_ = ({state: both[i] for state, both in states.items()} for i in (0, 1))
        rows.append(_Row(f"{partition}, without migration", before, without))
        rows.append(_Row(f"{partition}, with migration", after, with_))
        changes = {state: minus(after[state], before[state]) for state in published.STATES}
        printed = {state: with_[state] - without[state] for state in published.STATES}
        rows.append(_Row(f"{partition}, change, points", changes, printed, points))
    paper = f"Table 2, means over {seeds(index, pair.base)}"
    return _states(paper, f"Two partitions, {load} % load", rows)


def _overheads(index: Runs) -> Table:
    shown = (
        ("migrations a day", "migrations_a_day", number),
        ("core-seconds per migration", "cost_of_one", number),
        ("core-hours a day", "core_h_a_day", number),
        ("share of core time", "cost_share", "{:.2%}".format),
    )
    groups = compactions(index)
    rows = []
    for group in groups:
        workload = group.base.setting.workload
        for name, run in named(group.others).items():
            cells = [narrow(mean_of(index, run, metric), how) for _, metric, how in shown]
            memory = published.MEMORY_MB.get(workload, published.USUAL_MB)
            rows.append([f"{workload}, {name}", str(memory), *cells])
    columns = ["", "MB per task", *(heading for heading, *_ in shown)]
    paper = f"with the costs of Table 1, means over {seeds(index, groups[0].base)}"
    return Table(paper, "Cost of checkpoints and restarts", columns, rows)
