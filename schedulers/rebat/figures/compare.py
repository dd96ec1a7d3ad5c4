# SPDX-License-Identifier: Apache-2.0
"""Two runs of one workload: by how much starts moved, and how long jobs waited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rebat.figures.canvas import COLOURS, new_figure, save, time_unit


def draw_comparison(
    moved: Sequence[tuple[float, float]],
    waits: Sequence[tuple[float, float]],
    labels: tuple[str, str],
    path: Path,
) -> None:
    """Left: start in B minus start in A over time; right: distribution of the waiting times.

    Parameters
    ----------
    moved : sequence of (start in A, start in B minus start in A)
        Seconds, one per job that ran in both.
    waits : sequence of (waiting time in A, waiting time in B)
        Seconds; empty where no submission is known.
    labels : (str, str)
        What to call A and B.
    path : Path
    """
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
    axis.set_ylabel(f"start in {labels[1]}, later by ({y_unit})")


def _waits(axis: Any, waits: Any, labels: tuple[str, str]) -> None:
    name, scale = time_unit(waits.ravel())
    shares = np.arange(1, len(waits) + 1) / max(1, len(waits))
    for column, label in enumerate(labels):
        xs = np.sort(waits[:, column]) / scale
        axis.step(xs, shares, where="post", color=COLOURS[column], label=label)
    axis.set_xlabel(f"waiting time ({name})")
    axis.set_ylabel("share of jobs that wait at most so long")
    axis.legend(frameon=False)
