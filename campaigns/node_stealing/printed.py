# SPDX-License-Identifier: Apache-2.0
"""Figures of the published values of the node-stealing paper, next to rebat's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rebat.figures.printed import PrintedPanel, printed_svg
from rebat.report.parts import Picture
from rebat.report.runs_index import RunIndex, Setting
from rebat.results.intervals import Interval, any_interval, interval

from . import published
from .runs import HEADINGS, policies, seeds_of_all, semantics


class PrintedValue(NamedTuple):
    """A column of the paper's tables: heading with unit, metric, conversion and values."""

    heading: str
    metric: str
    counted: Callable[[float], float]
    values: Mapping[str, Mapping[str, float]]


def _percent(tables: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {policy: 100 * share for policy, share in table.items()}
        for name, table in tables.items()
    }


PRINTED = (
    PrintedValue(
        "useful utilisation (%)",
        "useful_utilisation",
        lambda share: 100 * share,
        _percent(published.UTILISATION),
    ),
    PrintedValue(
        "time with an idle node, as published (%)",
        "platform_idle_share",
        lambda share: 100 * published.idle_as_program(share),
        _percent(published.IDLE_SHARE),
    ),
    PrintedValue(
        "steals in the window",
        "steals",
        lambda count: count,
        {
            name: {policy: steals for policy, (steals, _) in table.items()}
            for name, table in published.STEALS.items()
        },
    ),
)


def printed_pictures(runs: RunIndex[str], setting: Setting) -> Iterator[Picture]:
    """Yield a figure of the published values of a setting, if the paper contains them."""
    panels = []
    for value in PRINTED:
        printed = published.printed(value.values, setting)
        if printed:
            panels.append(PrintedPanel(value.heading, printed, ours(runs, setting, value)))
    if panels:
        svg = printed_svg(policies(runs, setting), panels)
        title = f"{setting.workload}: published values and rebat ({setting.scenario.label})"
        series = [estimates for panel in panels for estimates in panel.ours.values()]
        drawn = any_interval(value for estimates in series for value in estimates.values())
        note = f"means over {seeds_of_all(runs, setting)}"
        note += ", 95 % intervals as lines" if drawn else ""
        yield Picture("Tables 4, 5, 7, 8, 9", title, svg, note, intervals=drawn)


def ours(
    runs: RunIndex[str], setting: Setting, value: PrintedValue
) -> dict[str, dict[str, Interval]]:
    """Return rebat's intervals by semantics and policy."""
    by_semantics: dict[str, dict[str, Interval]] = {}
    for prefix in reversed(semantics(runs, setting)):
        for policy in policies(runs, setting):
            values = runs.values(setting, prefix + policy, value.metric)
            counted = interval(map(value.counted, values.values()))
            if counted is not None:
                by_semantics.setdefault(HEADINGS[prefix], {})[policy] = counted
    return by_semantics
