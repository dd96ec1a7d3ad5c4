# SPDX-License-Identifier: Apache-2.0
"""Measure how often rebat's 95 % intervals contain the true value, by simulation.

This command prints the table of docs/explanation/intervals.md:

    python scripts/interval_coverage.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, log, sqrt

import numpy as np

from rebat.results.intervals import interval, ratio_of_means

SAMPLES = 2_000
"""Number of samples per cell. Near 95 %, the standard error of a share is at most 0.5 points."""

SIZES = (5, 6, 9, 10, 20, 30)

Draw = Callable[[np.random.Generator, int], np.ndarray]

DrawPair = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]

LAWS: Mapping[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, n: rng.normal(1, 0.1, n), 1.0, 1.0),
    "gamma, skewness 0.7": (lambda rng, n: rng.gamma(8, 1, n), 8.0, 7.669249),
    "exponential, skewness 2": (lambda rng, n: rng.exponential(1, n), 1.0, log(2)),
    "log-normal, skewness 6": (lambda rng, n: rng.lognormal(0, 1, n), exp(0.5), 1.0),
    "two points, 0 or 1": (lambda rng, n: rng.integers(0, 2, n).astype(float), 0.5, 0.5),
}
"""For each law: function that draws a sample, mean, and median."""


def coverage(draw: Draw, truth: float, n: int, of_median: bool) -> float:
    """Return the share of samples whose interval contains the true mean or median."""
    rng = np.random.default_rng(n)
    inside = 0
    for _ in range(SAMPLES):
        estimate = interval(draw(rng, n).tolist(), of_median=of_median)
        inside += estimate is not None and estimate.contains(truth)
    return inside / SAMPLES


RATIO = 1.1
"""The true ratio of the means of `pairs`."""


def pairs(draw: Draw, paired: bool) -> DrawPair:
    """Return a function that draws the values of two policies for n seeds.

    If they are paired, the second policy has the values of the first policy, times a factor with a
    standard deviation of 35 %. Otherwise, the values of the two policies are independent.
    """

    def drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        base = draw(rng, n)
        factors = rng.gamma(8, 1 / 8, n)
        return RATIO * (base * factors if paired else draw(rng, n)), base

    return drawn


def ratio_coverage(draw: DrawPair, n: int) -> float:
    """Return the share of samples whose interval contains the true ratio of the means."""
    rng = np.random.default_rng(n)
    inside = 0
    for _ in range(SAMPLES):
        ours, base = (dict(enumerate(values.tolist())) for values in draw(rng, n))
        estimate = ratio_of_means(ours, base)
        inside += estimate is not None and estimate.contains(RATIO)
    return inside / SAMPLES


def main() -> None:
    """Print a row per law: the coverage of means, medians and ratios, by number of values."""
    print("| values of | " + " | ".join(f"{n}" for n in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for of_median, words in ((False, "mean"), (True, "median")):
        for name, (draw, mean, median) in LAWS.items():
            if of_median and name.startswith("two"):
                continue
            truth = median if of_median else mean
            cells = [coverage(draw, truth, n, of_median) for n in SIZES]
            shown = ["none" if not c else f"{c:.1%}" for c in cells]
            print(f"| {words}, {name} | " + " | ".join(shown) + " |", flush=True)
    for paired, words in ((True, "paired"), (False, "independent")):
        for name, (draw, *_) in LAWS.items():
            if not name.startswith("two"):
                cells = [ratio_coverage(pairs(draw, paired), n) for n in SIZES]
                shown = [f"{c:.1%}" for c in cells]
                print(f"| ratio, {words}, {name} | " + " | ".join(shown) + " |", flush=True)
    print(f"\n{SAMPLES} samples per cell; standard error at most {sqrt(0.25 / SAMPLES):.1%}")


if __name__ == "__main__":
    main()
