# SPDX-License-Identifier: Apache-2.0
"""Run times of jobs on a number of nodes that differs from the number in their request."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from rebat.core.declared import tagged
from rebat.core.errors import InputError, short
from rebat.core.numbers import exactly

MOST = 1e9
"""Maximum of sizes, parallelisms, variances and speeds."""

SIGMA_MAX = 2.0
"""Maximum sigma of drawn jobs. It is drawn uniformly from 0 to this value (Downey 1998)."""


class Linear(msgspec.Struct, frozen=True, tag_field="model", tag="linear"):
    """The speed is proportional to the number of nodes."""

    def speed(self, n_nodes: int) -> float:
        """Return the speed on ``n_nodes`` nodes, relative to one node."""
        return float(n_nodes)


class Amdahl(msgspec.Struct, frozen=True, tag_field="model", tag="amdahl"):
    """Amdahl's law (1967): a share of the run time on one node, ``serial``, is not parallel."""

    serial: float

    def __post_init__(self) -> None:
        _check("serial", self.serial, 0, 1)

    def speed(self, n_nodes: int) -> float:
        """Return the speed on ``n_nodes`` nodes, relative to one node."""
        return 1.0 / (self.serial + (1.0 - self.serial) / n_nodes)


class Downey(msgspec.Struct, frozen=True, tag_field="model", tag="downey"):
    """A job whose parallelism varies while it runs.

    Source: Downey, "A parallel workload model and its implications for processor allocation",
    Cluster Computing 1(1), 1998. Prabhakaran et al. 2018 (section IV-B) use it for dynamic node
    replacement.

    Parameters
    ----------
    parallelism : float
        A, the mean parallelism, at least 1: the maximum speedup.
    sigma : float
        Coefficient of variance of the parallelism, at least 0. If it is 0, the parallelism is
        always A.
    """

    parallelism: float
    sigma: float

    def __post_init__(self) -> None:
        _check("parallelism", self.parallelism, 1)
        _check("sigma", self.sigma, 0)

    def speed(self, n_nodes: int) -> float:
        """Return the speed on ``n_nodes`` nodes, relative to one node."""
        return downey_speed(n_nodes, self.parallelism, self.sigma)

    @property
    def n_nodes_max(self) -> float:
        """Number of nodes above which the speed is constant (Prabhakaran et al. 2018, eq. 5)."""
        if self.sigma <= 1:
            return 2 * self.parallelism - 1
        return self.parallelism + self.parallelism * self.sigma - self.sigma


class SpeedupTable(msgspec.Struct, frozen=True, tag_field="model", tag="table"):
    """Measured speeds. The speed between two measured sizes is interpolated linearly.

    Below the smallest size the speed is proportional to the number of nodes. Above the largest size
    the speed is constant.
    """

    sizes: tuple[int, ...]
    speeds: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = self.sizes
        if len(sizes) != len(self.speeds) or not sizes:
            counts = f"has {exactly(len(sizes), 'size')} and {exactly(len(self.speeds), 'speed')}"
            raise InputError(counts, "speedup", "one speed per size, and at least one size")
        if sizes[0] < 1 or any(a >= b for a, b in pairwise(sizes)):
            raise InputError(
                "do not ascend", "speedup: sizes", "ascending whole numbers of at least 1"
            )
        _check("sizes", sizes[-1], 1)
        for speed in self.speeds:
            _check("speeds", speed, 1 / MOST)

    def speed(self, n_nodes: int) -> float:
        """Return the speed on ``n_nodes`` nodes, in the unit of the table."""
        if n_nodes < self.sizes[0]:
            return self.speeds[0] * n_nodes / self.sizes[0]
        return float(np.interp(n_nodes, self.sizes, self.speeds))


LINEAR = Linear()
Speedup = Linear | Amdahl | Downey | SpeedupTable
MODELS: dict[str, type[Speedup]] = {
    "linear": Linear,
    "amdahl": Amdahl,
    "downey": Downey,
    "table": SpeedupTable,
}


def model_of(speedup: Speedup) -> str:
    """Return the name of a speedup's model."""
    return next(name for name, kind in MODELS.items() if kind is type(speedup))


def _check(name: str, value: float, least: float, most: float = MOST) -> None:
    if not least <= value <= most:  # this form of the comparison also rejects NaN
        raise InputError(f"is {short(value)}", f"speedup: {name}", f"{least:g} to {most:g}")


def downey_speed(n: float, parallelism: float, sigma: float) -> float:
    """Return Downey's speedup on n >= 1 nodes. Its two variants are equal at ``sigma`` = 1.

    >>> round(downey_speed(8, 16, 0.5), 6), round(downey_speed(16, 16, 2), 6)
    (7.211268, 9.846154)
    """
    mean = parallelism
    if sigma > 1:
        speed = n * mean * (sigma + 1) / (sigma * (n + mean - 1) + mean)
    elif n <= mean:
        speed = mean * n / (mean + sigma * (n - 1) / 2)
    else:
        speed = mean * n / (sigma * (mean - 0.5) + n * (1 - sigma / 2))
    return min(speed, mean)  # both formulas reach the mean at n_nodes_max


def speedup_of(profile: Mapping[str, Any]) -> Speedup:
    """Return the speedup of a profile: ``"speedup": {"model": "amdahl", "serial": 0.1}``.

    Without this field, the speedup is linear.
    """
    description = profile.get("speedup")
    return LINEAR if description is None else tagged(description, "model", MODELS, "speedup")


def run_us(speedup: Speedup, length_us: int, n_nodes: int, new_n_nodes: int) -> int:
    """Return the run time on ``new_n_nodes`` of a job that takes ``length_us`` on ``n_nodes``.

    >>> run_us(Linear(), 60, 4, 3)
    80
    """
    if n_nodes == new_n_nodes:
        return length_us
    return round(length_us * speedup.speed(n_nodes) / speedup.speed(new_n_nodes))
