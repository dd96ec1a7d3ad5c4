# SPDX-License-Identifier: Apache-2.0
"""Rigid jobs of a production machine: what replacement gives against node stealing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebat.papers.common.claims import ABOVE, Claim, judge
from rebat.papers.common.parts import Judgement, Table, change, number, percent, points
from rebat.papers.common.runs_index import Run, Setting, difference
from rebat.papers.common.tables import Column, column, differences, headings, means
from rebat.papers.replacement.runs import ReplacementCase, Runs
from rebat.results.intervals import STUDENT, Interval, interval, spread

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
    Column("utilisation, points", "useful_utilisation", percent, points),
    *(item._replace(change=change, relative=True) for item in COLUMNS[1:4]),
)


def compared(runs: Runs) -> Iterator[Setting]:
    """Where both replacement and stealing were run."""
    for setting in runs.settings:
        cases = runs.cases(setting)
        if any(c.steals for c in cases) and any(c.replaces and not c.steals for c in cases):
            yield setting


def tables(runs: Runs) -> Iterator[Table]:
    """What each way to react made of a month, and against the baseline on the same failures."""
    for setting in compared(runs):
        those = [Run(setting, case) for case in runs.cases(setting)]
        workload = setting.workload
        title = f"{workload}: replacement and stealing ({setting.scenario.label})"
        rows = [means(runs, {run.case.label: run}, COLUMNS)[0] for run in those]
        yield Table("means over seeds", title, ["policy", *headings(COLUMNS)], rows)
        base = Run(setting, ReplacementCase("baseline"))
        if base in those:
            pairs = [(run.case.label, run, base) for run in those if run != base]
            title = f"{workload}: against the baseline on the same failures"
            rows = differences(runs, pairs, DIFFERENCES)
            yield Table("paired by seed", title, ["policy", *headings(DIFFERENCES)], rows)


def _pure(runs: Runs, setting: Setting) -> dict[str, Run[ReplacementCase]]:
    """The baseline, replacement, stealing and both, without other axes, as far as they were run."""
    kinds = {
        (False, False): "baseline", (True, False): "replacement",
        (False, True): "stealing", (True, True): "both",
    }  # fmt: skip
    by_reaction: dict[str, Run[ReplacementCase]] = {}
    for case in runs.cases(setting):
        if not (case.rest or case.how):
            by_reaction.setdefault(kinds[case.replaces, case.steals], Run(setting, case))
    return by_reaction


def _gained(
    runs: Runs, who: Mapping[str, Run[ReplacementCase]], ours: str, base: str
) -> Interval | None:
    """How much more of the machine one of them makes use of than another."""
    if ours not in who or base not in who:
        return None
    return interval(difference(runs, who[ours], who[base], "useful_utilisation"), STUDENT)


def _better(ours: str, base: str, paper: str = "not in the paper") -> Claim:
    return Claim(f"{ours} makes better use of the machine than {base}",
                 "mean difference of the useful utilisation", ABOVE, paper,
                 lambda on: _gained(on[0], on[1], ours, base))  # fmt: skip


CLAIMS = (
    _better("replacement", "baseline"),
    _better("stealing", "baseline",
            "node stealing for failed jobs (Du et al. 2024, section 6.1)"),
    _better("replacement", "stealing"),
    _better("both", "stealing"),
)  # fmt: skip


def judgements(runs: Runs) -> Iterator[Judgement]:
    """Which of them makes better use of the machine."""
    for setting in compared(runs):
        yield from judge(CLAIMS, (runs, _pure(runs, setting)), setting.workload)


def answers(runs: Runs) -> Iterator[str]:
    """What replacement would give on each machine against stealing, in a sentence."""
    for setting in compared(runs):
        who = _pure(runs, setting)
        gains = {kind: _gained(runs, who, kind, "baseline") for kind in who if kind != "baseline"}
        texts = ", ".join(f"{kind} {spread(gain, points)}" for kind, gain in gains.items() if gain)
        if texts:
            yield (
                f"What would replacement give on {setting.workload} against node stealing? Points "
                f"of useful utilisation over the baseline on the same failures: {texts}. Rigid "
                "jobs can be helped by idle nodes alone; replacement keeps those of the job that "
                "are alive, and waits where stealing takes a node from another."
            )
