# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.goodput`: a formula, simulations, sentences and a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from rebat.console.output import json_text
from rebat.console.progress import Count, compiling_notice, counting_bar
from rebat.core.files import write_text
from rebat.core.numbers import counted, decimal, duration, number, percent, share, spread
from rebat.core.version import rebat_version
from rebat.figures.canvas import logarithmic, new_figure, svg_of, time_unit
from rebat.models.ettr import (
    best_interval_s,
    daly_interval_s,
    enough_spares,
    ettr,
    ettr_safe_load,
    rework_s,
    rsc_ettr,
    spare_nodes,
    young_interval_s,
)
from rebat.report.parts import Picture, Report, html
from rebat.report.table import Table
from rebat.results.intervals import Interval
from rebat.studies.training.case import (
    FAILING,
    OnFailures,
    SimulatedJob,
    TrainingCase,
    expected_failures,
    never_advances,
    simulated,
)

POINTS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Checkpoint intervals shown in the figure, as multiples of the interval of the case."""

FEWER = (10, 60)
"""Number of simulations for a point of a figure, and expected failures in each of them.

The case itself is not simulated again, and each point has other seeds. Otherwise, all points would
have similar errors.
"""

EVERY_S = 2.0
"""Time between progress lines, in seconds, if standard error is not a terminal."""

N_SPARES = 6
"""Number of points in the figure that shows the effect of spare nodes."""


Point = tuple[str, float]
"""A point of a figure: the name of the axis, and the value."""


class Goodput(msgspec.Struct, frozen=True):
    """The effective training time of a case.

    ``str()`` returns it as text, ``write`` writes a page. If the job practically never advances,
    ``simulation`` is None.
    """

    case: TrainingCase
    simulation: SimulatedJob | None
    target: float
    seed: int
    runs: int

    @property
    def record(self) -> dict[str, Any]:
        """Return all numbers as plain values. Durations are in seconds."""
        case, job, s = self.case, self.case.job(), self.simulation
        best_s = 0.0 if case.tiers else best_interval_s(job.mtbf_s, job.write_s)
        in_repair = case.mean_in_repair
        return {
            "nodes": case.nodes,
            "rate": case.law.rate,
            "model": case.law.machine or None,
            "mtbf_s": job.mtbf_s,
            "interval_s": job.interval_s,
            "write_s": job.write_s,
            "detect_s": job.detect_s,
            "load_s": job.load_s,
            "tiers": case.tiers,
            "per_pattern": case.pattern.per_pattern,
            **({"counts": case.pattern.counts} if len(case.pattern.counts) > 1 else {}),
            "ettr_closed": case.closed_ettr,
            "ettr": s and s.ettr,
            "ettr_low": s and s.low,
            "ettr_high": s and s.high,
            "ettr_rsc": None if case.tiers else rsc_ettr(job),
            "ettr_safe_load": None if case.tiers else ettr_safe_load(job),
            "rework_s": None if case.tiers else rework_s(job),
            "failures": s and s.failures,
            "shares": s and s.shares,
            "best": {
                "interval_s": best_s or None,
                "young_s": young_interval_s(job.mtbf_s, job.write_s) if best_s else None,
                "daly_s": daly_interval_s(job.mtbf_s, job.write_s) if best_s else None,
                "ettr_closed": ettr(case.job(best_s)) if best_s else None,
            },
            "spares": {
                "mean_in_repair": in_repair,
                "target": self.target,
                "needed": spare_nodes(in_repair, self.target),
                "simulated": case.spares,
                "enough": None if case.spares is None else enough_spares(in_repair, case.spares),
                "failing": None if case.spares is None else case.failing,
                "repair": case.law.repair,
                "mean_repair_s": case.law.mean_repair_s,
            },
        }

    @property
    def json(self) -> str:
        """Return the numbers as JSON."""
        return json_text(self.record)

    @property
    def sentences(self) -> list[str]:
        """Return the answer as sentences, the most important one first."""
        r = self.record
        best, spares = r["best"], r["spares"]
        texts = [
            self._ettr_text,
            f"a failure every {duration(r['mtbf_s'])}, "
            f"a checkpoint every {duration(r['interval_s'])}" + self._tier_text,
        ]
        if best["interval_s"]:
            texts.append(
                f"best interval {duration(best['interval_s'])}: "
                f"ETTR {ETTR(best['ettr_closed'])} in closed form"
            )
        texts.append(
            f"{spares['needed']} spare nodes suffice {share(spares['target'])} of the time "
            f"(mean {decimal(spares['mean_in_repair'])} in repair)"
        )
        if spares["simulated"] is not None:
            texts.append(
                f"{spares['simulated']} spare nodes are simulated: they suffice "
                f"{share(spares['enough'])} of the time; the closed form has no shortage of nodes"
            )
            failing = self.case.failing
            texts.append(f"assumption: {FAILING[failing]} (--failing {failing})")
        texts.append(
            f"repair time of a node: {duration(spares['mean_repair_s'])} on average "
            f"(--repair {spares['repair']})"
        )
        return texts

    @property
    def _ettr_text(self) -> str:
        s, closed = self.simulation, f"{ETTR(self.case.closed_ettr)} in closed form"
        if s is None:
            return f"ETTR {closed}, not simulated: the job practically never advances"
        return f"ETTR {_text(s)} simulated ({counted(s.failures, 'failure')}), {closed}"

    @property
    def _tier_text(self) -> str:
        """Return a clause that states which checkpoints are also written to the later tiers."""
        tiers, number, text = self.case.parsed_tiers, 1, ""
        names = [*(tier.name for tier in tiers.lights[1:]), f"{tiers.deep.name} storage"]
        for name, count in zip(names, self.case.pattern.counts, strict=False):
            number *= count
            text += f", every {number}. in {name}" if number > 1 else ""
        return text

    @property
    def text(self) -> str:
        """Return a text with the answer, followed by the share of node time for each use."""
        if self.simulation is None:
            return "\n".join(self.sentences)
        named = {
            "useful": "useful work",
            "checkpoint": "checkpoints",
            "recovery": "recovery (stages, loading)",
            "waste_failure": "repeated work",
            "waiting": "waiting for nodes",
        }
        shares = self.simulation.shares
        width = max(map(len, named.values()))
        rows = [f"  {text:{width}}  {percent(shares[name]):>9}" for name, text in named.items()]
        return "\n".join([*self.sentences, "", "time of the job's nodes:", *rows])

    def __str__(self) -> str:
        return self.text

    def write(self, file: Path) -> None:
        """Simulate further intervals and numbers of spare nodes, and write a page with figures."""
        case = self.case
        intervals_s = [] if case.tiers else [case.period_s * factor for factor in POINTS]
        n_spares = spares_shown(spare_nodes(case.mean_in_repair, 0.999), case.nodes, case.spares)
        cases = {("interval", s): replace(case, interval_s=s) for s in intervals_s}
        cases |= {("spares", n): replace(case, spares=n) for n in n_spares}
        simulations = self._simulations(cases)
        over = {
            axis: {value: s for (name, value), s in simulations.items() if name == axis}
            for axis in ("interval", "spares")
        }
        sentences, record = self.sentences, self.record
        report = report_of(case, sentences, record, over["interval"], over["spares"])
        write_text(file, html(report))

    def _simulations(self, cases: dict[Point, TrainingCase]) -> dict[Point, SimulatedJob]:
        """Simulate the cases in which the job advances, except the case that is already known."""
        cases = {point: case for point, case in cases.items() if not never_advances(case)}
        others = {point: case for point, case in cases.items() if not self._has(case)}
        simulations: dict[Point, SimulatedJob] = {}
        total = sum(FEWER[0] * expected_failures(case, FEWER[1]) for case in others.values())
        with counting_bar("failures", total, EVERY_S) as on_done:
            for number, (point, case) in enumerate(others.items()):
                n_done = sum(s.failures for s in simulations.values())
                counted = _from(n_done, total, on_done)
                seed = self.seed + self.runs + number * FEWER[0]
                simulations[point] = simulated(case, seed, *FEWER, counted)
        if self.simulation is not None:
            simulations |= dict.fromkeys(cases.keys() - others.keys(), self.simulation)
        return {point: simulations[point] for point in cases}

    def _has(self, case: TrainingCase) -> bool:
        """Return whether the simulation of this result is that of another case."""
        own = replace(self.case, interval_s=self.case.interval_s or case.interval_s)
        return self.simulation is not None and case == own and case.period_s == self.case.period_s


def _from(begin: int, total: int, on_done: Count) -> OnFailures:
    return lambda done, of: on_done(begin + done, max(total, begin + done))


def spares_shown(most: int, nodes: int, own: int | None = None) -> list[int]:
    """Return the numbers of spare nodes in the figure, with that of the case if there is one.

    >>> spares_shown(15, 2048), spares_shown(2, 1), spares_shown(15, 2048, 4)
    ([0, 3, 6, 9, 12, 15], [0, 1], [0, 3, 4, 6, 9, 12, 15])
    """
    most = min(most, nodes)
    shown = {round(most * k / (N_SPARES - 1)) for k in range(N_SPARES)}
    return sorted(shown if own is None else shown | {own})


def simulated_goodput(
    case: TrainingCase, target: float, seed: int, runs: int, failures: int
) -> Goodput:
    """Simulate a case, unless the job practically never advances."""
    if never_advances(case):
        return Goodput(case, None, target, seed, runs)
    total = runs * expected_failures(case, failures)
    with compiling_notice(), counting_bar("failures", total, EVERY_S) as on_done:
        simulation = simulated(case, seed, runs, failures, on_done)
    return Goodput(case, simulation, target, seed, runs)


ETTR = number.with_decimals(4)
"""How an ETTR is written."""

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
    model = record["model"] or f"{number(case.law.rate)} failures per 1,000 node-days"
    intervals = [_intervals(case, over_interval)] if over_interval else []
    curve = [_over_interval(case, over_interval)] if over_interval else []
    spares = [_spares(case, over_spares)] if over_spares else []
    points = [_over_spares(over_spares)] if over_spares else []
    return Report(
        title=f"Effective training time of {counted(case.nodes, 'node')}",
        lead=(
            f"A job on {counted(case.nodes, 'node')} with the failures of {model}. ETTR is "
            "productive time / available time. Brackets and bars are 95 % intervals."
        ),
        judgements=[],
        tables=[*intervals, *spares],
        pictures=[*curve, *points],
        provenance=[f"rebat {rebat_version()}"],
        figures_note=(
            "Line: closed form, which has no shortage of nodes. Points: simulations on the engine, "
            "with 95 % intervals. Each point has other seeds."
        ),
        claims=False,
        findings=list(sentences),
    )


def _text(simulation: SimulatedJob) -> str:
    return spread(Interval(simulation.ettr, simulation.low, simulation.high), ETTR)


def _intervals(case: TrainingCase, simulations: Simulations) -> Table:
    rows = [
        [duration(interval_s), ETTR(ettr(case.job(interval_s))), _text(simulation)]
        for interval_s, simulation in simulations.items()
    ]
    columns = ["interval", "ETTR, closed form", "simulated"]
    return Table("", "Interval of checkpoints", columns, rows)


def _spares(case: TrainingCase, simulations: Simulations) -> Table:
    rows = [
        [
            number(spares),
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
