# SPDX-License-Identifier: Apache-2.0
"""Claims of the node-stealing paper on the 18 variants (section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import StatisticsError, correlation

from rebat.papers.common.claims import ABOVE, BELOW, Claim, Rule, below, between, extreme
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.subjects import InSemantics, Number
from rebat.results.intervals import BySeed, Interval, combined, interval, minus

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
    values = published.printed(published.UTILISATION, on.setting)
    others = [value for name, value in values.items() if name not in ("baseline", "h111")]
    return max(others) - values["h111"] if others else None


def _lowest_ratio(on: InSemantics) -> Interval | None:
    ratios = [on.ratios("useful_utilisation", policy=name) for name in on.variants]
    return extreme(min, ratios) if len(ratios) > 1 else None


def _published_lowest(on: InSemantics) -> float | None:
    values = published.printed(published.UTILISATION, on.setting)
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
          lambda on: interval(on.minus_h111("h311", "steals"))),
    Claim("other victims and other criteria lead to fewer steals",
          "largest difference of H112, H113, H121, H122 and H123 from H111's steals", BELOW,
          "always lead to a reduced usage (section 7.3); Table 9 has more for 122, 123 on March",
          _steals_of_others),
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
