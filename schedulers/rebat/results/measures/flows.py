# SPDX-License-Identifier: Apache-2.0
"""Largest, mean and weighted mean flow by size class (sections 5.3.1, 6.1.2 of Du et al.)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.results.measures.jobs import Floats, JobRows

SIZE_CLASSES: tuple[tuple[int, int], ...] = (
    (1, 2**7),
    (2**7, 2**9),
    (2**9, 2**11),
    (2**11, 2**13),
    (2**13, 2**15),
    (2**15, 2**16),
)
"""Half-open intervals of job sizes (Figures 1 to 8). The last one includes all larger jobs."""


SMALL_MACHINE = 512
"""On machines with at most this many nodes, bounds are powers of two (Figures 12 and 13)."""


def size_classes(n_nodes: int) -> tuple[tuple[int, int], ...]:
    """Return the size classes for a machine with ``n_nodes`` nodes."""
    if n_nodes > SMALL_MACHINE:
        return SIZE_CLASSES
    return tuple((2**i, 2 ** (i + 1)) for i in range(n_nodes.bit_length()))


class Flow(msgspec.Struct, frozen=True):
    """Flow of a group of jobs, in seconds. The weight of a job is its number of nodes."""

    jobs: int
    max_s: float
    mean_s: float
    weighted_mean_s: float


class Selection(msgspec.Struct, frozen=True):
    """A selection of jobs by submission, from the share ``first`` to the share ``last``.

    If ``by`` is 'count', the shares refer to the jobs in the order of submissions, as in the paper
    (section 5.3.3 drops the first and last 20 % of the jobs). If ``by`` is 'time', the shares refer
    to the time from the first to the last submission, as in the authors' program (0.2 and 0.8).
    """

    first: float = 0.2
    last: float = 0.8
    by: str = "count"


EVERY_JOB = Selection(0.0, 1.0)


def select(rows: JobRows, selection: Selection) -> JobRows:
    """Return the finished jobs of a selection."""
    submitted = rows.column("submission_time")
    order = np.argsort(submitted, kind="stable")
    if not len(order):
        return rows
    if selection.by == "count":
        chosen = order[round(selection.first * len(order)) : round(selection.last * len(order))]
    elif selection.by == "time":
        times = submitted[order]
        start, span = times[0], times[-1] - times[0]
        low, high = start + selection.first * span, start + selection.last * span
        chosen = order[(low <= times) & (times <= high)]
    else:
        raise InputError(f"jobs cannot be selected by {selection.by!r}", expected="count or time")
    chosen = chosen[rows.has_finished[chosen]]
    everything = len(chosen) == len(rows) and bool((np.diff(chosen) > 0).all())
    return rows if everything else rows[chosen]


def class_name(low: int, high: int) -> str:
    """Return the name of a size class: '[512, 2048)'."""
    return f"[{low}, {high})"


def flow_of(times: Floats) -> Flow | None:
    """Return the flow of finished jobs, or None if there are no jobs. See `job_times`."""
    n_jobs = times.shape[1]
    if not n_jobs:
        return None
    weighted_s, flow_s = np.cumsum(times[1:3], axis=1)[:, -1].tolist()
    return Flow(n_jobs, float(times[2].max()), flow_s / n_jobs, weighted_s / float(times[0].sum()))


def by_class(rows: JobRows, n_nodes: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the name of each size class of the machine and the positions of its jobs."""
    classes = size_classes(n_nodes)
    lows = [low for low, _ in classes]
    codes = np.searchsorted([*lows, max(n_nodes + 1, lows[-1])], rows.column("size"), "right") - 1
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], range(len(classes) + 1))
    for (low, high), first, last in zip(classes, ends, ends[1:], strict=False):
        yield class_name(low, high), order[first:last]
