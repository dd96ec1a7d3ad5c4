# SPDX-License-Identifier: Apache-2.0
"""Tables without published values: sections 4.2 and 4.3 of the paper, and other experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rebat.core.numbers import (
    change,
    decimal,
    hours,
    hundredths,
    minutes,
    node_hours,
    percent,
    points,
    share,
    signed,
    spread,
)
from rebat.report.runs_index import Column, Run, differences, headings, mean_of, means
from rebat.report.table import Table
from rebat.results.catalogue import metric

from .runs import (
    ComparedGroup,
    MigrationCase,
    Runs,
    defragmented,
    drained,
    eternal,
    foreseen,
    named,
    ratio_of,
    seeds,
    sleeping,
)

SHARE = (share, points, False)
SMALL_SHARE = (percent, points, False)
MINUTES = (minutes, change, True)
SPAN = (minutes, minutes._replace(signed=True), False)
HOURS = (hours, change, True)
COUNT = (decimal, signed, False)
NODE_H = (node_hours.bare, change, True)
"""Format of a metric, format of its differences, and whether differences are relative."""

UTILISATION = Column("useful utilisation", "useful_utilisation", *SHARE)
_MINUTES = Column("mean flow (min)", "flow_mean_s", *MINUTES)
_FLOWS = (
    Column("weighted mean flow (h)", "flow_weighted_mean_s", *HOURS),
    Column("mean flow (h)", "flow_mean_s", *HOURS),
)
_MOVES = Column("migrations a day", "migrations_a_day", *COUNT)
_IMAGES = Column("core time for images", "cost_share", *SMALL_SHARE)

DRAINS = (
    Column("nodes drained", "drains_nodes", *COUNT),
    Column("empty in time", "emptied_share", *SHARE),
    Column("time until empty, mean (min)", "empty_after_s", *SPAN),
    Column("largest (min)", "empty_after_max_s", *SPAN),
    _MINUTES,
    UTILISATION,
)
ETERNAL = (
    UTILISATION,
    Column("mean turnaround of normal jobs (min)", "turnaround_normal_mean_s", *MINUTES),
    Column("largest (min)", "turnaround_normal_max_s", *MINUTES),
    Column("preemptions a day", "migrations_a_day", *COUNT),
    _IMAGES,
)
DEFRAGMENTATION = (
    Column("head of the queue blocked, share of time", "fragmentation_blocked_share", *SHARE),
    UTILISATION,
    *_FLOWS,
    Column("makespan (h)", "makespan_s", *HOURS),
    _MOVES,
    _IMAGES,
)
PROACTIVE = (
    UTILISATION,
    Column(metric("failures_hit").title, "failures_hit", *COUNT),
    Column("wasted by failures (node h)", "platform_waste_failure", *NODE_H),
    *_FLOWS,
    Column("largest flow (h)", "flow_max_s", *HOURS),
)
_ACTIONS = (Column("steals", "steals", *COUNT), _MOVES, _IMAGES)

AWAKE = "compaction, no node sleeps"


def _means(
    index: Runs,
    about: tuple[str, str],
    runs: Mapping[str, Run[MigrationCase]],
    columns: Sequence[Column],
) -> Table:
    """Return a table with a row per run.

    ``about`` contains its place in the paper and its title.
    """
    over = f"means over {seeds(index, next(iter(runs.values())))}"
    paper = f"{about[0]}, {over}" if about[0] else over
    return Table(paper, about[1], ["", *headings(columns)], means(index, runs, columns))


def _differences(
    index: Runs,
    runs: Mapping[str, Run[MigrationCase]],
    pairs: Sequence[tuple[str, str]],
    columns: Sequence[Column],
) -> list[list[str]]:
    named = [(f"{ours} minus {base}", runs[ours], runs[base]) for ours, base in pairs]
    return differences(index, named, columns)


def _compared(
    index: Runs,
    about: tuple[str, str],
    runs: Mapping[str, Run[MigrationCase]],
    columns: Sequence[Column],
) -> Table:
    """Return a table of the means of all runs, followed by their differences from the first run."""
    first, *others = runs
    table = _means(index, about, runs, columns)
    table.rows.extend(_differences(index, runs, [(other, first) for other in others], columns))
    return table


def tables(index: Runs) -> Iterator[Table]:
    """Yield the tables for which there are runs."""
    for base, others in drained(index):
        about = "cf. section 4.2", f"{base.setting.workload}: nodes emptied for maintenance"
        runs = {"waiting": base, "migration": others[0]}
        yield _compared(index, about, runs, DRAINS)
    for base, others in eternal(index):
        about = "cf. section 4.3", f"{base.setting.workload}: a load with eternal jobs"
        runs = {"normal jobs alone": base, "with eternal jobs": others[0]}
        yield _compared(index, about, runs, ETERNAL)
    asleep = sleeping(index)
    if asleep:
        yield _energy(index, asleep)
    for base, others in defragmented(index):
        about = "", f"{base.setting.workload}: defragmentation of a torus"
        yield _compared(index, about, {"without": base, **named(others)}, DEFRAGMENTATION)
    for group in foreseen(index):
        yield from _proactive(index, group)


def energy_runs(group: ComparedGroup) -> dict[str, Run[MigrationCase]]:
    """Return the runs of a group of `sleeping` by name."""
    asleep = [run for run in group.others if run.case.react]
    runs = {"no node sleeps": group.base, **named(asleep)}
    for run in group.others:
        if not run.case.react:
            runs[AWAKE] = run
    return runs


def _energy(index: Runs, groups: Sequence[ComparedGroup]) -> Table:
    rows = []
    for group in groups:
        for name, run in energy_runs(group).items():
            row = [f"{group.base.setting.workload}, {name}"]
            row.append(spread(mean_of(index, run, "energy_kwh"), hundredths))
            if run == group.base:
                row += ["", ""]
            else:
                row.append(spread(ratio_of(index, run, group.base, "energy_kwh"), change))
                row.append(spread(ratio_of(index, run, group.base, "flow_mean_s"), change))
            row.append(spread(mean_of(index, run, "energy_asleep"), share))
            rows.append([*row, spread(mean_of(index, run, _MOVES.metric), decimal)])
    columns = ["", "kWh", "change", "mean flow, change", "node time asleep", _MOVES.heading]
    paper = f"cf. section 5, means over {seeds(index, groups[0].base)}"
    return Table(paper, "Energy of a day", columns, rows)


def _proactive(index: Runs, group: ComparedGroup) -> Iterator[Table]:
    scenario = group.base.setting.scenario
    law = f"{scenario.failure_model}: {scenario.law or ''}".replace(",", ", ")
    runs = named([group.base, *group.others])
    columns = (*PROACTIVE, *_ACTIONS)
    yield _means(index, (law, f"{subject(group)}: proactive migration"), runs, columns)
    rows = _differences(index, runs, pairs(runs), PROACTIVE)
    title = f"{subject(group)}: differences under the same failures"
    heads = ["", *headings(PROACTIVE)]
    yield Table("shares in points, times in %, paired by seed", title, heads, rows)


def pairs(runs: dict[str, Run[MigrationCase]]) -> list[tuple[str, str]]:
    """Return pairs of names: each run with the first run, and each proactive with each reactive."""
    first, *others = runs
    ahead = [name for name in others if "foresee" in runs[name].case.react]
    return [
        *((other, first) for other in others),
        *((ours, base) for ours in ahead for base in others if base not in ahead),
    ]


def subject(group: ComparedGroup) -> str:
    """Return the workload and the grid as text.

    The name of a grid identifies its failure scenario.
    """
    return f"{group.base.setting.workload}, {group.base.setting.grid}"
