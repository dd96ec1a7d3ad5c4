# SPDX-License-Identifier: Apache-2.0
"""The node-stealing paper's tables as figures: what is printed, and ours in each semantics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rebat.figures.beside import PrintedPanel, beside_svg
from rebat.papers.common.parts import Picture
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.runs import HEADINGS, policies, seeds_note, semantics
from rebat.results.intervals import Interval, interval


class PrintedValue(NamedTuple):
    """A metric that a table prints: heading with unit, the metric, how it is counted there."""

    what: str
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
        "useful utilisation (%)", "useful_utilisation", lambda share: 100 * share,
        _percent(published.UTILISATION),
    ),
    PrintedValue(
        "time with an idle node, as printed (%)", "platform_idle_share",
        lambda share: 100 * published.idle_as_program(share), _percent(published.IDLE_SHARE),
    ),
    PrintedValue(
        "steals in the window", "steals", lambda count: count,
        {name: {policy: steals for policy, (steals, _) in table.items()}
         for name, table in published.STEALS.items()},
    ),
)  # fmt: skip


def beside_printed(runs: RunIndex[str], setting: Setting) -> Iterator[Picture]:
    """A figure where the paper has printed something of this setting."""
    panels = []
    for one in PRINTED:
        printed = published.printed(one.values, setting)
        if printed:
            panels.append(PrintedPanel(one.what, printed, ours(runs, setting, one)))
    if panels:
        svg = beside_svg(policies(runs, setting), panels)
        title = f"{setting.workload}: printed and ours ({setting.scenario.label})"
        note = seeds_note(runs, setting, "as lines")
        yield Picture("Tables 4, 5, 7, 8, 9", title, svg, note)


def ours(
    runs: RunIndex[str], setting: Setting, one: PrintedValue
) -> dict[str, dict[str, Interval]]:
    """By semantics and policy."""
    found: dict[str, dict[str, Interval]] = {}
    for prefix in reversed(semantics(runs, setting)):
        for policy in policies(runs, setting):
            values = runs.values(setting, prefix + policy, one.metric)
            counted = interval(map(one.counted, values.values()))
            if counted is not None:
                found.setdefault(HEADINGS[prefix], {})[policy] = counted
    return found
