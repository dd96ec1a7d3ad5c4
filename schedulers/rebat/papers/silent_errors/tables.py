# SPDX-License-Identifier: Apache-2.0
"""Table 1 of RR-9296, and Figure 4 as tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.parts import Table
from rebat.papers.silent_errors.published import PRINTED, PRINTED_FAILURES
from rebat.papers.silent_errors.sets import (
    BEST,
    LISTS,
    STALE,
    TRUE,
    Cell,
    JobSets,
    Line,
    Sweep,
    over_procs,
    over_q,
)

_UNIT = "Unit: makespan / lower bound"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+z.1%}"


def synthetic_tables(sets: JobSets, source: str) -> Iterator[Table]:
    """Yield Figure 4 as tables."""
    qs, procs = over_q(sets, source), over_procs(sets, source)
    yield Table(
        "cf. Figure 4(a)",
        f"{source}: Algorithm 1 and stale reservations, {BEST}, P = {qs.fixed:,}",
        [
            "q-bar",
            "R-LIST-0",
            "R-LIST-1",
            "stale",
            "R-LIST-Q",
            "stale",
            "Q over 0",
            "stale",
            "paper",
        ],
        _against(qs),
        f"{_UNIT}; the columns Q over 0 are R-LIST-Q / R-LIST-0 - 1. {qs.basis}.",
    )
    for rule in ("LPT", "LA"):
        title = f"{source}: mean normalised makespan, {rule}, P = {qs.fixed:,}"
        lines = [qs.line(h, rule) for h in HEURISTICS]
        rows = _by_x(qs, lines)
        yield Table("Figure 4(a)", title, ["q-bar", *HEURISTICS], rows, f"{_UNIT}. {qs.basis}.")
    if len(procs.xs) > 1:
        for rule in ("LPT", "LA"):
            title = f"{source}: mean normalised makespan, {rule}, q-bar = {procs.fixed:g}"
            lines = [procs.line(h, rule) for h in HEURISTICS]
            lines += [procs.line(h, rule, STALE) for h in LISTS[1:]]
            columns = ["P", *HEURISTICS, "R-LIST-1 stale", "R-LIST-Q stale"]
            rows = _by_x(procs, lines)
            yield Table("Figure 4(b)", title, columns, rows, f"{_UNIT}. {procs.basis}.")


def _against(sweep: Sweep) -> list[list[str]]:
    """Return a row per failure probability.

    The row contains the best means of the list heuristics, and R-LIST-Q / R-LIST-0 - 1.
    """
    lines = [sweep.best(name, reservations) for name in LISTS[1:] for reservations in (TRUE, STALE)]
    table = []
    for q, base in sweep.best("R-LIST-0").items():
        above = [line[q] / base - 1 if q in line else None for line in lines[2:]]
        means = [_text(line.get(q)) for line in lines]
        printed = "+26 %" if q == 0.5 else ""  # section 5.2
        table.append([f"{q:g}", _text(base), *means, *map(_percent, above), printed])
    return table


def _by_x(sweep: Sweep, lines: Sequence[Line]) -> list[list[str]]:
    return [[f"{x:g}", *(_text(line.get(x)) for line in lines)] for x in sweep.xs]


def table_1(sets: JobSets, source: str) -> Table:
    """Return Table 1.

    Its statistics are over days. The value of a day is the mean over its scenarios.
    """
    sweep = over_q(sets, source)
    n_procs = int(sweep.fixed)
    table = []
    for q in sweep.xs:
        for heuristic in HEURISTICS:
            cell = Cell(source, n_procs, q, TRUE, heuristic, "LPT")
            means = [*sets.of(cell).values()]
            if not means:
                continue
            ours = (statistics.fmean(means), statistics.pstdev(means), max(means))
            printed = PRINTED.get((q, heuristic), (None, None, None))
            stale = None
            if heuristic in LISTS[1:]:
                stale = sets.mean(source, cell._replace(reservations=STALE), "mean")
            failures = statistics.fmean(sets.of(cell, "failures").values())
            paper = PRINTED_FAILURES.get(q)
            row = [f"{q:g}", heuristic, f"{failures:.1f}", "" if paper is None else f"{paper:.1f}"]
            for mine, theirs in zip(ours, printed, strict=True):
                row += [_text(mine), _text(theirs)]
            table.append([*row, _text(stale)])
    columns = ["q-bar", "heuristic", "failed attempts", "paper", "average", "paper", "deviation"]
    columns += ["paper", "maximum", "paper", "average, stale"]
    title = f"{source}: LPT, P = {n_procs:,}; paper: June 2019"
    note = (
        f"{_UNIT}; failed attempts are counted over an entire job set. Average, deviation and "
        f"maximum are over the days. {sets.basis(source)}; paper: n = 30 x 1,000."
    )
    return Table("Table 1", title, columns, table, note)
