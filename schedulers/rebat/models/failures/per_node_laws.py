# SPDX-License-Identifier: Apache-2.0
"""Failure laws in which each node has its own parameters, drawn from normal distributions.

The failures of all nodes of a machine are also available as one series of arrays, sorted by time.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US, MAX_SECONDS, US_PER_S, to_us
from rebat.models.failures.law import Law, Row
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
"""Number of times to failure per node that are drawn together (a chunk)."""

_CACHED_CHUNKS = 8


class PerNodeLaw(Law, frozen=True, kw_only=True):
    """A family of distributions, and the normal distributions of the parameters of nodes.

    Source: Vardas et al. 2022, section 2.1 and Table 1, where standard deviations are in hours. The
    repair time is from section 3.
    """

    kind: ClassVar[type[NodeLaws]]
    normals: ClassVar[tuple[tuple[str, str], ...]]
    """Names of the fields that contain mean and standard deviation: first those of the scale
    parameters, then those of the shape parameters. If a law has no fields for shape parameters, all
    shapes are 1.
    """

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
        """Draw the parameters of every node (step 1 of section 2.1)."""
        rng = stream(seed, "failures", self.kind.family, "parameters")
        columns = [_drawn(rng, n_nodes, *self._normal(*names)) for names in self.normals]
        scale_s, shape = columns if len(columns) == 2 else (columns[0], np.ones(n_nodes))
        return self.kind(scale_s, shape)

    def _normal(self, mean: str, sigma: str) -> tuple[float, float, str]:
        return getattr(self, mean), getattr(self, sigma), sigma.removesuffix("_s")

    def gaps(self, n_nodes: int, seed: int, chunk: int) -> Floats:
        """Draw chunk number ``chunk`` of the times to failure: `GAPS` times for every node.

        Each chunk has its own random stream, so the result does not depend on the order of calls.

        Returns
        -------
        float64 array, shape (n_nodes, GAPS)
            Seconds.
        """
        rng = stream(seed, "failures", self.kind.family, "gaps", chunk)
        return self.nodes(n_nodes, seed).gaps(rng, GAPS)

    def gaps_us(self, n_nodes: int, seed: int, chunk: int) -> npt.NDArray[np.int64]:
        """Return `gaps` in whole microseconds, at most `MAX_SECONDS`, so that sums are exact."""
        gaps_s = np.minimum(self.gaps(n_nodes, seed, chunk), MAX_SECONDS)
        gaps_us: npt.NDArray[np.int64] = np.rint(gaps_s * US_PER_S).astype(np.int64)
        return gaps_us

    def failures(self, n_nodes: int, seed: int) -> Iterator[tuple[int, int]]:
        """Yield (time in microseconds, node) of every failure, sorted by time. There is no last
        one.

        Times are the cumulative sums of the times to failure of a node. Repairs do not delay them
        (steps 2 and 3 of section 2.1). Only the last few chunks are cached, so that memory does not
        grow with time. An older chunk is drawn again when needed.
        """
        gaps_of_chunk = functools.lru_cache(_CACHED_CHUNKS)(
            lambda chunk: self.gaps_us(n_nodes, seed, chunk)
        )

        def times(node: int) -> Iterator[tuple[int, int]]:
            at_us = chunk = 0
            while True:
                for gap_us in gaps_of_chunk(chunk)[node].tolist():
                    at_us += gap_us
                    yield at_us, node
                chunk += 1

        return heapq.merge(*map(times, range(n_nodes)))

    def rows(self, n_nodes: int, seed: int) -> Iterator[Row]:
        """Yield failures with their repairs. A node that is down cannot fail."""
        downtime_us = to_us(self.downtime_s)
        up_us = [-1] * n_nodes
        for at_us, node in self.failures(n_nodes, seed):
            if at_us > up_us[node]:
                up_us[node] = at_us + downtime_us
                yield at_us, up_us[node], node

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return the survival probability of a node with the mean parameters; see `nodes`."""
        means = [np.array([getattr(self, mean)]) for mean, _ in self.normals]
        scale_s, shape = means if len(means) == 2 else (means[0], np.ones(1))
        return math.exp(-self.kind(scale_s, shape).hazard(uptime_s, duration_s)[0])


def per_node(law: Law, where: str) -> PerNodeLaw:
    """Return ``law`` if it is a `PerNodeLaw`."""
    if isinstance(law, PerNodeLaw):
        return law
    expected = " or ".join(FAMILIES)
    raise InputError("the law has no parameters per node", where, expected)


def _drawn(
    rng: np.random.Generator, n_nodes: int, mean: float, sigma: float, sigma_name: str
) -> Floats:
    drawn = rng.normal(mean, sigma, n_nodes)
    if drawn.min() <= 0:
        node = int(drawn.argmin())
        message = f"is {sigma:g} for a mean of {mean:g}: node {node} draws {drawn[node]:g}"
        raise InputError(
            message, sigma_name, "a smaller standard deviation: all draws must be above 0"
        )
    return drawn


class Weibull(PerNodeLaw, frozen=True):
    """Nodes with Weibull times between failures; the parameters differ between nodes.

    Source: Vardas et al., "Exploring the impact of node failures on the resource allocation for
    parallel jobs", 2022, sections 2.1 and 3: their first trace is ``weibull:scale=5800h,shape=8``.
    The parameters of the nodes are drawn from normal distributions. Repairs do not delay the next
    failure. A failure of a node that is still down is skipped.

    Parameters
    ----------
    scale_s : float
        Mean of the scale parameters of the nodes.
    shape : float
        Mean of the shape parameters of the nodes. Above 1, the failure rate of a node grows with
        its uptime.
    scale_sigma_s : float
        Standard deviation of the scale parameters.
    shape_sigma : float
        Standard deviation of the shape parameters.
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
    """Like weibull, but with gamma times between failures (mean: shape times scale).

    Parameters
    ----------
    scale_s : float
        Mean of the scale parameters of the nodes.
    shape : float
        Mean of the shape parameters of the nodes. Above 1, the failure rate of a node grows with
        its uptime.
    scale_sigma_s : float
        Standard deviation of the scale parameters.
    shape_sigma : float
        Standard deviation of the shape parameters.
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
    """Like weibull, but with log-normal times between failures.

    Parameters
    ----------
    median_s : float
        Mean of the nodes' median times between failures.
    sigma : float
        Mean of the nodes' sigmas. The sigma of a node is the standard deviation of the logarithm of
        its times between failures.
    median_sigma_s : float
        Standard deviation of the medians.
    sigma_sigma : float
        Standard deviation of the sigmas.
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
    """Like weibull, but with exponential times between failures: nodes do not age.

    Parameters
    ----------
    mean_s : float
        Mean of the nodes' mean times between failures.
    mean_sigma_s : float
        Standard deviation of the mean times.
    downtime_s : float
        How long a failed node stays down.
    """

    kind: ClassVar[type[NodeLaws]] = ExponentialNodes
    normals: ClassVar[tuple[tuple[str, str], ...]] = (("mean_s", "mean_sigma_s"),)

    mean_s: float
    mean_sigma_s: float = 360.0


MAX_FAILURES = 50_000_000
"""Maximum length of a series (600 MB)."""


class FailureSeries:
    """The failures of `PerNodeLaw.failures` as arrays.

    More failures are drawn when they are needed.

    Source: Vardas et al. 2022, section 2.1, steps 2 and 3. Failure times are the cumulative sums of
    the times to failure of each node. Repairs do not delay them.
    """

    def __init__(self, law: PerNodeLaw, n_nodes: int, seed: int) -> None:
        self._law, self._n_nodes, self._seed = law, n_nodes, seed
        none = np.empty(0, np.int64), np.empty(0, np.int32)
        self._drawn = _Drawn(*none, 0, none, 0, np.zeros((n_nodes, 1), dtype=np.int64))

    @property
    def at_us(self) -> npt.NDArray[np.int64]:
        """Failure times, ascending, shape (n,). At equal times, the lower node comes first."""
        return self._drawn.at_us

    @property
    def node(self) -> npt.NDArray[np.int32]:
        """The node of each failure, shape (n,)."""
        return self._drawn.node

    @property
    def until_us(self) -> int:
        """The series contains all failures before this time."""
        return self._drawn.until_us

    def reach(self, time_us: int) -> None:
        """Draw all failures up to a time, and at least one later failure."""
        while self.until_us <= time_us or self.at_us[-1] <= time_us:
            self._drawn = self._with_more(self._drawn)

    def _with_more(self, drawn: _Drawn) -> _Drawn:
        """Draw more failures of every node.

        Afterwards, the series is complete up to the earliest of the nodes' last drawn failures.
        Each call increases the number of chunks by a quarter, so that the time to copy arrays stays
        proportional to the time to draw failures.
        """
        if len(drawn.at_us) + len(drawn.later[0]) > MAX_FAILURES:
            raise InputError(
                f"draws more than {MAX_FAILURES:,} failures in {drawn.until_us / US_PER_S:.3g} s",
                "failure law",
                "nodes that fail less often",
            )
        new, last_us = [drawn.later], drawn.last_us
        n_chunks = drawn.n_chunks + drawn.n_chunks // 4 + 1
        for chunk in range(drawn.n_chunks, n_chunks):
            gaps_us = self._law.gaps_us(self._n_nodes, self._seed, chunk)
            times_us = np.minimum(last_us + np.cumsum(gaps_us, axis=1), FOREVER_US)
            nodes = np.arange(self._n_nodes, dtype=np.int32)[:, None]
            new.append((times_us.ravel(), np.broadcast_to(nodes, times_us.shape).ravel()))
            last_us = times_us[:, -1:]
        at_us, node = (np.concatenate(column) for column in zip(*new, strict=True))
        until_us = int(last_us.min())
        complete = at_us < until_us
        order = np.lexsort((node[complete], at_us[complete]))
        return _Drawn(
            np.concatenate([drawn.at_us, at_us[complete][order]]),
            np.concatenate([drawn.node, node[complete][order]]),
            until_us,
            (at_us[~complete], node[~complete]),
            n_chunks,
            last_us,
        )


class _Drawn(NamedTuple):
    """The failures of a series. They are replaced together: an interrupt cannot divide them."""

    at_us: npt.NDArray[np.int64]
    node: npt.NDArray[np.int32]
    until_us: int
    later: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
    """Failures at or after ``until_us``, in no order."""
    n_chunks: int
    last_us: npt.NDArray[np.int64]
    """The last failure of each node, shape (n_nodes, 1)."""


@lru_cache(maxsize=2)
def series_of(law: PerNodeLaw, n_nodes: int, seed: int) -> FailureSeries:
    """Return the failure series of a law and a seed.

    The two most recent series are cached and shared by all callers.
    """
    return FailureSeries(law, n_nodes, seed)


def system_mttf_s(law: PerNodeLaw, n_nodes: int, seed: int, horizon_s: float) -> float:
    """Return the machine's mean time between failures: horizon / number of failures (Table 1)."""
    series = series_of(law, n_nodes, seed)
    series.reach(to_us(horizon_s))
    count = int(np.searchsorted(series.at_us, to_us(horizon_s)))
    if not count:
        raise InputError(f"no failure occurs within {horizon_s:g} s", "horizon", "a later horizon")
    return horizon_s / count
