# SPDX-License-Identifier: Apache-2.0
"""Published values (diamonds) and rebat's values (points with 95 % intervals), by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import colours, label, new_figure
from rebat.figures.ratios import point
from rebat.results.intervals import Interval

APART = 0.26
"""Distance between the series of a policy. The distance between policies is 1."""


class PrintedPanel(NamedTuple):
    """The values of a metric: published values by policy, and rebat's by series and policy."""

    label: str
    printed: Mapping[str, float]
    ours: Mapping[str, Mapping[str, Interval]]


def printed_svg(policies: Sequence[str], panels: Sequence[PrintedPanel]) -> str:
    """Draw the panels side by side as SVG. Each panel has a row for each policy."""
    figure = new_figure(3.1 * len(panels) + 0.8, 1.3 + 0.34 * len(policies))
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    series = list(dict.fromkeys(name for panel in panels for name in panel.ours))
    shades = dict(zip(series, colours(len(series)), strict=True))
    for axis, panel in zip(axes, panels, strict=True):
        _panel(axis, policies, panel, shades)
    axes[0].set_yticks(range(len(policies)), [label(name) for name in policies], fontsize=8)
    axes[0].set_ylim(len(policies) - 0.5, -0.5)
    figure.legend(
        *_handles(shades, any(panel.printed for panel in panels)),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return svg_of(figure)


def _panel(
    axis: Any, policies: Sequence[str], panel: PrintedPanel, shades: Mapping[str, Any]
) -> None:
    for at, policy in enumerate(policies):
        if policy in panel.printed:
            axis.plot([panel.printed[policy]], [at], "D", color="black", markersize=4)
        for place, (name, shade) in enumerate(shades.items()):
            estimate = panel.ours.get(name, {}).get(policy)
            if estimate is not None:
                point(axis, estimate, at + APART * (place - (len(shades) - 1) / 2), shade)
    axis.set_xlabel(panel.label, fontsize=9)
    axis.locator_params(axis="x", nbins=5)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _handles(shades: Mapping[str, Any], printed: bool) -> Any:
    from matplotlib.lines import Line2D

    looks = [("o", shade, name) for name, shade in shades.items()]
    if printed:
        looks.insert(0, ("D", "black", "published"))
    handles = [
        Line2D([], [], marker=marker, color=shade, linestyle="") for marker, shade, _ in looks
    ]
    return handles, [label(name) for *_, name in looks]
