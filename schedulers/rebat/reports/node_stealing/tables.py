"""The tables of the node-stealing paper, from a campaign's results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebat.core.units import format_duration
from rebat.reports.node_stealing import published
from rebat.reports.node_stealing.evidence import Evidence
from rebat.reports.parts import Table, number, percent
from rebat.reports.scenario import Scenario, exact


def tables(evidence: Evidence) -> Iterator[Table]:
    """Tables 4, 5, 7, 8 and 9: ours beside the printed ones, and every scenario of a sweep."""
    for workload, scenario, family in evidence.main_scenarios():
        yield _utilisation(evidence, workload, scenario)
        yield _steals(evidence, workload, scenario)
        if len(family) > 1:
            yield _sweep(evidence, workload, family)


def _utilisation(evidence: Evidence, workload: str, scenario: Scenario) -> Table:
    ours = published.printed_for(workload, scenario)
    printed = published.UTILISATION.get(workload, {}) if ours else {}
    idle_printed = published.IDLE_SHARE.get(workload, {}) if ours else {}
    rows = []
    for policy in evidence.policies(workload, scenario):
        idle = evidence.mean(workload, policy, scenario, "platform_idle_share")
        as_program = None if idle is None else published.idle_as_program(idle)
        rows.append(
            [
                policy,
                percent(evidence.mean(workload, policy, scenario, "useful_utilisation")),
                percent(printed.get(policy)),
                percent(idle),
                percent(as_program),
                percent(idle_printed.get(policy)),
            ]
        )
    columns = [
        "policy", "utilisation", "paper", "time with an idle node",
        "the same as the program counts", "paper",
    ]  # fmt: skip
    title = f"{workload}: useful utilisation and idle share ({scenario.label})"
    return Table("Tables 4, 5a, 7, 8", title, columns, rows)


def _steals(evidence: Evidence, workload: str, scenario: Scenario) -> Table:
    printed = published.STEALS.get(workload, {})
    if not published.printed_for(workload, scenario):
        printed = {}
    rows = []
    for policy in evidence.policies(workload, scenario):
        steals = evidence.mean(workload, policy, scenario, "steals")
        hits = evidence.mean(workload, policy, scenario, "failures_hit")
        paper = printed.get(policy)
        others = None if steals is None or hits is None else hits - steals
        rows.append(
            [policy, number(steals), number(others), number(hits)]
            + ([number(paper[0]), number(paper[1])] if paper else ["", ""])
        )
    columns = [
        "policy",
        "steals",
        "others",
        "failures under a job",
        "paper: steals",
        "paper: empty",
    ]
    title = f"{workload}: how failures were answered ({scenario.label})"
    return Table("Tables 5b, 9", title, columns, rows)


def _sweep(evidence: Evidence, workload: str, family: Sequence[Scenario]) -> Table:
    """Every MTBF and downtime that was run, of which the other tables show one."""
    rows = []
    for scenario in family:
        for policy in evidence.policies(workload, scenario):
            flow = evidence.mean(workload, policy, scenario, "flow_weighted_mean_s", "all")
            rows.append(
                [
                    _spans(scenario),
                    policy,
                    percent(evidence.mean(workload, policy, scenario, "useful_utilisation")),
                    percent(evidence.mean(workload, policy, scenario, "platform_idle_share")),
                    number(evidence.mean(workload, policy, scenario, "steals")),
                    "" if flow is None else format_duration(flow),
                ]
            )
    columns = [
        "MTBF, downtime", "policy", "utilisation", "time with an idle node", "steals",
        "weighted mean flow",
    ]  # fmt: skip
    title = f"{workload}: every MTBF and downtime ({family[0].family_label})"
    return Table("cf. Figures 9, 10, 11", title, columns, rows)


def _spans(scenario: Scenario) -> str:
    spans = (scenario.mtbf_s, scenario.downtime_s)
    return ", ".join("" if span is None else exact(span) for span in spans)
