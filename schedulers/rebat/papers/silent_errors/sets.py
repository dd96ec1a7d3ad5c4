# SPDX-License-Identifier: Apache-2.0
"""The makespans of a campaign by source of job sets: over failure probabilities, over numbers of
processors, over job sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.runs_index import Index, Row
from rebat.results.reading import read_results

Points = Sequence[tuple[float, float]]
Line = Mapping[float, float]
"""The mean at each failure probability, or on each number of processors."""

Sets = Mapping[Any, float]
"""A value per job set."""

LISTS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q")
SHELVES = ("R-SHELF-B", "R-SHELF-NB")
TRUE, STALE = "paper", "stale"
KINDS = ((TRUE, "Algorithm 1"), (STALE, "stale reservations"))
"""The two kinds of reservations, and what a report calls them."""

BEST = "better of LPT and LA each"


class Cell(NamedTuple):
    """Which mean: of what sets, on how many processors, and so on."""

    source: str
    n_procs: int
    q: float
    reservations: str
    heuristic: str
    rule: str


_COLUMNS = (*Cell._fields, "set", "scenarios", "metric", "value", "key")


def span(counts: Iterable[float]) -> str:
    """One number, or the least and the greatest of several.

    >>> span([30, 30]), span([9, 1000])
    ('30', '9 to 1,000')
    """
    results = sorted(set(counts))
    return " to ".join(f"{count:,.0f}" for count in dict.fromkeys((results[0], results[-1])))


class JobSets(Index[str, Cell]):
    """Results by source, cell and job set; where grids share a cell, the first in the file counts.

    Its metrics are ``mean``, the normalised makespan over the failure ``scenarios``, and
    ``failures``, how many attempts failed in the mean.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    """

    def __init__(self, path: Path) -> None:
        self.jobs: dict[tuple[str, str], int] = {}
        """How many each job set has, by source and name."""
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
        """Those that were played."""
        return list(dict.fromkeys(cell.rule for cell in self.cases(source)))

    def of(self, cell: Cell, metric: str = "mean") -> Sets:
        """By job set; heuristics that give no reservations are the same with either kind."""
        results = self.values(cell.source, cell, metric)
        if not results and cell.heuristic in ("R-LIST-0", *SHELVES):
            results = self.values(cell.source, cell._replace(reservations=TRUE), metric)
        return results

    def basis(self, source: str, *, n_procs: int | None = None, q: float | None = None) -> str:
        """On how many job sets and failure scenarios means rest, in words."""
        scenarios = [
            self.values(source, cell, "scenarios")
            for cell in self.cases(source)
            if n_procs in (None, cell.n_procs) and q in (None, cell.q)
        ]
        n_sets = span(map(len, scenarios))
        n_scenarios = span(number for sets in scenarios for number in sets.values())
        return f"n = {n_sets} job sets x {n_scenarios} failure scenarios each"


class Sweep(NamedTuple):
    """Means of a source over one of ``q`` and ``n_procs``, at a fixed value of the other.

    ``xs`` are the values of that axis.
    """

    sets: JobSets
    source: str
    axis: str
    fixed: float
    xs: Sequence[float]

    @property
    def basis(self) -> str:
        """On how much its means rest."""
        if self.axis == "q":
            return self.sets.basis(self.source, n_procs=int(self.fixed))
        return self.sets.basis(self.source, q=self.fixed)

    def line(
        self, heuristic: str, rule: str = "LPT", reservations: str = TRUE
    ) -> dict[float, float]:
        """The mean over scenarios and job sets, where something was played."""
        results = {}
        for x in self.xs:
            q, procs = (x, self.fixed) if self.axis == "q" else (self.fixed, x)
            values = self.sets.of(Cell(self.source, int(procs), q, reservations, heuristic, rule))
            if values:
                results[x] = fmean(values.values())
        return results

    def best(self, heuristic: str, reservations: str = TRUE) -> dict[float, float]:
        """The mean with the better of LPT and LA, as Figure 4 compares heuristics."""
        lpt, la = (self.line(heuristic, rule, reservations) for rule in ("LPT", "LA"))
        return {x: min(lpt[x], la[x]) for x in lpt if x in la}

    def all_best(
        self, reservations: str = TRUE, heuristics: Sequence[str] = HEURISTICS
    ) -> dict[str, dict[float, float]]:
        """By heuristic; none where some was not played."""
        results = {name: self.best(name, reservations) for name in heuristics}
        return results if all(results.values()) else {}


def over_q(sets: JobSets, source: str) -> Sweep:
    """Figure 2's axis: at the number of processors with most failure probabilities."""
    results: dict[int, set[float]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.n_procs, set()).add(cell.q)
    n_procs = max(results, key=lambda p: (len(results[p]), -p))
    return Sweep(sets, source, "q", n_procs, sorted(results[n_procs]))


def over_procs(sets: JobSets, source: str) -> Sweep:
    """Figure 3's axis: at the failure probability with most numbers of processors."""
    results: dict[float, set[int]] = {}
    for cell in sets.cases(source):
        results.setdefault(cell.q, set()).add(cell.n_procs)
    q = max(results, key=lambda value: (len(results[value]), -value))
    return Sweep(sets, source, "n_procs", q, sorted(results[q]))
