# SPDX-License-Identifier: Apache-2.0
"""Lines of a metric over a parameter, with bands that show 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import (
    NARROWEST_AXIS,
    at_least,
    label,
    logarithmic,
    new_figure,
    policy_colours,
    time_unit,
)
from rebat.results.catalogue import metric
from rebat.results.intervals import Interval

Line = Sequence[tuple[float, Interval]]
"""Pairs of a value of the parameter and the mean with its interval."""

Lines = Mapping[str, Line]
"""For each policy, the points of its line."""

WIDE = 20.0
"""If the largest value is at least this multiple of the smallest, the axis is logarithmic."""


class Panel(NamedTuple):
    """The lines of a metric, and a text to append to the title of the metric."""

    metric: str
    lines: Lines
    title: str = ""


def lines_figure(panels: Sequence[Panel], axis: str, is_time: bool) -> Any:
    """Draw the panels in a row.

    Parameters
    ----------
    axis : str
        The parameter, without unit.
    is_time : bool
        Whether its values are in seconds.
    """
    policies = list(dict.fromkeys(policy for panel in panels for policy in panel.lines))
    shades = policy_colours(policies)
    every = [x for panel in panels for line in panel.lines.values() for x, _ in line]
    unit, size = time_unit(every) if is_time else ("", 1.0)
    figure = new_figure(max(3.4 * len(panels), 5.0), 2.9 + 0.18 * len(policies))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for place, panel in zip(axes, panels, strict=True):
        scaled = {p: [(x / size, y) for x, y in line] for p, line in panel.lines.items()}
        _draw(place, panel._replace(lines=scaled), shades)
        place.set_xlabel(f"{axis} ({unit})" if unit else axis)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=min(len(labels), 2),
        frameon=False,
        fontsize=9,
    )
    return figure


def lines_svg(panels: Sequence[Panel], axis: str, is_time: bool) -> str:
    """Draw `lines_figure` as SVG text for reports."""
    return svg_of(lines_figure(panels, axis, is_time))


def _draw(place: Any, panel: Panel, shades: Mapping[str, Any]) -> None:
    row = metric(panel.metric)
    means = [mean.mean for line in panel.lines.values() for _, mean in line]
    unit, size = time_unit(means) if row.unit == "time" else ("", 1.0)
    for policy, line in panel.lines.items():
        at = [x for x, _ in line]
        place.plot(
            at,
            [mean.mean / size for _, mean in line],
            "o-",
            color=shades[policy],
            markersize=4,
            label=label(policy),
        )
        low, high = zip(*(_ends(mean, size) for _, mean in line), strict=True)
        place.fill_between(at, low, high, color=shades[policy], alpha=0.2, linewidth=0)
    every = [x for line in panel.lines.values() for x, _ in line]
    if min(every) > 0 and max(every) / min(every) >= WIDE:
        logarithmic(place, max(every) / min(every))
    if row.unit == "share":
        at_least(place, NARROWEST_AXIS, "y")
    title = f"{row.title.strip()} ({unit})" if unit else row.title.strip()
    place.set_title("\n".join(filter(None, (panel.title, title))), fontsize=10)
    place.grid(alpha=0.3)
    place.spines[["top", "right"]].set_visible(False)


def _ends(mean: Interval, size: float) -> tuple[float, float]:
    """Return the ends of an interval. If there is no interval, return the mean twice."""
    if mean.low is None or mean.high is None:
        return mean.mean / size, mean.mean / size
    return mean.low / size, mean.high / size
