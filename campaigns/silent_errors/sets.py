# SPDX-License-Identifier: Apache-2.0
"""Mean makespans in a campaign for each source of job sets, and as lines over a parameter.

The intervals of the numbers of claims are computed by resampling job sets (bootstrap).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.numbers import whole
from rebat.models.resilient import HEURISTICS
from rebat.report.claims import Claim
from rebat.report.runs_index import Index, Row
from rebat.results.intervals import Floats, Interval, Weights
from rebat.runs.labels import read_results


class PrintedRatio(NamedTuple):
    """Published ratios of a heuristic at one failure probability, over the 30 days of June 2019."""

    average: float
    deviation: float
    maximum: float


LEAST_JOBS = 66
"""Minimum number of jobs on the paper's days: June 2019 has 66 to 277 jobs a day (section 5.1)."""

PRINTED_FAILURES = {0.0: 0.0, 0.05: 15.2913, 0.1: 254.453}
"""Average number of failures by average failure probability (Table 1)."""

_TABLE_1: dict[float, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    # Table 1 (LPT): average ratio, standard deviation, maximum ratio, by heuristic.
    0.0: (
        (1.067, 1.051, 1.051, 1.407, 1.441),
        (8.78e-2, 8.19e-2, 8.23e-2, 1.29e-1, 1.45e-1),
        (1.425, 1.425, 1.425, 1.633, 1.760),
    ),
    0.05: (
        (1.031, 1.049, 1.061, 1.129, 1.141),
        (6.72e-2, 6.87e-2, 7.76e-2, 1.30e-1, 1.40e-1),
        (1.278, 1.292, 1.292, 1.489, 1.510),
    ),
    0.1: (
        (1.016, 1.025, 1.028, 1.071, 1.073),
        (4.66e-2, 4.54e-2, 4.97e-2, 1.03e-1, 1.06e-1),
        (1.249, 1.224, 1.245, 1.398, 1.413),
    ),
}

PRINTED = {
    (q, heuristic): PrintedRatio(*(column[place] for column in columns))
    for q, columns in _TABLE_1.items()
    for place, heuristic in enumerate(HEURISTICS)
}

ABOVE_OVER_Q = {"R-LIST-Q": [(0.5, 26.0)], "R-SHELF-NB": [(0.9, 15.0)]}
"""Figure 4(a), section 5.2: (average failure probability, % above R-LIST-0)."""

ABOVE_OVER_PROCS = {"R-LIST-Q": [(15_000.0, 23.0)]}
"""Figure 4(b), section 5.2: (number of processors, % above R-LIST-0)."""


Points = Sequence[tuple[float, float]]
Line = Mapping[float, float]
"""Means by failure probability or by number of processors."""

Sets = Mapping[Any, float]
"""Values by job set."""

LISTS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q")
SHELVES = ("R-SHELF-B", "R-SHELF-NB")
TRUE, STALE = "paper", "stale"
KINDS = ((TRUE, "Algorithm 1"), (STALE, "stale reservations"))
"""The two kinds of reservations, and their names in reports."""

BEST = "with the better of LPT and LA"


class Cell(NamedTuple):
    """The key of a mean: source of the job sets, number of processors, and other parameters."""

    source: str
    n_procs: int
    q: float
    reservations: str
    heuristic: str
    rule: str


class LineKey(NamedTuple):
    """The key of a line of means over a parameter.

    The line has a cell for each value in ``xs`` of the parameter (``q`` or ``n_procs``).
    """

    source: str
    axis: str
    fixed: float
    xs: tuple[float, ...]
    reservations: str
    heuristic: str
    rule: str

    def cells(self) -> Iterator[Cell]:
        """Yield the cell of each value."""
        for x in self.xs:
            q, procs = (x, self.fixed) if self.axis == "q" else (self.fixed, x)
            yield Cell(self.source, int(procs), q, *self[-3:])


_COLUMNS = (*Cell._fields, "set", "scenarios", "metric", "value", "key")


def span(counts: Iterable[float]) -> str:
    """Format the smallest and the largest of several numbers, or a single number.

    >>> span([30, 30]), span([9, 1000])
    ('30', '9 to 1,000')
    """
    results = sorted(set(counts))
    return whole.between(results[0], results[-1])


class JobSets(Index[str, Cell]):
    """Results by source, cell and job set. If several grids have a cell, the first is used.

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
        self._rules: dict[str, list[str]] = {}
        self._means: dict[Cell, list[float] | None] = {}
        self._lines: dict[LineKey, tuple[list[float], list[tuple[float, ...]]]] = {}
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
        if source not in self._rules:
            self._rules[source] = list(dict.fromkeys(cell.rule for cell in self.cases(source)))
        return self._rules[source]

    def of(self, cell: Cell, metric: str = "mean") -> Sets:
        """Return the values by job set.

        Heuristics without reservations have results only for the kind of reservations `TRUE`. These
        results are used for both kinds.
        """
        results = self.values(cell.source, cell, metric)
        if not results and cell.heuristic in ("R-LIST-0", *SHELVES):
            results = self.values(cell.source, cell._replace(reservations=TRUE), metric)
        return results

    def mean_of(self, cell: Cell) -> float | None:
        """Return the mean over the job sets. Return None if there are no results."""
        values = self.of(cell)
        return fmean(values.values()) if values else None

    def line(self, key: LineKey) -> Line:
        """Return the mean at each value of a line's parameter that has results."""
        means = zip(key.xs, map(self.mean_of, key.cells()), strict=True)
        return {x: mean for x, mean in means if mean is not None}

    def weights(self, source: str) -> Weights:
        """Return the resamples of a source's job sets as weights."""
        return self._resamples_of(source).weights

    def weighted(self, row: int) -> ResampledSets:
        """Return the same results, with job sets weighted by a row of `weights`."""
        return ResampledSets(self, row)

    def means(self, cell: Cell) -> list[float] | None:
        """Return the mean of a cell for each row of `weights`.

        Return None if there are no results.
        """
        if cell not in self._means:
            values = self.of(cell)
            resamples = self._resamples_of(cell.source)
            self._means[cell] = resamples.means(values).tolist() if values else None
        return self._means[cell]

    def lines(self, key: LineKey) -> tuple[list[float], list[tuple[float, ...]]]:
        """Return the parameter values with results, and their means per row of `weights`."""
        if key not in self._lines:
            columns = {x: self.means(cell) for x, cell in zip(key.xs, key.cells(), strict=True)}
            means = {x: column for x, column in columns.items() if column is not None}
            self._lines[key] = list(means), list(zip(*means.values(), strict=True))
        return self._lines[key]

    def copies(self, source: str, row: int) -> list[tuple[str, int]]:
        """Return the copies of job sets in a resample. ``row`` is its row in `weights`.

        A copy consists of the name of the job set and the index of the copy, which counts from 0.
        """
        return self._resamples_of(source).copies(row)

    def _resamples_of(self, source: str) -> _Resamples:
        if source not in self._resamples:
            self._resamples[source] = _Resamples([name for at, name in self.jobs if at == source])
        return self._resamples[source]

    def basis(self, source: str, *, n_procs: int | None = None, q: float | None = None) -> str:
        """Return a text with the numbers of job sets and failure scenarios in the means."""
        scenarios = [
            self.values(source, cell, "scenarios")
            for cell in self.cases(source)
            if n_procs in (None, cell.n_procs) and q in (None, cell.q)
        ]
        n_sets = span(map(len, scenarios))
        n_scenarios = span(number for sets in scenarios for number in sets.values())
        return f"n = {n_sets} job sets x {n_scenarios} failure scenarios each"


class _Resamples:
    """The weights of a source's job sets, and weighted means."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.weights = names, Weights(len(names))
        self._copies: dict[int, list[tuple[str, int]]] = {}

    def means(self, values: Sets) -> Floats:
        columns = [i for i, name in enumerate(self.names) if name in values]
        rows = self.weights.rows[:, columns]
        numbers = np.array([values[self.names[i]] for i in columns])
        means: Floats = rows @ numbers / np.maximum(rows.sum(axis=1), 1)
        return means

    def copies(self, row: int) -> list[tuple[str, int]]:
        if row not in self._copies:
            weights = zip(self.names, self.weights.rows[row].tolist(), strict=True)
            self._copies[row] = [(name, n) for name, w in weights for n in range(int(w))]
        return self._copies[row]


class ResampledSets(JobSets):
    """The results of `JobSets` if job sets have weights, which are a row of `Weights`.

    A job set of weight 2 counts as two job sets.
    """

    def __init__(self, sets: JobSets, row: int) -> None:
        self._sets, self._row = sets, row

    def rules(self, source: str) -> list[str]:
        """Return the rules with results."""
        return self._sets.rules(source)

    def mean_of(self, cell: Cell) -> float | None:
        """Return the weighted mean over the job sets. Return None if there are no results."""
        means = self._sets.means(cell)
        return None if means is None else means[self._row]

    def line(self, key: LineKey) -> Line:
        """Return the weighted mean at each value of a line's parameter that has results."""
        xs, means = self._sets.lines(key)
        return dict(zip(xs, means[self._row], strict=True)) if xs else {}

    def of(self, cell: Cell, metric: str = "mean") -> Sets:
        """Return the values by job set. A job set of weight 2 appears twice."""
        values = self._sets.of(cell, metric)
        copies = self._sets.copies(cell.source, self._row)
        return {copy: values[copy[0]] for copy in copies if copy[0] in values}


class Sweep(NamedTuple):
    """Means of a source for several values of one parameter, ``q`` or ``n_procs``.

    ``axis`` names this parameter, ``xs`` contains its values. ``fixed`` is the value of the other
    parameter.
    """

    sets: JobSets
    source: str
    axis: str
    fixed: float
    xs: tuple[float, ...]

    @property
    def basis(self) -> str:
        """A text with the numbers of job sets and failure scenarios in the means."""
        if self.axis == "q":
            return self.sets.basis(self.source, n_procs=int(self.fixed))
        return self.sets.basis(self.source, q=self.fixed)

    def line(self, heuristic: str, rule: str = "LPT", reservations: str = TRUE) -> Line:
        """Return the mean over scenarios and job sets at each parameter value with results."""
        return self.sets.line(LineKey(*self[1:], reservations, heuristic, rule))

    def best(self, heuristic: str, reservations: str = TRUE) -> dict[float, float]:
        """Return the means with the better of LPT and LA, as in Figure 4."""
        lpt, la = (self.line(heuristic, rule, reservations) for rule in ("LPT", "LA"))
        return {x: min(lpt[x], la[x]) for x in lpt if x in la}

    def all_best(
        self, reservations: str = TRUE, heuristics: Sequence[str] = HEURISTICS
    ) -> dict[str, dict[float, float]]:
        """Return `best` for each heuristic. Return an empty dict if one was not simulated."""
        results = {name: self.best(name, reservations) for name in heuristics}
        return results if all(results.values()) else {}


def over_q(sets: JobSets, source: str) -> Sweep:
    """Return the sweep of Figure 2: over the failure probability, for one number of processors.

    The sweep uses the number of processors that has results for the most probabilities.
    """
    results: dict[int, set[float]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.n_procs, set()).add(cell.q)
    n_procs = max(results, key=lambda p: (len(results[p]), -p))
    return Sweep(sets, source, "q", n_procs, tuple(sorted(results[n_procs])))


def over_procs(sets: JobSets, source: str) -> Sweep:
    """Return the sweep of Figure 3: over the number of processors, for one failure probability.

    The sweep uses the probability that has results for the most numbers of processors.
    """
    results: dict[float, set[int]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.q, set()).add(cell.n_procs)
    q = max(results, key=lambda value: (len(results[value]), -value))
    return Sweep(sets, source, "n_procs", q, tuple(sorted(results[q])))


def resampled(claim: Claim) -> Claim:
    """Return a claim whose number has an interval, computed from resampled job sets."""

    def number(on: Any) -> Interval | None:
        def statistic(row: int) -> float | None:
            value = claim.number(on.weighted(row))
            return value.mean if isinstance(value, Interval) else value

        estimate: Interval | None = on.weights.interval(statistic)
        return estimate

    return msgspec.structs.replace(claim, number=number)
