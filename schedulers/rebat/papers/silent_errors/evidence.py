# SPDX-License-Identifier: Apache-2.0
"""The makespans of a campaign, asked the questions that a report asks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.results.reading import read_results

Points = Sequence[tuple[float, float]]

LISTS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q")
SHELVES = ("R-SHELF-B", "R-SHELF-NB")
TRUE, STALE = "paper", "stale"
KINDS = ((TRUE, "Algorithm 1"), (STALE, "stale reservations"))
"""The two kinds of reservations, and what a report calls them."""


class Cell(NamedTuple):
    """Which mean: of what sets, on how many processors, and so on."""

    source: str
    n_procs: int
    q: float
    reservations: str
    heuristic: str
    rule: str


_COLUMNS = (*Cell._fields, "set", "scenarios", "metric", "value", "key")


class Played(NamedTuple):
    """A heuristic with a rule on one job set: its normalised makespan over the failure scenarios,
    and how many attempts failed; both are means over so many ``scenarios``."""

    mean: float
    failures: float
    scenarios: int


def span(counts: Iterable[int]) -> str:
    """One number, or the least and the greatest of several.

    >>> span([30, 30]), span([9, 1000])
    ('30', '9 to 1,000')
    """
    found = sorted(set(counts))
    return " to ".join(f"{count:,}" for count in dict.fromkeys((found[0], found[-1])))


class Evidence:
    """Results by cell and job set; where grids share a cell, the first one in the file counts.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    """

    def __init__(self, path: Path) -> None:
        self.cells: dict[Cell, dict[str, Played]] = {}
        self.jobs: dict[tuple[str, str], int] = {}
        """How many each job set has, by source and name."""
        failures: dict[str, float] = {}
        for row in read_results(path, "silent-errors", _COLUMNS):
            *about, job_set, scenarios, metric, value, key = row
            if metric == "failures":
                failures[key] = value
            elif metric == "jobs":
                self.jobs[about[0], job_set] = int(value)
            elif metric == "makespan_ratio_mean":
                source, n_procs, *others = about
                cell = Cell(source, int(n_procs), *others)
                sets = self.cells.setdefault(cell, {})
                sets.setdefault(job_set, Played(value, failures[key], int(scenarios)))

    @property
    def sources(self) -> set[str]:
        return {cell.source for cell in self.cells}

    def rules(self, source: str) -> list[str]:
        return list(dict.fromkeys(cell.rule for cell in self.cells if cell.source == source))

    def rows(self, cell: Cell) -> dict[str, Played]:
        """By job set; heuristics that give no reservations are the same with either kind."""
        if cell.heuristic in ("R-LIST-0", *SHELVES) and cell not in self.cells:
            cell = cell._replace(reservations=TRUE)
        return self.cells.get(cell, {})

    def mean(self, cell: Cell) -> float | None:
        """Of the normalised makespan, over scenarios and job sets; None where nothing ran."""
        means = [row.mean for row in self.rows(cell).values()]
        return statistics.fmean(means) if means else None

    def basis(self, source: str, *, n_procs: int | None = None, q: float | None = None) -> str:
        """On how many job sets and failure scenarios means rest, in words."""
        cells = [
            sets
            for cell, sets in self.cells.items()
            if cell.source == source and n_procs in (None, cell.n_procs) and q in (None, cell.q)
        ]
        n_sets = span(len(sets) for sets in cells)
        scenarios = span(row.scenarios for sets in cells for row in sets.values())
        return f"n = {n_sets} job sets x {scenarios} failure scenarios each"

    def over_q(self, source: str) -> tuple[int, list[float]]:
        """Figure 2's axis: the number of processors with most failure probabilities, and these."""
        by_procs: dict[int, set[float]] = {}
        for cell in self.cells:
            if cell.source == source:
                by_procs.setdefault(cell.n_procs, set()).add(cell.q)
        n_procs = max(by_procs, key=lambda p: (len(by_procs[p]), -p))
        return n_procs, sorted(by_procs[n_procs])

    def over_procs(self, source: str) -> tuple[float, list[int]]:
        """Figure 3's axis: the failure probability with most numbers of processors, and these."""
        by_q: dict[float, set[int]] = {}
        for cell in self.cells:
            if cell.source == source:
                by_q.setdefault(cell.q, set()).add(cell.n_procs)
        q = max(by_q, key=lambda value: (len(by_q[value]), -value))
        return q, sorted(by_q[q])

    def line_over_q(self, source: str, heuristic: str, rule: str, kept: str = TRUE) -> Points:
        n_procs, qs = self.over_q(source)
        found = [(q, self.mean(Cell(source, n_procs, q, kept, heuristic, rule))) for q in qs]
        return [(q, mean) for q, mean in found if mean is not None]

    def line_over_procs(self, source: str, heuristic: str, rule: str, kept: str = TRUE) -> Points:
        q, procs = self.over_procs(source)
        found = [(p, self.mean(Cell(source, p, q, kept, heuristic, rule))) for p in procs]
        return [(p, mean) for p, mean in found if mean is not None]


BEST = "better of LPT and LA each"


def best_over_q(evidence: Evidence, source: str, heuristic: str, kept: str) -> dict[float, float]:
    """The mean with the better of LPT and LA, as Figure 4 compares heuristics."""
    lpt, la = (dict(evidence.line_over_q(source, heuristic, rule, kept)) for rule in ("LPT", "LA"))
    return {q: min(lpt[q], la[q]) for q in lpt if q in la}
