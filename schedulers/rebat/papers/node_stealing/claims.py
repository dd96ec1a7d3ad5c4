# SPDX-License-Identifier: Apache-2.0
"""Claims of the node-stealing paper (sections 2 and 6) about months and a synthetic workload.

A ratio is the value of SFSJ (H111) divided by the value of Baseline, paired by failure scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import TypeVar

import msgspec

from rebat.core.units import exact
from rebat.papers.common.claims import ABOVE, BELOW, Claim, Rule, above, below, judge
from rebat.papers.common.judgement import Judgement
from rebat.papers.common.runs_index import RunIndex
from rebat.papers.node_stealing import numbers, published
from rebat.papers.node_stealing.runs import HEADINGS, Family, main_settings, semantics
from rebat.papers.node_stealing.subjects import InSemantics, OverMtbf, mean_ratio
from rebat.papers.node_stealing.sweep_claims import SWEEPS
from rebat.papers.node_stealing.variant_claims import VARIANTS
from rebat.results.intervals import Interval, combined, interval, minus

_RISES = Rule("SFSJ / Baseline above 1", 1, inf)
_FALLS = Rule("SFSJ / Baseline below 1", 0, 1)


def _from(low: float, high: float) -> Rule:
    return Rule(f"SFSJ / Baseline from {low:g} to {high:g}", low, high, closed=True)


_REAL = (
    "In generated months more nodes remain free between the jobs than in real months. On Mira's "
    "November 2018 with 30 seeds the ratio is {} as in the paper and {} as in the program "
    "(docs/findings/differences.md)"
)

T = TypeVar("T")

SMALLEST = 128
"""Section 6.1.2 is about jobs with fewer nodes than this. Intrepid has none of these jobs."""

SMALL, LARGE = 512, 2048
"""Section 2: jobs below the first number of nodes are small, jobs above the second are large."""

NEGLIGIBLE = 0.005
"""Share of node time below which an overhead is negligible. The paper measures about 0.001."""


def _bounds(size_class: str) -> tuple[int, int]:
    """Return the bounds of a size class.

    >>> _bounds("[128, 512)")
    (128, 512)
    """
    low, high = size_class.strip("[]()").split(", ")
    return int(low), int(high)


def _large_suffer_more(on: InSemantics) -> Interval | None:
    """Return by how much more failures lengthen the flows of large jobs than those of small jobs.

    This is the smallest increase of any class of large jobs, minus the largest increase of any
    class of small jobs.
    """
    bounds = {name: _bounds(name) for name in on.classes if name != "all"}
    large = [on.rise("flow_mean_s", n) for n, (low, _) in bounds.items() if low >= LARGE]
    small = [on.rise("flow_mean_s", n) for n, (_, high) in bounds.items() if high <= SMALL]
    if not (all(large) and all(small) and large and small):
        return None
    return interval(minus(combined(min, *large), combined(max, *small)))


def _small_gain(on: InSemantics) -> Interval | None:
    """Return by how much failures increase the largest flow of the smallest jobs.

    Return None if no job has fewer than 128 nodes.
    """
    smallest = on.classes[0]
    if smallest == "all" or _bounds(smallest)[0] >= SMALLEST:
        return None
    return interval(on.rise("flow_max_s", smallest))


def _utilisation_gain(on: InSemantics) -> float | None:
    values = [on.printed(published.UTILISATION, name) for name in ("h111", "baseline")]
    return values[0] / values[1] if values[0] and values[1] else None


def _of_workload(table: Mapping[str, T]) -> Callable[[InSemantics], T | None]:
    def value(on: InSemantics) -> T | None:
        return table.get(on.setting.workload) if published.printed_for(on.setting) else None

    return value


def _share(part: str, whole: str, complement: bool = False) -> Callable[..., Interval | None]:
    """Return a function that computes the mean share ``part / whole`` of SFSJ.

    With ``complement``, it computes 1 minus this share.
    """

    def number(on: InSemantics) -> Interval | None:
        parts, wholes = on.values("h111", part), on.values("h111", whole)
        shares = {seed: parts[seed] / wholes[seed] for seed in parts if wholes.get(seed)}
        return interval(1 - v if complement else v for v in shares.values())

    return number


_HIGHER = "SFSJ has a higher useful utilisation than Baseline"

MONTHS = (
    Claim("failures lengthen the mean flow of jobs above 2048 nodes more than of jobs below 512",
          "smallest increase of the classes of large jobs minus the largest of small jobs", ABOVE,
          "dramatically higher (section 2, observation 1)", _large_suffer_more),
    Claim("failures shorten the largest flow of the smallest jobs ({smallest})",
          "Baseline: largest flow with / without failures, minus 1", BELOW,
          "failures improve the maximum flow of small jobs (sections 2 and 6.1.2)",
          _small_gain),
    Claim(_HIGHER, "", _RISES, "1.4 to 1.7 % higher (section 6.1.1); Table 4 has 0.7 % on Intrepid",
          mean_ratio("useful_utilisation"), published=_utilisation_gain),
    Claim("SFSJ has less idle node time than Baseline", "", _FALLS,
          "by 40 % on June, 20 % on March, 10 % on Intrepid (section 6.1.1)",
          mean_ratio("platform_idle"), published=_of_workload(published.IDLE_TIME_RATIO)),
    Claim("the overhead of stealing is negligible",
          "SFSJ: node time lost to stealing / all node time", below(NEGLIGIBLE),
          "around 0.1 % (section 6.1.1)", _share("platform_waste_stealing", "platform_total"),
          published=_of_workload(published.STEALING_OVERHEAD)),
    Claim("when a failure hits a running job, a node is usually free",
          "SFSJ: 1 - steals / failures that hit a job", above(0.5),
          "84, 89 and 90 % on June, March and Intrepid (section 6.1.1); Table 5b: 86 % on June",
          _share("steals", "failures_hit", complement=True),
          published=_of_workload(published.FREE_AT_FAILURE)),
    Claim("SFSJ has a smaller largest flow of the largest jobs ({largest}) than Baseline", "",
          _FALLS, "significantly improves, up to 10 % in some scenarios (section 6.1.2)",
          mean_ratio("flow_max_s", "largest"),
          published=_of_workload(dict.fromkeys(published.MONTHS, (0.9, 1.0)))),
    Claim("SFSJ raises the largest flow of the smallest jobs ({smallest}) by at most a factor of 2",
          "", _from(1, 2), "a slight overhead; a factor 2 in the worst case (section 6.1.2)",
          mean_ratio("flow_max_s", "smallest")),
    Claim("SFSJ has a smaller weighted mean flow than Baseline", "", _FALLS,
          "we do observe a decrease (section 6.1.2)", mean_ratio("flow_weighted_mean_s"),
          why=_REAL.format("0.996 [0.980, 1.010]", "1.002 [0.988, 1.017]")),
    Claim("SFSJ raises the mean flow by less than 10 %", "",
          Rule("SFSJ / Baseline below 1.1", 0, 1.1),
          "may slightly increase (section 6.1.2)", mean_ratio("flow_mean_s"),
          why=_REAL.format("1.028 [1.010, 1.043]", "1.007 [0.992, 1.024]")),
)  # fmt: skip

SYNTHETIC = (
    Claim(_HIGHER, "", _RISES, "70 % to 72 % (Table 7)", mean_ratio("useful_utilisation"),
          published=_utilisation_gain),
    Claim("SFSJ lowers the largest flow of the largest jobs ({largest})",
          "", _FALLS, "10-15 % (section 6.3)", mean_ratio("flow_max_s", "largest"),
          published=(0.85, 0.9)),
    Claim("SFSJ lowers the mean flow of the largest jobs ({largest})",
          "", _FALLS, "10-15 % (section 6.3)", mean_ratio("flow_mean_s", "largest"),
          published=(0.85, 0.9)),
    Claim("SFSJ raises the largest flow of the smallest jobs ({smallest}) by a factor of 2 or more",
          "", Rule("SFSJ / Baseline above 2", 2, inf),
          "increases by a large factor (section 6.3)", mean_ratio("flow_max_s", "smallest")),
)  # fmt: skip


def judgements(runs: RunIndex[str]) -> Iterator[Judgement]:
    """Judge the claims under both semantics (the paper's, the program's), if there are runs."""
    for setting, family in main_settings(runs):
        claims = rows_of(setting.workload)
        for name in semantics(runs, setting):
            on, about = InSemantics(runs, setting, name), f"{setting.label}, {HEADINGS[name]}"
            yield from judge(claims, on, about, on.sizes)
            yield from numbers.judgements(on, about)
            yield from _over_mtbf(runs, family, name)


def rows_of(workload: str) -> list[Claim]:
    """Return the claims about a workload.

    Known reasons (``why``) are included only for the paper's workloads. Claims of section 7 are
    included only for the months of Mira.
    """
    claims: tuple[Claim, ...] = SYNTHETIC if workload == published.SYNTHETIC else MONTHS
    if workload not in published.UTILISATION:
        claims = tuple(msgspec.structs.replace(claim, why="") for claim in claims)
    return [*claims, *(VARIANTS if workload != published.INTREPID else ())]


def _over_mtbf(runs: RunIndex[str], family: Family, name: str) -> Iterator[Judgement]:
    for downtime_s in sorted({item.scenario.downtime_s or 0.0 for item in family}):
        row = [item for item in family if (item.scenario.downtime_s or 0.0) == downtime_s]
        if len(row) > 1:
            words = {"downtime": exact(downtime_s), "least": exact(row[0].scenario.mtbf_s),
                     "most": exact(row[-1].scenario.mtbf_s)}  # fmt: skip
            about = f"{row[0].workload}, {row[0].scenario.family_label}, {HEADINGS[name]}"
            on = OverMtbf(runs, row, name)
            yield from judge(SWEEPS, on, about, words | on.sizes)
