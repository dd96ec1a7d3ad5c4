# SPDX-License-Identifier: Apache-2.0
"""Workloads of rigid, moldable and malleable jobs, as in Prabhakaran et al. 2018."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.jobs import Job, Workload, batsim_number
from rebat.core.shapes import RIGID, Malleable, Moldable, Shape, fields_of
from rebat.core.streams import stream
from rebat.core.units import US_PER_S
from rebat.models.speedup import SIGMA_MAX, Downey
from rebat.workloads import cirne_berman as laws
from rebat.workloads.arrivals import Arrivals
from rebat.workloads.own_spares import n_own_spares, with_own_spares

MIXES = {
    "mixed": (400, 300, 300),
    "moldable-rigid": (500, 500, 0),
    "malleable-rigid": (500, 0, 500),
}
"""Shares of rigid, moldable and malleable jobs in each mix (Table III)."""

KINDS = ("rigid", "moldable", "malleable")

MARGIN_US = US_PER_S
"""Minimum difference between walltime and run time, because Batsim kills a job whose run time
equals its walltime."""

CANDIDATES = 200
"""Number of sizes drawn for the requests of a moldable job, including duplicates."""

MAX_JOBS = 1_000_000


class FlexibleLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the workload.

    Parameters
    ----------
    mix : str, optional
        Workload of Table III: mixed (default), moldable-rigid or malleable-rigid.
    jobs : int, optional
        Number of jobs of the mix (default: 1000).
    rigid, moldable, malleable : int, optional
        Number of jobs of each kind. These options replace ``mix``.
    processors : int
        Processors of the machine, the maximum size of a job.
    accuracy : float
        Run time / estimate, above 0 and up to 1.
    arrivals, gap_s, load
        See `arrivals.Arrivals`.
    own_spares : str, optional
        Spare nodes of each rigid job, see `own_spares.with_own_spares`.
    """

    mix: str | None = None
    jobs: int | None = None
    rigid: int | None = None
    moldable: int | None = None
    malleable: int | None = None
    processors: int = 500
    accuracy: float = 1.0
    arrivals: str = "zero"
    gap_s: float | None = None
    load: float | None = None
    own_spares: str | None = None

    def __post_init__(self) -> None:
        counts = self.counts
        if min(counts) < 0 or not 1 <= sum(counts) <= MAX_JOBS:
            numbers = ", ".join(f"{n} {kind}" for n, kind in zip(counts, KINDS, strict=True))
            raise InputError(
                f"the workload has {numbers} jobs", expected=f"1 to {MAX_JOBS} jobs in total"
            )
        if not 1 <= self.processors <= 2**24:
            raise InputError(f"is {self.processors}", "processors", "1 to 2**24")
        if not 0 < self.accuracy <= 1:
            raise InputError(f"is {self.accuracy:g}", "accuracy", "above 0, up to 1")
        self.arriving  # noqa: B018  checks the arrivals
        if self.own_spares is not None:
            n_own_spares(self.own_spares, 1)

    @property
    def arriving(self) -> Arrivals:
        """The arrival process."""
        return Arrivals(self.arrivals, self.gap_s, self.load)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Number of rigid, moldable and malleable jobs.

        Jobs that remain after rounding are rigid.
        """
        if any(number is not None for number in (self.rigid, self.moldable, self.malleable)):
            if self.mix is not None or self.jobs is not None:
                name = "mix" if self.mix is not None else "jobs"
                raise InputError(
                    "has no effect with rigid, moldable or malleable", name, f"no {name}"
                )
            return (self.rigid or 0, self.moldable or 0, self.malleable or 0)
        mix = self.mix or "mixed"
        if mix not in MIXES:
            raise unknown_name("mix", mix, MIXES)
        jobs = 1000 if self.jobs is None else self.jobs
        moldable, malleable = (jobs * number // 1000 for number in MIXES[mix][1:])
        return jobs - moldable - malleable, moldable, malleable


def flexible_load(seed: int, options: FlexibleLoad | None = None) -> Workload:
    """Return jobs in random order. Their sizes, estimates and speedups are drawn by `cirne_berman`.

    - A rigid job has ``res`` processors.
    - The minimum size and the mean parallelism of a moldable or malleable job follow their joint
      law. The variance of the parallelism is at most ``SIGMA_MAX``. The maximum size of the job is
      the largest useful size by equation (5), but at most the size of the machine.
    - A malleable job runs on all sizes from the minimum to the maximum. Its ``res`` is log-uniform
      in this range.
    - A moldable job requests its minimum size and further log-uniform sizes. If it requests several
      sizes, its ``res`` is the second size.
    - The estimate is the walltime on ``res`` processors. The estimates of all jobs follow the same
      law. The run time is the estimate times the accuracy (see ``MARGIN_US``).

    Parameters
    ----------
    seed : int
        The same seed yields the same workload.
    """
    options = options or FlexibleLoad()

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", "cirne-berman", purpose)

    n_jobs = sum(options.counts)
    kinds = rng("order").permutation(np.repeat(KINDS, options.counts)).tolist()
    estimate_us = np.rint(2 ** laws.ESTIMATE_S.exponents(rng("estimates").random(n_jobs))) * 1e6
    run_us = np.maximum(np.rint(estimate_us * options.accuracy).astype(np.int64), 1)
    walltime_us = np.maximum(estimate_us.astype(np.int64), run_us + MARGIN_US).tolist()
    drafts = _drafts(rng, kinds, options.processors)
    work = float(np.array([draft.size for draft in drafts]) @ (run_us / US_PER_S))
    submit_us = options.arriving.times_us(rng("arrivals"), n_jobs, work, options.processors)
    jobs, profiles = [], {}
    columns = zip(drafts, submit_us, walltime_us, run_us.tolist(), strict=True)
    for number, (draft, at_us, bound_us, length_us) in enumerate(columns, 1):
        name, profile = draft.profile(number, length_us)
        profiles[name] = profile
        jobs.append(Job(str(number), draft.size, at_us, bound_us, name, fields_of(draft.shape)))
    name = "-".join(filter(None, ("cirne-berman", options.mix, str(seed))))
    notes = (_note(seed, options),)
    workload = Workload(name, options.processors, tuple(jobs), profiles, notes)
    return with_own_spares(workload, options.own_spares) if options.own_spares else workload


class _Draft(NamedTuple):
    """A job before its times are drawn."""

    size: int
    shape: Shape = RIGID
    speedup: Downey | None = None

    def profile(self, number: int, run_us: int) -> tuple[str, dict[str, Any]]:
        """Return a delay profile and its name.

        Rigid jobs with the same run time share a profile.
        """
        delay: dict[str, Any] = {"type": "delay", "delay": batsim_number(run_us)}
        if self.speedup is None:
            return f"delay{batsim_number(run_us)}", delay
        return f"flexible{number}", delay | {"speedup": msgspec.to_builtins(self.speedup)}


def _drafts(rng: Callable[[str], np.random.Generator], kinds: list[str], most: int) -> list[_Draft]:
    """Draw the sizes of all jobs. Each job consumes the same number of random numbers."""
    n_jobs = len(kinds)
    rigid = laws.rigid_sizes(rng("sizes").random(n_jobs), rng("powers").random(n_jobs), most)
    least = np.minimum(laws.LEAST_SIZE.integers(rng("least sizes").random(n_jobs)), most)
    mean = np.maximum(laws.parallelisms(least, rng("parallelism").random(n_jobs)), least)
    sigma = rng("sigmas").uniform(0, SIGMA_MAX, n_jobs)
    count = laws.REQUESTS.integers(rng("requests").random(n_jobs))
    drawn, drafts = rng("request sizes"), []
    for kind, size, low, parallelism, s, n_requests in zip(
        kinds, *(column.tolist() for column in (rigid, least, mean, sigma, count)), strict=True
    ):
        uniform, powers = drawn.random((2, CANDIDATES))
        if kind == "rigid":
            drafts.append(_Draft(size))
            continue
        speedup = Downey(round(parallelism, 6), round(s, 6))
        high = min(max(math.floor(speedup.n_nodes_max), low), most)
        others = laws.sizes_between(low, high, uniform, powers)
        if kind == "malleable":
            drafts.append(_Draft(others[0], Malleable(low, high), speedup))
            continue
        sizes = laws.requests(low, others, n_requests)
        drafts.append(
            _Draft(sizes[min(1, len(sizes) - 1)], Moldable(tuple(sorted(sizes))), speedup)
        )
    return drafts


def _note(seed: int, options: FlexibleLoad) -> str:
    counts = ", ".join(f"{n} {kind}" for n, kind in zip(options.counts, KINDS, strict=True))
    details = f"run time / estimate {options.accuracy:g}, arrivals {Path(options.arrivals).name}"
    laws_ = "by the laws of Tables I and II of Prabhakaran et al. 2018"
    return f"{counts} jobs {laws_}, {details}, seed {seed}; not a real trace"
