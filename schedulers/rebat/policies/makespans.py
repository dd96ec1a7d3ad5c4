# SPDX-License-Identifier: Apache-2.0
"""Makespans of R-LIST and R-SHELF for files with job sets and failure scenarios.

A job set file is JSON with these fields. Other fields are ignored.

- ``P``: number of processors.
- ``jobs``: objects with ``p`` (processors) and ``t`` (time of one attempt, an integer in any unit).
- ``scenarios``: objects with ``f`` (failed attempts per job).
- ``id``, optional: name of the set; default: the name of the file.
- ``n``, optional: number of jobs, which is checked.
- ``verif``, optional: cost of the detector; must be 0 (RR-9296, Section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rebat.core.errors import InputError
from rebat.core.files import read_text
from rebat.models import resilient
from rebat.models.silent_errors import lower_bounds
from rebat.policies.queue_order import priority_rule, ranks

PAPER_RULES = ("LPT", "SPT", "HPA", "LPA", "LA", "SA")
"""The priority rules of Section 5.1 that need no random numbers."""

_Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class JobIn(msgspec.Struct, frozen=True):
    """A job of a file: its number of processors, and the time of one attempt."""

    p: _Positive
    t: _Positive


class ScenarioIn(msgspec.Struct, frozen=True):
    """A failure scenario: number of failed attempts of each job before it succeeds."""

    f: list[_Count]


class MakespanSet(msgspec.Struct, frozen=True):
    """A job set file."""

    n_procs: _Positive = msgspec.field(name="P")
    jobs: list[JobIn]
    scenarios: list[ScenarioIn]
    id: str = ""
    n: int | None = None
    verif: float = 0

    @property
    def times(self) -> NDArray[np.int64]:
        """Times of one attempt, shape (n,)."""
        return np.array([job.t for job in self.jobs], np.int64)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Processors, shape (n,)."""
        return np.array([job.p for job in self.jobs], np.int64)

    @property
    def failures(self) -> NDArray[np.int64]:
        """Failed attempts, shape (n_scenarios, n)."""
        rows = np.array([scenario.f for scenario in self.scenarios], np.int64)
        return rows.reshape(len(self.scenarios), len(self.jobs))


class MakespanRow(NamedTuple):
    """A row of the table of makespans. Its fields are the columns.

    `makespan` is exact, in the file's unit of time. `lower_bound` is ``L(f)`` of equations (5) and
    (6), correctly rounded. `scenario` counts from 0.
    """

    set: str
    scenario: int
    heuristic: str
    rule: str
    makespan: int
    lower_bound: float


def read_job_set(path: Path) -> MakespanSet:
    """Read and check one job set file, plain or .gz."""
    text = read_text(path)
    try:
        jobs = msgspec.json.decode(text, type=MakespanSet)
        return _checked(jobs if jobs.id else msgspec.structs.replace(jobs, id=_stem(path)))
    except msgspec.DecodeError as error:  # also ValidationError: "problem - at `$.place`"
        problem, _, place = str(error).partition(" - at ")
        raise InputError(problem, f"{path}: {place.strip('`')}" if place else str(path)) from None
    except InputError as error:
        raise error.at(str(path)) from None


def makespans(
    paths: Iterable[Path],
    heuristics: Sequence[str] = resilient.HEURISTICS,
    rules: Sequence[str] = PAPER_RULES,
    *,
    reservations: str = "paper",
    seed: int = 0,
    threads: int = 1,
) -> Iterator[MakespanRow]:
    """Simulate every heuristic and rule on every scenario of every file.

    Parameters
    ----------
    paths : iterable of Path
        Job set files.
    heuristics : sequence of str
        ``R-LIST-0``, ``R-LIST-1``, ``R-LIST-<m>``, ``R-LIST-Q``, ``R-SHELF-B``, ``R-SHELF-NB``.
    rules : sequence of str
        Keys of `rebat.policies.queue_order.PRIORITY_RULES`.
    reservations : {'paper', 'easy_head', 'stale'}
        See `rebat.models.resilient.RESERVATIONS`.
    seed : int
        Seed of the rule RANDOM.
    threads : int
        Number of threads. It does not change the result.

    Yields
    ------
    MakespanRow
        In the order of files, scenarios, heuristics and rules.
    """
    resilient.check_reservations(reservations)
    for rule in rules:
        priority_rule(rule)
    chosen = tuple(resilient.heuristic(name) for name in heuristics)
    upper = tuple(rule.upper() for rule in rules)
    return _rows(paths, _Campaign(chosen, upper, reservations, seed, threads))


class _Campaign(NamedTuple):
    """The simulations to run for each file. All names have been checked."""

    heuristics: tuple[resilient.Heuristic, ...]
    rules: tuple[str, ...]
    reservations: str
    seed: int
    threads: int


def _rows(paths: Iterable[Path], campaign: _Campaign) -> Iterator[MakespanRow]:
    seen: dict[str, Path] = {}
    for path in paths:
        jobs = read_job_set(path)
        if jobs.id in seen:
            problem = f"set {jobs.id!r} is already in {seen[jobs.id]}"
            raise InputError(problem, str(path), "one file per set")
        seen[jobs.id] = path
        try:
            yield from _play(jobs, campaign)
        except InputError as error:
            raise error.at(str(path)) from None


def _play(jobs: MakespanSet, campaign: _Campaign) -> Iterator[MakespanRow]:
    """Yield the rows of a file, simulating all scenarios of a heuristic and rule together."""
    times, sizes, failures, n_procs = jobs.times, jobs.sizes, jobs.failures, jobs.n_procs
    rank = {
        rule: ranks(rule, times, sizes, n_procs=n_procs, seed=campaign.seed)
        for rule in campaign.rules
    }
    columns = {
        (which.name, rule): resilient.makespans(
            which,
            times,
            sizes,
            rank[rule],
            failures,
            n_procs=n_procs,
            reservations=campaign.reservations,
            threads=campaign.threads,
        ).tolist()
        for which in campaign.heuristics
        for rule in campaign.rules
    }
    for scenario, bound in enumerate(lower_bounds(times, sizes, failures, n_procs)):
        for (name, rule), column in columns.items():
            yield MakespanRow(jobs.id, scenario, name, rule, column[scenario], bound)


def _checked(jobs: MakespanSet) -> MakespanSet:
    """Check that the values of a set are consistent, and return it. Otherwise, raise InputError."""
    n = len(jobs.jobs)
    if not jobs.jobs:
        raise InputError("has no jobs", "$.jobs", "at least one job")
    if jobs.n is not None and jobs.n != n:
        raise InputError(f"n is {jobs.n}", "$.n", f"{n}, the number of jobs")
    if jobs.verif:
        raise InputError(f"verif is {jobs.verif}", "$.verif", "0: add the cost to the times")
    for index, job in enumerate(jobs.jobs):
        if job.p > jobs.n_procs:
            raise InputError(
                f"needs {job.p} processors", f"$.jobs[{index}].p", f"1 to {jobs.n_procs}"
            )
    for index, scenario in enumerate(jobs.scenarios):
        if len(scenario.f) != n:
            problem = f"contains {len(scenario.f)} failure counts"
            raise InputError(problem, f"$.scenarios[{index}].f", f"{n} numbers, one per job")
    return jobs


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json")
