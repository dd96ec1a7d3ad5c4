# SPDX-License-Identifier: Apache-2.0
"""Probability that a node fails often by chance, even if the failures of each node come in bursts.

A *life* is the up time of a node until a failure or the end of the record. All nodes are compared
with the same renewal process: a first life, then lives that begin after a failure. Both
distributions are estimated from the record by the product limit of Kaplan and Meier (JASA 53,
1958). If the failures of a node come in bursts, its lives after a failure are short. Many failures
of one node are then less surprising than under a Poisson process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

STEPS = 500
"""Number of steps into which the up time of a record is divided. Lives are rounded down to steps.
The failures of a burst then fall into the same step, which makes p larger.
"""


class Lives(NamedTuple):
    """Lives in up time (us): the first lives of nodes, and the lives that begin after a failure.

    ``failed`` states whether a life ended with a failure.
    """

    first_us: Ints
    first_failed: npt.NDArray[np.bool_]
    later_us: Ints
    later_failed: npt.NDArray[np.bool_]


def lives_of(node: Ints, age_us: Ints, up_us: Ints, pool: npt.NDArray[np.bool_]) -> Lives:
    """Return the lives of the nodes that the mask ``pool`` selects.

    ``age_us`` is the up time of ``node`` at each failure. ``up_us`` is the up time of each node at
    the end of the record.
    """
    order = np.lexsort((age_us, node))
    node, age_us = node[order], age_us[order]
    last = np.append(node[1:] != node[:-1], True)[: len(node)]
    begins = np.insert(last[:-1], 0, True)[: len(node)]
    inside = pool[node]
    first_us, first_failed = up_us.copy(), np.zeros(len(up_us), dtype=np.bool_)
    first_us[node[begins]] = age_us[begins]
    first_failed[node[begins]] = True
    ends = np.where(last, up_us[node], np.append(age_us[1:], 0)[: len(node)])
    return Lives(first_us[pool], first_failed[pool], (ends - age_us)[inside], (~last)[inside])


def chances(counts: Ints, up_us: Ints, lives: Lives) -> Floats:
    """Return each node's probability of at least ``counts`` failures in its up time."""
    width = float(up_us.max()) / STEPS * (1 + 1e-12) or 1.0
    p, steps = np.ones(len(counts)), _steps(up_us, width)
    for number, density in zip(
        range(1, int(counts.max()) + 1), _densities(lives, width), strict=False
    ):
        chosen = counts == number
        p[chosen] = np.minimum(density.cumsum(), 1.0)[steps[chosen]]
    return p


def _densities(lives: Lives, width: float) -> Iterator[Floats]:
    """Yield the distributions of the times of the first failure, the second failure, and so on."""
    from scipy.signal import convolve

    density = _product_limit(lives.first_us, lives.first_failed, width)
    later = _product_limit(lives.later_us, lives.later_failed, width)
    while True:
        yield density
        density = convolve(density, later, method="direct")[:STEPS]


def _product_limit(life_us: Ints, failed: npt.NDArray[np.bool_], width: float) -> Floats:
    """Return the probability that a life ends in each step."""
    steps = _steps(life_us, width)
    ends, censored = (np.bincount(steps[of], minlength=STEPS) for of in (failed, ~failed))
    at_risk = (ends + censored)[::-1].cumsum()[::-1]
    left = np.cumprod(1 - ends / np.maximum(at_risk, 1))
    density: Floats = np.maximum(-np.diff(left, prepend=1.0), 0.0)
    return density


def _steps(time_us: Ints, width: float) -> Ints:
    steps: Ints = np.minimum(time_us / width, STEPS - 1).astype(np.int64)
    return steps
