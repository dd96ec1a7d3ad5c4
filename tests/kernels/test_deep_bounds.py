# SPDX-License-Identifier: Apache-2.0
"""Bounds and searches of long queues, compared with a search of each step."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.kernels import counts, deep, spread
from tests.kernels.test_spread import check_bounds, spread_out


def profile(rng: np.random.Generator, n_jobs: int) -> spread.Spread:
    """Return a spread profile of 100 nodes with this number of reservations."""
    t, f = np.zeros(3 * n_jobs, np.int64), np.zeros(3 * n_jobs, np.int64)
    n, f[0] = 1, 100
    for start in rng.integers(0, 1000, n_jobs):
        n = counts.change(t, f, n, start, start + rng.integers(1, 60), -rng.integers(1, 5))
    f[:n] = np.maximum(f[:n], 0)
    return spread_out(t, f, n, n + 2 * n_jobs)


def bounds_of(steps: spread.Spread, w: int) -> np.ndarray:
    """Return the bound of each block for width number ``w``."""
    return steps.bounds[w * steps.blocks : (w + 1) * steps.blocks]


def test_bounds_are_the_longest_windows_at_the_start() -> None:
    rng = np.random.default_rng(2)
    for n_jobs in (1, 20, 200, 600):
        steps = profile(rng, n_jobs)
        check_bounds(steps, spread.ENDLESS)
        for w, width in enumerate(steps.wide):
            measured = [
                deep.measured(steps.t, steps.f, b, width) for b in range(len(bounds_of(steps, w)))
            ]
            assert bounds_of(steps, w).tolist() == measured


def test_bounds_hold_after_nodes_are_given_back() -> None:
    """Only the bounds of widths that were not free before are raised."""
    rng = np.random.default_rng(3)
    for n_jobs in (20, 200, 600):
        steps = profile(rng, n_jobs)
        for _ in range(100):
            start, length, nodes = rng.integers(1, (1000, 60, 30))
            near = int(rng.integers(0, len(steps.t)))
            deep.give_back(steps, start, start + length, nodes, 60, near)
            check_bounds(steps, 60)


@pytest.mark.parametrize("n_jobs", [1, 20, 600])
def test_blocks_are_excluded_whose_bounds_are_too_small(n_jobs: int) -> None:
    steps = profile(np.random.default_rng(4), n_jobs)
    for w in range(len(steps.wide)):
        bounds = bounds_of(steps, w)
        for block in range(len(bounds)):
            most = int(bounds[: block + 1].max())
            assert spread.excluded(
                steps, w, block, most + 1 if most < spread.ENDLESS else most
            ) == (most < spread.ENDLESS)
            assert not spread.excluded(steps, w, block, most)


@pytest.mark.parametrize("n_jobs", [1, 20, 600])
def test_the_step_at_a_time_is_found_from_any_index(n_jobs: int) -> None:
    rng = np.random.default_rng(5)
    steps = profile(rng, n_jobs)
    marks = getattr(spread.marks, "py_func", spread.marks)
    index, power = marks(steps.t, n_jobs + 1, np.zeros(n_jobs + 1, np.int64))
    last = steps.t[int(spread.at_or_after(steps.t, spread.ENDLESS)) - 1]
    assert len(index) <= n_jobs + 1 and (last - steps.t[0]) >> power == len(index) - 1
    for number, k in enumerate(index.tolist()):
        assert k == int(np.searchsorted(steps.t, steps.t[0] + (number << power)))
    for time in [*rng.integers(0, 1100, 200).tolist(), 2**62]:
        expected = int(np.searchsorted(steps.t, time))
        for k in (
            0,
            len(steps.t) - 1,
            int(rng.integers(0, len(steps.t))),
            min(expected, len(steps.t) - 1),
        ):
            assert spread.from_mark(steps.t, time, k) == expected
            assert spread.from_place(steps.t, time, k) == expected
