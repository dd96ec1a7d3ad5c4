# SPDX-License-Identifier: Apache-2.0
"""Laws of nodes from recorded failures, by maximum likelihood.

What is fitted are up-times: from a repair (or the beginning of the record) to the next failure.
The last one, which no failure has ended, counts as longer than what was seen of it (censored on
the right).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.units import US_PER_S, to_us
from rebat.models.failures.events import MachineEvent, check_alternation, down_intervals
from rebat.models.failures.node_table import NodeTable
from rebat.models.failures.per_node import (
    FAMILIES,
    ExponentialNodes,
    Floats,
    GammaNodes,
    NodeLaws,
    WeibullNodes,
)

SHAPES = {"weibull": (1e-2, 1e3), "gamma": (1e-2, 1e4), "lognormal": (1e-2, 1e2)}
"""Shapes outside are none: the up-times are too few, or too much alike."""


OnProgress = Callable[[int], None]
"""Told how many nodes are fitted, after each."""


class UpTimes(NamedTuple):
    """Up-times of a node in seconds: those that a failure ended, and those that go on."""

    failed_s: Floats
    going_s: Floats


class Parameters(NamedTuple):
    """Of one node, or of all."""

    scale_s: float
    shape: float


class Fit(msgspec.Struct, frozen=True, eq=False):
    """What a record says of its nodes.

    Parameters
    ----------
    table : NodeTable
        Parameters of every node, and its uptime at the end of the record (0: it is down).
    pooled : Parameters
        Of all up-times together.
    n_failures : int
        In the record.
    n_own : int
        Nodes whose shape is their own.
    log_likelihood : float
        Of the record under ``table``; times are in seconds.
    until_s : float
        The end of the record.
    """

    table: NodeTable
    pooled: Parameters
    n_failures: int
    n_own: int
    log_likelihood: float
    until_s: float


def fit_nodes(
    events: Sequence[MachineEvent],
    n_nodes: int,
    *,
    law: str = "weibull",
    pool: int = 10,
    until_s: float | None = None,
    on_progress: OnProgress | None = None,
) -> Fit:
    """The parameters of every node under which its record is likeliest.

    A node with ``pool`` failures or more has both parameters of its own. One with fewer, or whose
    up-times fit no shape, has the shape of all up-times together, and the scale that is likeliest
    given that shape: under weibull (sum t**shape / failures)**(1/shape), the sum over all its
    up-times. One that never failed has no likeliest scale: it is given one failure more, at the
    up-time for which the pooled scale is the likeliest, so that its scale grows from the pooled
    one with the time for which it was seen.

    Parameters
    ----------
    events : sequence of MachineEvent
        Sorted and alternating; nodes are up at 0.
    n_nodes : int
        Size of the machine.
    law : str
        A family in `per_node.FAMILIES`.
    pool : int
        Least number of failures for a shape of one's own.
    until_s : float, optional
        End of the record; what comes later is passed over. Default: the last event.
    on_progress : callable, optional
        Gamma and lognormal fits of thousands of nodes take a minute.

    Raises
    ------
    InputError
        For an unknown law, events that cannot be, and fewer than two failures, or all alike.
    """
    if law not in FAMILIES:
        raise unknown_name("law", law, FAMILIES)
    check_alternation(events, n_nodes)
    until_us = events[-1].at_us if until_s is None and events else to_us(until_s or 0)
    seen, uptime_s = up_times(events, n_nodes, until_us)
    kind, n_failures = FAMILIES[law], sum(len(node.failed_s) for node in seen)
    pooled = _pooled(kind, seen, n_failures)
    own, found = [], []
    for node in seen:
        own.append(_own(kind, node, pool))
        found.append(own[-1] or _with_pooled_shape(kind, node, pooled))
        if on_progress is not None:
            on_progress(len(found))
    scale_s, shape = (np.array(column) for column in zip(*found, strict=True))
    return Fit(
        table=NodeTable(kind(scale_s, shape), uptime_s),
        pooled=pooled,
        n_failures=n_failures,
        n_own=sum(one is not None for one in own),
        log_likelihood=math.fsum(map(log_likelihood, itertools.repeat(kind), found, seen)),
        until_s=until_us / US_PER_S,
    )


def up_times(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int
) -> tuple[list[UpTimes], Floats]:
    """The up-times of every node until a date, and how long each has been up by then.

    A node that is down at date 0 has not lived before: its first life begins with its repair.
    """
    since_us: list[int | None] = [0] * n_nodes
    failed: list[list[int]] = [[] for _ in range(n_nodes)]
    for node, down_us, up_us in sorted(down_intervals(events), key=lambda interval: interval[1]):
        if down_us <= until_us:
            if down_us > 0:
                # a microsecond at least: under most laws a time of 0 is impossible
                failed[node].append(max(1, down_us - (since_us[node] or 0)))
            since_us[node] = up_us if up_us is not None and up_us <= until_us else None
    going_us = [0 if since is None else until_us - since for since in since_us]
    seen = [
        UpTimes(np.array(ended) / US_PER_S, np.array([last] if last else []) / US_PER_S)
        for ended, last in zip(failed, going_us, strict=True)
    ]
    return seen, np.array(going_us) / US_PER_S


def log_likelihood(kind: type[NodeLaws], parameters: Parameters, seen: UpTimes) -> float:
    """Of up-times under a law, in seconds."""
    law = kind(np.array([parameters.scale_s]), np.array([parameters.shape]))
    return float(law.log_density(seen.failed_s).sum() + law.log_survival(seen.going_s).sum())


def _pooled(kind: type[NodeLaws], seen: Sequence[UpTimes], n_failures: int) -> Parameters:
    if n_failures < 2:
        raise InputError(f"{n_failures} failures to fit a law to", expected="at least 2")
    together = UpTimes(*(np.concatenate(column) for column in zip(*seen, strict=True)))
    found = likeliest(kind, together)
    if found is None:
        what = f"no {kind.family} law fits the up-times of {n_failures} failures"
        raise InputError(what, expected="more failures, after up-times that differ")
    return found


def _own(kind: type[NodeLaws], seen: UpTimes, pool: int) -> Parameters | None:
    return likeliest(kind, seen) if len(seen.failed_s) >= pool else None


def _with_pooled_shape(kind: type[NodeLaws], seen: UpTimes, pooled: Parameters) -> Parameters:
    if not len(seen.failed_s):
        # alone, this one would make the pooled scale the likeliest
        usual_s = pooled.scale_s * (pooled.shape if kind is GammaNodes else 1)
        seen = seen._replace(failed_s=np.array([usual_s]))
    return Parameters(likeliest_scale_s(kind, pooled.shape, seen), pooled.shape)


def likeliest(kind: type[NodeLaws], seen: UpTimes) -> Parameters | None:
    """Both parameters by maximum likelihood; None when it is no shape in `SHAPES`."""
    if kind is ExponentialNodes:
        return Parameters(likeliest_scale_s(kind, 1.0, seen), 1.0)
    shape = _weibull_shape(seen) if kind is WeibullNodes else _profiled_shape(kind, seen)
    return None if shape is None else Parameters(likeliest_scale_s(kind, shape, seen), shape)


def likeliest_scale_s(kind: type[NodeLaws], shape: float, seen: UpTimes) -> float:
    """The scale by maximum likelihood, given the shape; there is a failure at least."""
    if kind in (WeibullNodes, ExponentialNodes):
        times_s = np.concatenate(seen)
        longest_s = times_s.max()
        total = ((times_s / longest_s) ** shape).sum() / len(seen.failed_s)
        return float(longest_s * total ** (1 / shape))
    return math.exp(_log_scale(kind, shape, seen)[0])


def _weibull_shape(seen: UpTimes) -> float | None:
    """Where the likelihood with the likeliest scale is level in the logarithm of the shape."""
    logs = np.log(np.concatenate(seen))
    logs -= logs.max()  # powers of numbers from 0 to 1
    mean_of_failed = logs[: len(seen.failed_s)].mean()

    def slope(log_shape: float) -> float:
        shape = math.exp(log_shape)
        weights = np.exp(shape * logs)
        return float(shape * ((weights @ logs) / weights.sum() - mean_of_failed) - 1)

    from scipy.optimize import brentq

    low, high = map(math.log, SHAPES["weibull"])
    return math.exp(brentq(slope, low, high)) if slope(low) < 0 < slope(high) else None


def _profiled_shape(kind: type[NodeLaws], seen: UpTimes) -> float | None:
    """The shape whose likeliest scale is the likeliest of all."""
    from scipy.optimize import minimize_scalar

    def cost(log_shape: float) -> float:
        return _log_scale(kind, math.exp(log_shape), seen)[1]

    low, high = map(math.log, SHAPES[kind.family])
    found = minimize_scalar(cost, bounds=(low, high), options={"xatol": 1e-8})
    return math.exp(found.x) if low + 1e-3 < found.x < high - 1e-3 else None


def _log_scale(kind: type[NodeLaws], shape: float, seen: UpTimes) -> tuple[float, float]:
    """Logarithm of the likeliest scale given a shape, and minus its log-likelihood."""
    from scipy.optimize import minimize_scalar

    def cost(log_scale: float) -> float:
        return -log_likelihood(kind, Parameters(math.exp(log_scale), shape), seen)

    middle = float(np.log(seen.failed_s).mean())
    # where the middle is the mean or the median; then about a standard deviation of log t
    start, step = (middle - math.log(shape), shape**-0.5) if kind is GammaNodes else (middle, shape)
    found = minimize_scalar(cost, bracket=(start, start + step))
    return float(found.x), float(found.fun)
