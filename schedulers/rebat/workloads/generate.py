# SPDX-License-Identifier: Apache-2.0
"""Generators of workloads, which need no traces.

The workloads follow Du et al. 2024 (node stealing), Prabhakaran et al. 2018 (rigid, moldable and
malleable jobs) and Rodríguez-Pascual et al. 2019 (a day of a small cluster). One more generator
creates a load for a torus.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np

from rebat.core.arrays import Ints
from rebat.core.declared import name_and_values
from rebat.core.durations import stream
from rebat.core.errors import InputError, unknown_name
from rebat.core.jobs import Workload, rounded_us
from rebat.core.units import US_PER_S
from rebat.workloads import arrivals, month_model, published
from rebat.workloads.build import delay_workload
from rebat.workloads.cluster_day import ClusterDay, cluster_day
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load
from rebat.workloads.published import PUBLISHED_MONTHS
from rebat.workloads.torus_load import TorusLoad, torus_load
from rebat.workloads.training_cluster import TrainingCluster, training_cluster


def synthetic(seed: int, n_jobs: int = 1000) -> Workload:
    """Return the synthetic workload of section 6.3 and Table 6 of Du et al. 2024.

    The machine has 128 nodes. Sizes follow Table 6 in random order. Run times are uniform from 1 to
    119 min. Walltimes are the run times multiplied by U[1, 5]. Arrivals are a Poisson process with
    a mean gap of 174 s.

    Parameters
    ----------
    seed : int
        The same seed yields the same workload.
    n_jobs : int
        Number of jobs (1000 in the paper). For other numbers, Table 6 is scaled and rounded by
        largest remainders.
    """
    if n_jobs < 1:
        raise InputError(f"number of jobs is {n_jobs}", expected="at least 1")
    rng = stream(seed, "workload", "synthetic")
    sizes = rng.permutation(np.repeat(list(published.SYNTHETIC_COUNTS), _scaled_counts(n_jobs)))
    run_us = rounded_us(rng.uniform(*published.SYNTHETIC_RUN_S, n_jobs))
    alpha = rng.uniform(*published.SYNTHETIC_ALPHA, n_jobs)
    # the factor may be 1, but Batsim kills a job whose run time equals its walltime
    walltime_us = np.maximum(rounded_us(run_us / US_PER_S * alpha), run_us + 1)
    submit_us = rounded_us(np.cumsum(rng.exponential(published.SYNTHETIC_INTERARRIVAL_S, n_jobs)))
    note = f"synthetic workload of Du et al. 2024, section 6.3 and Table 6, seed {seed}"
    name = f"synthetic-{seed}"
    return _assemble(
        name,
        published.SYNTHETIC_NODES,
        note,
        sizes=sizes,
        submit_us=submit_us,
        walltime_us=walltime_us,
        run_us=run_us,
    )


def _walltimes(
    how: str, sizes: Ints, run_s: Ints, of: Ints, rng: Callable[[str], np.random.Generator]
) -> Ints:
    if how == "uniform":
        return month_model.walltimes(run_s, rng("walltimes"))
    if how == "exact":
        return month_model.requested(run_s, np.ones(len(sizes)))
    return month_model.requested(run_s, arrivals.accuracies(sizes, of, rng("accuracy")))


class MonthOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a generated month.

    Attributes
    ----------
    order : {'random', 'sessions'}
        Order of the jobs: random, or in sessions of similar jobs as on Mira in 2018.
    walltimes : {'uniform', 'mira', 'exact'}
        Ratio of run time to walltime. It is uniform from 0.1 to 1 (uniform), as for jobs of the
        same size on Mira in 2018 (mira), or 1 (exact). Walltimes are multiples of 5 min. All jobs
        of a session have the same quantile of the ratio.
    """

    order: Literal["random", "sessions"] = "random"
    walltimes: Literal["uniform", "mira", "exact"] = "uniform"


def mira_like(month: str, seed: int, options: MonthOptions | None = None) -> Workload:
    """Return a workload with the published numbers of a month of Mira or Intrepid.

    Data of Du et al. 2024:

    - The number of jobs per size interval is exact (Table 2).
    - Minimum, maximum and median run time are exact to the second, the mean to 1/n s (Table 3).
    - The stress is exact to 1e-6. Jobs that request the entire machine are reduced to
      ``PublishedMonth.cap`` nodes, as in section 5.2.

    Assumptions:

    - Sizes within an interval are Blue Gene partitions (``PARTITION_WEIGHTS``).
    - Run times are log-uniform below the median. Above the median, they follow a truncated Pareto
      law. Its exponent is chosen to match the mean.
    - Larger jobs run longer. The strength of the rank correlation of size and run time is chosen to
      match the stress, by bisection and then by swaps of run times.
    - Arrivals follow a daily and a weekly cycle over the month (``month_model.cycle``).
    - A walltime is the run time / U[0.1, 1], rounded up to 5 min, and always above the run time.
    - The order of jobs is random. Alternatives in `MonthOptions` are sessions of similar jobs, and
      walltimes as on Mira in 2018.

    Parameters
    ----------
    month : str
        A key of ``PUBLISHED_MONTHS``: june-2017, march-2018 or intrepid-june-2013.
    seed : int
        The same month, seed and options yield the same workload.
    """
    options = options or MonthOptions()
    if month not in PUBLISHED_MONTHS:
        raise unknown_name("month", month, PUBLISHED_MONTHS)
    data = PUBLISHED_MONTHS[month]

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", month, purpose)

    sizes = month_model.sizes(data, rng("sizes"))
    run_s = month_model.coupled(data, sizes, month_model.run_times(data, rng("run times")), rng)
    users = arrivals.apart(len(sizes))
    if options.order == "sessions":
        users = arrivals.drawn(sizes, run_s, rng("sessions"))
    sizes, run_s = sizes[users.order], run_s[users.order]
    submit_us = rounded_us(month_model.bursts(data, users.continues, rng("arrivals")))
    walltime_s = _walltimes(options.walltimes, sizes, run_s, users.of, rng)
    note = (
        f"generated to the published numbers of {data.machine}, {data.year}-{data.month:02d} "
        f"(Du et al. 2024, Tables 2 and 3, section 5.2), seed {seed}; not the real trace"
    )
    if options != MonthOptions():
        note += f"; order {options.order}, walltimes {options.walltimes}"
    return _assemble(
        f"{month}-{seed}",
        data.n_nodes,
        note,
        sizes=sizes,
        submit_us=submit_us,
        walltime_us=walltime_s * US_PER_S,
        run_us=run_s * US_PER_S,
    )


OPTIONS: dict[str, tuple[type[msgspec.Struct], Callable[[int, Any], Workload]]] = {
    "synthetic": (msgspec.Struct, lambda seed, options: synthetic(seed)),
    "torus-load": (TorusLoad, torus_load),
    "cirne-berman": (FlexibleLoad, flexible_load),
    "cluster-day": (ClusterDay, cluster_day),
    "training-cluster": (TrainingCluster, training_cluster),
    **{month: (MonthOptions, partial(mira_like, month)) for month in PUBLISHED_MONTHS},
}
"""Generators (``torus-load:load=95,days=30``): options and function, by name."""

NAMES = tuple(OPTIONS)


def generator(text: str) -> Callable[[int], Workload]:
    """Return the generator that a text describes: a name, followed by options.

    >>> generator("torus-load:load=60,days=2")(0).n_nodes
    4096
    """
    name, values = name_and_values(text)
    if name not in OPTIONS:
        raise unknown_name("generator", name, OPTIONS)
    kind, make = OPTIONS[name]
    for key in values:
        if not kind.__struct_fields__:
            others = ", ".join(each for each in OPTIONS if OPTIONS[each][0].__struct_fields__)
            expected = f"{name} without options; generators with options: {others}"
            raise InputError(f"unknown option of {name} {key!r}", expected=expected)
        if key not in kind.__struct_fields__:
            raise unknown_name(f"option of {name}", key, kind.__struct_fields__)
    try:
        options = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{text!r}: {error}", expected="valid values") from None
    return lambda seed: make(seed, options)


def _assemble(
    name: str,
    n_nodes: int,
    note: str,
    *,
    sizes: Ints,
    submit_us: Ints,
    walltime_us: Ints,
    run_us: Ints,
) -> Workload:
    return delay_workload(
        name,
        n_nodes,
        ids=[str(number) for number in range(1, len(sizes) + 1)],
        sizes=sizes,
        submit_us=submit_us,
        walltime_us=walltime_us,
        run_us=run_us,
        notes=[note],
    )


def _scaled_counts(n_jobs: int) -> Ints:
    """Return Table 6, scaled to another number of jobs, and rounded by largest remainders."""
    shares = np.array(list(published.SYNTHETIC_COUNTS.values())) * (n_jobs / 1000)
    counts = np.floor(shares + 1e-9).astype(np.int64)
    by_remainder = np.argsort(counts - shares, kind="stable")
    counts[by_remainder[: n_jobs - counts.sum()]] += 1
    return counts
