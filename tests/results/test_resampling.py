# SPDX-License-Identifier: Apache-2.0
"""Intervals of any statistic: for means they equal the intervals of means; and their coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rebat.results.intervals import Interval, Weights, interval


def of(values: np.ndarray, statistic: Callable[[np.ndarray], float]) -> Interval | None:
    """Return the interval of a statistic of values, repeated by their weights."""
    weights = Weights(len(values))
    return weights.interval(lambda row: statistic(np.repeat(values, weights.rows[row].astype(int))))


def test_few_values_have_no_interval() -> None:
    assert of(np.arange(4.0), np.mean) == Interval(1.5, n=4)
    assert Weights(9).interval(lambda row: None) is None


@pytest.mark.parametrize("n", [5, 9])
def test_of_a_mean_of_few_values_is_students(n: int) -> None:
    values = np.random.default_rng(1).gamma(2, 1, n)
    mine, students = of(values, np.mean), interval(list(values))
    assert mine is not None and students is not None
    assert (mine.low, mine.high) == pytest.approx((students.low, students.high))


@pytest.mark.parametrize("n", [10, 30])
def test_of_a_mean_of_more_values_is_nearly_scipys(n: int) -> None:
    """Both are BCa intervals, with different resamples: the ends differ by a few per cent of the
    width.
    """
    values = np.random.default_rng(2).gamma(2, 1, n)
    mine, scipys = of(values, np.mean), interval(list(values))
    assert mine is not None and scipys is not None and scipys.width
    assert (mine.low, mine.high) == pytest.approx((scipys.low, scipys.high), abs=0.1 * scipys.width)


@pytest.mark.slow
def test_nine_of_ten_intervals_of_a_deviation_contain_the_truth() -> None:
    rng = np.random.default_rng(4)
    contained = [of(rng.normal(0, 1, 30), np.std).contains(1.0) for _ in range(300)]  # type: ignore[union-attr, arg-type]
    assert 0.85 <= np.mean(contained) <= 0.97


def test_a_statistic_without_spread_is_a_point() -> None:
    same = of(np.full(12, 3.0), np.max)
    assert same is not None and (same.low, same.high) == (3.0, 3.0)
