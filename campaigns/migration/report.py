# SPDX-License-Identifier: Apache-2.0
"""The report on job migration: Figures 3 and 4, Tables 1 and 2, and the claims of the paper.

The paper describes drains and eternal jobs, but does not measure them. Energy, defragmentation and
proactive migration are not in the paper.

References
----------
.. [1] M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García, "Job migration
   in HPC clusters by means of checkpoint/restart", The Journal of Supercomputing, 2019, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.numbers import (
    Form,
    about_percent,
    change,
    decimal,
    duration,
    minutes,
    number,
    percent,
    points,
    share,
    spread,
)
from rebat.core.units import to_s
from rebat.figures.canvas import colours, new_figure, svg_of
from rebat.figures.charts import grouped_bars, stacks
from rebat.figures.torus import cores_at_instants, owners
from rebat.models.boxes import TorusBlocks
from rebat.models.topology import Torus
from rebat.policies.presets import preset
from rebat.report.claims import INSIDE, NEAR, place_of
from rebat.report.parts import Picture, Report, ReportMaker
from rebat.report.runs_index import Run, change_of, mean_of
from rebat.report.table import Table
from rebat.results.intervals import (
    BySeed,
    Interval,
    any_interval,
    combined,
    exact_number,
    interval,
    minus,
)
from rebat.runs.single import RunResult, simulate
from rebat.workloads.generate import generator

from . import beyond, claims, runs
from .beyond import AWAKE, energy_runs, subject
from .runs import (
    CORES,
    FIGURE_3,
    FIGURE_3_LOAD,
    FORMS,
    LONGEST_S,
    MIXED,
    STATES,
    TABLE_1_S,
    TABLE_2,
    WAITING_FACTOR,
    WITHOUT,
    ComparedGroup,
    MigrationCase,
    Runs,
    compactions,
    defragmented,
    drained,
    eternal,
    figure_4,
    foreseen,
    index_of,
    named,
    ratio_of,
    seeds,
    sleeping,
    states_of,
    table_2,
)

_T_S = 1800.0
"""Mean run time of the jobs in an example, in seconds."""


MINUTES = minutes.in_unit("min", 60)
POINTS = points._replace(signed=False, decimals=1)
IN_POINTS = points.in_unit("points", 0.01)


def effect(mean: Interval | None, form: Form) -> str:
    """Format a mean difference with its interval. Add a mark if the interval contains 0.

    >>> effect(Interval(0.02, -0.01, 0.05, 9), IN_POINTS)
    '+2.0 points [−1.0, +5.0] (not significant)'
    """
    if mean is None:
        return "unknown"
    unsure = mean.contains(0) and mean.width
    return spread(mean, form) + (" (not significant)" if unsure else "")


def answers(index: Runs) -> Iterator[str]:
    """Yield an answer to each question for which there are runs."""
    yield from _nearest(index)
    yield from _drains(index)
    yield from _eternal(index)
    yield from _energy(index)
    yield from _defragmentation(index)
    yield from _proactive(index)


def _nearest(index: Runs) -> Iterator[str]:
    loads = figure_4(index)
    forms = dict.fromkeys(run.case for group in loads.values() for run in group.others)
    distances = {case.label: _distance(index, loads, case) for case in forms}
    if distances:
        best = min(distances, key=lambda name: distances[name])
        texts = ", ".join(f"{name} {POINTS(value)}" for name, value in distances.items())
        yield (
            f"Which variant of compaction is closest to Figure 4? {best[:1].upper()}{best[1:]}. "
            "The list shows the root mean square differences from the published changes of the "
            f"share of mixed nodes, over the loads, in points: {texts}."
        )


def _distance(index: Runs, loads: Mapping[int, ComparedGroup], case: MigrationCase) -> float:
    """Return the distance of a form of compaction from Figure 4, over all loads.

    Compaction changes the share of mixed nodes. The distance is the root mean square difference
    between rebat's and the published change.
    """
    squares = []
    for load, (base, forms) in loads.items():
        without, with_ = MIXED[load]
        changes = [
            change_of(index, run, base, "node_states_mixed") for run in forms if run.case == case
        ]
        squares += [(change.mean - (with_ - without)) ** 2 for change in changes if change]
    return sqrt(sum(squares) / max(1, len(squares)))


def _drains(index: Runs) -> Iterator[str]:
    for waiting, (migrating, *_) in drained(index):
        longest = mean_of(index, migrating, "empty_after_max_s")
        delay = (
            "immediately"
            if longest and not longest.mean
            else f"after at most {spread(longest, MINUTES)}"
        )
        mean_s, max_s, empty = (
            mean_of(index, waiting, name)
            for name in ("empty_after_s", "empty_after_max_s", "emptied_share")
        )
        flow = effect(ratio_of(index, migrating, waiting, "flow_mean_s"), change)
        yield (
            f"How long does it take to empty a node of {waiting.setting.workload}? With migration "
            f"the node is empty {delay}. Writing an image takes no time in these simulations: a "
            "job pays for the entire checkpoint and restart when it continues, up to "
            f"{LONGEST_S:g} s for a job of {CORES} tasks. Waiting takes {spread(mean_s, MINUTES)} "
            f"on average and {spread(max_s, MINUTES)} at most, for the "
            f"{spread(empty, share)} of nodes that were empty before they returned to service. "
            "But while an administrator waits, the jobs on the node continue to run. Compared "
            f"with waiting, migration changes the mean flow by {flow}. If each of the {CORES} "
            "cores ran a separate job with an exponential run time of mean T, waiting would take "
            f"T * H_{CORES} = {number.with_digits(5)(WAITING_FACTOR)} T: "
            f"{MINUTES(WAITING_FACTOR * _T_S)} for jobs of {_T_S / 60:g} min. With fewer jobs on a "
            "node, waiting takes less time."
        )


def _eternal(index: Runs) -> Iterator[str]:
    for alone, (mixed, *_) in eternal(index):
        used = effect(change_of(index, mixed, alone, "useful_utilisation"), IN_POINTS)
        turnaround = effect(ratio_of(index, mixed, alone, "turnaround_normal_mean_s"), change)
        yield (
            f"What is the effect of eternal jobs ({mixed.setting.workload})? Useful utilisation "
            f"changes by {used}, to {spread(mean_of(index, mixed, 'useful_utilisation'), share)}. "
            f"The mean turnaround of normal jobs changes by {turnaround}. There are "
            f"{spread(mean_of(index, mixed, 'migrations_a_day'), decimal)} preemptions a day. They "
            f"take {spread(mean_of(index, mixed, 'cost_share'), share)} of the core time. In "
            "these simulations a preempted job leaves its cores immediately and pays for the "
            "checkpoint when it continues. On a real cluster, normal jobs would wait until the "
            "checkpoint is written."
        )


def _energy(index: Runs) -> Iterator[str]:
    texts = list(filter(None, (_saved(index, group) for group in sleeping(index))))
    if texts:
        yield (
            "Does compaction save energy, and how much energy does sleeping save without "
            "compaction? Changes of the energy of a day, compared with nodes that never sleep: "
            f"{'; '.join(texts)}."
        )


def _saved(index: Runs, group: ComparedGroup) -> str:
    runs = energy_runs(group)
    base, alone, both = (
        index.values(*runs[name], "energy_kwh") if name in runs else {}
        for name in ("no node sleeps", "sleeping", "compaction and sleeping")
    )
    if not (alone and both):
        return ""
    part = combined(lambda saved: saved[0] / saved[1], minus(base, alone), minus(base, both))

    def text(name: str) -> str:
        return effect(ratio_of(index, runs[name], group.base, "energy_kwh"), change)

    awake = f", only compaction {text(AWAKE)}" if AWAKE in runs else ""
    return (
        f"{group.base.setting.workload}: only sleeping {text('sleeping')}, sleeping and "
        f"compaction {text('compaction and sleeping')} (only sleeping achieves "
        f"{spread(interval(part), about_percent)} of this saving){awake}"
    )


def _defragmentation(index: Runs) -> Iterator[str]:
    for base, (moving, *_) in defragmented(index):
        blocked = change_of(index, moving, base, "fragmentation_blocked_share")
        used = change_of(index, moving, base, "useful_utilisation")
        yield (
            f"Is defragmentation useful on {base.setting.workload}? The share of time in which the "
            f"head of the queue is blocked changes by {effect(blocked, IN_POINTS)}, useful "
            f"utilisation by {effect(used, IN_POINTS)}, and the mean flow by "
            f"{effect(ratio_of(index, moving, base, 'flow_mean_s'), change)}. There are "
            f"{spread(mean_of(index, moving, 'migrations_a_day'), decimal)} migrations a day."
        )


def _proactive(index: Runs) -> Iterator[str]:
    for group in foreseen(index):
        runs = named([group.base, *group.others])
        for ours in (run for run in group.others if run.case.react == ("foresee",)):
            gains = {
                name: change_of(index, ours, runs[name], "useful_utilisation")
                for name in (group.base.case.short, "stealing", "replacement")
                if name in runs
            }
            against = ", ".join(
                f"{effect(gain, IN_POINTS)} compared with {name}" for name, gain in gains.items()
            )
            yield (
                f"Is {ours.case.label} better than node stealing and replacement on "
                f"{subject(group)}? Useful utilisation changes by {against}. "
                f"{_moved(index, group, ours)}{_with_stealing(index, _combined(group, ours))}"
            )


def _combined(group: ComparedGroup, ours: Run[MigrationCase]) -> Run[MigrationCase] | None:
    both = (run for run in group.others if run.case.react == ("foresee", "stealing"))
    return next((run for run in both if run.case.axes == ours.case.axes), None)


def _moved(index: Runs, group: ComparedGroup, ours: Run[MigrationCase]) -> str:
    """Return a text on the changes of failures and flows, or a text that no job was moved."""
    if not any(index.values(*ours, "migrations_count").values()):
        used = [index.values(*run, "useful_utilisation") for run in (ours, group.base)]
        same = used[0] == used[1]
        return "No job was moved" + (", so the result is that of the baseline." if same else ".")
    hits = [spread(mean_of(index, run, "failures_hit"), decimal) for run in (ours, group.base)]
    flows = ", ".join(
        f"{words} flow {effect(ratio_of(index, ours, group.base, f'flow_{metric}_s'), change)}"
        for words, metric in (
            ("mean", "mean"),
            ("weighted mean", "weighted_mean"),
            ("largest", "max"),
        )
    )
    return (
        f"Failures that hit a job: {hits[0]} (baseline: {hits[1]}). Compared with the baseline: "
        f"{flows}."
    )


def _with_stealing(index: Runs, both: Run[MigrationCase] | None) -> str:
    """Return a sentence if no node was stolen in the run ``both``, otherwise an empty text."""
    if both is None or any(index.values(*both, "steals").values()):
        return ""
    hit, free = (index.values(*both, name) for name in ("failures_hit", "free_node_at_hit"))
    why = ", because a node was free at every failure" if hit == free else ""
    return f" In combination with stealing, no node was stolen{why}."


DAY, POLICY = "cluster-day:load=50", "compaction"
"""The drawn run: seed 0 of the load of Figure 3."""


class Instant(NamedTuple):
    """A compaction: its time, the jobs that move, and the job on each core before and after it."""

    at_us: int
    jobs: list[int]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]


def migration_pictures() -> Iterator[Picture]:
    """Yield a picture of the machine before and after the first compaction of a day."""
    result = simulate(generator(DAY)(0), preset(POLICY), cores_per_node=CORES)
    instant = first_compaction(result)
    if instant:
        panels = {"just before": instant.before, "just after": instant.after}
        svg = cores_at_instants(panels, CORES, instant.jobs)
        when = duration(to_s(instant.at_us))
        title = f"a compaction empties a node, {when} after the start of a simulated day"
        yield Picture("cf. Algorithm 1", title, svg)


def first_compaction(result: RunResult) -> Instant | None:
    """Return the first compaction that empties a node. Return None if there is none."""
    moved = [record for record in result.ledger.attempts if record.why == "compact"]
    if not moved:
        return None
    at_us = min(record.end_us for record in moved)
    jobs = [record.attempt.job_serial for record in moved if record.end_us == at_us]
    each = TorusBlocks(Torus((result.summary.n_nodes,)))  # here, a block is a core
    before, after = (owners(result.ledger, each, time_us) for time_us in (at_us - 1, at_us))
    return Instant(at_us, sorted(jobs), before, after)


_SHARE = "share of node time"
_PRINTED = ("paper, without", "paper, with")


def pictures(index: Runs) -> Iterator[Picture]:
    """Yield the figures for which there are runs."""
    loads = figure_4(index)
    if FIGURE_3_LOAD in loads:
        title = f"node time at {FIGURE_3_LOAD} % load"
        yield Picture("Figure 3", title, _figure_3_picture(index, loads[FIGURE_3_LOAD]))
    if loads:
        yield _figure_4_picture(index, loads)
    for load, pair in table_2(index).items():
        for partition, states in TABLE_2[load].items():
            svg = _table_2_picture(index, partition, states, pair)
            yield Picture("Table 2", f"{partition} partition at {load} % load", svg)


def _means(index: Runs, run: Run[MigrationCase], of: str = "node_states") -> dict[str, float]:
    means = {state: index.mean(*run, f"{of}_{state}") for state in STATES}
    return {state: mean for state, mean in means.items() if mean is not None}


def _printed(states: Mapping[str, tuple[float, float]], which: int) -> dict[str, float]:
    return {state: states[state][which] for state in STATES}


def _figure_3_picture(index: Runs, pair: ComparedGroup) -> str:
    bars = {_word(run.case): _means(index, run) for run in _shown(pair)}
    bars |= {name: _printed(FIGURE_3, which) for which, name in enumerate(_PRINTED)}
    return stacks(bars, _SHARE)


def _table_2_picture(
    index: Runs, partition: str, states: Mapping[str, tuple[float, float]], pair: ComparedGroup
) -> str:
    bars = {}
    for which, (word, run) in enumerate((("without", pair.base), ("with", pair.others[0]))):
        bars[word] = _means(index, run, f"partition_states_{partition}")
        bars[_PRINTED[which]] = _printed(states, which)
    return stacks(bars, _SHARE)


def _shown(pair: ComparedGroup) -> list[Run[MigrationCase]]:
    return [pair.base, *(run for case in FORMS for run in pair.others if run.case == case)]


def _word(case: MigrationCase) -> str:
    return "without" if case == WITHOUT else case.label


def _figure_4_picture(index: Runs, loads: Mapping[int, ComparedGroup]) -> Picture:
    """Draw a group of bars per load. Whiskers are 95 % intervals. The paper's bars are grey."""
    series: dict[str, dict[int, Interval]] = {}
    for load, pair in loads.items():
        for run in _shown(pair):
            mean = mean_of(index, run, "node_states_mixed")
            if mean:
                bars = series.setdefault(_word(run.case), {})
                bars[load] = mean
    drawn = any_interval(mean for bars in series.values() for mean in bars.values())
    for which, name in enumerate(_PRINTED):
        series[name] = {load: exact_number(MIXED[load][which]) for load in loads}
    figure = new_figure(max(1.0 + 1.2 * len(loads), 4.6), 3.8)
    axis = figure.subplots()
    shades = [*colours(len(series))[: len(series) - 2], "#dddddd", "#999999"]
    grouped_bars(
        axis,
        {
            name: (shade, [bars.get(load) for load in loads])
            for (name, bars), shade in zip(series.items(), shades, strict=True)
        },
        width=0.85,
    )
    axis.set_xticks(range(len(loads)), [f"{load} %" for load in loads])
    axis.set_xlabel("load", fontsize=9)
    axis.set_ylabel("share of node time in mixed nodes", fontsize=9)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    title = "share of node time in mixed nodes"
    return Picture("Figure 4", title, svg_of(figure), intervals=drawn)


def printed_text(values: BySeed, printed: float, shown: Form) -> str:
    """Format a published value. If its size verdict is 'inside' or 'near', add the verdict."""
    ours = interval(values)
    place = place_of(ours, printed) if ours else ""
    return shown(printed) + (f" ({place})" if place in (INSIDE, NEAR) else "")


def tables(index: Runs) -> Iterator[Table]:
    """Yield the tables for which there are runs."""
    loads = figure_4(index)
    if loads:
        yield _figure_4(index, loads)
    if runs.FIGURE_3_LOAD in loads:
        yield _figure_3(index, loads[runs.FIGURE_3_LOAD])
    if compactions(index):
        yield _overheads(index)
    for load, pair in table_2(index).items():
        yield _table_2(index, load, pair)


def _figure_4(index: Runs, loads: Mapping[int, ComparedGroup]) -> Table:
    rows = []
    for load, (base, forms) in loads.items():
        without, with_ = runs.MIXED[load]
        before = index.values(*base, "node_states_mixed")
        cells = [
            spread(interval(before), share),
            printed_text(before, without, share),
            "",
            "",
        ]
        rows.append([f"{load} %, without", *cells])
        for name, run in named(forms).items():
            after = index.values(*run, "node_states_mixed")
            fall = minus(after, before)
            cells = [spread(interval(after), share), printed_text(after, with_, share)]
            cells += [
                spread(interval(fall), points),
                printed_text(fall, with_ - without, points),
            ]
            rows.append([f"{load} %, {name}", *cells])
    columns = ["load", "mixed", "paper", "change, points", "paper"]
    over = seeds(index, next(iter(loads.values())).base)
    return Table(f"Figure 4, means over {over}", "Share of node time in mixed nodes", columns, rows)


class _Row(NamedTuple):
    """A row of a table: its label, and rebat's and the published values by state of nodes."""

    label: str
    values: Mapping[str, BySeed]
    printed: Mapping[str, float]
    shown: Form = share


def _states(paper: str, title: str, rows: Sequence[_Row]) -> Table:
    columns = [heading for state in runs.STATES for heading in (state, "paper")]
    lines = []
    for row in rows:
        line = [row.label]
        for state in runs.STATES:
            values = row.values[state]
            printed = row.printed.get(state)
            line.append(spread(interval(values), row.shown))
            line.append("" if printed is None else printed_text(values, printed, row.shown))
        lines.append(line)
    return Table(paper, title, ["", *columns], lines)


def _figure_3(index: Runs, pair: ComparedGroup) -> Table:
    without, with_ = ({state: both[i] for state, both in runs.FIGURE_3.items()} for i in (0, 1))
    rows = [_Row("without", states_of(index, pair.base), without)]
    for name, run in named(pair.others).items():
        rows.append(_Row(name, states_of(index, run), with_))
    paper = f"Figure 3, means over {seeds(index, pair.base)}"
    return _states(paper, f"Node time at {runs.FIGURE_3_LOAD} % load", rows)


def _table_2(index: Runs, load: int, pair: ComparedGroup) -> Table:
    rows = []
    for partition, states in runs.TABLE_2[load].items():
        of = f"partition_states_{partition}"
        before, after = (states_of(index, run, of) for run in (pair.base, pair.others[0]))
        without, with_ = ({state: both[i] for state, both in states.items()} for i in (0, 1))
        rows.append(_Row(f"{partition}, without migration", before, without))
        rows.append(_Row(f"{partition}, with migration", after, with_))
        changes = {state: minus(after[state], before[state]) for state in runs.STATES}
        printed = {state: with_[state] - without[state] for state in runs.STATES}
        rows.append(_Row(f"{partition}, change, points", changes, printed, points))
    paper = f"Table 2, means over {seeds(index, pair.base)}"
    return _states(paper, f"Two partitions, {load} % load", rows)


def _overheads(index: Runs) -> Table:
    shown = (
        ("migrations a day", "migrations_a_day", decimal),
        ("core-seconds per migration", "cost_of_one", decimal),
        ("core-hours a day", "core_h_a_day", decimal),
        ("share of core time", "cost_share", percent),
    )
    groups = compactions(index)
    rows = []
    for group in groups:
        workload = group.base.setting.workload
        for name, run in named(group.others).items():
            cells = [spread(mean_of(index, run, metric), how) for _, metric, how in shown]
            memory = runs.MEMORY_MB.get(workload, runs.USUAL_MB)
            rows.append([f"{workload}, {name}", number(memory), *cells])
    columns = ["", "MB per task", *(heading for heading, *_ in shown)]
    paper = f"with the costs of Table 1, means over {seeds(index, groups[0].base)}"
    return Table(paper, "Cost of checkpoints and restarts", columns, rows)


LEAD = (
    "M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García: Job migration in "
    "HPC clusters by means of checkpoint/restart, 2019. This report simulates section 4: random "
    "days of a cluster of eight nodes with 16 cores each. Jobs can be checkpointed and restarted "
    "on other nodes, at the cost in Table 1. The paper shows one day per load. Values here are "
    "means over several days. The report also contains experiments that the paper names but does "
    "not measure, and experiments that are not in the paper."
)


def _seconds(memory_mb: int) -> str:
    of = TABLE_1_S[memory_mb]
    return f"{of[1]:g} to {of[CORES]:g} s for 1 to {CORES} tasks of {memory_mb} MB"


REMARKS = (
    "The days are drawn from the distributions that the paper names. The mean run time and the "
    "mean number of cores are only in figures of the paper, which are not available. rebat uses "
    "values with which the share of mixed nodes without migration is close to the paper's. The "
    "listings of the paper's two algorithms are not available either. In rebat, compaction "
    "empties one node per minute while no job waits. All jobs of this node move to one other "
    "node or, with several targets, to several nodes with enough free cores. Node time is "
    "measured over 24 hours. rebat computes it exactly, while the paper samples it every 5 s.",
    "Intervals are over the seeds of the workloads, or over the seeds of the failures if there are "
    "failures. Differences are paired by seed. No interval is shown if all seeds have the same "
    "value. The paper's values are from a single day. The direction of the changes in Table 2 at "
    "90 % is not judged, because the paper calls the percentages roughly the same.",
    "The cost of a migration is in core-seconds: the seconds of Table 1 that the job pays when "
    f"it continues, times its cores. The seconds in Table 1 are {_seconds(100)}, "
    f"{_seconds(1000)}. Energy depends on three assumed values, which are not measured: the power "
    "of a sleeping node, of an empty node and of a full node (axis power).",
)


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    index = index_of(path)
    return Report(
        title="Job migration by checkpoint and restart: evaluation repeated",
        lead=LEAD,
        remarks=(*REMARKS, *answers(index)),
        judgements=[*claims.judgements(index), *claims.published_values(index)],
        tables=[*workloads, *tables(index), *beyond.tables(index)],
        pictures=[*pictures(index), *more_pictures],
        provenance=provenance,
        subject="about",
        figures_note="Bars are means over seeds. In pictures of cores, jobs that move have strong "
        "colours and are numbered.",
        intervals_note="Whiskers are 95 % intervals.",
    )


REPORT = ReportMaker(report, False, lambda units: migration_pictures())
