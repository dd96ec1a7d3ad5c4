# SPDX-License-Identifier: Apache-2.0
"""The page of a calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

import rebat
from rebat.core.units import format_duration
from rebat.figures.canvas import new_figure, policy_colours, svg_of
from rebat.library.calibration.distance import N_PARTS, OFFSET_S, Floats, Quantiles
from rebat.library.calibration.verdict import FAIR, GOOD, ComparedConfiguration, Verdict
from rebat.report.parts import Picture, Report, Table, percent

MOST_LINES = 3
"""Number of configurations in the figure."""

NOT_MODELLED = (
    "priorities, fair share, advance reservations and limits of users",
    "partitions that share nodes, and features of nodes",
    "memory, if jobs share nodes",
    "jobs that wait for other jobs, or that a user or an administrator held",
)


def report_of(
    name: str,
    sha256: str,
    verdict: Verdict,
    recorded_s: Floats,
    simulated_s: dict[str, Floats],
    notes: Sequence[str],
) -> Report:
    """Return the page. It has sentences, a figure of the distributions, tables, and notes."""
    return Report(
        title=f"How close is the simulation to {name}?",
        lead=(
            "This page compares the recorded waits with simulations of the recorded jobs. A "
            "configuration is a policy and a number of nodes. Its distance is the mean factor "
            "between recorded and simulated waits (plus one minute) at the same quantile: 1 means "
            f"equal, up to {GOOD} is good, up to {FAIR} is fair. Brackets contain 95 % intervals "
            f"over {N_PARTS} equal parts of the recorded time. The first part is left out, because "
            "the simulated machine is empty at the beginning."
        ),
        judgements=[],
        tables=[_configurations(verdict), _groups(verdict.groups)],
        pictures=[_picture(recorded_s, simulated_s)],
        provenance=[
            f"rebat {rebat.__version__}, {len(verdict.configurations)} simulations",
            f"workload {name}, sha256 {sha256}",
        ],
        remarks=[f"Not modelled: {'; '.join(NOT_MODELLED)}.", *map(_sentence, notes)],
        figures_note="Share of the jobs whose wait is at most the time on the horizontal axis.",
        claims=False,
        findings=verdict.sentences,
    )


def _sentence(note: str) -> str:
    return f"In the record, {note}."


def _configurations(verdict: Verdict) -> Table:
    columns = [
        "configuration",
        "distance",
        "farther than the nearest",
        "factor of a job",
        "rank correlation",
        "same order",
        "useful node time",
        "jobs compared",
    ]
    rows = [_row(item) for item in verdict.configurations]
    used = "" if math.isnan(verdict.utilisation) else percent(verdict.utilisation)
    note = f"recorded useful node time {used}" if used else "all jobs"
    return Table(note, "Configurations, nearest first", columns, rows)


def _row(item: ComparedConfiguration) -> list[str]:
    return [
        item.title,
        item.distance_text,
        item.farther_text,
        f"{item.factor_of_job:.1f}",
        f"{item.correlation:.2f}",
        percent(item.same_order),
        percent(item.utilisation),
        str(item.jobs),
    ]


def _groups(rows: Sequence[Quantiles]) -> Table:
    shares = list(rows[0].recorded_s)
    columns = ["jobs of", "jobs", "mean, recorded", "simulated"]
    for share in shares:
        columns += [f"{float(share):.0%} quantile, recorded", "simulated"]
    return Table("nearest configuration", "Waits", columns, [_group(row, shares) for row in rows])


def _group(row: Quantiles, shares: Sequence[str]) -> list[str]:
    pairs = [(row.recorded_mean_s, row.simulated_mean_s)]
    pairs += [(row.recorded_s[share], row.simulated_s[share]) for share in shares]
    return [row.group, str(row.jobs), *(format_duration(round(s)) for pair in pairs for s in pair)]


def _picture(recorded_s: Floats, simulated_s: dict[str, Floats]) -> Picture:
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    shades = policy_colours(list(simulated_s))
    for name, waits_s in _lines(recorded_s, simulated_s):
        recorded = name == "recorded"
        axes.plot(
            np.sort(waits_s) + OFFSET_S,
            np.linspace(0, 1, len(waits_s)),
            label=name,
            color="#b8b8b8" if recorded else shades[name],
            linewidth=5.0 if recorded else 1.3,
        )
    axes.set_xscale("log")
    ticks = {60: "0", 660: "10 min", 3660: "1 h", 36060: "10 h", 360060: "100 h"}
    axes.set_xticks(list(ticks), list(ticks.values()), minor=False)
    axes.minorticks_off()
    axes.set_xlabel("wait")
    axes.set_ylabel("share of jobs")
    axes.legend(frameon=False, fontsize=9)
    return Picture("", "Waits", svg_of(figure), "recorded and simulated")


def _lines(recorded_s: Floats, simulated_s: dict[str, Floats]) -> Iterator[tuple[str, Floats]]:
    yield "recorded", recorded_s
    yield from list(simulated_s.items())[:MOST_LINES]
