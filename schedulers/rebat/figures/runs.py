# SPDX-License-Identifier: Apache-2.0
"""Figures of runs: utilisation over time, Gantt charts, and flow by size class.

A Gantt chart shows each attempt (as in Figure 2 of the node-stealing paper) or, for large machines,
an image whose pixels are means over nodes and time. Flow is as in Figures 6 and 8 of this paper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import INTERRUPTED, Cause, job_name
from rebat.core.units import US_PER_S, to_s
from rebat.figures.canvas import COLOURS, new_figure, policy_colours, svg_of, time_unit
from rebat.figures.labels import label, legend, text_in_box
from rebat.results.measures.nodetime import Steps
from rebat.results.measures.platform import Window
from rebat.results.measures.summary import RunSummary
from rebat.results.measures.timeline import CAUSES, Timeline, holds_of, series_of, timeline_of
from rebat.state.ledger import Ledger

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
    legend(figure, handles, labels, "outside upper right", 4)
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
    texts = [handle.get_label() for handle in handles]
    legend(figure, handles, texts, "outside upper right", 5, 9)


MOST_NODES, MOST_ATTEMPTS = 128, 400
"""Limits (nodes, attempts) up to which a chart with the names of attempts is readable."""


_HATCH = "///"


def worth_drawing(ledger: Ledger, n_nodes: int) -> bool:
    """Return whether a chart of this run is readable."""
    return n_nodes <= MOST_NODES and len(ledger.attempts) <= MOST_ATTEMPTS


def named_gantt(
    ledgers: Mapping[str, Ledger], n_nodes: int, window_us: Window | None = None
) -> Any:
    """Draw a panel per policy with every attempt, and its name where it fits.

    Lost work is hatched, down nodes are black, and nodes held for a job are grey. ``window_us`` is
    the visible time (default: from 0 to the last end).
    """
    figure, scale = _figure(ledgers, n_nodes)
    if window_us:
        figure.axes[-1].set_xlim(*(to_s(us) / scale for us in window_us))
    return figure


def gantt_svg(ledgers: Mapping[str, Ledger], n_nodes: int, words: Mapping[str, str]) -> str:
    """Draw `named_gantt` as an SVG element. Write the reasons of stops at the ends of attempts.

    Parameters
    ----------
    ledgers : mapping
        Ledgers by policy.
    words : mapping
        For each reason of a stop, the text to write. Other reasons are not shown.
    """
    figure, scale = _figure(ledgers, n_nodes)
    for axis, ledger in zip(figure.axes, ledgers.values(), strict=True):
        _stops(axis, ledger, words, scale)
    return svg_of(figure)


def _figure(ledgers: Mapping[str, Ledger], n_nodes: int) -> tuple[Any, float]:
    """Return the chart, and its unit of time in seconds."""
    figure = new_figure(9, 0.4 + (1.0 + 0.22 * min(n_nodes, 40)) * len(ledgers))
    axes = figure.subplots(len(ledgers), 1, sharex=True, squeeze=False)[:, 0]
    ends = {name: _last_end_us(ledger) for name, ledger in ledgers.items()}
    unit, scale = time_unit(to_s(end) for end in ends.values())
    for axis, (name, ledger) in zip(axes, ledgers.items(), strict=True):
        _attempts(axis, ledger, n_nodes, scale)
        _outages(axis, ledger, ends[name], scale)
        _holds(axis, ledger, ends[name], scale)
        axis.set_ylim(n_nodes - 0.5, -0.5)
        axis.set_title(label(name), loc="left", fontsize=10)
        axis.set_ylabel("node")
    axes[-1].set_xlim(0, max(1, *ends.values()) / US_PER_S / scale * 1.01)  # all panels share this
    axes[-1].set_xlabel(f"time ({unit})")
    _gantt_legend(figure, any(ledger.holds for ledger in ledgers.values()))
    return figure, scale


def _stops(axis: Any, ledger: Ledger, words: Mapping[str, str], scale: float) -> None:
    """Write the reason at the end of each attempt that was stopped."""
    for record in ledger.attempts:
        if record.nodes is not None and record.why in words:
            axis.text(
                to_s(record.end_us) / scale,
                int(record.nodes.intervals[0][0]) - 0.4,
                f"{words[record.why]} ",
                ha="right",
                va="top",
                fontsize=7,
                style="italic",
            )


def _last_end_us(ledger: Ledger) -> int:
    return max((record.end_us for record in ledger.attempts), default=0)


def _attempts(axis: Any, ledger: Ledger, n_nodes: int, scale: float) -> None:
    tails_us = tail_us(timeline_of("", ledger, n_nodes))
    for record, lost_us in zip(ledger.attempts, tails_us, strict=True):
        if record.nodes is None:
            continue
        start, length = (
            to_s(us) / scale for us in (record.start_us, record.end_us - record.start_us)
        )
        lost = to_s(int(lost_us)) / scale
        colour = COLOURS[(record.attempt.job_serial - 1) % len(COLOURS)]
        for first, last in record.nodes.intervals.tolist():
            rows = (first - 0.5, last - first + 1)
            look = {"facecolor": colour, "edgecolor": "white", "alpha": 0.85}
            if lost < length:
                axis.broken_barh([(start, length - lost)], rows, **look)
            if lost:
                axis.broken_barh([(start + length - lost, lost)], rows, hatch=_HATCH, **look)
            box = (start, rows[0]), (length, rows[1])
            text_in_box(axis, job_name(record.attempt.id), *box, fontsize=8)


def _outages(axis: Any, ledger: Ledger, end_us: int, scale: float) -> None:
    """Draw the outages until the last attempt ends. Omit later outages."""
    spans = defaultdict(list)
    for node, down, up in ledger.node_events.outages(end_us).rows():
        if down < end_us:
            spans[node].append((to_s(down) / scale, to_s(min(up, end_us) - down) / scale))
    for node, bars in spans.items():
        axis.broken_barh(bars, (node - 0.5, 1), facecolor="black")


def _holds(axis: Any, ledger: Ledger, end_us: int, scale: float) -> None:
    """Draw nodes that are held for a job."""
    for begin_us, until_us, first, last in zip(*holds_of(ledger, end_us)[0], strict=True):
        bar = (to_s(int(begin_us)) / scale, to_s(int(until_us - begin_us)) / scale)
        axis.broken_barh([bar], (first - 0.5, last - first + 1), facecolor=HELD_COLOUR)


def _gantt_legend(figure: Any, held: bool) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=COLOURS[0], alpha=0.85),
        Patch(facecolor=COLOURS[0], edgecolor="white", hatch=_HATCH, alpha=0.85),
        Patch(facecolor="black"),
    ]
    texts = ["work kept", "work lost to a failure, steal, resize or error", "node down"]
    if held:
        handles.append(Patch(facecolor=HELD_COLOUR))
        texts.append("held")
    legend(figure, handles, texts, "outside upper right", 4, 9)


Float = npt.NDArray[np.float64]

PALE = 0.75
"""Share of white in the colour of work that was lost although a checkpoint contained it."""


class Rectangles(NamedTuple):
    """Rectangles in the plane of time (microseconds) and nodes (first to last), as arrays."""

    start: npt.NDArray[Any]
    end: npt.NDArray[Any]
    first: npt.NDArray[Any]
    last: npt.NDArray[Any]


def binned(timeline: Timeline, window_us: tuple[int, int], rows: int, columns: int) -> Float:
    """Return an image of all nodes in a window, shape (rows, columns, 3), values from 0 to 1.

    Node 0 is at the top. A pixel has the mean colour of the node time that it represents. Kept work
    has one colour. Lost work has the colour of its cause. Down nodes are black, held nodes pale
    grey, and free nodes white.
    """
    image, cover = np.zeros((rows, columns, 3)), np.zeros((rows, columns))
    for colour, rectangles in _layers(timeline):
        part = coverage(rectangles, window_us, timeline.n_nodes, rows, columns)
        image += part[..., None] * np.array(colour)
        cover += part
    most = np.maximum(cover, 1.0)[..., None]
    pixels: Float = image / most + (1 - np.minimum(cover, 1.0))[..., None]
    return np.clip(pixels, 0.0, 1.0)


def coverage(
    rectangles: Rectangles, window_us: tuple[int, int], n_nodes: int, rows: int, columns: int
) -> Float:
    """Return the share of each pixel that rectangles cover, shape (rows, columns).

    Where rectangles overlap, their shares are added. The result is exact: the edges of each
    rectangle are changes of the covered share, and the cumulative sums of these changes in both
    directions are the shares. The run time is linear in the number of rectangles plus the number of
    pixels.
    """
    first, last = window_us
    wide, high = columns / (last - first), rows / n_nodes
    x = [np.clip((at - first) * wide, 0, columns) for at in (rectangles.start, rectangles.end)]
    y = [np.clip(node * high, 0, rows) for node in (rectangles.first, rectangles.last + 1)]
    sums = np.zeros((rows + 2) * (columns + 2))
    for down, at_row in _changes(y):
        for right, at_column in _changes(x):
            place = at_row * (columns + 2) + at_column
            sums += np.bincount(place, weights=down * right, minlength=len(sums))
    table = sums.reshape(rows + 2, columns + 2).cumsum(axis=0).cumsum(axis=1)
    return table[:rows, :columns]


def _changes(edges: list[Float]) -> Iterator[tuple[Float, npt.NDArray[np.int64]]]:
    """Yield the changes of the covered share at both edges, first positive, then negative."""
    for sign, edge in zip((1, -1), edges, strict=True):
        pixel = np.floor(edge).astype(np.int64)
        into = edge - pixel
        yield sign * (1 - into), pixel
        yield sign * into, pixel + 1


def _layers(timeline: Timeline) -> Iterator[tuple[tuple[float, ...], Rectangles]]:
    """Yield each colour with the rectangles of this colour."""
    from matplotlib.colors import to_rgb

    blocks, cause = timeline.blocks, timeline.cause[timeline.blocks.owner]
    start, end = timeline.start_us[blocks.owner], timeline.end_us[blocks.owner]
    kept_end = end - tail_us(timeline)[blocks.owner]
    for number in np.unique(cause):
        own = cause == number
        colour, lost = to_rgb(kept_colour(CAUSES[number])), lost_colour(CAUSES[number])
        first, last = blocks.first[own], blocks.last[own]
        yield colour, Rectangles(start[own], kept_end[own], first, last)
        pale = tuple(PALE + (1 - PALE) * part for part in colour)
        yield to_rgb(lost) if lost else pale, Rectangles(kept_end[own], end[own], first, last)
    down = timeline.outages
    yield (0.0, 0.0, 0.0), Rectangles(*down)
    yield to_rgb(HELD_COLOUR), Rectangles(*timeline.held)


def tail_us(timeline: Timeline) -> npt.NDArray[np.int64]:
    """Return the lost time at the end of each attempt, in microseconds.

    If an attempt was interrupted, all time after the recovery and the kept progress is lost. For
    every attempt, time that a checkpoint saved but that was lost later is added.
    """
    run = timeline.end_us - timeline.start_us
    unkept = run - np.minimum(timeline.pattern.recovery_us + timeline.kept_us, run)
    stopped = np.isin(timeline.cause, [CAUSES.index(cause) for cause in STOPPED])
    tail: npt.NDArray[np.int64] = np.where(stopped, unkept, 0) + timeline.lost_us
    return np.where(timeline.ran, np.minimum(tail, run), 0)


BLUE, RED, GREEN, YELLOW, CYAN, PURPLE, GREY = COLOURS

CAUSE_COLOURS: dict[Cause, str] = {
    Cause.COMPLETED: BLUE,
    Cause.NODE_FAILURE: RED,
    Cause.STOLEN: PURPLE,
    Cause.MOVED: CYAN,
    Cause.PREEMPTED: "#552200",
    Cause.SILENT_ERROR: GREEN,
    Cause.WALLTIME: YELLOW,
    Cause.JOB_FAILED: GREY,
    Cause.HORIZON: "#222255",
    Cause.CANCELLED: "#ccddaa",
}
"""Paul Tol's bright scheme and three further colours, for attempts that ran.

Colour-blind readers can distinguish all of them.
"""

HELD_COLOUR = "#e0e0e0"
"""The colour of nodes that are held for a job that does not run on them."""

STOPPED = INTERRUPTED | {Cause.SILENT_ERROR}
"""Causes of the end of an attempt after which work since the last checkpoint must be repeated."""

KEPT_COLOUR = CAUSE_COLOURS[Cause.COMPLETED]
"""The colour of kept work. It does not depend on the cause of the end."""


def kept_colour(cause: Cause) -> str:
    """Return the colour of the kept part of an attempt: up to its last checkpoint or its end."""
    return KEPT_COLOUR if cause in STOPPED else CAUSE_COLOURS.get(cause, GREY)


def lost_colour(cause: Cause) -> str | None:
    """Return the colour of work lost to this cause, or None if the cause is not in `STOPPED`."""
    return CAUSE_COLOURS[cause] if cause in STOPPED else None


def legend_text(cause: Cause) -> str:
    """Return the text of the legend for a cause.

    >>> legend_text(Cause.COMPLETED), legend_text(Cause.NODE_FAILURE)
    ('work kept', 'lost to a node failure')
    """
    return _LEGEND.get(cause, str(cause))


_LEGEND = {
    Cause.COMPLETED: "work kept",
    Cause.NODE_FAILURE: "lost to a node failure",
    Cause.STOLEN: "lost to a steal",
    Cause.MOVED: "lost to a move",
    Cause.PREEMPTED: "lost to a preemption",
    Cause.SILENT_ERROR: "lost to a silent error",
    Cause.WALLTIME: "killed at the walltime",
    Cause.JOB_FAILED: "job failed",
    Cause.HORIZON: "cut at the end of the run",
    Cause.CANCELLED: "job cancelled",
}


def _size_class(name: str) -> str:
    if not name.startswith("["):
        return name
    low, high = (int(part) for part in name.strip("[)").split(","))
    return f"[$2^{{{low.bit_length() - 1}}}$, $2^{{{high.bit_length() - 1}}}$)"


def _values(summary: RunSummary, field: str) -> dict[str, float]:
    values = {
        _size_class(name): getattr(flow, field)
        for name, flow in summary.flows.items()
        if flow is not None
    }
    everything = summary.flows.get("all")
    if field == "mean_s" and everything is not None:
        values["weighted"] = everything.weighted_mean_s
    return values


def flows_figure(summaries: Mapping[str, RunSummary]) -> Any:
    """Draw largest and mean flow by size class, and their ratios to the first policy."""
    names = list(summaries)
    colour_of = policy_colours(names)
    rows = 2 if len(names) > 1 else 1
    figure = new_figure(10 + 0.4 * max(0, len(names) - 4), 3.6 * rows)
    axes = figure.subplots(rows, 2, squeeze=False)
    for column, (field, title) in enumerate((("max_s", "Largest flow"), ("mean_s", "Mean flow"))):
        series = {name: _values(summaries[name], field) for name in names}
        groups = list(dict.fromkeys(group for values in series.values() for group in values))
        unit, scale = time_unit(value for values in series.values() for value in values.values())
        _bars(axes[0][column], groups, series, scale, colour_of)
        axes[0][column].set_ylabel(f"{title} ({unit}), \N{DOWNWARDS ARROW}\N{NO-BREAK SPACE}better")
        if rows == 2:
            others = _ratios(series, names)
            _bars(axes[1][column], groups, others, 1.0, colour_of)
            axes[1][column].axhline(1.0, color="black", linewidth=0.8)
            axes[1][column].set_ylabel(f"{title}, ratio to {label(names[0])}")
    handles, _ = axes[0][0].get_legend_handles_labels()
    shown = [label(name) for name in names]
    legend(figure, handles, shown, "outside upper center", 4)
    for axis in axes[-1]:
        axis.set_xlabel("job size (nodes)")
    return figure


def _ratios(series: Mapping[str, Mapping[str, float]], names: list[str]) -> dict[str, Any]:
    """Return other policies' ratios to the first policy, where both policies have values."""
    base = series[names[0]]
    return {
        name: {g: value / base[g] for g, value in series[name].items() if base.get(g)}
        for name in names[1:]
    }


def _bars(
    axis: Any,
    groups: list[str],
    series: Mapping[str, Mapping[str, float]],
    scale: float,
    colour_of: Mapping[str, Any],
) -> None:
    width = 0.8 / max(1, len(series))
    for position, (name, values) in enumerate(series.items()):
        xs = [index + (position + 0.5) * width - 0.4 for index in range(len(groups))]
        heights = [values.get(group, 0.0) / scale for group in groups]
        axis.bar(xs, heights, width=width, label=label(name), color=colour_of[name])
    axis.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.3)
