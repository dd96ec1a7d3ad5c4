# SPDX-License-Identifier: Apache-2.0
"""A run as an image, for machines of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.figures.causes import HELD_COLOUR, STOPPED, kept_colour, lost_colour
from rebat.results.measures.timeline import CAUSES, Timeline

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
