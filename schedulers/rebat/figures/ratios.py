# SPDX-License-Identifier: Apache-2.0
"""Ratios (points) with 95 % intervals (lines). Each metric has a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import NARROWEST_AXIS, at_least, label, new_figure, policy_colours
from rebat.results.catalogue import RATIOS, metric
from rebat.results.comparison import MetricRow
from rebat.results.intervals import Interval, any_interval

Ratios = Mapping[str, Mapping[str, Interval]]
"""Ratios by title of the metric, then by policy."""


NARROWEST = 7.0
"""Minimum width of a figure, in inches."""

_BETTER = {"high": "better \N{RIGHTWARDS ARROW}", "low": "\N{LEFTWARDS ARROW} better", "": ""}


def ratio_title(name: str) -> str:
    """Return the title of the panel of a metric, with an arrow that points to better values."""
    row = metric(name)
    return f"{row.title}\n{_BETTER[row.better]}"


def ratios_figure(rows: Sequence[MetricRow]) -> Any:
    """Draw the ratios of the main metrics over seeds, or return None if there are no ratios."""
    by_title: dict[str, dict[str, Interval]] = {}
    for name in RATIOS:
        for row in rows:
            if row.metric == name and row.ratio is not None:
                by_title.setdefault(ratio_title(name[0]), {})[row.policy] = row.ratio
    if not by_title:
        return None
    first = next(row.policy for row in rows if row.ratio is None)
    n = max(ratio.n for ratios in by_title.values() for ratio in ratios.values())
    return _drawn(by_title, first, f"{n} seeds")


def ratios_svg(by_title: Ratios, base: str, over: str, neutral: float = 1.0) -> str:
    """Draw ratios as SVG text for reports. ``over`` states over what the values are averaged.

    If ``neutral`` is 0, the values are differences.
    """
    return svg_of(_drawn(by_title, base, over, neutral))


def shows_intervals(by_title: Ratios) -> bool:
    """Return whether a figure of these ratios shows at least one interval."""
    return any_interval(ratio for ratios in by_title.values() for ratio in ratios.values())


def _drawn(by_title: Ratios, base: str, over: str, neutral: float = 1.0) -> Any:
    shown = {title: ratios for title, ratios in by_title.items() if ratios}
    policies = list(dict.fromkeys(policy for ratios in shown.values() for policy in ratios))
    shades = policy_colours([base, *policies])
    width = max(NARROWEST, 2.9 * len(shown) + 1.2)
    figure = new_figure(width, 1.9 + 0.32 * len(policies))
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, (title, ratios) in zip(axes, shown.items(), strict=True):
        axis.axvline(neutral, color="black", linewidth=0.8)
        for at, policy in enumerate(policies):
            if policy in ratios:
                point(axis, ratios[policy], at, shades[policy])
        at_least(axis, NARROWEST_AXIS, "x")
        axis.set_title(title, fontsize=10)
        axis.locator_params(axis="x", nbins=4)
    axes[0].set_yticks(range(len(policies)), [label(name) for name in policies])
    axes[0].set_ylim(len(policies) - 0.5, -0.5)
    figure.supxlabel(f"{'ratio to' if neutral else 'difference from'} {label(base)}", fontsize=10)
    shown_as = "Means and 95 % intervals" if shows_intervals(by_title) else "Means"
    figure.suptitle(f"{shown_as} over {over}", fontsize=10)
    return figure


def point(axis: Any, ratio: Interval, at: float, shade: Any) -> None:
    """Draw a mean and its interval at the vertical position ``at``."""
    low = ratio.mean if ratio.low is None else ratio.low
    high = ratio.mean if ratio.high is None else ratio.high
    axis.plot([low, high], [at, at], color=shade, linewidth=2)
    axis.plot([ratio.mean], [at], "o", color=shade)
