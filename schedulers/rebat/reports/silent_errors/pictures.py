# SPDX-License-Identifier: Apache-2.0
"""Figures 2 to 4 of RR-9296: job sets that were drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rebat.models.resilient import HEURISTICS
from rebat.reports.parts import Key, Picture
from rebat.reports.silent_errors.drawing import RATIO, Panel, draw, keys
from rebat.reports.silent_errors.evidence import (
    BEST,
    KINDS,
    LISTS,
    SHELVES,
    STALE,
    TRUE,
    Evidence,
    Points,
)
from rebat.reports.silent_errors.published import ABOVE_OVER_PROCS, ABOVE_OVER_Q

_Line = Callable[..., Points]
PRINTED_KEY = Key("printed in the paper, in the colour of its heuristic", "#555555", "diamond")


class _Sweep(NamedTuple):
    """One of the two axes: the figures that show it, its words, its lines, how much they rest on.

    ``above`` are printed percentages above R-LIST-0 by heuristic.
    """

    rules: str
    best: str
    axis: str
    scale: float
    where: str
    line: _Line
    note: str
    above: Mapping[str, Points]


def synthetic_pictures(evidence: Evidence, source: str) -> Iterator[Picture]:
    n_procs, qs = evidence.over_q(source)
    q, procs = evidence.over_procs(source)
    sweeps = (
        (_Sweep("Figure 2", "4(a)", "average failure probability q-bar", 1, f"P = {n_procs:,}",
                evidence.line_over_q, evidence.basis(source, n_procs=n_procs), ABOVE_OVER_Q), qs),
        (_Sweep("Figure 3", "4(b)", "thousands of processors", 1000, f"q-bar = {q:g}",
                evidence.line_over_procs, evidence.basis(source, q=q), ABOVE_OVER_PROCS), procs),
    )  # fmt: skip
    for sweep, points in sweeps:
        if len(points) > 1:
            yield from _of_rules(evidence, source, sweep)
            yield from _of_heuristics(source, sweep)
            yield from _above_zero(source, sweep)


def _of_rules(evidence: Evidence, source: str, sweep: _Sweep) -> Iterator[Picture]:
    rules = evidence.rules(source)
    for family, group in (("R-LIST", LISTS), ("R-SHELF", SHELVES)):
        panels = [
            Panel(h, sweep.axis, _some(sweep, {r: sweep.line(source, h, r) for r in rules}))
            for h in group
        ]
        title = f"{source}: {family} and all rules, {sweep.where}"
        yield from _picture(sweep.rules, title, panels, sweep)


def _of_heuristics(source: str, sweep: _Sweep) -> Iterator[Picture]:
    line, panels, both = sweep.line, [], []
    for rule in ("LPT", "LA"):
        ours = _some(sweep, {h: line(source, h, rule) for h in HEURISTICS})
        stale = {f"{h}, {STALE}": line(source, h, rule, STALE) for h in LISTS[1:]}
        panels.append(Panel(rule, sweep.axis, ours))
        lists = {name: points for name, points in ours.items() if name in LISTS}
        both.append(Panel(rule, sweep.axis, {**lists, **_some(sweep, stale)}))
    where = f"{source}: Algorithm 1, {sweep.where}"
    yield from _picture(f"Figure {sweep.best}", where, panels, sweep)
    if any(name.endswith(STALE) for panel in both for name in panel.lines):
        title = f"{source}: stale reservations beside Algorithm 1, {sweep.where}"
        yield from _picture(f"cf. Figure {sweep.best}", title, both, sweep)


def _above_zero(source: str, sweep: _Sweep) -> Iterator[Picture]:
    """How far above R-LIST-0 the others are, with the percentages that the text prints."""
    zero = _best(source, sweep, "R-LIST-0", TRUE)
    panels = []
    for kept, words in KINDS:
        lines: dict[str, Points] = {}
        for heuristic in HEURISTICS[1:]:
            stale = kept == STALE and heuristic in LISTS
            best = _best(source, sweep, heuristic, kept)
            name = f"{heuristic}, {STALE}" if stale else heuristic
            lines[name] = [(x, 100 * (y / zero[x] - 1)) for x, y in best.items() if x in zero]
        panels.append(Panel(words, sweep.axis, _some(sweep, lines), _some(sweep, sweep.above)))
    shown = [panel for panel in panels if panel.lines]
    if shown:
        yield Picture(
            f"cf. Figure {sweep.best}",
            f"{source}: how far above R-LIST-0, {sweep.where}",
            draw(shown, "% above R-LIST-0"),
            note=f"Unit: % by which the mean makespan ratio exceeds R-LIST-0's, {BEST}. "
            f"{sweep.note}.",
            key=[*keys(_names(shown)), PRINTED_KEY],
        )


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _best(source: str, sweep: _Sweep, heuristic: str, kept: str) -> dict[float, float]:
    lpt, la = (dict(sweep.line(source, heuristic, rule, kept)) for rule in ("LPT", "LA"))
    return {x: min(lpt[x], la[x]) for x in lpt if x in la}


def _some(sweep: _Sweep, lines: Mapping[str, Points]) -> dict[str, Points]:
    """Those that were played, in the unit of the axis."""
    return {name: [(x / sweep.scale, y) for x, y in line] for name, line in lines.items() if line}


def _picture(paper: str, title: str, panels: Sequence[Panel], sweep: _Sweep) -> Iterator[Picture]:
    shown = [panel for panel in panels if panel.lines]
    if shown:
        note = f"Unit: {RATIO}, means. {sweep.note}."
        yield Picture(paper, title, draw(shown), note=note, key=keys(_names(shown)))
