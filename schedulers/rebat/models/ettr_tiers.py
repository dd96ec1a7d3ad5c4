# SPDX-License-Identifier: Apache-2.0
"""ETTR and best intervals of two tiers of checkpoints, in closed form. All times are in seconds.

A light checkpoint (in the memory of another node) survives a share of the failures. Every n-th
checkpoint is also written to the deep tier (remote storage), where it survives all failures.

Source: Benoit, Cavelan, Robert, Sun: "Optimal checkpointing patterns", 2016; Benoit, Cavelan,
Le Fèvre, Robert, Sun: "Towards optimal multi-level checkpointing", IEEE TC 2017 (first order).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from rebat.core.errors import InputError


class TwoTiers(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern of ``per_pattern`` periods of work, each with a light checkpoint.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of the job.
    light_share : float
        Share of the failures that the light tier survives, 0 to 1.
    interval_s : float
        Work between two checkpoints.
    per_pattern : int
        Number of periods between two deep checkpoints, at least 1.
    writes_s : (float, float)
        Time to write a checkpoint of the light and of the deep tier. A deep checkpoint follows a
        light checkpoint.
    loads_s : (float, float)
        Time to load a checkpoint of the light and of the deep tier.
    detect_s : float
        Time from a failure until the job restarts.
    """

    mtbf_s: float
    light_share: float
    interval_s: float
    per_pattern: int
    writes_s: tuple[float, float]
    loads_s: tuple[float, float]
    detect_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.light_share <= 1:
            raise InputError(f"is {self.light_share:g}", "share of the light tier", "0 to 1")
        if self.per_pattern < 1:
            raise InputError(f"is {self.per_pattern}", "periods per pattern", "at least 1")


def two_tier_ettr(tiers: TwoTiers, safe_loads: bool = False) -> float:
    """Return the exact ETTR by solving the linear equations of the expected times.

    ``x_j`` is the expected time to the end of the pattern from period j on. After a failure in
    period j, the job returns to the start of the period if the light checkpoint survives.
    Otherwise, it returns to the start of the pattern. With ``safe_loads``, failures cannot strike
    while a checkpoint is loaded.
    """
    rate, share, n = 1 / tiers.mtbf_s, tiers.light_share, tiers.per_pattern
    light_s, deep_s = tiers.loads_s
    # a light load takes ``time_s`` and ends in x_j, or with probability ``lost`` in x_0
    fails = 0.0 if safe_loads else -math.expm1(-rate * light_s)
    again = 1 - fails * share
    lost = fails * (1 - share) / again
    deep_time_s = deep_s if safe_loads else math.expm1(rate * deep_s) * (1 / rate + tiers.detect_s)
    time_s = light_s if safe_loads else fails * (1 / rate + tiers.detect_s) / again
    time_s += lost * deep_time_s
    matrix, constant = np.eye(n), np.zeros(n)
    for j in range(n):
        length_s = tiers.interval_s + tiers.writes_s[0] + (tiers.writes_s[1] if j == n - 1 else 0)
        fails = -math.expm1(-rate * length_s)
        light, deep = fails * share, fails * (1 - share)
        constant[j] = fails * (1 / rate + tiers.detect_s) + light * time_s + deep * deep_time_s
        matrix[j, j] -= light * (1 - lost)
        matrix[j, 0] -= deep + light * lost
        if j < n - 1:
            matrix[j, j + 1] -= 1 - fails
    total_s = np.linalg.solve(matrix, constant)[0]
    return float(n * tiers.interval_s / total_s)


def tier_intervals_s(
    mtbf_s: float, shares: tuple[float, ...], writes_s: tuple[float, ...]
) -> list[float]:
    """Return W_i = sqrt(2 w_i / lambda_i), the work between two checkpoints of each tier.

    ``shares`` contains, for each tier, the share of failures that need this tier. If a share is 0,
    the interval of the tier is infinite.
    """
    return [
        math.sqrt(2 * write_s * mtbf_s / share) if share else math.inf
        for share, write_s in zip(shares, writes_s, strict=True)
    ]


def tier_overhead(mtbf_s: float, shares: tuple[float, ...], writes_s: tuple[float, ...]) -> float:
    """Return H* = sum of sqrt(2 lambda_i w_i), the overhead at the best intervals (first order)."""
    pairs = zip(shares, writes_s, strict=True)
    return sum(math.sqrt(2 * share / mtbf_s * write_s) for share, write_s in pairs)


def tier_ettr_first_order(
    mtbf_s: float,
    shares: tuple[float, ...],
    writes_s: tuple[float, ...],
    loads_s: tuple[float, ...],
) -> float:
    """Return 1 / (1 + H* + mean load / M), the ETTR at the best intervals (first order)."""
    load_s = sum(share * load for share, load in zip(shares, loads_s, strict=True))
    return 1 / (1 + tier_overhead(mtbf_s, shares, writes_s) + load_s / mtbf_s)
