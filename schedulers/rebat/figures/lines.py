# SPDX-License-Identifier: Apache-2.0
"""Lines of a metric over a parameter, with bands of 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import label, new_figure, policy_colours, time_unit
from rebat.results.catalogue import metric
from rebat.results.intervals import Interval

Line = Sequence[tuple[float, Interval]]
"""Values of the parameter with the means."""

WIDE = 20.0
"""Ratio of the largest to the smallest value from which the axis is logarithmic."""


def lines_figure(panels: Mapping[str, Mapping[str, Line]], title: str, is_time: bool) -> Any:
    """Draw a panel per metric, and a line per policy.

    Parameters
    ----------
    panels : mapping
        Name of a metric -> policy -> line.
    title : str
        The parameter, without unit.
    is_time : bool
        Whether its values are in seconds.
    """
    policies = list(dict.fromkeys(policy for lines in panels.values() for policy in lines))
    shades = policy_colours(policies)
    unit, size = _unit(panels, is_time)
    figure = new_figure(3.4 * len(panels), 2.9 + 0.18 * len(policies))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, lines) in zip(axes, panels.items(), strict=True):
        scaled = {p: [(x / size, y) for x, y in line] for p, line in lines.items()}
        _panel(axis, name, scaled, shades)
        axis.set_xlabel(f"{title} ({unit})" if unit else title)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=min(len(labels), 2), frameon=False,
        fontsize=9,
    )  # fmt: skip
    return figure


def lines_svg(panels: Mapping[str, Mapping[str, Line]], title: str, is_time: bool) -> str:
    """Draw `lines_figure` as SVG text for reports."""
    return svg_of(lines_figure(panels, title, is_time))


def _unit(panels: Mapping[str, Mapping[str, Line]], is_time: bool) -> tuple[str, float]:
    """Return the unit of the parameter and its size in seconds; without unit, 1."""
    if not is_time:
        return "", 1.0
    return time_unit(x for lines in panels.values() for line in lines.values() for x, _ in line)


def _panel(axis: Any, name: str, lines: Mapping[str, Line], shades: Mapping[str, Any]) -> None:
    row = metric(name)
    unit, size = ("", 1.0)
    if row.unit == "time":
        unit, size = time_unit(mean.mean for line in lines.values() for _, mean in line)
    for policy, line in lines.items():
        at = [x for x, _ in line]
        axis.plot(
            at, [mean.mean / size for _, mean in line], "o-", color=shades[policy], markersize=4,
            label=label(policy),
        )  # fmt: skip
        low, high = zip(*(_ends(mean, size) for _, mean in line), strict=True)
        axis.fill_between(at, low, high, color=shades[policy], alpha=0.2, linewidth=0)
    every = [x for line in lines.values() for x, _ in line]
    if min(every) > 0 and max(every) / min(every) >= WIDE:
        axis.set_xscale("log")
    axis.set_title(f"{row.title.strip()} ({unit})" if unit else row.title.strip(), fontsize=10)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _ends(mean: Interval, size: float) -> tuple[float, float]:
    """Return the ends of an interval; the mean itself without interval."""
    if mean.low is None or mean.high is None:
        return mean.mean / size, mean.mean / size
    return mean.low / size, mean.high / size
