# SPDX-License-Identifier: Apache-2.0
"""A map of the winner over two parameters, like Figure 9 of Du et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rebat.core.numbers import duration, number, share
from rebat.figures.canvas import new_figure, policy_colours
from rebat.figures.labels import label, legend, text_in_box
from rebat.results.comparison import Winner

LEAST, MOST = 0.15, 0.9
"""Opacity of a lead of 0 and of the largest lead of a map."""

UNDECIDED = "not decided"

MOST_NUMBERS = 160
"""Maximum number of cells of a map that shows leads as text."""


_PLATE = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0}
"""Background of a number on hatching."""


class Axis(NamedTuple):
    """A parameter of a map: its name in words, its values, and these as text."""

    title: str
    values: Sequence[Any]
    texts: Sequence[str]

    @staticmethod
    def of(title: str, values: Sequence[float], is_time: bool) -> Axis:
        """Return an axis of numbers. ``is_time``: they are in seconds."""
        return Axis(title, values, [duration(v) if is_time else number(v) for v in values])


Cells = Mapping[tuple[Any, Any], Winner]
"""The winner for each pair of values of the parameters. Pairs without a winner are missing."""


def opacity(winner: Winner, largest: float) -> float:
    """Return the opacity of a cell. ``largest`` is the largest lead of the map."""
    return LEAST + (MOST - LEAST) * min(winner.lead.mean / largest, 1.0) if largest else LEAST


def winner_map(cells: Cells, x: Axis, y: Axis, policies: Sequence[str], title: str) -> Any:
    """Draw a map. The colour of a cell is its winner, the opacity its lead.

    Cells that are not decided are hatched. The numbers are leads in per cent
    (omitted in maps with more than 160 cells, and in cells that are too small).
    """
    from matplotlib.patches import Patch, Rectangle

    figure = new_figure(max(1.8 + 0.62 * len(x.values), 5.2), 2.0 + 0.42 * len(y.values))
    axes = figure.subplots()
    shades = policy_colours(policies)
    largest = max((winner.lead.mean for winner in cells.values()), default=0.0)
    for (x_value, y_value), winner in cells.items():
        at = x.values.index(x_value) - 0.5, y.values.index(y_value) - 0.5
        shade, alpha = shades[winner.policy], opacity(winner, largest)
        axes.add_patch(Rectangle(at, 1, 1, facecolor=shade, alpha=alpha, linewidth=0))
        if not winner.decided:
            axes.add_patch(
                Rectangle(at, 1, 1, fill=False, hatch="////", edgecolor="white", linewidth=0)
            )
        if len(cells) <= MOST_NUMBERS:
            dark = alpha > (LEAST + MOST) / 2 and winner.decided
            text_in_box(
                axes,
                share.bare(winner.lead.mean),
                at,
                (1, 1),
                fontsize=7,
                color="white" if dark else "black",
                bbox=None if winner.decided else _PLATE,
            )
    axes.set_xlim(-0.5, len(x.values) - 0.5)
    axes.set_ylim(-0.5, len(y.values) - 0.5)
    axes.set_xticks(range(len(x.values)), x.texts, rotation=35, ha="right", fontsize=8)
    axes.set_yticks(range(len(y.values)), y.texts, fontsize=8)
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    axes.set_title(title, fontsize=10)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    handles = [Patch(facecolor=shades[name], alpha=MOST, label=label(name)) for name in policies]
    handles.append(Patch(facecolor="#bbbbbb", hatch="////", edgecolor="white", label=UNDECIDED))
    texts = [*map(label, policies), UNDECIDED]
    legend(figure, handles, texts, "outside lower center", 4, 8)
    return figure
