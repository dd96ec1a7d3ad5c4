# SPDX-License-Identifier: Apache-2.0
"""Figures 3 and 4 and the shares of Table 2, from rebat's runs and from the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebat.figures.boxes import stacks, svg_of, whiskers
from rebat.figures.canvas import colours, new_figure
from rebat.report.parts import Picture
from rebat.report.runs_index import Run, mean_of
from rebat.results.intervals import Interval, any_interval, exact_number

from .published import FIGURE_3, FIGURE_3_LOAD, MIXED, STATES, TABLE_2
from .runs import (
    FORMS,
    WITHOUT,
    ComparedGroup,
    MigrationCase,
    Runs,
    figure_4,
    table_2,
)

_SHARE = "share of node time"
_PRINTED = ("paper, without", "paper, with")


def pictures(index: Runs) -> Iterator[Picture]:
    """Yield the figures for which there are runs."""
    loads = figure_4(index)
    if FIGURE_3_LOAD in loads:
        title = f"node time at {FIGURE_3_LOAD} % load"
        yield Picture("Figure 3", title, _figure_3(index, loads[FIGURE_3_LOAD]))
    if loads:
        yield _figure_4(index, loads)
    for load, pair in table_2(index).items():
        for partition, states in TABLE_2[load].items():
            svg = _table_2(index, partition, states, pair)
            yield Picture("Table 2", f"{partition} partition at {load} % load", svg)


def _means(index: Runs, run: Run[MigrationCase], of: str = "node_states") -> dict[str, float]:
    means = {state: index.mean(*run, f"{of}_{state}") for state in STATES}
    return {state: mean for state, mean in means.items() if mean is not None}


def _printed(states: Mapping[str, tuple[float, float]], which: int) -> dict[str, float]:
    return {state: states[state][which] for state in STATES}


def _figure_3(index: Runs, pair: ComparedGroup) -> str:
    bars = {_word(run.case): _means(index, run) for run in _shown(pair)}
    bars |= {name: _printed(FIGURE_3, which) for which, name in enumerate(_PRINTED)}
    return stacks(bars, _SHARE)


def _table_2(
    index: Runs, partition: str, states: Mapping[str, tuple[float, float]], pair: ComparedGroup
) -> str:
    bars = {}
    for which, (word, run) in enumerate((("without", pair.base), ("with", pair.others[0]))):
        bars[word] = _means(index, run, f"partition_states_{partition}")
        bars[_PRINTED[which]] = _printed(states, which)
    return stacks(bars, _SHARE)


def _shown(pair: ComparedGroup) -> list[Run[MigrationCase]]:
    return [pair.base, *(run for case in FORMS for run in pair.others if run.case == case)]


def _word(case: MigrationCase) -> str:
    return "without" if case == WITHOUT else case.label


def _figure_4(index: Runs, loads: Mapping[int, ComparedGroup]) -> Picture:
    """Draw a group of bars per load. Whiskers are 95 % intervals. The paper's bars are grey."""
    series: dict[str, dict[int, Interval]] = {}
    for load, pair in loads.items():
        for run in _shown(pair):
            mean = mean_of(index, run, "node_states_mixed")
            if mean:
                bars = series.setdefault(_word(run.case), {})
                bars[load] = mean
    drawn = any_interval(mean for bars in series.values() for mean in bars.values())
    for which, name in enumerate(_PRINTED):
        series[name] = {load: exact_number(MIXED[load][which]) for load in loads}
    figure = new_figure(max(1.0 + 1.2 * len(loads), 4.6), 3.8)
    axis = figure.subplots()
    for place, (name, bars) in enumerate(series.items()):
        _bars(axis, list(loads), bars, name, (place, len(series)))
    axis.set_xticks(range(len(loads)), [f"{load} %" for load in loads])
    axis.set_xlabel("load", fontsize=9)
    axis.set_ylabel("share of node time in mixed nodes", fontsize=9)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    title = "share of node time in mixed nodes"
    return Picture("Figure 4", title, svg_of(figure), intervals=drawn)


def _bars(
    axis: Any,
    loads: list[int],
    bars: Mapping[int, Interval],
    name: str,
    place: tuple[int, int],
) -> None:
    """Draw a series of bars.

    ``place`` contains the number of this series, and the number of all series.
    """
    width = 0.85 / place[1]
    at = [loads.index(load) + (place[0] - (place[1] - 1) / 2) * width for load in bars]
    ours = name not in _PRINTED
    colour = (
        colours(place[1])[place[0]] if ours else "#dddddd" if name == _PRINTED[0] else "#999999"
    )
    heights = [bar.mean for bar in bars.values()]
    axis.bar(
        at,
        heights,
        width,
        yerr=whiskers([*bars.values()]) if ours else None,
        error_kw={"linewidth": 0.7},
        color=colour,
        label=name,
    )
