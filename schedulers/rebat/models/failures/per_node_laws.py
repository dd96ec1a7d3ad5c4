# SPDX-License-Identifier: Apache-2.0
"""Laws whose nodes each have times to failure with parameters of their own, drawn from normals."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.streams import stream
from rebat.core.units import MAX_SECONDS, US_PER_S, to_us
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.per_node import (
    FAMILIES,
    ExponentialNodes,
    Floats,
    GammaNodes,
    LogNormalNodes,
    NodeLaws,
    WeibullNodes,
)

GAPS = 16
"""Times to failure of a node that are drawn together."""

_BLOCKS_KEPT = 8


class PerNodeLaw(Law, frozen=True, kw_only=True):
    """A family of distributions, and the normals that the parameters of its nodes are drawn from.

    Source: Vardas et al. 2022, section 2.1 and Table 1 (its standard deviations are absolute, in
    hours; the repair time is that of section 3).
    """

    kind: ClassVar[type[NodeLaws]]
    normals: ClassVar[tuple[tuple[str, str], ...]]
    """Fields: mean and standard deviation of the scales, then of the shapes (if none: 1)."""

    downtime_s: float = 540.0

    def __post_init__(self) -> None:
        Law.__post_init__(self)
        for mean, sigma in self.normals:
            self._check(mean, getattr(self, mean) > 0, "a finite number above 0")
            self._check(sigma, getattr(self, sigma) >= 0, "a finite number, 0 or more")

    def _check(self, name: str, good: bool, expected: str) -> None:
        value = getattr(self, name)
        if not (good and math.isfinite(value)):
            raise InputError(f"is {value:g}", name.removesuffix("_s"), expected)

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws:
        """The parameters of every node (step 1 of section 2.1).

        Raises
        ------
        InputError
            When one is not positive, naming the standard deviation.
        """
        rng = stream(seed, "failures", self.kind.family, "parameters")
        columns = [_drawn(rng, n_nodes, *self._normal(*names)) for names in self.normals]
        scale_s, shape = columns if len(columns) == 2 else (columns[0], np.ones(n_nodes))
        return self.kind(scale_s, shape)

    def _normal(self, mean: str, sigma: str) -> tuple[float, float, str]:
        return getattr(self, mean), getattr(self, sigma), sigma.removesuffix("_s")

    def gaps(self, n_nodes: int, seed: int, chunk: int) -> Floats:
        """The next `GAPS` times to failure of every node after ``chunk * GAPS`` of them.

        Chunks have streams of their own: they are the same in whatever order they are drawn.

        Returns
        -------
        float64 array, shape (n_nodes, GAPS)
            Seconds.
        """
        rng = stream(seed, "failures", self.kind.family, "gaps", chunk)
        return self.nodes(n_nodes, seed).gaps(rng, GAPS)

    def gaps_us(self, n_nodes: int, seed: int, chunk: int) -> npt.NDArray[np.int64]:
        """The same in whole microseconds, `MAX_SECONDS` at most: their sums are exact."""
        gaps_s = np.minimum(self.gaps(n_nodes, seed, chunk), MAX_SECONDS)
        gaps_us: npt.NDArray[np.int64] = np.rint(gaps_s * US_PER_S).astype(np.int64)
        return gaps_us

    def failures(self, n_nodes: int, seed: int) -> Iterator[tuple[int, int]]:
        """(date in microseconds, node) of every failure, by date, without end.

        Dates are the cumulative sums of a node's gaps, whatever repairs last (steps 2 and 3 of
        section 2.1). Every node holds one chunk of its own; few whole chunks are kept, and those
        that a node comes to late are drawn again, so that memory does not grow with time.
        """
        blocks = functools.lru_cache(_BLOCKS_KEPT)(lambda chunk: self.gaps_us(n_nodes, seed, chunk))

        def dates(node: int) -> Iterator[tuple[int, int]]:
            at_us = chunk = 0
            while True:
                for gap_us in blocks(chunk)[node].tolist():
                    at_us += gap_us
                    yield at_us, node
                chunk += 1

        return heapq.merge(*map(dates, range(n_nodes)))

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Every failure, repaired after the downtime; one that hits a node still down is left out.

        So is one at the very instant of the repair.
        """
        downtime_us = to_us(self.downtime_s)
        up_us = [-1] * n_nodes
        for at_us, node in self.failures(n_nodes, seed):
            if at_us > up_us[node]:
                up_us[node] = at_us + downtime_us
                yield Outage(at_us, up_us[node], NodeSet.of([node]))

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Of a node with the mean parameters; `nodes` has those of each."""
        means = [np.array([getattr(self, mean)]) for mean, _ in self.normals]
        scale_s, shape = means if len(means) == 2 else (means[0], np.ones(1))
        return math.exp(-self.kind(scale_s, shape).hazard(uptime_s, duration_s)[0])


def per_node(law: Law, where: str) -> PerNodeLaw:
    """The law, if its nodes have parameters of their own.

    Raises
    ------
    InputError
        With its place, if they have not.
    """
    if isinstance(law, PerNodeLaw):
        return law
    expected = " or ".join(FAMILIES)
    raise InputError("its nodes have no parameters of their own", where, expected)


def _drawn(
    rng: np.random.Generator, n_nodes: int, mean: float, sigma: float, sigma_name: str
) -> Floats:
    drawn = rng.normal(mean, sigma, n_nodes)
    if drawn.min() <= 0:
        node = int(drawn.argmin())
        what = f"is {sigma:g} beside a mean of {mean:g}: node {node} draws {drawn[node]:g}"
        raise InputError(what, sigma_name, "a standard deviation that leaves all above 0")
    return drawn


class Weibull(PerNodeLaw, frozen=True):
    """Nodes that live for Weibull times from failure to failure, each with its own parameters.

    Source: Vardas et al., "Exploring the impact of node failures on the resource allocation for
    parallel jobs", 2022, sections 2.1 and 3: their first trace is
    ``weibull:scale=5800h,shape=8``. The parameters of the nodes are drawn from normal
    distributions. Repairs do not put off the next failure; one that hits a node that is still down
    is left out.

    Parameters
    ----------
    scale_s : float
        Mean of the nodes' scales.
    shape : float
        Mean of their shapes; above 1: the longer a node is up, the likelier it fails.
    scale_sigma_s : float
        Standard deviation of the scales.
    shape_sigma : float
        Standard deviation of the shapes.
    downtime_s : float
        How long a failed node stays down.
    """

    kind: ClassVar[type[NodeLaws]] = WeibullNodes
    normals: ClassVar[tuple[tuple[str, str], ...]] = (
        ("scale_s", "scale_sigma_s"),
        ("shape", "shape_sigma"),
    )

    scale_s: float
    shape: float
    scale_sigma_s: float = 360.0
    shape_sigma: float = 0.1


class Gamma(PerNodeLaw, frozen=True):
    """Nodes as under weibull, with gamma times to failure (their mean is shape times scale).

    Parameters
    ----------
    scale_s : float
        Mean of the nodes' scales.
    shape : float
        Mean of their shapes; above 1: the longer a node is up, the likelier it fails.
    scale_sigma_s : float
        Standard deviation of the scales.
    shape_sigma : float
        Standard deviation of the shapes.
    downtime_s : float
        How long a failed node stays down.
    """

    kind: ClassVar[type[NodeLaws]] = GammaNodes
    normals: ClassVar[tuple[tuple[str, str], ...]] = Weibull.normals

    scale_s: float
    shape: float
    scale_sigma_s: float = 360.0
    shape_sigma: float = 0.1


class LogNormal(PerNodeLaw, frozen=True):
    """Nodes as under weibull, with log-normal times to failure.

    Parameters
    ----------
    median_s : float
        Mean of the nodes' medians.
    sigma : float
        Mean of the standard deviations of the logarithm of their times.
    median_sigma_s : float
        Standard deviation of the medians.
    sigma_sigma : float
        Standard deviation of those standard deviations.
    downtime_s : float
        How long a failed node stays down.
    """

    kind: ClassVar[type[NodeLaws]] = LogNormalNodes
    normals: ClassVar[tuple[tuple[str, str], ...]] = (
        ("median_s", "median_sigma_s"),
        ("sigma", "sigma_sigma"),
    )

    median_s: float
    sigma: float
    median_sigma_s: float = 360.0
    sigma_sigma: float = 0.1


class Exponential(PerNodeLaw, frozen=True):
    """Nodes as under weibull, with exponential times to failure: they do not age.

    Parameters
    ----------
    mean_s : float
        Mean of the nodes' mean times.
    mean_sigma_s : float
        Standard deviation of the mean times.
    downtime_s : float
        How long a failed node stays down.
    """

    kind: ClassVar[type[NodeLaws]] = ExponentialNodes
    normals: ClassVar[tuple[tuple[str, str], ...]] = (("mean_s", "mean_sigma_s"),)

    mean_s: float
    mean_sigma_s: float = 360.0
