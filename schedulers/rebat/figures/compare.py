# SPDX-License-Identifier: Apache-2.0
"""Figures of two runs (starts and waiting times of jobs), and of a failure record.

The figure of a record shows durations with fitted laws, and failures over time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rebat.core.arrays import Floats
from rebat.core.numbers import duration
from rebat.core.units import US_PER_S
from rebat.figures.canvas import (
    COLOURS,
    FileForms,
    colours,
    logarithmic,
    new_figure,
    save,
    time_unit,
)
from rebat.figures.labels import label
from rebat.results.compare.schedules import Comparison

PNG = FileForms(("png",))


def draw_comparison(
    comparison: Comparison, labels: tuple[str, str], path: Path, forms: FileForms = PNG
) -> None:
    """Draw how much later jobs start in B than in A, and the distribution of waiting times.

    Parameters
    ----------
    labels : (str, str)
        Names of A and B.
    path : Path
        The files without their suffixes.
    forms : FileForms
        Formats and width of the files.
    """
    starts, waits = (
        (us := comparison.times_us[name]).T[~np.isnan(us).any(axis=0)] / US_PER_S
        for name in ("start", "waiting")
    )
    figure = new_figure(10, 3.8)
    left, right = figure.subplots(1, 2)
    _moved(left, starts, labels)
    _waits(right, waits, labels)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    for form in forms.formats:
        save(figure, path.with_suffix(f".{form}"), forms.width)


def _moved(axis: Any, starts: Any, labels: tuple[str, str]) -> None:
    begin, delay = starts[:, 0], starts[:, 1] - starts[:, 0]
    (x_unit, x), (y_unit, y) = time_unit(begin), time_unit(delay)
    axis.scatter(begin / x, delay / y, s=6, color=COLOURS[0], alpha=0.6, linewidths=0)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xlabel(f"start in {labels[0]} ({x_unit})")
    axis.set_ylabel(f"delay of the start in {labels[1]} ({y_unit})")


def _waits(axis: Any, waits: Any, labels: tuple[str, str]) -> None:
    name, scale = time_unit(waits.ravel())
    shares = np.arange(1, len(waits) + 1) / max(1, len(waits))
    for column, of_run in enumerate(labels):
        xs = np.sort(waits[:, column]) / scale
        axis.step(xs, shares, where="post", color=COLOURS[column], label=of_run)
    axis.set_xlabel(f"waiting time ({name})")
    axis.set_ylabel("share of jobs with at most this waiting time")
    axis.legend(frameon=False)


_LEFT_OUT = 0.005
"""Share of the shortest times that the logarithmic axis omits."""


class FailurePanel(NamedTuple):
    """Durations of one kind in seconds.

    ``longer`` contains, for each duration, the recorded share of longer durations. ``laws``
    contains this share as each law predicts it.
    """

    title: str
    times_s: Floats
    longer: Floats
    laws: Mapping[str, Floats]


def failures_figure(panels: Sequence[FailurePanel], times_s: Floats, title: str) -> Any:
    """Draw the panels, and the number of failures over time (seconds)."""
    figure = new_figure(11.0, 7.6)
    *places, last = figure.subplots(2, 2).ravel()
    names = sorted({name for panel in panels for name in panel.laws})
    shades = dict(zip(names, colours(len(names)), strict=True))
    for axis, panel in zip(places, panels, strict=False):
        _times(axis, panel, shades)
    _over_time(last, times_s)
    figure.suptitle(label(title), fontsize=12)
    return figure


def _times(axis: Any, panel: FailurePanel, shades: Mapping[str, Any]) -> None:
    """Draw durations on a logarithmic axis, because they span orders of magnitude."""
    axis.set_title(panel.title, fontsize=11)
    if not len(panel.times_s):
        axis.text(0.5, 0.5, "none", ha="center", transform=axis.transAxes)
        return
    if panel.times_s.min() == panel.times_s.max():
        text = f"all {len(panel.times_s)}: {duration(float(panel.times_s[0]))}"
        axis.text(0.5, 0.5, text, ha="center", transform=axis.transAxes)
        return
    unit, size = time_unit([float(np.median(panel.times_s))])
    axis.step(panel.times_s / size, panel.longer, where="post", color="black", label="recorded")
    for name, curve in panel.laws.items():
        axis.plot(panel.times_s / size, curve, color=shades[name], linewidth=1.3, label=label(name))
    shortest_s = float(np.quantile(panel.times_s, _LEFT_OUT))
    logarithmic(axis, panel.times_s.max() / shortest_s)
    axis.set_xlim(left=shortest_s / size)
    axis.set_ylim(0, 1.02)
    axis.set_xlabel(f"duration ({unit})")
    axis.set_ylabel("share of longer durations")
    axis.legend(fontsize=9)
    axis.grid(alpha=0.3)


def _over_time(axis: Any, times_s: Floats) -> None:
    unit, size = time_unit(times_s.tolist())
    axis.step(times_s / size, np.arange(1, len(times_s) + 1), where="post", color="black")
    axis.set_title("failures of the machine over time", fontsize=11)
    axis.set_xlabel(f"time ({unit})")
    axis.set_ylabel("number of failures")
    axis.grid(alpha=0.3)
