# SPDX-License-Identifier: Apache-2.0
"""What a calibration does not explain, and what failures destroyed: in the record and simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from rebat.core.arrays import Floats
from rebat.core.jobs import Workload
from rebat.core.numbers import about_percent, decimal, hundredths, node_h, number, spread
from rebat.core.traits import traits_of
from rebat.figures.canvas import new_figure, svg_of
from rebat.report.parts import Picture
from rebat.report.table import Table
from rebat.results.intervals import Interval, interval
from rebat.studies.calibration.distance import N_PARTS, Unexplained

LEAST_SHARE = 0.05
"""A sentence names a part of the record only with at least this share of the distance."""

SMALL = 0.05
"""Share of the recorded loss below which a difference is called small."""

MOST_ROWS = 8
"""Maximum number of rows of a kind in the table of distances."""

TOTAL = "all"


class LostInBoth(msgspec.Struct, frozen=True):
    """Node-hours that failures destroyed: in the record, and in the nearest configuration.

    The row ``all`` also has the interval of the difference (simulated - recorded).
    """

    partition: str
    recorded_h: float
    simulated_h: float
    low: float | None = None
    high: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether the interval of the difference contains 0."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


def losses_of(
    workload: Workload, recorded: Mapping[str, float], simulated: Mapping[str, float]
) -> list[LostInBoth]:
    """Return a row for all jobs, and a row for each partition. Values are node-hours by job.

    The interval of the difference is over `N_PARTS` equal parts of the time of submissions.
    """
    jobs = [(job.id, job.submit_us, traits_of(job.extra).queue) for job in workload.jobs]
    submit_us = np.array([at for _, at, _ in jobs], dtype=np.float64)
    width = (submit_us.max() - submit_us.min()) / N_PARTS or 1.0
    parts = np.minimum((submit_us - submit_us.min()) // width, N_PARTS - 1).astype(int)
    differences = dict.fromkeys(range(N_PARTS), 0.0)
    queues: dict[str, list[float]] = {}
    for (name, _, queue), part in zip(jobs, parts.tolist(), strict=True):
        ours, theirs = simulated.get(name, 0.0), recorded.get(name, 0.0)
        differences[part] += ours - theirs
        row = queues.setdefault(queue, [0.0, 0.0])
        row[0], row[1] = row[0] + theirs, row[1] + ours
    change = interval(differences)
    low, high = (
        (None, None)
        if change is None or change.low is None or change.high is None
        else (change.low * N_PARTS, change.high * N_PARTS)
    )
    total = LostInBoth(
        TOTAL, sum(r for r, _ in queues.values()), sum(s for _, s in queues.values()), low, high
    )
    named = [LostInBoth(name, *row) for name, row in sorted(queues.items()) if name and any(row)]
    return [total, *(named if len(named) > 1 else [])]


def sentence_on_losses(rows: Sequence[LostInBoth]) -> Iterator[str]:
    """Yield a sentence that compares the recorded and the simulated losses."""
    if not rows:
        return
    total = rows[0]
    text = (
        f"Failures destroyed {node_h(total.recorded_h)} of work in the record, and "
        f"{node_h.bare(total.simulated_h)} in the nearest configuration"
    )
    if total.low is None or total.high is None:
        yield f"{text}."
        return
    change = total.simulated_h - total.recorded_h
    shown = spread(Interval(change, total.low, total.high), node_h.bare._replace(signed=True))
    text += f" (difference {shown})."
    wide = total.high - total.low > total.recorded_h
    if wide:
        yield f"{text} The record has too few failures to judge the simulated losses."
    elif abs(change) <= SMALL * total.recorded_h:
        yield f"{text} The difference is small: simulated losses agree with the record."
    elif not total.agrees:
        direction = "high" if change > 0 else "low"
        yield f"{text} The difference is significant: the simulated losses are too {direction}."
    else:
        yield f"{text} The difference is not significant: simulated losses agree with the record."


def table_of_losses(rows: Sequence[LostInBoth]) -> Iterator[Table]:
    """Yield a table with a row per partition, if nodes fail."""
    if rows:
        cells = [
            [
                row.partition,
                node_h.bare(row.recorded_h),
                node_h.bare(row.simulated_h),
                hundredths(row.simulated_h / row.recorded_h) if row.recorded_h else "-",
            ]
            for row in rows
        ]
        columns = ["partition", "recorded", "simulated", "simulated / recorded"]
        yield Table("nearest configuration", "Node-hours that failures destroyed", columns, cells)


# ---- what is not explained


def hours_of(workload: Workload, zone: str = "") -> Callable[[Floats], list[str]] | None:
    """Return a function from times to hours of the day. None if the record has no dates."""
    machine = workload.machine or {}
    origin_s = machine.get("origin_s")
    if not isinstance(origin_s, int | float):
        return None
    named = zone or str(machine.get("time_zone") or "")
    place: tzinfo = ZoneInfo(named) if named else UTC

    def clock(times_s: Floats) -> list[str]:
        dates = (datetime.fromtimestamp(origin_s + s, place) for s in times_s.tolist())
        return [f"{date:%H}:00" for date in dates]

    return clock


def sentence_on_rest(rows: Sequence[Unexplained]) -> Iterator[str]:
    """Yield a sentence that names the parts of the record that are explained least."""
    texts = []
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in rows if row.kind == kind and row.share >= LEAST_SHARE]
        if len([row for row in rows if row.kind == kind]) > 1 and of_kind:
            worst = max(of_kind, key=lambda row: row.factor)
            direction = "longer" if worst.longer >= 1 else "shorter"
            texts.append(
                f"{_name(worst)} (factor {decimal(worst.factor)}, recorded waits are {direction})"
            )
    if texts:
        yield f"These parts of the record are explained least: {', '.join(texts)}."


def _name(row: Unexplained) -> str:
    if row.kind == "size":
        return f"jobs of {row.name}"
    return f"submissions from {row.name}" if row.kind == "hour" else f"{row.kind} {row.name}"


def table_of_rest(rows: Sequence[Unexplained]) -> Table:
    """Return a table of the partitions, sizes, users and hours that are farthest."""
    cells = []
    for kind in dict.fromkeys(row.kind for row in rows):
        cells += [
            [
                kind,
                row.name,
                number(row.jobs),
                hundredths(row.factor),
                hundredths(row.longer),
                about_percent(row.share),
            ]
            for row in [row for row in rows if row.kind == kind][:MOST_ROWS]
        ]
    columns = ["", "name", "jobs", "distance", "recorded / simulated wait", "share of the distance"]
    return Table("nearest configuration", "Where waits differ", columns, cells)


def picture_of_rest(rows: Sequence[Unexplained]) -> Picture | None:
    """Return bars of the distance by hour of the day and by partition (or by size)."""
    hours = sorted((row for row in rows if row.kind == "hour"), key=lambda row: row.name)
    others = [row for row in rows if row.kind == "partition"][:MOST_ROWS]
    others = others if len(others) > 1 else [row for row in rows if row.kind == "size"][:MOST_ROWS]
    panels = [
        (title, each)
        for title, each in (("hour of submission", hours), ("", others))
        if len(each) > 1
    ]
    if not panels:
        return None
    figure = new_figure(7.0, 2.8)
    for axes, (title, each) in zip(
        np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True
    ):
        _bars(axes, each, title or each[0].kind)
    return Picture(
        "", "What the nearest configuration does not explain", svg_of(figure), "distance of waits"
    )


def _bars(axes: Any, rows: Sequence[Unexplained], title: str) -> None:
    names = [row.name.removesuffix(":00") for row in rows]
    colours = ["#b3541e" if row.longer >= 1 else "#2a6f97" for row in rows]
    axes.bar(range(len(rows)), [row.factor - 1 for row in rows], bottom=1, color=colours)
    axes.set_xticks(range(len(rows)), names, rotation=90 if len(rows) > 6 else 0, fontsize=8)
    axes.axhline(1, color="#222222", linewidth=0.8)
    axes.set_xlabel(title)
    axes.set_ylabel("distance (factor)")
    axes.set_ylim(bottom=1)
