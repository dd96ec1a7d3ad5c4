# SPDX-License-Identifier: Apache-2.0
"""Intervals over seeds: compared with scipy and values computed by hand, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, norm, t

from rebat.results.intervals import (
    RESAMPLES,
    interval,
    mean_of_ratios,
    ratio_of_means,
    relative_width,
)

VALUES = [0.93, 1.04, 0.98, 1.11, 0.87, 1.02, 0.99, 1.08, 0.95, 1.01]


def test_is_scipys_and_the_same_each_time() -> None:
    found = interval(VALUES)
    assert found is not None
    ends = bootstrap(
        (np.array(VALUES),), np.mean, method="BCa", n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert (found.low, found.high) == (ends.low, ends.high)
    assert interval(VALUES) == found


def test_agrees_with_a_bootstrap_worked_out_by_hand() -> None:
    """The bias-corrected accelerated bootstrap (Efron 1987, eqs 2.3, 6.6) with other draws."""
    data = np.array(VALUES)
    means = np.random.default_rng(7).choice(data, (200_000, len(data))).mean(axis=1)
    bias = norm.ppf((means < data.mean()).mean())
    left_out = np.array([np.delete(data, i).mean() for i in range(len(data))])
    off = left_out.mean() - left_out
    acceleration = (off**3).sum() / (6 * (off**2).sum() ** 1.5)
    ends = []
    for share in (0.025, 0.975):
        z = bias + norm.ppf(share)
        ends.append(np.quantile(means, norm.cdf(bias + z / (1 - acceleration * z))))
    found = interval(VALUES)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(ends, abs=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "skewed"])
def test_95_of_100_intervals_over_30_seeds_contain_the_truth(shape: str) -> None:
    rng = np.random.default_rng(11)
    draw = {"normal": lambda: rng.normal(1, 0.1, 30), "skewed": lambda: rng.gamma(8, 0.125, 30)}
    contained = [not interval(list(draw[shape]())).excludes(1.0) for _ in range(600)]  # type: ignore[union-attr]
    assert 0.92 <= np.mean(contained) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 9])
def test_95_of_100_intervals_of_few_normal_values_contain_the_truth(n: int) -> None:
    """Student's t is exact for normal values; bootstrap intervals of five contain it in 83 %."""
    rng = np.random.default_rng(3)
    contained = [interval(list(rng.normal(1, 0.1, n))).contains(1.0) for _ in range(4_000)]  # type: ignore[union-attr]
    assert 0.94 <= np.mean(contained) <= 0.96


@pytest.mark.parametrize("n", [6, 7, 20, 41])
def test_intervals_of_medians_contain_the_truth_for_any_distribution(n: int) -> None:
    rng = np.random.default_rng(5)
    values = rng.lognormal(0, 2, (4_000, n))
    contained = [interval(list(row), of_median=True).contains(1.0) for row in values]  # type: ignore[union-attr]
    assert np.mean(contained) >= 0.945


@pytest.mark.slow
def test_joint_intervals_contain_all_their_means() -> None:
    rng = np.random.default_rng(8)
    contained = [
        all(interval(list(rng.normal(0, 1, 6)), among=5).contains(0.0) for _ in range(5))  # type: ignore[union-attr]
        for _ in range(2_000)
    ]
    assert np.mean(contained) >= 0.94


def test_students_interval_worked_out_by_hand() -> None:
    """Student's t with 4 degrees of freedom is 2.776445 at 97.5 % and 4.604095 at 99.5 %."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    half = 2.776445 * 2.5**0.5 / 5**0.5
    five = interval(values)
    assert five is not None
    assert (five.low, five.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)
    joint = interval(values, among=5)
    assert joint is not None
    assert joint.high == pytest.approx(3 + half * 4.604095 / 2.776445, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 30])
def test_95_of_100_further_values_lie_in_the_range_of_single_values(n: int) -> None:
    rng = np.random.default_rng(2)
    within = []
    for _ in range(3_000):
        *values, further = rng.normal(1, 0.1, n + 1)
        low, high = interval(values).single  # type: ignore[union-attr, misc]
        within.append(low <= further <= high)
    assert 0.935 <= np.mean(within) <= 0.965


def test_of_few_values() -> None:
    assert interval([]) is None
    for values in ([2.0], [2.0, 2.0], [2.0, 3.0, 4.0, 5.0]):
        few = interval(values)
        assert few is not None and (few.low, few.high, few.n) == (None, None, len(values))
        assert not few.excludes(99.0) and relative_width(few) is None
    five = interval([1.0, 2.0, 3.0, 4.0, 9.0], of_median=True)
    assert five is not None and (five.mean, five.low) == (3.0, None)
    same = interval([2.0] * 5)
    assert same is not None and (same.low, same.high) == (2.0, 2.0) and same.excludes(2.1)


def test_ratios_are_paired_by_seed() -> None:
    """Seeds differ by a factor of ten, policies by 1 %: paired by seed, this is significant."""
    base = {seed: 10.0**seed for seed in range(5)}
    ours = {seed: value * (1.01 + 0.001 * (seed % 2)) for seed, value in base.items()}
    found = mean_of_ratios({**ours, 9: 1.0}, {**base, 8: 1.0})
    assert found is not None and found.n == 5
    assert found.excludes(1.0) and found.mean == pytest.approx(1.0104)
    assert mean_of_ratios({0: 1.0}, {0: 0.0}) is None


def test_a_ratio_of_means_is_that_of_the_means_beside_it() -> None:
    """The mean of the ratios is 1.6, although both means are 3."""
    base = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0, 4: 5.0}
    ours = {0: 5.0, 1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}
    found = ratio_of_means({**ours, 9: 7.0}, {**base, 8: 7.0})
    of_ratios = mean_of_ratios(ours, base)
    assert found is not None and (found.mean, found.n) == (1.0, 5)
    assert of_ratios is not None and of_ratios.mean > 1.7
    assert found.low is not None and found.high is not None
    assert found.low * found.high == pytest.approx(1.0)
    few = ratio_of_means({0: 1.0, 1: 5.0}, {0: 2.0, 1: 2.0})
    assert few is not None and (few.mean, few.low) == (1.5, None)
    assert ratio_of_means({0: 1.0}, {0: 0.0}) is None and ratio_of_means({}, {}) is None


def test_the_interval_of_a_ratio_of_means_is_that_of_the_jackknife() -> None:
    ours, base = np.array([3.0, 5.0, 4.0, 9.0, 6.0, 2.0]), np.array([2.0, 6.0, 5.0, 7.0, 3.0, 4.0])
    n, whole = 6, np.log(ours.mean() / base.mean())
    left_out = [
        np.log(np.delete(ours, seed).mean() / np.delete(base, seed).mean()) for seed in range(n)
    ]
    error = np.sqrt((n - 1) / n * sum((value - np.mean(left_out)) ** 2 for value in left_out))
    half = t.ppf(0.975, n - 1) * error
    found = ratio_of_means(dict(enumerate(ours)), dict(enumerate(base)))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((np.exp(whole - half), np.exp(whole + half)))


def test_ratios_of_means_without_differences_or_without_an_interval() -> None:
    base = {seed: 10.0**seed for seed in range(5)}
    same = ratio_of_means(base, base)
    assert same is not None and (same.mean, same.low, same.high) == (1.0, 1.0, 1.0)
    third = ratio_of_means({seed: -value / 3 for seed, value in base.items()}, base)
    assert third is not None and third.excludes(0.0)
    assert (third.low, third.high) == pytest.approx((-1 / 3, -1 / 3))
    none = ratio_of_means(dict.fromkeys(base, 0.0), base)
    assert none is not None and (none.mean, none.low, none.high) == (0.0, 0.0, 0.0)
    for values in ({**dict.fromkeys(range(4), 0.0), 4: 0.3}, {**base, 4: -1000.0}):
        for found in (ratio_of_means(values, base), ratio_of_means(base, values)):
            assert found is not None and (found.low, found.n) == (None, 5)


@pytest.mark.parametrize("n", [5, 10, 30])
def test_how_often_the_interval_contains_the_ratio_of_means(n: int) -> None:
    """With pairs whose base has a skewness of 0.7, at least 93 % of the intervals are right."""
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(2_000):
        base = rng.gamma(8, 1, n)
        ours = 1.1 * base * rng.gamma(8, 1 / 8, n)
        found = ratio_of_means(dict(enumerate(ours)), dict(enumerate(base)))
        inside += found is not None and found.contains(1.1)
    assert 0.93 <= inside / 2_000 <= 0.97


@pytest.mark.parametrize("among", [1, 10])
@pytest.mark.parametrize("n", [5, 12])
def test_the_range_of_a_further_value_is_students_prediction_interval(n: int, among: int) -> None:
    values = [float(k % 5) for k in range(n)]
    found = interval(values, among=among)
    assert found is not None
    half = {5: 2.776445, 12: 2.200985}[n] * float(np.std(values, ddof=1)) * (1 + 1 / n) ** 0.5
    mean = float(np.mean(values))
    assert found.single == pytest.approx((mean - half, mean + half), rel=1e-6)
