# SPDX-License-Identifier: Apache-2.0
"""What each placement made of a load: means over seeds, and differences on the same failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rebat.core.units import format_duration
from rebat.papers.common.parts import Table, number, percent
from rebat.papers.node_stealing.evidence import Evidence
from rebat.results.estimates import Estimate, estimate, paired
from rebat.results.scenario import Scenario

Shown = Callable[[float], str]


def points(value: float) -> str:
    """A difference of shares."""
    return f"{100 * value:+.2f}"


def signed(value: float) -> str:
    """A difference of counts."""
    return f"{value:+.1f}"


METRICS: tuple[tuple[str, str, str, Shown], ...] = (
    ("useful utilisation", "useful_utilisation", "", percent),
    ("weighted mean flow", "flow_weighted_mean_s", "all", format_duration),
    ("failures under a job", "failures_hit", "", number),
    ("wasted by them, node h", "platform_waste_failure", "", lambda value: f"{value / 3600:.0f}"),
    ("head blocked, share of time", "fragmentation_blocked_share", "", percent),
    ("nodes free then", "fragmentation_blocked_free_nodes", "", number),
    ("box waste, node h", "fragmentation_box_waste", "", lambda value: f"{value / 3600:.0f}"),
)
"""What a table shows of a policy: heading, metric, size class, and how it is written."""

DIFFERENCES: tuple[tuple[str, str, str, Shown], ...] = (
    ("utilisation, points", "useful_utilisation", "", points),
    ("weighted mean flow, h", "flow_weighted_mean_s", "all", lambda v: f"{v / 3600:+.2f}"),
    ("failures under a job", "failures_hit", "", signed),
    ("wasted by them, node h", "platform_waste_failure", "", lambda v: f"{v / 3600:+.0f}"),
    ("head blocked, points", "fragmentation_blocked_share", "", points),
)

BASES = ("rps", "slurm-linear")
"""Against which the others are held."""


def tables(evidence: Evidence) -> Iterator[Table]:
    """Two tables for each workload and scenario: what was, and against the bases."""
    for workload, scenario in scenarios(evidence):
        policies = evidence.policies(workload, scenario)
        yield _means(evidence, workload, scenario, policies)
        yield from _differences(evidence, workload, scenario, policies)


def scenarios(evidence: Evidence) -> Iterator[tuple[str, Scenario]]:
    """Every workload with every scenario that it met."""
    for workload in evidence.workloads:
        for family in evidence.families(workload):
            for scenario in family:
                yield workload, scenario


def named(policies: Sequence[str], wanted: str) -> str | None:
    """The one policy of that name, its torus apart; None when there is none, or several.

    >>> named(["faps:torus=8,foresight=fit", "rps:torus=8", "rps"], "faps:foresight=fit")
    'faps:torus=8,foresight=fit'
    """
    found = [policy for policy in policies if _without_torus(policy) == wanted]
    return found[0] if len(found) == 1 else None


def _without_torus(policy: str) -> str:
    name, _, axes = policy.partition(":")
    kept = [axis for axis in axes.split(",") if axis and not axis.startswith("torus=")]
    return ":".join([name, ",".join(kept)] if kept else [name])


def written(found: Estimate | None, shown: Shown) -> str:
    """A mean with its interval."""
    if found is None:
        return ""
    if found.half is None:
        return shown(found.mean)
    return f"{shown(found.mean)} ± {shown(found.half).removeprefix('+')}"


def _means(evidence: Evidence, workload: str, scenario: Scenario, policies: Sequence[str]) -> Table:
    rows = []
    for policy in policies:
        cells = []
        for _, metric, size_class, shown in METRICS:
            values = evidence.values(workload, policy, scenario, metric, size_class)
            cells.append(written(estimate(list(values.values())), shown))
        rows.append([policy, *cells])
    title = f"{workload}: what each placement makes of it ({scenario.label})"
    return Table("means over seeds", title, ["policy", *(m[0] for m in METRICS)], rows)


def _differences(
    evidence: Evidence, workload: str, scenario: Scenario, policies: Sequence[str]
) -> Iterator[Table]:
    for wanted in BASES:
        base = named(policies, wanted)
        if base is None:
            continue
        rows = [
            [policy, *(
                written(difference(evidence, (workload, scenario), (policy, base), *what), shown)
                for _, *what, shown in DIFFERENCES
            )]
            for policy in policies
            if policy != base
        ]  # fmt: skip
        title = f"{workload}: against {base} on the same failures ({scenario.label})"
        yield Table("paired by seed", title, ["policy", *(d[0] for d in DIFFERENCES)], rows)


def difference(
    evidence: Evidence, where: tuple[str, Scenario], who: tuple[str, str], metric: str,
    size_class: str = "",
) -> Estimate | None:  # fmt: skip
    """The first policy's value less the second's, seed by seed."""
    ours, base = (evidence.values(where[0], policy, where[1], metric, size_class) for policy in who)
    return paired(ours, base)
