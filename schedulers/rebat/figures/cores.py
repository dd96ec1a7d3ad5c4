# SPDX-License-Identifier: Apache-2.0
"""Charts of the job on each core of each node at certain times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.figures.boxes import svg_of
from rebat.figures.canvas import label, new_figure

Ints = npt.NDArray[np.int64]

_GOLDEN = 0.618034
_PALE, _STRONG = 0.18, 0.75
"""Saturations of normal and of highlighted jobs."""


def cores_at_instants(
    instants: Mapping[str, Ints], cores: int, pointed_out: Collection[int] = ()
) -> str:
    """Draw a panel per time, with a row per node, a cell per core and a colour per job.

    Parameters
    ----------
    instants : mapping of str to int64 array, shape (nodes * cores,)
        For each time, the number of the job on each core; below 0 for free cores.
    cores : int
        Number of cores per node.
    pointed_out : collection of int
        Jobs to draw in strong colours with their numbers. Other jobs are pale.
    """
    rows = sum(len(owner) // cores for owner in instants.values())
    figure = new_figure(5.6, 0.6 * len(instants) + 0.22 * rows)
    axes = figure.subplots(len(instants), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (title, owner) in zip(axes, instants.items(), strict=True):
        _panel(axis, owner.reshape(-1, cores), pointed_out)
        axis.set_title(label(title), loc="left", fontsize=9)
        axis.set_ylabel("node", fontsize=8)
    axes[-1].set_xlabel("core", fontsize=8)
    return svg_of(figure)


def _panel(axis: Any, owner: Ints, pointed_out: Collection[int]) -> None:
    nodes, cores = owner.shape
    axis.pcolormesh(
        np.arange(cores + 1) - 0.5,
        np.arange(nodes + 1) - 0.5,
        _colours(owner, pointed_out),
        edgecolor="#cccccc",
        linewidth=0.5,
    )
    for node, core in zip(*np.nonzero(np.isin(owner, list(pointed_out))), strict=True):
        axis.text(core, node, str(owner[node, core]), ha="center", va="center", fontsize=6)
    axis.set_ylim(nodes - 0.5, -0.5)
    axis.set_yticks(range(nodes))
    axis.set_xticks(range(0, cores, max(1, cores // 8)))
    axis.tick_params(labelsize=7, length=0)
    axis.spines[:].set_visible(False)


def _colours(owner: Ints, pointed_out: Collection[int]) -> npt.NDArray[np.float64]:
    """Return colours of shape (nodes, cores, 3). Free cores are white."""
    from matplotlib.colors import hsv_to_rgb

    strong = np.isin(owner, list(pointed_out))
    hue = owner * _GOLDEN % 1.0
    saturation = np.where(strong, _STRONG, _PALE)
    value = np.where(strong, 0.95, 0.88)
    colours: npt.NDArray[np.float64] = hsv_to_rgb(np.stack([hue, saturation, value], axis=-1))
    colours[owner < 0] = 1.0
    return colours
