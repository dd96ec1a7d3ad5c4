# SPDX-License-Identifier: Apache-2.0
"""The batch of Vardas et al. 2022: equal jobs, strictly one after another, on nodes that fail.

An attempt runs on nodes that a policy chooses; a failure of one of them aborts it, and after the
repair it starts again from scratch on nodes chosen anew. Whatever fails, on the job's nodes or not,
has an uptime of 0 then. A node that fails beside the job is never waited for.

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

from rebat.core.errors import InputError, unknown_name
from rebat.core.streams import stream
from rebat.core.units import MAX_SECONDS, to_s, to_us
from rebat.kernels.batch import catch_up, first_hit
from rebat.models.boxes import LISTS, Boxes, Ints, volume_for
from rebat.models.failures.law import check_span
from rebat.models.failures.per_node import NodeLaws
from rebat.models.failures.per_node_laws import PerNodeLaw
from rebat.models.failures.series import series_of
from rebat.models.topology import Torus

PAPER_JOBS = 1000
"""Jobs of a batch (section 3)."""

MAX_ABORTS = 10_000
"""Of one job in a row. A batch with more is given up: its jobs are too long to end between two
failures."""


class Batch(msgspec.Struct, frozen=True):
    """What there is to run. Times in seconds.

    Parameters
    ----------
    torus : Torus
    size : int
        Nodes of a job; where it is no box the smallest larger one stands in, all of whose nodes
        count as the job's (rps and faps only).
    n_jobs : int
    duration_s : float
        Of every job.
    law : PerNodeLaw
        How nodes fail; its downtime is the repair that an aborted job waits for.
    policy : str
        A key of POLICIES.
    which : str
        The list of boxes, one of LISTS, for policies that choose among boxes; else empty.
    seed : int
        Of the failures, and of rps.

    Raises
    ------
    InputError
        For numbers, names and combinations that cannot be.
    """

    torus: Torus
    size: int
    n_jobs: int
    duration_s: float
    law: PerNodeLaw
    policy: str
    which: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        volume_for(self.torus.sizes, self.size)
        check_span(self.duration_s, "duration")
        for name, number, least in (("jobs", self.n_jobs, 1), ("seed", self.seed, 0)):
            if number < least:
                raise InputError(f"is {number}", name, f"{least} or more")
        if self.policy not in POLICIES:
            raise unknown_name("policy of a batch", self.policy, POLICIES)
        if self.policy in OF_BOXES and self.which not in LISTS:
            raise unknown_name("list of boxes", self.which, LISTS)
        if self.policy not in OF_BOXES and self.which:
            raise InputError(f"{self.policy} takes no list", self.which)


class BatchAttempt(NamedTuple):
    """A job on some nodes from a date to another, in microseconds, to its end or aborted."""

    start_us: int
    end_us: int
    aborted: bool
    nodes: Ints


class BatchResult(msgspec.Struct, frozen=True):
    """When the last job ended, how often jobs were aborted, and when each attempt started."""

    completion_s: float
    aborts: int
    starts_s: npt.NDArray[np.float64]


OnProgress = Callable[[int, float], None]
"""Told the jobs that have ended and the date (s), after every attempt."""

Chooser = Callable[[Ints], Ints]
"""The nodes of an attempt from the uptime of every node in microseconds, shape (nodes,)."""


def run_batch(batch: Batch, on_progress: OnProgress | None = None) -> BatchResult:
    """Run a batch to its end.

    Raises
    ------
    InputError
        When one job has been aborted MAX_ABORTS times in a row, when there are too many failures
        (see ``FailureSeries.reach``), or when it does not end within 3,000 years.
    """
    starts_us, ended, now_us = [], 0, 0
    for attempt in attempts(batch):
        starts_us.append(attempt.start_us)
        now_us, ended = attempt.end_us, ended + (not attempt.aborted)
        if on_progress is not None:
            on_progress(ended, to_s(now_us))
    return BatchResult(to_s(now_us), len(starts_us) - ended, np.array(starts_us) / 1e6)


def attempts(batch: Batch) -> Iterator[BatchAttempt]:
    """All attempts of a batch, in turn."""
    n_nodes, duration_us = batch.torus.n_nodes, to_us(batch.duration_s)
    series = series_of(batch.law, n_nodes, batch.seed)
    choose = POLICIES[batch.policy](batch, batch.law.nodes(n_nodes, batch.seed))
    repair_us, last_us = to_us(batch.law.downtime_s), np.zeros(n_nodes, dtype=np.int64)
    now_us = cursor = ended = aborts = 0
    while ended < batch.n_jobs:
        until_us = now_us + duration_us
        _check_end(batch, until_us, ended, aborts)
        series.reach(until_us)
        cursor = catch_up(series.at_us, series.node, cursor, now_us, last_us)
        nodes = choose(now_us - last_us)
        within = np.zeros(n_nodes, dtype=np.bool_)
        within[nodes] = True
        hit_us = first_hit(series.at_us, series.node, cursor, until_us, within)
        aborted = hit_us >= 0
        yield BatchAttempt(now_us, hit_us if aborted else until_us, aborted, nodes)
        aborts, ended = (aborts + 1, ended) if aborted else (0, ended + 1)
        now_us = hit_us + repair_us if aborted else until_us


def _check_end(batch: Batch, until_us: int, ended: int, aborts: int) -> None:
    """``aborts`` are those of the job that is to start, all in a row."""
    if aborts >= MAX_ABORTS:
        what = f"job {ended + 1} of {batch.n_jobs} has been aborted {aborts:,} times in a row"
    elif until_us > MAX_SECONDS * 1e6:
        what = f"{ended} of {batch.n_jobs} jobs end in {to_s(until_us):.3g} s"
    else:
        return
    where = f"batch of {batch.size} nodes for {batch.duration_s:g} s"
    raise InputError(what, where, "jobs short and small enough to end between two failures")


# ---- policies


def _linear(batch: Batch, laws: NodeLaws) -> Chooser:
    """The first nodes: nothing else runs, and a failed node is repaired before the retry."""
    first = np.arange(batch.size)
    return lambda uptime_us: first


def _random(batch: Batch, laws: NodeLaws) -> Chooser:
    """RPS: any box of the list, each as likely as any other."""
    boxes, rng = _boxes(batch), stream(batch.seed, "batch", "rps")
    return lambda uptime_us: boxes.box(int(rng.integers(len(boxes)))).nodes(batch.torus)


def _least_likely_to_fail(batch: Batch, laws: NodeLaws) -> Chooser:
    """FAPS: the box with the least sum of hazards, which is least likely to fail (equation 2)."""
    boxes = _boxes(batch)

    def choose(uptime_us: Ints) -> Ints:
        hazard = laws.hazard(uptime_us / 1e6, batch.duration_s)
        return boxes.box(boxes.least(hazard)).nodes(batch.torus)

    return choose


def _ceiling(batch: Batch, laws: NodeLaws) -> Chooser:
    """The nodes least likely to fail, wherever they lie: no list of boxes can do better."""

    def choose(uptime_us: Ints) -> Ints:
        hazard = laws.hazard(uptime_us / 1e6, batch.duration_s)
        return np.argsort(hazard, kind="stable")[: batch.size]

    return choose


POLICIES: dict[str, Callable[[Batch, NodeLaws], Chooser]] = {
    "slurm-linear": _linear,
    "rps": _random,
    "faps": _least_likely_to_fail,
    "ceiling": _ceiling,
}
OF_BOXES = ("rps", "faps")
"""Those that choose among boxes."""


def with_lists(policies: Iterable[str], lists: Iterable[str]) -> list[tuple[str, str]]:
    """Policies with each of the lists, or with none for those that take none."""
    listed = tuple(lists)
    return [(p, which) for p in policies for which in (listed if p in OF_BOXES else ("",))]


def _boxes(batch: Batch) -> Boxes:
    return _boxes_of(batch.torus, volume_for(batch.torus.sizes, batch.size), batch.which)


@lru_cache(maxsize=8)
def _boxes_of(torus: Torus, volume: int, which: str) -> Boxes:
    """Made once for many batches."""
    return Boxes(torus, volume, which)
