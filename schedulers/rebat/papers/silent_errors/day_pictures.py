# SPDX-License-Identifier: Apache-2.0
"""Figures 5 and 6 of RR-9296, and Table 1 as a figure: the days of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.parts import Key, Picture
from rebat.papers.silent_errors.drawing import PRINTED_COLOUR, RATIO, RULE_COLOURS, drawn, keys
from rebat.papers.silent_errors.published import PRINTED
from rebat.papers.silent_errors.sets import LISTS, TRUE, Cell, JobSets, Sets, over_q

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
                f"q-bar = {q:g}, {_failures(sets, cell):.1f} failed attempts per day",
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
