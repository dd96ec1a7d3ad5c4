# SPDX-License-Identifier: Apache-2.0
"""Distributions of times to failure: one family for all nodes, with parameters for each node.

Source: Vardas et al., "Exploring the impact of node failures on the resource allocation for
parallel jobs", 2022, sections 2.1 and 2.2. The published equation (1) has a wrong sign (its
"probability" is negative). The cumulative hazard below uses the correct sign.
"""

from __future__ import annotations

import math
from copy import copy
from typing import ClassVar, Self

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError

Floats = npt.NDArray[np.float64]
Times = float | Floats
"""Seconds: a number for all nodes, or an array with a number per node."""

_LARGEST_HAZARD = 1e300
_UNDERFLOW = 1e-290
_FRACTION_TERMS = 32  # 16 terms suffice for shapes from 0.01 to a million


class NodeLaws(msgspec.Struct, frozen=True, eq=False):
    """Distributions of the times to failure of nodes. Arrays have an entry per node.

    Parameters
    ----------
    scale_s, shape : float64 array, shape (n,)
        Parameters of the distributions, above 0. The docstring of each family defines them.
    """

    family: ClassVar[str]

    scale_s: Floats
    shape: Floats

    def __post_init__(self) -> None:
        if self.scale_s.shape != self.shape.shape or self.scale_s.ndim != 1:
            raise InputError("scales and shapes differ in number", expected="one of each per node")
        for name, values in (("scale", self.scale_s), ("shape", self.shape)):
            if not (values.min(initial=1.0) > 0 and values.max(initial=1.0) < math.inf):
                wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
                expected = "a finite number above 0"
                raise InputError(f"{name} is {values[wrong[0]]:g}", f"node {wrong[0]}", expected)

    def __len__(self) -> int:
        return len(self.scale_s)

    def of(self, nodes: npt.NDArray[np.int64]) -> Self:
        """Return the laws of ``nodes``, in the order of ``nodes``."""
        laws = copy(self)  # the parameters were checked when self was created
        msgspec.structs.force_setattr(laws, "scale_s", self.scale_s[nodes])
        msgspec.structs.force_setattr(laws, "shape", self.shape[nodes])
        return laws

    def log_survival(self, times_s: Times) -> Floats:
        """Return the logarithm of the probability that a time to failure exceeds ``times_s``."""
        raise NotImplementedError

    def log_density(self, times_s: Times) -> Floats:
        """Return the logarithm of the density (1/s) at times to failure above 0."""
        raise NotImplementedError

    def mean_s(self) -> Floats:
        """Return the mean time to failure of each node."""
        raise NotImplementedError

    def gaps(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw ``count`` times to failure of each node, in seconds: shape (n, count)."""
        raise NotImplementedError

    def hazard(self, uptime_s: Times, duration_s: Times) -> Floats:
        """Return the cumulative hazard of each node over [uptime, uptime + duration).

        The hazard is minus the logarithm of the probability that a node with this uptime survives
        the duration. The hazard of a partition is the sum of the hazards of its nodes (equation 2).
        """
        before, after = self.log_survival(uptime_s), self.log_survival(uptime_s + duration_s)
        return np.maximum(before - after, 0.0)

    def failure_probability(self, uptime_s: Times, duration_s: Times) -> Floats:
        """Return the probability that each node fails within a duration, given its uptime."""
        return -np.expm1(-self.hazard(uptime_s, duration_s))


class WeibullNodes(NodeLaws, frozen=True, eq=False):
    """Weibull: survival exp(-(t / scale)**shape)."""

    family: ClassVar[str] = "weibull"

    def hazard(self, uptime_s: Times, duration_s: Times) -> Floats:
        """Return ((t + d) / scale)**shape - (t / scale)**shape.

        Equation (1) swaps the two terms.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            after = ((uptime_s + duration_s) / self.scale_s) ** self.shape
            hazard = after - (uptime_s / self.scale_s) ** self.shape
        # if both terms overflow, the node fails with probability 1
        return np.fmin(hazard, _LARGEST_HAZARD)

    def log_survival(self, times_s: Times) -> Floats:
        return -self.hazard(0.0, times_s)

    def log_density(self, times_s: Times) -> Floats:
        x = np.asarray(times_s) / self.scale_s
        density: Floats = np.log(self.shape / self.scale_s) + (self.shape - 1) * np.log(x)
        return density + self.log_survival(times_s)

    def mean_s(self) -> Floats:
        from scipy.special import gamma

        mean: Floats = self.scale_s * gamma(1 + 1 / self.shape)
        return mean

    def gaps(self, rng: np.random.Generator, count: int) -> Floats:
        drawn = rng.weibull(self.shape[:, None], (len(self), count))
        return self.scale_s[:, None] * drawn


class GammaNodes(NodeLaws, frozen=True, eq=False):
    """Gamma: density proportional to t**(shape - 1) exp(-t / scale)."""

    family: ClassVar[str] = "gamma"

    def log_survival(self, times_s: Times) -> Floats:
        from scipy.special import gammainc, gammaincc

        shape, x = np.broadcast_arrays(self.shape, times_s / self.scale_s)
        below, above = gammainc(shape, x), gammaincc(shape, x)
        with np.errstate(divide="ignore"):
            log_survival: Floats = np.where(below < 0.5, np.log1p(-below), np.log(above))
        far = above < _UNDERFLOW
        if far.any():
            log_survival[far] = _log_upper_gamma(shape[far], x[far])
        return log_survival

    def log_density(self, times_s: Times) -> Floats:
        from scipy.special import gammaln

        x = np.asarray(times_s) / self.scale_s
        constant = gammaln(self.shape) + np.log(self.scale_s)
        density: Floats = (self.shape - 1) * np.log(x) - x - constant
        return density

    def mean_s(self) -> Floats:
        mean: Floats = self.shape * self.scale_s
        return mean

    def gaps(self, rng: np.random.Generator, count: int) -> Floats:
        size = (len(self), count)
        drawn: Floats = rng.gamma(self.shape[:, None], self.scale_s[:, None], size)
        return drawn


class LogNormalNodes(NodeLaws, frozen=True, eq=False):
    """Log-normal: the scale is the median, the shape the standard deviation of log t."""

    family: ClassVar[str] = "lognormal"

    def log_survival(self, times_s: Times) -> Floats:
        from scipy.special import log_ndtr

        with np.errstate(divide="ignore"):
            log_survival: Floats = log_ndtr(-np.log(times_s / self.scale_s) / self.shape)
        return log_survival

    def log_density(self, times_s: Times) -> Floats:
        z = np.log(np.asarray(times_s) / self.scale_s) / self.shape
        density: Floats = -(z**2) / 2 - np.log(self.shape * math.sqrt(2 * math.pi) * times_s)
        return density

    def mean_s(self) -> Floats:
        mean: Floats = self.scale_s * np.exp(self.shape**2 / 2)
        return mean

    def gaps(self, rng: np.random.Generator, count: int) -> Floats:
        medians = np.log(self.scale_s)[:, None]
        drawn: Floats = rng.lognormal(medians, self.shape[:, None], (len(self), count))
        return drawn


class ExponentialNodes(NodeLaws, frozen=True, eq=False):
    """Exponential, memoryless: the scale is the mean, the shape is 1."""

    family: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        NodeLaws.__post_init__(self)
        wrong = np.flatnonzero(self.shape != 1)
        if len(wrong):
            raise InputError(f"shape is {self.shape[wrong[0]]:g}", f"node {wrong[0]}", "1")

    def hazard(self, uptime_s: Times, duration_s: Times) -> Floats:
        """Return duration / mean, independent of the uptime."""
        return np.asarray(duration_s) / self.scale_s

    def log_survival(self, times_s: Times) -> Floats:
        return -self.hazard(0.0, times_s)

    def log_density(self, times_s: Times) -> Floats:
        density: Floats = self.log_survival(times_s) - np.log(self.scale_s)
        return density

    def mean_s(self) -> Floats:
        return self.scale_s.copy()

    def gaps(self, rng: np.random.Generator, count: int) -> Floats:
        drawn: Floats = rng.exponential(self.scale_s[:, None], (len(self), count))
        return drawn


FAMILIES: dict[str, type[NodeLaws]] = {
    kind.family: kind for kind in (WeibullNodes, GammaNodes, LogNormalNodes, ExponentialNodes)
}


def _log_upper_gamma(shape: Floats, x: Floats) -> Floats:
    """Return log(gamma(a, x) / gamma(a)) for x far above the mean, where the quotient underflows.

    This function evaluates Legendre's continued fraction (NIST Digital Library of Mathematical
    Functions, 8.9.2, even form) from the last term to the first.
    """
    from scipy.special import gammaln

    fraction = np.zeros_like(x)
    for term in range(_FRACTION_TERMS, 0, -1):
        fraction = term * (shape - term) / (x + 2 * term + 1 - shape + fraction)
    logarithm: Floats = shape * np.log(x) - x - gammaln(shape) - np.log(x + 1 - shape + fraction)
    return logarithm


def alike(n_nodes: int, mean_s: float) -> ExponentialNodes:
    """Return identical memoryless nodes with this mean time to failure."""
    return ExponentialNodes(np.full(n_nodes, mean_s), np.ones(n_nodes))
