# SPDX-License-Identifier: Apache-2.0
"""Replacement compared with node stealing, for rigid jobs of a production machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebat.report.claims import ABOVE, Claim, Judgement, judge
from rebat.report.parts import Table, change, number, percent, points
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
from rebat.results.intervals import Interval, interval, spread

from .runs import ReplacementCase, Runs

COLUMNS = (
    column("useful_utilisation"),
    column("flow_weighted_mean_s"),
    column("flow_mean_s"),
    column("flow_max_s"),
    column("failures_hit"),
    Column("replaced by idle nodes", "resizes_by_idle", number),
    Column("waited", "resizes_requeued", number),
    column("steals"),
    column("rejected"),
)
DIFFERENCES = (
    Column("useful utilisation, points", "useful_utilisation", percent, points),
    *(item._replace(change=change, relative=True) for item in COLUMNS[1:4]),
)


def compared(runs: Runs) -> Iterator[Setting]:
    """Yield the settings with runs of both replacement and stealing."""
    for setting in runs.settings:
        cases = runs.cases(setting)
        if any(c.steals for c in cases) and any(c.replaces and not c.steals for c in cases):
            yield setting


def tables(runs: Runs) -> Iterator[Table]:
    """Yield two tables per setting: means, and differences from the baseline."""
    for setting in compared(runs):
        those = [Run(setting, case) for case in runs.cases(setting)]
        workload = setting.workload
        title = f"{workload}: replacement and stealing ({setting.scenario.label})"
        rows = [means(runs, {run.case.label: run}, COLUMNS)[0] for run in those]
        yield Table("means over seeds", title, ["policy", *headings(COLUMNS)], rows)
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


CLAIMS = (
    _better("replacement", "baseline"),
    _better("stealing", "baseline", "node stealing for failed jobs (Du et al. 2024, section 6.1)"),
    _better("replacement", "stealing"),
    _better("replacement with stealing", "stealing"),
)


def judgements(runs: Runs) -> Iterator[Judgement]:
    """Judge which of the reactions has the higher useful utilisation."""
    for setting in compared(runs):
        yield from judge(CLAIMS, (runs, _pure(runs, setting)), setting.workload)


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
