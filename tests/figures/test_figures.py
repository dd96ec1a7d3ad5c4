# SPDX-License-Identifier: Apache-2.0
"""Figures have distinct lines, explanations, suitable units and sizes, and cause no warnings."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest

from rebat.figures import runs
from rebat.figures.canvas import colours, content_of, time_unit
from rebat.figures.charts import in_time_units
from rebat.runs.single import RunResult
from rebat.state.ledger import Ledger
from tests.support.scenarios import fails, machine, run


def drawn(figure: Any) -> Any:
    """Draw a figure and return it."""
    assert content_of(figure).startswith(b"\x89PNG")
    return figure


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run("baseline", machine(4, (2, 10), (4, 10), (1, 5)), fails(0, 3, 6))


@pytest.mark.parametrize("n", [1, 7, 8, 14, 20, 21, 60])
def test_so_many_series_have_so_many_colours(n: int) -> None:
    assert len({str(colour) for colour in colours(n)}) == n


@pytest.mark.slow
def test_fourteen_policies_have_fourteen_colours_in_the_picture(result: RunResult) -> None:
    figure = drawn(runs.flows_figure({f"p{n}": result.summary for n in range(14)}))
    bars = figure.axes[0].containers
    assert len({container.patches[0].get_facecolor() for container in bars}) == 14
    shown = {handle.get_facecolor() for handle in figure.legends[0].legend_handles}
    assert len(shown) == 14
    ratios = figure.axes[2].containers
    assert [c.patches[0].get_facecolor() for c in ratios] == [
        c.patches[0].get_facecolor() for c in bars[1:]
    ]


def test_a_gantt_chart_explains_itself(result: RunResult) -> None:
    figure = drawn(runs.named_gantt({"baseline": result.ledger}, 4))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["work kept", "work lost to a failure, steal, resize or error", "node down"]


def test_outages_are_drawn_up_to_the_makespan() -> None:
    """All except two of 3,000 outages begin after the last job."""
    events = [event for k in range(3000) for event in fails(3, 8 + 5 * k, 12 + 5 * k)]
    ledger = run("easy", machine(4, (2, 15), (1, 4)), events).ledger
    assert len(ledger.node_events.outages(0).rows()) == 3000
    figure = drawn(runs.named_gantt({"easy": ledger}, 4))
    black = [c for c in figure.axes[0].collections if tuple(c.get_facecolor()[0][:3]) == (0, 0, 0)]
    spans = [path.get_extents().intervalx for c in black for path in c.get_paths()]
    assert [(round(low), round(high)) for low, high in spans] == [(8, 12), (13, 15)]


def test_units_fit(result: RunResult) -> None:
    flow = drawn(runs.flows_figure({"baseline": result.summary}))
    chart = drawn(runs.named_gantt({"baseline": result.ledger}, 4))
    assert flow.axes[0].get_ylabel() == "Largest flow (s), ↓\N{NO-BREAK SPACE}better"
    assert chart.axes[0].get_xlabel() == "time (s)"
    assert [time_unit([x])[0] for x in (0.0, 59.0, 60.0, 7200.0, 86_400.0)] == [
        "s", "s", "min", "h", "days",
    ]  # fmt: skip
    title, series, dots = in_time_units("flow", {"easy": {"all": [7200.0]}}, {"all": 3600.0})
    assert (title, series, dots) == ("flow (h)", {"easy": {"all": [2.0]}}, {"all": 1.0})


@pytest.mark.parametrize("name", ["_Mine", "a$b$c$", "漢字"])
def test_no_name_makes_matplotlib_talk(name: str, result: RunResult, capsys) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure = drawn(runs.flows_figure({"baseline": result.summary, name: result.summary}))
        drawn(runs.named_gantt({name: result.ledger}, 4))
        drawn(runs.named_gantt({name: Ledger()}, 4))
    assert [str(warning.message) for warning in told] == []
    assert capsys.readouterr().err == ""
    assert logging.getLogger("matplotlib").level == logging.ERROR
    shown = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert shown == ["baseline", name.replace("$", r"\$")]
