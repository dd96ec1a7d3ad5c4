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
from rebat.models.speedup import Downey
from rebat.workloads import cirne_berman as laws
from rebat.workloads.arrivals import Arrivals

MIXES = {
    "mixed": (400, 300, 300),
    "moldable-rigid": (500, 500, 0),
    "malleable-rigid": (500, 0, 500),
}
"""Rigid, moldable and malleable jobs (Table III)."""

KINDS = ("rigid", "moldable", "malleable")

MARGIN_US = US_PER_S
"""Walltimes are estimates, and at least so much above the run time: Batsim kills a job whose run
time equals its walltime."""

SIGMA_MAX = 2.0
"""Variances of the parallelism are uniform from 0 to this, as Downey 1998 draws them."""

CANDIDATES = 200
"""Sizes that are drawn for the requests of a moldable job, of which those that differ count."""

MAX_JOBS = 1_000_000


class FlexibleLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for.

    Parameters
    ----------
    mix : str, optional
        mixed (the default), moldable-rigid or malleable-rigid: the workloads of Table III, scaled
        to ``jobs`` (1000).
    rigid, moldable, malleable : int, optional
        Numbers of jobs, instead of a mix.
    processors : int
        Of the machine: the largest size.
    accuracy : float
        Run time / estimate, above 0 and up to 1.
    arrivals, gap_s, load
        See `arrivals.Arrivals`.
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

    def __post_init__(self) -> None:
        counts = self.counts
        if min(counts) < 0 or not 1 <= sum(counts) <= MAX_JOBS:
            told = ", ".join(f"{n} {kind}" for n, kind in zip(counts, KINDS, strict=True))
            raise InputError(f"{told} jobs", expected=f"1 to {MAX_JOBS} jobs in all")
        if not 1 <= self.processors <= 2**24:
            raise InputError(f"is {self.processors}", "processors", "1 to 2**24")
        if not 0 < self.accuracy <= 1:
            raise InputError(f"is {self.accuracy:g}", "accuracy", "above 0, up to 1")
        self.arriving  # noqa: B018  checks them

    @property
    def arriving(self) -> Arrivals:
        """How the jobs arrive."""
        return Arrivals(self.arrivals, self.gap_s, self.load)

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many jobs are rigid, moldable and malleable; what does not come out is rigid."""
        told = (self.rigid, self.moldable, self.malleable)
        if any(number is not None for number in told):
            if self.mix is not None or self.jobs is not None:
                given = "mix" if self.mix is not None else "jobs"
                raise InputError("has no effect", given, "no numbers of jobs of a kind beside it")
            return (self.rigid or 0, self.moldable or 0, self.malleable or 0)
        mix = self.mix or "mixed"
        if mix not in MIXES:
            raise unknown_name("mix", mix, MIXES)
        jobs = 1000 if self.jobs is None else self.jobs
        moldable, malleable = (jobs * number // 1000 for number in MIXES[mix][1:])
        return jobs - moldable - malleable, moldable, malleable


def flexible_load(seed: int, asked: FlexibleLoad | None = None) -> Workload:
    """Jobs in random order; sizes, estimates and speedups by the laws of `cirne_berman`.

    ``res`` is the size of a rigid job. A moldable or malleable one has a least size and a mean
    parallelism by the joint law, a variance of it up to ``SIGMA_MAX``, and by equation (5) a most
    useful size, cut to the machine. A malleable one takes every size of the range; its ``res`` is
    log-uniform in it. A moldable one asks for its least size first, then for log-uniform ones; its
    ``res`` is the second of these requests, if there is one. The estimate, by the same law for all,
    is the walltime at ``res``; the run time there is the estimate times the accuracy (see
    ``MARGIN_US``).

    Parameters
    ----------
    seed : int
        Same seed, same workload.
    asked : FlexibleLoad, optional

    Raises
    ------
    InputError
        For arrivals that cannot be read from their file.
    """
    asked = asked or FlexibleLoad()

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, "workload", "cirne-berman", purpose)

    n_jobs = sum(asked.counts)
    kinds = rng("order").permutation(np.repeat(KINDS, asked.counts)).tolist()
    estimate_us = np.rint(2 ** laws.ESTIMATE_S.exponents(rng("estimates").random(n_jobs))) * 1e6
    run_us = np.maximum(np.rint(estimate_us * asked.accuracy).astype(np.int64), 1)
    walltime_us = np.maximum(estimate_us.astype(np.int64), run_us + MARGIN_US).tolist()
    made = _made(rng, kinds, asked.processors)
    work = float(np.array([one.size for one in made]) @ (run_us / US_PER_S))
    dates_us = asked.arriving.dates_us(rng("arrivals"), n_jobs, work, asked.processors)
    jobs, profiles = [], {}
    columns = zip(made, dates_us, walltime_us, run_us.tolist(), strict=True)
    for number, (one, date_us, bound_us, length_us) in enumerate(columns, 1):
        name, profile = one.profile(number, length_us)
        profiles[name] = profile
        jobs.append(Job(str(number), one.size, date_us, bound_us, name, fields_of(one.shape)))
    name = "-".join(filter(None, ("cirne-berman", asked.mix, str(seed))))
    return Workload(name, asked.processors, tuple(jobs), profiles, (_note(seed, asked),))


class _Made(NamedTuple):
    """A job without its times."""

    size: int
    shape: Shape = RIGID
    speedup: Downey | None = None

    def profile(self, number: int, run_us: int) -> tuple[str, dict[str, Any]]:
        """A name and a delay; rigid jobs of one run time share it."""
        delay: dict[str, Any] = {"type": "delay", "delay": batsim_number(run_us)}
        if self.speedup is None:
            return f"delay{batsim_number(run_us)}", delay
        return f"flexible{number}", delay | {"speedup": msgspec.to_builtins(self.speedup)}


def _made(rng: Callable[[str], np.random.Generator], kinds: list[str], most: int) -> list[_Made]:
    """The sizes of every job; whatever its kind, each takes its own numbers of every stream."""
    n_jobs = len(kinds)
    rigid = laws.rigid_sizes(rng("sizes").random(n_jobs), rng("powers").random(n_jobs), most)
    least = np.minimum(laws.LEAST_SIZE.whole(rng("least sizes").random(n_jobs)), most)
    mean = np.maximum(laws.parallelisms(least, rng("parallelism").random(n_jobs)), least)
    sigma = rng("sigmas").uniform(0, SIGMA_MAX, n_jobs)
    count = laws.REQUESTS.whole(rng("requests").random(n_jobs))
    drawn, found = rng("request sizes"), []
    for kind, size, low, parallelism, s, n_requests in zip(
        kinds, *(column.tolist() for column in (rigid, least, mean, sigma, count)), strict=True
    ):
        uniform, powers = drawn.random((2, CANDIDATES))
        if kind == "rigid":
            found.append(_Made(size))
            continue
        speedup = Downey(round(parallelism, 6), round(s, 6))
        high = min(max(math.floor(speedup.n_nodes_max), low), most)
        others = laws.sizes_between(low, high, uniform, powers)
        if kind == "malleable":
            found.append(_Made(others[0], Malleable(low, high), speedup))
            continue
        sizes = laws.requests(low, others, n_requests)
        found.append(_Made(sizes[min(1, len(sizes) - 1)], Moldable(tuple(sorted(sizes))), speedup))
    return found


def _note(seed: int, asked: FlexibleLoad) -> str:
    counts = ", ".join(f"{n} {kind}" for n, kind in zip(asked.counts, KINDS, strict=True))
    told = f"run time / estimate {asked.accuracy:g}, arrivals {Path(asked.arrivals).name}"
    laws_ = "by the laws of Tables I and II of Prabhakaran et al. 2018"
    return f"{counts} jobs {laws_}, {told}, seed {seed}; not a real trace"
