# SPDX-License-Identifier: Apache-2.0
"""Numbers that change at dates: how many nodes are free, how many attempts wait."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Steps = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Dates in microseconds, ascending and distinct, and the number that holds from each on."""


def steps_of(dates_us: npt.NDArray[np.int64], changes: npt.NDArray[np.int64]) -> Steps:
    """The sum of all changes up to each date; those of one instant are one step.

    >>> dates, numbers = steps_of(np.array([5, 0, 5]), np.array([2, 1, -1]))
    >>> dates.tolist(), numbers.tolist()
    ([0, 5], [1, 2])
    """
    steps, where = np.unique(dates_us, return_inverse=True)
    change = np.zeros(len(steps), dtype=np.int64)
    np.add.at(change, where, changes)
    return steps, np.cumsum(change)


def from_to(
    starts_us: npt.NDArray[np.int64],
    ends_us: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Dates and changes of a sum of spans, each counting with its size (default: 1)."""
    by = np.ones(len(starts_us), dtype=np.int64) if sizes is None else sizes
    return np.concatenate([starts_us, ends_us]), np.concatenate([by, -by])
