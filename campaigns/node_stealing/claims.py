# SPDX-License-Identifier: Apache-2.0
"""The claims of the node-stealing paper: on months and a synthetic workload (sections 2 and 6), on
other MTBFs and downtimes (section 6.2), and on the 18 variants (section 7).

A ratio is the value of SFSJ (H111) divided by the value of Baseline, paired by failure scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import StatisticsError, correlation
from typing import TypeVar

import msgspec

from rebat.core.numbers import exact
from rebat.report.claims import (
    ABOVE,
    BELOW,
    Claim,
    Judgement,
    Rule,
    above,
    below,
    between,
    compared,
    extreme,
    judge,
)
from rebat.report.runs_index import RunIndex
from rebat.results.intervals import BySeed, Interval, combined, interval, minus

from . import runs
from .runs import (
    HEADINGS,
    JUNE,
    Family,
    InSemantics,
    Number,
    OverMtbf,
    main_settings,
    mean_ratio,
    semantics,
)

DAY_S = 86400.0

_Numbers = Mapping[str, tuple[Interval | None, float]]


def published_values(on: InSemantics, about: str) -> Iterator[Judgement]:
    """Compare rebat's intervals for a setting with all values in the tables of the paper."""
    groups: list[tuple[str, str, _Numbers]] = [
        ("useful utilisation of each policy", "Tables 4, 7, 8", _utilisation(on)),
        ("time with an idle node under each policy, as published", "Tables 5a, 8", _idle(on)),
        ("steals of each variant", "Tables 5b, 9", _steals(on)),
        ("useful utilisation without failures", "Table 3", _failure_free(on)),
        ("largest flows of the largest and the smallest jobs, in days", "section 9", _flows(on)),
        ("outliers: flows of the smallest jobs / Baseline's", "Table 10", _outliers(on)),
    ]
    for text, paper, numbers in groups:
        if any(ours for ours, _ in numbers.values()):
            yield compared(about, text, paper, numbers)


def _each(
    on: InSemantics,
    metric: str,
    table: Mapping[str, float],
    convert: Callable[[float], float] = float,
) -> _Numbers:
    return {
        policy: (interval(map(convert, on.values(policy, metric).values())), value)
        for policy, value in table.items()
    }


def _utilisation(on: InSemantics) -> _Numbers:
    table = runs.printed(runs.UTILISATION, on.setting)
    return _each(on, "useful_utilisation", table)


def _idle(on: InSemantics) -> _Numbers:
    table = runs.printed(runs.IDLE_SHARE, on.setting)
    return _each(on, "platform_idle_share", table, runs.idle_as_program)


def _steals(on: InSemantics) -> _Numbers:
    table = runs.printed(runs.STEALS, on.setting)
    return _each(on, "steals", {policy: steals for policy, (steals, _) in table.items()})


def _failure_free(on: InSemantics) -> _Numbers:
    value = runs.FAILURE_FREE_UTILISATION.get(on.setting.workload)
    if value is None or not runs.printed_for(on.setting):
        return {}
    calm = (on.setting._replace(scenario=of) for of in on.setting.scenario.failure_free)
    values = (on.runs.values(free, "baseline", "useful_utilisation") for free in calm)
    return {"Baseline": (interval(next(filter(None, values), {})), value)}


def _flows(on: InSemantics) -> _Numbers:
    table = runs.printed(runs.LARGEST_FLOWS_DAYS, on.setting)
    return {
        f"{policy} {of}": (_days(on.values(policy, "flow_max_s", of)), days)
        for (policy, of), days in table.items()
    }


def _days(values: BySeed) -> Interval | None:
    return interval(value / DAY_S for value in values.values())


def _outliers(on: InSemantics) -> _Numbers:
    """Return the published outliers with rebat's median ratio and its range."""
    table = runs.printed(runs.OUTLIERS, on.setting)
    return {
        f"{policy} {metric.removesuffix('_s').replace('_', ' ')} {value:g}": (
            interval(on.ratios(metric, "smallest", policy), of_median=True),
            value,
        )
        for (policy, metric), values in table.items()
        for value in values
    }


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
    values = [on.printed(runs.UTILISATION, name) for name in ("h111", "baseline")]
    return values[0] / values[1] if values[0] and values[1] else None


def _of_workload(table: Mapping[str, T]) -> Callable[[InSemantics], T | None]:
    def value(on: InSemantics) -> T | None:
        return table.get(on.setting.workload) if runs.printed_for(on.setting) else None

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
          mean_ratio("platform_idle"), published=_of_workload(runs.IDLE_TIME_RATIO)),
    Claim("the overhead of stealing is negligible",
          "SFSJ: node time lost to stealing / all node time", below(NEGLIGIBLE),
          "around 0.1 % (section 6.1.1)", _share("platform_waste_stealing", "platform_total"),
          published=_of_workload(runs.STEALING_OVERHEAD)),
    Claim("when a failure hits a running job, a node is usually free",
          "SFSJ: 1 - steals / failures that hit a job", above(0.5),
          "84, 89 and 90 % on June, March and Intrepid (section 6.1.1); Table 5b: 86 % on June",
          _share("steals", "failures_hit", complement=True),
          published=_of_workload(runs.FREE_AT_FAILURE)),
    Claim("SFSJ has a smaller largest flow of the largest jobs ({largest}) than Baseline", "",
          _FALLS, "significantly improves, up to 10 % in some scenarios (section 6.1.2)",
          mean_ratio("flow_max_s", "largest"),
          published=_of_workload(dict.fromkeys(runs.MONTHS, (0.9, 1.0)))),
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
            yield from published_values(on, about)
            yield from _over_mtbf(runs, family, name)


def rows_of(workload: str) -> list[Claim]:
    """Return the claims about a workload.

    Known reasons (``why``) are included only for the paper's workloads. Claims of section 7 are
    included only for the months of Mira.
    """
    claims: tuple[Claim, ...] = SYNTHETIC if workload == runs.SYNTHETIC else MONTHS
    if workload not in runs.UTILISATION:
        claims = tuple(msgspec.structs.replace(claim, why="") for claim in claims)
    return [*claims, *(VARIANTS if workload != runs.INTREPID else ())]


def _over_mtbf(runs: RunIndex[str], family: Family, name: str) -> Iterator[Judgement]:
    for downtime_s in sorted({item.scenario.downtime_s or 0.0 for item in family}):
        row = [item for item in family if (item.scenario.downtime_s or 0.0) == downtime_s]
        if len(row) > 1:
            words = {"downtime": exact(downtime_s), "least": exact(row[0].scenario.mtbf_s),
                     "most": exact(row[-1].scenario.mtbf_s)}  # fmt: skip
            about = f"{row[0].workload}, {row[0].scenario.family_label}, {HEADINGS[name]}"
            on = OverMtbf(runs, row, name)
            yield from judge(SWEEPS, on, about, words | on.sizes)


MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
ABOUT_EQUAL = between(0.99, 1.01)
"""Ratios of utilisation whose difference from 1 counts as negligible."""

CLOSE = between(0.95, 1.05)
"""Ratios of flows whose difference from 1 counts as close to zero."""

SweepNumber = Callable[[OverMtbf], Interval | None]


def _gained(on: OverMtbf) -> Interval | None:
    first, last = (on.each()[i].ratios("useful_utilisation") for i in (0, -1))
    return interval(minus(first, last))


def _at(downtime_s: float, number: SweepNumber, workload: str = "") -> SweepNumber:
    """Return a function that calls ``number`` only for this downtime and this workload.

    Otherwise, it returns None. An empty ``workload`` allows all workloads.
    """

    def restricted(on: OverMtbf) -> Interval | None:
        here = on.downtime_s == downtime_s and workload in ("", on.settings[0].workload)
        return number(on) if here else None

    return restricted


def _below_a_day(number: SweepNumber) -> SweepNumber:
    """Return a function that calls ``number`` only if the downtime is below a day.

    Otherwise, it returns None. At a downtime of one day, the gain is close to zero.
    """
    return lambda on: number(on) if (on.downtime_s or 0.0) < DAY else None


def _samples(
    on: OverMtbf, metric: str, of: str | None, mtbf: Callable[[float], bool]
) -> list[BySeed]:
    return [
        item.ratios(metric, of) for item in on.each() if mtbf(item.setting.scenario.mtbf_s or 0.0)
    ]


def _pick(
    pick: Callable[..., Interval], metric: str, of: str | None = None,
    mtbf: Callable[[float], bool] = lambda mtbf_s: True, distance_from: float | None = None,
) -> SweepNumber:  # fmt: skip
    """Return a function that picks the largest or smallest ratio at MTBFs allowed by ``mtbf``."""
    return lambda on: extreme(pick, _samples(on, metric, of, mtbf), distance_from)


def _frequent(mtbf_s: float) -> bool:
    return mtbf_s < 5 * HOUR


def _rare(mtbf_s: float) -> bool:
    return mtbf_s == 10 * HOUR


_USED, _LARGEST, _WEIGHTED = "useful_utilisation", "flow_max_s", "flow_weighted_mean_s"
_RATIO = "SFSJ / Baseline"

SWEEPS = (
    Claim("downtime {downtime}: SFSJ gains more if failures are frequent",
          "utilisation ratio at an MTBF of {least} minus the ratio at {most}", ABOVE,
          "the smaller the MTBF, the higher the utilization (section 6.2.1)", _gained),
    Claim("downtime {downtime}: SFSJ raises the utilisation at every MTBF below 5 h",
          f"smallest ratio {_RATIO}", Rule("above 1", 1),
          "between 2 and 4 % (section 6.2.1)", _at(10 * MINUTE, _pick(min, _USED, mtbf=_frequent)),
          published=(1.02, 1.04)),
    Claim("downtime {downtime}: SFSJ lowers the utilisation at an MTBF of 10 h",
          _RATIO, below(1), "a 1 % loss, on June (section 6.2.1)",
          _at(10 * MINUTE, _pick(min, _USED, mtbf=_rare), JUNE), published=0.99),
    Claim("downtime {downtime}: SFSJ hardly changes the utilisation",
          f"ratio {_RATIO} farthest from 1 over the MTBFs", ABOUT_EQUAL,
          "its gain is negligible (section 6.2.1)",
          _at(DAY, _pick(max, _USED, distance_from=1.0)), published=1.0),
    Claim("downtime {downtime}: SFSJ lowers the largest flow of the largest jobs ({largest}) at "
          "every MTBF", f"largest ratio {_RATIO}", below(1),
          "positive impact over all scenarios (section 6.2.2)",
          _below_a_day(_pick(max, _LARGEST, "largest"))),
    Claim("downtime {downtime}: SFSJ lowers the weighted mean flow at every MTBF",
          f"largest ratio {_RATIO}", below(1),
          "positive impact over all scenarios (section 6.2.2)",
          _below_a_day(_pick(max, _WEIGHTED))),
    Claim("downtime {downtime}: SFSJ lowers the largest flow of the largest jobs ({largest}) most "
          "at an MTBF below 5 h", f"smallest ratio {_RATIO}", below(1),
          "up to 10 to 20 % (section 6.2.2)",
          _at(10 * MINUTE, _pick(min, _LARGEST, "largest", _frequent)), published=(0.8, 0.9)),
    Claim("downtime {downtime}: SFSJ hardly changes the largest flow of the largest jobs "
          "({largest})", f"ratio {_RATIO} farthest from 1 over the MTBFs", CLOSE,
          "close to zero (section 6.2.2)",
          _at(DAY, _pick(max, _LARGEST, "largest", distance_from=1.0)), published=1.0),
)  # fmt: skip
"""Section 6.2: the gain grows with the number of failures and with shorter downtimes."""


CLEARLY_HIGHER = 0.005
"""Minimum increase of the useful utilisation that counts as a real increase."""

ALIKE = between(0.95, 1.05)
"""Range of flow ratios that count as little impact."""

_OTHER_CHOICES = ("h112", "h113", "h121", "h122", "h123")
"""Variants that steal immediately (T1) and differ from H111 in the victim rule or the criterion."""


def _below_all_others(on: InSemantics) -> Interval | None:
    """Return H311's utilisation minus the lowest utilisation of the other policies."""
    others = [on.values(n, "useful_utilisation") for n in ("baseline", *on.variants) if n != "h311"]
    others = [values for values in others if values]
    if len(others) < 2:
        return None
    return interval(minus(on.values("h311", "useful_utilisation"), combined(min, *others)))


def _best_other(on: InSemantics) -> Interval | None:
    names = [name for name in on.variants if name != "h111"]
    return extreme(max, [on.minus_h111(name, "useful_utilisation") for name in names])


def _published_best(on: InSemantics) -> float | None:
    values = runs.printed(runs.UTILISATION, on.setting)
    others = [value for name, value in values.items() if name not in ("baseline", "h111")]
    return max(others) - values["h111"] if others else None


def _lowest_ratio(on: InSemantics) -> Interval | None:
    ratios = [on.ratios("useful_utilisation", policy=name) for name in on.variants]
    return extreme(min, ratios) if len(ratios) > 1 else None


def _published_lowest(on: InSemantics) -> float | None:
    values = runs.printed(runs.UTILISATION, on.setting)
    variants = [value for name, value in values.items() if name not in ("baseline", "h111")]
    return min(variants) / values["baseline"] if variants else None


def _steals_of_others(on: InSemantics) -> Interval | None:
    names = [name for name in _OTHER_CHOICES if name in on.variants]
    return extreme(max, [on.minus_h111(name, "steals") for name in names])


def _impact_by_idle_time(on: InSemantics) -> Interval | None:
    """Return the correlation of idle time with distance from Baseline, over all variants."""
    idle = [on.values(name, "platform_idle_share") for name in on.variants]
    gains = [
        minus(on.values(name, "useful_utilisation"), on.values("baseline", "useful_utilisation"))
        for name in on.variants
    ]
    if len(idle) < 3:
        return None
    return interval(_correlations(idle, gains))


def _correlations(idle: Sequence[BySeed], gains: Sequence[BySeed]) -> Iterable[float]:
    for seed in sorted(set.intersection(*map(set, idle), *map(set, gains))):
        try:
            yield correlation([v[seed] for v in idle], [abs(v[seed]) for v in gains])
        except StatisticsError:
            continue


def _least_rise(variant: str, metric: str) -> Number:
    return lambda on: extreme(min, [on.over_h111(variant, metric, of) for of in on.classes])


def _of_largest(*variants: str) -> Number:
    """Return a function that divides the largest flow of the largest jobs by that under H111.

    If there are several variants, the ratio farthest from 1 is used.
    """
    return lambda on: extreme(
        max, [on.over_h111(name, "flow_max_s", "largest") for name in variants], 1.0
    )


_TO_H111 = "largest flow of the largest jobs ({largest}) / H111's"

VARIANTS = (
    Claim("no variant really raises the utilisation above H111's",
          "largest difference of a variant from H111", below(CLEARLY_HIGHER),
          "no variant is able to really increase the utilization (section 7.3)",
          _best_other, published=_published_best),
    Claim("some variants have a lower utilisation than Baseline", "smallest ratio to Baseline",
          below(1), "by up to 5 % (section 7.3); Table 8 has at most 4 %", _lowest_ratio,
          published=_published_lowest),
    Claim("the more often a node is idle, the smaller the impact of stealing",
          "correlation of idle time with distance from Baseline's utilisation, over the variants",
          BELOW, "the table clearly shows (section 7.3)", _impact_by_idle_time),
    Claim("H311 (wait for the next checkpoint) has the lowest useful utilisation",
          "H311's value minus the lowest value of the other policies", BELOW,
          "76.18 % and 75.17 %, the lowest of Table 8", _below_all_others),
    Claim("H311 steals more often than H111", "H311's steals minus H111's", ABOVE,
          "only variant 311 is able to increase the usage (section 7.3)",
          lambda on: interval(on.minus_h111("h311", "steals")), unit="steals"),
    Claim("other victims and other criteria lead to fewer steals",
          "largest difference of H112, H113, H121, H122 and H123 from H111's steals", BELOW,
          "always lead to a reduced usage (section 7.3); Table 9 has more for 122, 123 on March",
          _steals_of_others, unit="steals"),
    *(
        Claim(f"waiting for the next checkpoint (H311) raises the {words} flow of every size class",
              "smallest ratio to H111 over the size classes",
              Rule("H311 / H111 above 1", 1), "always increases (section 7.3, Figure 19)",
              _least_rise("h311", metric))
        for words, metric in (("largest", "flow_max_s"), ("mean", "flow_mean_s"))
    ),
    Claim("proactive checkpoints (H211) hardly change the flow of the largest jobs", _TO_H111,
          ALIKE, "comparable performance for large jobs (section 7.3, Figure 19)",
          _of_largest("h211")),
    Claim("the choice of the victim (H121) hardly changes the flow of the largest jobs", _TO_H111,
          ALIKE, "very little impact for large jobs (section 7.3, Figure 20)",
          _of_largest("h121")),
    Claim("the criterion (H112, H113) hardly changes the flow of the largest jobs",
          f"{_TO_H111}, the ratio farthest from 1", ALIKE,
          "an impact only on small jobs (section 7.3, Figure 21)", _of_largest("h112", "h113")),
)  # fmt: skip
