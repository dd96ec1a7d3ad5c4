# SPDX-License-Identifier: Apache-2.0
"""The report on batches on a torus: Table 1, Figures 2 to 4 and the claims of the paper.

The report also has a figure of jobs of 512 nodes, which is not in the paper.

References
----------
.. [1] I. Vardas, M. Ploumidis, M. Marazakis, "Exploring the impact of node failures on the resource
   allocation for parallel jobs", 2022, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebat.core.numbers import Form, number, share, spread
from rebat.figures.canvas import colours, new_figure, svg_of
from rebat.figures.charts import grouped_bars
from rebat.report.claims import INSIDE, NEAR, OUTSIDE, place_of
from rebat.report.parts import Picture, Report
from rebat.report.table import Table, bracketed
from rebat.results.intervals import Interval, any_interval, interval

from .batches import (
    ALONE,
    CASES,
    FIGURES,
    GAINS,
    HOUR_S,
    LINEAR,
    LISTS,
    RPS,
    SIZE,
    TABLE_1,
    Batches,
    BatchSetting,
    PlacementCase,
    Trace,
    batches,
)
from .claims import judgements

_OVER = {LINEAR: "Slurm-linear", RPS: "RPS"}


def convention_tables(batches: Batches) -> Iterator[Table]:
    """Yield two tables: how many published gains each convention reproduces, and all gains."""
    if len(batches.conventions) > 1:
        yield _counts(batches)
        yield _gain_rows(batches)


def _rows(batches: Batches) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield rows: convention, list of boxes, and cells for the published gains.

    A cell contains rebat's gain and the verdict on the published gain.
    """
    for convention in batches.conventions:
        runs = batches.under(convention)
        label = next(s for s in batches.settings if (s.begin_s, s.trace_end_s) == convention)
        for which in LISTS:
            cells = []
            for (trace, hours, over), shares in GAINS.items():
                gain = interval(runs.faps_gains(trace, SIZE, hours, which, over))
                for printed in shares:
                    place = place_of(gain, printed) if gain else ""
                    cells.append((spread(gain, share), place))
            if any(place for _, place in cells):
                yield label.convention, which, cells


def _counts(batches: Batches) -> Table:
    rows = []
    for convention, which, cells in _rows(batches):
        counts = Counter(place for _, place in cells)
        rows.append([convention, which, *(str(counts[p]) for p in (INSIDE, NEAR, OUTSIDE))])
    rows.sort(key=lambda row: (-int(row[2]), -int(row[3]), row[0], row[1]))
    columns = ["convention", "list", "inside", "near", "outside"]
    title = "published gains that each pair of assumptions explains, best first"
    return Table("not in the paper", title, columns, rows)


def _gain_rows(batches: Batches) -> Table:
    heads = [
        f"scale {scale:g} h, shape {shape:g}, {hours:g} h, over {_OVER[over]} ({share(gain)})"
        for ((scale, shape), hours, over), shares in GAINS.items()
        for gain in shares
    ]
    rows = [
        [convention, which, *(f"{gain} {place}".strip() for gain, place in cells)]
        for convention, which, cells in _rows(batches)
    ]
    title = "gains of FAPS for each pair of assumptions; published values in the headings"
    return Table("section 3", title, ["convention", "list", *heads], rows)


REMARKS = (
    "The paper does not list the boxes (partitions) from which FAPS and RPS choose. It only "
    "states that a heuristic finds a limited set of boxes without an exhaustive search. This "
    "report uses three lists: the 16 most cubic aligned boxes, all aligned boxes, and all boxes, "
    "including boxes that wrap around the edges. The policy called ceiling places a job on the "
    "nodes with the lowest failure probability, even if they form no box. No list of boxes can "
    "be better.",
    "The paper contains contradictions. Equation (1) as published is negative, and is smallest "
    "for the box with the highest failure probability. rebat uses the opposite sign. The paper "
    "states that benefits are larger for the smaller shape, but reports 23.5 % for shape 8 and "
    "79 % for shape 32. For a gain of 79 %, RPS must need at least 343,000 h for 72,000 h of "
    "work. On a new machine RPS needs this time only with shape 8. At scale 22000 h and shape 32 "
    "the benefit over RPS is 7.3 % in one sentence and 5.1 % in another.",
    "With the list of 16 boxes, rebat's gains are close to the small published gains (48 h, "
    "scale 22000 h). rebat's gain is close to the published 48 % (48 h, scale 5800 h) only with "
    "the list of all boxes. No single list reproduces both. On a new machine no list of boxes "
    "reaches 79 or 82 %. On a machine aged 438,000 h the list of all boxes reaches 79.8 % "
    "(docs/findings/torus.md).",
    "Claims are judged separately for each list, on the paper's torus (8x8x8x8) with its 1000 "
    "jobs and its repair time of 540 s. If a number is the largest or smallest of several "
    "values, its interval is wider, so that it is valid for all these values together "
    "(Bonferroni).",
)


def report(
    table: Path, laws: Mapping[str, Trace | None], densities: Lines, provenance: Sequence[str]
) -> Report:
    """Return the report of the batches in a campaign's ``results.parquet``.

    Parameters
    ----------
    laws : mapping
        For each trace, its mean scale (h) and mean shape, or None if its law is not the paper's.
    densities : mapping
        For each curve of Figure 2, its points: time (h) and density (1/h).
    """
    runs = Batches(batches(table), laws)
    shown = [*convention_tables(runs), *tables(runs)]
    intervals = bracketed(row for table in shown for row in table.rows)
    return Report(
        title="Failure-aware placement on a torus: evaluation repeated",
        lead=(
            "I. Vardas, M. Ploumidis, M. Marazakis: Exploring the impact of node failures on the "
            "resource allocation for parallel jobs, 2022. This report simulates section 3: equal "
            f"jobs run one after another on a torus ({', '.join(runs.tori)}) whose nodes fail. "
            f"Values are means over seeds{' with 95 % confidence intervals' if intervals else ''}. "
            "Gains are paired by seed."
        ),
        remarks=REMARKS,
        judgements=list(judgements(runs)),
        tables=shown,
        pictures=list(pictures(runs, densities)),
        provenance=[*provenance, "means are over the completed seeds"],
        subject="trace",
        figures_note="Bars are means over seeds.",
        intervals_note="Whiskers are 95 % confidence intervals.",
    )


def tables(batches: Batches) -> Iterator[Table]:
    """Yield the tables for which there are runs."""
    if batches.traces:
        yield _table_1(batches)
    for setting in batches.settings:
        yield _completion(batches, setting)
        yield _gains(batches, setting)


def _table_1(batches: Batches) -> Table:
    rows = []
    for setting in batches.traces:
        law, paper_trace = batches.laws[setting.trace], batches.trace(setting)
        printed = TABLE_1.get(paper_trace) if paper_trace else None
        scale_h, shape = law or (0.0, 0.0)
        cells = [
            setting.trace,
            setting.torus,
            number(scale_h) if law else "",
            number(shape) if law else "",
        ]
        for metric, digits, paper in (
            ("node_mttf_s", 1, printed and printed.node_mttf_h),
            ("system_mttf_s", 3, printed and printed.system_mttf_h),
        ):
            mean = batches.of(setting, ALONE, metric)
            cells += [_number(mean, digits, HOUR_S), number(paper) if paper else ""]
        rows.append([*cells, printed.remark if printed else ""])
    columns = ["trace", "torus", "scale (h)", "shape"]
    columns += ["node MTTF (h)", "paper", "system MTTF (h)", "paper", "remark"]
    of_paper = any(batches.trace(setting) for setting in batches.traces)
    name = "Table 1" if of_paper else "not in the paper"
    return Table(name, "mean times to failure", columns, rows)


def _completion(batches: Batches, setting: BatchSetting) -> Table:
    rows, cases = [], batches.played(setting)
    for duration_s in batches.durations_s(setting):
        means = [batches.of(setting, PlacementCase(duration_s, *case)) for case in cases]
        rows.append([f"{duration_s / HOUR_S:g} h", *(_number(m, 0, HOUR_S) for m in means)])
    columns = ["jobs of", *(f"{policy} {which or ''}".strip() for policy, which in cases)]
    return Table(
        figure_of(batches, setting), f"{setting.label}: completion time (h)", columns, rows
    )


def _gains(batches: Batches, setting: BatchSetting) -> Table:
    rows = []
    law = batches.trace(setting)
    for duration_s in batches.durations_s(setting):
        cases = [PlacementCase(duration_s, "faps", which) for which in batches.lists(setting)]
        for case in [*cases, PlacementCase(duration_s, "ceiling", None)]:
            if case not in batches.cases(setting):
                continue
            cells = []
            for over in (LINEAR, RPS):
                gain = None
                if case.which or over == LINEAR:
                    gain = interval(batches.gains(setting, case, over))
                printed: tuple[float, ...] = ()
                if law and setting.size == SIZE and case.policy == "faps":
                    printed = GAINS.get((law, duration_s / HOUR_S, over), ())
                cells += [_share(gain), ", ".join(share(paper) for paper in printed)]
            hours = f"{duration_s / HOUR_S:g} h"
            aborts = _number(batches.of(setting, case, "aborts"), 0)
            rows.append([hours, case.policy, case.which or "", aborts, *cells])
    columns = ["jobs of", "policy", "list", "aborts"]
    columns += ["over Slurm-linear", "paper", "over RPS, same list", "paper"]
    title = f"{setting.label}: gain of FAPS (how much sooner its batch completes)"
    return Table(figure_of(batches, setting), title, columns, rows)


def figure_of(batches: Batches, setting: BatchSetting) -> str:
    """Return the figure of the paper that shows a setting."""
    law = batches.trace(setting)
    name, size = FIGURES.get(law[0], ("", 0)) if law else ("", 0)
    return name if size == setting.size else "not in the paper"


def _number(estimate: Interval | None, digits: int, unit: float = 1.0) -> str:
    return spread(estimate, Form((("", unit),), digits))


def _share(estimate: Interval | None) -> str:
    return spread(estimate, share)


Lines = Mapping[str, Sequence[tuple[float, float]]]


def pictures(batches: Batches, densities: Lines) -> Iterator[Picture]:
    """Yield the figures for which there are runs."""
    yield Picture("Figure 2", "Weibull densities, scale 2160 h", _densities(densities))
    for scale_h, (paper, size) in FIGURES.items():
        settings = batches.of_scale(scale_h, size)
        if settings:
            title = f"completion times, scale {scale_h:g} h, jobs of {size} nodes"
            means = (batches.of(at, case) for at in settings for case in batches.cases(at))
            svg, drawn = _completion_curve(batches, settings), any_interval(means)
            yield Picture(paper, title, svg, intervals=drawn)


def _densities(densities: Lines) -> str:
    figure = new_figure(6.0, 3.2)
    axis = figure.subplots()
    for colour, (name, points) in zip(colours(len(densities)), densities.items(), strict=True):
        axis.plot(*zip(*points, strict=True), label=name, color=colour, linewidth=1.2)
    axis.set_xlabel("time to failure (h)", fontsize=9)
    axis.set_ylabel("density (1/h)", fontsize=9)
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=7)
    return svg_of(figure)


def _completion_curve(batches: Batches, settings: Sequence[BatchSetting]) -> str:
    """Draw a panel per trace with a group of bars per duration. Whiskers are 95 % intervals."""
    figure = new_figure(5.4 * len(settings), 3.6)
    axes = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for axis, setting in zip(axes, settings, strict=True):
        _bars(axis, batches, setting)
    axes[0].set_ylabel("completion time (1000 h)", fontsize=9)
    axes[-1].legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    return svg_of(figure)


def _bars(axis: Any, batches: Batches, setting: BatchSetting) -> None:
    durations_s, cases = batches.durations_s(setting), batches.played(setting)
    grouped_bars(
        axis,
        {
            f"{policy} {which or ''}".strip(): (
                colours(len(CASES))[CASES.index((policy, which))],
                [batches.of(setting, PlacementCase(d, policy, which)) for d in durations_s],
            )
            for policy, which in cases
        },
        HOUR_S * 1000,
    )
    axis.set_xticks(range(len(durations_s)), [f"{d / HOUR_S:g} h" for d in durations_s])
    law = batches.laws[setting.trace]
    axis.set_title(f"{setting.trace}: shape {law[1]:g}" if law else setting.trace, fontsize=9)
    axis.set_xlabel("duration of a job", fontsize=9)
    axis.grid(alpha=0.3)
