"""The report of a silent-errors campaign: Figures 2 to 6 and Table 1 of RR-9296, and its claims.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464), Section 5.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import rebat
from rebat.campaign.silent import Row, SilentCampaign, rows, silent_status
from rebat.campaign.store import Store
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.figures.boxes import svg_of
from rebat.figures.canvas import COLOURS, new_figure
from rebat.kernels.resilient import HEURISTICS
from rebat.report.judgements import Judgement
from rebat.report.page import Report, html, markdown
from rebat.report.sections import Picture, Table

Points = Sequence[tuple[float, float]]
_Line = Callable[..., Points]

LISTS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q")
SHELVES = ("R-SHELF-B", "R-SHELF-NB")
TRUE, STALE = "paper", "stale"

STALE_REMARK = (
    "Why two kinds of reservations: Algorithm 1 deletes all reservations and makes them anew at "
    "every completion, but the authors' public program never cancels a reservation, so a job that "
    "failed queues up behind every reservation given before and processors idle that Algorithm 1 "
    "fills. With those stale reservations R-LIST-Q stands some 25 % above R-LIST-0 at q-bar = 0.5, "
    "as the paper's Figure 4(a) has it; with Algorithm 1 as printed it does not. So the published "
    "figures seem to rest on the program, which is no proof: their inputs are not published."
)


class Printed(NamedTuple):
    """A heuristic's numbers at one failure probability: over the 30 days of June 2019."""

    average: float
    deviation: float
    maximum: float


PRINTED_FAILURES = {0.0: 0.0, 0.05: 15.2913, 0.1: 254.453}
"""Table 1, average number of failures by average failure probability."""

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
    (q, heuristic): Printed(*(column[place] for column in columns))
    for q, columns in _TABLE_1.items()
    for place, heuristic in enumerate(HEURISTICS)
}


def write_report(campaign: SilentCampaign, results: Path, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder; gives both paths.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    store = Store(results)
    evidence = Evidence(rows(campaign, store))
    if not evidence.cells:
        raise InputError("no results of this file", str(results), "rebat silent-errors run first")
    synthetic = [name for name in campaign.spec.synthetic if name in evidence.sources]
    days = [name for name in campaign.spec.days if name in evidence.sources]
    report = Report(
        title="Resilient list and shelf scheduling: the evaluation again",
        lead=(
            "A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun: Design and comparison of "
            "resilient scheduling heuristics for parallel jobs, Inria RR-9296, 2020. Section 5, "
            "simulated by rebat: makespans over their lower bounds, averaged over failure "
            "scenarios and job sets. Job sets are drawn or come from other days than the paper's: "
            "compare shapes, not digits."
        ),
        remarks=[STALE_REMARK],
        judgements=[
            *(j for name in synthetic for j in _judge_synthetic(evidence, name)),
            *(j for name in days for j in _judge_days(evidence, name)),
        ],
        tables=[
            *(t for name in synthetic for t in _synthetic_tables(evidence, name)),
            *(_table_1(evidence, name) for name in days),
        ],
        pictures=[
            *(p for name in synthetic for p in _synthetic_pictures(evidence, name)),
            *(p for name in days for p in _day_pictures(evidence, name)),
        ],
        provenance=_provenance(campaign, store),
        subject="job sets",
        figures_note="Points are means over failure scenarios and, in Figures 2 to 4, job sets.",
    )
    paths = [folder / "report.html", folder / "report.md"]
    for path, text in zip(paths, (html(report), markdown(report)), strict=True):
        write_text(path, text)
    return paths


# ---- what there is


class Cell(NamedTuple):
    """Which mean: of what sets, on how many processors, and so on."""

    source: str
    n_procs: int
    q: float
    reservations: str
    heuristic: str
    rule: str


class Evidence:
    """Rows by cell and job set; where grids share a cell, the first one in the file counts."""

    def __init__(self, table: Iterator[Row]) -> None:
        self.cells: dict[Cell, dict[str, Row]] = {}
        for row in table:
            cell = Cell(row.source, row.n_procs, row.q, row.reservations, row.heuristic, row.rule)
            self.cells.setdefault(cell, {}).setdefault(row.set, row)

    @property
    def sources(self) -> set[str]:
        return {cell.source for cell in self.cells}

    def rules(self, source: str) -> list[str]:
        return list(dict.fromkeys(cell.rule for cell in self.cells if cell.source == source))

    def rows(self, cell: Cell) -> dict[str, Row]:
        """By job set; heuristics that give no reservations are the same with either kind."""
        if cell.heuristic in ("R-LIST-0", *SHELVES) and cell not in self.cells:
            cell = cell._replace(reservations=TRUE)
        return self.cells.get(cell, {})

    def mean(self, cell: Cell) -> float | None:
        """Of the normalised makespan, over scenarios and job sets; None where nothing ran."""
        means = [row.mean for row in self.rows(cell).values()]
        return statistics.fmean(means) if means else None

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


# ---- judgements


def _judge_synthetic(evidence: Evidence, source: str) -> Iterator[Judgement]:
    yield from _stale_shape(evidence, source)
    for heuristic in LISTS:
        line = evidence.line_over_q(source, heuristic, "LPT")
        if len(line) > 2:
            peak = max(line, key=lambda point: point[1])[0]
            yield Judgement(
                source,
                f"{heuristic}: normalised makespans first increase with q-bar, then decrease",
                "LPT: the q-bar of the largest mean is neither the first nor the last",
                peak,
                line[0][0] < peak < line[-1][0],
                "section 5.2, Figure 2",
            )
    for heuristics, best in ((LISTS, ("LPT", "LA")), (SHELVES, ("LPT", "SPT"))):
        yield from _best_rules(evidence, source, heuristics, best)
    lpt, la = (dict(evidence.line_over_q(source, "R-LIST-0", rule)) for rule in ("LPT", "LA"))
    if both := [la[q] - lpt[q] for q in la if q in lpt]:
        yield Judgement(
            source, "R-LIST-0: LA performs better than LPT under any q-bar",
            "largest of mean(LA) - mean(LPT) over q-bar, below 0", max(both), max(both) < 0,
            "section 5.2",
        )  # fmt: skip
    if 0.0 in lpt:
        rise = max(lpt.values()) / lpt[0.0] - 1
        yield Judgement(
            source, "R-LIST-0 is little affected by failures",
            "LPT: largest mean over that at q-bar = 0, minus 1, below 0.10", rise, rise < 0.10,
            "less than 10 % (section 5.2)",
        )  # fmt: skip
    yield from _worst(evidence, source)
    yield from _processors(evidence, source)


def _stale_shape(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """What hangs on the kind of reservations, with either kind."""
    zero = _best_over_q(evidence, source, "R-LIST-0", TRUE)
    for kept, words in ((TRUE, "Algorithm 1"), (STALE, "stale reservations")):
        lists = [_best_over_q(evidence, source, h, kept) for h in LISTS[1:]]
        if 0.5 in zero and 0.5 in lists[-1]:
            above = lists[-1][0.5] / zero[0.5] - 1
            yield Judgement(
                source,
                f"R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 ({words})",
                f"{_BEST}: mean(R-LIST-Q) / mean(R-LIST-0) - 1, at least 0.20",
                above,
                above >= 0.20,
                "26 % (section 5.2, Figure 4a)",
            )
        common = [q for q in zero if q > 0 and all(q in line for line in lists)]
        if common:
            least = min(min(line[q] for line in lists) / zero[q] for q in common)
            yield Judgement(
                source,
                f"R-LIST-0 outperforms R-LIST-1 and -Q when jobs can fail ({words})",
                f"{_BEST}: smallest mean(R-LIST-1 or -Q) / mean(R-LIST-0) over q-bar > 0, above 1",
                least,
                least > 1,
                "clearly outperforms the rest (section 5.2)",
            )
        for name in LISTS[1:]:
            line = dict(evidence.line_over_q(source, name, "LPT", kept))
            if 0.0 in line and len(line) > 1:
                rise = max(line.values()) / line[0.0] - 1
                yield Judgement(
                    source,
                    f"{name} is much affected by failures ({words})",
                    "LPT: largest mean over that at q-bar = 0, minus 1, at least 0.20",
                    rise,
                    rise >= 0.20,
                    "20 to 30 % (section 5.2)",
                )


_BEST = "better of LPT and LA each"


def _best_over_q(evidence: Evidence, source: str, heuristic: str, kept: str) -> dict[float, float]:
    """The mean with the better of LPT and LA, as Figure 4 compares heuristics."""
    lpt, la = (dict(evidence.line_over_q(source, heuristic, rule, kept)) for rule in ("LPT", "LA"))
    return {q: min(lpt[q], la[q]) for q in lpt if q in la}


def _worst(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """How bad it gets with good rules; the stale reservations, where they were played."""
    for kept, words in ((TRUE, "Algorithm 1"), (STALE, "stale reservations")):
        lines = [_best_over_q(evidence, source, name, kept) for name in HEURISTICS]
        if all(lines):
            largest = max(max(line.values()) for line in lines)
            yield Judgement(
                source,
                f"no heuristic is more than 40 % above the lower bound ({words})",
                f"{_BEST}: largest mean over heuristics and q-bar, below 1.4",
                largest,
                largest < 1.4,
                "never more than 40 % worse, with good priorities (section 5.2)",
            )
    shelf, zero = (_best_over_q(evidence, source, h, TRUE) for h in ("R-SHELF-NB", "R-LIST-0"))
    if 0.9 in shelf and 0.9 in zero:
        above = shelf[0.9] / zero[0.9] - 1
        yield Judgement(
            source,
            "R-SHELF-NB is far above R-LIST-0 at q-bar = 0.9",
            f"{_BEST}: mean(R-SHELF-NB) / mean(R-LIST-0) - 1, at least 0.10",
            above,
            above >= 0.10,
            "15 % (section 5.2, Figure 4a)",
        )


def _best_rules(
    evidence: Evidence, source: str, heuristics: Sequence[str], best: tuple[str, str]
) -> Iterator[Judgement]:
    for heuristic in heuristics:
        overall = {
            rule: statistics.fmean(y for _, y in line)
            for rule in evidence.rules(source)
            if (line := evidence.line_over_q(source, heuristic, rule))
        }
        others = [mean for rule, mean in overall.items() if rule not in best]
        if others and all(rule in overall for rule in best):
            gap = min(others) - max(overall[rule] for rule in best)
            yield Judgement(
                source, f"{heuristic}: {' and '.join(best)} are the two best rules",
                "means over q-bar: best of the other rules minus the worse of the two, above 0",
                gap, gap > 0, "section 5.2, Figure 2",
            )  # fmt: skip


def _processors(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """Figures 3 and 4(b)."""
    q, procs = evidence.over_procs(source)
    if len(procs) < 3:
        return
    for heuristic in LISTS:
        la, lpt = (
            dict(evidence.line_over_procs(source, heuristic, rule)) for rule in ("LA", "LPT")
        )
        if common := [p for p in la if p in lpt]:
            better = "LPT" if heuristic == "R-LIST-Q" else "LA"
            gaps = [(la[p] - lpt[p]) * (1 if better == "LPT" else -1) for p in common]
            yield Judgement(
                source, f"{heuristic}: {better} is the better of LPT and LA under all P",
                "smallest gap to the other rule over P, above 0", min(gaps), min(gaps) > 0,
                "section 5.2, Figure 3",
            )  # fmt: skip
    line = dict(evidence.line_over_procs(source, "R-LIST-0", "LA"))
    if line:
        spread = max(line.values()) / min(line.values()) - 1
        yield Judgement(
            source, "R-LIST-0 with LA is little affected by the number of processors",
            "largest mean over P divided by the smallest, minus 1, below 0.10", spread,
            spread < 0.10, "less than 10 % (section 5.2, Figure 4b)",
        )  # fmt: skip
    for kept, words in ((TRUE, "Algorithm 1"), (STALE, "stale reservations")):
        wide = evidence.mean(Cell(source, 15_000, q, kept, "R-LIST-Q", "LPT"))
        if wide is not None and 15_000 in line:
            rise = wide / line[15_000] - 1
            yield Judgement(
                source, f"R-LIST-Q is far above R-LIST-0 at P = 15,000 ({words})",
                "mean(R-LIST-Q, LPT) / mean(R-LIST-0, LA) - 1, at least 0.15", rise, rise >= 0.15,
                "23 % (section 5.2, Figure 4b)",
            )  # fmt: skip


def _judge_days(evidence: Evidence, source: str) -> Iterator[Judgement]:
    n_procs, qs = evidence.over_q(source)
    for q in qs:
        means = {
            heuristic: mean
            for heuristic in HEURISTICS
            if (mean := evidence.mean(Cell(source, n_procs, q, TRUE, heuristic, "LPT"))) is not None
        }
        if len(means) < len(HEURISTICS):
            continue
        if q > 0:
            lead = min(mean for name, mean in means.items() if name != "R-LIST-0")
            yield Judgement(
                source, f"R-LIST-0 is the best at q-bar = {q:g}",
                "LPT: best mean of the others minus R-LIST-0's, above 0", lead - means["R-LIST-0"],
                lead > means["R-LIST-0"], "section 5.3, Table 1",
            )  # fmt: skip
        gap = min(means[name] for name in SHELVES) - max(means[name] for name in LISTS)
        yield Judgement(
            source, f"the shelf-based heuristics are the worst at q-bar = {q:g}",
            "LPT: better mean of the shelves minus the worst of the lists, above 0", gap, gap > 0,
            "section 5.3, Table 1",
        )  # fmt: skip
        worst = max(
            row.mean
            for rule in ("LPT", "LA")
            for row in evidence.rows(Cell(source, n_procs, q, TRUE, "R-LIST-0", rule)).values()
        )
        yield Judgement(
            source, f"R-LIST-0 is never more than 50 % above the bound at q-bar = {q:g}",
            "LPT and LA: largest mean of a job set, below 1.5", worst, worst < 1.5, "section 5.3",
        )  # fmt: skip


# ---- tables


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"


def _synthetic_tables(evidence: Evidence, source: str) -> Iterator[Table]:
    n_procs, qs = evidence.over_q(source)
    _, procs = evidence.over_procs(source)
    yield Table(
        "cf. Figure 4(a)",
        f"{source}: Algorithm 1 and stale reservations, {_BEST}, P = {n_procs}",
        ["q-bar", "R-LIST-0", "R-LIST-1", "stale", "R-LIST-Q", "stale", "Q over 0", "stale",
         "paper"],
        _against(evidence, source),
    )  # fmt: skip
    for rule in ("LPT", "LA"):
        yield Table(
            "Figure 4(a)",
            f"{source}: mean normalised makespan, {rule}, P = {n_procs}",
            ["q-bar", *HEURISTICS],
            _by_x(qs, [evidence.line_over_q(source, h, rule) for h in HEURISTICS]),
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
            )


def _against(evidence: Evidence, source: str) -> list[list[str]]:
    """A row per q-bar: each list with the better of LPT and LA, and Q over 0 with either kind."""
    zero = _best_over_q(evidence, source, "R-LIST-0", TRUE)
    lines = [
        _best_over_q(evidence, source, name, kept) for name in LISTS[1:] for kept in (TRUE, STALE)
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


def _table_1(evidence: Evidence, source: str) -> Table:
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
    columns = ["q-bar", "heuristic", "failures", "paper", "average", "paper", "deviation", "paper"]
    columns += ["maximum", "paper", "average, stale"]
    n_days = len({s for c, sets in evidence.cells.items() if c.source == source for s in sets})
    title = f"{source}: {n_days} days, LPT, P = {n_procs}; the paper's: 30 days of June 2019"
    return Table("Table 1", title, columns, table)


# ---- figures


class Panel(NamedTuple):
    """Lines by name over an axis."""

    title: str
    axis: str
    lines: Mapping[str, Points]


def draw(panels: Sequence[Panel]) -> str:
    """Panels side by side as SVG, on one scale of normalised makespans."""
    figure = new_figure(4.4 * len(panels), 3.4)
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for number, (name, points) in enumerate(panel.lines.items()):
            style = "--" if name.endswith(STALE) else "-"
            axis.plot(
                *zip(*points, strict=True), style, marker="o", markersize=2.5, linewidth=1,
                label=name, color=COLOURS[number % len(COLOURS)],
            )  # fmt: skip
        axis.set_title(panel.title, fontsize=9)
        axis.set_xlabel(panel.axis, fontsize=9)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("makespan / lower bound", fontsize=9)
    axes[-1].legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    return svg_of(figure)


def _synthetic_pictures(evidence: Evidence, source: str) -> Iterator[Picture]:
    n_procs, qs = evidence.over_q(source)
    q, procs = evidence.over_procs(source)
    asked = (
        ("Figure 2", "4(a)", "q-bar", f"P = {n_procs}", evidence.line_over_q, len(qs)),
        ("Figure 3", "4(b)", "P", f"q-bar = {q:g}", evidence.line_over_procs, len(procs)),
    )
    for paper, best, axis, where, line, n_points in asked:
        if n_points < 2:
            continue
        for family, group in (("R-LIST", LISTS), ("R-SHELF", SHELVES)):
            panels = [
                Panel(h, axis, _some({r: line(source, h, r) for r in evidence.rules(source)}))
                for h in group
            ]
            title = f"{source}: {family} and all rules, {where}"
            yield from _picture(paper, title, panels)
        panels = [
            Panel(rule, axis, _some({h: line(source, h, rule) for h in HEURISTICS}))
            for rule in ("LPT", "LA")
        ]
        yield from _picture(f"Figure {best}", f"{source}: Algorithm 1, {where}", panels)
        panels = [Panel(r, axis, _both(line, source, r)) for r in ("LPT", "LA")]
        title = f"{source}: stale reservations beside Algorithm 1, {where}"
        yield from _picture(f"cf. Figure {best}", title, panels)


def _both(line: _Line, source: str, rule: str) -> dict[str, Points]:
    """Lists with both kinds of reservations; nothing where stale ones were not played."""
    stale = _some({f"{h}, {STALE}": line(source, h, rule, STALE) for h in LISTS[1:]})
    return {**_some({h: line(source, h, rule) for h in LISTS}), **stale} if stale else {}


def _some(lines: Mapping[str, Points]) -> dict[str, Points]:
    return {name: points for name, points in lines.items() if points}


def _picture(paper: str, title: str, panels: Sequence[Panel]) -> Iterator[Picture]:
    shown = [panel for panel in panels if panel.lines]
    if shown:
        yield Picture(paper, title, draw(shown))


def _day_pictures(evidence: Evidence, source: str) -> Iterator[Picture]:
    n_procs, qs = evidence.over_q(source)
    for heuristic in HEURISTICS:
        panels = []
        for q in qs:
            by_rule = {
                rule: evidence.rows(Cell(source, n_procs, q, TRUE, heuristic, rule))
                for rule in evidence.rules(source)
            }
            lines = {
                rule: [(float(day), row.mean) for day, row in enumerate(found.values(), 1)]
                for rule, found in by_rule.items()
            }
            failures = [row.failures for found in by_rule.values() for row in found.values()]
            if failures:
                title = f"q-bar = {q:g}, {statistics.fmean(failures):.1f} failures a day"
                panels.append(Panel(title, "job set (day)", _some(lines)))
        paper = "Figure 5" if heuristic in LISTS else "Figure 6"
        yield from _picture(paper, f"{source}: {heuristic}, P = {n_procs}", panels)


def _provenance(campaign: SilentCampaign, store: Store) -> list[str]:
    status = silent_status(campaign, store)
    lines = [
        f"rebat {rebat.__version__}, campaign {campaign.owner.name}, seed {campaign.spec.seed}",
        f"{status.ok} of {status.total} units done, {status.failed} failed, "
        f"{status.missing} left; means are over the job sets that are done",
    ]
    for grid in campaign.spec.grid:
        n = sum(unit.grid == grid.name for unit in campaign.units)
        lines.append(
            f"{grid.name}: {n} units of {grid.scenarios} scenarios, "
            f"reservations {', '.join(grid.reservations)}"
        )
    return lines + [f"{name}: left out, no trace was named" for name in campaign.untraced]
