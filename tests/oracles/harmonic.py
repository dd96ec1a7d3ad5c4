# SPDX-License-Identifier: Apache-2.0
"""The worst instance for shelves: Proposition 3 of RR-9296 (section 4.3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rebat.core.arrays import Floats, Ints
from rebat.core.errors import InputError
from rebat.models.silent_errors import areas

EXACT_UNIPROCESSORS = 40
"""Largest P whose instance of Proposition 3 has integer times that add up to less than 2**60."""


class HarmonicInstance(NamedTuple):
    """Proposition 3's instance: P uniprocessor jobs, ``t_j = P / j``, ``f_j = j - 1``.

    Attributes
    ----------
    times : int array, shape (P,)
        ``unit * P / j``, exactly.
    sizes, failures : int array, shape (P,)
    n_procs : int
    unit : int
        The integer time that stands for 1.
    """

    times: Ints
    sizes: Ints
    failures: Ints
    n_procs: int
    unit: int


def harmonic_instance(n_procs: int) -> HarmonicInstance:
    """Return the instance on which every shelf algorithm takes ``sum 1/j`` times the optimum.

    Times are multiplied by ``lcm(1..P) / P`` to become integers: the optimum ``t_1`` is the lcm.

    Raises
    ------
    InputError
        For P below 1 or above `EXACT_UNIPROCESSORS`.
    """
    if not 1 <= n_procs <= EXACT_UNIPROCESSORS:
        raise InputError(f"{n_procs} processors", expected=f"1 to {EXACT_UNIPROCESSORS}")
    whole = math.lcm(*range(1, n_procs + 1))
    order = np.arange(1, n_procs + 1)
    return HarmonicInstance(
        whole // order, np.ones(n_procs, np.int64), order - 1, n_procs, whole // n_procs
    )


def error_probabilities(times: ArrayLike, sizes: ArrayLike, rate: float) -> Floats:
    """Return the error probability of an attempt, ``q_j = 1 - exp(-lambda a_j)`` (Section 3.4)."""
    probabilities: Floats = -np.expm1(-rate * areas(times, sizes))
    return probabilities


def expected_harmonic_makespans(
    n_procs: int, rate: float, time_scale: float = 1.0
) -> tuple[float, float]:
    """Return expected makespans of R-SHELF and the optimum on Proposition 3's jobs (Section 4.3).

    This is the example of the open question: failures have the given rate instead of the f_j of the
    proposition, and times are ``time_scale * P / j``. For P = 10 the paper prints the ratios
    1.00005 at lambda = 1e-7 and 1.07 at 1e-3. A `time_scale` of 100 reproduces them (1.000055 and
    1.066); the paper does not state it.

    No simulation is needed: shelf k is as high as the longest job that failed k times, and the
    optimum lets each job run alone on a processor:

    - E[shelves] = sum over k >= 0 and j of ``t_j q_j^k prod_{i<j} (1 - q_i^k)``,
    - E[optimum] = integral over x of ``1 - prod_j (1 - q_j^floor(x / t_j))``.

    Returns
    -------
    tuple of float
        Both makespans, in the unit of `time_scale`. Their ratio is the paper's expected makespan
        ratio.
    """
    times = time_scale * n_procs / np.arange(1, n_procs + 1)
    q = error_probabilities(times, np.ones(n_procs), rate)
    worst = float(q.max())
    # Terms shrink at least as fast as worst**k: stop when they are below double precision.
    most = 1 if worst == 0 else math.ceil(60 / max(-math.log(worst), 1e-9)) + 1
    if most > 10**5:
        raise InputError(f"rate {rate}", expected="failure probabilities further from 1")
    failed = q[None, :] ** np.arange(most)[:, None]  # [k, j]: probability of k failures or more
    none_before = np.cumprod(np.hstack([np.ones((most, 1)), 1 - failed[:, :-1]]), axis=1)
    shelves = float((times * failed * none_before).sum())
    ends = np.unique(np.outer(np.arange(1, most + 1), times))
    ends = np.concatenate([[0.0], ends[ends <= times[0] * most]])
    middle = (ends[:-1] + ends[1:]) / 2  # floor(x / t_j) is constant between two ends
    late = 1 - np.prod(1 - q ** np.floor(middle[:, None] / times), axis=1)
    return shelves, float((late * np.diff(ends)).sum())
