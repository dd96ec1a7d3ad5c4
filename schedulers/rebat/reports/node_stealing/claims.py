"""Shapes judged in words, by rules that are stated beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebat.reports.node_stealing.evidence import Evidence
from rebat.reports.parts import Judgement
from rebat.reports.scenario import Scenario, exact


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """The paper's claims about SFSJ (H111) against Baseline, where our runs can tell."""
    for workload, scenario, family in evidence.main_scenarios():
        yield from _at_one_scenario(evidence, workload, scenario)
        yield from _over_mtbf(evidence, workload, family)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _at_one_scenario(evidence: Evidence, workload: str, scenario: Scenario) -> Iterator[Judgement]:
    classes = [name for name in evidence.size_classes(workload, scenario) if name != "all"]
    largest = classes[-1] if classes else "all"
    smallest = classes[0] if classes else "all"
    asked = (
        ("useful utilisation rises", "useful_utilisation", "", True,
         "1.4 to 1.7 % higher (section 6.1.1)"),
        ("idle node time falls", "platform_idle", "", False,
         "by 10 to 40 % (section 6.1.1)"),
        (f"maximum flow of the largest jobs {largest} falls", "flow_max_s", largest, False,
         "up to 10 % in some scenarios (section 6.1.2)"),
        (f"maximum flow of the smallest jobs {smallest} rises", "flow_max_s", smallest, True,
         "at the cost of small jobs (section 6.1.2)"),
        ("weighted mean flow falls", "flow_weighted_mean_s", "all", False,
         "we do observe a decrease (section 6.1.2)"),
        ("mean flow rises slightly", "flow_mean_s", "all", True,
         "may slightly increase (section 6.1.2)"),
    )  # fmt: skip
    for claim, metric, size_class, rises, paper in asked:
        ratio = _mean(evidence.ratios(workload, "h111", scenario, metric, size_class))
        if ratio is not None:
            rule = f"mean ratio H111 / Baseline {'above' if rises else 'below'} 1"
            holds = ratio > 1 if rises else ratio < 1
            subject = f"{workload}, {scenario.label}"
            yield Judgement(subject, claim, rule, ratio, holds, paper)
    yield from _variants(evidence, workload, scenario)


def _variants(evidence: Evidence, workload: str, scenario: Scenario) -> Iterator[Judgement]:
    means = {
        policy: evidence.mean(workload, policy, scenario, "useful_utilisation")
        for policy in evidence.policies(workload, scenario)
    }
    known = {policy: value for policy, value in means.items() if value is not None}
    if "h311" in known and len(known) > 2:
        least = min(known, key=lambda policy: known[policy])
        yield Judgement(
            f"{workload}, {scenario.label}",
            "H311 (wait for the next checkpoint) has the lowest utilisation",
            "lowest mean of all policies run; the number is H311's minus the lowest",
            known["h311"] - known[least],
            least == "h311",
            "76.18 % and 75.17 %, the lowest of Table 8",
        )


def _over_mtbf(
    evidence: Evidence, workload: str, family: Sequence[Scenario]
) -> Iterator[Judgement]:
    for downtime_s in sorted({scenario.downtime_s or 0.0 for scenario in family}):
        row = [scenario for scenario in family if scenario.downtime_s == downtime_s]
        gains = [
            _mean(evidence.ratios(workload, "h111", scenario, "useful_utilisation"))
            for scenario in row
        ]
        if len(row) > 1 and gains[0] is not None and gains[-1] is not None:
            yield Judgement(
                f"{workload}, {row[0].family_label}",
                f"downtime {exact(downtime_s)}: SFSJ gains more when failures are frequent",
                f"utilisation ratio at an MTBF of {exact(row[0].mtbf_s)} minus that at "
                f"{exact(row[-1].mtbf_s)}, above 0",
                gains[0] - gains[-1],
                gains[0] > gains[-1],
                "the smaller the MTBF, the higher the utilization (section 6.2.1)",
            )
