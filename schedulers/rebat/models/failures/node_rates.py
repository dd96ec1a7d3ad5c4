# SPDX-License-Identifier: Apache-2.0
"""Failure rates of a record: nodes that fail more often, and the mean time to failure of jobs by
size.

Sources: Holm's correction (Scandinavian Journal of Statistics 6, 1979), Garwood's interval of a
Poisson mean (Biometrika 28, 1936). The test of lemon nodes is in `repeated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import outages_of
from rebat.models.failures.per_node import Floats
from rebat.models.failures.repeated import chances, lives_of

Ints = npt.NDArray[np.int64]

SIGNIFICANCE = 0.05
"""Probability of a false alarm: that any node is listed as a lemon although all nodes are equal."""

SIZE_STEP = 8
"""Ratio between consecutive sizes in `job_sizes`."""

TAIL = 0.025
"""Probability on each side of a 95 % interval."""


class Exposure(NamedTuple):
    """The failures of a record, one per failed node, and the up time of each node.

    Outages that begin at time 0 do not count as failures: the node may already have been down
    before.
    """

    node: Ints
    at_us: Ints
    up_us: Ints
    age_us: Ints
    """Up time of the node at each failure."""

    @property
    def counts(self) -> Ints:
        """Number of failures of each node."""
        return np.bincount(self.node, minlength=len(self.up_us))


class Lemon(NamedTuple):
    """A node that fails significantly more often than the others.

    ``factor`` is its failure rate divided by the rate of the other nodes. It is None if no other
    node fails. ``p`` is the p-value, corrected for the number of nodes.
    """

    node: int
    failures: int
    factor: float | None
    p: float


class SizeMttf(NamedTuple):
    """Mean time to failure of jobs with ``nodes`` nodes, in seconds, with a 95 % interval.

    ``jobs`` is the number of jobs of this size that fit on the machine. If there are no failures,
    ``mttf_s`` and ``high_s`` are None.
    """

    nodes: int
    jobs: int
    failures: int
    mttf_s: float | None
    low_s: float
    high_s: float | None


def exposure_of(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int | None = None
) -> Exposure:
    """Return the failures and the up times (us) of nodes.

    Parameters
    ----------
    events : sequence of MachineEvent
        Events sorted by time. For each node, failures and repairs alternate, beginning with a
        failure: all nodes are up at time 0.
    n_nodes : int
        Size of the machine.
    until_us : int, optional
        End of the record. Default: its last event.
    """
    end_us = until_us if until_us is not None else (events[-1].at_us if events else 0)
    outages = outages_of(events)
    node, down_us, repaired_us = outages.at(outages.down_us <= end_us)
    up_us = np.full(n_nodes, end_us, dtype=np.int64)
    np.subtract.at(up_us, node, np.minimum(repaired_us, end_us) - down_us)
    failed = down_us > 0
    # a node is up for at least a microsecond before it fails
    up_us = np.maximum(up_us, np.bincount(node[failed], minlength=n_nodes))
    return Exposure(node[failed], down_us[failed], up_us, _ages(node, down_us, repaired_us)[failed])


def _ages(node: Ints, down_us: Ints, repaired_us: Ints) -> Ints:
    """Return the up time of the node before each outage.

    It is counted from time 0, without the time that the node was down.
    """
    order = np.lexsort((down_us, node))
    outage_us = np.where(repaired_us == FOREVER_US, 0, repaired_us - down_us)[order]
    total_us = np.cumsum(outage_us) - outage_us
    begins = np.flatnonzero(np.diff(node[order], prepend=-1))
    of_node = np.repeat(total_us[begins], np.diff(np.append(begins, len(node))))
    age_us = np.empty_like(down_us)
    age_us[order] = down_us[order] - (total_us - of_node)
    return age_us


def lemons(exposure: Exposure, significance: float = SIGNIFICANCE) -> list[Lemon]:
    """Return the nodes that fail significantly more often than the others, the worst first.

    All nodes are compared with the same renewal process (`repeated.chances`). Failures in bursts
    are not significant if they occur on every node. With Holm's correction, the probability of any
    false alarm is at most ``significance``. Then the up-times of the listed nodes are removed and
    the other nodes are tested again, until no node is added.
    """
    counts = exposure.counts
    if not counts.any():
        return []
    pool, p = np.ones(len(counts), dtype=np.bool_), np.ones(len(counts))
    while pool.any():
        lives = lives_of(exposure.node, exposure.age_us, exposure.up_us, pool)
        corrected = holm(chances(counts, exposure.up_us, lives))
        new = pool & (corrected <= significance) & (counts > 0)
        if not new.any():
            break
        p[new], pool = corrected[new], pool & ~new
    nodes = np.flatnonzero(~pool).tolist()
    return [
        Lemon(node, int(counts[node]), _factor(exposure, counts, node), float(p[node]))
        for node in sorted(nodes, key=lambda node: (p[node], -counts[node], node))
    ]


def _factor(exposure: Exposure, counts: Ints, node: int) -> float | None:
    others = int(counts.sum() - counts[node])
    others_us = int(exposure.up_us.sum() - exposure.up_us[node])
    rate = counts[node] / exposure.up_us[node]
    return float(rate / (others / others_us)) if others else None


def holm(p: Floats) -> Floats:
    """Return p-values with Holm's correction for multiple tests."""
    order = np.argsort(p, kind="stable")
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(corrected, 1.0)
    return result


def job_sizes(n_nodes: int) -> list[int]:
    """Return the job sizes 1, 8, 64 and so on below the machine's size, and the machine's size.

    >>> job_sizes(512), job_sizes(100)
    ([1, 8, 64, 512], [1, 8, 64, 100])
    """
    sizes = [1]
    while sizes[-1] * SIZE_STEP < n_nodes:
        sizes.append(sizes[-1] * SIZE_STEP)
    return sizes if n_nodes == 1 else [*sizes, n_nodes]


def mttf_by_size(exposure: Exposure, sizes: Sequence[int]) -> list[SizeMttf]:
    """Return the mean time to failure of jobs of each size.

    Jobs of k nodes occupy nodes 0 to k-1, k to 2k-1 and so on, until the machine is full. The MTTF
    is the total up time of these nodes, divided by k and by the number of failures of the jobs. A
    failure that hits several nodes of a job at the same time counts once for this job. Jobs are
    assumed to replace nodes that are down: an hour of up time of k nodes is one hour of a job.
    """
    _, times = np.unique(exposure.at_us, return_inverse=True)
    return [_mttf(exposure, times, size) for size in sizes]


def _mttf(exposure: Exposure, times: Ints, size: int) -> SizeMttf:
    jobs = len(exposure.up_us) // size
    inside = exposure.node < jobs * size
    hits = times[inside] * jobs + exposure.node[inside] // size
    failures = len(np.unique(hits))
    job_s = int(exposure.up_us[: jobs * size].sum()) / US_PER_S / size
    fewest, most = poisson_interval(failures)
    if not failures:
        return SizeMttf(size, jobs, 0, None, job_s / most, None)
    return SizeMttf(size, jobs, failures, job_s / failures, job_s / most, job_s / fewest)


def poisson_interval(count: int) -> tuple[float, float]:
    """Return Garwood's exact 95 % interval of the mean of a Poisson count."""
    from scipy.stats import chi2

    low = float(chi2.ppf(TAIL, 2 * count)) / 2 if count else 0.0
    return low, float(chi2.ppf(1 - TAIL, 2 * count + 2)) / 2
