# SPDX-License-Identifier: Apache-2.0
"""How long a job lasts on another number of nodes than the one that its profile is written for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import InputError, short
from rebat.core.tagged import tagged

MOST = 1e9
"""Sizes, parallelisms, variances and speeds beyond this are taken for mistakes."""


class Linear(msgspec.Struct, frozen=True, tag_field="model", tag="linear"):
    """Twice the nodes, half the time."""

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, that of one being 1."""
        return float(n_nodes)


class Amdahl(msgspec.Struct, frozen=True, tag_field="model", tag="amdahl"):
    """A part of the work, of the time on one node, does not run in parallel (Amdahl 1967)."""

    serial: float

    def __post_init__(self) -> None:
        _check("serial", self.serial, 0, 1)

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, that of one being 1."""
        return 1.0 / (self.serial + (1.0 - self.serial) / n_nodes)


class Downey(msgspec.Struct, frozen=True, tag_field="model", tag="downey"):
    """A job whose parallelism changes while it runs.

    Source: Downey, "A parallel workload model and its implications for processor allocation",
    Cluster Computing 1(1), 1998: the speedup of the dynamic node replacement of Prabhakaran et al.
    2018, section IV-B.

    Parameters
    ----------
    parallelism : float
        A, the mean parallelism, 1 or more: no number of nodes makes the job faster than that.
    sigma : float
        The coefficient of variance of the parallelism, 0 or more; 0: it is always A.
    """

    parallelism: float
    sigma: float

    def __post_init__(self) -> None:
        _check("parallelism", self.parallelism, 1)
        _check("sigma", self.sigma, 0)

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, that of one being 1."""
        return downey_speed(n_nodes, self.parallelism, self.sigma)

    @property
    def n_nodes_max(self) -> float:
        """The number of nodes from which on more do not help: equation (5) of Prabhakaran 2018."""
        if self.sigma <= 1:
            return 2 * self.parallelism - 1
        return self.parallelism + self.parallelism * self.sigma - self.sigma


class SpeedupTable(msgspec.Struct, frozen=True, tag_field="model", tag="table"):
    """Speeds as they were measured; on fewer nodes than the least in proportion to them, on more
    than the most the same, linear in between."""

    sizes: tuple[int, ...]
    speeds: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = self.sizes
        if len(sizes) != len(self.speeds) or not sizes:
            what = f"{len(sizes)} sizes and {len(self.speeds)} speeds"
            raise InputError(what, "speedup", "one speed for each size, and one size at least")
        if sizes[0] < 1 or any(a >= b for a, b in pairwise(sizes)):
            raise InputError(
                "do not ascend", "speedup: sizes", "whole numbers from 1 on, each once"
            )
        _check("sizes", sizes[-1], 1)
        for speed in self.speeds:
            _check("speeds", speed, 1 / MOST)

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, in the table's own unit."""
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
    """The name of a speedup's model."""
    return next(name for name, kind in MODELS.items() if kind is type(speedup))


def _check(name: str, value: float, least: float, most: float = MOST) -> None:
    if not least <= value <= most:  # NaN is nowhere
        raise InputError(f"is {short(value)}", f"speedup: {name}", f"{least:g} to {most:g}")


def downey_speed(n: float, parallelism: float, sigma: float) -> float:
    """Downey's speedup on n nodes, 1 or more; the two variants agree at ``sigma`` 1.

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
    return min(speed, mean)  # all of them reach the mean where more nodes do not help


def speedup_of(profile: Mapping[str, Any]) -> Speedup:
    """The speedup of a profile, ``"speedup": {"model": "amdahl", "serial": 0.1}``, or linear.

    Raises
    ------
    InputError
        For an unknown model, and parameters that are none.
    """
    given = profile.get("speedup")
    return LINEAR if given is None else tagged(given, "model", MODELS, "speedup")


def run_us(speedup: Speedup, length_us: int, n_nodes: int, new_n_nodes: int) -> int:
    """How long what lasts ``length_us`` on ``n_nodes`` lasts on ``new_n_nodes``.

    >>> run_us(Linear(), 60, 4, 3)
    80
    """
    if n_nodes == new_n_nodes:
        return length_us
    return round(length_us * speedup.speed(n_nodes) / speedup.speed(new_n_nodes))
