# SPDX-License-Identifier: Apache-2.0
"""Step functions of time, such as the number of free nodes or of waiting attempts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Steps = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Times (distinct, ascending, in microseconds) and values. A value is valid from its time on."""


def steps_of(times_us: npt.NDArray[np.int64], changes: npt.NDArray[np.int64]) -> Steps:
    """Return the sum of all changes up to each time. Changes at the same time form one step.

    >>> times, numbers = steps_of(np.array([5, 0, 5]), np.array([2, 1, -1]))
    >>> times.tolist(), numbers.tolist()
    ([0, 5], [1, 2])
    """
    order = np.argsort(times_us, kind="stable")  # fast if the times consist of sorted parts
    steps, sums = times_us[order], np.cumsum(changes[order])
    last = np.flatnonzero(np.append(steps[1:], steps[-1:] + 1) != steps)
    return steps[last], sums[last]


def lengths_within(times_us: npt.NDArray[np.int64], window: tuple[int, int]) -> Any:
    """Return how long the value of each step is valid within a window, in microseconds."""
    edges = np.concatenate([times_us, window[1:]])
    np.minimum(np.maximum(edges, window[0], out=edges), window[1], out=edges)
    return edges[1:] - edges[:-1]


def from_to(
    starts_us: npt.NDArray[np.int64],
    ends_us: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return at which times the number of intervals that contain the time changes, and by how much.

    If ``sizes`` is set, return the changes of the sum of the sizes of these intervals.
    """
    by = np.ones(len(starts_us), dtype=np.int64) if sizes is None else sizes
    return np.concatenate([starts_us, ends_us]), np.concatenate([by, -by])
