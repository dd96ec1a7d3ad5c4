# SPDX-License-Identifier: Apache-2.0
"""Effective training time ratio (ETTR) of one job, in closed form. All times are in seconds.

ETTR is productive time / available time. The job alternates work and checkpoints. Failures of its
nodes arrive at the rate ``lambda``. The detection of a failure takes the time D. The job then loads
its last checkpoint, which takes the time L. Failures can hit the job while it works, writes or
loads. They have no effect during the detection, because the job is not running.

Sources: the renewal argument of Daly, "A higher order estimate of the optimum checkpoint interval
for restart dumps", FGCS 2006, without failures during D; Young, CACM 1974; Kokolis et al.,
"Revisiting Reliability in Large-Scale Machine Learning Research Clusters", HPCA 2025 (`rsc_ettr`).
"""

from __future__ import annotations

import math

import msgspec

from rebat.core.errors import InputError
from rebat.core.units import MAX_SECONDS

DAY_S = 86_400.0


class TrainingJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that occupies its nodes and writes checkpoints at regular intervals.

    Attributes
    ----------
    mtbf_s : float
        Mean time between failures of the job, above 0: 1 / lambda.
    interval_s : float
        Work between two checkpoints, above 0 (Delta).
    write_s : float
        Time for which a checkpoint blocks the job (w).
    detect_s : float
        Time from a failure until the job restarts (D). During this time, further failures have no
        effect.
    load_s : float
        Time to initialise and to load a checkpoint (L). After a failure during this time, the load
        begins again.
    """

    mtbf_s: float
    interval_s: float
    write_s: float = 0.0
    detect_s: float = 0.0
    load_s: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, positive = getattr(self, name), name in ("mtbf_s", "interval_s")
            if not 0 <= value <= MAX_SECONDS or (positive and value == 0):
                expected = "seconds above 0" if positive else "seconds, 0 or more"
                raise InputError(f"is {value:g} s", name.removesuffix("_s"), expected)

    @property
    def rate(self) -> float:
        """Failures per second (lambda)."""
        return 1 / self.mtbf_s


def failure_rate(n_nodes: int, rate: float) -> float:
    """Return the failures per second of a job. ``rate`` is in failures per 1,000 node-days.

    >>> round(1 / failure_rate(2048, 6.5) / 3600, 6)
    1.802885
    """
    return n_nodes * rate / (1000 * DAY_S)


def ettr(job: TrainingJob) -> float:
    """Return the exact ETTR of a job.

    It is lambda Delta / [e^(lambda L) (1 + lambda D) (e^(lambda (Delta + w)) - 1)].

    >>> job = TrainingJob(mtbf_s=6490.386, interval_s=1800, detect_s=300, load_s=300)
    >>> round(ettr(job), 6)
    0.791934
    """
    rate, exponent = job.rate, job.rate * (job.interval_s + job.write_s)
    if exponent + rate * job.load_s > _MAX_EXPONENT:
        return 0.0
    lost = math.exp(rate * job.load_s) * (1 + rate * job.detect_s)
    return rate * job.interval_s / (lost * math.expm1(exponent))


_MAX_EXPONENT = 700.0
"""Largest exponent: exp() of a larger number overflows. The ETTR is then 0 in double precision."""


def ettr_safe_load(job: TrainingJob) -> float:
    """Return the exact ETTR if failures cannot strike while a checkpoint is loaded."""
    detect_s = job.detect_s + job.load_s
    return ettr(msgspec.structs.replace(job, detect_s=detect_s, load_s=0.0))


def rework_s(job: TrainingJob) -> float:
    """Return the mean work lost to a failure.

    It is 1 / lambda - (Delta + w) / (e^(lambda (Delta + w)) - 1).
    """
    period_s = job.interval_s + job.write_s
    exponent = period_s / job.mtbf_s
    if exponent > _MAX_EXPONENT:
        return job.mtbf_s
    if exponent < _MIN_EXPONENT:
        return period_s / 2
    return job.mtbf_s - period_s / math.expm1(exponent)


_MIN_EXPONENT = 1e-7
"""Smallest value for which the formula of `rework_s` is accurate. Below it, the limit is used: half
a period.
"""


def rsc_ettr(job: TrainingJob) -> float:
    """Return the first-order ETTR of Kokolis et al.

    It is (1 - lambda (u0 + Delta / 2)) / (1 + w / Delta), where u0 is the time of detection plus
    loading. If the result is negative, the formula does not apply, and 0 is returned.
    """
    start_s = job.detect_s + job.load_s
    left = 1 - job.rate * (start_s + job.interval_s / 2)
    return max(0.0, left) / (1 + job.write_s / job.interval_s)


# ---- the best interval


def young_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return Young's interval sqrt(2 w M), for the write time w and the MTBF M."""
    return math.sqrt(2 * write_s * mtbf_s)


def daly_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return Daly's higher-order optimum (equation 37 of the FGCS paper).

    If w >= 2 M, the optimum is M.
    """
    if write_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = math.sqrt(write_s / (2 * mtbf_s))
    return young_interval_s(mtbf_s, write_s) * (1 + ratio / 3 + ratio**2 / 9) - write_s


def best_interval_s(mtbf_s: float, write_s: float) -> float:
    """Return the exact optimum M (1 + W0(-e^(-w/M - 1))). If checkpoints cost nothing, it is 0.

    >>> round(best_interval_s(6491.88, 60) / 60, 4)
    14.0514
    """
    from scipy.special import lambertw

    if write_s == 0:
        return 0.0
    return mtbf_s * (1 + float(lambertw(-math.exp(-write_s / mtbf_s - 1)).real))


# ---- spare nodes


def spare_nodes(mean_in_repair: float, quantile: float = 0.99) -> int:
    """Return the number of spare nodes that suffices with probability ``quantile``.

    The number of nodes in repair has a Poisson distribution for any distribution of the repair time
    (M/G/infinity). Its mean is failures per second x mean repair time.

    >>> spare_nodes(2048 * 3.79 / 1000), spare_nodes(2048 * 3.79 / 1000 / 6)
    (15, 5)
    """
    from scipy.stats import poisson

    return int(poisson.ppf(quantile, mean_in_repair))


def enough_spares(mean_in_repair: float, n_spares: int) -> float:
    """Return the probability that at most ``n_spares`` nodes are in repair."""
    from scipy.stats import poisson

    return float(poisson.cdf(n_spares, mean_in_repair))
