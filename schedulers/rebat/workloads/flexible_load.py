# SPDX-License-Identifier: Apache-2.0
"""Workloads of rigid, moldable and malleable jobs, as in Prabhakaran et al. 2018.

Rigid jobs become moldable or malleable around their requested size. Spare nodes of each job follow
Figure 1a of Prabhakaran, Neumann and Wolf 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.durations import stream
from rebat.core.errors import InputError, unknown_name
from rebat.core.jobs import Job, Workload, batsim_number, duration_us
from rebat.core.traits import RIGID, Malleable, Moldable, Shape, fields_of, shape_of
from rebat.core.units import US_PER_S
from rebat.models.speedup import SIGMA_MAX, Downey, SpeedupTable
from rebat.workloads import cirne_berman as laws
from rebat.workloads.arrivals import Arrivals
from rebat.workloads.trace import job_count

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


def flex(
    workload: Workload,
    *,
    malleable: float = 0.0,
    moldable: float = 0.0,
    seed: int = 0,
    sigma: float | None = None,
) -> Workload:
    """Make some rigid jobs malleable and some moldable. Their other fields do not change.

    A malleable job that requests n nodes runs on n/4 (rounded down, at least 1) to 2n nodes (at
    most the entire machine). A moldable job runs on n/4, n/2, n or 2n nodes. Numbers that are not
    integers or exceed the machine are left out. If a profile has no speedup, it gets a speedup of
    Downey's model. The mean parallelism is chosen as small as possible, but so that the job is
    faster on each larger size (equation (5) of Prabhakaran et al. 2018).

    A random number u is drawn for each job. The job becomes malleable if u < ``malleable``, and
    moldable if u >= 1 - ``moldable``. If a share is increased, the selected jobs stay selected, and
    further jobs are added. Jobs larger than the machine, and jobs that need Batsim's network model,
    do not change.

    Parameters
    ----------
    malleable, moldable : float
        Shares of the jobs, from 0 to 1. Their sum is at most 1.
    seed : int
        The same seed yields the same jobs and speedups.
    sigma : float, optional
        Coefficient of variance of the parallelism of every job. By default it is drawn for each
        job, uniformly from 0 to ``SIGMA_MAX`` (Downey 1998).
    """
    _check(malleable, moldable, sigma)
    drawn = stream(seed, "workload", "flex", "kinds").random(len(workload.jobs)).tolist()
    sigmas = stream(seed, "workload", "flex", "sigmas").uniform(0, SIGMA_MAX, len(drawn)).tolist()
    scalable = scalable_profiles(workload)
    jobs, profiles = [], dict(workload.profiles)
    counts = {Malleable: 0, Moldable: 0}
    for job, u, random_sigma in zip(workload.jobs, drawn, sigmas, strict=True):
        kind = Malleable if u < malleable else Moldable if u >= 1 - moldable else None
        if kind is None or not can_flex(job, workload.n_nodes, scalable):
            jobs.append(job)
            continue
        counts[kind] += 1
        shape, most = _around(kind, job.n_nodes, workload.n_nodes)
        speedup = useful_to(most, random_sigma if sigma is None else sigma)
        name = _add_profile(profiles, job, speedup)
        extra = job.extra | fields_of(shape)
        jobs.append(msgspec.structs.replace(job, profile=name, extra=extra))
    note = (
        f"{job_count(counts[Malleable])} made malleable, {job_count(counts[Moldable])} moldable "
        f"(shares {malleable:g} and {moldable:g}, seed {seed})"
    )
    notes = (*workload.notes, note)
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles, notes=notes)


def useful_to(most: int, sigma: float) -> Downey:
    """Return a speedup that increases up to ``most`` nodes, with the smallest mean parallelism.

    The mean parallelism follows from equation (5) of Prabhakaran et al. 2018.

    >>> useful_to(31, 0.5), useful_to(46, 2.0)
    (Downey(parallelism=16.0, sigma=0.5), Downey(parallelism=16.0, sigma=2.0))
    """
    sigma = round(sigma, 6)
    mean = (most + 1) / 2 if sigma <= 1 else (most + sigma) / (1 + sigma)
    return Downey(max(math.ceil(mean * 1e6) / 1e6, 1.0), sigma)


def _check(malleable: float, moldable: float, sigma: float | None) -> None:
    for name, share in (("malleable", malleable), ("moldable", moldable)):
        if not 0 <= share <= 1:
            raise InputError(f"is {share:g}", name, "a share from 0 to 1")
    if malleable + moldable > 1:
        problem = f"the shares of malleable and moldable jobs are {malleable:g} and {moldable:g}"
        raise InputError(problem, expected="a sum of at most 1")
    if sigma is not None:
        Downey(1.0, sigma)  # raises an error if sigma is invalid


def scalable_profiles(workload: Workload) -> set[str]:
    """Return the profiles whose run time does not need Batsim's network model."""
    return {name for name in workload.profiles if _scales(workload.profiles, name)}


def _scales(profiles: Mapping[str, dict[str, Any]], name: str) -> bool:
    try:
        duration_us(profiles, name)
    except InputError:
        return False
    return True


def can_flex(job: Job, machine: int, scalable: set[str]) -> bool:
    """Return whether a job is rigid, fits the machine, and has one of the ``scalable`` profiles."""
    rigid = shape_of(job.extra) == RIGID
    return rigid and job.n_nodes <= machine and job.profile in scalable


def _around(kind: type[Shape], size: int, machine: int) -> tuple[Shape, int]:
    """Return the shape of a job around its requested size, and its maximum number of nodes."""
    if kind is Malleable:
        most = min(2 * size, machine)
        return Malleable(max(size // 4, 1), most), most
    parts = [size // part for part in (4, 2) if size % part == 0]
    sizes = (*parts, size, *([2 * size] if 2 * size <= machine else []))
    return Moldable(sizes), sizes[-1]


def _add_profile(profiles: dict[str, dict[str, Any]], job: Job, speedup: Downey) -> str:
    """Add the profile of a job with a speedup, under a new name. Return this name."""
    profile = profiles[job.profile]
    if "speedup" in profile:
        return job.profile
    name = f"{job.profile}-flex-{job.id}"
    while name in profiles:
        name += "+"
    profiles[name] = profile | {"speedup": msgspec.to_builtins(speedup)}
    return name


EXPECTED = "a number of nodes, or a percentage such as 5%"


def n_own_spares(text: str, n_nodes: int) -> int:
    """Return the number of spare nodes of a job on ``n_nodes`` nodes. Percentages are rounded up.

    >>> n_own_spares("2", 30), n_own_spares("5%", 30)
    (2, 2)
    """
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise InputError(f"is {text!r}", "own spares", EXPECTED) from None
    if not 0 < number <= 2**31 or (not text.endswith("%") and number % 1):
        raise InputError(f"is {text!r}", "own spares", EXPECTED)
    return math.ceil(n_nodes * number / 100) if text.endswith("%") else int(number)


def with_own_spares(workload: Workload, spares: str) -> Workload:
    """Return the workload with spare nodes for each rigid job, up to the size of the machine.

    A job that needs n nodes requests n + s nodes. It can run on n to n + s nodes, always at the
    same speed. A scheduler with ``malleable=fixed`` starts it on n + s nodes. With
    ``react=replacement`` the job continues without interruption until it has lost more than s
    nodes. The spare nodes count as used by the job.

    Parameters
    ----------
    spares : str
        A number of nodes per job, or a percentage of the nodes that the job needs (rounded up).
    """
    n_own_spares(spares, 1)  # raises an error if the text is invalid
    scalable = scalable_profiles(workload)
    jobs, profiles, n_changed = [], dict(workload.profiles), 0
    for job in workload.jobs:
        request = min(job.n_nodes + n_own_spares(spares, job.n_nodes), workload.n_nodes)
        if request <= job.n_nodes or not can_flex(job, workload.n_nodes, scalable):
            jobs.append(job)
            continue
        name = f"{job.profile}-on-{job.n_nodes}"
        profiles[name] = workload.profiles[job.profile] | _constant(job.n_nodes)
        jobs.append(_widened(job, request, name))
        n_changed += 1
    note = f"{job_count(n_changed)} with {spares} spare nodes each"
    notes = (*workload.notes, note)
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles, notes=notes)


def _constant(n_nodes: int) -> dict[str, Any]:
    return {"speedup": msgspec.to_builtins(SpeedupTable((n_nodes,), (1.0,)))}


def _widened(job: Job, request: int, profile: str) -> Job:
    extra = job.extra | fields_of(Malleable(job.n_nodes, request))
    return msgspec.structs.replace(job, n_nodes=request, profile=profile, extra=extra)
