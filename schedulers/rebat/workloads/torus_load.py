# SPDX-License-Identifier: Apache-2.0
"""A synthetic load for comparisons on a machine that allocates boxes.

It is not based on a trace.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.durations import stream
from rebat.core.errors import InputError
from rebat.core.jobs import Workload, rounded_us
from rebat.core.units import US_PER_S
from rebat.workloads.build import delay_workload

RUN_S = (600.0, 172_800.0)
"""Range of the log-uniform run times: 10 min to 48 h (second longest in Vardas et al. 2022)."""

WALLTIME_FACTOR = (1.1, 2.0)
"""Range of the ratio walltime / run time, which is uniform."""

SMALLEST = 256
"""The smallest size is the number of nodes divided by this value (16 nodes on 8x8x8x8)."""

SIZE_EXPONENT = -0.5
"""Exponent of the frequency of sizes: the weight of a size is size**SIZE_EXPONENT. Each size is
1.41 times as frequent as the next larger size. All jobs of the larger size together use 1.41 times
as much node time.
"""

_TOLERANCE = 1e-9
_STEPS = 200


class TorusLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the workload."""

    load: float = 80.0
    """Load in percent of the nodes."""
    nodes: int = 4096
    days: float = 30.0
    largest: int = 0
    """Size of the largest jobs. 0: half of the nodes."""

    def __post_init__(self) -> None:
        for name, value, most in (("load", self.load, 1000), ("days", self.days, 36_500)):
            if not 0 < value <= most:
                raise InputError(f"is {value:g}", name, f"above 0, up to {most}")
        if not 2 <= self.nodes <= 2**24 or self.nodes & (self.nodes - 1):
            raise InputError(f"is {self.nodes}", "nodes", "a power of two, 2 to 2**24")
        if not 0 <= self.largest <= self.nodes or self.largest & (self.largest - 1):
            expected = f"a power of two up to {self.nodes}, or 0 for half the nodes"
            raise InputError(f"is {self.largest}", "largest", expected)


def torus_load(seed: int, options: TorusLoad | None = None) -> Workload:
    """Return jobs with sizes of powers of two, random arrivals and a given load.

    ``SIZE_EXPONENT`` defines the weights of the sizes. Run times are log-uniform over ``RUN_S``, in
    whole seconds. Walltimes are run times multiplied by ``WALLTIME_FACTOR``. The number of jobs is
    the requested node time divided by the mean area (nodes x run time) of a job. Arrivals are
    uniform over the days. To match the load to 1e-6, the uniform random numbers of the run times
    are raised to a common power.

    Parameters
    ----------
    seed : int
        The same seed yields the same workload.
    """
    options = options or TorusLoad()
    length_s = options.days * 86_400
    target = options.load / 100 * options.nodes * length_s
    sizes, weights = _sizes(options)
    n_jobs = round(target / (float(sizes @ weights) * _mean_run_s()))
    if n_jobs < 20:
        raise InputError(
            f"load {options.load:g} needs only {n_jobs} jobs",
            expected="at least 20 jobs: use more days",
        )

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", "torus-load", purpose)

    size = rng("sizes").choice(sizes, size=n_jobs, p=weights)
    run_s = _run_times(rng("run times").random(n_jobs), size, target)
    factor = rng("walltimes").uniform(*WALLTIME_FACTOR, n_jobs)
    submit_s = np.sort(rng("arrivals").random(n_jobs)) * length_s
    note = (
        f"synthetic load of {options.load:g} % of {options.nodes} nodes "
        f"over {options.days:g} days, seed {seed}"
    )
    return delay_workload(
        f"torus-load-{options.load:g}-{seed}",
        options.nodes,
        ids=[str(number) for number in range(1, n_jobs + 1)],
        sizes=size,
        submit_us=rounded_us(submit_s),
        walltime_us=np.ceil(run_s * factor).astype(np.int64) * US_PER_S,
        run_us=run_s.astype(np.int64) * US_PER_S,
        notes=[note],
    )


def _sizes(options: TorusLoad) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the sizes and their probabilities."""
    largest = options.largest or options.nodes // 2
    smallest = min(max(options.nodes // SMALLEST, 1), largest)
    sizes = 1 << np.arange(smallest.bit_length() - 1, largest.bit_length())
    weights = sizes**SIZE_EXPONENT
    return sizes, weights / weights.sum()


def _mean_run_s() -> float:
    low, high = RUN_S
    return (high - low) / float(np.log(high / low))


def _run_times(uniform: Floats, size: npt.NDArray[np.int64], target: float) -> Floats:
    """Return run times in whole seconds that add up to the target work.

    The power is found by bisection.
    """
    low_s, high_s = RUN_S
    low, high = 1e-6, 1e6  # a larger power results in shorter run times
    for _ in range(_STEPS):
        power = float(np.sqrt(low * high))
        run_s = low_s * (high_s / low_s) ** (uniform**power)
        work = float(size @ run_s)
        low, high = (power, high) if work > target else (low, power)
        if abs(work - target) <= _TOLERANCE * target:
            break
    return np.rint(run_s)
