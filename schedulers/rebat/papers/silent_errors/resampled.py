# SPDX-License-Identifier: Apache-2.0
"""Intervals of the numbers of claims, computed by resampling job sets (bootstrap)."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.papers.common.claims import Claim
from rebat.results.intervals import Interval


def resampled(claim: Claim) -> Claim:
    """Return a claim whose number has an interval, computed from resampled job sets."""

    def number(on: Any) -> Interval | None:
        def statistic(row: int) -> float | None:
            value = claim.number(on.weighted(row))
            return value.mean if isinstance(value, Interval) else value

        estimate: Interval | None = on.weights.interval(statistic)
        return estimate

    return msgspec.structs.replace(claim, number=number)
