# SPDX-License-Identifier: Apache-2.0
"""Box plots over failure scenarios, as SVG texts for reports (Figures 1 to 21)."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rebat.figures.canvas import (
    colours,
    label,
    logarithmic,
    new_figure,
    policy_colours,
    time_unit,
    written,
)
from rebat.results.intervals import Interval

Series = Mapping[str, Mapping[str, Sequence[float]]]
"""Values (one per failure scenario) by policy, then by group on the x axis."""

Panel = tuple[str, Series, Mapping[str, float]]
"""A panel: label of the y axis, boxes by policy and group, and single values (dots) by group."""


def in_time_units(title: str, series: Series, dots: Mapping[str, float]) -> Panel:
    """Return a panel whose values in seconds are converted to a suitable unit."""
    boxed = [value for groups in series.values() for values in groups.values() for value in values]
    unit, scale = time_unit([*boxed, *dots.values()])
    return (
        f"{title} ({unit})",
        {
            policy: {group: [v / scale for v in values] for group, values in groups.items()}
            for policy, groups in series.items()
        },
        {group: value / scale for group, value in dots.items()},
    )


def svg_of(figure: Any) -> str:
    """Return a figure as an SVG element. It contains no date, and equal data have equal ids."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "rebat", "svg.fonttype": "none"}):
        written(figure, buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r'width="[^"]*pt" height="[^"]*pt"', "", text[text.index("<svg") :], count=1)
    return _short(text)


def _short(svg: str) -> str:
    """Remove metadata, substitute fonts, and decimals below 1/100 pt from an SVG."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(font-family: 'DejaVu Sans')[^;\"]*(, sans-serif)", r"\1\2", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(
        r' (?:d|x|y|transform)="[^"]*"',
        lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]).replace("\n", ""),
        svg,
    )
    return re.sub(r"\n\s*", "\n", svg)


def boxes(
    panels: Sequence[Panel],
    *,
    one_line: bool = False,
) -> str:
    """Draw panels of boxes in a row, as SVG.

    If ``one_line`` is set, a horizontal line at 1 is drawn (for ratios). The dots of a panel are
    the values without failures (Figure 1).
    """
    figure = new_figure(5.2 * len(panels), 3.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (y_label, series, dots) in zip(axes, panels, strict=True):
        _panel(axis, y_label, series, dots)
        if one_line:
            axis.axhline(1.0, color="black", linewidth=0.8)
    axes[0].legend(*_handles(panels), frameon=False, fontsize=8)
    return svg_of(figure)


def _panel(axis: Any, y_label: str, series: Series, dots: Mapping[str, float]) -> None:
    groups = list(dict.fromkeys(group for values in series.values() for group in values))
    width, shades = 0.8 / max(1, len(series)), policy_colours(series)
    for number, (policy, values) in enumerate(series.items()):
        shown = [(i, values[g]) for i, g in enumerate(groups) if values.get(g)]
        if shown:
            axis.boxplot(
                [list(v) for _, v in shown],
                positions=[i + (number + 0.5) * width - 0.4 for i, _ in shown],
                widths=width * 0.8,
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": shades[policy], "alpha": 0.5},
                medianprops={"color": "black"},
                flierprops={"markersize": 3},
            )
    points = [(i, dots[g]) for i, g in enumerate(groups) if g in dots]
    axis.plot([i for i, _ in points], [y for _, y in points], "o", color="red", markersize=4)
    axis.set_xticks(range(len(groups)), groups, rotation=35, ha="right", fontsize=7)
    axis.set_ylabel(y_label, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.3)


def _handles(panels: Sequence[Panel]) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    _, series, dots = panels[0]
    shades = policy_colours(series).values()
    handles: list[Any] = [Patch(facecolor=shade, alpha=0.5) for shade in shades]
    labels = [label(name) for name in series]
    if dots:
        handles.append(Line2D([], [], marker="o", color="red", linestyle=""))
        labels.append("without failures")
    return handles, labels


def lines(panels: Sequence[tuple[str, Mapping[str, Sequence[tuple[float, float]]]]]) -> str:
    """Draw panels of lines over the MTBF in hours, on a logarithmic axis.

    A panel consists of the label of its y axis and, by name, the points of each line.
    """
    figure = new_figure(5.2 * len(panels), 3.2)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (y_label, named) in zip(axes, panels, strict=True):
        shades = policy_colours(named)
        for name, points in named.items():
            x, y = zip(*points, strict=True)
            axis.plot(x, y, "o-", label=label(name), color=shades[name], markersize=3)
        logarithmic(axis, axis.dataLim.x1 / axis.dataLim.x0)
        axis.set_xlabel("MTBF (h)", fontsize=9)
        axis.set_ylabel(y_label, fontsize=9)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    return svg_of(figure)


def stacks(bars: Mapping[str, Mapping[str, float]], y_label: str) -> str:
    """Draw stacked bars, as in Figure 3, from shares by bar and part.

    Parts that are always 0 are omitted.

    The colour of a part depends on its position among all parts. Therefore, figures with the same
    parts have the same colours.
    """
    figure = new_figure(max(1.6 + 0.9 * len(bars), 4.6), 3.6)  # includes the legend
    axis = figure.subplots()
    parts = list(dict.fromkeys(part for values in bars.values() for part in values))
    bottom = [0.0] * len(bars)
    for part, colour in zip(parts, colours(len(parts)), strict=True):
        heights = [values.get(part, 0.0) for values in bars.values()]
        if not any(heights):
            continue
        axis.bar(range(len(bars)), heights, bottom=bottom, label=part, color=colour)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    axis.set_xticks(
        range(len(bars)), [label(name) for name in bars], rotation=35, ha="right", fontsize=7
    )
    axis.set_ylabel(y_label, fontsize=9)
    axis.legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    axis.spines[["top", "right"]].set_visible(False)
    return svg_of(figure)


def whiskers(estimates: Sequence[Interval], unit: float = 1.0) -> list[list[float]]:
    """Return the lengths of the whiskers below and above bars, 0 where there is no interval."""
    ends = [(e.mean, e.low, e.high) for e in estimates]
    return [
        [0.0 if low is None else (mean - low) / unit for mean, low, _ in ends],
        [0.0 if high is None else (high - mean) / unit for mean, _, high in ends],
    ]
