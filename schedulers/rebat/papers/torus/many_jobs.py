# SPDX-License-Identifier: Apache-2.0
"""Boxes on a torus for many jobs at once: what they cost, and when foresight pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.papers.common.claims import ABOVE, BELOW, Claim, Rule, judge
from rebat.papers.common.parts import (
    Judgement,
    Picture,
    Report,
    ReportMaker,
    Table,
    number,
    percent,
    points,
    signed,
)
from rebat.papers.common.runs_index import Run, RunIndex, Setting, difference, parsed, simulations
from rebat.papers.common.tables import Column, column, differences, headings, means
from rebat.papers.torus.machine import torus_pictures
from rebat.results.intervals import STUDENT, Interval, interval

LEAD = (
    "A. Vardas, M. Ploumidis, M. Marazakis: Exploring the Impact of Node Failures on the Resource "
    "Allocation for Parallel Jobs, 2022, place one job at a time on a torus. Here a whole machine "
    "is scheduled, with jobs of many sizes at once that wait for boxes to be free. So what the "
    "paper says is held against another question than it asks."
)
REMARKS = (
    "Intervals are of 95 % (Student's t) over the seeds of the failures; workloads are the same "
    "for every seed. Differences are taken on the same failures. A claim holds by the sign of the "
    "mean difference; where its interval holds 0, the seeds do not decide.",
    "The head of the queue is blocked while it asks for no more nodes than are up and free. Box "
    "waste are nodes of boxes that were not asked for; they are idle.",
)
BASES = ("rps", "slurm-linear")
"""Against which the others are held."""

_BLOCKED = "fragmentation_blocked_share"
_WASTED = "platform_waste_failure"
COLUMNS = (
    column("useful_utilisation"),
    column("flow_weighted_mean_s"),
    column("failures_hit"),
    Column("wasted by them, node h", _WASTED, lambda value: f"{value / 3600:.0f}"),
    Column("head blocked, share of time", _BLOCKED, percent),
    Column("nodes free then", "fragmentation_blocked_free_nodes", number),
    Column("box waste, node h", "fragmentation_box_waste", lambda value: f"{value / 3600:.0f}"),
)
DIFFERENCES = (
    Column("utilisation, points", "useful_utilisation", percent, points),
    Column("weighted mean flow, h", "flow_weighted_mean_s", percent,
           lambda value: f"{value / 3600:+.2f}"),
    Column("failures under a job", "failures_hit", number, signed),
    Column("wasted by them, node h", _WASTED, number, lambda value: f"{value / 3600:+.0f}"),
    Column("head blocked, points", _BLOCKED, percent, points),
)  # fmt: skip


def report(
    path: Path, workloads: Sequence[Table], more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:  # fmt: skip
    """What a campaign's ``results.parquet`` shows, its workloads first."""
    runs = RunIndex(simulations(path, str, by_grid=False))
    return Report(
        title="Boxes on a torus for many jobs at once: what they cost, and what foresight gains",
        lead=LEAD,
        judgements=list(judgements(runs)),
        tables=[*workloads, *tables(runs)],
        pictures=list(more_pictures),
        provenance=provenance,
        remarks=REMARKS,
        subject="workload and failures",
        figures_note="A machine at one date: a cell is an allocation unit, whichever it is.",
    )


def failing(runs: RunIndex[str]) -> list[Setting]:
    """Every workload with every scenario of failures that it met, those of a workload together."""
    workloads = list(dict.fromkeys(item.workload for item in runs.settings))
    families = list(dict.fromkeys(item.scenario.family for item in runs.settings))
    return sorted(
        (item for item in runs.settings if item.scenario.failure_model is not None),
        key=lambda item: (
            workloads.index(item.workload), families.index(item.scenario.family),
            item.scenario.mtbf_s or 0.0, item.scenario.downtime_s or 0.0,
        ),
    )  # fmt: skip


def named(policies: Sequence[str], wanted: str) -> str | None:
    """The one policy of that name, its torus apart; None when there is none, or several.

    >>> named(["faps:torus=8,foresight=fit", "rps:torus=8", "rps"], "faps:foresight=fit")
    'faps:torus=8,foresight=fit'
    """
    matches = [policy for policy in policies if _without_torus(policy) == wanted]
    return matches[0] if len(matches) == 1 else None


def _without_torus(policy: str) -> str:
    name, axes = parsed(policy)
    others = [f"{axis}={choice}" for axis, choice in axes.items() if axis != "torus"]
    return ":".join([name, ",".join(others)] if others else [name])


# ---- tables


def _runs_of(runs: RunIndex[str], setting: Setting) -> dict[str, Run[str]]:
    """By policy, the baseline first."""
    names = sorted(runs.cases(setting), key=lambda name: (name != "baseline", name))
    return {name: Run(setting, name) for name in names}


def tables(runs: RunIndex[str]) -> Iterator[Table]:
    """For each workload and scenario what was, and against the bases."""
    for setting in failing(runs):
        workload, label = setting.workload, setting.scenario.label
        those = _runs_of(runs, setting)
        title = f"{workload}: what each placement makes of it ({label})"
        rows = means(runs, those, COLUMNS)
        yield Table("means over seeds", title, ["policy", *headings(COLUMNS)], rows)
        for base in filter(None, (named([*those], wanted) for wanted in BASES)):
            pairs = [(name, run, those[base]) for name, run in those.items() if name != base]
            title = f"{workload}: against {base} on the same failures ({label})"
            rows = differences(runs, pairs, DIFFERENCES)
            yield Table("paired by seed", title, ["policy", *headings(DIFFERENCES)], rows)


# ---- claims


class InSetting(NamedTuple):
    """What a claim is judged on: the runs of a setting."""

    runs: RunIndex[str]
    setting: Setting


_MEAN = "mean difference by seed"
_ONE_AT_A_TIME = "for one job at a time: fewer aborts, earlier completion (section 3)"
_NOT_TRIED = "not in the paper: there the law is known exactly"


def _less(
    ours: str, base: str, metric: str = "failures_hit"
) -> Callable[[InSetting], Interval | None]:
    """Of two policies, the first one's value less the second's."""

    def number(on: InSetting) -> Interval | None:
        first, second = (named(on.runs.cases(on.setting), wanted) for wanted in (ours, base))
        if first is None or second is None:
            return None
        pair = Run(on.setting, first), Run(on.setting, second)
        return interval(difference(on.runs, *pair, metric), STUDENT)

    return number


def _claim(
    text: str, ours: str, base: str = "rps", metric: str = "failures_hit", rule: Rule = BELOW,
    paper: str = _ONE_AT_A_TIME,
) -> Claim:  # fmt: skip
    return Claim(text, _MEAN, rule, paper, _less(ours, base, metric))


_USED = "useful_utilisation"
CLAIMS = (
    _claim("FAPS: fewer failures hit a job than under RPS", "faps"),
    _claim("FAPS: fewer than under Slurm-linear", "faps", "slurm-linear"),
    _claim("FAPS: higher utilisation than RPS", "faps", "rps", _USED, ABOVE),
    _claim("FAPS: higher utilisation than Slurm-linear", "faps", "slurm-linear", _USED, ABOVE),
    _claim("FAPS: shorter weighted mean flow than RPS", "faps", "rps", "flow_weighted_mean_s"),
    *(
        _claim(f"FAPS by {how} under RPS", f"faps:foresight={law}", paper=_NOT_TRIED)
        for law, how in (
            ("fit", "a law fitted to the history: fewer failures hit a job than"),
            ("law*2", "times taken for twice as long: fewer than"),
            ("law*0.5", "times taken for half as long: fewer than"),
            ("youngest", "uptimes alone, the youngest nodes: fewer than"),
            ("oldest", "uptimes alone, the oldest nodes: fewer than"),
        )
    ),
)
"""Each is judged wherever both policies ran."""


def judgements(runs: RunIndex[str]) -> Iterator[Judgement]:
    """Every claim under every workload and scenario."""
    for setting in failing(runs):
        yield from judge(CLAIMS, InSetting(runs, setting), setting.label)


REPORT = ReportMaker(report, False, torus_pictures)
