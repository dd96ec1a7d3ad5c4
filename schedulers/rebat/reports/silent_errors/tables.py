# SPDX-License-Identifier: Apache-2.0
"""Table 1 of RR-9296, and its figures as numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rebat.models.resilient import HEURISTICS
from rebat.reports.parts import Table
from rebat.reports.silent_errors.evidence import (
    BEST,
    LISTS,
    STALE,
    TRUE,
    Cell,
    Evidence,
    Points,
    best_over_q,
)
from rebat.reports.silent_errors.published import PRINTED, PRINTED_FAILURES

_UNIT = "Unit: makespan / lower bound"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"


def synthetic_tables(evidence: Evidence, source: str) -> Iterator[Table]:
    n_procs, qs = evidence.over_q(source)
    _, procs = evidence.over_procs(source)
    over_q = evidence.basis(source, n_procs=n_procs)
    yield Table(
        "cf. Figure 4(a)",
        f"{source}: Algorithm 1 and stale reservations, {BEST}, P = {n_procs:,}",
        ["q-bar", "R-LIST-0", "R-LIST-1", "stale", "R-LIST-Q", "stale", "Q over 0", "stale",
         "paper"],
        _against(evidence, source),
        f"{_UNIT}; Q over 0 is R-LIST-Q over R-LIST-0, minus 1. {over_q}.",
    )  # fmt: skip
    for rule in ("LPT", "LA"):
        yield Table(
            "Figure 4(a)",
            f"{source}: mean normalised makespan, {rule}, P = {n_procs:,}",
            ["q-bar", *HEURISTICS],
            _by_x(qs, [evidence.line_over_q(source, h, rule) for h in HEURISTICS]),
            f"{_UNIT}. {over_q}.",
        )
    if len(procs) > 1:
        for rule in ("LPT", "LA"):
            yield Table(
                "Figure 4(b)",
                f"{source}: mean normalised makespan, {rule}, "
                f"q-bar = {evidence.over_procs(source)[0]:g}",
                ["P", *HEURISTICS, "R-LIST-1 stale", "R-LIST-Q stale"],
                _by_x(
                    procs,
                    [evidence.line_over_procs(source, h, rule) for h in HEURISTICS]
                    + [evidence.line_over_procs(source, h, rule, STALE) for h in LISTS[1:]],
                ),
                f"{_UNIT}. {evidence.basis(source, q=evidence.over_procs(source)[0])}.",
            )


def _against(evidence: Evidence, source: str) -> list[list[str]]:
    """A row per q-bar: each list with the better of LPT and LA, and Q over 0 with either kind."""
    zero = best_over_q(evidence, source, "R-LIST-0", TRUE)
    lines = [
        best_over_q(evidence, source, name, kept) for name in LISTS[1:] for kept in (TRUE, STALE)
    ]
    table = []
    for q, base in zero.items():
        above = [line[q] / base - 1 if q in line else None for line in lines[2:]]
        means = [_text(line.get(q)) for line in lines]
        printed = "+26 %" if q == 0.5 else ""  # section 5.2
        table.append([f"{q:g}", _text(base), *means, *map(_percent, above), printed])
    return table


def _by_x(xs: Sequence[float], lines: Sequence[Points]) -> list[list[str]]:
    return [[f"{x:g}", *(_text(dict(line).get(x)) for line in lines)] for x in xs]


def table_1(evidence: Evidence, source: str) -> Table:
    """Statistics over the days of each day's mean over the scenarios."""
    n_procs, qs = evidence.over_q(source)
    table = []
    for q in qs:
        for heuristic in HEURISTICS:
            days = evidence.rows(Cell(source, n_procs, q, TRUE, heuristic, "LPT")).values()
            if not days:
                continue
            means = [day.mean for day in days]
            ours = (statistics.fmean(means), statistics.pstdev(means), max(means))
            printed = PRINTED.get((q, heuristic), (None, None, None))
            stale = None
            if heuristic in LISTS[1:]:
                stale = evidence.mean(Cell(source, n_procs, q, STALE, heuristic, "LPT"))
            failures = statistics.fmean(day.failures for day in days)
            paper = PRINTED_FAILURES.get(q)
            row = [f"{q:g}", heuristic, f"{failures:.1f}", "" if paper is None else f"{paper:.1f}"]
            for mine, theirs in zip(ours, printed, strict=True):
                row += [_text(mine), _text(theirs)]
            table.append([*row, _text(stale)])
    columns = [
        "q-bar",
        "heuristic",
        "failed attempts",
        "paper",
        "average",
        "paper",
        "deviation",
        "paper",
    ]
    columns += ["maximum", "paper", "average, stale"]
    title = f"{source}: LPT, P = {n_procs:,}; the paper's: June 2019"
    note = (
        f"{_UNIT}, but for failed attempts, which are of a whole job set. Average, deviation and "
        f"maximum are over the days. {evidence.basis(source)}; the paper's: n = 30 x 1,000."
    )
    return Table("Table 1", title, columns, table, note)
