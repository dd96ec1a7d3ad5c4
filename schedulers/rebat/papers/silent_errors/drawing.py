# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of RR-9296 (Benoit et al. 2020), and define their colours.

Each panel is a separate SVG. The panels of a figure share the scale of the vertical axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import COLOURS, new_figure
from rebat.papers.common.parts import Key
from rebat.papers.silent_errors.sets import STALE, Points

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
