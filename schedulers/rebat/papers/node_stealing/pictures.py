# SPDX-License-Identifier: Apache-2.0
"""The figures of the node-stealing paper, from a campaign's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rebat.core.units import exact
from rebat.figures import boxes
from rebat.figures.steal_hour import steal_hour
from rebat.papers.common.parts import Picture
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing.printed import printed_pictures
from rebat.papers.node_stealing.runs import (
    ALIASES,
    PROGRAM,
    Family,
    main_settings,
    policies,
    ratios,
    seeds_of,
)
from rebat.results.catalogue import NODE_TIME
from rebat.results.intervals import BySeed
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run
from rebat.runs.spec import RunSpec
from rebat.runs.unit import Unit

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
    ("Figures 6, 7, 13", "SFSJ / Baseline", ("h111",)),
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
) -> list[boxes.Panel]:
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
        panels.append(boxes.in_time_units(title, series, dots))
    return panels


def _against_failure_free(runs: RunIndex[str], setting: Setting) -> Picture:
    calm = (setting._replace(scenario=scenario) for scenario in setting.scenario.failure_free)
    panels = _flow_panels(runs, setting, ["baseline"], next(filter(runs.cases, calm), None))
    title = f"{setting.workload}: Baseline with failures ({setting.scenario.label})"
    note = seeds_of(runs, ["baseline"], setting)
    return Picture("Figures 1, 4, 5, 12", title, boxes.boxes(panels), note)


def _absolute(runs: RunIndex[str], setting: Setting) -> Picture:
    panels = _flow_panels(runs, setting, ["baseline", "h111"])
    title = f"{setting.workload}: Baseline and SFSJ ({setting.scenario.label})"
    return Picture(
        "Figure 8", title, boxes.boxes(panels), seeds_of(runs, ["baseline", "h111"], setting)
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
        panels.append((f"{label} / Baseline", series, dict[str, float]()))
    paper, title = about
    caption = f"{setting.workload}: {title} ({setting.scenario.label})"
    note = f"paired by seed, {seeds_of(runs, names, setting)}"
    return Picture(paper, caption, boxes.boxes(panels, one_line=True), note)


def _decomposition(runs: RunIndex[str], setting: Setting, names: Sequence[str]) -> Picture:
    bars = {}
    for policy in names:
        total = runs.mean(setting, policy, "platform_total") or 1.0
        bars[policy] = {
            use.title: (runs.mean(setting, policy, use.name) or 0.0) / total
            for use in NODE_TIME
            if use.name != "platform_useful"
        }
    svg = boxes.stacks(bars, "share of node time that is not useful")
    title = f"{setting.workload}: use of node time ({setting.scenario.label})"
    note = f"means over {seeds_of(runs, names, setting)}"
    return Picture("Figure 3", title, svg, note)


def _over_mtbf(runs: RunIndex[str], family: Family) -> Iterator[Picture]:
    classes = [name for name in runs.size_classes(family[0]) if name != "all"]
    shown = (
        ("useful utilisation, SFSJ / Baseline", "useful_utilisation", None),
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
                name = "SFSJ" if downtime_s is None else f"downtime {exact(downtime_s)}"
                mean = sum(gains.values()) / len(gains)
                lines.setdefault(name, []).append((mtbf_s / 3600, mean))
        if lines:
            panels.append((label, lines))
    if panels:
        title = f"{family[0].workload}: effect of the MTBF ({family[0].scenario.family_label})"
        note = f"means over {seeds_of(runs, ['h111'], *family)}"
        yield Picture("Figures 9, 10, 11", title, boxes.lines(panels), note)


def an_hour(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield a picture of the machine during an hour around the first steal.

    The run is the first run of SFSJ, which is simulated again.
    """
    stealing = (unit for unit in units if unit.spec.scenario.failures and _steals(unit.spec))
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


def _steals(spec: RunSpec) -> bool:
    return ALIASES.get(spec.policy, spec.policy).removeprefix(PROGRAM) == "h111"
