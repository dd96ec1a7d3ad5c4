# SPDX-License-Identifier: Apache-2.0
"""Figures 2, 3 and 4 of Vardas et al. 2022, and a figure of jobs of 512 nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebat.figures.boxes import svg_of, whiskers
from rebat.figures.canvas import colours, new_figure
from rebat.papers.common.parts import Picture
from rebat.papers.torus.batches import CASES, HOUR_S, Batches, BatchSetting, PlacementCase
from rebat.papers.torus.published import FIGURES
from rebat.results.intervals import any_interval

Lines = Mapping[str, Sequence[tuple[float, float]]]


def pictures(batches: Batches, densities: Lines) -> Iterator[Picture]:
    """Yield the figures for which there are runs."""
    yield Picture("Figure 2", "Weibull densities, scale 2160 h", _densities(densities))
    for scale_h, (paper, size) in FIGURES.items():
        settings = batches.of_scale(scale_h, size)
        if settings:
            title = f"completion times, scale {scale_h:g} h, jobs of {size} nodes"
            means = (batches.of(at, case) for at in settings for case in batches.cases(at))
            svg, drawn = _completion(batches, settings), any_interval(means)
            yield Picture(paper, title, svg, intervals=drawn)


def _densities(densities: Lines) -> str:
    figure = new_figure(6.0, 3.2)
    axis = figure.subplots()
    for colour, (name, points) in zip(colours(len(densities)), densities.items(), strict=True):
        axis.plot(*zip(*points, strict=True), label=name, color=colour, linewidth=1.2)
    axis.set_xlabel("time to failure (h)", fontsize=9)
    axis.set_ylabel("density (1/h)", fontsize=9)
    _plain(axis)
    axis.legend(frameon=False, fontsize=7)
    return svg_of(figure)


def _completion(batches: Batches, settings: Sequence[BatchSetting]) -> str:
    """Draw a panel per trace with a group of bars per duration. Whiskers are 95 % intervals."""
    figure = new_figure(5.4 * len(settings), 3.6)
    axes = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for axis, setting in zip(axes, settings, strict=True):
        _bars(axis, batches, setting)
    axes[0].set_ylabel("completion time (1000 h)", fontsize=9)
    axes[-1].legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    return svg_of(figure)


def _bars(axis: Any, batches: Batches, setting: BatchSetting) -> None:
    durations_s, cases = batches.durations_s(setting), batches.played(setting)
    width = 0.8 / len(cases)
    for place, (policy, which) in enumerate(cases):
        means = [batches.of(setting, PlacementCase(d, policy, which)) for d in durations_s]
        shown = [(x, mean) for x, mean in enumerate(means) if mean is not None]
        axis.bar(
            [x + (place - (len(cases) - 1) / 2) * width for x, _ in shown],
            [mean.mean / HOUR_S / 1000 for _, mean in shown],
            width,
            yerr=whiskers([mean for _, mean in shown], HOUR_S * 1000),
            error_kw={"linewidth": 0.6},
            color=colours(len(CASES))[CASES.index((policy, which))],
            label=f"{policy} {which or ''}".strip(),
        )
    axis.set_xticks(range(len(durations_s)), [f"{d / HOUR_S:g} h" for d in durations_s])
    law = batches.laws[setting.trace]
    axis.set_title(f"{setting.trace}: shape {law[1]:g}" if law else setting.trace, fontsize=9)
    axis.set_xlabel("duration of a job", fontsize=9)
    _plain(axis)


def _plain(axis: Any) -> None:
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
