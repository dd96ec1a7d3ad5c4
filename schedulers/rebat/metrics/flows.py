"""Flow by size class: maximum, mean and weighted mean (sections 5.3.1 and 6.1.2 of Du et al.)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebat.core.errors import InputError
from rebat.metrics.jobs import JobRow, finished

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


def select(rows: Sequence[JobRow], selection: Selection) -> list[JobRow]:
    """The finished jobs that a selection keeps."""
    ordered = sorted(rows, key=lambda row: row.submission_time)
    if not ordered:
        return []
    if selection.by == "count":
        kept = ordered[round(selection.first * len(ordered)) : round(selection.last * len(ordered))]
    elif selection.by == "time":
        start = ordered[0].submission_time
        span = ordered[-1].submission_time - start
        low, high = start + selection.first * span, start + selection.last * span
        kept = [row for row in ordered if low <= row.submission_time <= high]
    else:
        raise InputError(f"jobs selected by {selection.by!r}", expected="count or time")
    return finished(kept)


def class_name(low: int, high: int) -> str:
    """A size class for people: '[512, 2048)'."""
    return f"[{low}, {high})"


def flow_of(rows: Sequence[JobRow]) -> Flow | None:
    """Flow of these finished jobs; None when there are none."""
    if not rows:
        return None
    flows = [row.flow or 0.0 for row in rows]
    nodes = sum(row.size for row in rows)
    weighted = sum(row.size * (row.flow or 0.0) for row in rows) / nodes
    return Flow(len(rows), max(flows), sum(flows) / len(flows), weighted)


def flows_by_class(rows: Sequence[JobRow], n_nodes: int) -> dict[str, Flow | None]:
    """Flow per size class of the machine, and of all jobs ('all')."""
    classes = size_classes(n_nodes)
    table = {}
    for low, high in classes:
        top = high if (low, high) != classes[-1] else n_nodes + 1
        members = [row for row in rows if low <= row.size < top]
        table[class_name(low, high)] = flow_of(members)
    return table | {"all": flow_of(rows)}
