# SPDX-License-Identifier: Apache-2.0
"""Figures of runs over time: utilisation, and Gantt charts for machines of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rebat.core.attempts import Cause
from rebat.core.units import US_PER_S, to_s
from rebat.figures.binning import binned
from rebat.figures.canvas import label, new_figure, policy_colours, time_unit
from rebat.figures.causes import CAUSE_COLOURS, HELD_COLOUR, legend_text
from rebat.figures.gantt import named_gantt, worth_drawing
from rebat.results.measures.nodetime import Steps
from rebat.results.measures.platform import Window
from rebat.results.measures.timeline import CAUSES, Timeline, series_of, timeline_of
from rebat.session.ledger import Ledger

_ROWS, _COLUMNS = 240, 1000
"""Number of pixels of a Gantt chart with binned nodes. It is similar to the size of a panel."""


def timelines_of(ledgers: Mapping[str, Ledger], n_nodes: int) -> list[Timeline]:
    """Return the timelines of several policies."""
    return [timeline_of(name, ledger, n_nodes) for name, ledger in ledgers.items()]


def gantt_figure(
    ledgers: Mapping[str, Ledger], n_nodes: int, window_us: Window | None = None
) -> Any:
    """Draw a Gantt chart with a panel per policy. Small runs show every attempt; others are binned.

    ``window_us`` is the visible time (default: from 0 to the last end).
    """
    if all(worth_drawing(ledger, n_nodes) for ledger in ledgers.values()):
        return named_gantt(ledgers, n_nodes, window_us)
    return binned_gantt(timelines_of(ledgers, n_nodes), window_us)


def utilisation_figure(timelines: Sequence[Timeline]) -> Any:
    """Draw, by policy, nodes in use, waiting attempts and free nodes (up, not held) over time."""
    figure = new_figure(10, 6.4)
    axes = figure.subplots(3, 1, sharex=True)
    end_us = _end_us(timelines)
    unit, scale = time_unit([to_s(end_us)])
    colour_of = policy_colours([timeline.name for timeline in timelines])
    for timeline in timelines:
        series, colour = series_of(timeline), colour_of[timeline.name]
        shares = (100.0 / timeline.n_nodes, 1.0, 100.0 / timeline.n_nodes)
        for axis, steps, share in zip(axes, series, shares, strict=True):
            _step(axis, steps, share, end_us, scale, label(timeline.name), colour)
    y_labels = ("nodes in use (%)", "attempts waiting", "nodes up and free (%)")
    for axis, y_label in zip(axes, y_labels, strict=True):
        axis.set_ylabel(y_label)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    axes[-1].set_xlim(0, end_us / US_PER_S / scale)
    axes[-1].set_xlabel(f"time ({unit})")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False)
    return figure


def _step(
    axis: Any, steps: Steps, share: float, end_us: int, scale: float, name: str, colour: Any
) -> None:
    times_us, values = steps
    x = np.append(times_us, end_us) / US_PER_S / scale
    y = np.append(values, values[-1:]) * share
    axis.step(x, y, where="post", label=name, color=colour, linewidth=0.8, alpha=0.85)


def binned_gantt(timelines: Sequence[Timeline], window_us: Window | None = None) -> Any:
    """Draw an image per policy. Its pixels are means over nodes and time (see `binned`).

    ``window_us`` is the visible time (default: from 0 to the last end).
    """
    window = window_us or (0, _end_us(timelines))
    unit, scale = time_unit(map(to_s, window))
    figure = new_figure(10, 0.8 + 2.5 * len(timelines))
    axes = figure.subplots(len(timelines), 1, sharex=True, squeeze=False)[:, 0]
    first, last = (to_s(us) / scale for us in window)
    for axis, timeline in zip(axes, timelines, strict=True):
        axis.imshow(
            binned(timeline, window, min(_ROWS, timeline.n_nodes), _COLUMNS),
            aspect="auto",
            extent=(first, last, timeline.n_nodes - 0.5, -0.5),
            interpolation="nearest",
        )
        _marks(axis, timeline, scale)
        axis.set_xlim(first, last)
        axis.set_ylim(timeline.n_nodes - 0.5, -0.5)
        axis.set_title(label(timeline.name), loc="left", fontsize=10)
        axis.set_ylabel("node")
    axes[-1].set_xlabel(f"time ({unit})")
    _legend(figure, timelines)
    return figure


def _end_us(timelines: Sequence[Timeline]) -> int:
    return max(1, *(timeline.makespan_us for timeline in timelines))


def _marks(axis: Any, timeline: Timeline, scale: float) -> None:
    """Mark failures and steals. If there are many, the marks are smaller."""
    times_us, nodes = timeline.failures
    x, size = times_us / US_PER_S / scale, 3 if len(times_us) > 300 else 14
    axis.scatter(x, nodes, s=size, marker="x", color="black", linewidths=0.6)
    stolen = np.flatnonzero(timeline.cause == CAUSES.index(Cause.STOLEN))
    at = np.searchsorted(timeline.blocks.owner, stolen)
    axis.scatter(
        timeline.end_us[stolen] / US_PER_S / scale,
        timeline.blocks.first[at],
        s=12,
        marker="v",
        color=CAUSE_COLOURS[Cause.STOLEN],
        edgecolors="white",
        linewidths=0.4,
        clip_on=True,
    )


def _legend(figure: Any, timelines: Sequence[Timeline]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seen = {int(number) for timeline in timelines for number in set(timeline.cause[timeline.ran])}
    causes = [cause for cause in CAUSE_COLOURS if CAUSES.index(cause) in seen]
    handles: list[Any] = [
        Patch(facecolor=CAUSE_COLOURS[cause], label=legend_text(cause)) for cause in causes
    ]
    if any(len(timeline.held.first) for timeline in timelines):
        handles.append(Patch(facecolor=HELD_COLOUR, label="held"))
    if any(len(timeline.failures[0]) for timeline in timelines):
        handles.append(Patch(facecolor="black", label="node down"))
        cross: dict[str, Any] = {"marker": "x", "color": "black", "linestyle": ""}
        handles.append(Line2D([], [], label="failure", **cross))
    if CAUSES.index(Cause.STOLEN) in seen:
        colour = CAUSE_COLOURS[Cause.STOLEN]
        handles.append(Line2D([], [], label="steal", marker="v", color=colour, linestyle=""))
    figure.legend(handles=handles, loc="outside upper right", ncols=5, frameon=False, fontsize=9)
