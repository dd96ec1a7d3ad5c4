# SPDX-License-Identifier: Apache-2.0
"""The time line of a job: attempts, recovery stages, lost work and cumulative ETTR.

ETTR is the effective training time ratio.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rebat.core.units import to_s
from rebat.figures.canvas import new_figure, policy_colours, svg_of, time_unit
from rebat.figures.labels import label, legend
from rebat.figures.runs import CYAN, GREEN, GREY, KEPT_COLOUR, PURPLE, RED, YELLOW
from rebat.results.measures.recoveries import (
    KEPT,
    KINDS,
    LOAD,
    LOST,
    WAIT,
    JobPart,
    cumulative_ettr,
    job_parts,
)
from rebat.state.ledger import Ledger

_LOOKS = {
    KEPT: ("work kept", KEPT_COLOUR),
    LOST: ("lost work", RED),
    "detect": ("detection", YELLOW),
    "diagnose": ("diagnosis", PURPLE),
    "reschedule": ("rescheduling", CYAN),
    LOAD: ("initialisation, loading", GREEN),
    WAIT: ("waiting", GREY),
}
"""Text and colour of each kind of part."""

_POINTS = 600
"""Number of equidistant points of an ETTR line. The ends of parts are additional points."""


def flagship_figure(ledgers: Mapping[str, Ledger], job: str) -> Any:
    """Draw the history of a job: two panels per policy, and a panel with the ETTR of all policies.

    The first panel of a policy shows the nodes of the job over time. The second panel shows the
    cumulative time of everything except kept work.
    """
    histories = {name: job_parts(ledger, job) for name, ledger in ledgers.items()}
    end_s = max((to_s(parts[-1].end_us) for parts in histories.values() if parts), default=1.0)
    unit, scale = time_unit([end_s])
    heights = [*[1.7] * len(histories), 2.3]
    figure = new_figure(11, 1.0 + sum(heights))
    grid = figure.add_gridspec(len(heights), 2, width_ratios=(2.2, 1), height_ratios=heights)
    for row, (name, parts) in enumerate(histories.items()):
        nodes, lost = (figure.add_subplot(grid[row, column]) for column in (0, 1))
        _nodes(nodes, parts, scale)
        nodes.set_title(label(f"{name}: job {job}"), loc="left", fontsize=10)
        nodes.set_ylabel("nodes")
        _lost(lost, parts, scale)
    ettr = figure.add_subplot(grid[-1, :])
    _ettr(ettr, histories, scale)
    ettr.set_xlabel(f"time ({unit})")
    for axis in figure.axes:
        axis.set_xlim(0, end_s / scale)
        axis.spines[["top", "right"]].set_visible(False)
    _legend(figure, histories)
    return figure


def flagship_svg(ledgers: Mapping[str, Ledger], job: str) -> str:
    """Draw `flagship_figure` as SVG text for reports."""
    return svg_of(flagship_figure(ledgers, job))


def _nodes(axis: Any, parts: Sequence[JobPart], scale: float) -> None:
    """Draw a rectangle per part of the job's history, with the number of nodes as its height.

    Waiting time is a thin line.
    """
    bars = defaultdict(list)
    for part in parts:
        height = 0 if part.kind == WAIT else part.n_nodes
        start, length = to_s(part.start_us) / scale, to_s(part.end_us - part.start_us) / scale
        bars[part.kind, height].append((start, length))
    most = max((part.n_nodes for part in parts), default=1)
    for (kind, height), spans in bars.items():
        axis.broken_barh(spans, (0, height or 0.03 * most), facecolor=_LOOKS[kind][1], linewidth=0)
    axis.set_ylim(0, 1.05 * most)


def _lost(axis: Any, parts: Sequence[JobPart], scale: float) -> None:
    """Draw the cumulative time of each kind of part except kept work, stacked."""
    kinds = [kind for kind in KINDS if kind != KEPT and any(part.kind == kind for part in parts)]
    lengths_s = {
        kind: [to_s(part.end_us - part.start_us) if part.kind == kind else 0.0 for part in parts]
        for kind in kinds
    }
    unit, size = time_unit([sum(map(sum, lengths_s.values()))])
    if kinds:
        x = [to_s(parts[0].start_us) / scale, *(to_s(part.end_us) / scale for part in parts)]
        ys = [np.cumsum([0.0, *lengths]) / size for lengths in lengths_s.values()]
        axis.stackplot(x, *ys, colors=[_LOOKS[kind][1] for kind in kinds], linewidth=0)
    axis.set_ylim(bottom=0)
    axis.set_title(f"work not kept, cumulative ({unit})", loc="left", fontsize=10)


def _ettr(axis: Any, histories: Mapping[str, Sequence[JobPart]], scale: float) -> None:
    """Draw two ETTR lines per policy: without queue time, and (dashed) with queue time."""
    colour_of = policy_colours(histories)
    for name, parts in histories.items():
        if not parts:
            continue
        ends = [part.end_us for part in parts]
        times_us = np.union1d(np.linspace(parts[0].start_us, ends[-1], _POINTS), ends)
        for values, style in zip(cumulative_ettr(parts, times_us), ("-", "--"), strict=True):
            axis.plot(times_us / 1e6 / scale, values, style, color=colour_of[name], linewidth=1.2)
    axis.set_title("cumulative ETTR; dashed: with queueing", loc="left", fontsize=10)
    axis.grid(alpha=0.3)


def _legend(figure: Any, histories: Mapping[str, Sequence[JobPart]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seen = {part.kind for parts in histories.values() for part in parts}
    handles: list[Any] = [
        Patch(facecolor=colour, label=text)
        for kind, (text, colour) in _LOOKS.items()
        if kind in seen
    ]
    for name, colour in policy_colours(histories).items():
        handles.append(Line2D([], [], color=colour, label=label(name)))
    texts = [handle.get_label() for handle in handles]
    legend(figure, handles, texts, "outside upper right", 6, 8)
