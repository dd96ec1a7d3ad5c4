"""Who ran where and when, with dead nodes (as Figure 2 of the node-stealing paper)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rebat.core.attempts import INTERRUPTED, Cause
from rebat.core.units import to_s
from rebat.figures.canvas import COLOURS, new_figure, save
from rebat.metrics.platform import down_intervals
from rebat.session.ledger import Ledger

MOST_NODES, MOST_ATTEMPTS = 128, 400
"""Beyond this a Gantt chart tells nothing any more and none is drawn by default."""


_INTERRUPTED = INTERRUPTED | {Cause.SILENT_ERROR}


def worth_drawing(ledger: Ledger, n_nodes: int) -> bool:
    """Whether a chart of this run can be read."""
    return n_nodes <= MOST_NODES and len(ledger.attempts) <= MOST_ATTEMPTS


def draw_gantt(ledgers: Mapping[str, Ledger], n_nodes: int, path: Path) -> None:
    """One panel per policy; hatched: the attempt was interrupted; black: the node is down."""
    figure = new_figure(9, (1.0 + 0.22 * min(n_nodes, 40)) * len(ledgers))
    axes = figure.subplots(len(ledgers), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, ledger) in zip(axes, ledgers.items(), strict=True):
        _panel(axis, ledger, n_nodes)
        axis.set_ylim(n_nodes - 0.5, -0.5)
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_ylabel("node")
    ends = [record.end_us for ledger in ledgers.values() for record in ledger.attempts]
    axes[-1].set_xlim(0, to_s(max(ends, default=0)) * 1.01)  # shared by all panels
    axes[-1].set_xlabel("time (s)")
    save(figure, path)


def _panel(axis: Any, ledger: Ledger, n_nodes: int) -> None:
    end_us = max((record.end_us for record in ledger.attempts), default=0)
    for record in ledger.attempts:
        if record.nodes is None:
            continue
        start, length = to_s(record.start_us), to_s(record.end_us - record.start_us)
        interrupted = record.cause in _INTERRUPTED
        colour = COLOURS[(record.attempt.job_serial - 1) % len(COLOURS)]
        for first, last in record.nodes.intervals.tolist():
            axis.broken_barh(
                [(start, length)], (first - 0.5, last - first + 1), facecolor=colour,
                edgecolor="white", hatch="///" if interrupted else None, alpha=0.85,
            )  # fmt: skip
            axis.text(
                start + length / 2, (first + last) / 2, record.attempt.id.partition("!")[2],
                ha="center", va="center", fontsize=8, clip_on=True,
            )  # fmt: skip
    for node, down, up in down_intervals(ledger.node_events, end_us):
        axis.broken_barh([(to_s(down), to_s(up - down))], (node - 0.5, 1), facecolor="black")
