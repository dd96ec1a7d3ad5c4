# SPDX-License-Identifier: Apache-2.0
"""The report on silent errors: Figures 2 to 6, Table 1 and the claims of RR-9296.

Figures 2 to 4 are on synthetic job sets, Figures 5 and 6 and Table 1 are on the days of a machine.
Each panel is a separate SVG. The panels of a figure share the scale of the vertical axis.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464), Section 5.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rebat.core.numbers import change, decimal, ratio
from rebat.figures.canvas import COLOURS, new_figure, svg_of
from rebat.models.resilient import HEURISTICS
from rebat.report.parts import Key, Picture, Report
from rebat.report.table import Table

from .claims import judge_days, judge_synthetic
from .sets import (
    ABOVE_OVER_PROCS,
    ABOVE_OVER_Q,
    BEST,
    KINDS,
    LISTS,
    PRINTED,
    PRINTED_FAILURES,
    SHELVES,
    STALE,
    TRUE,
    Cell,
    JobSets,
    Line,
    Points,
    Sets,
    Sweep,
    over_procs,
    over_q,
)

STALE_REMARK = (
    "The report has results for two kinds of reservations. Whenever a job ends, Algorithm 1 "
    "deletes all reservations and computes them again. The authors' public program never deletes "
    "a reservation. A failed job therefore waits behind all earlier reservations, and some "
    "processors stay idle although Algorithm 1 would use them. With these stale reservations the "
    "makespan of R-LIST-Q is about 25 % longer than that of R-LIST-0 at q-bar = 0.5, as in "
    "Figure 4(a) of the paper. With Algorithm 1 the difference is smaller. The published figures "
    "therefore seem to come from the program. This is not proven, because the inputs of the "
    "figures are not published."
)


def report(
    table: Path, synthetic: Sequence[str], days: Sequence[str], provenance: Sequence[str]
) -> Report:
    """Return the report of the synthetic job sets and of the days in ``results.parquet``."""
    sets = JobSets(table)
    synthetic = [name for name in synthetic if name in sets.settings]
    days = [name for name in days if name in sets.settings]
    return Report(
        title="Resilient list and shelf scheduling: evaluation repeated",
        lead=(
            "A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun: Design and comparison of "
            "resilient scheduling heuristics for parallel jobs, Inria RR-9296, 2020. This report "
            "simulates section 5. Values are makespans divided by their lower bounds, averaged "
            "over failure scenarios and job sets. Job sets are synthetic, or come from other "
            "days than those of the paper. So compare trends, not exact values."
        ),
        remarks=[STALE_REMARK],
        judgements=[
            *(j for name in synthetic for j in judge_synthetic(sets, name)),
            *(j for name in days for j in judge_days(sets, name)),
        ],
        tables=[
            *(t for name in synthetic for t in synthetic_tables(sets, name)),
            *(table_1(sets, name) for name in days),
        ],
        pictures=[
            *(p for name in synthetic for p in synthetic_pictures(sets, name)),
            *(p for name in days for p in day_pictures(sets, name)),
        ],
        provenance=[*provenance, "means are over the completed job sets"],
        subject="job sets",
        figures_note="Points are means over failure scenarios. In Figures 2 to 4 they are also "
        "means over job sets.",
    )


_UNIT = "Unit: makespan / lower bound"


def synthetic_tables(sets: JobSets, source: str) -> Iterator[Table]:
    """Yield Figure 4 as tables."""
    qs, procs = over_q(sets, source), over_procs(sets, source)
    yield Table(
        "cf. Figure 4(a)",
        f"{source}: Algorithm 1 and stale reservations, {BEST}, P = {qs.fixed:,}",
        [
            "q-bar",
            "R-LIST-0",
            "R-LIST-1",
            "stale",
            "R-LIST-Q",
            "stale",
            "Q over 0",
            "stale",
            "paper",
        ],
        _against(qs),
        f"{_UNIT}; the columns Q over 0 are R-LIST-Q / R-LIST-0 - 1. {qs.basis}.",
    )
    for rule in ("LPT", "LA"):
        title = f"{source}: mean normalised makespan, {rule}, P = {qs.fixed:,}"
        lines = [qs.line(h, rule) for h in HEURISTICS]
        rows = _by_x(qs, lines)
        yield Table("Figure 4(a)", title, ["q-bar", *HEURISTICS], rows, f"{_UNIT}. {qs.basis}.")
    if len(procs.xs) > 1:
        for rule in ("LPT", "LA"):
            title = f"{source}: mean normalised makespan, {rule}, q-bar = {procs.fixed:g}"
            lines = [procs.line(h, rule) for h in HEURISTICS]
            lines += [procs.line(h, rule, STALE) for h in LISTS[1:]]
            columns = ["P", *HEURISTICS, "R-LIST-1 stale", "R-LIST-Q stale"]
            rows = _by_x(procs, lines)
            yield Table("Figure 4(b)", title, columns, rows, f"{_UNIT}. {procs.basis}.")


def _against(sweep: Sweep) -> list[list[str]]:
    """Return a row per failure probability.

    The row contains the best means of the list heuristics, and R-LIST-Q / R-LIST-0 - 1.
    """
    lines = [sweep.best(name, reservations) for name in LISTS[1:] for reservations in (TRUE, STALE)]
    table = []
    for q, base in sweep.best("R-LIST-0").items():
        above = [line[q] / base - 1 if q in line else None for line in lines[2:]]
        means = [ratio(line.get(q)) for line in lines]
        printed = "+26 %" if q == 0.5 else ""  # section 5.2
        table.append([f"{q:g}", ratio(base), *means, *(change(value) for value in above), printed])
    return table


def _by_x(sweep: Sweep, lines: Sequence[Line]) -> list[list[str]]:
    return [[f"{x:g}", *(ratio(line.get(x)) for line in lines)] for x in sweep.xs]


def table_1(sets: JobSets, source: str) -> Table:
    """Return Table 1.

    Its statistics are over days. The value of a day is the mean over its scenarios.
    """
    sweep = over_q(sets, source)
    n_procs = int(sweep.fixed)
    table = []
    for q in sweep.xs:
        for heuristic in HEURISTICS:
            cell = Cell(source, n_procs, q, TRUE, heuristic, "LPT")
            means = [*sets.of(cell).values()]
            if not means:
                continue
            ours = (statistics.fmean(means), statistics.pstdev(means), max(means))
            printed = PRINTED.get((q, heuristic), (None, None, None))
            stale = None
            if heuristic in LISTS[1:]:
                stale = sets.mean(source, cell._replace(reservations=STALE), "mean")
            failures = statistics.fmean(sets.of(cell, "failures").values())
            paper = PRINTED_FAILURES.get(q)
            row = [f"{q:g}", heuristic, decimal(failures), decimal(paper)]
            for mine, theirs in zip(ours, printed, strict=True):
                row += [ratio(mine), ratio(theirs)]
            table.append([*row, ratio(stale)])
    columns = ["q-bar", "heuristic", "failed attempts", "paper", "average", "paper", "deviation"]
    columns += ["paper", "maximum", "paper", "average, stale"]
    title = f"{source}: LPT, P = {n_procs:,}; paper: June 2019"
    note = (
        f"{_UNIT}; failed attempts are counted over an entire job set. Average, deviation and "
        f"maximum are over the days. {sets.basis(source)}; paper: n = 30 x 1,000."
    )
    return Table("Table 1", title, columns, table, note)


RATIO = "makespan / lower bound"

_BLUE, _RED, _GREEN, _YELLOW, _CYAN, _PURPLE, _GREY = COLOURS
RULE_COLOURS = {
    "LPT": _BLUE,
    "LA": _RED,
    "HPA": _GREEN,
    "SPT": _YELLOW,
    "LPA": _CYAN,
    "SA": _PURPLE,
    "RANDOM": _GREY,
}
"""Colours of the rules. The rules that section 5.3 discusses have the most distinct ones."""

HEURISTIC_COLOURS = {
    "R-LIST-0": _BLUE,
    "R-LIST-1": _GREEN,
    "R-LIST-Q": _RED,
    "R-SHELF-B": _PURPLE,
    "R-SHELF-NB": _YELLOW,
}

PRINTED_COLOUR = "#000000"

WIDTH, HEIGHT = 5.0, 2.9
"""Size of a panel in inches, readable on the screen of a phone."""


class RatioPanel(NamedTuple):
    """A panel with named lines. ``marks`` contains the published points by name of the line."""

    title: str
    axis: str
    lines: Mapping[str, Points]
    marks: Mapping[str, Points] = {}


def colour_of(name: str) -> str:
    """Return the colour of a rule or a heuristic. The suffix `STALE` does not change the colour."""
    plain = name.removesuffix(f", {STALE}")
    return RULE_COLOURS.get(plain) or HEURISTIC_COLOURS.get(plain) or PRINTED_COLOUR


def keys(names: Iterable[str]) -> list[Key]:
    """Return the legend of lines."""
    return [Key(n, colour_of(n), "dashed" if n.endswith(STALE) else "line") for n in names]


def draw(panels: Sequence[RatioPanel], label: str = RATIO) -> str:
    """Draw each panel of lines as an SVG. All panels have the same scale."""
    return drawn([_painter(panel) for panel in panels], label)


def drawn(painters: Sequence[Callable[[Any], None]], label: str, height: float = HEIGHT) -> str:
    """Draw an SVG for each painter (a function that draws on an axis), all with one scale."""
    figures = []
    for paint in painters:
        figure = new_figure(WIDTH, height)
        axis = figure.subplots()
        paint(axis)
        axis.set_ylabel(label, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.yaxis.set_major_locator(_few(5))
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        figures.append((figure, axis))
    limits = [axis.get_ylim() for _, axis in figures]
    for _, axis in figures:
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    return "\n".join(svg_of(figure) for figure, _ in figures)


def _painter(panel: RatioPanel) -> Callable[[Any], None]:
    def paint(axis: Any) -> None:
        for name, points in panel.lines.items():
            style = "--" if name.endswith(STALE) else "-"
            axis.plot(
                *zip(*points, strict=True),
                style,
                color=colour_of(name),
                marker="o",
                markersize=2.5,
                linewidth=1.3,
            )
        for name, points in panel.marks.items():
            axis.plot(
                *zip(*points, strict=True),
                linestyle="",
                marker="D",
                markersize=7,
                color=colour_of(name),
                markeredgecolor=PRINTED_COLOUR,
            )
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel(panel.axis, fontsize=9)
        axis.xaxis.set_major_locator(_few(6))

    return paint


def _few(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 5, 10])


PRINTED_KEY = Key("published value, in the colour of its heuristic", "#555555", "diamond")


class _Axis(NamedTuple):
    """The horizontal axis of two figures: label, unit, and values.

    ``where`` is a text that states the fixed parameter of the figures. ``above`` contains by how
    many percent each heuristic exceeds R-LIST-0 in the paper.
    """

    rules: str
    best: str
    axis: str
    scale: float
    where: str
    sweep: Sweep
    above: Mapping[str, Points]

    def of(self, lines: Mapping[str, Line]) -> dict[str, Points]:
        """Return the lines that are not empty, with values in the unit of the axis."""
        return {
            name: [(x / self.scale, y) for x, y in line.items()]
            for name, line in lines.items()
            if line
        }


def synthetic_pictures(sets: JobSets, source: str) -> Iterator[Picture]:
    """Yield Figures 2 to 4."""
    qs, procs = over_q(sets, source), over_procs(sets, source)
    for axis in (
        _Axis(
            "Figure 2",
            "4(a)",
            "average failure probability q-bar",
            1,
            f"P = {qs.fixed:,}",
            qs,
            ABOVE_OVER_Q,
        ),
        _Axis(
            "Figure 3",
            "4(b)",
            "thousands of processors",
            1000,
            f"q-bar = {procs.fixed:g}",
            procs,
            ABOVE_OVER_PROCS,
        ),
    ):
        if len(axis.sweep.xs) > 1:
            yield from _of_rules(axis)
            yield from _of_heuristics(axis)
            yield from _above_zero(axis)


def _of_rules(axis: _Axis) -> Iterator[Picture]:
    source, line = axis.sweep.source, axis.sweep.line
    rules = axis.sweep.sets.rules(source)
    for family, group in (("R-LIST", LISTS), ("R-SHELF", SHELVES)):
        panels = [RatioPanel(h, axis.axis, axis.of({r: line(h, r) for r in rules})) for h in group]
        yield from _picture(
            axis.rules, f"{source}: {family} and all rules, {axis.where}", panels, axis
        )


def _of_heuristics(axis: _Axis) -> Iterator[Picture]:
    line, panels, both = axis.sweep.line, [], []
    for rule in ("LPT", "LA"):
        ours = axis.of({h: line(h, rule) for h in HEURISTICS})
        stale = {f"{h}, {STALE}": line(h, rule, STALE) for h in LISTS[1:]}
        panels.append(RatioPanel(rule, axis.axis, ours))
        lists = {name: points for name, points in ours.items() if name in LISTS}
        both.append(RatioPanel(rule, axis.axis, {**lists, **axis.of(stale)}))
    source = axis.sweep.source
    yield from _picture(f"Figure {axis.best}", f"{source}: Algorithm 1, {axis.where}", panels, axis)
    if any(name.endswith(STALE) for panel in both for name in panel.lines):
        title = f"{source}: stale reservations and Algorithm 1, {axis.where}"
        yield from _picture(f"cf. Figure {axis.best}", title, both, axis)


def _above_zero(axis: _Axis) -> Iterator[Picture]:
    """Yield a picture of the percentages above R-LIST-0, with the published values."""
    zero = axis.sweep.best("R-LIST-0")
    printed = {
        name: [(x / axis.scale, y) for x, y in points] for name, points in axis.above.items()
    }
    panels = []
    for reservations, words in KINDS:
        lines = {}
        for heuristic in HEURISTICS[1:]:
            name = (
                f"{heuristic}, {STALE}"
                if reservations == STALE and heuristic in LISTS
                else heuristic
            )
            best = axis.sweep.best(heuristic, reservations)
            lines[name] = {x: 100 * (y / zero[x] - 1) for x, y in best.items() if x in zero}
        panels.append(RatioPanel(words, axis.axis, axis.of(lines), printed))
    shown = [panel for panel in panels if panel.lines]
    if shown:
        yield Picture(
            f"cf. Figure {axis.best}",
            f"{axis.sweep.source}: percentages above R-LIST-0, {axis.where}",
            draw(shown, "% above R-LIST-0"),
            note=f"Unit: % by which the mean makespan ratio exceeds R-LIST-0's, {BEST}. "
            f"{axis.sweep.basis}.",
            key=[*keys(_names(shown)), PRINTED_KEY],
        )


def _names(panels: Sequence[RatioPanel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _picture(
    paper: str, title: str, panels: Sequence[RatioPanel], axis: _Axis
) -> Iterator[Picture]:
    shown = [panel for panel in panels if panel.lines]
    if shown:
        note = f"Unit: {RATIO}, means. {axis.sweep.basis}."
        yield Picture(paper, title, draw(shown), note=note, key=keys(_names(shown)))


SHOWN = ("LPT", "LA", "HPA")
"""The rules that section 5.3 discusses. The other rules are drawn as a band."""

BAND_COLOUR = "#dddddd"
_BAND = Key("from the best to the worst of the other rules", BAND_COLOUR, "band")
_AVERAGE = Key("paper: average of LPT (Table 1)", PRINTED_COLOUR, "dashed")
_LARGEST = Key("paper: maximum of LPT (Table 1)", PRINTED_COLOUR, "dotted")
_DIAMOND = Key("paper: average of LPT (Table 1)", PRINTED_COLOUR, "diamond")

_ByRule = Mapping[str, Sets]


def day_pictures(sets: JobSets, source: str) -> Iterator[Picture]:
    """Yield Figures 5 and 6, and Table 1 as a figure."""
    sweep = over_q(sets, source)
    n_procs, qs = int(sweep.fixed), sweep.xs
    yield from _at_a_glance(sets, source)
    note = f"Unit: {RATIO}, mean over failure scenarios for each day. {sets.basis(source)}."
    for heuristic in HEURISTICS:
        painters = [
            _days(
                f"q-bar = {q:g}, {decimal(_failures(sets, cell))} failed attempts per day",
                by_rule,
                PRINTED.get((q, heuristic)),
            )
            for q in qs
            if (by_rule := _by_rule(sets, cell := Cell(source, n_procs, q, TRUE, heuristic, "")))
        ]
        if painters:
            rules = sets.rules(source)
            others = [_BAND] if set(rules) - set(SHOWN) else []
            printed = [_AVERAGE, _LARGEST] if any((q, heuristic) in PRINTED for q in qs) else []
            yield Picture(
                "Figure 5" if heuristic in LISTS else "Figure 6",
                f"{source}: {heuristic}, P = {n_procs:,}",
                drawn(painters, RATIO, height=2.6),
                note=note,
                key=[*keys(rule for rule in SHOWN if rule in rules), *others, *printed],
            )


def _by_rule(sets: JobSets, cell: Cell, metric: str = "mean") -> dict[str, Sets]:
    rows = {rule: sets.of(cell._replace(rule=rule), metric) for rule in sets.rules(cell.source)}
    return {rule: dict(sorted(days.items())) for rule, days in rows.items() if days}


def _failures(sets: JobSets, cell: Cell) -> float:
    by_rule = _by_rule(sets, cell, "failures")
    return fmean(number for days in by_rule.values() for number in days.values())


def _days(title: str, by_rule: _ByRule, printed: Any) -> Callable[[Any], None]:
    """Return a function that draws a panel with the days as horizontal axis.

    It draws the rules in `SHOWN`, a band for the other rules, and published values.
    """

    def paint(axis: Any) -> None:
        names = sorted({day for days in by_rule.values() for day in days})
        place = {day: float(number) for number, day in enumerate(names, 1)}
        others = [days for rule, days in by_rule.items() if rule not in SHOWN]
        if others:
            spans = {place[day]: [days[day] for days in others if day in days] for day in names}
            filled = {at: means for at, means in spans.items() if means}
            lows, highs = map(min, filled.values()), map(max, filled.values())
            axis.fill_between([*filled], [*lows], [*highs], color=BAND_COLOUR, linewidth=0)
        for rule in reversed(SHOWN):  # draw LPT last, on top
            if days := by_rule.get(rule):
                axis.plot(
                    [place[day] for day in days],
                    [*days.values()],
                    color=RULE_COLOURS[rule],
                    linewidth=1.6 if rule == "LPT" else 1.1,
                )
        if printed:
            axis.axhline(printed.average, color=PRINTED_COLOUR, linestyle="--", linewidth=1)
            axis.axhline(printed.maximum, color=PRINTED_COLOUR, linestyle=":", linewidth=1)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(f"day (1 is {names[0]})", fontsize=9)
        axis.set_xlim(1, max(len(names), 2))

    return paint


def _at_a_glance(sets: JobSets, source: str) -> Iterator[Picture]:
    """Yield a picture of all rules' means over days, and of the published means of LPT."""
    sweep = over_q(sets, source)
    n_procs, qs = int(sweep.fixed), sweep.xs
    painters = []
    for q in qs:
        cells = [Cell(source, n_procs, q, TRUE, heuristic, "") for heuristic in HEURISTICS]
        if by_heuristic := {c.heuristic: rows for c in cells if (rows := _by_rule(sets, c))}:
            painters.append(_dots(q, by_heuristic))
    if painters:
        rules = sets.rules(source)
        dots = [Key(rule, RULE_COLOURS[rule], "dot") for rule in RULE_COLOURS if rule in rules]
        yield Picture(
            "cf. Table 1",
            f"{source}: averages over days, all rules, P = {n_procs:,}",
            drawn(painters, RATIO),
            key=[*dots, _DIAMOND],
            note=f"Unit: {RATIO}, means over scenarios and days. {sets.basis(source)}; the "
            "paper's: 30 days of June 2019 x 1,000.",
        )


def _dots(q: float, by_heuristic: Mapping[str, _ByRule]) -> Callable[[Any], None]:
    def paint(axis: Any) -> None:
        for at, (heuristic, by_rule) in enumerate(by_heuristic.items()):
            for number, (rule, colour) in enumerate(RULE_COLOURS.items()):
                if days := by_rule.get(rule):
                    mean = fmean(days.values())
                    axis.plot(at - 0.3 + 0.1 * number, mean, "o", color=colour, markersize=4.5)
            if printed := PRINTED.get((q, heuristic)):
                axis.plot(
                    at - 0.42, printed.average, "D", color=PRINTED_COLOUR, markersize=4
                )  # the first dot is next to LPT
        axis.set_title(f"q-bar = {q:g}", fontsize=10)
        axis.set_xticks(range(len(by_heuristic)), [*by_heuristic], fontsize=7)

    return paint
