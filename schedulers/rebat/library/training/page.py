# SPDX-License-Identifier: Apache-2.0
"""The page of `rebat goodput`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import rebat
from rebat.core.units import format_duration
from rebat.figures.canvas import logarithmic, new_figure, svg_of, time_unit
from rebat.library.training.case import TrainingCase
from rebat.library.training.simulated import SimulatedJob
from rebat.models.ettr import enough_spares, ettr
from rebat.report.parts import Picture, Report, Table, percent

Simulations = Mapping[float, SimulatedJob]
"""Simulations by the value that varies, which is an interval (s) or a number of spare nodes."""


def report_of(
    case: TrainingCase,
    sentences: Sequence[str],
    record: Mapping[str, Any],
    over_interval: Simulations,
    over_spares: Simulations,
) -> Report:
    """Return a page with the answer and figures of ETTR over the interval and over spare nodes."""
    model = record["model"] or f"{case.law.rate:g} failures per 1,000 node-days"
    intervals = [_intervals(case, over_interval)] if over_interval else []
    curve = [_over_interval(case, over_interval)] if over_interval else []
    spares = [_spares(case, over_spares)] if over_spares else []
    points = [_over_spares(over_spares)] if over_spares else []
    return Report(
        title=f"Effective training time of {case.nodes} nodes",
        lead=(
            f"A job on {case.nodes} nodes with the failures of {model}. ETTR is productive time / "
            "available time. Brackets and bars are 95 % intervals."
        ),
        judgements=[],
        tables=[*intervals, *spares],
        pictures=[*curve, *points],
        provenance=[f"rebat {rebat.__version__}"],
        figures_note=(
            "Line: closed form, which has no shortage of nodes. Points: simulations on the engine, "
            "with 95 % intervals. Each point has other seeds."
        ),
        claims=False,
        findings=list(sentences),
    )


def _text(simulation: SimulatedJob) -> str:
    return f"{simulation.ettr:.4f} [{simulation.low:.4f}, {simulation.high:.4f}]"


def _intervals(case: TrainingCase, simulations: Simulations) -> Table:
    rows = [
        [format_duration(interval_s), f"{ettr(case.job(interval_s)):.4f}", _text(simulation)]
        for interval_s, simulation in simulations.items()
    ]
    columns = ["interval", "ETTR, closed form", "simulated"]
    return Table("", "Interval of checkpoints", columns, rows)


def _spares(case: TrainingCase, simulations: Simulations) -> Table:
    rows = [
        [
            f"{spares:.0f}",
            percent(enough_spares(case.mean_in_repair, int(spares))),
            _text(simulation),
            percent(simulation.shares["waiting"]),
        ]
        for spares, simulation in simulations.items()
    ]
    columns = ["spare nodes", "suffice, share of time", "ETTR, simulated", "waiting for nodes"]
    return Table("", "Spare nodes", columns, rows)


def _over_interval(case: TrainingCase, simulations: Simulations) -> Picture:
    figure = new_figure(7.0, 3.4)
    axes = figure.subplots()
    unit, length = time_unit(simulations)
    grid_s = np.geomspace(min(simulations), max(simulations), 80)
    axes.plot(grid_s / length, [ettr(case.job(float(s))) for s in grid_s], color="#888888")
    _points(axes, {s / length: simulation for s, simulation in simulations.items()})
    logarithmic(axes, max(simulations) / min(simulations))
    axes.set_xlabel(f"interval ({unit})")
    axes.set_ylabel("ETTR")
    return Picture("", "Interval of checkpoints", svg_of(figure))


def _over_spares(simulations: Simulations) -> Picture:
    figure = new_figure(7.0, 3.4)
    axes = figure.subplots()
    _points(axes, {float(spares): simulation for spares, simulation in simulations.items()})
    axes.set_xlabel("spare nodes")
    axes.set_ylabel("ETTR")
    return Picture("", "Spare nodes", svg_of(figure))


def _points(axes: Any, simulations: Simulations) -> None:
    places, values = list(simulations), list(simulations.values())
    below = [simulation.ettr - simulation.low for simulation in values]
    above = [simulation.high - simulation.ettr for simulation in values]
    means = [simulation.ettr for simulation in values]
    axes.errorbar(places, means, yerr=[below, above], fmt="o", capsize=3, color="#1f5fa8")
