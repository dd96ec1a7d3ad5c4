# SPDX-License-Identifier: Apache-2.0
"""Statistics of a failure record: rates, groups, trends, lifetimes and repairs.

Sources: Holm's correction (Scandinavian Journal of Statistics 6, 1979), Garwood's interval of a
Poisson mean (Biometrika 28, 1936), Laplace's test for a trend of a Poisson process (Cox and Lewis,
"The Statistical Analysis of Series of Events", 1966, section 3.3).

Families of distributions are compared by Akaike's criterion (AIC: twice the number of parameters
minus twice the log-likelihood). The family with the smallest AIC fits best of all families, but it
does not necessarily fit well.

A lemon is a node that fails more often than chance explains, even if the failures of each node come
in bursts. A *life* is the up time of a node until a failure or the end of the record. All nodes are
compared with the same renewal process: a first life, then lives that begin after a failure. Both
distributions are estimated from the record by the product limit of Kaplan and Meier (JASA 53,
1958). If the failures of a node come in bursts, its lives after a failure are short. Many failures
of one node are then less surprising than under a Poisson process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.units import FOREVER_US, US_PER_S, to_s, to_us
from rebat.models.ettr import DAY_S
from rebat.models.failures.events import MachineEvent, check_alternation
from rebat.models.failures.fitting import Parameters, UpTimes, likeliest, log_likelihood, up_times
from rebat.models.failures.outages import outages_of
from rebat.models.failures.per_node import FAMILIES, ExponentialNodes, Floats

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


def _end_us(events: Sequence[MachineEvent], until_us: int | None) -> int:
    """Return the end of a record (default: its last event)."""
    if until_us is not None:
        return until_us
    return events[-1].at_us if events else 0


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
    end_us = _end_us(events, until_us)
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

    All nodes are compared with the same renewal process (`chances`). Failures in bursts
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


FEWEST = 3
"""Minimum number of completed times for a fit."""


class Sample(NamedTuple):
    """Times of one kind in seconds: completed, or still running at the end of the record."""

    name: str
    times: UpTimes


class Fitted(NamedTuple):
    """The maximum-likelihood law of a family for a sample; times are in seconds."""

    family: str
    parameters: Parameters
    mean_s: float
    log_likelihood: float
    aic: float

    def survival(self, times_s: Floats) -> Floats:
        """Return the share of times that are longer than each of ``times_s``."""
        scale_s, shape = (np.array([value]) for value in self.parameters)
        shares: Floats = np.exp(FAMILIES[self.family](scale_s, shape).log_survival(times_s))
        return shares


def samples(
    events: Sequence[MachineEvent], n_nodes: int, until_us: int | None = None
) -> list[Sample]:
    """Return the three samples of a record.

    *Between failures of the machine* contains the times between failures. Nodes that fail at the
    same time, such as a rack, count as one failure. *Lives of nodes* contains the times from time 0
    or a repair to the next failure. Lives that do not end with a failure are censored. *Repairs*
    contains the durations of repairs. Nodes that fail and return at the same times count once. An
    outage at time 0 is left out of all samples, because its beginning is unknown.

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
    end_us = _end_us(events, until_us)
    recorded = [event for event in events if event.at_us <= end_us]
    times_us = np.unique([event.at_us for event in recorded if not event.available and event.at_us])
    gaps = UpTimes(np.diff(times_us) / US_PER_S, np.empty(0))
    node_times, _ = up_times(recorded, n_nodes, end_us)
    lives = UpTimes(*(np.concatenate(column) for column in zip(*node_times, strict=True)))
    return [
        Sample("between failures of the machine", gaps),
        Sample("lives of nodes", lives),
        Sample("repairs", _repairs(recorded, end_us)),
    ]


def _repairs(events: Sequence[MachineEvent], end_us: int) -> UpTimes:
    _, down_us, up_us = outages_of(events)
    pairs = np.unique(np.stack([down_us, up_us], axis=1)[down_us > 0], axis=0)
    ended = pairs[:, 1] < FOREVER_US
    open_us = end_us - pairs[~ended, 0]
    return UpTimes(np.diff(pairs[ended])[:, 0] / US_PER_S, open_us[open_us > 0] / US_PER_S)


def fits(times: UpTimes, on_fit: Callable[[], None] = lambda: None) -> list[Fitted]:
    """Return the laws of all families that can be fitted, the lowest AIC first."""
    laws = [] if len(times.failed_s) < FEWEST else list(_fits(times, on_fit))
    return sorted(laws, key=lambda fit: (fit.aic, fit.family))


def _fits(times: UpTimes, on_fit: Callable[[], None]) -> Iterator[Fitted]:
    for family, kind in FAMILIES.items():
        parameters = likeliest(kind, times)
        on_fit()
        if parameters is not None:
            scale_s, shape = (np.array([value]) for value in parameters)
            likelihood = log_likelihood(kind, parameters, times)
            free = 1 if kind is ExponentialNodes else 2
            mean_s = float(kind(scale_s, shape).mean_s()[0])
            yield Fitted(family, parameters, mean_s, likelihood, 2 * (free - likelihood))


def empirical(times: UpTimes) -> tuple[Floats, Floats]:
    """Return times (s), and for each of them the share of longer times (Kaplan-Meier)."""
    from scipy.stats import CensoredData, ecdf

    curve = ecdf(CensoredData(uncensored=times.failed_s, right=times.going_s)).sf
    return curve.quantiles, curve.probabilities


def describe_events(
    events: Sequence[MachineEvent],
    n_nodes: int,
    window_s: tuple[float, float] | None = None,
    n_busiest: int = 5,
) -> dict[str, Any]:
    """Return a summary of a failure scenario.

    Parameters
    ----------
    events : sequence of MachineEvent
        Events sorted by time. For each node, failures and repairs alternate.
    n_nodes : int
        Size of the machine.
    window_s : (float, float), optional
        Start and end of the window in seconds. Down intervals are clipped to it. Default: from 0 to
        the last event.
    n_busiest : int
        Number of nodes in the list of the nodes that fail most often.

    Returns
    -------
    dict
        ``failures``: number of failures of single nodes in the window.
        ``dates``: number of different failure times.
        ``mtbf_s``: MTBF of the machine, window / dates.
        ``node_mtbf_s``: window / failures.
        ``mean_downtime_s``: mean over the failures in the window that are repaired.
        ``downtime_share``: down node-seconds, divided by all node-seconds of the window.
        ``nodes_hit``: number of nodes that fail.
        ``busiest_nodes``: pairs of node and number of failures.
        ``window_s``: start and end of the window.
    """
    check_alternation(events, n_nodes)
    end_us = events[-1].at_us if events else 0
    low, high = (to_us(window_s[0]), to_us(window_s[1])) if window_s else (0, end_us)
    intervals = outages_of(events).rows()
    last = high - 1 if window_s else high  # only the default window includes its end
    failures = [(node, a, b) for node, a, b in intervals if low <= a <= last]
    repaired = [b - a for _, a, b in failures if b < FOREVER_US]
    down_us = sum(max(0, min(b, high) - max(a, low)) for _, a, b in intervals)
    counts = Counter(node for node, _, _ in failures)
    dates = len({a for _, a, _ in failures})
    return {
        "failures": len(failures),
        "dates": dates,
        "mtbf_s": to_s(high - low) / dates if failures else None,
        "node_mtbf_s": to_s(high - low) / len(failures) if failures else None,
        "mean_downtime_s": to_s(sum(repaired)) / len(repaired) if repaired else None,
        "downtime_share": down_us / (n_nodes * (high - low)) if high > low else 0.0,
        "nodes_hit": len(counts),
        "busiest_nodes": sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:n_busiest],
        "window_s": (to_s(low), to_s(high)),
    }


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
