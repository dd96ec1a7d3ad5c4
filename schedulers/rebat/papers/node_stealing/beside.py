# SPDX-License-Identifier: Apache-2.0
"""The node-stealing paper's tables as figures: what is printed, and ours in each semantics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rebat.figures.beside import Panel, beside_svg
from rebat.papers.common.parts import Picture
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.evidence import Evidence
from rebat.papers.node_stealing.tables import HEADINGS, seeds_note
from rebat.results.intervals import Interval, interval
from rebat.results.scenario import Scenario


class Printed(NamedTuple):
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
    Printed(
        "useful utilisation (%)", "useful_utilisation", lambda share: 100 * share,
        _percent(published.UTILISATION),
    ),
    Printed(
        "time with an idle node, as printed (%)", "platform_idle_share",
        lambda share: 100 * published.idle_as_program(share), _percent(published.IDLE_SHARE),
    ),
    Printed(
        "steals in the window", "steals", lambda count: count,
        {name: {policy: steals for policy, (steals, _) in table.items()}
         for name, table in published.STEALS.items()},
    ),
)  # fmt: skip


def beside_printed(evidence: Evidence, workload: str, scenario: Scenario) -> Iterator[Picture]:
    """A figure where the paper has printed something of this scenario."""
    panels = []
    for one in PRINTED:
        printed = published.printed(one.values, workload, scenario)
        if printed:
            panels.append(Panel(one.what, printed, ours(evidence, workload, scenario, one)))
    if panels:
        svg = beside_svg(evidence.policies(workload, scenario), panels)
        title = f"{workload}: printed and ours ({scenario.label})"
        note = seeds_note(evidence, workload, scenario, "as lines")
        yield Picture("Tables 4, 5, 7, 8, 9", title, svg, note)


def ours(
    evidence: Evidence, workload: str, scenario: Scenario, one: Printed
) -> dict[str, dict[str, Interval]]:
    """By semantics and policy."""
    found: dict[str, dict[str, Interval]] = {}
    for prefix in reversed(evidence.semantics(workload, scenario)):
        for policy in evidence.policies(workload, scenario):
            values = evidence.values(workload, prefix + policy, scenario, one.metric)
            counted = interval([one.counted(value) for value in values.values()])
            if counted is not None:
                found.setdefault(HEADINGS[prefix], {})[policy] = counted
    return found
