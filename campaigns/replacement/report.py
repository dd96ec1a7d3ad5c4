# SPDX-License-Identifier: Apache-2.0
"""The report on node replacement: Figures 4 to 9 and the claims of the paper.

Other tables vary the parameters that the paper leaves open, and compare replacement with stealing.

References
----------
.. [1] S. Prabhakaran, M. Neumann, F. Wolf, "Efficient Fault Tolerance through Dynamic Node
   Replacement", 2018, sections IV and V.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.numbers import change, decimal, hours, share
from rebat.core.traits import Malleable, fields_of
from rebat.core.units import to_us
from rebat.figures.canvas import colours, new_figure, svg_of
from rebat.figures.charts import grouped_bars, stacks
from rebat.figures.runs import gantt_svg
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.report.parts import Picture, Report, ReportMaker
from rebat.report.runs_index import Column, Setting, headings
from rebat.report.table import Table
from rebat.results.intervals import BySeed, Interval, any_interval, interval
from rebat.runs.single import RunResult, simulate

from . import beyond, claims
from .runs import (
    FIGURES,
    PRINTED,
    RISES,
    RISES_REPLACED,
    SOURCES,
    ReplacementCase,
    Runs,
    free,
    index_of,
    middle,
    rise,
)

COLUMNS = (
    Column("useful utilisation", "useful_utilisation", share),
    Column("idle", "idle_share", share),
    Column("down", "down_share", share),
    Column("lost to moves and failures", "lost_share", share),
    Column("mean wait (h)", "resizes_mean_wait_s", hours),
    Column("hits", "hits", decimal),
    Column("requeued", "resizes_requeued", decimal),
)

NO_FAILURES = "no failures"


def tables(runs: Runs) -> Iterator[Table]:
    """Yield two tables for each workload of Table III, from its first setting."""
    for workload in FIGURES:
        setting = runs.main(workload)
        if setting:
            yield _makespans(runs, setting)
            yield _sources(runs, setting)


def _cells(read: Callable[[str], BySeed]) -> list[str]:
    return [middle(read(column.metric), column.shown) for column in COLUMNS]


def _makespans(runs: Runs, setting: Setting) -> Table:
    rows, shown = [], set()
    for case in runs.cases(setting):
        alone = case._replace(replaces=False, how="")
        if alone not in shown and free(runs, setting, alone):
            shown.add(alone)
            makespan = middle(free(runs, setting, alone), hours)
            cells = _cells(lambda metric, case=alone: free(runs, setting, case, metric))  # type: ignore[misc]
            rows.append([alone.label, NO_FAILURES, makespan, "", "", "", *cells])
        rows.append([case.label, "failures", *_failing(runs, setting, case)])
    columns = ["policy", "case", "makespan (h)", "rise", "mean rise", "paper", *headings(COLUMNS)]
    title = f"{setting.workload}: makespan and use of the machine"
    return Table(f"{FIGURES[setting.workload][0]}, medians over seeds", title, columns, rows)


def _failing(runs: Runs, setting: Setting, case: ReplacementCase) -> list[str]:
    rises = rise(runs, setting, case)
    average = interval(rises)
    return [
        middle(runs.values(setting, case, "makespan_s"), hours),
        middle(rises, change),
        change(average.mean) if average else "",
        printed_rise(setting.workload, case),
        *_cells(lambda metric: runs.values(setting, case, metric)),
    ]


def printed_rise(workload: str, case: ReplacementCase) -> str:
    """Return the published increase of the makespan as text.

    It is empty if the paper has no value.
    """
    table = (RISES_REPLACED if case.replaces else RISES).get(workload, {})
    plain = not (case.other_axes or case.how)
    return change.with_decimals(0)(table[case.name]) if plain and case.name in table else ""


def _sources(runs: Runs, setting: Setting) -> Table:
    rows = [
        [
            case.label,
            *(middle(runs.values(setting, case, f"share_{name}"), share) for name in SOURCES),
        ]
        for case in runs.cases(setting)
        if case.replaces
    ]
    if setting.workload in PRINTED:
        paper = PRINTED[setting.workload]
        rows.append(["paper", *(share(paper[name]) if name in paper else "" for name in SOURCES)])
    title = f"{setting.workload}: outcomes of jobs that a failure hits"
    columns = ["policy", *SOURCES.values()]
    return Table(f"{FIGURES[setting.workload][1]}, medians over seeds", title, columns, rows)


CASES = (NO_FAILURES, "failures", "failures, replacement")


def pictures(runs: Runs) -> Iterator[Picture]:
    """Yield two figures for each workload of Table III."""
    for workload, (makespans, sources) in FIGURES.items():
        setting = runs.main(workload)
        if setting is None:
            continue
        yield _makespan_picture(runs, setting, makespans)
        shares = _source_picture(runs, setting)
        if shares:
            yield Picture(
                sources, f"{workload}: sources of replacements", stacks(shares, "mean share")
            )


def _makespan_picture(runs: Runs, setting: Setting, paper: str) -> Picture:
    """Draw a group of bars per policy. Whiskers are 95 % intervals."""
    plain = [c for c in runs.cases(setting) if not (c.replaces or c.other_axes or c.how)]
    figure = new_figure(1.5 + 1.5 * len(plain), 3.4)
    axis = figure.subplots()
    medians = {case: [_median(runs, setting, policy, case) for policy in plain] for case in CASES}
    grouped_bars(
        axis,
        dict(zip(CASES, zip(colours(len(CASES)), medians.values(), strict=True), strict=True)),
        3600,
    )
    axis.set_xticks(range(len(plain)), [case.label for case in plain])
    axis.set_ylabel("makespan (h)", fontsize=9)
    axis.legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    drawn = any_interval(median for row in medians.values() for median in row)
    return Picture(paper, f"{setting.workload}: makespan", svg_of(figure), intervals=drawn)


def _median(runs: Runs, setting: Setting, policy: ReplacementCase, case: str) -> Interval | None:
    if case == NO_FAILURES:
        values = free(runs, setting, policy)
    else:
        failing = policy._replace(replaces=case != "failures")
        values = runs.values(setting, failing, "makespan_s")
    return interval(values, of_median=True)


def _source_picture(runs: Runs, setting: Setting) -> dict[str, dict[str, float]]:
    """Return the mean share of each source of nodes, by policy.

    The last entry contains the published shares.
    """
    shares = {}
    for case in runs.cases(setting):
        means = {name: runs.mean(setting, case, f"share_{name}") for name in SOURCES}
        if case.replaces and None not in means.values():
            label = case.label.replace(" with replacement", "")
            shares[label] = {SOURCES[name]: mean or 0.0 for name, mean in means.items()}
    printed = PRINTED.get(setting.workload)
    if shares and printed:
        shares["paper"] = {SOURCES[name]: share for name, share in printed.items()}
    return shares


POLICY = "dbes:react=replacement"
HOUR_S = 3600


WORDS = {
    "grow": "grows",
    "shrink": "shrinks",
    "lend": "shrinks for the other",
    "local": "hit: shrinks",
    "idle": "hit: idle node",
    "remote": "hit: nodes of the other",
    "restart": "hit: starts over",
}
"""Words in the picture, for the reasons that the policy states."""


def replacement_pictures() -> Iterator[Picture]:
    """Yield a picture of the small run."""
    result = small_run()
    svg = gantt_svg({POLICY: result.ledger}, result.summary.n_nodes, WORDS)
    yield Picture("", "a small example: a replacement, shrinks and growths", svg)


def small_run() -> RunResult:
    """Simulate two jobs on four nodes of two processors each. Two nodes fail.

    Job 1 is rigid and uses four processors for four hours. Job 2 is malleable, uses two to six
    processors, and has twelve processor-hours of work. Under DBES it takes the processors that job
    1 leaves free. After an hour a node of job 1 fails, and job 2 gives two processors to job 1.
    Later a node of job 2 fails.
    """
    jobs = [
        Job("1", 4, 0, to_us(4 * HOUR_S + 60), "1"),
        Job("2", 2, 0, to_us(8 * HOUR_S + 60), "2", fields_of(Malleable(2, 6))),
    ]
    profiles: dict[str, dict[str, Any]] = {
        "1": {"type": "delay", "delay": 4 * HOUR_S},
        "2": {"type": "delay", "delay": 8 * HOUR_S, "speedup": {"model": "linear"}},
    }
    workload = add_perfect(Workload("small", 8, tuple(jobs), profiles))
    events = [*_outage("2-3", 1.0, 2.0), *_outage("4-5", 3.0, 3.5)]
    return simulate(workload, preset(POLICY), machine_events=events)


def _outage(processors: str, first_h: float, last_h: float) -> list[MachineEvent]:
    nodes = NodeSet.parse(processors)
    return [
        MachineEvent(to_us(first_h * HOUR_S), False, nodes),
        MachineEvent(to_us(last_h * HOUR_S), True, nodes),
    ]


LEAD = (
    "S. Prabhakaran, M. Neumann, F. Wolf: Efficient Fault Tolerance through Dynamic Node "
    "Replacement, 2018. This report simulates section V: workloads of rigid, moldable and "
    "malleable jobs on a machine with about one node failure per hour and no checkpoint cost. The "
    "paper shows one run per case. Values here are medians over several workloads, each with its "
    "own failures."
)
REMARKS = (
    "The workloads are drawn from the distributions published in the paper. The workloads of the "
    "paper itself are not available. The paper leaves several parameters open: the arrival of "
    "jobs, the accuracy of estimates, the distributions of failures and repairs, and the "
    "decisions of DBES. rebat chooses these parameters. The tables of open parameters show the "
    "effect of changing some of these parameters, one at a time.",
    "Values are paired: a workload with failures is compared with the same workload without "
    "failures, and policies are compared under the same failures. Each source of replacements "
    "(for example idle nodes) is a share of all attempts that a failure hits. The paper does not "
    "state whether it counts jobs, attempts or processors.",
    "The 95 % interval of a median is between two of the sorted values: for ten values, between "
    "the 2nd and the 9th. For fewer than six values there is no interval. This report does not "
    "use means, because a mean can depend mostly on a single workload: a job that needs nearly "
    "all processors waits until nearly every node is repaired, and repair times have a heavy "
    "tail.",
)


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    runs = index_of(path)
    varied = list(beyond.choices(runs))
    sentences = [*(text for _, text in varied), *beyond.answers(runs)]
    return Report(
        title="Dynamic node replacement: evaluation repeated",
        lead=LEAD,
        remarks=(*REMARKS, *sentences),
        judgements=[
            *claims.judgements(runs),
            *beyond.spare_judgements(runs),
            *beyond.stealing_judgements(runs),
        ],
        tables=[
            *workloads,
            *tables(runs),
            *beyond.spare_tables(runs),
            *(table for table, _ in varied),
            *beyond.stealing_tables(runs),
        ],
        pictures=[*pictures(runs), *more_pictures],
        provenance=provenance,
        figures_note="Bars are medians over seeds.",
        intervals_note="Whiskers are 95 % intervals.",
    )


REPORT = ReportMaker(report, False, lambda units: replacement_pictures())
