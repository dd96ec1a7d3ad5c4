# SPDX-License-Identifier: Apache-2.0
"""A synthetic load for a machine that hands out boxes: made for comparisons, after no trace."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.streams import stream
from rebat.core.units import US_PER_S
from rebat.workloads.build import delay_workload

Floats = npt.NDArray[np.float64]

RUN_S = (600.0, 172_800.0)
"""Run times are log-uniform from 10 min to 48 h, the longest of Vardas et al. 2022 but one."""

WALLTIME_FACTOR = (1.1, 2.0)
"""Walltime / run time is uniform between these."""

SMALLEST = 256
"""The smallest jobs are of the nodes by this (8x8x8x8: 16)."""

SIZE_EXPONENT = -0.5
"""The weight of a size is its power: each is 1.41 times as frequent as the next larger one, and
takes 1.41 times less of the machine."""

_TOLERANCE = 1e-9
_STEPS = 200


class TorusLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for: the load in percent of a machine's nodes over some days.

    ``largest`` is the size of the largest jobs (0: half of the nodes).
    """

    load: float = 80.0
    nodes: int = 4096
    days: float = 30.0
    largest: int = 0

    def __post_init__(self) -> None:
        for name, value, most in (("load", self.load, 1000), ("days", self.days, 36_500)):
            if not 0 < value <= most:
                raise InputError(f"is {value:g}", name, f"above 0, up to {most}")
        if not 2 <= self.nodes <= 2**24 or self.nodes & (self.nodes - 1):
            raise InputError(f"is {self.nodes}", "nodes", "a power of two, 2 to 2**24")
        if not 0 <= self.largest <= self.nodes or self.largest & (self.largest - 1):
            expected = f"a power of two up to {self.nodes}, or 0: half the nodes"
            raise InputError(f"is {self.largest}", "largest", expected)


def torus_load(seed: int, asked: TorusLoad | None = None) -> Workload:
    """Jobs of powers of two of the nodes that arrive at random and offer a load.

    Sizes have the weights of ``SIZE_EXPONENT``, run times are log-uniform over ``RUN_S``, walltimes
    longer by ``WALLTIME_FACTOR``. Arrivals are those of a Poisson process over the days, given
    their number: the load over the mean of a job. The load is met exactly (to 1e-6, run times being
    whole seconds) by raising the uniform numbers behind the run times to one power.

    Parameters
    ----------
    seed : int
        Same seed, same workload.
    asked : TorusLoad, optional

    Raises
    ------
    InputError
        For so little of a load that it makes no 20 jobs.
    """
    asked = asked or TorusLoad()
    length_s = asked.days * 86_400
    target = asked.load / 100 * asked.nodes * length_s
    sizes, weights = _sizes(asked)
    n_jobs = round(target / (float(sizes @ weights) * _mean_run_s()))
    if n_jobs < 20:
        raise InputError(f"{n_jobs} jobs make this load", expected="20 at least: more days")

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", "torus-load", purpose)

    size = rng("sizes").choice(sizes, size=n_jobs, p=weights)
    run_s = _run_times(rng("run times").random(n_jobs), size, target)
    factor = rng("walltimes").uniform(*WALLTIME_FACTOR, n_jobs)
    submit_s = np.sort(rng("arrivals").random(n_jobs)) * length_s
    note = (
        f"synthetic load of {asked.load:g} % of {asked.nodes} nodes over {asked.days:g} days, "
        f"seed {seed}"
    )
    return delay_workload(
        f"torus-load-{asked.load:g}-{seed}",
        asked.nodes,
        ids=[str(number) for number in range(1, n_jobs + 1)],
        sizes=size.tolist(),
        submit_us=np.rint(submit_s * US_PER_S).astype(np.int64).tolist(),
        walltime_us=(np.ceil(run_s * factor).astype(np.int64) * US_PER_S).tolist(),
        run_us=(run_s.astype(np.int64) * US_PER_S).tolist(),
        notes=[note],
    )


def _sizes(asked: TorusLoad) -> tuple[npt.NDArray[np.int64], Floats]:
    """Sizes and their probabilities."""
    largest = asked.largest or asked.nodes // 2
    smallest = min(max(asked.nodes // SMALLEST, 1), largest)
    sizes = 1 << np.arange(smallest.bit_length() - 1, largest.bit_length())
    weights = sizes**SIZE_EXPONENT
    return sizes, weights / weights.sum()


def _mean_run_s() -> float:
    low, high = RUN_S
    return (high - low) / float(np.log(high / low))


def _run_times(uniform: Floats, size: npt.NDArray[np.int64], target: float) -> Floats:
    """Whole seconds that make the work; the power of the uniform numbers is found by bisection."""
    low_s, high_s = RUN_S
    low, high = 1e-6, 1e6  # the larger the power, the shorter the run times
    for _ in range(_STEPS):
        power = float(np.sqrt(low * high))
        run_s = low_s * (high_s / low_s) ** (uniform**power)
        work = float(size @ run_s)
        low, high = (power, high) if work > target else (low, power)
        if abs(work - target) <= _TOLERANCE * target:
            break
    return np.rint(run_s)
