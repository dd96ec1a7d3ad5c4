# SPDX-License-Identifier: Apache-2.0
"""Groups of nodes that fail together in a record, and the failure rate of nodes over time.

Source: Laplace's test for a trend of a Poisson process, as in Cox and Lewis, "The Statistical
Analysis of Series of Events", 1966, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.units import US_PER_S
from rebat.models.ettr import DAY_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.node_rates import Exposure, poisson_interval
from rebat.models.failures.outages import outages_of

N_PARTS = 4
"""Number of parts of equal length into which a record is divided."""


class PartRate(NamedTuple):
    """Failure rate in a part of a record, per 1,000 node-days of up time, with a 95 % interval.

    Nodes that fail at the same time count as one failure.
    """

    begin_s: float
    end_s: float
    failures: int
    rate: float | None
    low: float | None
    high: float | None


class Trend(NamedTuple):
    """The result of Laplace's test.

    ``z`` is negative if the rate falls. ``p`` is the two-sided p-value.
    """

    z: float
    p: float


def together(exposure: Exposure) -> dict[int, int]:
    """Return how often k nodes fail at the same time, for each k that occurs in the record."""
    _, sizes = np.unique(exposure.at_us, return_counts=True)
    numbers, counts = np.unique(sizes, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def rate_over_time(
    events: Sequence[MachineEvent], exposure: Exposure, end_us: int, n_parts: int = N_PARTS
) -> list[PartRate]:
    """Return the failure rate in each part of a record.

    Return an empty list if the record has length 0.
    """
    if end_us <= 0:
        return []
    bounds = np.linspace(0, end_us, n_parts + 1)
    at_us = np.unique(exposure.at_us)
    counts = np.histogram(at_us, bounds)[0].tolist()
    _, down_us, repaired_us = outages_of(events)
    rows = []
    for begin, end, count in zip(bounds[:-1], bounds[1:], counts, strict=True):
        inside = np.clip(np.minimum(repaired_us, end) - np.maximum(down_us, begin), 0, None)
        up_us = len(exposure.up_us) * (end - begin) - float(inside.sum())
        thousands = up_us / US_PER_S / DAY_S / 1000
        rates: list[float | None] = [None] * 3
        if thousands > 0:
            rates = [number / thousands for number in (count, *poisson_interval(count))]
        rows.append(PartRate(float(begin) / US_PER_S, float(end) / US_PER_S, count, *rates))
    return rows


def trend(exposure: Exposure, end_us: int) -> Trend | None:
    """Return the result of Laplace's test for a change of the failure rate.

    If the rate is constant, the average of n failure times is normally distributed. The mean is
    ``end / 2``, and the standard deviation ``end / sqrt(12 n)``. Return None if there are no
    failures.
    """
    from scipy.stats import norm

    at_us = np.unique(exposure.at_us)
    if not len(at_us) or end_us <= 0:
        return None
    z = float((at_us.mean() / end_us - 0.5) * np.sqrt(12 * len(at_us)))
    return Trend(z, float(2 * norm.sf(abs(z))))
