# SPDX-License-Identifier: Apache-2.0
"""Fits of failure laws to recorded failures, by maximum likelihood.

Laws are fitted to up-times: the times from a repair, or from the beginning of the record, to the
next failure. The last up-time of a node did not end with a failure and is censored (on the right).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.numbers import exactly
from rebat.core.units import US_PER_S, to_us
from rebat.models.failures.events import MachineEvent, check_alternation
from rebat.models.failures.node_table import NodeTable
from rebat.models.failures.outages import outages_of
from rebat.models.failures.per_node import (
    FAMILIES,
    ExponentialNodes,
    Floats,
    GammaNodes,
    NodeLaws,
    WeibullNodes,
)

SHAPES = {"weibull": (1e-2, 1e3), "gamma": (1e-2, 1e4), "lognormal": (1e-2, 1e2)}
"""Minimum and maximum shape. A fitted shape outside this range means too few or too similar
up-times.
"""


OnProgress = Callable[[int], None]
"""Called after each node with the number of fitted nodes."""


class UpTimes(NamedTuple):
    """Up-times of a node in seconds: those that ended with a failure, and the censored ones."""

    failed_s: Floats
    going_s: Floats


class Parameters(NamedTuple):
    """Scale and shape of a node, or of all nodes together."""

    scale_s: float
    shape: float


class Fit(msgspec.Struct, frozen=True, eq=False):
    """The laws fitted to a record.

    Parameters
    ----------
    table : NodeTable
        Parameters and uptime of every node at the end of the record. The uptime of a node that is
        down is 0.
    pooled : Parameters
        Fitted to the up-times of all nodes together.
    n_failures : int
        Number of failures in the record.
    n_own : int
        Number of nodes with a shape fitted to their own up-times.
    log_likelihood : float
        Log-likelihood of the record under ``table``, for times in seconds.
    until_s : float
        End of the record.
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
    """Fit the parameters of every node to its record.

    A node with at least ``pool`` failures gets its own scale and shape. Other nodes, and nodes
    whose up-times fit no shape, get the pooled shape and the most likely scale for this shape.
    Under weibull this scale is (sum t**shape / failures)**(1/shape), where the sum is over all
    up-times of the node. A node that never failed has no most likely scale. Therefore, one up-time
    that ends with a failure is added to its record. The length of this up-time is chosen so that
    the pooled scale is its most likely scale. The resulting scale is at least the pooled scale, and
    grows with the observed time.

    Parameters
    ----------
    events : sequence of MachineEvent
        Events sorted by time. For each node, failures and repairs alternate, beginning with a
        failure: all nodes are up at time 0.
    n_nodes : int
        Size of the machine.
    law : str
        A family in `per_node.FAMILIES`.
    pool : int
        Minimum number of failures for which a node gets its own scale and shape.
    until_s : float, optional
        End of the record. Later events are ignored. Default: the last event.
    on_progress : callable, optional
        Called after each node. Gamma and lognormal fits of thousands of nodes take about a minute.
    """
    if law not in FAMILIES:
        raise unknown_name("law", law, FAMILIES)
    check_alternation(events, n_nodes)
    until_us = events[-1].at_us if until_s is None and events else to_us(until_s or 0)
    node_times, uptime_s = up_times(events, n_nodes, until_us)
    kind, n_failures = FAMILIES[law], sum(len(node.failed_s) for node in node_times)
    pooled = _pooled(kind, node_times, n_failures)
    own, fitted = [], []
    for node in node_times:
        own.append(_own_parameters(kind, node, pool))
        fitted.append(own[-1] or _with_pooled_shape(kind, node, pooled))
        if on_progress is not None:
            on_progress(len(fitted))
    scale_s, shape = (np.array(column) for column in zip(*fitted, strict=True))
    return Fit(
        table=NodeTable(kind(scale_s, shape), uptime_s),
        pooled=pooled,
        n_failures=n_failures,
        n_own=sum(parameters is not None for parameters in own),
        log_likelihood=math.fsum(map(log_likelihood, itertools.repeat(kind), fitted, node_times)),
        until_s=until_us / US_PER_S,
    )


def up_times(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int
) -> tuple[list[UpTimes], Floats]:
    """Return the up-times of every node until a time, and the uptime of every node at this time.

    The first up-time of a node that is down at time 0 begins with its repair.
    """
    since_us: list[int | None] = [0] * n_nodes
    failed: list[list[int]] = [[] for _ in range(n_nodes)]
    for node, down_us, up_us in sorted(outages_of(events).rows(), key=lambda outage: outage[1]):
        if down_us <= until_us:
            if down_us > 0:
                # at least a microsecond: most laws do not allow an up-time of 0
                failed[node].append(max(1, down_us - (since_us[node] or 0)))
            since_us[node] = up_us if up_us <= until_us else None
    open_us = [0 if since is None else until_us - since for since in since_us]
    node_times = [
        UpTimes(np.array(ended_us) / US_PER_S, np.array([last] if last else []) / US_PER_S)
        for ended_us, last in zip(failed, open_us, strict=True)
    ]
    return node_times, np.array(open_us) / US_PER_S


def log_likelihood(kind: type[NodeLaws], parameters: Parameters, times: UpTimes) -> float:
    """Return the log-likelihood of up-times under a law, for times in seconds."""
    law = kind(np.array([parameters.scale_s]), np.array([parameters.shape]))
    return float(law.log_density(times.failed_s).sum() + law.log_survival(times.going_s).sum())


def _pooled(kind: type[NodeLaws], node_times: Sequence[UpTimes], n_failures: int) -> Parameters:
    if n_failures < 2:
        raise InputError(
            f"a law cannot be fitted to {exactly(n_failures, 'failure')}", expected="at least 2"
        )
    all_times = UpTimes(*(np.concatenate(column) for column in zip(*node_times, strict=True)))
    parameters = likeliest(kind, all_times)
    if parameters is None:
        message = f"no {kind.family} law fits the up-times of {exactly(n_failures, 'failure')}"
        raise InputError(message, expected="more failures, with different up-times")
    return parameters


def _own_parameters(kind: type[NodeLaws], times: UpTimes, pool: int) -> Parameters | None:
    return likeliest(kind, times) if len(times.failed_s) >= pool else None


def _with_pooled_shape(kind: type[NodeLaws], times: UpTimes, pooled: Parameters) -> Parameters:
    if not len(times.failed_s):
        # the up-time at which the pooled scale is the most likely
        usual_s = pooled.scale_s * (pooled.shape if kind is GammaNodes else 1)
        times = times._replace(failed_s=np.array([usual_s]))
    return Parameters(likeliest_scale_s(kind, pooled.shape, times), pooled.shape)


def likeliest(kind: type[NodeLaws], times: UpTimes) -> Parameters | None:
    """Return the maximum-likelihood scale and shape.

    Return None if the shape is outside `SHAPES`.
    """
    if kind is ExponentialNodes:
        return Parameters(likeliest_scale_s(kind, 1.0, times), 1.0)
    shape = _weibull_shape(times) if kind is WeibullNodes else _profiled_shape(kind, times)
    return None if shape is None else Parameters(likeliest_scale_s(kind, shape, times), shape)


def likeliest_scale_s(kind: type[NodeLaws], shape: float, times: UpTimes) -> float:
    """Return the maximum-likelihood scale of a law with the given shape.

    At least one of ``times`` must end with a failure.
    """
    if kind in (WeibullNodes, ExponentialNodes):
        times_s = np.concatenate(times)
        longest_s = times_s.max()
        total = ((times_s / longest_s) ** shape).sum() / len(times.failed_s)
        return float(longest_s * total ** (1 / shape))
    return math.exp(_log_scale(kind, shape, times)[0])


def _weibull_shape(times: UpTimes) -> float | None:
    """Return the shape that maximises the profile likelihood.

    Return None if it is outside `SHAPES`.
    """
    logs = np.log(np.concatenate(times))
    logs -= logs.max()  # avoids overflow: all powers are between 0 and 1
    mean_of_failed = logs[: len(times.failed_s)].mean()

    def slope(log_shape: float) -> float:
        shape = math.exp(log_shape)
        weights = np.exp(shape * logs)
        return float(shape * ((weights @ logs) / weights.sum() - mean_of_failed) - 1)

    from scipy.optimize import brentq

    low, high = map(math.log, SHAPES["weibull"])
    return math.exp(brentq(slope, low, high)) if slope(low) < 0 < slope(high) else None


def _profiled_shape(kind: type[NodeLaws], times: UpTimes) -> float | None:
    """Return the shape that maximises the profile likelihood.

    Return None at the edge of `SHAPES`.
    """
    from scipy.optimize import minimize_scalar

    def cost(log_shape: float) -> float:
        return _log_scale(kind, math.exp(log_shape), times)[1]

    low, high = map(math.log, SHAPES[kind.family])
    minimum = minimize_scalar(cost, bounds=(low, high), options={"xatol": 1e-8})
    return math.exp(minimum.x) if low + 1e-3 < minimum.x < high - 1e-3 else None


def _log_scale(kind: type[NodeLaws], shape: float, times: UpTimes) -> tuple[float, float]:
    """Return the logarithm of the most likely scale for a shape, and minus the log-likelihood."""
    from scipy.optimize import minimize_scalar

    def cost(log_scale: float) -> float:
        return -log_likelihood(kind, Parameters(math.exp(log_scale), shape), times)

    middle = float(np.log(times.failed_s).mean())
    # start at the mean or median; step by about a standard deviation of log t
    start, step = (middle - math.log(shape), shape**-0.5) if kind is GammaNodes else (middle, shape)
    minimum = minimize_scalar(cost, bracket=(start, start + step))
    return float(minimum.x), float(minimum.fun)
