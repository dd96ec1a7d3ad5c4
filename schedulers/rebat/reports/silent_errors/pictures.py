"""Figures 2 to 6 of RR-9296."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import COLOURS, new_figure
from rebat.kernels.resilient import HEURISTICS
from rebat.reports.parts import Picture
from rebat.reports.silent_errors.evidence import LISTS, SHELVES, STALE, TRUE, Cell, Evidence, Points

_Line = Callable[..., Points]


class Panel(NamedTuple):
    """Lines by name over an axis."""

    title: str
    axis: str
    lines: Mapping[str, Points]


def draw(panels: Sequence[Panel]) -> str:
    """Panels side by side as SVG, on one scale of normalised makespans."""
    figure = new_figure(4.4 * len(panels), 3.4)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for number, (name, points) in enumerate(panel.lines.items()):
            style = "--" if name.endswith(STALE) else "-"
            axis.plot(
                *zip(*points, strict=True), style, marker="o", markersize=2.5, linewidth=1,
                label=name, color=COLOURS[number % len(COLOURS)],
            )  # fmt: skip
        axis.set_title(panel.title, fontsize=9)
        axis.set_xlabel(panel.axis, fontsize=9)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("makespan / lower bound", fontsize=9)
    axes[-1].legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    return svg_of(figure)


def synthetic_pictures(evidence: Evidence, source: str) -> Iterator[Picture]:
    n_procs, qs = evidence.over_q(source)
    q, procs = evidence.over_procs(source)
    asked = (
        ("Figure 2", "4(a)", "q-bar", f"P = {n_procs}", evidence.line_over_q, len(qs)),
        ("Figure 3", "4(b)", "P", f"q-bar = {q:g}", evidence.line_over_procs, len(procs)),
    )
    for paper, best, axis, where, line, n_points in asked:
        if n_points < 2:
            continue
        for family, group in (("R-LIST", LISTS), ("R-SHELF", SHELVES)):
            panels = [
                Panel(h, axis, _some({r: line(source, h, r) for r in evidence.rules(source)}))
                for h in group
            ]
            title = f"{source}: {family} and all rules, {where}"
            yield from _picture(paper, title, panels)
        panels = [
            Panel(rule, axis, _some({h: line(source, h, rule) for h in HEURISTICS}))
            for rule in ("LPT", "LA")
        ]
        yield from _picture(f"Figure {best}", f"{source}: Algorithm 1, {where}", panels)
        panels = [Panel(r, axis, _both(line, source, r)) for r in ("LPT", "LA")]
        title = f"{source}: stale reservations beside Algorithm 1, {where}"
        yield from _picture(f"cf. Figure {best}", title, panels)


def _both(line: _Line, source: str, rule: str) -> dict[str, Points]:
    """Lists with both kinds of reservations; nothing where stale ones were not played."""
    stale = _some({f"{h}, {STALE}": line(source, h, rule, STALE) for h in LISTS[1:]})
    return {**_some({h: line(source, h, rule) for h in LISTS}), **stale} if stale else {}


def _some(lines: Mapping[str, Points]) -> dict[str, Points]:
    return {name: points for name, points in lines.items() if points}


def _picture(paper: str, title: str, panels: Sequence[Panel]) -> Iterator[Picture]:
    shown = [panel for panel in panels if panel.lines]
    if shown:
        yield Picture(paper, title, draw(shown))


def day_pictures(evidence: Evidence, source: str) -> Iterator[Picture]:
    n_procs, qs = evidence.over_q(source)
    for heuristic in HEURISTICS:
        panels = []
        for q in qs:
            by_rule = {
                rule: evidence.rows(Cell(source, n_procs, q, TRUE, heuristic, rule))
                for rule in evidence.rules(source)
            }
            lines = {
                rule: [(float(day), row.mean) for day, row in enumerate(found.values(), 1)]
                for rule, found in by_rule.items()
            }
            failures = [row.failures for found in by_rule.values() for row in found.values()]
            if failures:
                title = f"q-bar = {q:g}, {statistics.fmean(failures):.1f} failures a day"
                panels.append(Panel(title, "job set (day)", _some(lines)))
        paper = "Figure 5" if heuristic in LISTS else "Figure 6"
        yield from _picture(paper, f"{source}: {heuristic}, P = {n_procs}", panels)
