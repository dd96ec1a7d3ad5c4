# SPDX-License-Identifier: Apache-2.0
"""A batch of jobs that run one after another on nodes that fail (Vardas et al. 2022).

A policy chooses the nodes of each attempt. A failure of one of these nodes aborts the attempt.
After the repair the job starts again from the beginning, on newly chosen nodes. When any node
fails, its uptime restarts at 0. The job waits only for repairs of nodes that it uses.

References
----------
.. [1] I. Vardas, M. Ploumidis, M. Marazakis, "Exploring the impact of node failures on the resource
   allocation for parallel jobs", 2022, sections 2.2, 2.3 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.durations import stream
from rebat.core.errors import InputError, unknown_name
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.kernels.batch import catch_up, first_hit
from rebat.models.boxes import LISTS, Boxes, Ints, volume_for
from rebat.models.failures.law import check_span
from rebat.models.failures.per_node import NodeLaws
from rebat.models.failures.per_node_laws import PerNodeLaw, series_of
from rebat.models.topology import Torus

PAPER_JOBS = 1000
"""Number of jobs of a batch (section 3)."""

LARGEST_SIGMA = 3.0
"""Maximum spread of durations and repairs. At this spread, the longest of 1,000 jobs lasts over 100
times the mean duration.
"""

MAX_ABORTS = 10_000
"""Maximum number of consecutive aborts of a job. If a job is aborted more often, the batch ends
with an error.
"""


class Batch(msgspec.Struct, frozen=True):
    """A batch to run. Times are in seconds.

    Parameters
    ----------
    torus : Torus
    size : int
        Number of nodes of a job. If no box has this size, the policies rps and faps use the
        smallest larger box. All nodes of this box then count as nodes of the job.
    n_jobs : int
    duration_s : float
        Duration of every job.
    law : PerNodeLaw
        How nodes fail. An aborted job waits for the downtime of the law.
    policy : str
        A key of POLICIES.
    which : str
        Name of the list of boxes, one of `boxes.LISTS`. It is empty if the policy does
        not choose among boxes.
    seed : int
        Seed of the failures, and of the random choices of rps.
    begin_s : float
        Age of the machine when the batch begins. Earlier failures only set the nodes' uptimes.
    trace_end_s : float, optional
        Age of the machine after which no node fails: the length of a failure trace. The policies do
        not know this age and still expect failures.
    other_sizes : tuple of int
        Other sizes of jobs. Each job gets ``size`` or one of these sizes, all with equal
        probability.
    duration_sigma, repair_sigma : float
        Standard deviation of the logarithm of the job durations and of the repair times. Durations
        and repair times are log-normal, with the means ``duration_s`` and the downtime of the law.
        If the value is 0, all durations or repair times are equal.
    """

    torus: Torus
    size: int
    n_jobs: int
    duration_s: float
    law: PerNodeLaw
    policy: str
    which: str = ""
    seed: int = 0
    begin_s: float = 0.0
    trace_end_s: float | None = None
    other_sizes: tuple[int, ...] = ()
    duration_sigma: float = 0.0
    repair_sigma: float = 0.0

    def __post_init__(self) -> None:
        for size in self.sizes:
            volume_for(self.torus.sizes, size)
        for name in ("duration_sigma", "repair_sigma"):
            if not 0 <= getattr(self, name) <= LARGEST_SIGMA:
                problem = f"is {getattr(self, name):g}"
                raise InputError(problem, name.replace("_", " "), f"0 to {LARGEST_SIGMA:g}")
        check_span(self.duration_s, "duration")
        if not 0 <= self.begin_s <= MAX_SECONDS:
            raise InputError(f"is {self.begin_s:g} s", "begin", "0 or more, at most 3,000 years")
        if self.trace_end_s is not None and not self.begin_s < self.trace_end_s <= MAX_SECONDS:
            problem, expected = (
                f"is {self.trace_end_s:g} s",
                "a time after the beginning of the batch",
            )
            raise InputError(problem, "trace end", expected)
        for name, number, least in (("jobs", self.n_jobs, 1), ("seed", self.seed, 0)):
            if number < least:
                raise InputError(f"is {number}", name, f"{least} or more")
        if self.policy not in POLICIES:
            raise unknown_name("policy of a batch", self.policy, POLICIES)
        if self.policy in OF_BOXES and self.which not in LISTS:
            raise unknown_name("list of boxes", self.which, LISTS)
        if self.policy not in OF_BOXES and self.which:
            raise InputError(
                f"policy {self.policy} does not use a list of boxes",
                f"list {self.which!r}",
                f"no list, or a policy with a list: {' or '.join(OF_BOXES)}",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes of jobs."""
        return (self.size, *self.other_sizes)


class BatchAttempt(NamedTuple):
    """An attempt of a job: start and end (us), whether a failure aborted it, and its nodes."""

    start_us: int
    end_us: int
    aborted: bool
    nodes: Ints


class BatchResult(msgspec.Struct, frozen=True):
    """The result of a batch.

    Attributes
    ----------
    completion_s
        The end of the last job.
    aborts
        Number of attempts that a failure aborted.
    starts_s
        The start of each attempt, shape (attempts,).
    lost_node_s
        Node time of the aborted attempts, in node-seconds (section 1: "node-hours lost").
    """

    completion_s: float
    aborts: int
    starts_s: npt.NDArray[np.float64]
    lost_node_s: float = 0.0


class BatchJob(NamedTuple):
    """A job: its number of nodes and its duration in seconds."""

    size: int
    duration_s: float


OnProgress = Callable[[int, float], None]
"""Called after every attempt with the number of completed jobs and the time (s)."""

Chooser = Callable[[Ints, BatchJob], Ints]
"""Function that returns the nodes of an attempt. Arguments: the uptimes of all nodes (us), shape
(nodes,), and the job."""


def run_batch(batch: Batch, on_progress: OnProgress | None = None) -> BatchResult:
    """Run a batch to its end."""
    starts_us, ended, now_us, lost_us = [], 0, 0, 0
    for attempt in attempts(batch):
        starts_us.append(attempt.start_us)
        now_us, ended = attempt.end_us, ended + (not attempt.aborted)
        if attempt.aborted:
            lost_us += (attempt.end_us - attempt.start_us) * len(attempt.nodes)
        if on_progress is not None:
            on_progress(ended, to_s(now_us))
    starts_s = np.array(starts_us) / 1e6
    return BatchResult(to_s(now_us), len(starts_us) - ended, starts_s, to_s(lost_us))


def jobs_of(batch: Batch) -> list[BatchJob]:
    """Return the jobs of a batch.

    Batches with the same seed have the same jobs under every policy.
    """
    rng = stream(batch.seed, "batch", "jobs")
    sizes = rng.choice(np.array(batch.sizes), batch.n_jobs) if batch.other_sizes else batch.sizes
    durations_s = batch.duration_s * _spread(rng, batch.duration_sigma, batch.n_jobs)
    return [
        BatchJob(int(sizes[job % len(sizes)]), float(durations_s[job]))
        for job in range(batch.n_jobs)
    ]


def _repairs_us(batch: Batch) -> Iterator[int]:
    rng, mean_s = stream(batch.seed, "batch", "repairs"), batch.law.downtime_s
    while True:
        yield from (to_us(mean_s * factor) for factor in _spread(rng, batch.repair_sigma, 1_000))


def _spread(rng: np.random.Generator, sigma: float, n: int) -> npt.NDArray[np.float64]:
    """Return n log-normal factors with mean 1, shape (n,)."""
    if not sigma:
        return np.ones(n)
    return np.exp(sigma * rng.standard_normal(n) - sigma**2 / 2)


def attempts(batch: Batch) -> Iterator[BatchAttempt]:
    """Yield all attempts of a batch in order. Time 0 is the beginning of the batch."""
    n_nodes, jobs = batch.torus.n_nodes, jobs_of(batch)
    series = series_of(batch.law, n_nodes, batch.seed)
    choose = POLICIES[batch.policy](batch, batch.law.nodes(n_nodes, batch.seed))
    repairs_us, last_us = _repairs_us(batch), np.zeros(n_nodes, dtype=np.int64)
    begin_us = now_us = to_us(batch.begin_s)
    end_us = FOREVER_US if batch.trace_end_s is None else to_us(batch.trace_end_s)
    cursor = ended = aborts = 0
    while ended < batch.n_jobs:
        until_us = now_us + to_us(jobs[ended].duration_s)
        _check_end(batch, until_us, ended, aborts)
        series.reach(min(until_us, end_us + 1))
        cursor = catch_up(series.at_us, series.node, cursor, min(now_us, end_us), last_us)
        nodes = choose(now_us - last_us, jobs[ended])
        is_job_node = np.zeros(n_nodes, dtype=np.bool_)
        is_job_node[nodes] = True
        last_hit_us = min(until_us, end_us + 1)
        hit_us = int(first_hit(series.at_us, series.node, cursor, last_hit_us, is_job_node))
        aborted = hit_us >= 0
        stop_us = hit_us if aborted else until_us
        yield BatchAttempt(now_us - begin_us, stop_us - begin_us, aborted, nodes)
        aborts, ended = (aborts + 1, ended) if aborted else (0, ended + 1)
        now_us = hit_us + next(repairs_us) if aborted else until_us


def _check_end(batch: Batch, until_us: int, ended: int, aborts: int) -> None:
    """Raise InputError if the next job was aborted too often, or if the batch lasts too long."""
    if aborts >= MAX_ABORTS:
        problem = f"job {ended + 1} of {batch.n_jobs} has been aborted {aborts:,} times in a row"
    elif until_us > MAX_SECONDS * 1e6:
        problem = f"only {ended} of {batch.n_jobs} jobs end within {to_s(until_us):.3g} s"
    else:
        return
    where = f"batch of {batch.size} nodes for {batch.duration_s:g} s"
    raise InputError(problem, where, "jobs short and small enough to end between two failures")


# ---- policies


def _linear(batch: Batch, laws: NodeLaws) -> Chooser:
    """Choose the nodes with the lowest numbers.

    If any of them is down, the job waits for its repair.
    """
    return lambda uptime_us, job: np.arange(job.size)


def _random(batch: Batch, laws: NodeLaws) -> Chooser:
    """RPS: choose any box of the list with equal probability."""
    rng = stream(batch.seed, "batch", "rps")

    def choose(uptime_us: Ints, job: BatchJob) -> Ints:
        boxes = _boxes(batch, job)
        return boxes.box(int(rng.integers(len(boxes)))).nodes(batch.torus)

    return choose


def _least_likely_to_fail(batch: Batch, laws: NodeLaws) -> Chooser:
    """FAPS: choose the box with the smallest sum of hazards (equation 2)."""

    def choose(uptime_us: Ints, job: BatchJob) -> Ints:
        boxes, hazard = _boxes(batch, job), laws.hazard(uptime_us / 1e6, job.duration_s)
        return boxes.box(boxes.least(hazard)).nodes(batch.torus)

    return choose


def _ceiling(batch: Batch, laws: NodeLaws) -> Chooser:
    """Choose the nodes with the lowest failure probability, even if they do not form a box.

    The result is an upper bound on what any placement can achieve.
    """

    def choose(uptime_us: Ints, job: BatchJob) -> Ints:
        hazard = laws.hazard(uptime_us / 1e6, job.duration_s)
        return np.argsort(hazard, kind="stable")[: job.size]

    return choose


POLICIES: dict[str, Callable[[Batch, NodeLaws], Chooser]] = {
    "slurm-linear": _linear,
    "rps": _random,
    "faps": _least_likely_to_fail,
    "ceiling": _ceiling,
}
OF_BOXES = ("rps", "faps")
"""The policies that choose among boxes."""


def with_lists(policies: Iterable[str], lists: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of a policy and the name of a list, for all combinations.

    A policy that does not choose among boxes appears once, with an empty list name.
    """
    listed = tuple(lists)
    return [(p, which) for p in policies for which in (listed if p in OF_BOXES else ("",))]


def _boxes(batch: Batch, job: BatchJob) -> Boxes:
    return _boxes_of(batch.torus, volume_for(batch.torus.sizes, job.size), batch.which)


@lru_cache(maxsize=8)
def _boxes_of(torus: Torus, volume: int, which: str) -> Boxes:
    return Boxes(torus, volume, which)
