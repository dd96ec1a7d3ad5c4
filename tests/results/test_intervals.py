# SPDX-License-Identifier: Apache-2.0
"""What seeds say: bootstrap intervals against scipy and by their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, norm

from rebat.results.intervals import RESAMPLES, interval, paired_ratio, relative_width

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
    """Bias-corrected and accelerated (Efron 1987, eqs 2.3 and 6.6), with draws of our own."""
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


@pytest.mark.parametrize("shape", ["normal", "skewed"])
def test_95_of_100_intervals_over_30_seeds_hold_the_truth(shape: str) -> None:
    rng = np.random.default_rng(11)
    draw = {"normal": lambda: rng.normal(1, 0.1, 30), "skewed": lambda: rng.gamma(8, 0.125, 30)}
    held = [not interval(list(draw[shape]())).excludes(1.0) for _ in range(600)]  # type: ignore[union-attr]
    assert 0.92 <= np.mean(held) <= 0.98


def test_of_few_values() -> None:
    assert interval([]) is None
    one = interval([2.0])
    assert one is not None and (one.mean, one.low, one.n) == (2.0, None, 1)
    assert not one.excludes(3.0) and relative_width(one) is None
    same = interval([2.0, 2.0])
    assert same is not None and (same.low, same.high) == (2.0, 2.0) and same.excludes(2.1)


def test_ratios_are_paired_by_seed() -> None:
    """Seeds differ by tenfold, the policies by 1 %: that shows, seed by seed."""
    base = {seed: 10.0**seed for seed in range(5)}
    ours = {seed: value * (1.01 + 0.001 * (seed % 2)) for seed, value in base.items()}
    found = paired_ratio({**ours, 9: 1.0}, {**base, 8: 1.0})
    assert found is not None and found.n == 5
    assert found.excludes(1.0) and found.mean == pytest.approx(1.0104)
    assert paired_ratio({0: 1.0}, {0: 0.0}) is None
