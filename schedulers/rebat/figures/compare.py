# SPDX-License-Identifier: Apache-2.0
"""Figure that compares the starts and the waiting times of jobs in two runs of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.units import US_PER_S
from rebat.figures.canvas import COLOURS, new_figure, save, time_unit
from rebat.results.compare.schedules import Comparison


def draw_comparison(comparison: Comparison, labels: tuple[str, str], path: Path) -> None:
    """Draw how much later jobs start in B than in A, and the distribution of waiting times.

    Parameters
    ----------
    labels : (str, str)
        Names of A and B.
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
    save(figure, path)


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
    for column, label in enumerate(labels):
        xs = np.sort(waits[:, column]) / scale
        axis.step(xs, shares, where="post", color=COLOURS[column], label=label)
    axis.set_xlabel(f"waiting time ({name})")
    axis.set_ylabel("share of jobs with at most this waiting time")
    axis.legend(frameon=False)
