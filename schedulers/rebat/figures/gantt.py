# SPDX-License-Identifier: Apache-2.0
"""Gantt charts of attempts on nodes, with outages (as in Figure 2 of the node-stealing paper)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from rebat.core.attempts import job_name
from rebat.core.units import US_PER_S, to_s
from rebat.figures.binning import tail_us
from rebat.figures.boxes import svg_of
from rebat.figures.canvas import COLOURS, label, new_figure, time_unit
from rebat.figures.causes import HELD_COLOUR
from rebat.results.measures.platform import Window
from rebat.results.measures.timeline import holds_of, timeline_of
from rebat.session.ledger import Ledger

MOST_NODES, MOST_ATTEMPTS = 128, 400
"""Limits (nodes, attempts) up to which a chart with the name of every attempt is readable."""


_HATCH = "///"


def worth_drawing(ledger: Ledger, n_nodes: int) -> bool:
    """Return whether a chart of this run is readable."""
    return n_nodes <= MOST_NODES and len(ledger.attempts) <= MOST_ATTEMPTS


def named_gantt(
    ledgers: Mapping[str, Ledger], n_nodes: int, window_us: Window | None = None
) -> Any:
    """Draw a panel per policy with every attempt and its name.

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
    ends = {name: _end_us(ledger) for name, ledger in ledgers.items()}
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
    _legend(figure, any(ledger.holds for ledger in ledgers.values()))
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


def _end_us(ledger: Ledger) -> int:
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
            axis.text(
                start + length / 2,
                (first + last) / 2,
                job_name(record.attempt.id),
                ha="center",
                va="center",
                fontsize=8,
                clip_on=True,
                parse_math=False,
            )


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


def _legend(figure: Any, held: bool) -> None:
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
    figure.legend(handles, texts, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
