# SPDX-License-Identifier: Apache-2.0
"""The batch of Vardas et al. 2022 in plain Python: it lists all boxes and all failure dates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

Dates = Sequence[Sequence[int]]
"""The failures of every node, by date, in microseconds."""
Choose = Callable[[Sequence[int]], Sequence[int]]
"""The nodes of an attempt, from the uptime of every node in microseconds."""


def batch(
    dates: Dates, n_jobs: int, duration: int, repair: int, choose: Choose, begin: int = 0
) -> Iterator[tuple[int, int, bool, list[int]]]:
    """Yield (start, end, aborted, nodes) of every attempt; times are measured from ``begin``.

    ``dates`` must contain all failures up to the end of the batch.
    """
    now, ended = begin, 0
    while ended < n_jobs:
        uptimes = [now - max([0, *(at for at in mine if at <= now)]) for mine in dates]
        nodes = sorted(choose(uptimes))
        hits = [at for node in nodes for at in dates[node] if now <= at < now + duration]
        if hits:
            yield now - begin, min(hits) - begin, True, nodes
            now = min(hits) + repair
        else:
            yield now - begin, now - begin + duration, False, nodes
            now += duration
            ended += 1


def least_likely(boxes: Sequence[Sequence[int]], hazard: Callable[[int, int], float]) -> Choose:
    """FAPS: the first box with the least sum of its nodes' hazards at their uptimes."""

    def choose(uptimes: Sequence[int]) -> Sequence[int]:
        sums = [math.fsum(hazard(n, uptimes[n]) for n in box) for box in boxes]
        least = min(sums)
        return next(b for b, s in zip(boxes, sums, strict=True) if s <= least * (1 + 1e-12))

    return choose


def safest(size: int, hazard: Callable[[int, int], float]) -> Choose:
    """The ceiling: the nodes with the least hazards, in a box or not."""

    def choose(uptimes: Sequence[int]) -> Sequence[int]:
        order = sorted(range(len(uptimes)), key=lambda n: (hazard(n, uptimes[n]), n))
        return order[:size]

    return choose


def weibull_hazard(scale: float, shape: float, uptime: float, duration: float) -> float:
    """Return ``-log(1 - p)`` for the probability p of equation (1), with its sign corrected."""
    return ((uptime + duration) / scale) ** shape - (uptime / scale) ** shape
