# SPDX-License-Identifier: Apache-2.0
"""The makespans of a campaign, by source of the job sets, and sweeps over a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.runs_index import Index, Row
from rebat.results.reading import read_results
from rebat.results.resampling import Floats, Weights

Points = Sequence[tuple[float, float]]
Line = Mapping[float, float]
"""Failure probability, or number of processors -> mean."""

Sets = Mapping[Any, float]
"""Job set -> value."""

LISTS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q")
SHELVES = ("R-SHELF-B", "R-SHELF-NB")
TRUE, STALE = "paper", "stale"
KINDS = ((TRUE, "Algorithm 1"), (STALE, "stale reservations"))
"""The two kinds of reservations, and their names in reports."""

BEST = "with the better of LPT and LA"


class Cell(NamedTuple):
    """The key of a mean: source of the job sets, number of processors, and further parameters."""

    source: str
    n_procs: int
    q: float
    reservations: str
    heuristic: str
    rule: str


_COLUMNS = (*Cell._fields, "set", "scenarios", "metric", "value", "key")


def span(counts: Iterable[float]) -> str:
    """Format the smallest and the largest of several numbers, or a single number.

    >>> span([30, 30]), span([9, 1000])
    ('30', '9 to 1,000')
    """
    results = sorted(set(counts))
    return " to ".join(f"{count:,.0f}" for count in dict.fromkeys((results[0], results[-1])))


class JobSets(Index[str, Cell]):
    """Results by source, cell and job set. If several grids have a cell, the first grid counts.

    Metrics are ``mean`` (mean normalised makespan), ``failures`` (mean number of failed attempts)
    and ``scenarios`` (number of failure scenarios).

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    """

    def __init__(self, path: Path) -> None:
        self.jobs: dict[tuple[str, str], int] = {}
        """Number of jobs of each job set, by source and name."""
        self._resamples: dict[str, _Resamples] = {}
        super().__init__(self._rows(path))

    def _rows(self, path: Path) -> Iterator[Row[str, Cell]]:
        failures: dict[str, float] = {}
        for row in read_results(path, "silent-errors", _COLUMNS):
            source, n_procs, *others, name, scenarios, metric, value, key = row
            if metric == "failures":
                failures[key] = value
            elif metric == "jobs":
                self.jobs[source, name] = int(value)
            elif metric == "makespan_ratio_mean":
                cell = Cell(source, int(n_procs), *others)
                yield source, cell, "mean", "", name, value
                yield source, cell, "failures", "", name, failures[key]
                yield source, cell, "scenarios", "", name, scenarios

    def rules(self, source: str) -> list[str]:
        """Return the rules with results."""
        return list(dict.fromkeys(cell.rule for cell in self.cases(source)))

    def of(self, cell: Cell, metric: str = "mean") -> Sets:
        """Return the values by job set.

        Heuristics without reservations have the same values as with the reservations `TRUE`.
        """
        results = self.values(cell.source, cell, metric)
        if not results and cell.heuristic in ("R-LIST-0", *SHELVES):
            results = self.values(cell.source, cell._replace(reservations=TRUE), metric)
        return results

    def mean_of(self, cell: Cell) -> float | None:
        """Return the mean over the job sets; None without results."""
        values = self.of(cell)
        return fmean(values.values()) if values else None

    def weights(self, source: str) -> Weights:
        """Return the resamples of the job sets of a source."""
        return self._resamples_of(source).weights

    def weighted(self, row: int) -> ResampledSets:
        """Return the same results, with job sets weighted by a row of `weights`."""
        return ResampledSets(self, row)

    def means(self, cell: Cell) -> Floats | None:
        """Return the mean of a cell for each row of `weights`; None without results."""
        values = self.of(cell)
        return self._resamples_of(cell.source).means(cell, values) if values else None

    def names(self, source: str) -> list[str]:
        """Return the names of a source's job sets."""
        return self._resamples_of(source).names

    def _resamples_of(self, source: str) -> _Resamples:
        if source not in self._resamples:
            self._resamples[source] = _Resamples([name for at, name in self.jobs if at == source])
        return self._resamples[source]

    def basis(self, source: str, *, n_procs: int | None = None, q: float | None = None) -> str:
        """Return the numbers of job sets and failure scenarios of the means, as text."""
        scenarios = [
            self.values(source, cell, "scenarios")
            for cell in self.cases(source)
            if n_procs in (None, cell.n_procs) and q in (None, cell.q)
        ]
        n_sets = span(map(len, scenarios))
        n_scenarios = span(number for sets in scenarios for number in sets.values())
        return f"n = {n_sets} job sets x {n_scenarios} failure scenarios each"


class _Resamples:
    """The weights of a source's job sets, and the weighted means of its cells."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.weights = names, Weights(len(names))
        self._means: dict[Cell, Floats] = {}

    def means(self, cell: Cell, values: Sets) -> Floats:
        if cell not in self._means:
            columns = [i for i, name in enumerate(self.names) if name in values]
            rows = self.weights.rows[:, columns]
            numbers = np.array([values[self.names[i]] for i in columns])
            self._means[cell] = rows @ numbers / np.maximum(rows.sum(axis=1), 1)
        return self._means[cell]


class ResampledSets(JobSets):
    """The results of `JobSets` with weighted job sets: a row of `Weights`.

    A job set of weight 2 counts as two job sets.
    """

    def __init__(self, sets: JobSets, row: int) -> None:
        self._sets, self._row = sets, row

    def rules(self, source: str) -> list[str]:
        """Return the rules with results."""
        return self._sets.rules(source)

    def mean_of(self, cell: Cell) -> float | None:
        """Return the weighted mean over the job sets; None without results."""
        means = self._sets.means(cell)
        return None if means is None else float(means[self._row])

    def of(self, cell: Cell, metric: str = "mean") -> Sets:
        """Return values by job set, those of weight 2 twice."""
        values = self._sets.of(cell, metric)
        weights = self._sets.weights(cell.source).rows[self._row]
        names = self._sets.names(cell.source)
        return {
            (name, copy): values[name]
            for name, weight in zip(names, weights, strict=True)
            for copy in range(int(weight))
            if name in values
        }


class Sweep(NamedTuple):
    """Means of a source for several values of one parameter, ``q`` or ``n_procs``.

    ``axis`` names this parameter, ``xs`` contains its values. ``fixed`` is the value of the other
    parameter.
    """

    sets: JobSets
    source: str
    axis: str
    fixed: float
    xs: Sequence[float]

    @property
    def basis(self) -> str:
        """The numbers of job sets and failure scenarios of the means, as text."""
        if self.axis == "q":
            return self.sets.basis(self.source, n_procs=int(self.fixed))
        return self.sets.basis(self.source, q=self.fixed)

    def line(
        self, heuristic: str, rule: str = "LPT", reservations: str = TRUE
    ) -> dict[float, float]:
        """Return the means over scenarios and job sets, for values with results."""
        results = {}
        for x in self.xs:
            q, procs = (x, self.fixed) if self.axis == "q" else (self.fixed, x)
            cell = Cell(self.source, int(procs), q, reservations, heuristic, rule)
            if (mean := self.sets.mean_of(cell)) is not None:
                results[x] = mean
        return results

    def best(self, heuristic: str, reservations: str = TRUE) -> dict[float, float]:
        """Return the means with the better of LPT and LA, as in Figure 4."""
        lpt, la = (self.line(heuristic, rule, reservations) for rule in ("LPT", "LA"))
        return {x: min(lpt[x], la[x]) for x in lpt if x in la}

    def all_best(
        self, reservations: str = TRUE, heuristics: Sequence[str] = HEURISTICS
    ) -> dict[str, dict[float, float]]:
        """Return `best` of each heuristic; empty if one was not simulated."""
        results = {name: self.best(name, reservations) for name in heuristics}
        return results if all(results.values()) else {}


def over_q(sets: JobSets, source: str) -> Sweep:
    """Return the sweep of Figure 2, for the number of processors with most probabilities."""
    results: dict[int, set[float]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.n_procs, set()).add(cell.q)
    n_procs = max(results, key=lambda p: (len(results[p]), -p))
    return Sweep(sets, source, "q", n_procs, sorted(results[n_procs]))


def over_procs(sets: JobSets, source: str) -> Sweep:
    """Return the sweep of Figure 3, for the probability with results at the most sizes."""
    results: dict[float, set[int]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.q, set()).add(cell.n_procs)
    q = max(results, key=lambda value: (len(results[value]), -value))
    return Sweep(sets, source, "n_procs", q, sorted(results[q]))
