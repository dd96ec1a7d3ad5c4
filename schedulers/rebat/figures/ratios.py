"""Ratios to the first policy with their 95 % intervals: a point and a line each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rebat.figures.canvas import colours, label, new_figure, save

if TYPE_CHECKING:
    from rebat.metrics.seeded import Row

SHOWN = {
    ("useful_utilisation", None): "useful utilisation",
    ("flow_max_s", "all"): "maximum flow",
    ("flow_mean_s", "all"): "mean flow",
    ("flow_weighted_mean_s", "all"): "weighted mean flow",
}
"""Metrics that are drawn, with what they are called."""


def draw_ratios(rows: Sequence[Row], path: Path) -> None:
    """A panel per metric, a line per policy: paired ratio to the first policy."""
    found = [row for row in rows if row.ratio is not None and row.metric in SHOWN]
    policies = list(dict.fromkeys(row.policy for row in found))
    metrics = [metric for metric in SHOWN if any(row.metric == metric for row in found)]
    if not metrics:
        return
    first = next(row.policy for row in rows if row.ratio is None)
    figure = new_figure(3.2 * len(metrics) + 1, 1.6 + 0.35 * len(policies))
    axes = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    shades = dict(zip(policies, colours(len(policies)), strict=True))
    for axis, metric in zip(axes, metrics, strict=True):
        axis.axvline(1.0, color="black", linewidth=0.8)
        for row in found:
            if row.metric == metric and row.ratio is not None:
                ratio, at = row.ratio, policies.index(row.policy)
                low = ratio.mean if ratio.low is None else ratio.low
                high = ratio.mean if ratio.high is None else ratio.high
                axis.plot([low, high], [at, at], color=shades[row.policy], linewidth=2)
                axis.plot([ratio.mean], [at], "o", color=shades[row.policy])
        axis.set_title(SHOWN[metric], fontsize=10)
        axis.set_xlabel(f"ratio to {label(first)}")
        axis.locator_params(axis="x", nbins=4)
    axes[0].set_yticks(range(len(policies)), [label(name) for name in policies])
    axes[0].set_ylim(len(policies) - 0.5, -0.5)
    n = found[0].value.n
    figure.suptitle(f"Means and 95 % intervals over {n} seeds", fontsize=11)
    save(figure, path)
