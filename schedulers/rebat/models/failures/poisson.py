"""Independent exponential failures of every machine, with a fixed repair time.

Source: the model of Du et al. 2024, section 5.2: a Poisson process per node, platform MTBF =
node MTBF / N.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from rebat.core.streams import stream
from rebat.core.units import to_s, to_us


def poisson_failures(
    mtbf_s: float, downtime_s: float, n_nodes: int, horizon_s: float = 5e6, seed: int = 0
) -> Iterator[tuple[float, int]]:
    """Failures of nodes that each live for an exponential time after every repair.

    Unlike the authors' platform-wide process a node that is down cannot fail, so that nothing has
    to be redrawn, and the rate of the platform falls with the number of its nodes that are up.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the platform with all nodes up, seconds: a node's own mean
        is ``mtbf_s * n_nodes``.
    downtime_s : float
        How long a node stays down, seconds.
    n_nodes : int
        Size of the platform.
    horizon_s : float
        Failures are before this date, seconds.
    seed : int
        Same seed, same failures.

    Yields
    ------
    t_s : float
        Date of the failure, seconds, on the grid of 1 microsecond.
    node : int
        The node that fails.
    """
    rng = stream(seed, "failures", "poisson")
    mean_us, horizon_us, downtime_us = mtbf_s * n_nodes * 1e6, horizon_s * 1e6, to_us(downtime_s)
    lives_us = rng.exponential(mean_us, n_nodes)
    soon = np.flatnonzero(lives_us < horizon_us)
    pending = [(round(lives_us[node]), int(node)) for node in soon]
    heapq.heapify(pending)
    while pending and pending[0][0] < horizon_us:
        at_us, node = pending[0]
        yield to_s(at_us), node
        # one unit more, so that a repair and the next failure never share an instant
        next_us = at_us + downtime_us + 1 + round(rng.exponential(mean_us))
        heapq.heapreplace(pending, (next_us, node))
