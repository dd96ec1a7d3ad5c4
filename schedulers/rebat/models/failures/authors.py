"""The failure scenarios of the node-stealing paper, number for number.

Source: Du et al., "Improving batch schedulers with node stealing for failed jobs", 2024,
section 6.1, and the failure script of its public program: Python's own generator, one Poisson
process for the whole platform, dates rounded to 0.01 s.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from rebat.core.errors import InputError


def authors_failures(
    mtbf_s: float, downtime_s: float, n_nodes: int, horizon_s: float = 5e6, seed: int = 0
) -> Iterator[tuple[float, int]]:
    """Failures as the authors draw them.

    Parameters
    ----------
    mtbf_s : float
        Mean time between failures of the whole platform, seconds.
    downtime_s : float
        How long a node stays down, seconds.
    n_nodes : int
        Size of the platform.
    horizon_s : float
        Failures are drawn until one lies at or beyond this date; that last one counts. The authors
        use 5,000,000 s.
    seed : int
        The authors use 0 to 4.

    Yields
    ------
    t_s : float
        Date of the failure, seconds; the node is up again at ``t_s + downtime_s``.
    node : int
        A node that was up.

    Raises
    ------
    InputError
        When a failure comes while every node is down: the authors' program would hang.

    Examples
    --------
    >>> t_s, node = next(authors_failures(3600, 3600, 49152))
    >>> round(t_s, 2), node
    (6698.19, 27562)
    """
    rng = random.Random(seed)
    nodes = range(n_nodes)
    up_again_s: dict[int, float] = {}
    t_s = 0.0
    while t_s < horizon_s:
        t_s += round(rng.expovariate(1 / mtbf_s), 2)
        up_again_s = {node: up_s for node, up_s in up_again_s.items() if up_s > t_s}
        if len(up_again_s) == n_nodes:
            raise InputError(f"at {t_s:.2f} s all {n_nodes} nodes are down", expected=_HINT)
        node = rng.choice(nodes)
        while node in up_again_s:
            node = rng.choice(nodes)
        up_again_s[node] = t_s + downtime_s
        yield t_s, node


_HINT = "a downtime that is short beside the MTBF times the number of nodes"
