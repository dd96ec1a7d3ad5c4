# SPDX-License-Identifier: Apache-2.0
"""Figure that compares the starts and the waiting times of jobs in two runs of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.units import to_s
from rebat.figures.canvas import COLOURS, new_figure, save, time_unit
from rebat.results.compare.schedules import Comparison


def draw_comparison(comparison: Comparison, labels: tuple[str, str], path: Path) -> None:
    """Draw how much later jobs start in B than in A, and the distribution of waiting times.

    Parameters
    ----------
    labels : (str, str)
        Names of A and B.
    """
    moved = [
        (to_s(pair.a.start), to_s(gap))
        for pair in comparison.pairs
        if pair.a.start is not None and (gap := pair.difference_us("start")) is not None
    ]
    rows = [(pair.a.waiting, pair.b.waiting) for pair in comparison.pairs]
    waits = [(to_s(a), to_s(b)) for a, b in rows if a is not None and b is not None]
    figure = new_figure(10, 3.8)
    left, right = figure.subplots(1, 2)
    _moved(left, np.array(moved, dtype=float).reshape(-1, 2), labels)
    _waits(right, np.array(waits, dtype=float).reshape(-1, 2), labels)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    save(figure, path)


def _moved(axis: Any, moved: Any, labels: tuple[str, str]) -> None:
    (x_unit, x), (y_unit, y) = (time_unit(moved[:, column]) for column in (0, 1))
    axis.scatter(moved[:, 0] / x, moved[:, 1] / y, s=6, color=COLOURS[0], alpha=0.6, linewidths=0)
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
