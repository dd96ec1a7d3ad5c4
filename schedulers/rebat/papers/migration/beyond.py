# SPDX-License-Identifier: Apache-2.0
"""Sections 4.2 and 4.3, which print no results, and what lies beyond the paper, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebat.papers.common.parts import Table, number
from rebat.papers.migration.comparing import (
    COUNT,
    HOURS,
    MINUTES,
    NODE_H,
    SHARE,
    SMALL_SHARE,
    SPAN,
    Metric,
    called,
    cell,
    compared,
    differences,
    means,
)
from rebat.papers.migration.evidence import Evidence, Run, named
from rebat.papers.migration.groups import (
    Compared,
    defragmented,
    drained,
    eternal,
    foreseen,
    sleeping,
)
from rebat.papers.replacement.tables import change, share

UTILISATION = Metric("useful utilisation", "useful_utilisation", SHARE)
_MINUTES = Metric("mean flow (min)", "flow_mean_s", MINUTES)
_FLOWS = (
    Metric("weighted mean flow (h)", "flow_weighted_mean_s", HOURS),
    Metric("mean flow (h)", "flow_mean_s", HOURS),
)
_MOVES = Metric("migrations a day", "migrations_a_day", COUNT)
_IMAGES = Metric("core time for images", "cost_share", SMALL_SHARE)

DRAINS = (
    Metric("nodes drained", "drains_nodes", COUNT),
    Metric("empty in time", "emptied_share", SHARE),
    Metric("after (mean, min)", "empty_after_s", SPAN),
    Metric("longest (min)", "empty_after_max_s", SPAN),
    _MINUTES,
    UTILISATION,
)
ETERNAL = (
    UTILISATION,
    Metric("mean turnaround of normal jobs (min)", "turnaround_normal_mean_s", MINUTES),
    Metric("longest of these (min)", "turnaround_normal_max_s", MINUTES),
    Metric("preemptions a day", "migrations_a_day", COUNT),
    _IMAGES,
)
DEFRAGMENTATION = (
    Metric("head blocked, share of time", "fragmentation_blocked_share", SHARE),
    UTILISATION,
    *_FLOWS,
    Metric("makespan (h)", "makespan_s", HOURS),
    _MOVES,
    _IMAGES,
)
PROACTIVE = (
    UTILISATION,
    Metric("failures under a job", "failures_hit", COUNT),
    Metric("wasted by them (node h)", "platform_waste_failure", NODE_H),
    *_FLOWS,
    Metric("largest flow (h)", "flow_max_s", HOURS),
)
_ACTIONS = (Metric("steals", "steals", COUNT), _MOVES, _IMAGES)

AWAKE = "compaction, no node sleeps"


def tables(evidence: Evidence) -> Iterator[Table]:
    """As far as there are runs for them."""
    for base, others in drained(evidence):
        about = "cf. section 4.2", f"{base.setting.workload}: nodes emptied for maintenance"
        runs = {"by waiting": base, "by migration": others[0]}
        yield compared(evidence, about, runs, DRAINS)
    for base, others in eternal(evidence):
        about = "cf. section 4.3", f"{base.setting.workload}: eternal jobs beside a load"
        runs = {"normal jobs alone": base, "with eternal jobs": others[0]}
        yield compared(evidence, about, runs, ETERNAL)
    asleep = sleeping(evidence)
    if asleep:
        yield _energy(evidence, asleep)
    for base, others in defragmented(evidence):
        about = "", f"{base.setting.workload}: boxes of a torus are moved to make room"
        yield compared(evidence, about, called("without", base, others), DEFRAGMENTATION)
    for group in foreseen(evidence):
        yield from _proactive(evidence, group)


def energy_runs(group: Compared) -> dict[str, Run]:
    """By what they are called."""
    asleep = [run for run in group.others if run.case.react]
    found = called("no node sleeps", group.base, asleep)
    for run in group.others:
        if not run.case.react:
            found[AWAKE] = run
    return found


def _energy(evidence: Evidence, groups: Sequence[Compared]) -> Table:
    rows = []
    for group in groups:
        for name, run in energy_runs(group).items():
            row = [f"{group.base.setting.workload}, {name}"]
            row.append(cell(evidence.mean(run, "energy_kwh"), "{:.2f}".format))
            if run == group.base:
                row += ["", ""]
            else:
                row.append(cell(evidence.ratio(run, group.base, "energy_kwh"), change))
                row.append(cell(evidence.ratio(run, group.base, "flow_mean_s"), change))
            row.append(cell(evidence.mean(run, "energy_asleep"), share))
            rows.append([*row, cell(evidence.mean(run, _MOVES.name), number)])
    columns = ["", "kWh", "change", "mean flow, change", "node time asleep", _MOVES.heading]
    paper = f"cf. section 5, means over {evidence.seeds(groups[0].base)}"
    return Table(paper, "Energy of a day", columns, rows)


def _proactive(evidence: Evidence, group: Compared) -> Iterator[Table]:
    scenario = group.base.setting.scenario
    law = f"{scenario.failure_model}: {scenario.law or ''}".replace(",", ", ")
    runs = named([group.base, *group.others])
    columns = (*PROACTIVE, *_ACTIONS)
    yield means(evidence, (law, f"{subject(group)}: proactive migration"), runs, columns)
    rows = differences(evidence, runs, pairs(runs), PROACTIVE)
    title = f"{subject(group)}: differences on the same failures"
    heads = ["", *(one.heading for one in PROACTIVE)]
    yield Table("points of shares, % of times, paired by seed", title, heads, rows)


def pairs(runs: dict[str, Run]) -> list[tuple[str, str]]:
    """Each against the first; those that foresee also against those that do not."""
    first, *others = runs
    ahead = [name for name in others if "foresee" in runs[name].case.react]
    return [
        *((other, first) for other in others),
        *((ours, base) for ours in ahead for base in others if base not in ahead),
    ]


def subject(group: Compared) -> str:
    """A workload and the grid that says what it met, for people."""
    return f"{group.base.setting.workload}, {group.base.setting.grid}"
