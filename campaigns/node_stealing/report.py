# SPDX-License-Identifier: Apache-2.0
"""The report of simulations: sections 5 to 7 of Du, Marchal, Pallez, Robert 2024.

The published values come from the authors' program. The tables compare them with rebat's values,
with the semantics of the program and with those of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rebat.core.numbers import decimal, duration, exact, percent, spread
from rebat.figures import charts
from rebat.figures.charts import PrintedPanel, printed_svg
from rebat.figures.steal_hour import steal_hour
from rebat.report.parts import Picture, Report, ReportMaker, means_note
from rebat.report.runs_index import RunIndex, Setting
from rebat.report.table import Table, bracketed
from rebat.results.catalogue import NODE_TIME
from rebat.results.intervals import BySeed, Interval, any_interval, interval
from rebat.results.measures.platform import NOT_COMPARABLE, WHY_NOT
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run
from rebat.runs.unit import RunSpec, Unit

from . import runs as published
from .claims import judgements
from .runs import (
    ALIASES,
    HEADINGS,
    PROGRAM,
    Family,
    index_of,
    main_of,
    main_settings,
    policies,
    ratios,
    seeds_of,
    seeds_of_all,
    semantics,
)


class PrintedValue(NamedTuple):
    """A column of the paper's tables: heading with unit, metric, conversion and values."""

    heading: str
    metric: str
    counted: Callable[[float], float]
    values: Mapping[str, Mapping[str, float]]


def _percent(tables: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {policy: 100 * share for policy, share in table.items()}
        for name, table in tables.items()
    }


PRINTED = (
    PrintedValue(
        "useful utilisation (%)",
        "useful_utilisation",
        lambda share: 100 * share,
        _percent(published.UTILISATION),
    ),
    PrintedValue(
        "time with an idle node, as published (%)",
        "platform_idle_share",
        lambda share: 100 * published.idle_as_program(share),
        _percent(published.IDLE_SHARE),
    ),
    PrintedValue(
        "steals in the window",
        "steals",
        lambda count: count,
        {
            name: {policy: steals for policy, (steals, _) in table.items()}
            for name, table in published.STEALS.items()
        },
    ),
)


def printed_pictures(runs: RunIndex[str], setting: Setting) -> Iterator[Picture]:
    """Yield a figure of the published values of a setting, if the paper contains them."""
    panels = []
    for value in PRINTED:
        printed = published.printed(value.values, setting)
        if printed:
            panels.append(PrintedPanel(value.heading, printed, ours(runs, setting, value)))
    if panels:
        svg = printed_svg(policies(runs, setting), panels)
        title = f"{setting.workload}: published values and rebat ({setting.scenario.label})"
        series = [estimates for panel in panels for estimates in panel.ours.values()]
        drawn = any_interval(value for estimates in series for value in estimates.values())
        note = f"means over {seeds_of_all(runs, setting)}"
        note += ", 95 % intervals as lines" if drawn else ""
        yield Picture("Tables 4, 5, 7, 8, 9", title, svg, note, intervals=drawn)


def ours(
    runs: RunIndex[str], setting: Setting, value: PrintedValue
) -> dict[str, dict[str, Interval]]:
    """Return rebat's intervals by semantics and policy."""
    by_semantics: dict[str, dict[str, Interval]] = {}
    for prefix in reversed(semantics(runs, setting)):
        for policy in policies(runs, setting):
            values = runs.values(setting, prefix + policy, value.metric)
            counted = interval(map(value.counted, values.values()))
            if counted is not None:
                by_semantics.setdefault(HEADINGS[prefix], {})[policy] = counted
    return by_semantics


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    runs = index_of(path)
    own = list(tables(runs))
    drawn = bracketed(row for table in own for row in table.rows)
    return Report(
        title="Node stealing for failed jobs: evaluation repeated",
        lead=(
            "Y. Du, L. Marchal, G. Pallez, Y. Robert: Improving Batch Schedulers with Node "
            "Stealing for Failed Jobs, CCPE 2024. This report simulates sections 5 to 7 and "
            "shows the published values next to those of rebat. Generated months have the "
            "statistics of the paper's workloads, but other jobs. So compare trends, not exact "
            "values. Policies follow either the text of the paper (as in the paper) or the "
            "authors' program (as in the program). If a month was generated several times, means "
            f"{'and intervals ' if drawn else ''}are over the generated months."
        ),
        judgements=list(judgements(runs)),
        tables=[*workloads, *own],
        pictures=[*pictures(runs), *more_pictures],
        provenance=provenance,
    )


Ours = Callable[[str], str]
"""Function of a policy (with the prefix of its version) that returns rebat's value as text."""


def tables(runs: RunIndex[str]) -> Iterator[Table]:
    """Yield Tables 4, 5, 7, 8 and 9 with published and rebat's values, and tables of sweeps."""
    for setting, family in main_settings(runs):
        yield _utilisation(runs, setting)
        yield _idle(runs, setting)
        yield _steals(runs, setting)
        if len(family) > 1:
            yield _sweep(runs, family)


def _compared(
    runs: RunIndex[str], setting: Setting, printed: Mapping[str, str], columns: Mapping[str, Ours]
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of a table: published values, and rebat's values in each version."""
    names = semantics(runs, setting)[::-1]
    heads = ["policy", *(["published"] if printed else [])]
    heads += [f"{heading}{HEADINGS[name]}" for heading in columns for name in names]
    rows = []
    for policy in policies(runs, setting):
        row = [policy, *([printed.get(policy, "")] if printed else [])]
        rows.append([*row, *(ours(name + policy) for ours in columns.values() for name in names)])
    return heads, rows


def _utilisation(runs: RunIndex[str], setting: Setting) -> Table:
    def useful(policy: str) -> str:
        estimate = runs.interval(setting, policy, "useful_utilisation")
        return spread(estimate, percent)

    def of_all(policy: str) -> str:
        """Return the useful node time divided by all node time, including downtime."""
        useful = runs.mean(setting, policy, "platform_useful")
        total = runs.mean(setting, policy, "platform_total")
        return percent(None if useful is None or not total else useful / total)

    printed = published.printed(published.UTILISATION, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    columns, rows = _compared(runs, setting, texts, {"": useful, "of all node time, ": of_all})
    title = f"{setting.workload}: useful utilisation ({setting.scenario.label})"
    note = f"share of the node time that was up; {means_note(seeds_of_all(runs, setting), rows)}"
    if setting.scenario.accounting == "program":
        note += "; checkpoints are counted as in the program: a final checkpoint is useful time"
    return Table("Tables 4, 7, 8", title, columns, rows, note)


def _idle(runs: RunIndex[str], setting: Setting) -> Table:
    def idle(policy: str) -> str:
        estimate = runs.interval(setting, policy, "platform_idle_share")
        return spread(estimate, percent)

    def as_printed(policy: str) -> str:
        idle_share = runs.mean(setting, policy, "platform_idle_share")
        return "" if idle_share is None else percent(published.idle_as_program(idle_share))

    printed = published.printed(published.IDLE_SHARE, setting)
    texts = {policy: percent(value) for policy, value in printed.items()}
    parts = {"counted as published, ": as_printed, "": idle}
    columns, rows = _compared(runs, setting, texts, parts)
    title = f"{setting.workload}: time with at least one idle node ({setting.scenario.label})"
    note = (
        "share of time; nodes held for a failed job do not count as idle; published values are "
        "measured over 20 days but divided by 30 days; "
    ) + means_note(seeds_of_all(runs, setting), rows)
    return Table("Tables 5a, 8", title, columns, rows, note)


def _steals(runs: RunIndex[str], setting: Setting) -> Table:
    def counts(policy: str) -> str:
        steals = runs.interval(setting, policy, "steals")
        hits = runs.mean(setting, policy, "failures_hit")
        if steals is None or hits is None:
            return ""
        return f"{spread(steals, decimal)} + {decimal(hits - steals.mean)}"

    printed = published.printed(published.STEALS, setting)
    texts = {
        policy: f"{decimal(steals)} + {decimal(empty)}"
        for policy, (steals, empty) in printed.items()
    }
    columns, rows = _compared(runs, setting, texts, {"": counts})
    title = f"{setting.workload}: reactions to failures that hit a job ({setting.scenario.label})"
    note = (
        "number of decisions to steal + number of other reactions (a node was free, or there was "
        "no victim), in the window; "
    ) + means_note(seeds_of_all(runs, setting), rows)
    return Table("Tables 5b, 9", title, columns, rows, note)


def _sweep(runs: RunIndex[str], family: Family) -> Table:
    """Return a table with the results for all MTBFs and downtimes of a family."""
    rows, apart = [], ""
    main = main_of(runs, family)
    for setting in family:
        for policy in (a + p for a in semantics(runs, setting) for p in policies(runs, setting)):
            flow = runs.mean(setting, policy, "flow_weighted_mean_s")
            if flow is None:
                continue
            estimate = runs.interval(setting, policy, "useful_utilisation")
            useful = spread(estimate, percent)
            if runs.comparable((setting, policy), (main, policy)) is False:
                useful = f"{useful} {NOT_COMPARABLE}"
                apart = f"; {WHY_NOT} (compared with {main.scenario.label})"
            spans = (setting.scenario.mtbf_s, setting.scenario.downtime_s)
            rows.append(
                [
                    ", ".join("" if span is None else exact(span) for span in spans),
                    policy,
                    useful,
                    percent(runs.mean(setting, policy, "platform_idle_share")),
                    decimal(runs.mean(setting, policy, "steals")),
                    duration(flow),
                ]
            )
    columns = [
        "MTBF, downtime",
        "policy",
        "useful utilisation",
        "time with an idle node",
        "steals",
        "weighted mean flow",
    ]
    title = f"{main.workload}: all MTBFs and downtimes ({main.scenario.family_label})"
    note = means_note(seeds_of_all(runs, family[0]), rows)
    return Table("cf. Figures 9, 10, 11", title, columns, rows, note + apart)


_FLOWS = (("Largest flow", "flow_max_s"), ("Mean flow", "flow_mean_s"))


def pictures(runs: RunIndex[str]) -> Iterator[Picture]:
    """Yield figures of published values and Figures 1, 3 to 13, 19 to 21 that have runs."""
    for setting, family in main_settings(runs):
        yield from printed_pictures(runs, setting)
        names = policies(runs, setting)
        if "baseline" not in names:
            continue
        yield _against_failure_free(runs, setting)
        yield _decomposition(runs, setting, names)
        if "h111" in names:
            yield _absolute(runs, setting)
        for paper, title, variants in _COMPARISONS:
            shown = [policy for policy in variants if policy in names]
            if shown and (len(shown) > 1 or variants == ("h111",)):
                yield _ratio_picture(runs, setting, (paper, title), shown)
        if len({item.scenario.mtbf_s for item in family}) > 1:
            yield from _over_mtbf(runs, family)


_COMPARISONS = (
    ("Figures 6, 7, 13", "h111 / baseline", ("h111",)),
    ("Figure 19", "timings: now, proactive, next checkpoint", ("h111", "h211", "h311")),
    ("Figure 20", "victims: fewest nodes, latest release", ("h111", "h121")),
    ("Figure 21", "criteria: fewer nodes, later release, smaller flow", ("h111", "h112", "h113")),
)

_Read = Callable[[Setting, str, str, str], BySeed]
"""Function of setting, policy, metric and size class that returns values by seed."""


def _series(
    runs: RunIndex[str], setting: Setting, names: Sequence[str], metric: str, read: _Read
) -> dict[str, dict[str, list[float]]]:
    classes = runs.size_classes(setting)
    return {
        policy: {of: [*read(setting, policy, metric, of).values()] for of in classes}
        for policy in names
    }


def _flow_panels(
    runs: RunIndex[str], setting: Setting, names: Sequence[str], free: Setting | None = None
) -> list[charts.BoxPanel]:
    """Return panels of the largest and the mean flow by size class.

    ``free`` is the setting without failures. Dots are the values of Baseline in this setting.
    """
    panels = []
    for title, metric in _FLOWS:
        series = _series(runs, setting, names, metric, runs.values)
        dots = {
            of: value
            for of in runs.size_classes(setting)
            if free and (value := runs.mean(free, "baseline", metric, of))
        }
        panels.append(charts.in_time_units(title, series, dots))
    return panels


def _against_failure_free(runs: RunIndex[str], setting: Setting) -> Picture:
    calm = (setting._replace(scenario=scenario) for scenario in setting.scenario.failure_free)
    panels = _flow_panels(runs, setting, ["baseline"], next(filter(runs.cases, calm), None))
    title = f"{setting.workload}: baseline with failures ({setting.scenario.label})"
    note = seeds_of(runs, ["baseline"], setting)
    return Picture("Figures 1, 4, 5, 12", title, charts.boxes(panels), note)


def _absolute(runs: RunIndex[str], setting: Setting) -> Picture:
    panels = _flow_panels(runs, setting, ["baseline", "h111"])
    title = f"{setting.workload}: baseline and h111 ({setting.scenario.label})"
    return Picture(
        "Figure 8", title, charts.boxes(panels), seeds_of(runs, ["baseline", "h111"], setting)
    )


def _ratio_picture(
    runs: RunIndex[str], setting: Setting, about: tuple[str, str], names: Sequence[str]
) -> Picture:
    panels = []
    for label, metric in _FLOWS:
        series = _series(runs, setting, names, metric, partial(ratios, runs))
        if metric == "flow_mean_s":
            for policy in names:
                weighted = ratios(runs, setting, policy, "flow_weighted_mean_s")
                series[policy]["weighted"] = [*weighted.values()]
        panels.append((f"{label} / baseline", series, dict[str, float]()))
    paper, title = about
    caption = f"{setting.workload}: {title} ({setting.scenario.label})"
    note = f"paired by seed, {seeds_of(runs, names, setting)}"
    return Picture(paper, caption, charts.boxes(panels, one_line=True), note)


def _decomposition(runs: RunIndex[str], setting: Setting, names: Sequence[str]) -> Picture:
    bars = {}
    for policy in names:
        total = runs.mean(setting, policy, "platform_total") or 1.0
        bars[policy] = {
            use.title: (runs.mean(setting, policy, use.name) or 0.0) / total
            for use in NODE_TIME
            if use.name != "platform_useful"
        }
    svg = charts.stacks(bars, "share of node time that is not useful")
    title = f"{setting.workload}: use of node time ({setting.scenario.label})"
    note = f"means over {seeds_of(runs, names, setting)}"
    return Picture("Figure 3", title, svg, note)


def _over_mtbf(runs: RunIndex[str], family: Family) -> Iterator[Picture]:
    classes = [name for name in runs.size_classes(family[0]) if name != "all"]
    shown = (
        ("useful utilisation, h111 / baseline", "useful_utilisation", None),
        (f"largest flow of {classes[-1]}, ratio", "flow_max_s", classes[-1]),
        ("weighted mean flow, ratio", "flow_weighted_mean_s", None),
    )
    panels = []
    for label, metric, size_class in shown:
        lines: dict[str, list[tuple[float, float]]] = {}
        for item in sorted(family, key=lambda s: (s.scenario.downtime_s, s.scenario.mtbf_s)):
            gains = ratios(runs, item, "h111", metric, size_class)
            mtbf_s, downtime_s = item.scenario.mtbf_s, item.scenario.downtime_s
            if gains and mtbf_s is not None:
                name = "h111" if downtime_s is None else f"downtime {exact(downtime_s)}"
                mean = sum(gains.values()) / len(gains)
                lines.setdefault(name, []).append((mtbf_s / 3600, mean))
        if lines:
            panels.append((label, lines))
    if panels:
        title = f"{family[0].workload}: effect of the MTBF ({family[0].scenario.family_label})"
        note = f"means over {seeds_of(runs, ['h111'], *family)}"
        yield Picture("Figures 9, 10, 11", title, charts.lines(panels), note)


def an_hour(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield a picture of the machine during an hour around the first steal.

    The run is the first run of SFSJ, which is simulated again.
    """
    stealing = (unit for unit in units if unit.spec.scenario.failures and _is_stealing(unit.spec))
    unit = next(stealing, None)
    if unit is None:
        return
    result = simulate_run(unit)
    within = [t for t in result.ledger.steals if t >= result.summary.window_s[0] * 1e6]
    if within:
        svg = steal_hour(result.ledger, result.summary.n_nodes, within[0])
        about = f"{scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
        title = f"{unit.spec.workload}: an hour around a steal ({about}; hover for details)"
        yield Picture("cf. Figure 2", title, svg)


def _is_stealing(spec: RunSpec) -> bool:
    return ALIASES.get(spec.policy, spec.policy).removeprefix(PROGRAM) == "h111"


REPORT = ReportMaker(report, True, an_hour)
