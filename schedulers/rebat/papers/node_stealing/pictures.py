# SPDX-License-Identifier: Apache-2.0
"""The figures of the node-stealing paper, from a campaign's results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rebat.figures import boxes
from rebat.papers.common.parts import Picture
from rebat.papers.node_stealing.beside import beside_printed
from rebat.papers.node_stealing.evidence import Evidence
from rebat.papers.node_stealing.tables import seeds_of
from rebat.report.comparison import USES
from rebat.results.scenario import Scenario, exact

_FLOWS = (("Maximum flow", "flow_max_s"), ("Mean flow", "flow_mean_s"))


def pictures(evidence: Evidence) -> Iterator[Picture]:
    """The printed tables beside ours, Figures 1, 3 to 13 and 19 to 21, as far as there are runs."""
    for workload, scenario, family in evidence.main_scenarios():
        yield from beside_printed(evidence, workload, scenario)
        policies = evidence.policies(workload, scenario)
        if "baseline" not in policies:
            continue
        yield _against_failure_free(evidence, workload, scenario)
        yield _decomposition(evidence, workload, scenario, policies)
        if "h111" in policies:
            yield _absolute(evidence, workload, scenario)
        for paper, title, variants in _COMPARISONS:
            shown = [policy for policy in variants if policy in policies]
            if shown and (len(shown) > 1 or variants == ("h111",)):
                yield _ratio_picture(evidence, workload, scenario, (paper, title), shown)
        if len({one.mtbf_s for one in family}) > 1:
            yield from _over_mtbf(evidence, workload, family)


_COMPARISONS = (
    ("Figures 6, 7, 13", "SFSJ over Baseline", ("h111",)),
    ("Figure 19", "timings: now, proactive, next checkpoint", ("h111", "h211", "h311")),
    ("Figure 20", "victims: fewest nodes, latest release", ("h111", "h121")),
    ("Figure 21", "criteria: fewer nodes, later release, smaller flow", ("h111", "h112", "h113")),
)


def _flow_panels(
    evidence: Evidence, workload: str, scenario: Scenario, policies: Sequence[str],
    free: Scenario | None = None,
) -> list[boxes.Panel]:  # fmt: skip
    """Maximum and mean flow by size class; as dots Baseline's in the scenario ``free``."""
    groups = list(evidence.size_classes(workload, scenario))
    panels = []
    for title, metric in _FLOWS:
        series = {
            policy: {
                group: list(evidence.values(workload, policy, scenario, metric, group).values())
                for group in groups
            }
            for policy in policies
        }
        dots = {
            group: value
            for group in groups
            if free and (value := evidence.mean(workload, "baseline", free, metric, group))
        }
        panels.append(boxes.in_time_units(title, series, dots))
    return panels


def _against_failure_free(evidence: Evidence, workload: str, scenario: Scenario) -> Picture:
    free = next(filter(partial(evidence.policies, workload), scenario.failure_free), None)
    panels = _flow_panels(evidence, workload, scenario, ["baseline"], free)
    title = f"{workload}: Baseline with failures ({scenario.label})"
    note = seeds_of(evidence, workload, ["baseline"], scenario)
    return Picture("Figures 1, 4, 5, 12", title, boxes.boxes(panels), note)


def _absolute(evidence: Evidence, workload: str, scenario: Scenario) -> Picture:
    panels = _flow_panels(evidence, workload, scenario, ["baseline", "h111"])
    title = f"{workload}: Baseline and SFSJ ({scenario.label})"
    note = seeds_of(evidence, workload, ["baseline", "h111"], scenario)
    return Picture("Figure 8", title, boxes.boxes(panels), note)


def _ratio_picture(
    evidence: Evidence,
    workload: str,
    scenario: Scenario,
    names: tuple[str, str],
    policies: Sequence[str],
) -> Picture:
    panels = []
    for label, metric in _FLOWS:
        series: dict[str, dict[str, list[float]]] = {
            policy: {
                group: evidence.ratios(workload, policy, scenario, metric, group)
                for group in evidence.size_classes(workload, scenario)
            }
            for policy in policies
        }
        if metric == "flow_mean_s":
            for policy in policies:
                weighted = evidence.ratios(
                    workload, policy, scenario, "flow_weighted_mean_s", "all"
                )
                series[policy]["weighted"] = weighted
        panels.append((f"{label} / Baseline", series, dict[str, float]()))
    paper, title = names
    caption = f"{workload}: {title} ({scenario.label})"
    note = f"paired by seed, {seeds_of(evidence, workload, policies, scenario)}"
    return Picture(paper, caption, boxes.boxes(panels, one_line=True), note)


def _decomposition(
    evidence: Evidence, workload: str, scenario: Scenario, policies: Sequence[str]
) -> Picture:
    bars = {}
    for policy in policies:
        total = evidence.mean(workload, policy, scenario, "platform_total") or 1.0
        bars[policy] = {
            use: (evidence.mean(workload, policy, scenario, f"platform_{field}") or 0.0) / total
            for use, field in USES.items()
            if use != "useful"
        }
    svg = boxes.stacks(bars, "share of node time not useful")
    title = f"{workload}: where the platform's time goes ({scenario.label})"
    note = f"means over {seeds_of(evidence, workload, policies, scenario)}"
    return Picture("Figure 3", title, svg, note)


def _over_mtbf(evidence: Evidence, workload: str, family: Sequence[Scenario]) -> Iterator[Picture]:
    classes = [name for name in evidence.size_classes(workload, family[0]) if name != "all"]
    asked = (
        ("utilisation, SFSJ / Baseline", "useful_utilisation", ""),
        (f"max flow of {classes[-1]}, ratio", "flow_max_s", classes[-1]),
        ("weighted mean flow, ratio", "flow_weighted_mean_s", "all"),
    )
    panels = []
    for label, metric, size_class in asked:
        named: dict[str, list[tuple[float, float]]] = {}
        for scenario in sorted(family, key=lambda one: (one.downtime_s, one.mtbf_s)):
            ratios = evidence.ratios(workload, "h111", scenario, metric, size_class)
            if ratios and scenario.mtbf_s is not None:
                downtime_s = scenario.downtime_s
                name = "SFSJ" if downtime_s is None else f"downtime {exact(downtime_s)}"
                points = named.setdefault(name, [])
                points.append((scenario.mtbf_s / 3600, sum(ratios) / len(ratios)))
        if named:
            panels.append((label, named))
    if panels:
        title = f"{workload}: as failures grow rarer ({family[0].family_label})"
        note = f"means over {seeds_of(evidence, workload, ['h111'], *family)}"
        yield Picture("Figures 9, 10, 11", title, boxes.lines(panels), note)
