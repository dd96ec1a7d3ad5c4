# SPDX-License-Identifier: Apache-2.0
"""Makespans, where the time went, and what became of jobs that failures hit: medians over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebat.papers.common.parts import Table, number
from rebat.papers.common.runs_index import Setting, mean
from rebat.papers.replacement.evidence import SOURCES, Case, Evidence
from rebat.papers.replacement.medians import middle, written
from rebat.papers.replacement.published import FIGURES, RISES, RISES_REPLACED
from rebat.papers.replacement.published import SOURCES as PRINTED
from rebat.results.intervals import BySeed

Shown = Callable[[float], str]


def hours(value: float) -> str:
    """Seconds as hours."""
    return f"{value / 3600:.1f}"


def share(value: float) -> str:
    """A share."""
    return f"{value:.1%}"


def change(value: float) -> str:
    """A relative difference."""
    return f"{value:+.1%}"


METRICS: tuple[tuple[str, str, str | None, Shown], ...] = (
    ("utilisation", "useful_utilisation", None, share),
    ("idle", "platform_idle", "platform_total", share),
    ("down", "platform_downtime", "platform_total", share),
    ("lost to moves and failures", "lost", "platform_total", share),
    ("mean wait (h)", "resizes_mean_wait_s", None, hours),
    ("hits", "hits", None, number),
    ("requeued", "resizes_requeued", None, number),
)
"""Columns: heading, metric, what it is a share of, and how it is written."""

NO_FAILURES = "no failures"


def tables(evidence: Evidence) -> Iterator[Table]:
    """Two tables for each workload of Table III, where it was run first."""
    for workload in FIGURES:
        setting = evidence.main(workload)
        if setting:
            yield _makespans(evidence, setting)
            yield _sources(evidence, setting)


def of(read: Callable[[str], BySeed], metric: str) -> BySeed:
    """A metric, or a sum of some."""
    sums = {
        "lost": ("platform_waste_failure", "platform_waste_moving"),
        "hits": tuple(f"resizes_{name}" for name in SOURCES),
    }
    parts = [read(name) for name in sums.get(metric, (metric,))]
    return {seed: sum(part[seed] for part in parts) for seed in parts[0]}


def cells(read: Callable[[str], BySeed]) -> list[str]:
    """The columns of ``METRICS``."""
    found = []
    for _, metric, total, shown in METRICS:
        values = of(read, metric)
        if total:
            whole = read(total)
            values = {seed: value / whole[seed] for seed, value in values.items()}
        found.append(written(middle(values), shown))
    return found


def _makespans(evidence: Evidence, setting: Setting) -> Table:
    rows, told = [], set()
    for case in evidence.cases(setting):
        alone = case._replace(replaces=False, how="")
        if alone not in told and evidence.free(setting, alone, "makespan_s"):
            told.add(alone)
            rows.append([alone.label, NO_FAILURES, *_free(evidence, setting, alone)])
        rows.append([case.label, "failures", *_failing(evidence, setting, case)])
    columns = [
        "policy",
        "case",
        "makespan (h)",
        "rise",
        "mean rise",
        "paper",
        *(m[0] for m in METRICS),
    ]
    title = f"{setting.workload}: makespan and use of the machine"
    return Table(f"{FIGURES[setting.workload][0]}, medians over seeds", title, columns, rows)


def _free(evidence: Evidence, setting: Setting, case: Case) -> list[str]:
    def read(metric: str) -> BySeed:
        return evidence.free(setting, case, metric)

    return [written(middle(read("makespan_s")), hours), "", "", "", *cells(read)]


def _failing(evidence: Evidence, setting: Setting, case: Case) -> list[str]:
    def read(metric: str) -> BySeed:
        return evidence.values(setting, case, metric)

    rise = evidence.rise(setting, case)
    average = mean(rise)
    found = [written(middle(read("makespan_s")), hours), written(middle(rise), change)]
    return [
        *found,
        change(average.mean) if average else "",
        printed_rise(setting.workload, case),
        *cells(read),
    ]


def printed_rise(workload: str, case: Case) -> str:
    """The paper's rise of the makespan, if it prints one."""
    table = (RISES_REPLACED if case.replaces else RISES).get(workload, {})
    plain = not (case.rest or case.how)
    return f"{table[case.name]:+.0%}" if plain and case.name in table else ""


def _sources(evidence: Evidence, setting: Setting) -> Table:
    rows = []
    for case in evidence.cases(setting):
        if case.replaces:
            shares = [evidence.shares(setting, case, name) for name in SOURCES]
            rows.append([case.label, *(written(middle(one), share) for one in shares)])
    if setting.workload in PRINTED:
        paper = PRINTED[setting.workload]
        rows.append(["paper", *(share(paper[name]) if name in paper else "" for name in SOURCES)])
    title = f"{setting.workload}: what becomes of a job that a failure hits"
    columns = ["policy", *SOURCES.values()]
    return Table(f"{FIGURES[setting.workload][1]}, medians over seeds", title, columns, rows)
