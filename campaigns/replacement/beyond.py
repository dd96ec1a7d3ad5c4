# SPDX-License-Identifier: Apache-2.0
"""Experiments that are not in the paper: open parameters, spare nodes, and node stealing.

A table for each parameter that the paper leaves open shows its effect on the makespans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan, sqrt
from typing import NamedTuple

from rebat.core.numbers import change, decimal, hours, percent, points, share, spread
from rebat.report.claims import ABOVE, Claim, Judgement, above, judge
from rebat.report.runs_index import (
    Column,
    Run,
    Setting,
    column,
    difference,
    differences,
    headings,
    means,
)
from rebat.report.table import Table
from rebat.results.intervals import BySeed, Interval, interval, minus, relative

from . import runs
from .runs import ReplacementCase, Runs, middle, rise

RIGID_JOBS, OWN = "rigid", "own-spares-"
MAGNITUDE = 10.0


class SpareNodes(NamedTuple):
    """The runs of Figure 1.

    ``pools`` maps the size of a pool to its run. ``own`` maps the number of spares of each job to
    its run. ``plain`` is the run without replacement.
    """

    runs: Runs
    pools: dict[int, Run[ReplacementCase]]
    own: dict[int, Run[ReplacementCase]]
    plain: Run[ReplacementCase]

    def values(self, run: Run[ReplacementCase], metric: str) -> BySeed:
        """Return a metric of a run, by seed."""
        return self.runs.values(*run, metric)

    def longer(self, run: Run[ReplacementCase]) -> BySeed:
        """Return the relative change of the makespan, compared with no replacement."""
        return relative(self.values(run, "makespan_s"), self.values(self.plain, "makespan_s"))

    def reserved(self, run: Run[ReplacementCase]) -> BySeed:
        """Return the mean number of processors that jobs hold as spares."""
        more = minus(
            self.values(run, "platform_useful"), self.values(self.plain, "platform_useful")
        )
        makespans = self.values(run, "makespan_s")
        return {seed: more[seed] / makespans[seed] for seed in more}

    @property
    def largest(self) -> Run[ReplacementCase]:
        """The run with the most spare processors per job."""
        return self.own[max(self.own)]

    @property
    def sufficient(self) -> int | None:
        """Size of the smallest pool with which at most as many hit jobs wait as in `largest`.

        The medians of the shares are compared. None if no pool is large enough.
        """
        limit = self._waiting(self.largest)
        sizes = [size for size, run in self.pools.items() if size and self._waiting(run) <= limit]
        return min(sizes, default=None)

    def _waiting(self, run: Run[ReplacementCase]) -> float:
        """Return the median share of hit jobs that wait. Return NaN if there are no values."""
        estimate = interval(self.values(run, "share_requeued"), of_median=True)
        return estimate.mean if estimate else nan


def spare_nodes(runs: Runs) -> SpareNodes | None:
    """Return the runs of Figure 1. Return None if some are missing."""
    pools, own, plain = dict[int, Run[ReplacementCase]](), dict[int, Run[ReplacementCase]](), None
    for setting in runs.settings:
        for case in runs.cases(setting):
            run = Run(setting, case)
            if setting.workload.startswith(OWN):
                own[int(setting.workload.removeprefix(OWN))] = run
            elif setting.workload == RIGID_JOBS and case.replaces:
                pools[_size_of(case)] = run
            elif setting.workload == RIGID_JOBS:
                plain = run
    return SpareNodes(runs, pools, own, plain) if pools and own and plain else None


def _size_of(case: ReplacementCase) -> int:
    options = dict(option.partition("=")[::2] for option in case.how.split(", "))
    return int(options.get("spares", 0))


def spare_tables(runs: Runs) -> Iterator[Table]:
    """Yield the table that compares both kinds of spare nodes."""
    spares = spare_nodes(runs)
    if spares is None:
        return
    rows = [_row(spares, "no replacement", "", spares.plain)]
    for size, run in sorted(spares.pools.items()):
        rows.append(_row(spares, f"pool of {size}" if size else "idle processors", f"{size}", run))
    for size, run in sorted(spares.own.items()):
        reserved = middle(spares.reserved(run), decimal)
        rows.append(_row(spares, f"{size} of each job", reserved, run))
    columns = [
        "spare processors",
        "reserved, mean",
        "makespan (h)",
        "change",
        "continued",
        "waited",
    ]
    title = "spare nodes of each job and a pool of spare nodes"
    yield Table("Figure 1, medians over seeds", title, columns, rows)


def _row(spares: SpareNodes, name: str, reserved: str, run: Run[ReplacementCase]) -> list[str]:
    waited = spares.values(run, "share_requeued")
    continued = {seed: 1 - value for seed, value in waited.items()}
    longer = "" if run == spares.plain else middle(spares.longer(run), change)
    makespan = middle(spares.values(run, "makespan_s"), hours)
    return [name, reserved, makespan, longer, middle(continued, share), middle(waited, share)]


def _fewer(on: SpareNodes) -> BySeed:
    """Return the number of spare processors of all jobs, divided by ``on.sufficient``.

    The result is empty if no pool is sufficient.
    """
    size = on.sufficient
    return {} if size is None else {seed: n / size for seed, n in on.reserved(on.largest).items()}


SPARE_CLAIMS = (
    Claim(
        "spare nodes of each job lengthen the makespan",
        "median relative difference from no replacement, with the most spare nodes",
        ABOVE,
        "section I: poor system utilisation",
        lambda on: interval(on.longer(on.largest), of_median=True),
    ),
    Claim(
        "a pool needs fewer spare nodes by an order of magnitude",
        "median of spare processors of jobs / smallest pool with fewer waiting jobs",
        above(MAGNITUDE),
        "section I, after Rezaei and Mueller",
        lambda on: interval(_fewer(on), of_median=True),
    ),
)


def spare_judgements(runs: Runs) -> Iterator[Judgement]:
    """Judge the statements about Figure 1."""
    spares = spare_nodes(runs)
    if spares is not None:
        yield from judge(SPARE_CLAIMS, spares, RIGID_JOBS)


STEALING_COLUMNS = (
    column("useful_utilisation"),
    column("flow_weighted_mean_s"),
    column("flow_mean_s"),
    column("flow_max_s"),
    column("failures_hit"),
    Column("replaced by idle nodes", "resizes_by_idle", decimal),
    Column("waited", "resizes_requeued", decimal),
    column("steals"),
    column("rejected"),
)
DIFFERENCES = (
    Column("useful utilisation, points", "useful_utilisation", percent, points),
    *(item._replace(change=change, relative=True) for item in STEALING_COLUMNS[1:4]),
)


def compared(runs: Runs) -> Iterator[Setting]:
    """Yield the settings with runs of both replacement and stealing."""
    for setting in runs.settings:
        cases = runs.cases(setting)
        if any(c.steals for c in cases) and any(c.replaces and not c.steals for c in cases):
            yield setting


def stealing_tables(runs: Runs) -> Iterator[Table]:
    """Yield two stealing_tables per setting: means, and differences from the baseline."""
    for setting in compared(runs):
        those = [Run(setting, case) for case in runs.cases(setting)]
        workload = setting.workload
        title = f"{workload}: replacement and stealing ({setting.scenario.label})"
        rows = [means(runs, {run.case.label: run}, STEALING_COLUMNS)[0] for run in those]
        yield Table("means over seeds", title, ["policy", *headings(STEALING_COLUMNS)], rows)
        base = Run(setting, ReplacementCase("baseline"))
        if base in those:
            pairs = [(run.case.label, run, base) for run in those if run != base]
            title = f"{workload}: compared with the baseline under the same failures"
            rows = differences(runs, pairs, DIFFERENCES)
            yield Table("paired by seed", title, ["policy", *headings(DIFFERENCES)], rows)


def _pure(runs: Runs, setting: Setting) -> dict[str, Run[ReplacementCase]]:
    """Return the runs of baseline, replacement, stealing, and both, without other options."""
    kinds = {
        (False, False): "baseline",
        (True, False): "replacement",
        (False, True): "stealing",
        (True, True): "replacement with stealing",
    }
    by_reaction: dict[str, Run[ReplacementCase]] = {}
    for case in runs.cases(setting):
        if not (case.other_axes or case.how):
            by_reaction.setdefault(kinds[case.replaces, case.steals], Run(setting, case))
    return by_reaction


def _gained(
    runs: Runs, by_kind: Mapping[str, Run[ReplacementCase]], ours: str, base: str
) -> Interval | None:
    if ours not in by_kind or base not in by_kind:
        return None
    return interval(difference(runs, by_kind[ours], by_kind[base], "useful_utilisation"))


def _better(ours: str, base: str, paper: str = "not in the paper") -> Claim:
    return Claim(
        f"{ours} has a higher useful utilisation than {base}",
        "mean difference of the useful utilisation",
        ABOVE,
        paper,
        lambda on: _gained(on[0], on[1], ours, base),
        own=True,
    )


STEALING_CLAIMS = (
    _better("replacement", "baseline"),
    _better("stealing", "baseline", "node stealing for failed jobs (Du et al. 2024, section 6.1)"),
    _better("replacement", "stealing"),
    _better("replacement with stealing", "stealing"),
)


def stealing_judgements(runs: Runs) -> Iterator[Judgement]:
    """Judge which of the reactions has the higher useful utilisation."""
    for setting in compared(runs):
        yield from judge(STEALING_CLAIMS, (runs, _pure(runs, setting)), setting.workload)


def answers(runs: Runs) -> Iterator[str]:
    """Yield a sentence per machine that compares replacement with stealing."""
    for setting in compared(runs):
        by_kind = _pure(runs, setting)
        kinds = [kind for kind in by_kind if kind != "baseline"]
        gains = {kind: _gained(runs, by_kind, kind, "baseline") for kind in kinds}
        texts = ", ".join(f"{kind} {spread(gain, points)}" for kind, gain in gains.items() if gain)
        if texts:
            yield (
                f"How does replacement compare with node stealing on {setting.workload}? Changes "
                "of the useful utilisation relative to the baseline under the same failures, in "
                f"points: {texts}. For rigid jobs only idle nodes can replace failed nodes. With "
                "replacement, a job without an idle node waits. With stealing, this job takes a "
                "node from another job."
            )


Varied = tuple[str, bool, str]
"""A column: policy, whether it replaces nodes, and the value that the column shows.

The value is the utilisation, the share of replacements from one source, or a rise: the relative
increase of the makespan due to failures.
"""

COLUMNS: dict[str, tuple[Varied, ...]] = {
    runs.MIXED: (
        ("baseline", False, "rise"),
        ("pra", False, "rise"),
        ("pwa", False, "rise"),
        ("dbes", False, "rise"),
        ("dbes", True, "rise"),
        ("dbes", False, "utilisation"),
    ),
    runs.MOLDABLE_RIGID: (
        ("sa", False, "rise"),
        ("sa", True, "rise"),
        ("sa", True, "utilisation"),
        ("sa", True, "by_idle"),
        ("sa", True, "requeued"),
        ("sa", True, "by_restart"),
    ),
}
"""Columns of the table of a workload's variants. A column without runs is left empty."""

RIGID = {"easy": "EASY", "greedy": "greedy"}
"""Policies for rigid jobs other than the baseline."""

Row = Mapping[Varied, Interval]


def choices(runs: Runs) -> Iterator[tuple[Table, str]]:
    """Yield a table and a sentence for each workload. A table's first row is its reference."""
    for workload, columns in COLUMNS.items():
        rows = dict(_rows(runs, columns, workload))
        if len(rows) > 1:
            yield _table(workload, columns, rows), _sentence(workload, rows)


def _rows(runs: Runs, columns: Sequence[Varied], workload: str) -> Iterator[tuple[str, Row]]:
    settings = [setting for setting in runs.settings if _varies(setting, workload)]
    for setting in settings:
        rows: dict[str, dict[Varied, Interval]] = {}
        for case in runs.cases(setting):
            label = _label(setting, case, settings[0])
            row = rows.setdefault(label, {})
            name = "baseline" if case.name in RIGID else case.name
            for varied in columns:
                if varied[:2] == (name, case.replaces):
                    shown = _shown(runs, setting, case, varied[2])
                    if shown:
                        row[varied] = shown
        yield from ((label, row) for label, row in rows.items() if row)


def _varies(setting: Setting, workload: str) -> bool:
    """Return whether a setting has the name of a variant of this workload of Table III."""
    return setting.workload not in runs.FIGURES and setting.workload.startswith(f"{workload}-")


def _label(setting: Setting, case: ReplacementCase, reference: Setting) -> str:
    usual = (reference.scenario.law or "").split(",")
    law = [part for part in (setting.scenario.law or "").split(",") if part not in usual]
    return ", ".join(
        filter(None, (setting.grid, *law, RIGID.get(case.name), case.how, case.other_axes))
    )


def _shown(runs: Runs, setting: Setting, case: ReplacementCase, value: str) -> Interval | None:
    if value == "rise":
        return interval(rise(runs, setting, case), of_median=True)
    metric = "useful_utilisation" if value == "utilisation" else f"share_{value}"
    return runs.interval(setting, case, metric, of_median=True)


def _printed(workload: str, varied: Varied) -> float | None:
    name, replaces, value = varied
    if value == "rise":
        table = runs.RISES_REPLACED if replaces else runs.RISES
        return table.get(workload, {}).get(name)
    if value == "utilisation":
        return runs.UTILISATION.get(workload)
    return runs.PRINTED.get(workload, {}).get(value)


def _heading(varied: Varied) -> str:
    name, replaces, value = varied
    words = {
        "rise": "increase of the makespan",
        "by_idle": "idle nodes",
        "requeued": "waits",
        "by_restart": "start over",
    }.get(value, value)
    return f"{words}, {runs.WORDS[name]}{' with replacement' if replaces else ''}"


def _table(workload: str, columns: Sequence[Varied], rows: Mapping[str, Row]) -> Table:
    def cell(varied: Varied, estimate: Interval | None) -> str:
        return spread(estimate, change if varied[2] == "rise" else share)

    def paper(varied: Varied) -> str:
        value = _printed(workload, varied)
        return "" if value is None else (change if varied[2] == "rise" else share)(value)

    lines = [
        [
            label,
            *(cell(varied, row.get(varied)) for varied in columns),
            _distance_text(workload, row),
        ]
        for label, row in rows.items()
    ]
    lines.append(["paper", *(paper(varied) for varied in columns), ""])
    head = ["parameter", *(_heading(varied) for varied in columns)]
    head.append("root mean square difference from the published increases, points")
    title = f"{workload}: one parameter changed at a time (first row: reference)"
    return Table("open in the paper", title, head, lines)


def _rises(workload: str) -> list[Varied]:
    return [
        varied
        for varied in COLUMNS[workload]
        if varied[2] == "rise" and _printed(workload, varied) is not None
    ]


def _distance(workload: str, row: Row) -> float | None:
    """Return the root mean square distance from the paper's rises.

    Return None if a rise is missing.
    """
    wanted = _rises(workload)
    if any(varied not in row for varied in wanted):
        return None
    squares = [(row[c].mean - (_printed(workload, c) or 0.0)) ** 2 for c in wanted]
    return sqrt(sum(squares) / len(squares))


POINTS = share.in_unit("points", 0.01)


def _distance_text(workload: str, row: Row) -> str:
    distance = _distance(workload, row)
    return share.bare(distance)


def _sentence(workload: str, rows: Mapping[str, Row]) -> str:
    """Return a sentence on the row closest to the published rises and on the largest changes."""
    first, reference = next(iter(rows.items()))
    distances = {
        label: d for label, row in rows.items() if (d := _distance(workload, row)) is not None
    }
    sentences = [f"Which open parameter has the largest effect ({workload})?"]
    if distances:
        best = min(distances, key=lambda label: distances[label])
        text = f"The row {best!r} is closest to the published increases of the makespan (root mean "
        text += f"square difference {POINTS(distances[best])}"
        if first in distances:
            text += f"; {first!r}: {POINTS(distances[first])}"
        sentences.append(f"{text}).")
    parts = []
    for varied in reference:
        moved = {
            label: row[varied].mean - reference[varied].mean
            for label, row in rows.items()
            if varied in row and label != first
        }
        if moved:
            most = max(moved, key=lambda label: abs(moved[label]))
            parts.append(
                f"{_heading(varied)}: {POINTS._replace(signed=True)(moved[most])} ({most})"
            )
    if parts:
        sentences.append(f"Largest change of each column, and its row: {'; '.join(parts)}.")
    return " ".join(sentences)
