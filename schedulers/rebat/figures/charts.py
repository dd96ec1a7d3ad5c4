# SPDX-License-Identifier: Apache-2.0
"""Charts for reports: boxes, stacked and grouped bars, lines, ratios, published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rebat.figures.canvas import (
    NARROWEST_AXIS,
    at_least,
    colours,
    logarithmic,
    new_figure,
    policy_colours,
    svg_of,
    time_unit,
    whiskers,
)
from rebat.figures.labels import label, legend
from rebat.results.catalogue import RATIOS, metric
from rebat.results.comparison import MetricRow
from rebat.results.intervals import Interval, any_interval

Series = Mapping[str, Mapping[str, Sequence[float]]]
"""Values (one per failure scenario) by policy, then by group on the x axis."""

BoxPanel = tuple[str, Series, Mapping[str, float]]
"""A panel: label of the y axis, boxes by policy and group, and single values (dots) by group."""


def in_time_units(title: str, series: Series, dots: Mapping[str, float]) -> BoxPanel:
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


def boxes(
    panels: Sequence[BoxPanel],
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
        _box_panel(axis, y_label, series, dots)
        if one_line:
            axis.axhline(1.0, color="black", linewidth=0.8)
    axes[0].legend(*_box_handles(panels), frameon=False, fontsize=8)
    return svg_of(figure)


def _box_panel(axis: Any, y_label: str, series: Series, dots: Mapping[str, float]) -> None:
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


def _box_handles(panels: Sequence[BoxPanel]) -> Any:
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


def grouped_bars(
    axis: Any,
    series: Mapping[str, tuple[Any, Sequence[Interval | None]]],
    unit: float = 1.0,
    width: float = 0.8,
) -> None:
    """Draw a group of bars per position on the x axis. Whiskers are 95 % intervals.

    Parameters
    ----------
    series : mapping
        For each name in the legend: a colour, and the mean of each group or None.
    unit : float
        Length of a unit of the y axis.
    width : float
        Width of a group. The distance between groups is 1.
    """
    each = width / len(series)
    for place, (name, (colour, means)) in enumerate(series.items()):
        shown = [(x, mean) for x, mean in enumerate(means) if mean]
        errors = whiskers([mean for _, mean in shown], unit)
        axis.bar(
            [x + (place - (len(series) - 1) / 2) * each for x, _ in shown],
            [mean.mean / unit for _, mean in shown],
            each,
            yerr=errors if any(map(any, errors)) else None,
            error_kw={"linewidth": 0.6},
            color=colour,
            label=name,
        )
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


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
    legend(figure, handles, labels, "outside upper left", 2, 9)
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
        _printed_panel(axis, policies, panel, shades)
    axes[0].set_yticks(range(len(policies)), [label(name) for name in policies], fontsize=8)
    axes[0].set_ylim(len(policies) - 0.5, -0.5)
    handles, texts = _printed_handles(shades, any(panel.printed for panel in panels))
    legend(figure, handles, texts, "outside upper center", 3, 8)
    return svg_of(figure)


def _printed_panel(
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


def _printed_handles(shades: Mapping[str, Any], printed: bool) -> Any:
    from matplotlib.lines import Line2D

    looks = [("o", shade, name) for name, shade in shades.items()]
    if printed:
        looks.insert(0, ("D", "black", "published"))
    handles = [
        Line2D([], [], marker=marker, color=shade, linestyle="") for marker, shade, _ in looks
    ]
    return handles, [label(name) for *_, name in looks]
