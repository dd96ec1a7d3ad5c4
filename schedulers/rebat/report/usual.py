# SPDX-License-Identifier: Apache-2.0
"""The default report. It compares all policies with the first policy in the campaign file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from rebat.core.numbers import about_percent, number, percent, ratio, rounded, spread
from rebat.figures.charts import Panel, Ratios, lines_svg, ratio_title, ratios_svg, shows_intervals
from rebat.report.parts import Picture, Report, ReportMaker, means_note, seeds_text
from rebat.report.runs_index import (
    Column,
    RunIndex,
    Setting,
    SweptRuns,
    column,
    lines_of,
    pooled,
    simulations,
    sweeps,
)
from rebat.report.table import Table, bracketed
from rebat.results.catalogue import VERDICT
from rebat.results.catalogue import metric as row_of
from rebat.results.comparison import change_text
from rebat.results.intervals import any_interval
from rebat.results.measures.platform import MOST_APART, NOT_COMPARABLE, WHY_NOT, of_window
from rebat.runs.simulating import workload_of
from rebat.runs.unit import Unit
from rebat.workloads.describe import describe

METRICS = tuple(
    map(
        column,
        (
            "useful_utilisation",
            "flow_mean_s",
            "flow_weighted_mean_s",
            "flow_max_s",
            "service_wait_mean_s",
            "service_wait_p95_s",
            "service_bounded_slowdown_mean",
            "service_bounded_slowdown_p95",
            "fairness_jain",
            "platform_idle_share",
            "failures_hit",
            "steals",
            "training_ettr",
            "training_ettr_queued",
            "spares_utilisation",
            "rejected",
        ),
    )
)
DRAWN = METRICS[:4]
"""Metrics of the figures and of the overview tables."""

MARK = "The mark = means that the interval contains"


def report(
    path: Path, tables: Sequence[Table], pictures: Sequence[Picture], provenance: Sequence[str]
) -> Report:
    """Return the report of a campaign's ``results.parquet``."""
    runs = RunIndex(simulations(path, str))
    compared = [*pooled(runs, DRAWN), *_overview(runs), *_settings(runs)]
    intervals = bracketed(row for table in compared for row in table.rows)
    with_, mark = (" with 95 % intervals", f" {MARK} 1.") if intervals else ("", "")
    return Report(
        title="Policies compared",
        lead=(
            f"Values are means over seeds{with_}. A ratio is a mean of ratios: for each seed, the "
            f"value is divided by the value of the first policy of the file.{mark} If a workload "
            "was generated with several seeds, values are first averaged over the seeds of the "
            "failures."
        ),
        judgements=[],
        tables=[*compared, *map(_without_number, tables)],
        pictures=[*_sweep_pictures(runs), *_pictures(runs), *pictures],
        provenance=provenance,
        figures_note="Points are means over seeds.",
        claims=False,
        findings=[*findings(runs, [name for name, _ in VERDICT])],
    )


def _without_number(table: Table) -> Table:
    """Return a table without the number that it has in the paper.

    The number is only correct for the workloads of the paper.
    """
    return msgspec.structs.replace(table, paper="")


MOST_FINDINGS = 12
"""Maximum number of sentences in the summary."""


def findings(runs: RunIndex[str], metrics: Sequence[str]) -> Iterator[str]:
    """Yield a sentence per setting and policy on the changes relative to the first policy."""
    settings = [item for item in runs.settings if len(runs.cases(item)) > 1]
    _, labels = labels_of(settings) if settings else ("", [])
    sentences = []
    for item, label in zip(settings, labels, strict=True):
        base, *others = runs.cases(item)
        for policy in others:
            changes = [
                f"{row_of(name).title} {change_text(ratio)}"
                for name in metrics
                if (ratio := runs.ratio(item, policy, base, name))
            ]
            where = f"{label}: " if len(settings) > 1 else ""
            texts = f"{', '.join(changes)} ({n_of(runs, item)})"
            sentences.append(f"{where}{policy} against {base}: {texts}")
    yield from sentences[:MOST_FINDINGS]
    if len(sentences) > MOST_FINDINGS:
        yield f"{len(sentences) - MOST_FINDINGS} more comparisons are in the figures and tables"


def n_of(runs: RunIndex[str], setting: Setting) -> str:
    """Return the number of seeds or of generated workloads as text, for a note."""
    policies = runs.cases(setting)
    text = seeds_text(len(runs.values(setting, name, "useful_utilisation")) for name in policies)
    return text.replace("seeds", "draws") if setting in runs.drawn else text


def _overview(runs: RunIndex[str]) -> Iterator[Table]:
    """Yield a table of ratios for each metric, with a row for each setting.

    If there is only one setting, yield no tables.
    """
    settings = [item for item in runs.settings if len(runs.cases(item)) > 1]
    if len(settings) < 2:
        return
    names = list(dict.fromkeys(p for item in settings for p in runs.cases(item)[1:]))
    shared, labels = labels_of(settings)
    for metric in DRAWN:
        rows = []
        for item, label in zip(settings, labels, strict=True):
            base = runs.cases(item)[0]
            cells = [
                spread(runs.ratio(item, name, base, metric.metric), ratio, 1.0)
                + not_comparable(metric.metric, runs.comparable((item, name), (item, base)))
                for name in names
            ]
            rows.append([label, n_of(runs, item), *cells])
        title = f"{metric.heading}: ratios to the first policy"
        yield Table("", title, ["runs", "over", *names], rows, shared)


def labels_of(settings: Sequence[Setting]) -> tuple[str, list[str]]:
    """Return the parts that all settings have in common, and a short label for each setting.

    The label is the name of the grid, followed by the parts that differ within the grid.
    """
    parts = [_parts(item) for item in settings]
    shared = [part for part in parts[0] if all(part in others for others in parts)]
    labels = []
    for item in settings:
        alike = [_parts(other) for other in settings if other.grid == item.grid]
        own = [p for p in _parts(item) if not all(p in others for others in alike)]
        labels.append(f"{item.grid}: {', '.join(own)}" if own else item.grid)
    return ", ".join(shared), labels


def _parts(setting: Setting) -> list[str]:
    return [setting.workload, *setting.scenario.parts]


def _settings(runs: RunIndex[str]) -> Iterator[Table]:
    _, labels = labels_of(runs.settings)
    for setting, label in zip(runs.settings, labels, strict=True):
        base = runs.cases(setting)[0]
        shown = [metric for metric in METRICS if _any(runs, setting, metric)]
        rows = []
        for policy in runs.cases(setting):
            row = [policy]
            for metric in shown:
                value = runs.interval(setting, policy, metric.metric)
                row.append(spread(value, metric.shown))
            rows.append(row)
            if policy != base:
                same = runs.comparable((setting, policy), (setting, base))
                ratios = [
                    spread(runs.ratio(setting, policy, base, metric.metric), ratio, 1.0)
                    + not_comparable(metric.metric, same)
                    for metric in shown
                ]
                rows.append([f"  / {base}", *ratios])
        columns = ["policy", *(metric.heading for metric in shown)]
        note = f"{setting.label}; {means_note(n_of(runs, setting), rows)}"
        note += _apart(runs, setting)
        yield Table("", label, columns, rows, note)


def not_comparable(metric: str, same: bool | None) -> str:
    """Return the mark of a ratio of node times that are not comparable.

    Otherwise, return an empty text.
    """
    return f" {NOT_COMPARABLE}" if same is False and of_window(metric) else ""


def _apart(runs: RunIndex[str], setting: Setting) -> str:
    """Return a note if node times cannot be compared across policies or with failure-free runs."""
    base, *others = runs.cases(setting)
    texts = []
    if any(runs.comparable((setting, item), (setting, base)) is False for item in others):
        texts.append(WHY_NOT)
    if setting.scenario.failure_model is None:
        return "".join(f"; {text}" for text in texts)
    for scenario in setting.scenario.failure_free:
        calm = setting._replace(scenario=scenario)
        if calm not in runs.settings:
            continue
        policies = [item for item in runs.cases(calm) if item in runs.cases(setting)]
        if any(runs.comparable((setting, item), (calm, item)) is False for item in policies):
            texts.append(
                "useful utilisation is not comparable with that of "
                f"{scenario.label}, because the work at hand in the window differs by more than "
                f"{about_percent(MOST_APART)} of the window's node time, and at times no job waited"
            )
    return "".join(f"; {text}" for text in texts)


def _any(runs: RunIndex[str], setting: Setting, metric: Column) -> bool:
    return any(
        any(runs.values(setting, policy, metric.metric).values()) for policy in runs.cases(setting)
    )


MOST_SWEEPS = 24
"""Maximum number of line pictures."""


def _sweep_pictures(runs: RunIndex[str]) -> Iterator[Picture]:
    """Yield a picture with lines for each sweep."""
    for sweep in islice(sweeps(runs), MOST_SWEEPS):
        panels = [
            Panel(column.metric, lines)
            for column in DRAWN
            if (lines := lines_of(runs, sweep, column.metric))
        ]
        yield sweep_picture(runs, sweep, panels, sweep.fixed.workload)


def sweep_picture(
    runs: RunIndex[str], sweep: SweptRuns, panels: Sequence[Panel], subject: str
) -> Picture:
    """Return the picture of a sweep. Its note mentions bands only if there are intervals."""
    drawn = any_interval(
        mean for panel in panels for line in panel.lines.values() for _, mean in line
    )
    note = f"{sweep.fixed_text}; means over {n_of(runs, sweep.fixed)}"
    note += ", bands: 95 % intervals" if drawn else ""
    title = f"{sweep.fixed.grid}: {subject} over {sweep.title}"
    svg = lines_svg(panels, sweep.title, sweep.is_time)
    return Picture("", title, svg, note, intervals=drawn)


def _pictures(runs: RunIndex[str]) -> Iterator[Picture]:
    _, labels = labels_of(runs.settings)
    for setting, label in zip(runs.settings, labels, strict=True):
        base, *others = runs.cases(setting)
        ratios = {
            ratio_title(metric.metric): {
                policy: ratio
                for policy in others
                if (ratio := runs.ratio(setting, policy, base, metric.metric))
            }
            for metric in DRAWN
        }
        if any(ratios.values()):
            title, over = f"{label}: ratios to {base}", n_of(runs, setting)
            yield ratio_picture(title, ratios, base, over, f"{setting.label}; {over}")


def ratio_picture(title: str, ratios: Ratios, base: str, over: str, note: str) -> Picture:
    """Return a picture of ratios. Its note mentions lines only if there are intervals."""
    drawn = shows_intervals(ratios)
    note += ", lines: 95 % intervals" if drawn else ""
    return Picture("", title, ratios_svg(ratios, base, over), note, intervals=drawn)


def workload_tables(units: Sequence[Unit]) -> Iterator[Table]:
    """Yield Tables 2 and 3: statistics of the workloads without checkpoints.

    The file of a report contains these tables. So that its bytes stay the same, numbers have the
    form of `core.numbers` for programs. `for_readers` writes them for the page.
    """
    first_units = {unit.spec.workload: unit for unit in reversed(units)}
    facts = {name: describe(workload_of(unit)) for name, unit in sorted(first_units.items())}
    numbers = [fact["size_classes"] for fact in facts.values()]
    classes = [
        c
        for c in dict.fromkeys(c for of in numbers for c in of)
        if any(of.get(c) for of in numbers)
    ]
    yield Table(
        "Table 2",
        "Number of jobs by size",
        ["workload", *classes, "total"],
        [
            [name, *(str(fact["size_classes"].get(c, 0)) for c in classes), str(fact["jobs"])]
            for name, fact in facts.items()
        ],
    )
    columns = ["min", "max", "mean", "median"]
    yield Table(
        "Table 3",
        "Stress and run times",
        ["workload", "stress", *columns],
        [
            [name, "" if fact["stress"] is None else f"{fact['stress']:.2%}"]
            + [rounded(fact["run_time_s"][column]) for column in columns]
            for name, fact in facts.items()
        ],
        _of_own_machine(units),
    )


def for_readers(table: Table) -> Table:
    """Return a table of `workload_tables` with numbers for readers.

    >>> for_readers(Table("", "", ["workload", "jobs"], [["june", "3311"], ["may", "90.00%"]])).rows
    [['june', '3,311'], ['may', '90.00 %']]
    """
    rows = [[name, *map(_for_readers, cells)] for name, *cells in table.rows]
    return msgspec.structs.replace(table, rows=rows)


def _for_readers(cell: str) -> str:
    if cell.isdecimal():
        return number(int(cell))
    return percent(float(cell[:-1]) / 100) if cell.endswith("%") else cell


def _of_own_machine(units: Sequence[Unit]) -> str:
    """Return a note on the stress if a grid sets the number of nodes."""
    if not any(unit.spec.scenario.nodes for unit in units):
        return ""
    return "The stress of a workload refers to its own machine, not to the nodes of a grid."


REPORT = ReportMaker(report, True)
