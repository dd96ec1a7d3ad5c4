"""Flow by size class, policies side by side (as Figures 6 and 8 of the node-stealing paper)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rebat.figures.canvas import COLOURS, new_figure, save
from rebat.metrics.summary import RunSummary

_DAY_S = 86_400.0


def _label(name: str) -> str:
    if not name.startswith("["):
        return name
    low, high = (int(part) for part in name.strip("[)").split(","))
    return f"[$2^{{{low.bit_length() - 1}}}$, $2^{{{high.bit_length() - 1}}}$)"


def _values(summary: RunSummary, field: str) -> dict[str, float]:
    values = {
        _label(name): getattr(flow, field)
        for name, flow in summary.flows.items()
        if flow is not None
    }
    everything = summary.flows.get("all")
    if field == "mean_s" and everything is not None:
        values["weighted"] = everything.weighted_mean_s
    return values


def draw_flows(summaries: Mapping[str, RunSummary], path: Path) -> None:
    """Maximum and mean flow by size class in days, and as ratios to the first policy."""
    names = list(summaries)
    rows = 2 if len(names) > 1 else 1
    figure = new_figure(10, 3.6 * rows)
    axes = figure.subplots(rows, 2, squeeze=False)
    for column, (field, title) in enumerate((("max_s", "Maximum flow"), ("mean_s", "Mean flow"))):
        series = {name: _values(summaries[name], field) for name in names}
        groups = list(series[names[0]])
        _bars(axes[0][column], groups, series, _DAY_S)
        axes[0][column].set_ylabel(f"{title} (days)")
        if rows == 2:
            base = series[names[0]]
            ratios = {
                name: {
                    g: series[name][g] / base[g] for g in groups if base[g] and g in series[name]
                }
                for name in names[1:]
            }
            _bars(axes[1][column], groups, ratios, 1.0, first_colour=1)
            axes[1][column].axhline(1.0, color="black", linewidth=0.8)
            axes[1][column].set_ylabel("ratio to the first policy")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("job size (nodes)")
    save(figure, path)


def _bars(
    axis: Any,
    groups: list[str],
    series: Mapping[str, Mapping[str, float]],
    scale: float,
    first_colour: int = 0,
) -> None:
    width = 0.8 / max(1, len(series))
    for position, (name, values) in enumerate(series.items()):
        xs = [index + (position + 0.5) * width - 0.4 for index in range(len(groups))]
        heights = [values.get(group, 0.0) / scale for group in groups]
        colour = COLOURS[(position + first_colour) % len(COLOURS)]
        axis.bar(xs, heights, width=width, label=name, color=colour)
    axis.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.3)
