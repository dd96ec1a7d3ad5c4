# SPDX-License-Identifier: Apache-2.0
"""Flow of policies by size class (as in Figures 6 and 8 of the node-stealing paper)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebat.figures.canvas import label, new_figure, policy_colours, time_unit
from rebat.results.measures.summary import RunSummary


def _size_class(name: str) -> str:
    if not name.startswith("["):
        return name
    low, high = (int(part) for part in name.strip("[)").split(","))
    return f"[$2^{{{low.bit_length() - 1}}}$, $2^{{{high.bit_length() - 1}}}$)"


def _values(summary: RunSummary, field: str) -> dict[str, float]:
    values = {
        _size_class(name): getattr(flow, field)
        for name, flow in summary.flows.items()
        if flow is not None
    }
    everything = summary.flows.get("all")
    if field == "mean_s" and everything is not None:
        values["weighted"] = everything.weighted_mean_s
    return values


def flows_figure(summaries: Mapping[str, RunSummary]) -> Any:
    """Draw largest and mean flow by size class, and their ratios to the first policy."""
    names = list(summaries)
    colour_of = policy_colours(names)
    rows = 2 if len(names) > 1 else 1
    figure = new_figure(10 + 0.4 * max(0, len(names) - 4), 3.6 * rows)
    axes = figure.subplots(rows, 2, squeeze=False)
    for column, (field, title) in enumerate((("max_s", "Largest flow"), ("mean_s", "Mean flow"))):
        series = {name: _values(summaries[name], field) for name in names}
        groups = list(dict.fromkeys(group for values in series.values() for group in values))
        unit, scale = time_unit(value for values in series.values() for value in values.values())
        _bars(axes[0][column], groups, series, scale, colour_of)
        axes[0][column].set_ylabel(f"{title} ({unit}), \N{DOWNWARDS ARROW} better")
        if rows == 2:
            others = _ratios(series, names)
            _bars(axes[1][column], groups, others, 1.0, colour_of)
            axes[1][column].axhline(1.0, color="black", linewidth=0.8)
            axes[1][column].set_ylabel(f"ratio to {label(names[0])}")
    handles, _ = axes[0][0].get_legend_handles_labels()
    shown = [label(name) for name in names]
    figure.legend(handles, shown, loc="outside upper center", ncols=4, frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("job size (nodes)")
    return figure


def _ratios(series: Mapping[str, Mapping[str, float]], names: list[str]) -> dict[str, Any]:
    """Return other policies' ratios to the first policy, where both policies have values."""
    base = series[names[0]]
    return {
        name: {g: value / base[g] for g, value in series[name].items() if base.get(g)}
        for name in names[1:]
    }


def _bars(
    axis: Any,
    groups: list[str],
    series: Mapping[str, Mapping[str, float]],
    scale: float,
    colour_of: Mapping[str, Any],
) -> None:
    width = 0.8 / max(1, len(series))
    for position, (name, values) in enumerate(series.items()):
        xs = [index + (position + 0.5) * width - 0.4 for index in range(len(groups))]
        heights = [values.get(group, 0.0) / scale for group in groups]
        axis.bar(xs, heights, width=width, label=label(name), color=colour_of[name])
    axis.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.3)
