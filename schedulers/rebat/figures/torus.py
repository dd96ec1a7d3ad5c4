# SPDX-License-Identifier: Apache-2.0
"""A machine at a time: the job on each unit of a torus, or on each core of each node."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.units import FOREVER_US
from rebat.figures.canvas import new_figure, svg_of
from rebat.figures.labels import label
from rebat.models.boxes import TorusBlocks
from rebat.state.ledger import Ledger

FREE, DOWN = -1, -2

_HUES = 40
_GOLDEN = 0.618034


def torus_instant(
    extents: Sequence[int],
    owner: npt.NDArray[np.int64],
    hazard: npt.NDArray[np.float64] | None,
    hazard_title: str = "",
) -> str:
    """Draw the units of a torus as cells. The first half of the dimensions is vertical.

    Parameters
    ----------
    owner : int64 array, shape (units,)
        The number of the job on each unit, `FREE` or `DOWN`. Each job has a colour. Free units are
        white, and down units are black.
    hazard : float64 array, shape (units,), optional
        Values of a second panel. Higher values are darker.
    hazard_title : str
        Title of the second panel.
    """
    rows = flat_shape(extents)
    panels = 1 if hazard is None else 2
    figure = new_figure(5.4 * panels, 5.0)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    axes[0].imshow(_colours(owner).reshape(*rows, 3), interpolation="nearest")
    axes[0].set_title("jobs (white: free, black: down)", fontsize=9)
    if hazard is not None:
        shade = axes[1].imshow(hazard.reshape(rows), cmap="YlOrBr", interpolation="nearest")
        axes[1].set_title(hazard_title, fontsize=9)
        figure.colorbar(shade, ax=axes[1], shrink=0.75)
    for axis in axes:
        _grid(axis, extents, rows)
    return svg_of(figure)


def flat_shape(extents: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of rows and columns of the drawing of a torus in the plane.

    >>> flat_shape((8, 8, 8, 8)), flat_shape((2, 3, 4, 4, 1))
    ((64, 64), (6, 16))
    """
    half = len(extents) // 2
    return math.prod(extents[:half]), math.prod(extents[half:])


def _colours(owner: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a colour per unit. Consecutive job numbers have very different hues."""
    from matplotlib.colors import hsv_to_rgb

    hue = (owner % _HUES) * _GOLDEN % 1.0
    value = np.where(owner // _HUES % 2 == 0, 0.9, 0.6)
    colours = hsv_to_rgb(np.stack([hue, np.full(len(owner), 0.55), value], axis=1))
    colours[owner == FREE] = 1.0
    colours[owner == DOWN] = 0.0
    table: npt.NDArray[np.float64] = colours
    return table


def _grid(axis: Any, extents: Sequence[int], rows: tuple[int, int]) -> None:
    """Draw lines between the slices of the outermost dimensions, without ticks."""
    half = len(extents) // 2
    inner = math.prod(extents[1:half]) or 1, math.prod(extents[half + 1 :]) or 1
    lines = {
        "axhline": range(inner[0], rows[0], inner[0]),
        "axvline": range(inner[1], rows[1], inner[1]),
    }
    for name, places in lines.items():
        for place in places:
            getattr(axis, name)(place - 0.5, color="#666666", linewidth=0.5)
    axis.set_xticks([])
    axis.set_yticks([])


def owners(ledger: Ledger, blocks: TorusBlocks, at_us: int) -> npt.NDArray[np.int64]:
    """Return, per block, the serial of its job at a time, or FREE or DOWN, shape (blocks,)."""
    nodes = np.full(blocks.of_nodes.n_nodes, FREE, dtype=np.int64)
    for record in ledger.attempts:
        if record.nodes is not None and record.start_us <= at_us < record.end_us:
            nodes[list(record.nodes)] = record.attempt.job_serial
    for node, down_us, up_us in ledger.node_events.outages(FOREVER_US).rows():
        if down_us <= at_us < up_us:
            nodes[node] = DOWN
    table = nodes[blocks.members]
    of_blocks: npt.NDArray[np.int64] = np.where(
        (table == DOWN).any(axis=1), DOWN, table.max(axis=1)
    )
    return of_blocks


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
        _job_colours(owner, pointed_out),
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


def _job_colours(owner: Ints, pointed_out: Collection[int]) -> npt.NDArray[np.float64]:
    """Return colours of shape (nodes, cores, 3). Free cores are white."""
    from matplotlib.colors import hsv_to_rgb

    strong = np.isin(owner, list(pointed_out))
    hue = owner * _GOLDEN % 1.0
    saturation = np.where(strong, _STRONG, _PALE)
    value = np.where(strong, 0.95, 0.88)
    colours: npt.NDArray[np.float64] = hsv_to_rgb(np.stack([hue, saturation, value], axis=-1))
    colours[owner < 0] = 1.0
    return colours
