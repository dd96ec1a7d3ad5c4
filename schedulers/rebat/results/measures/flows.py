# SPDX-License-Identifier: Apache-2.0
"""Flow by size class: maximum, mean and weighted mean (sections 5.3.1 and 6.1.2 of Du et al.)."""

from __future__ import annotations

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.results.measures.jobs import JobRows

SIZE_CLASSES: tuple[tuple[int, int], ...] = (
    (1, 2**7), (2**7, 2**9), (2**9, 2**11), (2**11, 2**13), (2**13, 2**15), (2**15, 2**16),
)  # fmt: skip
"""Half-open intervals of job sizes, those of Figures 1 to 8; the last also takes larger jobs."""


SMALL_MACHINE = 512
"""Up to so many nodes the classes are the powers of two (Figures 12 and 13: 128 nodes)."""


def size_classes(n_nodes: int) -> tuple[tuple[int, int], ...]:
    """The size classes for a machine of so many nodes."""
    if n_nodes > SMALL_MACHINE:
        return SIZE_CLASSES
    return tuple((2**i, 2 ** (i + 1)) for i in range(n_nodes.bit_length()))


class Flow(msgspec.Struct, frozen=True):
    """Flow of a group of jobs, in seconds; the weights are the jobs' sizes."""

    jobs: int
    max_s: float
    mean_s: float
    weighted_mean_s: float


class Selection(msgspec.Struct, frozen=True):
    """Which jobs count: those between two shares of the submissions.

    ``by`` 'count' is the paper's rule (section 5.3.3: drop the first and last 20 % of the jobs),
    'time' the authors' program's (submitted within [0.2, 0.8] of the span).
    """

    first: float = 0.2
    last: float = 0.8
    by: str = "count"


EVERY_JOB = Selection(0.0, 1.0)


def select(rows: JobRows, selection: Selection) -> JobRows:
    """The finished jobs that a selection keeps."""
    submitted = rows.column("submission_time")
    order = np.argsort(submitted, kind="stable")
    if not len(order):
        return rows
    if selection.by == "count":
        kept = order[round(selection.first * len(order)) : round(selection.last * len(order))]
    elif selection.by == "time":
        dates = submitted[order]
        start, span = dates[0], dates[-1] - dates[0]
        low, high = start + selection.first * span, start + selection.last * span
        kept = order[(low <= dates) & (dates <= high)]
    else:
        raise InputError(f"jobs selected by {selection.by!r}", expected="count or time")
    kept = kept[rows.has_finished[kept]]
    everything = len(kept) == len(rows) and bool((np.diff(kept) > 0).all())
    return rows if everything else rows[kept]  # a copy: there may be millions


def class_name(low: int, high: int) -> str:
    """A size class for people: '[512, 2048)'."""
    return f"[{low}, {high})"


def flow_of(rows: JobRows) -> Flow | None:
    """Flow of these finished jobs; None when there are none."""
    if not rows:
        return None
    flow, size = rows.column("flow"), rows.column("size")
    mean_s = sum(flow.tolist()) / len(rows)
    weighted_s = sum((size * flow).tolist()) / int(size.sum())
    return Flow(len(rows), float(flow.max()), mean_s, weighted_s)


def flows_by_class(rows: JobRows, n_nodes: int) -> dict[str, Flow | None]:
    """Flow per size class of the machine, and of all jobs ('all')."""
    table = {name: flow_of(some) for name, some in by_class(rows, n_nodes).items()}
    return table | {"all": flow_of(rows)}


def by_class(rows: JobRows, n_nodes: int) -> dict[str, JobRows]:
    """The jobs of each size class of the machine."""
    classes, sizes = size_classes(n_nodes), rows.column("size")
    table = {}
    for low, high in classes:
        top = high if (low, high) != classes[-1] else n_nodes + 1
        table[class_name(low, high)] = rows[(low <= sizes) & (sizes < top)]
    return table
