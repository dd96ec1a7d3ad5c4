# SPDX-License-Identifier: Apache-2.0
"""Generators of workloads, where no trace is at hand: after Du et al. 2024 (node stealing), a load
for a torus, rigid, moldable and malleable jobs after Prabhakaran et al. 2018, and a day of a small
cluster after Rodríguez-Pascual et al. 2019."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, unknown_name
from rebat.core.jobs import Workload
from rebat.core.streams import stream
from rebat.core.units import US_PER_S
from rebat.workloads import month_model, published
from rebat.workloads.build import delay_workload
from rebat.workloads.cluster_day import ClusterDay, cluster_day
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load
from rebat.workloads.published import PUBLISHED_MONTHS
from rebat.workloads.torus_load import TorusLoad, torus_load

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def synthetic(seed: int, n_jobs: int = 1000) -> Workload:
    """The synthetic workload of section 6.3 and Table 6.

    128 nodes; sizes by Table 6 in random order, run times uniform from 1 to 119 min, walltime =
    run time x U[1, 5], Poisson arrivals of mean distance 174 s.

    Parameters
    ----------
    seed : int
        Same seed, same workload.
    n_jobs : int
        The paper has 1000; other numbers scale Table 6, rounded to the largest remainders.

    Raises
    ------
    InputError
        For fewer than one job.
    """
    if n_jobs < 1:
        raise InputError(f"number of jobs is {n_jobs}", expected="at least 1")
    rng = stream(seed, "workload", "synthetic")
    sizes = rng.permutation(np.repeat(list(published.SYNTHETIC_COUNTS), _scaled_counts(n_jobs)))
    run_us = _micro(rng.uniform(*published.SYNTHETIC_RUN_S, n_jobs))
    alpha = rng.uniform(*published.SYNTHETIC_ALPHA, n_jobs)
    # alpha may come out as 1, and Batsim kills a job whose run time equals its walltime
    walltime_us = np.maximum(_micro(run_us / US_PER_S * alpha), run_us + 1)
    submit_us = _micro(np.cumsum(rng.exponential(published.SYNTHETIC_INTERARRIVAL_S, n_jobs)))
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


def mira_like(month: str, seed: int) -> Workload:
    """A workload with every published number of a month of Mira or Intrepid.

    Data (Du et al. 2024): the number of jobs per size interval (Table 2), exactly; minimum,
    maximum, mean and median run time (Table 3), exactly to the second (the mean to 1/n s); the
    stress (section 5.2) to 1e-6, with the jobs of the whole machine cut as the authors cut them.

    Assumptions, as the paper tells no more: sizes within an interval are Blue Gene partitions
    (``PARTITION_WEIGHTS``); run times are log-uniform below the median and a truncated Pareto
    above it, whose exponent gives the mean; larger jobs run longer, by as much as gives the stress
    (rank coupling, found by bisection, then swaps); arrivals follow a daily and a weekly cycle
    (``month_model.cycle``) over the whole month; walltime = run time / U[0.1, 1],
    up to multiples of 5 min, always above the run time.

    Parameters
    ----------
    month : str
        A key of ``PUBLISHED_MONTHS``: june-2017, march-2018 or intrepid-june-2013.
    seed : int
        Same month and seed, same workload.

    Raises
    ------
    InputError
        For an unknown month.
    """
    if month not in PUBLISHED_MONTHS:
        raise unknown_name("month", month, PUBLISHED_MONTHS)
    data = PUBLISHED_MONTHS[month]

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", month, purpose)

    sizes = month_model.sizes(data, rng("sizes"))
    run_s = month_model.coupled(data, sizes, month_model.run_times(data, rng("run times")), rng)
    submit_us = _micro(month_model.arrivals(data, rng("arrivals")))
    walltime_s = month_model.walltimes(run_s, rng("walltimes"))
    note = (
        f"generated to the published numbers of {data.machine}, {data.year}-{data.month:02d} "
        f"(Du et al. 2024, Tables 2 and 3, section 5.2), seed {seed}; not the real trace"
    )
    return _assemble(
        f"{month}-{seed}",
        data.n_nodes,
        note,
        sizes=sizes,
        submit_us=submit_us,
        walltime_us=walltime_s * US_PER_S,
        run_us=run_s * US_PER_S,
    )


GENERATORS: dict[str, Callable[[int], Workload]] = {
    "synthetic": synthetic,
    **{month: partial(mira_like, month) for month in PUBLISHED_MONTHS},
}
"""Every generated workload without options, by name; each takes a seed."""

OPTIONS: dict[str, tuple[type[msgspec.Struct], Callable[[int, Any], Workload]]] = {
    "torus-load": (TorusLoad, torus_load),
    "cirne-berman": (FlexibleLoad, flexible_load),
    "cluster-day": (ClusterDay, cluster_day),
}
"""Generators with options, ``torus-load:load=95,nodes=4096,days=30``: what they take, and they."""

NAMES = (*GENERATORS, *OPTIONS)


def generator(text: str) -> Callable[[int], Workload]:
    """The generator of a name, with the options that follow it.

    >>> generator("torus-load:load=60,days=2")(0).n_nodes
    4096

    Raises
    ------
    InputError
        For an unknown name or option, and a value that cannot be.
    """
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise unknown_name("generator", name, NAMES)
    pairs = [part.partition("=")[::2] for part in rest.split(",")] if rest else []
    kind, make = OPTIONS.get(name, (msgspec.Struct, None))
    known = kind.__struct_fields__
    for key, value in pairs:
        if key not in known:
            raise unknown_name(f"option of {name}", key, known)
        if not value or [k for k, _ in pairs].count(key) > 1:
            raise InputError(f"{text!r} has not one value for {key}", expected=f"{name}:{key}=...")
    if make is None:
        return GENERATORS[name]
    try:
        asked = msgspec.convert(dict(pairs), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{text!r}: {error}", expected="numbers") from None
    return lambda seed: make(seed, asked)


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
        sizes=sizes.tolist(),
        submit_us=submit_us.tolist(),
        walltime_us=walltime_us.tolist(),
        run_us=run_us.tolist(),
        notes=[note],
    )


def _micro(values_s: Floats) -> Ints:
    return np.rint(values_s * US_PER_S).astype(np.int64)


def _scaled_counts(n_jobs: int) -> Ints:
    """Table 6 scaled to another number of jobs, by largest remainders."""
    shares = np.array(list(published.SYNTHETIC_COUNTS.values())) * (n_jobs / 1000)
    counts = np.floor(shares + 1e-9).astype(np.int64)
    by_remainder = np.argsort(counts - shares, kind="stable")
    counts[by_remainder[: n_jobs - counts.sum()]] += 1
    return counts
